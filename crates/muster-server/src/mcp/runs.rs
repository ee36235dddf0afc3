//! `get_run` and `list_runs`, and which run or execution an id names.

use std::sync::Arc;

use muster_engine::effect::ExecutionView;
use muster_engine::row::ExecutionRow;
use muster_store::{Page, RunFilter, RunSummary};
use muster_wire::{AgentId, ExecutionId, RunId, Status, Timestamp};
use serde_json::{Map, Value};

use super::answer::{Found, put, put_if};
use super::argument::{Argument, Arguments, Kind, optional, required};
use super::{output, shape};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::{paging, runs, show};
use crate::app::App;

/// The longest id, with what an attempt adds to it.
pub(super) const ID_MAX: usize = 300;
/// Runs or steps of one page when nobody says how many.
const LIMIT: usize = 50;
const STATUSES: &[&str] = &[
    "queued",
    "running",
    "waiting",
    "paused",
    "succeeded",
    "failed",
    "cancelled",
    "timeout",
];

/// The argument that names a run or an execution.
pub(super) const ID: Argument = required(
    "id",
    Kind::Text(ID_MAX),
    "A run_id, or an execution_id: that one call.",
);

const CURSOR: Argument = optional("cursor", Kind::Text(512), "next_cursor of the page before.");

/// What `get_run` takes.
pub(super) const GET: &[Argument] = &[
    ID,
    optional(
        "limit",
        Kind::Whole(1, 200),
        "Steps of one page; 50 when absent.",
    ),
    CURSOR,
];

/// What `list_runs` takes.
pub(super) const LIST: &[Argument] = &[
    optional(
        "status",
        Kind::Words(STATUSES),
        "Only runs with one of these.",
    ),
    optional(
        "agent",
        Kind::Text(128),
        "Only runs that began with a call of this agent.",
    ),
    optional("since", Kind::Moment, "Only runs accepted from then on."),
    optional("until", Kind::Moment, "Only runs accepted before."),
    optional(
        "id_part",
        Kind::Text(128),
        "Only runs whose id begins or ends so.",
    ),
    optional(
        "limit",
        Kind::Whole(1, 100),
        "Runs of one page; 50 when absent.",
    ),
    CURSOR,
];

/// What an id names: a run and, of it, the execution that was asked for or its root.
pub(super) struct Named {
    pub(super) run: RunSummary,
    pub(super) execution: Arc<ExecutionRow>,
    /// Whether the id was an execution's.
    pub(super) is_execution: bool,
}

/// Finds what an id names among what the caller may see.
pub(super) async fn find(app: &App, caller: &Caller, id: &str) -> Result<Named, Problem> {
    let execution = show::execution_id(id)?;
    if let Some(execution) = row_of(app, &execution).await? {
        let run = run_of(app, &execution.run).await?;
        return match run.filter(|_| caller.sees(&execution.principal)) {
            Some(run) => Ok(Named {
                run,
                execution,
                is_execution: true,
            }),
            None => Err(nothing()),
        };
    }
    let wanted = RunId::parse(id).map_err(|error| Problem::validation(format!("id: {error}")))?;
    let run = run_of(app, &wanted).await?;
    let run = run.filter(|run| caller.sees(&run.root.principal));
    let run = run.ok_or_else(nothing)?;
    Ok(Named {
        execution: Arc::new(run.root.clone()),
        run,
        is_execution: false,
    })
}

/// An execution's newest row, without its payloads.
pub(super) async fn row_of(
    app: &App,
    id: &ExecutionId,
) -> Result<Option<Arc<ExecutionRow>>, Problem> {
    if let Some(view) = app.views.get(id.as_str()) {
        return Ok(Some(view.row.clone()));
    }
    let wanted = id.clone();
    let (_, row) = app
        .blocking(move |stores| stores.decisions.execution(&wanted))
        .await?;
    Ok(row.map(Arc::new))
}

/// An execution with its payloads, as far as they are shown.
pub(super) async fn whole(app: &App, row: Arc<ExecutionRow>) -> Result<Found, Problem> {
    let at_hand = app.views.get(row.id.as_str());
    let view = at_hand.filter(|view| view.row.status == row.status);
    let view = view.unwrap_or_else(|| {
        Arc::new(ExecutionView {
            row,
            result: None,
            details: None,
        })
    });
    // What is too large to be shown is not read for that.
    if shape::is_too_large(&view.row) {
        return Ok(shape::whole(&view));
    }
    Ok(shape::whole(&*show::with_payloads(app, view).await?))
}

