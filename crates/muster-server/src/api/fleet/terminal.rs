//! Watching and driving a worker's terminal, and the last output of one.

use std::num::NonZeroU16;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue};
use muster_engine::fleet::WorkerRow;
use muster_wire::Category;
use muster_wire::api::At;
use muster_wire::fleet::{NodeKind, WorkerIo, WorkerState};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::workers::{Found, find};
use super::{conflict, show};
use crate::api::body::{PathText, Query};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::Need;
use crate::fleet::terminal::{VIEWER_FRAME_MAX, Viewer, last_output, serve_viewer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(ticket))
        .routes(routes!(terminal))
        .routes(routes!(output))
}

/// A one-use ticket for a worker's terminal
///
/// For whoever cannot set a header on a WebSocket. Good for 60 s, once, for this worker.
#[utoipa::path(post, path = "/api/v1/fleet/workers/{worker}/terminal/ticket", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one")),
    responses((status = 200, description = "{ticket, expires_at, url}", body = serde_json::Value),
              (status = 404, description = "No such worker")))]
async fn ticket(
    State(app): State<App>,
    caller: Caller,
    PathText(worker): PathText,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &worker).await?;
    let shown = caller.credential().ok_or_else(unauthenticated)?;
    let tickets = &app.fleet.terminals.tickets;
    let issued = tickets.issue(
        found.id(),
        &caller.principal,
        &shown.id().into(),
        app.clock.now(),
    );
    let (ticket, until) = issued.ok_or_else(|| {
        Problem::new(Category::Overloaded, "too many tickets are open").retry_after(5)
    })?;
    let url = format!(
        "/api/v1/fleet/workers/{}/terminal?ticket={ticket}",
        found.id()
    );
    Ok(Json(
        json!({"ticket": ticket, "expires_at": until.rfc3339(), "url": url}),
    ))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Admission {
    ticket: Option<String>,
}

/// A worker's terminal
///
/// A WebSocket with JSON text frames, described in docs/fleet-api.md. Needs a key with the scope
/// operate in a header, or a one-use ticket.
#[utoipa::path(get, path = "/api/v1/fleet/workers/{worker}/terminal", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one"),
           ("ticket" = Option<String>, Query)),
    responses((status = 101, description = "The terminal"),
              (status = 401, description = "Neither key nor ticket"),
              (status = 404, description = "No such worker"),
              (status = 409, description = "It does not run")))]
async fn terminal(
    State(app): State<App>,
    caller: Caller,
    PathText(worker): PathText,
    Query(admission): Query<Admission>,
    handshake: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let by_ticket = admission.ticket.as_deref();
    if by_ticket.is_none() && !caller.may(Need::Operate) {
        return Err(unauthenticated());
    }
    let found = match find(&app, &worker).await {
        // Who shows nothing that is good learns nothing of what there is.
        Err(_) if !caller.may(Need::Operate) => return Err(unauthenticated()),
        found => found?,
    };
    let now = app.clock.now();
    let (principal, credential) = match by_ticket {
        None => {
            let shown = caller.credential().cloned().ok_or_else(unauthenticated)?;
            (caller.principal.clone(), shown)
        }
        Some(ticket) => {
            let tickets = &app.fleet.terminals.tickets;
            let redeemed = tickets.redeem(ticket, found.id(), now);
            let (principal, id) = redeemed.ok_or_else(unauthenticated)?;
            let shown = app.auth.ring.credential(&id, now);
            (principal, shown.map_err(|_| unauthenticated())?)
        }
    };
    let (node, node_name) = place(&found)?;
    let viewer = Viewer {
        worker: found.id().clone(),
        agent: agent_at_node(&app, found.row()),
        node,
        node_name,
        principal,
        credential,
    };
    let handshake = handshake.map_err(|_| Problem::validation("this route speaks WebSocket"))?;
    let alive = (
        app.tasks.token(),
        app.meters.reading(crate::meters::Stream::Socket),
    );
    Ok(handshake
        .max_message_size(VIEWER_FRAME_MAX)
        .max_frame_size(VIEWER_FRAME_MAX)
        .on_upgrade(move |socket| async move {
            serve_viewer(app, viewer, socket).await;
            drop(alive);
        }))
}

