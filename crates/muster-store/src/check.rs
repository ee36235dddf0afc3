//! What both stores demand of a commit before they touch a row: its events follow each other
//! without a hole, and its numbers fit a row. Reads nothing.

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::fleet::FleetWrite;

use crate::{Commit, StoreError, StoreResult};

/// A row's numbers are signed; one over this cannot be ordered.
const NUMBER_MAX: u64 = i64::MAX as u64;

/// Checks a commit against the last event that is stored.
pub(crate) fn commit(commit: &Commit, stored: u64) -> StoreResult<()> {
    if commit.after_seq != stored {
        return Err(StoreError::Sequence {
            expected: commit.after_seq,
            found: stored,
        });
    }
    let mut last = stored;
    for write in &commit.writes {
        match write {
            Write::InsertEvent(event) => {
                if event.seq != last + 1 {
                    return Err(StoreError::Sequence {
                        expected: last + 1,
                        found: event.seq,
                    });
                }
                last = event.seq;
            }
            Write::InsertExecution(row) => {
                fits("turn", row.queue.turn)?;
                fits("seq", row.queue.seq)?;
                fits("input_size", row.input_size)?;
                fits("result_size", row.result_size.unwrap_or(0))?;
            }
            Write::UpdateExecution {
                change: ExecutionChange::Ended(ending),
                ..
            } => fits("result_size", ending.result_size.unwrap_or(0))?,
            Write::Fleet(FleetWrite::InsertHistory(row)) => fits("history seq", row.seq)?,
            Write::Fleet(_)
            | Write::UpdateExecution { .. }
            | Write::InsertAttempt(_)
            | Write::AcceptAttempt { .. }
            | Write::EndAttempt { .. }
            | Write::PutPayload { .. }
            | Write::PutAgent(_)
            | Write::SetAgentHold { .. }
            | Write::SetAgentCap { .. }
            | Write::DropAgent(_)
            | Write::PutInstance(_)
            | Write::PutRun(_)
            | Write::ResumeRun(_)
            | Write::PutApproval(_)
            | Write::InsertDelivery(_)
            | Write::SetAgentTags { .. }
            | Write::InsertKey(_)
            | Write::SetHold(_)
            | Write::SetHeldBy { .. } => {}
        }
    }
    if last != commit.last_seq {
        return Err(StoreError::Sequence {
            expected: commit.last_seq,
            found: last,
        });
    }
    Ok(())
}

fn fits(what: &str, number: u64) -> StoreResult<()> {
    if number > NUMBER_MAX {
        return Err(StoreError::Conflict(format!(
            "{what} {number} is over {NUMBER_MAX} and cannot be stored"
        )));
    }
    Ok(())
}