/// A run as the store has it.
pub(super) async fn run_of(app: &App, run: &RunId) -> Result<Option<RunSummary>, Problem> {
    let wanted = run.clone();
    Ok(app
        .blocking(move |stores| stores.decisions.run(&wanted))
        .await?)
}

fn nothing() -> Problem {
    Problem::not_found(
        "there is no run and no execution of this id; execute_reasoner and list_runs give ids",
    )
}

/// A question for one run.
pub(super) struct Get {
    id: String,
    page: Page,
}

impl Get {
    pub(super) fn read(given: &Arguments<'_>) -> Result<Self, Problem> {
        Ok(Self {
            id: given.text("id").unwrap_or_default(),
            page: page(given)?,
        })
    }
}

fn page(given: &Arguments<'_>) -> Result<Page, Problem> {
    let limit = given.count("limit").and_then(|n| usize::try_from(n).ok());
    paging::page(
        Some(limit.unwrap_or(LIMIT)),
        given.text("cursor").as_deref(),
    )
}

/// Shows a run with a page of its steps.
pub(super) async fn get(app: &App, caller: &Caller, get: Get) -> Result<Found, Problem> {
    let named = find(app, caller, &get.id).await?;
    let (steps, next) = runs::steps_of(app, &named.run.id, get.page).await?;
    let mut found = shape::run(&named.run);
    put(&mut found, "execution", whole(app, named.execution).await?);
    let steps: Vec<Value> = steps.iter().map(|row| shape::step(row).into()).collect();
    put(&mut found, "steps", steps);
    put_if(&mut found, "next_cursor", next);
    Ok(found)
}

/// A question for many runs.
pub(super) struct List {
    filter: RunFilter,
    page: Page,
}

impl List {
    pub(super) fn read(given: &Arguments<'_>) -> Result<Self, Problem> {
        let agent = given.text("agent").map(|agent| AgentId::parse(&agent));
        let agent = agent.transpose();
        let moment = |name| {
            let text = given.text(name)?;
            Timestamp::parse(&text)
        };
        let statuses = given.texts("status");
        Ok(Self {
            filter: RunFilter {
                statuses: statuses
                    .iter()
                    .filter_map(|word| Status::from_word(word))
                    .collect(),
                agent: agent.map_err(|error| Problem::validation(format!("agent: {error}")))?,
                since: moment("since"),
                until: moment("until"),
                id_part: given.text("id_part"),
                ..RunFilter::default()
            },
            page: page(given)?,
        })
    }
}

/// Lists runs.
pub(super) async fn list(app: &App, list: List) -> Result<Found, Problem> {
    let (page, next) = runs::page_of(app, list.filter, list.page).await?;
    let shown = page.iter().map(|run| {
        let mut found = shape::run(run);
        put(&mut found, "root", shape::step(&run.root));
        Value::Object(found)
    });
    let mut found = Map::new();
    put(&mut found, "runs", shown.collect::<Vec<_>>());
    put_if(&mut found, "next_cursor", next);
    Ok(found)
}

/// What `get_run` gives.
pub(super) fn get_schema() -> Value {
    let mut members = shape::run_members();
    let cancelled_at = members.pop();
    members.extend([
        ("execution", shape::whole_schema()),
        (
            "steps",
            output::list(
                shape::step_schema(),
                "Oldest first: what calls comes before what it calls.",
            ),
        ),
        ("next_cursor", cursor_schema()),
    ]);
    members.extend(cancelled_at);
    output::object(6, members)
}

/// What `list_runs` gives.
pub(super) fn list_schema() -> Value {
    let mut members = shape::run_members();
    let cancelled_at = members.pop();
    members.push(("root", shape::step_schema()));
    members.extend(cancelled_at);
    let run = output::object(5, members);
    output::object(
        1,
        vec![
            ("runs", output::list(run, "Newest first.")),
            ("next_cursor", cursor_schema()),
        ],
    )
}

fn cursor_schema() -> Value {
    output::text("Where the next page begins; absent on the last.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_can_be_asked_for() {
        let words: Vec<&str> = Status::ALL.iter().map(|status| status.word()).collect();
        assert_eq!(STATUSES, words);
    }
}
