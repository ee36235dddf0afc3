//! The two tasks at a socket: one writes what waits, within a bound for each frame; one reads
//! and hands on. Neither is waited for by whoever decides.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_wire::fleet::frame::PlaneFrame;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error};
use tracing::{debug, warn};

use super::session::End;
use crate::dial::Socket;

/// Writes messages until the queue is closed; then says goodbye to the socket.
pub(crate) async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Message>,
    bound: Duration,
) -> End {
    while let Some(message) = queue.recv().await {
        match tokio::time::timeout(bound, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return broken(&error),
            Err(_) => {
                return End::Unhealthy {
                    reason: "the plane accepts and does not read".into(),
                    evidence: format!("a frame could not be written within {bound:?}"),
                };
            }
        }
    }
    // The queue is closed by whoever stops: a close that nobody takes holds nothing up.
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.close()).await;
    End::Stopped
}

/// Reads frames of the control socket until it ends. What is no frame is counted and passed over.
pub(crate) async fn read(mut stream: SplitStream<Socket>, frames: mpsc::Sender<PlaneFrame>) -> End {
    let mut unreadable: u64 = 0;
    loop {
        let text = match next(&mut stream).await {
            Ok(text) => text,
            Err(end) => return end,
        };
        // What came is not quoted: it may hold what belongs in no log.
        match text.as_deref().map(serde_json::from_str::<PlaneFrame>) {
            Some(Ok(PlaneFrame::Other)) => debug!("a frame of a type this build does not know"),
            Some(Ok(frame)) => {
                if frames.send(frame).await.is_err() {
                    return End::Stopped;
                }
            }
            Some(Err(_)) | None => {
                unreadable += 1;
                if unreadable.is_power_of_two() {
                    warn!(unreadable, "the plane sent what is no frame; passed over");
                }
            }
        }
    }
}

/// The next message that is not the socket's own: its text, or `None` for bytes.
pub(crate) async fn next(stream: &mut SplitStream<Socket>) -> Result<Option<String>, End> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
            Some(Ok(Message::Binary(_))) => return Ok(None),
            // They prove a socket, not a plane behind it.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(close))) => {
                let (code, words) = close.map_or((1005, String::new()), |close| {
                    (close.code.into(), close.reason.as_str().to_owned())
                });
                return Err(End::Closed { code, words });
            }
            Some(Err(error)) => return Err(broken(&error)),
            None => return Err(End::Broken("the connection ended without a close".into())),
        }
    }
}

fn broken(error: &Error) -> End {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => {
            End::Broken("the connection was closed".into())
        }
        Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => End::Broken(format!(
            "the plane sent a frame of {size} bytes; {max_size} are taken"
        )),
        error => End::Broken(error.to_string()),
    }
}
