//! Where nodes connect. A node shows its own token, which reaches nothing else.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use http::HeaderMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem::Problem;
use crate::app::App;
use crate::fleet::{door, session, terminal as terminals};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(control))
        .routes(routes!(tunnel))
        .routes(routes!(terminal))
}

/// The largest message of a tunnel.
const TUNNEL_MESSAGE_MAX: usize = 4 << 20;

/// What a control socket reads at once: there is one for each node, and frames are small.
const CONTROL_BUFFER: usize = 4 * 1024;
/// What the other two read at once.
const BULK_BUFFER: usize = 32 * 1024;

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// What is said to whoever asks without a handshake.
fn upgrade(upgrade: Upgrade) -> Result<WebSocketUpgrade, Problem> {
    upgrade.map_err(|_| Problem::validation("this route speaks WebSocket"))
}

/// The control socket of a node
///
/// JSON text frames, `v` = 1. The node's token as `Authorization: Bearer`; the first frame is
/// `node.register`, within 10 s.
#[utoipa::path(get, path = "/v1/node/ws", tag = "nodes",
    responses((status = 101, description = "The link is open"),
              (status = 401, description = "No token, or one that is not known"),
              (status = 403, description = "The key of somebody else")))]
async fn control(
    State(app): State<App>,
    headers: HeaderMap,
    handshake: Upgrade,
) -> Result<Response, Problem> {
    let admitted = door::node_of(&app, &headers)?;
    let url: Arc<str> = door::plane_url(&app, &headers).into();
    let handshake = upgrade(handshake)?
        .read_buffer_size(CONTROL_BUFFER)
        .max_message_size(session::FRAME_MAX)
        .max_frame_size(session::FRAME_MAX);
    let alive = app.tasks.token();
    Ok(handshake.on_upgrade(move |socket| async move {
        session::serve(app, admitted, url, socket).await;
        drop(alive);
    }))
}

/// A tunnel that the plane asked a node for
///
/// Binary messages; an empty one ends its direction. `x-muster-tunnel` names the tunnel.
#[utoipa::path(get, path = "/v1/node/tunnel/ws", tag = "nodes",
    responses((status = 101, description = "The tunnel is open"),
              (status = 401, description = "No token, or one that is not known"),
              (status = 404, description = "Nobody waits for such a tunnel")))]
async fn tunnel(
    State(app): State<App>,
    headers: HeaderMap,
    handshake: Upgrade,
) -> Result<Response, Problem> {
    let admitted = door::node_of(&app, &headers)?;
    let id = headers
        .get("x-muster-tunnel")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    if !app.fleet.tunnels.expects(&admitted.node, &id) {
        return Err(Problem::not_found("nobody waits for this tunnel"));
    }
    let handshake = upgrade(handshake)?
        .read_buffer_size(BULK_BUFFER)
        .max_message_size(TUNNEL_MESSAGE_MAX)
        .max_frame_size(TUNNEL_MESSAGE_MAX);
    Ok(handshake.on_upgrade(move |socket| async move {
        let work = app.clone();
        app.fleet.tunnels.arrived(work, admitted, &id, socket);
    }))
}

/// The terminal socket of a node
///
/// JSON text frames, apart from the control socket.
#[utoipa::path(get, path = "/v1/node/terminal/ws", tag = "nodes",
    responses((status = 101, description = "The socket is open"),
              (status = 401, description = "No token, or one that is not known")))]
async fn terminal(
    State(app): State<App>,
    headers: HeaderMap,
    handshake: Upgrade,
) -> Result<Response, Problem> {
    let admitted = door::node_of(&app, &headers)?;
    let handshake = upgrade(handshake)?
        .read_buffer_size(BULK_BUFFER)
        .max_message_size(terminals::FRAME_MAX)
        .max_frame_size(terminals::FRAME_MAX);
    let alive = app.tasks.token();
    Ok(handshake.on_upgrade(move |socket| async move {
        terminals::serve_lane(app, admitted, socket).await;
        drop(alive);
    }))
}
