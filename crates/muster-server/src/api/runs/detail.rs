//! What is told of one run beside what lists tell: its time, its lineage, what it waits for.

use std::collections::HashMap;

use muster_engine::row::{ApprovalRow, ExecutionRow, RunRow};
use muster_store::{ApprovalFilter, ExecutionFilter, Life, Page, RunSummary, StoreResult, Stores};
use muster_wire::api::run::{OpenApproval, RunLineage, RunReceipts, TimeSpent};
use muster_wire::api::steps::SegmentKind;
use muster_wire::{ExecutionId, ExecutionKind, Status, Timestamp};

use crate::api::problem::Problem;
use crate::api::steps::{receipts, segments};
use crate::api::write::Writer;
use crate::app::App;

/// Members whose time is added up.
const MEMBERS_MAX: usize = 5_000;
/// Members that stood still for a while, of which is looked up why.
const LIVES_MAX: usize = 200;
/// Pending approvals that are shown.
const APPROVALS_MAX: usize = 100;

/// What is told of one run alone.
pub(super) struct Detail {
    took: TimeSpent,
    lineage: RunLineage,
    open_detached: u64,
    approvals: Vec<OpenApproval>,
    marks: Option<RunRow>,
    receipts: Option<RunReceipts>,
}

impl Detail {
    /// As members of an object.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer
            .value("took", &self.took)
            .value("lineage", &self.lineage)
            .value("open_detached", &self.open_detached)
            .value("approvals", &self.approvals);
        if let Some(marks) = &self.marks {
            writer
                .time_if("paused_at", marks.paused_at)
                .text_if("paused_by", marks.paused_by.as_deref())
                .text_if("cancelled_by", marks.cancelled_by.as_deref());
        }
        if let Some(receipts) = &self.receipts {
            writer.value("receipts", receipts);
        }
    }
}

/// Reads it.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn of(app: &App, run: &RunSummary) -> Result<Detail, Problem> {
    let (run, now) = (run.clone(), app.clock.now());
    Ok(app.blocking(move |stores| read(stores, &run, now)).await?)
}

fn read(stores: &Stores, run: &RunSummary, now: Timestamp) -> StoreResult<Detail> {
    let store = &stores.decisions;
    let mut rows: Vec<ExecutionRow> = Vec::new();
    let filter = ExecutionFilter {
        run: Some(run.id.clone()),
        oldest_first: true,
        ..ExecutionFilter::default()
    };
    let page = Page {
        after: None,
        limit: MEMBERS_MAX,
    };
    rows.extend(store.executions(&filter, &page)?);
    let total: u64 = run.counts.iter().map(|(_, count)| count).sum();
    let mut took = TimeSpent {
        partial: (total > rows.len() as u64).then_some(true),
        ..TimeSpent::default()
    };
    let stood: Vec<ExecutionId> = rows
        .iter()
        .filter(|row| Spans::of(row, now).stood_ms > 0)
        .take(LIVES_MAX)
        .map(|row| row.id.clone())
        .collect();
    let lives: HashMap<ExecutionId, Life> =
        stood.iter().cloned().zip(store.lives(&stood)?).collect();
    for row in &rows {
        let spans = Spans::of(row, now);
        took.queued_ms += spans.queued_ms;
        took.running_ms += spans.running_ms;
        match lives.get(&row.id) {
            Some(life) => {
                let paused = paused_ms(row, life, now).min(spans.stood_ms);
                took.paused_ms += paused;
                took.waiting_ms += spans.stood_ms - paused;
            }
            None => took.waiting_ms += spans.stood_ms,
        }
    }
    let status: HashMap<&ExecutionId, Status> =
        rows.iter().map(|row| (&row.id, row.status)).collect();
    let detached = |row: &&ExecutionRow| {
        let parent = row.parent.as_ref().and_then(|parent| status.get(parent));
        !row.status.is_terminal() && parent.is_some_and(|parent| parent.is_terminal())
    };
    Ok(Detail {
        took,
        lineage: lineage(stores, run)?,
        open_detached: rows.iter().filter(detached).count() as u64,
        approvals: approvals(stores, run, &rows)?,
        marks: store.run_marks(&run.id)?,
        receipts: receipts::sums(stores, &rows, took.partial.is_some())?,
    })
}

