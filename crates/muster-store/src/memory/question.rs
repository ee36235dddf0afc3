//! The questions of lists, by walking everything.

use std::collections::BTreeMap;

use muster_engine::row::{ApprovalRow, ExecutionRow, InstanceRow};
use muster_wire::{AgentId, ExecutionId, RunId, Status, Timestamp};

use super::state::State;
use crate::question::run_status;
use crate::{Also, ApprovalFilter, ExecutionFilter, Page, RunFilter, RunSummary, StepLine};

/// An instance that is gone for longer is no longer read.
const GONE_US: i64 = 24 * 3600 * 1_000_000;

/// Executions as the filter says.
pub(super) fn executions(
    state: &State,
    filter: &ExecutionFilter,
    page: &Page,
) -> Vec<ExecutionRow> {
    let wanted = |row: &&ExecutionRow| {
        (filter.statuses.is_empty() || filter.statuses.contains(&row.status)) && fits(filter, row)
    };
    let rows = state.executions.values().filter(wanted).collect();
    paged(rows, page, filter.oldest_first)
}

/// Whether an execution is what a filter wants, but for its status.
fn fits(filter: &ExecutionFilter, row: &ExecutionRow) -> bool {
    (filter.agents.is_empty() || filter.agents.contains(&row.agent))
        && filter.function.as_ref().is_none_or(|f| *f == row.function)
        && filter.run.as_ref().is_none_or(|id| *id == row.run)
        && (filter.parent.is_none() || filter.parent == row.parent)
        && (filter.category.is_none() || filter.category == row.error_category)
        && filter.since.is_none_or(|at| row.created_at >= at)
        && filter.until.is_none_or(|at| row.created_at < at)
        && has_part(filter.id_part.as_deref(), row.id.as_str())
        && fits_also(&filter.also, row, row.id.as_str())
        && (!row.status.is_terminal() || in_range(&filter.also, row))
}

fn fits_also(also: &Also, row: &ExecutionRow, id: &str) -> bool {
    let reason = |wanted: &String| {
        let said = row.status_reason.as_deref().unwrap_or_default();
        let waits = row.wait.as_ref().filter(|_| !row.status.is_terminal());
        said.split(':').next() == Some(wanted.as_str())
            || waits.is_some_and(|wait| wait.cause.word() == wanted)
    };
    let text = |wanted: &String| {
        let name = format!("{}.{}", row.agent, row.function).to_ascii_lowercase();
        has_part(Some(wanted), id) || name.contains(&wanted.to_ascii_lowercase())
    };
    also.reason.as_ref().is_none_or(reason)
        && also
            .session
            .as_deref()
            .is_none_or(|it| row.session.as_deref() == Some(it))
        && also
            .actor
            .as_deref()
            .is_none_or(|it| row.actor.as_deref() == Some(it))
        && also.origin.is_none_or(|it| it == row.origin)
        && also.text.as_ref().is_none_or(text)
}

/// Whether one that ended did so in the range of a filter.
fn in_range(also: &Also, row: &ExecutionRow) -> bool {
    also.ended_since
        .is_none_or(|at| row.ended_at.is_some_and(|ended| ended >= at))
        && also
            .ended_until
            .is_none_or(|at| row.ended_at.is_some_and(|ended| ended < at))
}

/// How many executions there are of each status.
pub(super) fn execution_counts(state: &State, filter: &ExecutionFilter) -> Vec<(Status, u64)> {
    let rows = state.executions.values().filter(|row| fits(filter, row));
    counted(rows.map(|row| row.status))
}

