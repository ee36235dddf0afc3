//! Starting and stopping workers with Relay's words: the same placement and release as under
//! `/api/v1/fleet`, for the same keys. An invocation is a worker: its id is the worker's, and what
//! became of it is what became of the worker, so nothing else is kept.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use muster_engine::fleet::effect::WorkerView;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::Category;
use muster_wire::fleet::{ExitHow, WorkerState};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::envelope::{ok, refuse};
use super::record::Agent;
use crate::api::body::{self, RawBody};
use crate::api::caller::Caller;
use crate::api::fleet;
use crate::api::problem::{Answer, Problem};
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(spawn))
        .routes(routes!(invoke))
        .routes(routes!(invoke_at))
        .routes(routes!(invocation))
}

/// Start a worker
///
/// `{name, harnessConfig: {command, args?, cwd?, env?}, node?}`, or `{name, cli}`.
#[utoipa::path(post, path = "/v1/agents/spawn", tag = "relay",
    responses((status = 201, description = "The invocation: it is completed, or failed with the reason."), (status = 503, description = "`node_unreachable` or `fleet_capacity`.")))]
async fn spawn(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    RawBody(bytes): RawBody,
) -> Answer {
    let input: Map<String, Value> = body::json(&bytes, "{name, cli | harnessConfig, node?}")?;
    place(app, caller, headers, input, None).await
}

/// What an action is given.
#[derive(Deserialize)]
struct Invoke {
    #[serde(default)]
    input: Map<String, Value>,
}

const INVOKE: &str = "{input: {…}}";

/// Invoke an action
///
/// `spawn` or `release`.
#[utoipa::path(post, path = "/v1/actions/{name}/invoke", tag = "relay", params(("name" = String, Path, description = "`spawn` or `release`.")),
    responses((status = 201, description = "The invocation."), (status = 501, description = "Another action.")))]
async fn invoke(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
    RawBody(bytes): RawBody,
) -> Answer {
    let asked: Invoke = body::json(&bytes, INVOKE)?;
    let action = path.map(|path| path.0).unwrap_or_default();
    run(app, caller, headers, &action, asked.input, None).await
}

/// Invoke an action at a node
///
/// `spawn` or `release`.
#[utoipa::path(post, path = "/v1/nodes/{node}/actions/{name}/invoke", tag = "relay",
    params(("node" = String, Path, description = "The node's name or id."), ("name" = String, Path, description = "`spawn` or `release`.")),
    responses((status = 201, description = "The invocation."), (status = 501, description = "Another action.")))]
async fn invoke_at(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    path: Result<Path<(String, String)>, PathRejection>,
    RawBody(bytes): RawBody,
) -> Answer {
    let asked: Invoke = body::json(&bytes, INVOKE)?;
    let (node, action) = path.map(|path| path.0).unwrap_or_default();
    run(app, caller, headers, &action, asked.input, Some(node)).await
}

async fn run(
    app: App,
    caller: Caller,
    headers: HeaderMap,
    action: &str,
    mut input: Map<String, Value>,
    node: Option<String>,
) -> Answer {
    match action.split_once(':') {
        None if action == "spawn" => {}
        Some(("spawn", cli)) if !input.contains_key("cli") => {
            input.insert("cli".into(), cli.into());
        }
        Some(("spawn", _)) => {}
        None if action == "release" => {
            let name = text(&input, &["name", "agent_name", "agent"]).unwrap_or_default();
            let agent = super::agents::find(&app, &name)?;
            return release(&app, caller, agent).await;
        }
        _ => {
            return Err(Problem::not_supported_of_relay(
                "an action other than spawn and release",
            ));
        }
    }
    place(app, caller, headers, input, node).await
}

async fn place(
    app: App,
    caller: Caller,
    headers: HeaderMap,
    input: Map<String, Value>,
    node: Option<String>,
) -> Answer {
    let placement = placement(&input, node)?;
    let bytes = Bytes::from(placement.to_string());
    let placed = fleet::placement::place(
        State(app.clone()),
        caller,
        fleet::really(),
        headers,
        RawBody(bytes),
    );
    let body = placed.await?.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let placed: Value = serde_json::from_slice(&body).unwrap_or_default();
    let worker = placed["worker"]["id"].as_str().unwrap_or_default();
    Ok(ok(StatusCode::CREATED, shown(&view(&app, worker).await?)))
}

