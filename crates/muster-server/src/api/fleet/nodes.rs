//! Nodes: the list, one with its facts, its history, and what operators want of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use muster_engine::event::Waiter;
use muster_engine::fleet::effect::{NodeView, NodesAsk};
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply};
use muster_wire::NodeId;
use muster_wire::api::fleet::{
    FleetHistory, FleetNodeWhole, FleetNodes, NodeActed, NodeDeleted, NodeDeletion,
};
use muster_wire::fleet::{NodeState, NodeWish};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::consequence::{self, Act, Dry};
use super::history;
use super::{ask, conflict, no_node, optional, reason, show, unexpected, wish_on_record};
use crate::api::body::{PathText, Query, RawBody, json as read};
use crate::api::caller::Caller;
use crate::api::filters::words;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;
use crate::auth::Subject;

/// Lines of a page of history, at most.
const HISTORY_MAX: usize = 500;
/// Nodes of one answer, at most.
const LIST_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one, delete))
        .routes(routes!(past))
        .routes(routes!(drain))
        .routes(routes!(cordon))
        .routes(routes!(activate))
        .routes(routes!(retire))
        .routes(routes!(pin))
        .routes(routes!(unpin))
        .routes(routes!(lost))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Filter {
    state: Option<String>,
    label: Option<String>,
    kind: Option<String>,
    retired: Option<bool>,
    q: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
    sort: Option<String>,
}

/// Nodes by name
///
/// Without those that are retired, unless `retired=true`.
#[utoipa::path(get, path = "/api/v1/fleet/nodes", tag = "fleet",
    params(("state" = Option<String>, Query, description = "Words, separated by commas"),
           ("label" = Option<String>, Query), ("kind" = Option<String>, Query, description = "muster or relay"),
           ("retired" = Option<bool>, Query),
           ("q" = Option<String>, Query, description = "A part of a name or a host, or the beginning or end of an id"),
           ("limit" = Option<usize>, Query, description = "At most 1,000; all when absent"),
           ("cursor" = Option<String>, Query),
           ("sort" = Option<String>, Query, description = "name, or need: those that need somebody first")),
    responses((status = 200, description = "Nodes with their verdicts", body = FleetNodes)))]
async fn list(
    State(app): State<App>,
    Query(filter): Query<Filter>,
) -> Result<Json<FleetNodes>, Problem> {
    let stamp = Stamp::now(&app);
    let by_need = match filter.sort.as_deref() {
        None | Some("" | "name") => false,
        Some("need") => true,
        Some(_) => return Err(Problem::validation("sort: name or need")),
    };
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let limit = filter.limit.unwrap_or(LIST_MAX).clamp(1, LIST_MAX);
    let asked = NodesAsk {
        states: words("state", filter.state.as_deref())?,
        label: text(filter.label).map(Arc::from),
        kind: words("kind", filter.kind.as_deref())?.pop(),
        retired: filter.retired == Some(true),
        part: text(filter.q).map(|part| part.to_lowercase()),
        by_need,
        after: text(filter.cursor)
            .map(|cursor| after(&cursor))
            .transpose()?,
        limit,
    };
    let page = match ask(&app, FleetQuestion::NodesPage(Box::new(asked))).await? {
        FleetReply::NodesPage(page) => page,
        _ => return Err(unexpected("a question about nodes")),
    };
    let last = page.nodes.last().filter(|_| page.more);
    Ok(Json(FleetNodes {
        as_of: stamp.as_of,
        position: stamp.position,
        count: page.nodes.len() as u64,
        total: page.total,
        states: show::by_word(page.states.iter().map(|(state, n)| (state.word(), *n))),
        next_cursor: last.map(|(need, view)| format!("{need}:{}", view.row.name)),
        nodes: page
            .nodes
            .iter()
            .map(|(_, view)| show::node(view))
            .collect(),
    }))
}

/// Behind which node a page begins.
fn after(cursor: &str) -> Result<(u8, Arc<str>), Problem> {
    let read = cursor.split_once(':');
    let read = read.and_then(|(need, name)| Some((need.parse().ok()?, Arc::from(name))));
    read.ok_or_else(|| {
        Problem::validation("cursor: not one that this plane gave; start without it")
    })
}

