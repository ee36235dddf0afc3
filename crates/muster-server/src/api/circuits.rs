//! Circuits of LLM endpoints: which are open, and when they are checked next.

use axum::extract::State;
use axum::http::StatusCode;
use muster_engine::effect::CircuitState;
use muster_engine::event::Question;
use muster_engine::{Event, Reply};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Answer, Problem};
use super::write::Writer;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(all))
}

/// The circuit of every LLM endpoint in the configuration.
#[utoipa::path(
    get, path = "/api/v1/llm-circuits", tag = "health",
    responses((status = 200, description = "One entry for each endpoint", body = serde_json::Value))
)]
async fn all(State(app): State<App>) -> Answer {
    let circuits = ask(&app).await?;
    let mut writer = Writer::object();
    writer
        .flag("enabled", app.config.llm_health.enabled)
        .list("circuits", &circuits, shown);
    Ok(writer.answer(StatusCode::OK))
}

/// The state of all circuits.
///
/// # Errors
/// When the driver does not answer.
pub(crate) async fn ask(app: &App) -> Result<Vec<CircuitState>, Problem> {
    let question = Question::Circuits;
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Circuits(circuits) => Ok(circuits),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}

fn shown(out: Vec<u8>, circuit: &CircuitState) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    writer
        .text("endpoint", &circuit.endpoint)
        .text("state", circuit.state)
        .number("failures", circuit.failures.into())
        .time_if("opened_at", circuit.opened_at)
        .time_if("next_check_at", circuit.next_check);
    if let Some((at, error)) = &circuit.last {
        writer
            .time_if("checked_at", Some(*at))
            .flag("healthy", error.is_none())
            .text_if("error", error.as_deref());
    }
    writer.end()
}
