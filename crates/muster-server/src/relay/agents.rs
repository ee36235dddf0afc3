//! `/v1/agents`: the registry of agents, as a broker uses it. What is told here of a worker's
//! end goes to the engine; nothing here starts or stops a process.

use axum::extract::State;
use http::StatusCode;
use muster_engine::fleet::FleetEvent;
use muster_engine::fleet::event::LinkId;
use muster_wire::fleet::ExitReport;
use muster_wire::{Category, NodeId, WorkerId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::envelope::{ok, refuse};
use super::identity::{self, Leaving, WORKER, Wanted, not_found};
use super::record::{Agent, Presence};
use super::{NOT_REPORTED, ask, name, public};
use crate::api::body::{self, PathText, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::fleet;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::auth::Need;

/// The most that is kept with an agent, in bytes of JSON.
const METADATA_MAX: usize = 16 * 1024;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, change, delete))
        .routes(routes!(release))
        .routes(routes!(who))
}

/// What a broker says of an agent. What it says beside is not read.
#[derive(Deserialize)]
struct New {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    metadata: Value,
}

/// Register an agent
///
/// The answer holds its token, once. A broker that comes back (the same `identity_key`) keeps its id.
#[utoipa::path(post, path = "/v1/agents", tag = "relay",
    responses((status = 201, description = "The agent with its token."), (status = 409, description = "`agent_already_exists`.")))]
async fn create(State(app): State<App>, caller: Caller, RawBody(bytes): RawBody) -> Answer {
    let new: New = body::json(&bytes, "{name, type?, metadata?}")?;
    name(&new.name)?;
    let wanted = Wanted {
        kind: kind(new.kind)?,
        metadata: metadata(new.metadata)?,
        name: new.name,
        principal: caller.principal.to_string(),
        node: None,
        invocation: None,
        id: None,
    };
    let (agent, token) = identity::register(&app, wanted).await?;
    let mut shown = public::agent(&app, &agent, None);
    shown["token"] = token.expose().into();
    Ok(ok(StatusCode::CREATED, shown))
}

/// Which agents.
#[derive(Deserialize)]
struct Filter {
    status: Option<String>,
}

/// List agents
#[utoipa::path(get, path = "/v1/agents", tag = "relay",
    responses((status = 200, description = "Every agent, by name.")))]
async fn list(State(app): State<App>, Query(filter): Query<Filter>) -> Answer {
    let nodes = ask::nodes(&app).await?;
    let agents: Vec<Agent> = app.relay.look(|tables| tables.agents().cloned().collect());
    let state = |agent: &Agent| {
        let node = agent.node.as_deref()?;
        let view = nodes.iter().find(|view| view.row.id.as_str() == node)?;
        Some(view.state)
    };
    let shown: Vec<Value> = agents
        .iter()
        .map(|agent| public::agent(&app, agent, state(agent)))
        .filter(|shown| {
            filter
                .status
                .as_deref()
                .is_none_or(|status| shown["status"] == *status)
        })
        .collect();
    Ok(ok(StatusCode::OK, shown))
}

/// Show an agent
#[utoipa::path(get, path = "/v1/agents/{name}", tag = "relay", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The agent with its channels."), (status = 404, description = "`agent_not_found`.")))]
async fn show(State(app): State<App>, PathText(name): PathText) -> Answer {
    let agent = find(&app, &name)?;
    let state = match &agent.node {
        Some(node) => ask::node(&app, node).await.ok().map(|view| view.state),
        None => None,
    };
    Ok(ok(StatusCode::OK, public::agent(&app, &agent, state)))
}

/// What is new about an agent.
#[derive(Deserialize)]
struct Patch {
    status: Option<String>,
    metadata: Option<Value>,
}