pub(crate) async fn find(app: &App, node: &str) -> Result<NodeView, Problem> {
    match ask(app, FleetQuestion::Node(node.into())).await? {
        FleetReply::Node(view) => Ok(*view),
        FleetReply::UnknownNode => Err(no_node(node)),
        FleetReply::Conflict(message) => Err(conflict(message)),
        _ => Err(unexpected("a question about a node")),
    }
}

/// One node
///
/// With the facts behind its state. What nobody can know is null, with a reason and what was
/// last known.
#[utoipa::path(get, path = "/api/v1/fleet/nodes/{node}", tag = "fleet",
    params(("node" = String, Path, description = "Name or id")),
    responses((status = 200, description = "The node", body = FleetNodeWhole),
              (status = 404, description = "No such node")))]
async fn one(
    State(app): State<App>,
    PathText(node): PathText,
) -> Result<Json<FleetNodeWhole>, Problem> {
    let stamp = Stamp::now(&app);
    Ok(Json(show::node_whole(stamp, &find(&app, &node).await?)))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Before {
    /// Only lines with a smaller number.
    pub(super) before: Option<u64>,
    pub(super) limit: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Past {
    before: Option<u64>,
    limit: Option<usize>,
    from: Option<String>,
    to: Option<String>,
    buckets: Option<usize>,
}

/// The history of a node, newest first
#[utoipa::path(get, path = "/api/v1/fleet/nodes/{node}/history", tag = "fleet",
    params(("node" = String, Path, description = "Name or id"),
           ("before" = Option<u64>, Query, description = "The next_before of the page before"),
           ("limit" = Option<usize>, Query),
           ("buckets" = Option<usize>, Query, description = "The state in so many stretches, too"),
           ("from" = Option<String>, Query, description = "Of the stretches; a day ago when absent"),
           ("to" = Option<String>, Query, description = "Of the stretches; now when absent")),
    responses((status = 200, description = "A page", body = FleetHistory),
              (status = 404, description = "No such node")))]
async fn past(
    State(app): State<App>,
    PathText(node): PathText,
    Query(asked): Query<Past>,
) -> Result<Json<FleetHistory>, Problem> {
    let view = find(&app, &node).await?;
    let before = Before {
        before: asked.before,
        limit: asked.limit,
    };
    let Json(mut page) = page_of_history(&app, Some(view.row.id.clone()), None, before).await?;
    if let Some(buckets) = asked.buckets {
        let span = history::span(&app, asked.from.as_deref(), asked.to.as_deref(), buckets)?;
        page.buckets = Some(history::of_node(&app, &view, span).await?);
    }
    Ok(Json(page))
}

/// One page of the history of a node or of a worker.
pub(super) async fn page_of_history(
    app: &App,
    node: Option<NodeId>,
    worker: Option<muster_wire::WorkerId>,
    asked: Before,
) -> Result<Json<FleetHistory>, Problem> {
    let limit = asked.limit.unwrap_or(50).clamp(1, HISTORY_MAX);
    let lines = app
        .blocking(move |stores| {
            stores
                .decisions
                .fleet_history(node.as_ref(), worker.as_ref(), asked.before, limit)
        })
        .await?;
    let next = lines.last().filter(|_| lines.len() == limit);
    let next = next.map(|line| line.seq);
    Ok(Json(FleetHistory {
        count: lines.len() as u64,
        history: lines.iter().map(show::history).collect(),
        buckets: None,
        next_before: next,
    }))
}

/// Why.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Because {
    /// Kept with the wish and in the history.
    #[serde(default)]
    reason: Option<String>,
}

macro_rules! wishes {
    ($($name:ident, $path:literal, $wish:expr, $doc:literal, $more:literal;)*) => {$(
        #[doc = $doc]
        #[doc = ""]
        #[doc = $more]
        #[utoipa::path(post, path = $path, tag = "fleet",
            params(("node" = String, Path, description = "Name or id"), Dry),
            request_body(content = Because, description = "May be absent."),
            responses((status = 200, description = "The node as it is now; with dry_run the consequence", body = NodeActed),
                      (status = 404, description = "No such node"),
                      (status = 409, description = "Its state does not allow it")))]
        async fn $name(
            State(app): State<App>,
            caller: Caller,
            PathText(node): PathText,
            Query(dry): Query<Dry>,
            RawBody(bytes): RawBody,
        ) -> Result<Json<NodeActed>, Problem> {
            if dry.dry_run {
                let would = consequence::of(&app, &node, Act::Wish($wish)).await?;
                return Ok(Json(NodeActed::Would(would)));
            }
            want(&app, &caller, &node, $wish, &bytes).await
        }
    )*};
}

