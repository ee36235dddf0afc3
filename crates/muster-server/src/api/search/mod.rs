//! `GET /api/v1/search`: finds runs, executions, agents, functions, nodes, workers and questions
//! to people by ids, names and filters. Payloads are not searched, and the answer says so.

mod query;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use muster_engine::fleet::effect::WorkerView;
use muster_engine::row::{ApprovalRow, ExecutionRow};
use muster_store::{ApprovalFilter, ExecutionFilter, Page, StoreResult, Stores};
use muster_wire::api::At;
use muster_wire::api::search::{FoundGroup, FoundItem, FoundKind, SearchAnswer, SearchTerm};
use muster_wire::{AgentId, FunctionName};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::Query;
use super::caller::Caller;
use super::problem::Problem;
use super::{agents, fleet};
use crate::app::App;
use query::Wanted;

/// Hits of a kind when nobody says how many, and at most.
const LIMIT: usize = 8;
const LIMIT_MAX: usize = 50;
/// Functions whose calls are looked up.
const TARGETS_MAX: usize = 4;
/// Open questions to people that are looked through.
const PENDING_MAX: usize = 500;
/// The longest question.
const QUESTION_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    q: String,
    limit: Option<usize>,
}

/// Find things
///
/// By the beginning of an id, at least 4 characters of its end, or its short form
/// (`exec_…7K2F9Q`); by `state:`, `agent:`, `fn:`, `category:`, `reason:`, `session:`,
/// `label:actor=…` and `since:2h`; by names of agents, functions, nodes and workers. Payloads are
/// not searched.
#[utoipa::path(get, path = "/api/v1/search", tag = "overview",
    params(("q" = String, Query), ("limit" = Option<usize>, Query, description = "Of each kind; 8 when absent, 50 at most")),
    responses((status = 200, description = "What was found, by kind", body = SearchAnswer),
              (status = 400, description = "A filter has no such word")))]
