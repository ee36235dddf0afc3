//! Workers: the list, one, its history. The engine knows the living, the store the past.

use axum::Json;
use axum::extract::State;
use muster_engine::fleet::effect::WorkerView;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_store::{Page, WorkerFilter};
use muster_wire::api::fleet::{FleetHistory, FleetWorker, FleetWorkerWhole, FleetWorkers};
use muster_wire::fleet::WorkerState;
use muster_wire::{NodeId, Timestamp, WorkerId};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::nodes::{self, Before, page_of_history};
use super::{ask, conflict, no_worker, short, show, unexpected};
use crate::api::body::{PathText, Query};
use crate::api::filters::words;
use crate::api::paging;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(history))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Filter {
    node: Option<String>,
    state: Option<String>,
    name: Option<String>,
    ended: Option<bool>,
    q: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Workers, newest first
///
/// Those that have not ended; with `ended=true`, or a state that is an end, those of the past too.
#[utoipa::path(get, path = "/api/v1/fleet/workers", tag = "fleet",
    params(("node" = Option<String>, Query, description = "Name or id"),
           ("state" = Option<String>, Query, description = "Words, separated by commas"),
           ("name" = Option<String>, Query), ("ended" = Option<bool>, Query),
           ("q" = Option<String>, Query, description = "Beginning or end of an id"),
           ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, description = "A page", body = FleetWorkers)))]
async fn list(
    State(app): State<App>,
    Query(asked): Query<Filter>,
) -> Result<Json<FleetWorkers>, Problem> {
    let stamp = Stamp::now(&app);
    let page = paging::page(asked.limit, asked.cursor.as_deref())?;
    let states: Vec<WorkerState> = words("state", asked.state.as_deref())?;
    let node = match asked.node.as_deref().filter(|node| !node.is_empty()) {
        Some(node) => Some(nodes::find(&app, node).await?.row.id),
        None => None,
    };
    let is_end = |state: &WorkerState| matches!(state, WorkerState::Exited | WorkerState::Lost);
    let wants = Wants {
        ended: asked.ended.unwrap_or_else(|| states.iter().any(is_end)),
        living: states.is_empty() || states.iter().any(|state| !is_end(state)),
        node,
        states,
        name: asked.name.filter(|name| !name.is_empty()),
        id_part: asked.q.filter(|q| !q.is_empty()),
    };
    let limit = page.limit;
    let mut rows = Vec::new();
    if wants.living {
        rows.extend(living(&app, &wants, &page).await?);
    }
    if wants.ended {
        rows.extend(ended(&app, &wants, page).await?);
    }
    rows.sort_by(|a, b| b.key.cmp(&a.key));
    rows.dedup_by(|a, b| a.key.1 == b.key.1);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more);
    let next = next.map(|row| paging::cursor(row.key.0, &row.key.1));
    Ok(Json(FleetWorkers {
        as_of: stamp.as_of,
        position: stamp.position,
        count: rows.len() as u64,
        workers: rows.into_iter().map(|row| row.shown).collect(),
        next_cursor: next,
    }))
}

struct Wants {
    living: bool,
    ended: bool,
    node: Option<NodeId>,
    states: Vec<WorkerState>,
    name: Option<String>,
    id_part: Option<String>,
}

/// A worker of a list with what it is sorted by.
struct Line {
    key: (Timestamp, String),
    shown: FleetWorker,
}

impl Wants {
    fn fits(&self, view: &WorkerView, page: &Page) -> bool {
        let id = view.row.id.as_str();
        view.row.ended.is_none()
            && (self.states.is_empty() || self.states.contains(&view.state))
            && self
                .name
                .as_deref()
                .is_none_or(|name| *view.row.name == *name)
            && self
                .id_part
                .as_deref()
                .is_none_or(|part| id.starts_with(part) || id.ends_with(part))
            && page
                .after
                .as_ref()
                .is_none_or(|(at, last)| (view.row.created_at, id) < (*at, last.as_str()))
    }
}

async fn living(app: &App, wants: &Wants, page: &Page) -> Result<Vec<Line>, Problem> {
    let question = FleetQuestion::Workers {
        node: wants.node.as_ref().map(|node| node.as_str().into()),
        ended: false,
    };
    let FleetReply::Workers(views) = ask(app, question).await? else {
        return Err(unexpected("a question about workers"));
    };
    let mut views: Vec<WorkerView> = views
        .into_iter()
        .filter(|view| wants.fits(view, page))
        .collect();
    views.sort_by(|a, b| (b.row.created_at, &b.row.id).cmp(&(a.row.created_at, &a.row.id)));
    // One more than the page: whether there is a next one.
    views.truncate(page.limit + 1);
    Ok(views
        .iter()
        .map(|view| Line {
            key: (view.row.created_at, view.row.id.to_string()),
            shown: show::worker(view),
        })
        .collect())
}

