//! The questions of lists, by walking everything.

use std::collections::BTreeMap;

use muster_engine::row::{ApprovalRow, ExecutionRow, InstanceRow};
use muster_wire::{AgentId, RunId, Status, Timestamp};

use super::state::State;
use crate::question::run_status;
use crate::{ApprovalFilter, ExecutionFilter, Page, RunFilter, RunSummary};

/// An instance that is gone for longer is no longer read.
const GONE_US: i64 = 24 * 3600 * 1_000_000;

/// Executions as the filter says.
pub(super) fn executions(
    state: &State,
    filter: &ExecutionFilter,
    page: &Page,
) -> Vec<ExecutionRow> {
    let wanted = |row: &&ExecutionRow| {
        (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
            && (filter.agents.is_empty() || filter.agents.contains(&row.agent))
            && (filter.reason.is_none() || filter.reason.as_deref() == row.status_reason.as_deref())
            && filter
                .ended_since
                .is_none_or(|at| row.ended_at.is_none_or(|end| end >= at))
            && filter
                .ended_until
                .is_none_or(|at| row.ended_at.is_none_or(|end| end < at))
            && filter.function.as_ref().is_none_or(|f| *f == row.function)
            && filter.run.as_ref().is_none_or(|id| *id == row.run)
            && (filter.parent.is_none() || filter.parent == row.parent)
            && (filter.category.is_none() || filter.category == row.error_category)
            && filter.since.is_none_or(|at| row.created_at >= at)
            && filter.until.is_none_or(|at| row.created_at < at)
            && has_part(filter.id_part.as_deref(), row.id.as_str())
    };
    let rows = state.executions.values().filter(wanted).collect();
    paged(rows, page, filter.oldest_first)
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
        row.root == row.id
            && filter.agent.as_ref().is_none_or(|id| *id == row.agent)
            && filter.since.is_none_or(|at| row.created_at >= at)
            && filter.until.is_none_or(|at| row.created_at < at)
            && has_part(filter.id_part.as_deref(), row.run.as_str())
            && (filter.statuses.is_empty() || has_status(state, row, &filter.statuses))
    };
    let roots = state.executions.values().filter(wanted).collect();
    paged(roots, page, false)
        .into_iter()
        .map(|root| summary(state, root))
        .collect()
}

fn has_status(state: &State, root: &ExecutionRow, wanted: &[Status]) -> bool {
    let open = state
        .run_members(&root.run)
        .any(|row| !row.status.is_terminal());
    wanted.iter().any(|status| match status {
        Status::Running => open,
        Status::Queued | Status::Waiting | Status::Paused => root.status == *status,
        Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout => {
            root.status == *status && !open
        }
    })
}

/// One run: its root, or, should that be missing, the member that came first.
pub(super) fn run(state: &State, id: &RunId) -> Option<RunSummary> {
    let root = state.run_members(id).find(|row| row.root == row.id);
    let root = root.or_else(|| state.run_members(id).next())?;
    Some(summary(state, root.clone()))
}

fn summary(state: &State, root: ExecutionRow) -> RunSummary {
    let mut counts: BTreeMap<Status, u64> = BTreeMap::new();
    for row in state.run_members(&root.run) {
        *counts.entry(row.status).or_default() += 1;
    }
    let counts: Vec<(Status, u64)> = counts.into_iter().collect();
    RunSummary {
        id: root.run.clone(),
        status: run_status(root.status, &counts),
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
