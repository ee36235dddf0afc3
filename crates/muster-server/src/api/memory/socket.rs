//! The memory change feed over a WebSocket, which every agent opens at its start. Text frames,
//! one change each; the client sends nothing. A reader that falls too far behind is told so by
//! the close and comes back.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::events::EventsQuery;
use super::may_read;
use crate::api::body::Query;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::Credential;
use crate::memory::{Next, Reader};
use crate::meters::Stream;

const PING_EVERY: Duration = Duration::from_secs(15);
/// Without a pong for so long the peer is gone.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// A peer that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// What a client may send: control frames and nothing of size.
const INCOMING_MAX: usize = 64 * 1024;

/// The live feed of memory changes as text frames. Without a query it delivers everything.
#[utoipa::path(get, path = "/api/v1/memory/events/ws", tag = "memory", params(EventsQuery),
    responses((status = 101, description = "One change a text frame"),
              (status = 400, description = "No WebSocket handshake")))]
pub(super) async fn ws(
    State(app): State<App>,
    caller: Caller,
    Query(wish): Query<EventsQuery>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    may_read(&caller)?;
    let filter = wish.filter()?;
    let upgrade = upgrade.map_err(|_| {
        Problem::validation("this route speaks WebSocket; /api/v1/memory/events/sse does not")
    })?;
    let memory = app.memory.clone();
    // Before the handshake is answered: what is set after it is seen.
    let reader = app
        .blocking(move |stores| memory.reader(&*stores.annex, None, filter))
        .await?;
    let alive = (app.tasks.token(), app.meters.reading(Stream::Socket));
    Ok(upgrade
        .max_message_size(INCOMING_MAX)
        .max_frame_size(INCOMING_MAX)
        .on_upgrade(move |socket| async move {
            serve(socket, reader, app, caller).await;
            drop(alive);
        }))
}

async fn serve(mut socket: WebSocket, mut reader: Reader, app: App, caller: Caller) {
    let _held = caller.credential().map(Credential::hold);
    let mut over = std::pin::pin!(caller.until_over(&app));
    let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    loop {
        let frame = tokio::select! {
            biased;
            () = app.stop.cancelled() => {
                close(socket, close_code::AWAY, "the control plane is shutting down".into()).await;
                return;
            }
            why = &mut over => {
                close(socket, close_code::POLICY, why.ended().to_owned()).await;
                return;
            }
            incoming = socket.recv() => match incoming {
                Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return,
                Some(Ok(_)) => {
                    heard = Instant::now();
                    continue;
                }
            },
            _ = ping.tick() => {
                if heard.elapsed() > SILENCE_MAX {
                    return;
                }
                Message::Ping(bytes::Bytes::new())
            }
            next = reader.next() => match next {
                Next::Change(change) => Message::Text(change.text.clone()),
                Next::Missed { after, until } => {
                    app.meters.gap(Stream::Socket);
                    let reason = format!("too slow: {} changes were missed", until - after);
                    close(socket, close_code::AGAIN, reason).await;
                    return;
                }
            },
        };
        let sent = tokio::select! {
            biased;
            sent = timeout(WRITE_MAX, socket.send(frame)) => sent,
            () = app.stop.cancelled() => return,
        };
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

async fn close(mut socket: WebSocket, code: u16, reason: String) {
    let frame = CloseFrame {
        code,
        reason: Utf8Bytes::from(reason),
    };
    let said = async {
        socket.send(Message::Close(Some(frame))).await?;
        // The peer's own close ends the connection in good order.
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
        }
        Ok::<_, axum::Error>(())
    };
    let _ = timeout(Duration::from_secs(2), said).await;
}
