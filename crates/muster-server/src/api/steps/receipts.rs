//! What agents did about calls that were ended while they had them: from the receipts that are
//! kept as events. What nobody answered is said as that, never as stopped.

use muster_engine::row::{EventKind, ExecutionRow};
use muster_store::{Life, StoreResult, Stores};
use muster_wire::api::run::RunReceipts;
use muster_wire::api::steps::StepReceipt;
use muster_wire::{AttemptOutcome, ExecutionId, ExecutionKind, Status};

/// Members whose receipts are added up.
const SUMMED_MAX: usize = 2_000;

/// What an agent did about a call; `None` where there was nothing to tell.
pub(crate) fn of(row: &ExecutionRow, life: &Life) -> Option<StepReceipt> {
    if !may_have_one(row) {
        return None;
    }
    let last = life.attempts.last()?;
    let said = life.events.iter().rev().find(|event| {
        event.kind == EventKind::ExecutionCancelReceipt && event.attempt == Some(last.n)
    });
    if let Some(said) = said {
        // A word that this build does not know says nothing of the code.
        let word = said.reason.as_deref().and_then(StepReceipt::from_word);
        return Some(word.unwrap_or(StepReceipt::Unanswered));
    }
    // Taken back before it left, nobody has it. And of an end by the plane's own finding that
    // nobody asked for, nobody is told.
    let had_it = last.outcome == Some(AttemptOutcome::Disowned)
        && row.ended_at.is_some_and(|ended| last.sent_at < ended);
    (had_it && row.status == Status::Cancelled).then_some(StepReceipt::Unanswered)
}

/// Whether the row alone does not rule it out.
fn may_have_one(row: &ExecutionRow) -> bool {
    row.kind == ExecutionKind::Dispatched
        && row.attempt > 0
        && row.status.is_terminal()
        && row.status != Status::Succeeded
}

/// Whether the code of a step that has ended may be at work still.
pub(crate) fn code_may_run(row: &ExecutionRow, receipt: Option<StepReceipt>) -> bool {
    // An outcome that came late is its end.
    row.late_outcome.is_none()
        && matches!(
            receipt,
            Some(StepReceipt::StillRunning | StepReceipt::NotTold | StepReceipt::Unanswered)
        )
}

/// The sums of a run; `None` when there is nothing to add up.
pub(crate) fn sums(
    stores: &Stores,
    rows: &[ExecutionRow],
    partial: bool,
) -> StoreResult<Option<RunReceipts>> {
    let ended: Vec<&ExecutionRow> = rows.iter().filter(|row| may_have_one(row)).collect();
    let mut sums = RunReceipts {
        partial: (partial || ended.len() > SUMMED_MAX).then_some(true),
        ..RunReceipts::default()
    };
    let looked = &ended[..ended.len().min(SUMMED_MAX)];
    let ids: Vec<ExecutionId> = looked.iter().map(|row| row.id.clone()).collect();
    let lives = stores.decisions.lives(&ids)?;
    let mut any = false;
    for (row, life) in looked.iter().zip(&lives) {
        let Some(receipt) = of(row, life) else {
            continue;
        };
        any = true;
        let count = match receipt {
            StepReceipt::Stopped | StepReceipt::NotActive => &mut sums.stopped,
            _ if row.late_outcome.is_some() => &mut sums.stopped,
            StepReceipt::StillRunning => &mut sums.still_running,
            StepReceipt::NotTold => &mut sums.not_told,
            StepReceipt::Unanswered => &mut sums.unanswered,
        };
        *count += 1;
    }
    sums.told = sums.stopped + sums.still_running;
    Ok(any.then_some(sums))
}