fn unauthenticated() -> Problem {
    Problem::new(
        Category::Unauthenticated,
        "this needs a key with the scope operate, on loopback too, or a ticket that is good",
    )
}

/// Where a worker runs.
fn place(found: &Found) -> Result<(muster_wire::NodeId, Arc<str>), Problem> {
    let row = found.row();
    if let (Found::Past(_), _) | (_, Some(_)) = (found, row.ended) {
        let problem = conflict(format!(
            "{} has ended: there is no terminal any more",
            row.name
        ));
        let exit = row.exit.as_ref().map(show::exit);
        return Err(problem.details(json!({"exit": exit})));
    }
    let name = match found {
        Found::Held(view) => view.node_name.clone(),
        Found::Past(_) => None,
    };
    match &row.node {
        Some(node) if row.state != WorkerState::Queued => Ok((
            node.clone(),
            name.unwrap_or_else(|| Arc::from(node.as_str())),
        )),
        _ => Err(conflict(format!("{} waits for a place", row.name))),
    }
}

/// What its node knows a worker by.
fn agent_at_node(app: &App, row: &WorkerRow) -> Arc<str> {
    let link = row
        .node
        .as_ref()
        .and_then(|node| app.fleet.links.of(node.as_str()));
    match link {
        Some(link) if link.kind == NodeKind::Relay => row.name.clone(),
        _ => Arc::from(row.id.as_str()),
    }
}

/// The last output of a worker
///
/// Of one that runs the screen, as its node would paint it; of one that ended the end of its
/// output.
#[utoipa::path(get, path = "/api/v1/fleet/workers/{worker}/output", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one")),
    responses((status = 200, description = "The text; with Accept: application/json {worker, source, text, …}", body = String),
              (status = 404, description = "No such worker"),
              (status = 503, description = "Its node cannot be asked now")))]
async fn output(
    State(app): State<App>,
    headers: HeaderMap,
    PathText(worker): PathText,
) -> Result<Response, Problem> {
    let found = find(&app, &worker).await?;
    let row = found.row();
    let Ok((node, _)) = place(&found) else {
        let output = row.exit.as_ref().map(|exit| exit.output.clone());
        let text = output.clone().unwrap_or_default();
        let whole = json!({
            "worker": row.id, "source": "exit", "text": output,
            "at": row.exit.as_ref().and_then(|exit| exit.at).map(At),
        });
        return Ok(in_form(&headers, text, whole));
    };
    let snapshot = last_output(&app, &node, &agent_at_node(&app, row)).await;
    let snapshot = snapshot.map_err(|(code, message)| {
        let category = match code.as_str() {
            "agent_not_found" | "agent_exited" => Category::Conflict,
            _ => Category::NodeUnreachable,
        };
        let problem = Problem::new(category, format!("{}: {message}", row.name));
        if problem.status == http::StatusCode::SERVICE_UNAVAILABLE {
            problem.retry_after(5)
        } else {
            problem
        }
    })?;
    let text = match row.io {
        Some(WorkerIo::Pipes) => snapshot.screen.clone(),
        _ => {
            let mut screen = vt100::Parser::new(size(snapshot.rows), size(snapshot.cols), 0);
            screen.process(snapshot.screen.as_bytes());
            screen.screen().contents()
        }
    };
    let whole = json!({
        "worker": row.id, "source": "screen", "text": text, "screen": snapshot.screen,
        "rows": snapshot.rows, "cols": snapshot.cols, "offset": snapshot.offset,
        "at": app.clock.now().rfc3339(),
    });
    Ok(in_form(&headers, text, whole))
}

/// Plain text, or all that is known of it for whoever asks for JSON.
fn in_form(headers: &HeaderMap, text: String, whole: Value) -> Response {
    let accepts = headers
        .get(http::header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if accepts.contains("application/json") {
        return Json(whole).into_response();
    }
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(http::header::CONTENT_TYPE, plain)], text).into_response()
}

fn size(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n.min(1_000)).unwrap_or(NonZeroU16::MIN)
}
