//! `PUT /api/v1/nodes/{agent}/cap`: an operator decides how many executions an agent runs at
//! once. What it means for what waits and runs is the engine's.

use axum::Json;
use axum::extract::State;
use muster_engine::{Event, Reply};
use muster_wire::AgentId;
use muster_wire::api::caps::{CapShown, CapSource};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, RawBody};
use super::caller::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::driver::record::Line;

/// More is as good as no cap.
const CAP_MAX: u32 = 1_000_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(set))
}

/// How many at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CapWanted {
    /// Executions at once; 0 is no cap, `null` what the configuration says.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<u32>, required, maximum = 1_000_000)]
    cap: Option<Option<u32>>,
}

/// `null` is said, a missing key is not.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Set how many executions an agent runs at once
///
/// Holds at once and over restarts, until it is set again. When it rises, what waits starts;
/// when it falls, nothing is ended: what runs beyond it is shown as over the cap.
#[utoipa::path(put, path = "/api/v1/nodes/{agent}/cap", tag = "agents",
    params(("agent" = String, Path, description = "The agent")),
    request_body = CapWanted,
    responses(
        (status = 200, description = "What holds now, and what held before.", body = CapShown),
        (status = 400, description = "The body has no cap from 0 to 1,000,000."),
        (status = 404, description = "No such agent."),
    ))]
async fn set(
    State(app): State<App>,
    caller: Caller,
    PathText(agent): PathText,
    RawBody(bytes): RawBody,
) -> Result<Json<CapShown>, Problem> {
    let agent = AgentId::parse(&agent)
        .map_err(|error| Problem::validation(format!("agent id: {error}")))?;
    let wanted: CapWanted = body::json(&bytes, "{cap: a whole number or null}")?;
    let Some(cap) = wanted.cap else {
        return Err(Problem::validation(
            "the body must name a cap: a number, 0 for none, or null for what the configuration says",
        ));
    };
    if cap.is_some_and(|cap| cap > CAP_MAX) {
        return Err(Problem::validation(format!(
            "cap: at most {CAP_MAX}; 0 is no cap"
        )));
    }
    let asked = agent.clone();
    let line = line(&caller, &agent, cap);
    let reply = app
        .driver
        .ask_on_record(line, move |waiter| Event::CapSet {
            agent: asked,
            cap,
            waiter,
        })
        .await?;
    let shown = match reply {
        Reply::CapSet {
            was,
            was_set,
            cap: now,
        } => CapShown {
            agent: agent.clone(),
            cap: now,
            source: source(cap.is_some()).into(),
            was,
            was_source: source(was_set).into(),
        },
        Reply::UnknownAgent => {
            return Err(Problem::not_found(format!("there is no agent {agent}")));
        }
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a cap was answered with {other:?}"
            )));
        }
    };
    Ok(Json(shown))
}

fn line(caller: &Caller, agent: &AgentId, wanted: Option<u32>) -> Line {
    let text = |cap: Option<u32>| cap.map_or_else(|| "none".to_owned(), |cap| cap.to_string());
    let object = agent.to_string();
    Line::new(&caller.principal, "cap.set", move |reply| {
        let Some(Reply::CapSet { was, was_set, cap }) = reply else {
            return None;
        };
        let detail = format!(
            "{} ({}), was {} ({})",
            text(*cap),
            source(wanted.is_some()),
            text(*was),
            source(*was_set)
        );
        Some((object.clone(), detail))
    })
}

fn source(is_set: bool) -> CapSource {
    if is_set {
        CapSource::Set
    } else {
        CapSource::Config
    }
}
