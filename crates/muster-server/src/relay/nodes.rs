//! `/v1/nodes`: a broker enrols its node or rotates its token, and reads the roster of brokers.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use muster_engine::fleet::event::Enrolment;
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply};
use muster_wire::fleet::NodeKind;
use muster_wire::{Category, NodeId, mint};
use serde::Deserialize;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::envelope::{ok, refuse};
use super::{ask, name, public};
use crate::api::body::{self, PathText, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::fleet;
use crate::api::keys::audit;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::auth::{Need, Subject};
use crate::fleet::session::plain;

/// Most labels of a node, and their longest.
const TAGS_MAX: usize = 64;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, enrol))
        .routes(routes!(show))
}

/// What a broker says of its node. What it says beside is not read.
#[derive(Deserialize)]
struct New {
    node_id: Option<String>,
    name: String,
    role: Option<String>,
    max_agents: Option<u32>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Enrol a node of a broker, or rotate its token
///
/// With a workspace key, which may do so for the nodes that it enrolled. The token is shown this once.
#[utoipa::path(post, path = "/v1/nodes", tag = "relay",
    responses((status = 201, description = "The node with its token."), (status = 409, description = "`node_name_conflict`.")))]
async fn enrol(State(app): State<App>, caller: Caller, RawBody(bytes): RawBody) -> Answer {
    let new: New = body::json(&bytes, "{node_id?, name, tags?, max_agents?}")?;
    name(&new.name)?;
    if new.role.as_deref().is_some_and(|role| role != "broker") {
        return Err(Problem::not_supported_of_relay(
            "a node of another role than broker",
        ));
    }
    let id = match &new.node_id {
        Some(id) => NodeId::parse(id).map_err(|e| Problem::validation(format!("node_id: {e}")))?,
        None => NodeId::trusted(mint("node")),
    };
    must_own(&app, &caller, &id).await?;
    let enrolment = |waiter| {
        FleetEvent::Enrolled(Box::new(Enrolment {
            waiter,
            id: id.clone(),
            name: new.name.as_str().into(),
            kind: NodeKind::Relay,
            labels: labels(new.tags.as_deref()),
            max_workers: new.max_agents.unwrap_or(0),
            principal: caller.principal.clone(),
        }))
    };
    let row = match fleet::wish(&app, enrolment).await? {
        FleetReply::Enrolled(row) => row,
        FleetReply::LinkRefused { code, message } => {
            return Err(refuse(Category::Conflict, code, message));
        }
        FleetReply::Refused(refusal) => {
            return Err(Problem::new(refusal.category, refusal.message));
        }
        FleetReply::Conflict(message) => {
            return Err(refuse(Category::Conflict, "node_name_conflict", message));
        }
        _ => {
            return Err(Problem::internal(
                &"an enrolment was answered with something else",
            ));
        }
    };
    let (work, principal, now) = (app.clone(), caller.principal.to_string(), app.clock.now());
    let under = caller.key_id.clone();
    let token = app
        .blocking(move |stores| {
            let whose = Subject::RelayNode(id.clone());
            let (annex, under) = (&*stores.annex, under.as_deref());
            let (token, key) = work
                .auth
                .issue_under(annex, &whose, &principal, under, now)?;
            let detail = format!("{}: a token for the node of a Relay broker", key.prefix);
            audit(stores, now, &principal, "node.token", id.as_str(), detail)?;
            Ok::<_, Problem>(token)
        })
        .await?;
    Ok(ok(
        StatusCode::CREATED,
        public::enrolled(&row, token.expose()),
    ))
}

/// Refuses a node that somebody else enrolled, or that is no broker's.
async fn must_own(app: &App, caller: &Caller, id: &NodeId) -> Result<(), Problem> {
    let question = FleetQuestion::Node(id.as_str().into());
    let FleetReply::Node(view) = fleet::ask(app, question).await? else {
        return Ok(());
    };
    // A node may be called by another's id: names are looked up by the engine too.
    if view.row.id != *id {
        return Ok(());
    }
    let own = view.row.principal == caller.principal || caller.may(Need::Admin);
    if view.row.kind == NodeKind::Relay && own {
        return Ok(());
    }
    Err(Problem::new(
        Category::PermissionDenied,
        "this node_id is a node that was enrolled with the key of somebody else",
    ))
}

fn labels(tags: Option<&[String]>) -> Vec<Arc<str>> {
    let tags = tags.unwrap_or_default().iter();
    tags.map(|tag| plain(tag, 128))
        .filter(|tag| !tag.is_empty())
        .take(TAGS_MAX)
        .collect()
}

/// Which nodes.
#[derive(Deserialize)]
struct Filter {
    name: Option<String>,
    capability: Option<String>,
}

/// List the nodes of brokers
///
/// Nodes of other kinds are in `GET /api/v1/fleet/nodes`, and these are there too.
#[utoipa::path(get, path = "/v1/nodes", tag = "relay",
    responses((status = 200, description = "The nodes by name.")))]
async fn list(State(app): State<App>, Query(filter): Query<Filter>) -> Answer {
    let views = ask::nodes(&app).await?;
    let named = |name: &str| filter.name.as_deref().is_none_or(|wanted| wanted == name);
    let can = |names: &[Arc<str>]| {
        let wanted = filter.capability.as_deref();
        wanted.is_none_or(|wanted| names.iter().any(|name| **name == *wanted))
    };
    let shown: Vec<Value> = views
        .iter()
        .filter(|view| named(&view.row.name) && can(&view.row.capabilities))
        .map(public::node)
        .collect();
    Ok(ok(StatusCode::OK, shown))
}

/// Show a node of a broker
#[utoipa::path(get, path = "/v1/nodes/{name}", tag = "relay", params(("name" = String, Path, description = "Its name or id.")),
    responses((status = 200, description = "The node."), (status = 404, description = "`node_not_found`.")))]
async fn show(State(app): State<App>, PathText(name): PathText) -> Answer {
    let view = ask::node(&app, &name).await?;
    Ok(ok(StatusCode::OK, public::node(&view)))
}