wishes! {
    drain, "/api/v1/fleet/nodes/{node}/drain", NodeWish::Draining,
        "Drain a node", "It takes no new work, and its workers are released one after another.";
    cordon, "/api/v1/fleet/nodes/{node}/cordon", NodeWish::Cordoned,
        "Cordon a node", "It takes no new work; what runs goes on.";
    activate, "/api/v1/fleet/nodes/{node}/activate", NodeWish::Active,
        "Let a node take work", "Ends a cordon or a drain.";
    retire, "/api/v1/fleet/nodes/{node}/retire", NodeWish::Retired,
        "Retire a node", "It is history: its link is closed and it is left out of lists.";
}

async fn want(
    app: &App,
    caller: &Caller,
    node: &str,
    wanted: NodeWish,
    body: &[u8],
) -> Result<Json<NodeActed>, Problem> {
    let because: Because = optional(body, "{reason?}")?;
    let reason = reason(because.reason)?;
    let (by, name) = (caller.principal.clone(), Arc::from(node));
    let why = reason.clone();
    let make = |waiter| FleetEvent::NodeWished {
        waiter,
        node: name,
        wish: wanted,
        by,
        reason,
    };
    act(app, caller, node, wanted_word(wanted), why, make).await
}

fn wanted_word(wish: NodeWish) -> &'static str {
    match wish {
        NodeWish::Active => "node.activated",
        NodeWish::Cordoned => "node.cordoned",
        NodeWish::Draining => "node.drained",
        NodeWish::Retired => "node.retired",
    }
}

/// Does something to a node, and shows it as it then is.
async fn act(
    app: &App,
    caller: &Caller,
    node: &str,
    action: &'static str,
    reason: Option<Arc<str>>,
    make: impl FnOnce(Waiter) -> FleetEvent,
) -> Result<Json<NodeActed>, Problem> {
    let detail = reason.as_deref().unwrap_or_default().to_owned();
    let about = move |reply: Option<&FleetReply>| match reply {
        Some(FleetReply::Node(view)) => Some((view.row.id.to_string(), detail.clone())),
        _ => None,
    };
    let view = match wish_on_record(app, caller, action, about, make).await? {
        FleetReply::Node(view) => view,
        FleetReply::UnknownNode => return Err(no_node(node)),
        FleetReply::Conflict(message) => return Err(conflict(message)),
        _ => return Err(unexpected("a wish about a node")),
    };
    let shown = show::node_whole(Stamp::now(app), &view);
    Ok(Json(NodeActed::Did(Box::new(shown))))
}

/// A state that a node is to count as.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Pinned {
    /// `online`, `suspect`, `unreachable` or `lost`.
    state: String,
    /// Kept with the pin and in the history.
    #[serde(default)]
    reason: Option<String>,
}

/// Pin a node's state
///
/// It counts as in this state whatever its facts say, until the pin is taken out.
#[utoipa::path(post, path = "/api/v1/fleet/nodes/{node}/pin", tag = "fleet",
    params(("node" = String, Path, description = "Name or id")), request_body = Pinned,
    responses((status = 200, description = "The node as it is now", body = NodeActed),
              (status = 404, description = "No such node")))]
async fn pin(
    State(app): State<App>,
    caller: Caller,
    PathText(node): PathText,
    RawBody(bytes): RawBody,
) -> Result<Json<NodeActed>, Problem> {
    let pinned: Pinned = read(&bytes, "{state, reason?}")?;
    let state = NodeState::from_word(&pinned.state)
        .filter(|state| *state != NodeState::Connecting)
        .ok_or_else(|| {
            Problem::validation("state: one of online, suspect, unreachable and lost")
        })?;
    set_pin(&app, &caller, &node, Some(state), pinned.reason).await
}

