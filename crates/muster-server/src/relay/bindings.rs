//! `/v1/nodes/{name}/agents`: which agents a node runs. A broker binds an agent that it starts by
//! itself; those that it was told to start are bound by their frames.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use http::StatusCode;
use muster_engine::fleet::effect::NodeView;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{find, must_own};
use super::envelope::ok;
use super::record::{Agent, Presence};
use super::{ask, identity};
use crate::api::body::{self, PathText, RawBody};
use crate::api::caller::Caller;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::auth::Need;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, bind))
        .routes(routes!(unbind))
}

/// List the agents of a node
#[utoipa::path(get, path = "/v1/nodes/{name}/agents", tag = "relay", params(("name" = String, Path, description = "The node's name or id.")),
    responses((status = 200, description = "Its agents by name."), (status = 404, description = "`node_not_found`.")))]
async fn list(State(app): State<App>, PathText(name): PathText) -> Answer {
    let view = ask::node(&app, &name).await?;
    let shown: Vec<Value> = app.relay.look(|tables| {
        let here = |agent: &&Agent| {
            agent.node.as_deref() == Some(view.row.id.as_str())
                && agent.presence == Presence::Online
        };
        let agents = tables.agents().filter(here);
        agents.map(|agent| binding(&view, agent)).collect()
    });
    Ok(ok(StatusCode::OK, shown))
}

/// Which agent.
#[derive(Deserialize)]
struct New {
    agent_name: String,
}

/// Bind an agent to a node
///
/// By the key that enrolled the node and registered the agent.
#[utoipa::path(post, path = "/v1/nodes/{name}/agents", tag = "relay", params(("name" = String, Path, description = "The node's name or id.")),
    responses((status = 201, description = "The binding."), (status = 404, description = "`node_not_found` or `agent_not_found`.")))]
async fn bind(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    RawBody(bytes): RawBody,
) -> Answer {
    let new: New = body::json(&bytes, "{agent_name}")?;
    let view = ask::node(&app, &name).await?;
    must_own_node(&caller, &view)?;
    let agent = find(&app, &new.agent_name)?;
    must_own(&caller, &agent)?;
    let node = view.row.id.to_string();
    let agent = identity::edit(&app, agent.id, move |_, agent| {
        agent.node = Some(node);
        Ok(())
    })
    .await?;
    Ok(ok(StatusCode::CREATED, binding(&view, &agent)))
}

/// Take the binding of an agent back
#[utoipa::path(delete, path = "/v1/nodes/{name}/agents/{agent}", tag = "relay",
    params(("name" = String, Path, description = "The node's name or id."), ("agent" = String, Path, description = "The agent's name.")),
    responses((status = 200, description = "It is bound to no node."), (status = 404, description = "`node_not_found` or `agent_not_found`.")))]
async fn unbind(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Answer {
    // What cannot be decoded is empty, and found nowhere.
    let (name, agent) = path.map(|path| path.0).unwrap_or_default();
    let view = ask::node(&app, &name).await?;
    must_own_node(&caller, &view)?;
    let agent = find(&app, &agent)?;
    must_own(&caller, &agent)?;
    if agent.node.as_deref() != Some(view.row.id.as_str()) {
        return Err(identity::not_found());
    }
    let agent = identity::edit(&app, agent.id, |_, agent| {
        agent.node = None;
        Ok(())
    })
    .await?;
    Ok(ok(
        StatusCode::OK,
        json!({"agent_name": agent.name, "unbound": true}),
    ))
}

fn must_own_node(caller: &Caller, view: &NodeView) -> Result<(), Problem> {
    if view.row.principal == caller.principal || caller.may(Need::Admin) {
        return Ok(());
    }
    Err(Problem::new(
        muster_wire::Category::PermissionDenied,
        "this node was enrolled with the key of somebody else",
    ))
}

fn binding(view: &NodeView, agent: &Agent) -> Value {
    json!({
        "id": format!("{}:{}", view.row.id, agent.id),
        "agent_id": agent.id,
        "agent_name": agent.name,
        "node_id": view.row.id.as_str(),
        "node_name": view.row.name,
        "node_kind": "ws",
        "node_role": "broker",
        "status": "active",
        "session_ref": null,
        "priority": 0,
        "created_at": agent.created_at.rfc3339(),
        "updated_at": agent.changed_at.rfc3339(),
    })
}