async fn search(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Json<SearchAnswer>, Problem> {
    if asked.q.len() > QUESTION_MAX {
        return Err(Problem::validation(format!(
            "q: at most {QUESTION_MAX} bytes"
        )));
    }
    let limit = asked.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let wanted = Arc::new(Wanted::read(&asked.q, app.clock.now())?);
    let mut groups = Vec::new();
    if !wanted.is_empty() {
        let hidden = |row: &ExecutionRow| !caller.sees(&row.principal);
        let read = wanted.clone();
        let targets = targets(&app, &wanted);
        let rows = app
            .blocking(move |stores| Stored::read(stores, &read, &targets, limit + 1))
            .await?;
        groups.push(group(FoundKind::Run, limit, rows.runs(&hidden)));
        groups.push(group(FoundKind::Execution, limit, rows.executions(&hidden)));
        groups.push(group(FoundKind::Agent, limit, named_agents(&app, &wanted)));
        groups.push(group(FoundKind::Function, limit, functions(&app, &wanted)));
        let (nodes, workers) = machines(&app, &wanted, limit + 1).await?;
        groups.push(group(FoundKind::Node, limit, nodes));
        groups.push(group(FoundKind::Worker, limit, workers));
        groups.push(group(FoundKind::Approval, limit, rows.approvals()));
        groups.retain(|group| !group.items.is_empty());
    }
    Ok(Json(SearchAnswer {
        note: wanted.note(),
        understood: wanted
            .terms
            .iter()
            .map(|(key, value)| SearchTerm {
                key: (*key).to_owned(),
                value: value.clone(),
            })
            .collect(),
        q: asked.q,
        groups,
    }))
}

fn group(kind: FoundKind, limit: usize, mut items: Vec<FoundItem>) -> FoundGroup {
    let more = items.len() > limit;
    items.truncate(limit);
    FoundGroup { kind, items, more }
}

/// What the store has.
#[derive(Default)]
struct Stored {
    runs: Vec<muster_store::RunSummary>,
    executions: Vec<ExecutionRow>,
    approvals: Vec<ApprovalRow>,
}

impl Stored {
    fn read(
        stores: &Stores,
        wanted: &Wanted,
        targets: &[(AgentId, FunctionName)],
        limit: usize,
    ) -> StoreResult<Self> {
        let store = &stores.decisions;
        let mut out = Self::default();
        let page = Page { after: None, limit };
        if let Some(id) = wanted.id() {
            let found = store.find_ids(&id.part, limit)?;
            for run in found.runs.iter().filter(|_| id.may_be("run")) {
                let run = store.run(run)?;
                out.runs.extend(run.filter(|run| wanted.fits(&run.root)));
            }
            for execution in found.executions.iter().filter(|_| id.may_be("exec")) {
                let (_, row) = store.execution(execution)?;
                out.executions.extend(row.filter(|row| wanted.fits(row)));
            }
        }
        if wanted.has_filters() && wanted.text.is_none() {
            if let Some(filter) = wanted.runs() {
                out.runs = store.runs(&filter, &page)?;
            }
            out.executions = store.executions(&wanted.executions(), &page)?;
        }
        for (agent, function) in targets {
            if out.executions.len() >= limit {
                break;
            }
            let filter = ExecutionFilter {
                agents: vec![agent.clone()],
                function: Some(function.clone()),
                ..wanted.executions()
            };
            out.executions.extend(store.executions(&filter, &page)?);
        }
        if let Some(text) = wanted.text.as_deref().filter(|_| wanted.is_plain()) {
            let pending = ApprovalFilter {
                pending: Some(true),
                ..ApprovalFilter::default()
            };
            let page = Page {
                after: None,
                limit: PENDING_MAX,
            };
            let id = query::id_part(text);
            let fits = |row: &ApprovalRow| {
                query::has(&row.request, text)
                    || id
                        .as_ref()
                        .is_some_and(|id| id.fits(row.execution.as_str()))
            };
            out.approvals = store.approvals(&pending, &page)?;
            out.approvals.retain(fits);
        }
        Ok(out)
    }

    fn runs(&self, hidden: &dyn Fn(&ExecutionRow) -> bool) -> Vec<FoundItem> {
        let seen = self.runs.iter().filter(|run| !hidden(&run.root));
        seen.map(|run| FoundItem {
            id: run.id.to_string(),
            title: format!("{}.{}", run.root.agent, run.root.function),
            state: Some(run.status.word().to_owned()),
            text: steps(run.counts.iter().map(|(_, n)| n).sum()),
            at: Some(At(run.root.created_at)),
            path: format!("/ui/runs/{}", run.id),
        })
        .collect()
    }

    fn executions(&self, hidden: &dyn Fn(&ExecutionRow) -> bool) -> Vec<FoundItem> {
        let seen = self.executions.iter().filter(|row| !hidden(row));
        seen.map(|row| FoundItem {
            id: row.id.to_string(),
            title: format!("{}.{}", row.agent, row.function),
            state: Some(row.status.word().to_owned()),
            text: match (&row.status_reason, &row.error_category) {
                (_, Some(category)) => format!("{} in run {}", category.word(), row.run),
                (Some(reason), None) => format!("{reason} in run {}", row.run),
                (None, None) => format!("in run {}", row.run),
            },
            at: Some(At(row.created_at)),
            path: format!("/ui/executions/{}", row.id),
        })
        .collect()
    }

    fn approvals(&self) -> Vec<FoundItem> {
        let shown = |row: &ApprovalRow| FoundItem {
            id: row.execution.to_string(),
            title: row.request.to_string(),
            state: Some("pending".to_owned()),
            text: format!("{} waits for a person", row.agent),
            at: Some(At(row.requested_at)),
            path: format!("/ui/executions/{}", row.execution),
        };
        self.approvals.iter().map(shown).collect()
    }
}

/// Functions whose name is looked for: their last calls are found by it.
fn targets(app: &App, wanted: &Wanted) -> Vec<(AgentId, FunctionName)> {
    let Some(text) = wanted.text.as_deref() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for agent in app.directory.agents() {
        for function in agent.functions().iter() {
            let target = format!("{}.{}", agent.id, function.name);
            if query::has(function.name.as_str(), text) || query::has(&target, text) {
                found.push((agent.id.clone(), function.name.clone()));
            }
        }
    }
    found.sort();
    found.truncate(TARGETS_MAX);
    found
}

fn steps(n: u64) -> String {
    match n {
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    }
}

fn named_agents(app: &App, wanted: &Wanted) -> Vec<FoundItem> {
    let Some(text) = wanted.text.as_deref().filter(|_| wanted.is_plain()) else {
        return Vec::new();
    };
    let judged = agents::judged(app, app.clock.now());
    let fits = judged
        .into_iter()
        .filter(|(agent, _)| query::has(agent.id.as_str(), text));
    fits.map(|(agent, verdict)| FoundItem {
        id: agent.id.to_string(),
        title: agent.id.to_string(),
        state: Some(agents::word(&verdict).to_owned()),
        text: format!("{} functions", agent.functions().len()),
        at: verdict.map(|verdict| At(verdict.at)),
        path: format!("/ui/agents/{}", agent.id),
    })
    .collect()
}

fn functions(app: &App, wanted: &Wanted) -> Vec<FoundItem> {
    let Some(text) = wanted.text.as_deref().filter(|_| wanted.is_plain()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (agent, verdict) in agents::judged(app, app.clock.now()) {
        for function in agent.functions().iter() {
            let target = format!("{}.{}", agent.id, function.name);
            if !query::has(function.name.as_str(), text) && !query::has(&target, text) {
                continue;
            }
            // A part of the agent's name alone finds the agent.
            if query::has(agent.id.as_str(), text) && !query::has(function.name.as_str(), text) {
                continue;
            }
            found.push(FoundItem {
                id: target.clone(),
                title: target,
                state: Some(agents::word(&verdict).to_owned()),
                text: function.kind.word().to_owned(),
                at: None,
                path: format!("/ui/agents/{}/call/{}", agent.id, function.name),
            });
        }
    }
    found
}

async fn machines(
    app: &App,
    wanted: &Wanted,
    limit: usize,
) -> Result<(Vec<FoundItem>, Vec<FoundItem>), Problem> {
    let Some(text) = wanted.text.as_deref().filter(|_| wanted.is_plain()) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let (nodes, workers) = fleet::named(app, text, limit).await?;
    let nodes = nodes.iter().map(|view| FoundItem {
        id: view.row.id.to_string(),
        title: view.row.name.to_string(),
        state: Some(view.state.word().to_owned()),
        text: view.evidence.clone(),
        at: Some(At(view.state_at)),
        path: format!("/ui/fleet/nodes/{}", view.row.name),
    });
    let workers = workers.iter().map(worker);
    Ok((nodes.collect(), workers.collect()))
}

fn worker(view: &WorkerView) -> FoundItem {
    FoundItem {
        id: view.row.id.to_string(),
        title: view.row.name.to_string(),
        state: Some(view.state.word().to_owned()),
        text: match &view.node_name {
            Some(node) => format!("on {node}: {}", view.row.command),
            None => view.row.command.to_string(),
        },
        at: Some(At(view.state_at)),
        path: format!("/ui/fleet/workers/{}", view.row.id),
    }
}