/// Take a pin out
#[utoipa::path(post, path = "/api/v1/fleet/nodes/{node}/unpin", tag = "fleet",
    params(("node" = String, Path, description = "Name or id")),
    request_body(content = Because, description = "May be absent."),
    responses((status = 200, description = "The node as it is now", body = NodeActed),
              (status = 404, description = "No such node")))]
async fn unpin(
    State(app): State<App>,
    caller: Caller,
    PathText(node): PathText,
    RawBody(bytes): RawBody,
) -> Result<Json<NodeActed>, Problem> {
    let because: Because = optional(&bytes, "{reason?}")?;
    set_pin(&app, &caller, &node, None, because.reason).await
}

async fn set_pin(
    app: &App,
    caller: &Caller,
    node: &str,
    state: Option<NodeState>,
    why: Option<String>,
) -> Result<Json<NodeActed>, Problem> {
    let why = reason(why)?;
    let (by, name, reason) = (caller.principal.clone(), Arc::from(node), why.clone());
    let make = |waiter| FleetEvent::NodePinned {
        waiter,
        node: name,
        state,
        by,
        reason,
    };
    let action = if state.is_some() {
        "node.pinned"
    } else {
        "node.unpinned"
    };
    act(app, caller, node, action, why, make).await
}

/// Declare a node lost
///
/// It will not come back: its workers are lost, and nothing places them again by itself.
#[utoipa::path(post, path = "/api/v1/fleet/nodes/{node}/lost", tag = "fleet",
    params(("node" = String, Path, description = "Name or id"), Dry),
    request_body(content = Because, description = "May be absent."),
    responses((status = 200, description = "The node as it is now; with dry_run the consequence", body = NodeActed),
              (status = 404, description = "No such node"),
              (status = 409, description = "It is online")))]
async fn lost(
    State(app): State<App>,
    caller: Caller,
    PathText(node): PathText,
    Query(dry): Query<Dry>,
    RawBody(bytes): RawBody,
) -> Result<Json<NodeActed>, Problem> {
    if dry.dry_run {
        let would = consequence::of(&app, &node, Act::Lost).await?;
        return Ok(Json(NodeActed::Would(would)));
    }
    let because: Because = optional(&bytes, "{reason?}")?;
    let why = reason(because.reason)?;
    let (by, name, reason) = (caller.principal.clone(), Arc::from(&*node), why.clone());
    let make = |waiter| FleetEvent::NodeDeclaredLost {
        waiter,
        node: name,
        by,
        reason,
    };
    act(&app, &caller, &node, "node.declared_lost", why, make).await
}

/// Delete a node
///
/// With its history. Only one without living workers.
#[utoipa::path(delete, path = "/api/v1/fleet/nodes/{node}", tag = "fleet",
    params(("node" = String, Path, description = "Name or id"), Dry),
    responses((status = 200, description = "It is gone; with dry_run the consequence", body = NodeDeletion),
              (status = 404, description = "No such node"),
              (status = 409, description = "It has living workers")))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathText(node): PathText,
    Query(dry): Query<Dry>,
) -> Result<Json<NodeDeletion>, Problem> {
    if dry.dry_run {
        let would = consequence::of(&app, &node, Act::Delete).await?;
        return Ok(Json(NodeDeletion::Would(would)));
    }
    let id = find(&app, &node).await?.row.id;
    let (by, name) = (caller.principal.clone(), Arc::from(id.as_str()));
    let make = |waiter| FleetEvent::NodeDeleted {
        waiter,
        node: name,
        by,
    };
    let object = id.clone();
    let about = move |reply: Option<&FleetReply>| match reply {
        Some(FleetReply::Taken | FleetReply::Node(_)) => Some((object.to_string(), String::new())),
        _ => None,
    };
    match wish_on_record(&app, &caller, "node.deleted", about, make).await? {
        FleetReply::Taken | FleetReply::Node(_) => {}
        FleetReply::UnknownNode => return Err(no_node(&node)),
        FleetReply::Conflict(message) => return Err(conflict(message)),
        _ => return Err(unexpected("the removal of a node")),
    }
    let (work, whose) = (app.clone(), Subject::Node(id.clone()));
    app.blocking(move |stores| work.auth.withdraw(&*stores.annex, &whose))
        .await?;
    Ok(Json(NodeDeletion::Did(NodeDeleted { deleted: id })))
}