/// Change an agent
///
/// `status: offline` is a broker's report of the end of a worker, or of its own.
#[utoipa::path(patch, path = "/v1/agents/{name}", tag = "relay", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "The agent as it now is."), (status = 404, description = "`agent_not_found`.")))]
async fn change(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    RawBody(bytes): RawBody,
) -> Answer {
    let patch: Patch = body::json(&bytes, "{status?, metadata?}")?;
    let mut agent = find(&app, &name)?;
    must_own(&caller, &agent)?;
    if let Some(new) = patch.metadata {
        let new = metadata(new)?;
        let id = agent.id.clone();
        agent = identity::edit(&app, id, move |_, agent| {
            merge(&mut agent.metadata, new);
            bounded(&agent.metadata)
        })
        .await?;
    }
    match patch.status.as_deref() {
        None => {}
        Some("offline") => {
            ended(&app, &agent).await?;
            identity::leave(&app, &agent.id, Leaving::Offline).await?;
            agent.presence = Presence::Offline;
        }
        // A broker says it of what runs; a worker runs when its inventory says so.
        Some("online" | "idle" | "busy" | "away") => {}
        Some(_) => return Err(Problem::validation("status is online or offline")),
    }
    Ok(ok(StatusCode::OK, public::agent(&app, &agent, None)))
}

/// Tells the engine what an agent's goodbye means for the fleet.
async fn ended(app: &App, agent: &Agent) -> Result<(), Problem> {
    let link = |node: &NodeId| {
        let link = app.fleet.links.of(node.as_str());
        link.map_or(LinkId(0), |link| link.id)
    };
    if let Some(node) = &agent.node {
        let node = NodeId::trusted(node.as_str());
        let worker = WorkerId::trusted(agent.id.as_str());
        let exit = ExitReport {
            at: Some(app.clock.now()),
            reason: Some(NOT_REPORTED.into()),
            ..ExitReport::default()
        };
        let report = |waiter| FleetEvent::WorkerExited {
            link: link(&node),
            node,
            worker,
            restarts: 0,
            exit: Box::new(exit),
            next_start_at: None,
            waiter: Some(waiter),
        };
        fleet::wish(app, report).await?;
        return Ok(());
    }
    // The broker itself is an agent of its node's name.
    if agent.kind != WORKER
        && let Ok(view) = ask::node(app, &agent.name).await
        && *view.row.principal == *agent.principal
        && let Some(link) = view.link
    {
        app.driver
            .tell(muster_engine::Event::Fleet(Box::new(FleetEvent::Goodbye {
                node: view.row.id,
                link,
                reason: "its broker set itself offline".into(),
                workers_stay: false,
            })));
    }
    Ok(())
}

/// Delete an agent
///
/// Its record and its token. A worker that still runs is adopted again with its node's next inventory.
#[utoipa::path(delete, path = "/v1/agents/{name}", tag = "relay", params(("name" = String, Path, description = "Its name.")),
    responses((status = 200, description = "It is deleted."), (status = 404, description = "`agent_not_found`.")))]
async fn delete(State(app): State<App>, caller: Caller, PathText(name): PathText) -> Answer {
    let agent = find(&app, &name)?;
    must_own(&caller, &agent)?;
    identity::leave(&app, &agent.id, Leaving::Deleted).await?;
    Ok(ok(
        StatusCode::OK,
        json!({"name": agent.name, "deleted": true}),
    ))
}

/// Which agent is taken back.
#[derive(Deserialize)]
struct Release {
    name: String,
    #[serde(default)]
    delete_agent: bool,
    expected_token_hash: Option<String>,
}

/// Release an agent
///
/// With `expected_token_hash` a broker takes back the identity of a process that it has stopped.
/// Without, it is a wish to stop the process, for which `DELETE /api/v1/fleet/workers/{id}` is there.
#[utoipa::path(post, path = "/v1/agents/release", tag = "relay",
    responses((status = 200, description = "It is taken back, or was before."), (status = 403, description = "It does not name the token of the agent.")))]
