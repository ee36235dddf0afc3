//! How a session ends, and how the peer is told. Knows close codes and no frames.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use tokio::time::timeout;

/// How long a close in good order may take.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// How long a socket that cannot be read stays open for its close to be read.
pub(crate) const LINGER: Duration = Duration::from_millis(500);

/// Why a session ended: a code for the peer and words for people.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(super) code: Option<u16>,
    pub(super) why: Arc<str>,
}

impl End {
    /// The socket is gone: nobody can be told.
    pub(crate) fn gone(why: impl Into<Arc<str>>) -> Self {
        Self {
            code: None,
            why: why.into(),
        }
    }

    /// Closed by us, and said so.
    pub(crate) fn close(code: u16, why: impl Into<Arc<str>>) -> Self {
        Self {
            code: Some(code),
            why: why.into(),
        }
    }
}

/// The end of a socket that cannot be read any more. Who sent too much at once is told so.
pub(super) fn broke(error: &axum::Error, most: usize) -> End {
    if is_too_large(error) {
        return End::close(close_code::SIZE, too_large(most));
    }
    End::gone(format!("the connection broke: {error}"))
}

/// Whether a frame was larger than it may be.
pub(crate) fn is_too_large(error: &axum::Error) -> bool {
    // The library's own error lies under axum's, which has no words of its own.
    error.to_string().contains("too long")
}

/// What is said to whoever sent too much at once.
pub(crate) fn too_large(most: usize) -> String {
    format!("a frame here has at most {} KiB", most / 1024)
}

pub(super) fn leaving() -> End {
    End::close(close_code::AWAY, "the control plane is shutting down")
}

pub(super) fn closed_by_peer(frame: Option<CloseFrame>) -> String {
    match frame {
        Some(frame) if !frame.reason.is_empty() => {
            let reason: String = frame.reason.chars().take(120).collect();
            format!("the node closed it: {} {reason:?}", frame.code)
        }
        Some(frame) => format!("the node closed it: {}", frame.code),
        None => "the node closed it".into(),
    }
}

pub(super) async fn close(mut socket: WebSocket, code: u16, why: &str) {
    // A close frame has room for 123 bytes of text.
    let end = (0..=why.len().min(120))
        .rev()
        .find(|at| why.is_char_boundary(*at));
    let frame = CloseFrame {
        code,
        reason: Utf8Bytes::from(&why[..end.unwrap_or(0)]),
    };
    let said = async {
        socket.send(Message::Close(Some(frame))).await?;
        loop {
            match socket.recv().await {
                Some(Ok(Message::Close(_))) | None => break,
                Some(Ok(_)) => {}
                // What it sent too much of stays unread: it has a moment to read why.
                Some(Err(_)) => {
                    tokio::time::sleep(LINGER).await;
                    break;
                }
            }
        }
        Ok::<_, axum::Error>(())
    };
    let _ = timeout(CLOSE_MAX, said).await;
}
