//! Circuits of LLM endpoints: which are open, and when they are checked next.

use axum::Json;
use axum::extract::State;
use muster_engine::effect::CircuitState;
use muster_engine::event::Question;
use muster_engine::{Event, Reply};
use muster_wire::api::At;
use muster_wire::api::circuits::{Circuit, CircuitWord, Circuits};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(all))
}

/// The circuit of every LLM endpoint in the configuration.
#[utoipa::path(
    get, path = "/api/v1/llm-circuits", tag = "health",
    responses((status = 200, description = "One entry for each endpoint", body = Circuits))
)]
async fn all(State(app): State<App>) -> Result<Json<Circuits>, Problem> {
    let circuits = ask(&app).await?;
    Ok(Json(Circuits {
        enabled: app.config.llm_health.enabled,
        circuits: circuits.iter().map(shown).collect(),
    }))
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

fn shown(circuit: &CircuitState) -> Circuit {
    let last = circuit.last.as_ref();
    Circuit {
        endpoint: circuit.endpoint.to_string(),
        state: CircuitWord::from_word(circuit.state).unwrap_or(CircuitWord::Closed),
        failures: circuit.failures,
        opened_at: circuit.opened_at.map(At),
        next_check_at: circuit.next_check.map(At),
        checked_at: last.map(|(at, _)| At(*at)),
        healthy: last.map(|(_, error)| error.is_none()),
        error: last.and_then(|(_, error)| error.as_deref().map(str::to_owned)),
    }
}