/// How long an execution was in a queue, at work, and standing still.
struct Spans {
    queued_ms: u64,
    running_ms: u64,
    stood_ms: u64,
}

impl Spans {
    fn of(row: &ExecutionRow, now: Timestamp) -> Self {
        let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(0);
        let until = row.ended_at.unwrap_or(now);
        let Some(started) = row.started_at else {
            let observed = row.kind == ExecutionKind::Observed;
            let all = millis(until.since(row.created_at));
            let paused = row.status == Status::Paused;
            return Self {
                queued_ms: if observed || paused { 0 } else { all },
                running_ms: if observed { all } else { 0 },
                stood_ms: if paused { all } else { 0 },
            };
        };
        let whole = millis(until.since(started));
        let clock = row.clock_from.map_or(0, |from| millis(until.since(from)));
        let active = u64::try_from(row.active_us / 1_000).unwrap_or(0) + clock;
        let running_ms = if row.kind == ExecutionKind::Observed {
            whole
        } else {
            active.min(whole)
        };
        Self {
            queued_ms: millis(started.since(row.created_at)),
            running_ms,
            stood_ms: whole - running_ms,
        }
    }
}

fn paused_ms(row: &ExecutionRow, life: &Life, now: Timestamp) -> u64 {
    let now = now.0.div_euclid(1_000);
    segments::of(row, life)
        .iter()
        .filter(|segment| segment.0.known() == Some(SegmentKind::Paused))
        .map(|segment| u64::try_from(segment.2.unwrap_or(now) - segment.1).unwrap_or(0))
        .sum()
}

fn lineage(stores: &Stores, run: &RunSummary) -> StoreResult<RunLineage> {
    let Some(links) = run.root.links.as_deref() else {
        return Ok(RunLineage::default());
    };
    let of = |id: &Option<ExecutionId>| -> StoreResult<_> {
        match id {
            Some(id) => Ok(stores.decisions.execution(id)?.1.map(|row| row.run)),
            None => Ok(None),
        }
    };
    let source = links.replay.as_ref().map(|replay| replay.source.clone());
    Ok(RunLineage {
        restart_of_run: match source {
            Some(source) => Some(source),
            None => of(&links.restart_of)?,
        },
        restart_of_execution: links.restart_of.clone(),
        restarted_as: of(&links.restarted_as)?,
    })
}

fn approvals(
    stores: &Stores,
    run: &RunSummary,
    rows: &[ExecutionRow],
) -> StoreResult<Vec<OpenApproval>> {
    let waits = |(status, count): &(Status, u64)| {
        *count > 0 && matches!(status, Status::Waiting | Status::Paused)
    };
    if !run.counts.iter().any(waits) {
        return Ok(Vec::new());
    }
    let filter = ApprovalFilter {
        pending: Some(true),
        run: Some(run.id.clone()),
        ..ApprovalFilter::default()
    };
    let page = Page {
        after: None,
        limit: APPROVALS_MAX,
    };
    let mut pending = stores.decisions.approvals(&filter, &page)?;
    pending.reverse();
    let target = |approval: &ApprovalRow| {
        let row = rows.iter().find(|row| row.id == approval.execution);
        row.map_or_else(
            || approval.agent.to_string(),
            |row| format!("{}.{}", row.agent, row.function),
        )
    };
    Ok(pending
        .iter()
        .map(|approval| OpenApproval {
            execution_id: approval.execution.clone(),
            approval_request_id: approval.request.to_string(),
            target: target(approval),
            requested_at: approval.requested_at.into(),
            expires_at: approval.expires_at.into(),
            request_url: approval.request_url.as_deref().map(str::to_owned),
        })
        .collect())
}