fn counted(states: impl Iterator<Item = Status>) -> Vec<(Status, u64)> {
    let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
    for state in states {
        *counts.entry(state).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// How many runs there are of each state.
pub(super) fn run_counts(state: &State, filter: &RunFilter) -> Vec<(Status, u64)> {
    let roots = state
        .executions
        .values()
        .filter(|row| is_run(state, filter, row));
    counted(roots.map(|root| summary(state, root.clone()).status))
}

/// Whether a row is the root of a run that a filter wants, but for its state.
fn is_run(state: &State, filter: &RunFilter, row: &ExecutionRow) -> bool {
    row.root == row.id
        && filter.agent.as_ref().is_none_or(|id| *id == row.agent)
        && filter.function.as_ref().is_none_or(|f| *f == row.function)
        && (filter.category.is_none() || filter.category == row.error_category)
        && filter.since.is_none_or(|at| row.created_at >= at)
        && filter.until.is_none_or(|at| row.created_at < at)
        && has_part(filter.id_part.as_deref(), row.run.as_str())
        && fits_also(&filter.also, row, row.run.as_str())
        && (in_range(&filter.also, row)
            || state
                .run_members(&row.run)
                .any(|row| !row.status.is_terminal()))
}

/// The executions of a run as far as groups need them.
pub(super) fn step_lines(
    state: &State,
    run: &RunId,
    parent: Option<&ExecutionId>,
) -> Vec<StepLine> {
    let members = state.run_members(run);
    let mut rows: Vec<&ExecutionRow> = members
        .filter(|row| parent.is_none() || row.parent.as_ref() == parent)
        .collect();
    rows.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let line = |row: &ExecutionRow| StepLine {
        id: row.id.clone(),
        parent: row.parent.clone(),
        agent: row.agent.clone(),
        function: row.function.clone(),
        status: row.status,
        from: row.started_at.unwrap_or(row.created_at),
        ended_at: row.ended_at,
    };
    rows.into_iter().map(line).collect()
}

/// Approvals as the filter says, newest first.
pub(super) fn approvals(state: &State, filter: &ApprovalFilter, page: &Page) -> Vec<ApprovalRow> {
    let key = |row: &ApprovalRow| {
        (
            row.requested_at,
            format!("{} {}", row.execution, row.request),
        )
    };
    let mut rows: Vec<&ApprovalRow> = state
        .approvals
        .values()
        .filter(|row| {
            let pending = row.decided_at.is_none();
            filter.pending.is_none_or(|wanted| wanted == pending)
                && (!filter.closed || (row.decision.is_none() && !pending))
                && (filter.decision.is_none() || filter.decision == row.decision)
                && filter.agent.as_ref().is_none_or(|id| *id == row.agent)
                && filter.run.as_ref().is_none_or(|id| *id == row.run)
                && page.after.as_ref().is_none_or(|after| key(row) < *after)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(key(row)));
    rows.into_iter().take(page.limit).cloned().collect()
}

fn has_part(part: Option<&str>, id: &str) -> bool {
    part.is_none_or(|part| id.starts_with(part) || id.ends_with(part))
}

fn paged(mut rows: Vec<&ExecutionRow>, page: &Page, oldest_first: bool) -> Vec<ExecutionRow> {
    rows.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    if !oldest_first {
        rows.reverse();
    }
    let behind = |row: &&&ExecutionRow| {
        page.after.as_ref().is_none_or(|(at, id)| {
            let (row, after) = ((row.created_at, row.id.as_str()), (*at, id.as_str()));
            if oldest_first {
                row > after
            } else {
                row < after
            }
        })
    };
    let page = rows.iter().filter(behind).take(page.limit);
    page.map(|row| (*row).clone()).collect()
}

/// Runs as the filter says, newest first.
pub(super) fn runs(state: &State, filter: &RunFilter, page: &Page) -> Vec<RunSummary> {
    let wanted = |row: &&ExecutionRow| {
        is_run(state, filter, row)
            && (filter.statuses.is_empty() || has_status(state, row, &filter.statuses))
            && (filter.states.is_empty()
                || filter
                    .states
                    .contains(&summary(state, (*row).clone()).status))
    };
    let roots = state.executions.values().filter(wanted).collect();
    paged(roots, page, false)
        .into_iter()
        .map(|root| summary(state, root))
        .collect()
}

fn has_status(state: &State, root: &ExecutionRow, wanted: &[Status]) -> bool {
    let is = summary(state, root.clone()).status;
    wanted.contains(&is) || (wanted.contains(&Status::Running) && !is.is_terminal())
}

/// One run: its root, or, should that be missing, the member that came first.
pub(super) fn run(state: &State, id: &RunId) -> Option<RunSummary> {
    let root = state.run_members(id).find(|row| row.root == row.id);
    let root = root.or_else(|| state.run_members(id).next())?;
    Some(summary(state, root.clone()))
}

fn summary(state: &State, root: ExecutionRow) -> RunSummary {
    let counts = counted(state.run_members(&root.run).map(|row| row.status));
    let status = run_status(root.status, &counts);
    let ended_at = state
        .run_members(&root.run)
        .filter_map(|row| row.ended_at)
        .max();
    RunSummary {
        id: root.run.clone(),
        status,
        ended_at: ended_at.filter(|_| status.is_terminal()),
        cancelled_at: state.runs.get(&root.run).and_then(|run| run.cancelled_at),
        root,
        counts,
    }
}

/// The instances of one agent, latest registered last.
pub(super) fn instances_of(state: &State, agent: &AgentId) -> Vec<InstanceRow> {
    let mine = |row: &&InstanceRow| row.agent == *agent;
    let mut rows: Vec<InstanceRow> = state.instances.values().filter(mine).cloned().collect();
    rows.sort_by(|a, b| (a.registered_at, &a.id).cmp(&(b.registered_at, &b.id)));
    rows
}

/// What a start reads of instances.
pub(super) fn instances(state: &State) -> Vec<InstanceRow> {
    let now = Timestamp::wall_clock().0;
    let wanted = |row: &&InstanceRow| {
        row.orphans_at.is_some()
            || row
                .gone_at
                .is_none_or(|at| at.0 > now.saturating_sub(GONE_US))
    };
    let mut rows: Vec<InstanceRow> = state.instances.values().filter(wanted).cloned().collect();
    let key = |row: &InstanceRow| (row.agent.clone(), row.registered_at, row.id.clone());
    rows.sort_by_cached_key(key);
    rows
}