async fn ended(app: &App, wants: &Wants, page: Page) -> Result<Vec<Line>, Problem> {
    let states = wants.states.iter().copied();
    let filter = WorkerFilter {
        node: wants.node.clone(),
        states: states
            .filter(|state| *state != WorkerState::Unknown)
            .collect(),
        ended: Some(true),
        name: wants.name.clone(),
        id_part: wants.id_part.clone(),
    };
    let page = Page {
        limit: page.limit + 1,
        ..page
    };
    let rows = app
        .blocking(move |stores| stores.decisions.workers(&filter, &page))
        .await?;
    Ok(rows
        .iter()
        .map(|row| Line {
            key: (row.created_at, row.id.to_string()),
            shown: show::past(row),
        })
        .collect())
}

/// A worker, by its id, or by its name while only one living one has it.
pub(crate) enum Found {
    /// The engine holds it.
    Held(Box<WorkerView>),
    /// It is of the past.
    Past(Box<muster_engine::fleet::WorkerRow>),
}

impl Found {
    /// Its state, computed while the engine holds it.
    pub(crate) fn state(&self) -> muster_wire::fleet::WorkerState {
        match self {
            Found::Held(view) => view.state,
            Found::Past(row) => row.state,
        }
    }

    /// Since when it is in it.
    pub(crate) fn state_at(&self) -> muster_wire::Timestamp {
        match self {
            Found::Held(view) => view.state_at,
            Found::Past(row) => row.state_at,
        }
    }

    pub(crate) fn id(&self) -> &WorkerId {
        match self {
            Found::Held(view) => &view.row.id,
            Found::Past(row) => &row.id,
        }
    }

    pub(crate) fn row(&self) -> &muster_engine::fleet::WorkerRow {
        match self {
            Found::Held(view) => &view.row,
            Found::Past(row) => row,
        }
    }

    pub(crate) fn shown(&self) -> FleetWorker {
        match self {
            Found::Held(view) => show::worker(view),
            Found::Past(row) => show::past(row),
        }
    }
}

/// Several living workers have the name: the answer has their ids.
fn ambiguous(name: &str, ids: &[WorkerId]) -> Problem {
    let first: Vec<&str> = ids.iter().take(5).map(WorkerId::as_str).collect();
    let more = if ids.len() > 5 { ", …" } else { "" };
    let problem = conflict(format!(
        "{} living workers are called {:?}; say which by its id: {}{more}",
        ids.len(),
        short(name),
        first.join(", ")
    ));
    problem.details(json!({"workers": ids}))
}

pub(crate) async fn find(app: &App, worker: &str) -> Result<Found, Problem> {
    match ask(app, FleetQuestion::Worker(worker.into())).await? {
        FleetReply::Worker(view) => return Ok(Found::Held(view)),
        FleetReply::UnknownWorker => {}
        FleetReply::AmbiguousWorker(ids) => return Err(ambiguous(worker, &ids)),
        _ => return Err(unexpected("a question about a worker")),
    }
    let Ok(id) = WorkerId::parse(worker) else {
        return Err(no_worker(worker));
    };
    let row = app
        .blocking(move |stores| stores.decisions.worker(&id))
        .await?;
    row.map(|row| Found::Past(Box::new(row)))
        .ok_or_else(|| no_worker(worker))
}

/// One worker
#[utoipa::path(get, path = "/api/v1/fleet/workers/{worker}", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one")),
    responses((status = 200, description = "The worker", body = FleetWorkerWhole),
              (status = 404, description = "No such worker")))]
async fn one(
    State(app): State<App>,
    PathText(worker): PathText,
) -> Result<Json<FleetWorkerWhole>, Problem> {
    let stamp = Stamp::now(&app);
    Ok(Json(FleetWorkerWhole {
        as_of: stamp.as_of,
        position: stamp.position,
        worker: find(&app, &worker).await?.shown(),
    }))
}

/// The history of a worker, newest first
#[utoipa::path(get, path = "/api/v1/fleet/workers/{worker}/history", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one"),
           ("before" = Option<u64>, Query, description = "The next_before of the page before"),
           ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "A page", body = FleetHistory),
              (status = 404, description = "No such worker")))]
async fn history(
    State(app): State<App>,
    PathText(worker): PathText,
    Query(asked): Query<Before>,
) -> Result<Json<FleetHistory>, Problem> {
    let id = find(&app, &worker).await?.id().clone();
    page_of_history(&app, None, Some(id), asked).await
}
