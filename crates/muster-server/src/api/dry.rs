//! What an act on executions would do, by what the plane knows now: with `dry_run=true` nothing
//! is changed, and the answer names what would be told, stopped and kept.

use std::collections::{BTreeSet, HashSet};

use axum::response::IntoResponse as _;
use muster_engine::row::{ApprovalRow, ExecutionRow};
use muster_store::{ExecutionFilter, Page, StoreResult, Stores};
use muster_wire::api::act::{Act, ActConsequence, Affected};
use muster_wire::{Category, Decision, ExecutionId, ExecutionKind, ParentEnd, RunId, Status};
use serde::Deserialize;

use super::caller::Caller;
use super::cancel::unknown_run;
use super::pauses::{conflict, has_ended};
use super::problem::{Answer, Problem};
use super::show;
use crate::app::App;

/// Executions that are named; the rest is counted.
const NAMED_MAX: usize = 100;
/// Open members of a run that are looked at; a run has at most as many members.
const MEMBERS_MAX: usize = 100_000;

/// Whether an act is only to be told of.
#[derive(Deserialize, Default)]
pub(super) struct DryRun {
    dry_run: Option<bool>,
}

impl DryRun {
    /// It is.
    pub(super) fn is_wanted(&self) -> bool {
        self.dry_run == Some(true)
    }
}

/// The consequence as an answer.
pub(super) fn answer(consequence: ActConsequence) -> Answer {
    Ok(axum::Json(consequence).into_response())
}

/// What an act on one execution would do.
///
/// # Errors
/// As the act itself: 404 when there is none that the caller may see, 409 when it cannot be done.
pub(super) async fn one(
    app: &App,
    caller: &Caller,
    act: Act,
    id: &ExecutionId,
) -> Result<ActConsequence, Problem> {
    let view = show::find(app, id)
        .await?
        .filter(|view| caller.stops_all() || caller.sees(&view.row.principal))
        .ok_or_else(|| show::unknown_execution(id))?;
    let row = &*view.row;
    if row.status.is_terminal() {
        return Err(has_ended(id, row.status));
    }
    match act {
        Act::Pause if row.kind == ExecutionKind::Observed => {
            let above = row.parent.as_ref().unwrap_or(&row.root);
            let message = format!(
                "it runs inside its caller's process and cannot be paused alone; pause its caller {above}"
            );
            return Err(conflict(message, Some(row.status)).execution(id.as_str()));
        }
        Act::Resume if row.status != Status::Paused => {
            let message = format!("it is not paused, but {}", row.status);
            return Err(conflict(message, Some(row.status)).execution(id.as_str()));
        }
        _ => {}
    }
    let open = open_members(app, &row.run).await?;
    let mut wanted: HashSet<&ExecutionId> = HashSet::from([&row.id]);
    if act == Act::Cancel {
        with_bound_children(&open, &mut wanted);
    }
    let affected: Vec<&ExecutionRow> = open
        .iter()
        .filter(|row| wanted.contains(&row.id) && changes(act, row))
        .collect();
    Ok(of(app, act, &affected, open.len()))
}

/// What an act on a run would do.
///
/// # Errors
/// As the act itself.
pub(super) async fn tree(
    app: &App,
    caller: &Caller,
    act: Act,
    run: &RunId,
) -> Result<ActConsequence, Problem> {
    let wanted = run.clone();
    let found = app
        .blocking(move |stores| stores.decisions.run(&wanted))
        .await?
        .filter(|found| caller.stops_all() || caller.sees(&found.root.principal))
        .ok_or_else(|| unknown_run(run))?;
    if found.status.is_terminal() && act != Act::CancelTree {
        let message = format!("the run has ended already: {}", found.status);
        return Err(conflict(message, Some(found.status)));
    }
    let open = open_members(app, run).await?;
    let affected: Vec<&ExecutionRow> = open.iter().filter(|row| changes(act, row)).collect();
    if affected.is_empty() && act == Act::ResumeTree {
        return Err(Problem::new(Category::Conflict, "nothing of it is paused"));
    }
    Ok(of(app, act, &affected, open.len()))
}

/// What a decision would do.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn decision(
    app: &App,
    caller: &Caller,
    decision: Decision,
    approval: &ApprovalRow,
) -> Result<ActConsequence, Problem> {
    let id = &approval.execution;
    let view = show::find(app, id)
        .await?
        .filter(|view| caller.stops_all() || caller.sees(&view.row.principal))
        .ok_or_else(|| show::unknown_execution(id))?;
    let open = open_members(app, &view.row.run).await?;
    let mut consequence = of(app, Act::Decide, &[&view.row], open.len());
    let how = if approval.callback_url.is_some() {
        "its agent is told"
    } else {
        "its agent sees it when it asks"
    };
    consequence.text = format!("{}: {} goes on, and {how}", decision, target(&view.row));
    if approval.callback_url.is_none() {
        consequence.told.clear();
    }
    Ok(consequence)
}

