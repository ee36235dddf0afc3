//! What a broker tells and nothing becomes of: its observations and its receipts. And which
//! workspace this is.

use axum::extract::State;
use http::StatusCode;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find;
use super::envelope::ok;
use crate::api::body::{PathText, RawBody};
use crate::api::problem::Answer;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(observed))
        .routes(routes!(read))
        .routes(routes!(workspace))
}

/// Tell what an agent does
///
/// Taken and not kept: what a broker infers of a process is no evidence of anything.
#[utoipa::path(post, path = "/v1/agents/{name}/events", tag = "relay", params(("name" = String, Path, description = "The agent.")),
    responses((status = 202, description = "Taken."), (status = 404, description = "`agent_not_found`.")))]
async fn observed(State(app): State<App>, PathText(name): PathText, _: RawBody) -> Answer {
    find(&app, &name)?;
    Ok(ok(StatusCode::ACCEPTED, json!({"accepted": true})))
}

/// Say that a message was read
///
/// Taken: there are no messages.
#[utoipa::path(post, path = "/v1/messages/{id}/read", tag = "relay", params(("id" = String, Path, description = "The message.")),
    responses((status = 200, description = "Taken.")))]
async fn read(PathText(id): PathText, _: RawBody) -> Answer {
    Ok(ok(StatusCode::OK, json!({"message_id": id, "read": true})))
}

/// Show the workspace
///
/// A plane is one workspace.
#[utoipa::path(get, path = "/v1/workspace", tag = "relay",
    responses((status = 200, description = "The workspace.")))]
async fn workspace(State(app): State<App>) -> Answer {
    let id = app.relay.look(|tables| tables.workspace().to_owned());
    Ok(ok(
        StatusCode::OK,
        json!({"id": id, "workspace_id": id, "name": "muster"}),
    ))
}
