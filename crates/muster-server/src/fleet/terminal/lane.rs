//! A node's terminal socket: all sessions of that node over one connection, apart from its link.
//! It is read at a bounded pace, so that a worker that floods is held up at its node, and a slow
//! viewer holds up nobody: what it does not take is dropped in its own queue.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dashmap::DashMap;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_wire::NodeId;
use muster_wire::fleet::terminal::{TerminalCommand, TerminalMode, TerminalNews};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Item};
use crate::app::App;
use crate::fleet::door::Admitted;
use crate::fleet::session::{LINGER, is_too_large, too_large};

/// The largest frame of a terminal socket.
pub(crate) const FRAME_MAX: usize = 1024 * 1024;
/// Commands that may wait to be written.
const QUEUE_MAX: usize = 512;
/// A node that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// One on whose socket nothing at all comes, pings neither, is gone.
const IDLE_MAX: Duration = Duration::from_secs(75);
/// Bytes that are read at once and in a second: more than anybody watches.
const BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 8.0 * 1024.0 * 1024.0;

/// One terminal socket.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) id: u64,
    pub(super) node: NodeId,
    queue: mpsc::Sender<TerminalCommand>,
    sessions: DashMap<String, Arc<Feed>>,
    closing: CancellationToken,
}

impl Lane {
    /// Opens a session; what the node says of it goes into the feed.
    pub(super) fn open(&self, session: &str, agent: &str, mode: TerminalMode, feed: Arc<Feed>) {
        self.sessions.insert(session.to_owned(), feed);
        self.command(TerminalCommand::Open {
            session_id: session.to_owned(),
            agent: agent.to_owned(),
            mode,
        });
    }

    /// Closes a session; nothing of it is heard any more.
    pub(super) fn end(&self, session: &str) {
        if self.sessions.remove(session).is_some() {
            self.command(TerminalCommand::Close {
                session_id: session.to_owned(),
            });
        }
    }

    /// Tells the node. A lane whose queue is full is closed.
    pub(super) fn command(&self, command: TerminalCommand) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(command) {
            self.closing.cancel();
        }
    }

    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until it is over.
    pub(super) async fn closed(&self) {
        self.closing.cancelled().await;
    }
}

/// Serves a terminal socket until it ends.
pub(crate) async fn serve(app: App, admitted: Admitted, mut socket: WebSocket) {
    let terminals = &app.fleet.terminals;
    let (queue, commands) = mpsc::channel(QUEUE_MAX);
    let lane = Arc::new(Lane {
        id: terminals.next_id(),
        node: admitted.node.clone(),
        queue,
        sessions: DashMap::new(),
        closing: CancellationToken::new(),
    });
    terminals.open(&lane);
    let (code, why) = {
        let (mut sink, mut stream) = (&mut socket).split();
        tokio::select! {
            biased;
            why = admitted.until_over(&app) => (close_code::POLICY, why.ended().to_owned()),
            () = lane.closed() => (close_code::NORMAL, "superseded".to_owned()),
            () = app.stop.cancelled() => (close_code::AWAY, "the control plane is shutting down".to_owned()),
            why = write(&mut sink, commands) => (close_code::POLICY, why),
            end = read(&lane, &mut stream) => end,
        }
    };
    terminals.ended(&lane);
    tracing::debug!(node.id = %lane.node, reason = %why, "a terminal socket ended");
    let frame = CloseFrame {
        code,
        reason: Utf8Bytes::from(why.chars().take(60).collect::<String>()),
    };
    let _ = timeout(
        Duration::from_secs(2),
        socket.send(Message::Close(Some(frame))),
    )
    .await;
    if code == close_code::SIZE {
        tokio::time::sleep(LINGER).await;
    }
}

async fn write(
    sink: &mut SplitSink<&mut WebSocket, Message>,
    mut commands: mpsc::Receiver<TerminalCommand>,
) -> String {
    while let Some(command) = commands.recv().await {
        let Ok(text) = serde_json::to_string(&command) else {
            continue;
        };
        match timeout(WRITE_MAX, sink.send(Message::Text(text.into()))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return format!("the connection broke: {error}"),
            Err(_) => return format!("it took nothing for {WRITE_MAX:?}"),
        }
    }
    "closed".into()
}

async fn read(lane: &Lane, stream: &mut SplitStream<&mut WebSocket>) -> (u16, String) {
    let because = |why: String| (close_code::POLICY, why);
    let (mut room, mut at) = (BYTES, Instant::now());
    loop {
        let text = match timeout(IDLE_MAX, stream.next()).await {
            Err(_) => return because(format!("nothing was heard for {IDLE_MAX:?}")),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(Message::Close(_)))) => return because("the node closed it".into()),
            Ok(Some(Ok(_))) => continue,
            Ok(Some(Err(error))) if is_too_large(&error) => {
                return (close_code::SIZE, too_large(FRAME_MAX));
            }
            Ok(Some(Err(error))) => return because(format!("the connection broke: {error}")),
            Ok(None) => return because("the connection ended without a close".into()),
        };
        let now = Instant::now();
        room = (room + now.duration_since(at).as_secs_f64() * BYTES_PER_SECOND).min(BYTES);
        at = now;
        room -= text.len() as f64;
        // A frame that cannot be read has nobody to whom it could be answered.
        if let Ok(news) = serde_json::from_str(&text) {
            take(lane, news);
        }
        if room < 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(-room / BYTES_PER_SECOND)).await;
        }
    }
}

/// Hands what a node says to whom it is for. Never waits.
fn take(lane: &Lane, news: TerminalNews) {
    let feed = |session: &str| lane.sessions.get(session).map(|feed| feed.value().clone());
    match news {
        TerminalNews::Beat { id } => lane.command(TerminalCommand::Ack { id }),
        TerminalNews::Ready {
            session_id,
            screen,
            rows,
            cols,
            offset,
        } => {
            if let Some(feed) = feed(&session_id) {
                feed.ready(
                    STANDARD.decode(screen).unwrap_or_default(),
                    rows,
                    cols,
                    offset,
                );
            }
        }
        TerminalNews::Output {
            session_id,
            chunk,
            offset,
        } => {
            if let Some(feed) = feed(&session_id) {
                feed.output(chunk, offset);
            }
        }
        TerminalNews::InputAck {
            session_id,
            bytes_written,
        } => {
            if let Some(feed) = feed(&session_id) {
                feed.other(Item::InputAck(bytes_written));
            }
        }
        TerminalNews::Error {
            session_id,
            code,
            message,
        } => {
            if let Some(feed) = feed(&session_id) {
                let (code, message) = (cut(&code, 64), cut(&message, 512));
                feed.other(Item::Error { code, message });
            }
        }
        TerminalNews::Closed {
            session_id,
            code,
            message,
        } => {
            if let Some((_, feed)) = lane.sessions.remove(&session_id) {
                let code = cut(code.as_deref().unwrap_or("closed"), 64);
                let message = message.as_deref().unwrap_or("the node gave no reason");
                let message = cut(message, 512);
                feed.other(Item::Closed { code, message });
            }
        }
        TerminalNews::Other => {}
    }
}

/// Words of a node, bounded and without what a terminal would act on.
fn cut(text: &str, most: usize) -> String {
    let plain = |c: &char| !c.is_control();
    text.chars().filter(plain).take(most).collect()
}