async fn open_members(app: &App, run: &RunId) -> Result<Vec<ExecutionRow>, Problem> {
    let run = run.clone();
    Ok(app.blocking(move |stores| members(stores, &run)).await?)
}

fn members(stores: &Stores, run: &RunId) -> StoreResult<Vec<ExecutionRow>> {
    let filter = ExecutionFilter {
        run: Some(run.clone()),
        statuses: vec![
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Paused,
        ],
        oldest_first: true,
        ..ExecutionFilter::default()
    };
    let page = Page {
        after: None,
        limit: MEMBERS_MAX,
    };
    stores.decisions.executions(&filter, &page)
}

/// Those that end with the one that called them, down from those that are there.
fn with_bound_children<'a>(open: &'a [ExecutionRow], wanted: &mut HashSet<&'a ExecutionId>) {
    loop {
        let more: Vec<&ExecutionId> = open
            .iter()
            .filter(|row| {
                row.on_parent_end == ParentEnd::Cancel
                    && !wanted.contains(&row.id)
                    && row.parent.as_ref().is_some_and(|id| wanted.contains(id))
            })
            .map(|row| &row.id)
            .collect();
        if more.is_empty() {
            return;
        }
        wanted.extend(more);
    }
}

/// Whether an act changes an open execution.
fn changes(act: Act, row: &ExecutionRow) -> bool {
    match act {
        Act::Cancel | Act::CancelTree | Act::Decide => true,
        Act::Pause => row.status != Status::Paused,
        Act::PauseTree => row.status != Status::Paused && row.kind == ExecutionKind::Dispatched,
        Act::Resume | Act::ResumeTree => row.status == Status::Paused,
    }
}

fn becomes(act: Act, row: &ExecutionRow) -> Status {
    match act {
        Act::Cancel | Act::CancelTree => Status::Cancelled,
        Act::Pause | Act::PauseTree => Status::Paused,
        Act::Resume | Act::ResumeTree => row.resume_to.unwrap_or(Status::Running),
        Act::Decide => Status::Running,
    }
}

/// Whether its agent has it.
fn is_at_agent(row: &ExecutionRow) -> bool {
    row.attempt > 0 && row.status != Status::Queued && row.absorb_until.is_none()
}

fn target(row: &ExecutionRow) -> String {
    format!("{}.{}", row.agent, row.function)
}

fn of(app: &App, act: Act, affected: &[&ExecutionRow], open: usize) -> ActConsequence {
    let count =
        |is: fn(&ExecutionRow) -> bool| affected.iter().filter(|row| is(row)).count() as u64;
    let total = affected.len() as u64;
    let queued = count(|row| row.status == Status::Queued || row.attempt == 0);
    let at_agents = count(is_at_agent);
    let waiting = count(|row| row.status == Status::Waiting);
    let tells = matches!(act, Act::Cancel | Act::CancelTree | Act::Decide);
    let told: BTreeSet<String> = affected
        .iter()
        .filter(|row| tells && is_at_agent(row) && row.kind == ExecutionKind::Dispatched)
        .map(|row| row.agent.to_string())
        .collect();
    let kept = (open as u64).saturating_sub(total);
    let named = affected.iter().take(NAMED_MAX).map(|row| Affected {
        execution_id: row.id.clone(),
        target: target(row),
        state: row.status.into(),
        becomes: becomes(act, row).into(),
    });
    let (does, do_, undo) = match act {
        Act::Cancel | Act::CancelTree => (
            "ends for good as cancelled",
            "end for good as cancelled",
            None,
        ),
        Act::Pause => ("is paused", "are paused", Some("resume")),
        Act::PauseTree => ("is paused", "are paused", Some("resume_tree")),
        Act::Resume => ("goes on", "go on", Some("pause")),
        Act::ResumeTree => ("goes on", "go on", Some("pause_tree")),
        Act::Decide => ("goes on", "go on", None),
    };
    let what = match affected {
        [only] => format!("{} {does}", target(only)),
        _ => format!("{total} executions {do_}"),
    };
    let agents = match (tells, told.len(), at_agents) {
        (true, 0, _) => "; no agent has any of it".to_owned(),
        (true, 1, _) => format!(
            "; {} is told, and its code may go on",
            told.iter().next().map_or("an agent", String::as_str)
        ),
        (true, n, _) => format!("; {n} agents are told, and their code may go on"),
        (false, _, 0) => String::new(),
        (false, _, n) => format!("; {n} at agents: what was sent is not taken back"),
    };
    let rest = match kept {
        0 => String::new(),
        n => format!("; {n} more of the run stay as they are"),
    };
    ActConsequence {
        dry_run: true,
        as_of: app.clock.now().into(),
        act: act.into(),
        text: format!("{what}{agents}{rest}"),
        total,
        affected: named.collect(),
        queued,
        at_agents,
        told: told.into_iter().collect(),
        waiting,
        kept,
        undo: undo.map(str::to_owned),
    }
}