/// Relay's input as a placement of the plane.
fn placement(input: &Map<String, Value>, node: Option<String>) -> Result<Value, Problem> {
    let harness = input.get("harnessConfig").and_then(Value::as_object);
    let runtime = harness.and_then(|harness| harness.get("runtime")?.as_str());
    if runtime.is_some_and(|runtime| runtime != "pty") {
        let message = "harnessConfig.runtime: a worker has a terminal, so pty";
        return Err(refuse(Category::Validation, "validation", message));
    }
    let command = match harness {
        Some(harness) => text(harness, &["command"]),
        None => text(input, &["cli", "command", "provider"]),
    };
    let Some(command) = command else {
        let message = "spawn_missing_cli: name a command in harnessConfig.command or in cli";
        return Err(refuse(Category::Validation, "spawn_missing_cli", message));
    };
    let task = text(input, &["task", "initial_task", "prompt"]);
    if harness.is_none() && task.is_some_and(|task| !task.is_empty()) {
        return Err(Problem::validation(
            "task: nothing is typed into a program that the plane does not know; give it in harnessConfig.args, or type it over the worker's terminal",
        ));
    }
    let mut placement = json!({"command": command});
    for key in ["args", "cwd", "env"] {
        if let Some(value) = harness.and_then(|harness| harness.get(key)) {
            placement[key] = value.clone();
        }
    }
    if let Some(name) = text(input, &["name", "agent_name", "agent"]) {
        placement["name"] = name.into();
    }
    if let Some(node) = node.or_else(|| text(input, &["target_node", "node", "target"])) {
        placement["node"] = node.into();
    }
    Ok(placement)
}

/// The first of these keys that is a text.
fn text(of: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    keys.iter()
        .find_map(|key| of.get(*key)?.as_str())
        .map(str::to_owned)
}

/// Releases the worker that an agent is.
pub(super) async fn release(app: &App, caller: Caller, agent: Agent) -> Answer {
    let worker = body::PathText(agent.id.clone());
    let reason = RawBody(Bytes::from_static(
        br#"{"reason":"released over Relay's surface"}"#,
    ));
    fleet::release::release(State(app.clone()), caller, worker, fleet::really(), reason).await?;
    let view = view(app, &agent.id).await?;
    let done = view.row.ended.is_some();
    let data = json!({
        "invocation_id": view.row.id,
        "action_name": "release",
        "name": agent.name,
        "dispatched_node_id": view.row.node,
        "status": if done { "completed" } else { "pending" },
        "created_at": app.clock.now().rfc3339(),
    });
    Ok(ok(StatusCode::OK, data))
}

/// What became of an invocation
#[utoipa::path(get, path = "/v1/actions/{name}/invocations/{id}", tag = "relay",
    params(("name" = String, Path, description = "`spawn`."), ("id" = String, Path, description = "The invocation: the worker's id.")),
    responses((status = 200, description = "The invocation."), (status = 404, description = "`invocation_not_found`.")))]
async fn invocation(
    State(app): State<App>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Answer {
    let (_, id) = path.map(|path| path.0).unwrap_or_default();
    Ok(ok(StatusCode::OK, shown(&view(&app, &id).await?)))
}

async fn view(app: &App, worker: &str) -> Result<WorkerView, Problem> {
    match fleet::ask(app, FleetQuestion::Worker(worker.into())).await? {
        FleetReply::Worker(view) => Ok(*view),
        _ => Err(refuse(
            Category::NotFound,
            "invocation_not_found",
            "there is no invocation of that id, or its worker ended more than a day ago",
        )),
    }
}

fn shown(view: &WorkerView) -> Value {
    let row = &view.row;
    let failed = row
        .ended
        .is_some_and(|(_, how)| how == ExitHow::StartFailed);
    let status = match row.state {
        _ if failed => "failed",
        WorkerState::Queued => "pending",
        WorkerState::Starting => "dispatched",
        _ => "completed",
    };
    let completed = status == "completed";
    json!({
        "invocation_id": row.id,
        "action_name": "spawn",
        "handler_node_id": row.node,
        "dispatched_node_id": row.node,
        "caller_name": row.principal,
        "input": {"name": row.name, "command": row.command},
        "output": completed.then(|| json!({"name": row.name, "agent_id": row.id, "spawned": true, "ready": true})),
        "status": status,
        "error": failed.then(|| row.exit.as_ref().and_then(|exit| exit.reason.clone()).unwrap_or_else(|| view.evidence.clone())),
        "created_at": row.created_at.rfc3339(),
        "completed_at": completed.then(|| row.state_at.rfc3339()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(input: Value, node: Option<&str>) -> Result<Value, Problem> {
        placement(input.as_object().unwrap(), node.map(str::to_owned))
    }

    #[test]
    fn a_harness_and_a_bare_command_become_placements() {
        let harness = json!({"name": "a", "cli": "bash", "target_node": "n1", "harnessConfig":
            {"runtime": "pty", "command": "/bin/bash", "args": ["-c", "x"], "env": {"A": "b"}}});
        let wanted = json!({"name": "a", "command": "/bin/bash", "args": ["-c", "x"],
            "env": {"A": "b"}, "node": "n1"});
        assert_eq!(placed(harness.clone(), None).unwrap(), wanted);
        assert_eq!(placed(harness, Some("n2")).unwrap()["node"], "n2");
        let bare = placed(json!({"name": "a", "cli": "cat"}), None).unwrap();
        assert_eq!(bare, json!({"name": "a", "command": "cat"}));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_the_way_out() {
        for (input, word) in [
            (json!({"name": "a"}), "spawn_missing_cli"),
            (json!({"cli": "claude", "task": "write"}), "validation"),
            (
                json!({"harnessConfig": {"runtime": "headless", "command": "x"}}),
                "validation",
            ),
        ] {
            assert_eq!(placed(input, None).unwrap_err().body.error, word);
        }
    }
}
