//! `POST /api/v1/nodes/{agent}/retire`: takes an agent that is not there any more off the list.
//! Whether it is, the engine decides.

use axum::Json;
use axum::extract::State;
use muster_engine::{Event, Reply};
use muster_wire::api::retire::AgentRetired;
use muster_wire::{AgentId, Category, plain};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query};
use super::caller::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::driver::record::Line;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(retire))
}

/// Whether to do it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
}

/// Take an agent off the list
///
/// One of which no instance is alive and nothing is open. Its executions stay, and its id is
/// free: whoever registers it next owns it. Its hold, cap and tags go.
#[utoipa::path(post, path = "/api/v1/nodes/{agent}/retire", tag = "agents",
    params(("agent" = String, Path, description = "The agent"), Asked),
    responses(
        (status = 200, description = "It is off the list, or would be.", body = AgentRetired),
        (status = 404, description = "No such agent."),
        (status = 409, description = "An instance of it is alive, or something of it is open; the details say which and how many."),
    ))]
async fn retire(
    State(app): State<App>,
    caller: Caller,
    PathText(agent): PathText,
    Query(asked): Query<Asked>,
) -> Result<Json<AgentRetired>, Problem> {
    let agent = AgentId::parse(&agent)
        .map_err(|error| Problem::validation(format!("agent id: {error}")))?;
    let (named, dry_run) = (agent.clone(), asked.dry_run);
    let object = agent.to_string();
    let line = Line::new(&caller.principal, "agent.retired", move |reply| {
        let done = !dry_run && matches!(reply, Some(Reply::AgentRetired { .. }));
        done.then(|| (object.clone(), String::new()))
    });
    let reply = app
        .driver
        .ask_on_record(line, move |waiter| Event::AgentRetired {
            agent: named,
            dry_run,
            waiter,
        })
        .await?;
    let instances = match reply {
        Reply::AgentRetired { instances } => instances,
        Reply::AgentInUse { alive, open } => {
            let problem = Problem::new(
                Category::Conflict,
                match (alive.len(), open) {
                    (0, 1) => {
                        format!("1 execution of {agent} is open: cancel it, or wait for its end")
                    }
                    (0, open) => format!(
                        "{} of {agent} are open: cancel them, or wait for their end",
                        plain::count(open, "execution")
                    ),
                    (1, _) => format!("1 instance of {agent} is not down: stop it first"),
                    (n, _) => format!("{n} instances of {agent} are not down: stop them first"),
                },
            );
            return Err(problem.details(json!({ "alive": alive, "open": open })));
        }
        Reply::UnknownAgent => {
            return Err(Problem::not_found(format!("there is no agent {agent}")));
        }
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a retirement was answered with {other:?}"
            )));
        }
    };
    Ok(Json(AgentRetired {
        stays: format!("the executions of {agent}, as long as they are kept"),
        agent,
        dry_run,
        instances,
    }))
}
