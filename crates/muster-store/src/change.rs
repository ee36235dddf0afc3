//! What a change does to an execution's row: the one meaning that every store shares.

use std::sync::Arc;

use muster_engine::effect::ExecutionChange;
use muster_engine::row::ExecutionRow;
use muster_wire::Status;

/// The reason of an execution whose dial failed and that waits for its agent.
pub const AWAITING_RESTART: &str = "awaiting_agent_restart";

/// Applies a change to a row. `false`, and nothing changed, when the row has ended and the
/// change needs an open one: finished stays finished.
pub fn apply(row: &mut ExecutionRow, change: &ExecutionChange) -> bool {
    let always = matches!(
        change,
        ExecutionChange::Late { .. } | ExecutionChange::RestartedAs { .. }
    );
    if row.status.is_terminal() && !always {
        return false;
    }
    match change {
        ExecutionChange::Started {
            attempt,
            started_at,
            clock_from,
            active_us,
            over_cap,
            holds,
        } => {
            row.status = Status::Running;
            row.status_reason = None;
            row.absorb_until = None;
            row.wait = None;
            row.resume_to = None;
            row.attempt = *attempt;
            row.started_at = Some(*started_at);
            row.clock_from = Some(*clock_from);
            row.active_us = *active_us;
            row.over_cap = *over_cap;
            row.holds.clone_from(holds);
        }
        ExecutionChange::Absorbed {
            until,
            started_at,
            clock_from,
            over_cap,
        } => {
            row.over_cap = *over_cap;
            row.status = Status::Running;
            row.status_reason = Some(Arc::from(AWAITING_RESTART));
            row.absorb_until = Some(*until);
            row.wait = None;
            row.resume_to = None;
            row.started_at = Some(*started_at);
            row.clock_from = Some(*clock_from);
        }
        ExecutionChange::Ended(ending) => {
            row.status = ending.status;
            row.status_reason.clone_from(&ending.reason);
            row.error_category.clone_from(&ending.category);
            row.error_text.clone_from(&ending.error);
            row.error_status = ending.http_status;
            row.ended_at = Some(ending.at);
            row.active_us = ending.active_us;
            row.result_size = ending.result_size;
            if ending.usage.is_some() {
                row.usage.clone_from(&ending.usage);
            }
            row.clock_from = None;
            row.absorb_until = None;
            row.wait = None;
            row.resume_to = None;
        }
        ExecutionChange::Moved(moved) => {
            row.status = moved.status;
            row.status_reason.clone_from(&moved.reason);
            row.wait.clone_from(&moved.wait);
            row.resume_to = moved.resume_to;
            row.absorb_until = moved.absorb_until;
            row.clock_from = moved.clock_from;
            row.active_us = moved.active_us;
            row.over_cap = moved.over_cap;
        }
        ExecutionChange::RestartedAs { id } => row.links_mut().restarted_as = Some(id.clone()),
        ExecutionChange::Late { status } => row.late_outcome = Some(*status),
    }
    true
}
