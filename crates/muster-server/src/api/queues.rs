//! Queues: who waits where, and how long it may take.

use axum::extract::State;
use axum::http::StatusCode;
use muster_engine::effect::AgentState;
use muster_engine::event::Question;
use muster_engine::{Event, Reply};
use muster_wire::AgentId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::problem::{Answer, Problem};
use super::write::{Writer, answer};
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(all))
        .routes(routes!(one))
}

/// The queue of every agent.
#[utoipa::path(
    get, path = "/api/v1/queues", tag = "queues",
    responses((status = 200, description = "One entry for each agent", body = serde_json::Value))
)]
async fn all(State(app): State<App>) -> Answer {
    let question = Question::Agents;
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Agents(mut states) => {
            states.sort_by(|a, b| a.id.cmp(&b.id));
            let mut writer = Writer::object();
            writer.list("queues", &states, state);
            Ok(writer.answer(StatusCode::OK))
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}

/// The queue of one agent.
#[utoipa::path(
    get, path = "/api/v1/queues/{agent}", tag = "queues",
    params(("agent" = String, Path, description = "The agent")),
    responses(
        (status = 200, description = "Its queue", body = serde_json::Value),
        (status = 404, description = "No such agent"),
    )
)]
async fn one(State(app): State<App>, PathText(agent): PathText) -> Answer {
    let state_of = ask(&app, &agent).await?;
    Ok(answer(StatusCode::OK, state(Vec::new(), &state_of).into()))
}

/// The engine's state of an agent.
///
/// # Errors
/// 400 and 404 as their names say.
pub(crate) async fn ask(app: &App, agent: &str) -> Result<Box<AgentState>, Problem> {
    let id = AgentId::parse(agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    let question = Question::Agent(id);
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Agent(Some(state)) => Ok(state),
        Reply::Agent(None) | Reply::UnknownAgent => {
            Err(Problem::not_found(format!("there is no agent {agent}")))
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}

pub(crate) fn state(out: Vec<u8>, state: &AgentState) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    writer
        .text("agent", state.id.as_str())
        .value("cap", &state.cap)
        .number("running", state.running.into())
        .number("over_cap", state.over_cap.into())
        .number("queued", i64::try_from(state.queued).unwrap_or(i64::MAX))
        .number("waiting_callers", state.places.into())
        .number("absorbed", state.absorbed.into())
        .flag("held", state.held)
        .time_if("oldest_queued_at", state.oldest_queued_at)
        .value("starts_per_minute", &state.starts_per_minute)
        .value("starts_in_ms", &state.starts_in_ms);
    let unapproved = state.tags.unapproved();
    if !unapproved.is_empty() {
        writer.value("pending_tags", &unapproved);
    }
    writer.end()
}