async fn release(State(app): State<App>, caller: Caller, RawBody(bytes): RawBody) -> Answer {
    let wanted: Release = body::json(&bytes, "{name, delete_agent?, expected_token_hash?}")?;
    let agent = app.relay.look(|tables| tables.agent(&wanted.name).cloned());
    let invocation = muster_wire::mint("inv");
    if let Some(agent) = agent {
        must_own(&caller, &agent)?;
        match &wanted.expected_token_hash {
            Some(hash) if hash.eq_ignore_ascii_case(&agent.token_sha256) => {
                let leaving = match wanted.delete_agent {
                    true => Leaving::Deleted,
                    false => Leaving::Offline,
                };
                identity::leave(&app, &agent.id, leaving).await?;
            }
            // The name is another life's by now: what was to be taken back is gone already.
            Some(_) => {}
            None if caller.may(Need::Operate) => {
                return super::actions::release(&app, caller, agent).await;
            }
            None => {
                return Err(Problem::new(
                    Category::PermissionDenied,
                    "a workspace key stops no process: use a key with the scope operate",
                ));
            }
        }
    }
    let done = json!({
        "invocation_id": invocation,
        "action_name": "release",
        "name": wanted.name,
        "status": "completed",
        "created_at": app.clock.now().rfc3339(),
    });
    Ok(ok(StatusCode::OK, done))
}

/// Which agent the token is
#[utoipa::path(get, path = "/v1/agent", tag = "relay",
    responses((status = 200, description = "The agent whose token was shown."), (status = 403, description = "It is no agent's token.")))]
async fn who(State(app): State<App>, caller: Caller) -> Answer {
    let agent = me(&app, &caller)?;
    Ok(ok(StatusCode::OK, public::agent(&app, &agent, None)))
}

/// The agent whose token the caller shows.
///
/// # Errors
/// 403 when it is another kind of key; 404 when the agent is gone.
pub(super) fn me(app: &App, caller: &Caller) -> Result<Agent, Problem> {
    let Some(id) = caller.grants.relay_agent() else {
        return Err(Problem::new(
            Category::PermissionDenied,
            "this needs the token of an agent (at_live_…)",
        ));
    };
    let agent = app.relay.look(|tables| tables.by_id(id).cloned());
    agent.ok_or_else(not_found)
}

/// An agent by its name.
///
/// # Errors
/// 404 when there is none.
pub(super) fn find(app: &App, name: &str) -> Result<Agent, Problem> {
    let agent = app.relay.look(|tables| tables.agent(name).cloned());
    agent.ok_or_else(not_found)
}

/// Whether the caller's key stands for whoever registered the agent.
///
/// # Errors
/// 403 when it does not.
pub(super) fn must_own(caller: &Caller, agent: &Agent) -> Result<(), Problem> {
    if *caller.principal == *agent.principal || caller.may(Need::Admin) {
        return Ok(());
    }
    Err(Problem::new(
        Category::PermissionDenied,
        "this agent was registered with the key of somebody else",
    ))
}

fn kind(kind: Option<String>) -> Result<String, Problem> {
    match kind.as_deref() {
        None => Ok(WORKER.into()),
        Some("agent" | "human" | "system") => Ok(kind.unwrap_or_default()),
        Some(_) => Err(Problem::validation("type is agent, human or system")),
    }
}

fn metadata(metadata: Value) -> Result<Value, Problem> {
    if !metadata.is_null() && !metadata.is_object() {
        return Err(Problem::validation("metadata is an object"));
    }
    bounded(&metadata)?;
    Ok(metadata)
}

fn bounded(metadata: &Value) -> Result<(), Problem> {
    if metadata.to_string().len() > METADATA_MAX {
        return Err(refuse(
            Category::TooLarge,
            "too_large",
            format!("metadata has at most {METADATA_MAX} bytes"),
        ));
    }
    Ok(())
}

fn merge(kept: &mut Value, new: Value) {
    match (kept, new) {
        (Value::Object(kept), Value::Object(new)) => kept.extend(new),
        (kept, new) => *kept = new,
    }
}
