//! Pauses: a person stops one execution, or a run, for a while. What was not sent is not sent
//! until it is resumed; what was sent may still end, and its end is taken.

use std::sync::Arc;

use muster_wire::{ExecutionId, RunId, Status, Timestamp};

use crate::approvals::{is_pending, reason_after};
use crate::effect::{Effects, Load, Reply, Send, Write};
use crate::engine::{Engine, Run, attempt_key};
use crate::event::{Pause, Submission, TreePause};
use crate::execution::{Execution, Held, Phase};
use crate::lineage::Lineage;
use crate::row::{EventKind, EventRow, PayloadKind, QueueKey, RunRow};
use crate::start::Launch;
use crate::waits::reason_of;

/// The reason word of a paused execution.
const PAUSED: &str = "paused";

/// A wish that cannot be had, as a sentence.
type NotMoved = (String, Status);

impl Engine {
    pub(crate) fn pause_requested(&mut self, now: Timestamp, wish: Box<Pause>, out: &mut Effects) {
        let id = wish.execution.clone();
        if !self.executions.contains_key(&id) {
            if let Some(ended) = self.recent.ended(&id) {
                let status = ended.status;
                return out
                    .replies
                    .push((wish.waiter, Reply::AlreadyEnded { status }));
            }
            let Some((as_of, row)) = &wish.known else {
                return out.loads.push(Load::Pause(wish));
            };
            if !self.recent.ends_cover(*as_of) {
                return out.loads.push(Load::Pause(wish));
            }
            let reply = match row {
                None => Reply::UnknownExecution,
                Some(row) if row.status.is_terminal() => Reply::AlreadyEnded { status: row.status },
                Some(row) if row.status != Status::Queued => Reply::Conflict {
                    message: "this execution was set aside as unreadable; see `muster quarantine`"
                        .into(),
                    status: Some(row.status),
                },
                Some(_) if !wish.on => not_paused(Status::Queued),
                Some(row) => {
                    self.adopt_queued((**row).clone());
                    return self.pause_requested(now, wish, out);
                }
            };
            return out.replies.push((wish.waiter, reply));
        }
        let changed = if wish.on {
            let text = because(&wish.by, wish.reason.as_deref());
            self.pause_one(now, &id, wish.reason.as_deref(), text, out)
        } else {
            self.resume_one(now, &id, because(&wish.by, wish.reason.as_deref()), out)
        };
        let reply = match changed {
            Ok(changed) => Reply::Moved {
                executions: if changed {
                    vec![id.clone()]
                } else {
                    Vec::new()
                },
                // One that was resumed may have ended already: nobody could be called.
                status: self.status_now(&id).unwrap_or(Status::Running),
            },
            Err((message, status)) => Reply::Conflict {
                message,
                status: Some(status),
            },
        };
        out.replies.push((wish.waiter, reply));
    }

    fn status_now(&self, id: &ExecutionId) -> Option<Status> {
        let open = self.executions.get(id).map(|e| e.row.status);
        open.or_else(|| self.recent.ended(id).map(|ended| ended.status))
    }

    /// Pauses one that is in memory; `false` when it was paused already.
    fn pause_one(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        reason: Option<&str>,
        text: Arc<str>,
        out: &mut Effects,
    ) -> Result<bool, NotMoved> {
        let Some(execution) = self.executions.get(id) else {
            return Ok(false);
        };
        let status = execution.row.status;
        match (&execution.phase, status) {
            (_, Status::Paused) => return Ok(false),
            (Phase::Observed { .. }, _) => {
                let caller = execution.row.parent.as_ref().unwrap_or(&execution.row.root);
                let message = format!(
                    "it runs inside its caller's process and cannot be paused alone; pause its caller {caller}"
                );
                return Err((message, status));
            }
            _ => {}
        }
        let Some(mut execution) = self.take(id) else {
            return Ok(false);
        };
        if let Phase::Queued = execution.phase {
            self.unqueue(&execution);
            execution.phase = Phase::Shelved;
        }
        if let Phase::Absorbed { .. } = execution.phase {
            self.shelve_absorbed(&mut execution);
        }
        if let (Phase::Sent(_), Some(attempt)) = (&execution.phase, attempt_key(&execution)) {
            out.sends.push(Send::TakeBack(attempt));
        }
        execution.stop_clock(now);
        let row = Arc::make_mut(&mut execution.row);
        row.resume_to = Some(status);
        row.status = Status::Paused;
        row.status_reason = Some(match reason {
            Some(reason) => format!("{PAUSED}: {reason}").into(),
            None => PAUSED.into(),
        });
        self.settle(now, execution, EventKind::ExecutionPaused, Some(text), out);
        Ok(true)
    }

    /// It waits for no instance while it is paused.
    fn shelve_absorbed(&mut self, execution: &mut Execution) {
        let until = Timestamp::NEVER;
        execution.phase = Phase::Absorbed { until };
        let row = Arc::make_mut(&mut execution.row);
        row.absorb_until = Some(until);
        if let Some(agent) = self.agents.get_mut(&row.agent) {
            agent.absorbed.remove(&row.queue.seq);
        }
    }

    /// A paused one would go out again: it does when it is resumed.
    pub(crate) fn park(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        out: &mut Effects,
    ) {
        self.shelve_absorbed(&mut execution);
        let row = Arc::make_mut(&mut execution.row);
        row.wait = None;
        row.resume_to = Some(Status::Running);
        let text = execution.last_dial.clone();
        self.settle(now, execution, EventKind::ExecutionAbsorbed, text, out);
    }

    /// Resumes one that is in memory.
    fn resume_one(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        text: Arc<str>,
        out: &mut Effects,
    ) -> Result<bool, NotMoved> {
        match self.status_now(id) {
            Some(Status::Paused) => {}
            Some(status) => return Err((not_paused_text(status), status)),
            None => return Ok(false),
        }
        let Some(mut execution) = self.take(id) else {
            return Ok(false);
        };
        let row = Arc::make_mut(&mut execution.row);
        let back = row.resume_to.take().unwrap_or(Status::Running);
        row.status = back;
        row.status_reason = row.wait.as_deref().map(reason_of);
        match execution.phase {
            Phase::Shelved => self.back_to_queue(now, execution, text, out),
            Phase::Absorbed { .. } => {
                row.absorb_until = None;
                execution.run_clock(now);
                self.settle(now, execution, EventKind::ExecutionResumed, Some(text), out);
                let Some(execution) = self.take(id) else {
                    return Ok(true);
                };
                let agent = execution.row.agent.clone();
                self.launch(now, execution, Launch::Stored, out);
                self.end_absorbed_when_down(now, &agent, out);
            }
            Phase::Queued | Phase::Sent(_) | Phase::Accepted(_) | Phase::Observed { .. } => {
                if back == Status::Running {
                    let decided = self.approvals.of(id).iter().rfind(|row| !is_pending(row));
                    row.status_reason = decided.and_then(|row| row.decision).map(reason_after);
                    execution.run_clock(now);
                }
                self.settle(now, execution, EventKind::ExecutionResumed, Some(text), out);
                self.tell_decisions(now, id, out);
            }
        }
        Ok(true)
    }

    /// One that was paused before its dispatch is in its queue again, at its old place.
    fn back_to_queue(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        text: Arc<str>,
        out: &mut Effects,
    ) {
        execution.phase = Phase::Queued;
        execution.queued_from = now;
        let row = execution.row.clone();
        out.writes.push(Write::UpdateExecution {
            id: row.id.clone(),
            change: crate::waits::moved(&row),
        });
        let mut line = EventRow::of(EventKind::ExecutionResumed, now, &execution);
        line.text = Some(text);
        self.tell(line, out);
        Self::publish(&execution, None, None, out);
        self.waiting_total += 1;
        let parent = row.parent.as_ref().filter(|_| !row.holds.is_empty());
        self.waits_for_child(parent, true);
        let window = self.limits.queue_window;
        let Some(agent) = self.agents.get_mut(&row.agent) else {
            return;
        };
        let id = row.id.clone();
        let enqueued = agent.queue.enqueue(row.queue, id.clone(), None, window);
        self.keep(execution);
        if !enqueued.keep {
            self.forget_queued(&id, out);
        }
        if let Some(dropped) = enqueued.dropped {
            self.forget_queued(&dropped, out);
        }
        self.child_moved_on(now, row.parent.as_ref(), out);
        self.pump(now, &row.agent, out);
        let caller = parent.and_then(|id| self.executions.get(id));
        let among = [
            Some(row.agent.clone()),
            caller.map(|caller| caller.row.agent.clone()),
        ];
        self.break_deadlocks(now, among, out);
    }

    /// A new member of a paused run: it is written, and is in no queue until it is resumed. A
    /// sync caller is held like one whose call runs.
    pub(crate) fn admit_paused(
        &mut self,
        now: Timestamp,
        submission: Submission,
        lineage: Lineage,
        key: QueueKey,
        out: &mut Effects,
    ) {
        let waiter = submission.waiter;
        let sync = submission.lane == muster_wire::Lane::Sync;
        let mut execution = self.accept(now, &submission, lineage, key, out);
        execution.phase = Phase::Shelved;
        let row = Arc::make_mut(&mut execution.row);
        row.status = Status::Paused;
        row.resume_to = Some(Status::Queued);
        row.status_reason = Some(format!("{PAUSED}: its run is paused").into());
        out.writes
            .push(Write::InsertExecution(execution.row.clone()));
        if submission.input_stored.is_none() {
            out.writes.push(Write::PutPayload {
                execution: execution.row.id.clone(),
                kind: PayloadKind::Input,
                bytes: submission.input,
            });
        }
        let mut line = EventRow::of(EventKind::ExecutionPaused, now, &execution);
        line.text = Some("its run is paused".into());
        self.tell(line, out);
        Self::publish(&execution, None, None, out);
        if let Some(agent) = self.agents.get_mut(&submission.agent) {
            agent.queue.note_turn(&execution.row.run, key.turn);
        }
        if sync {
            let until = submission.received_at.max(now) + self.limits.sync_wait;
            execution.held.push(Held { waiter, until });
        } else {
            let receipt = self.receipt(now, &execution, false);
            out.replies
                .push((waiter, Reply::Accepted(Box::new(receipt))));
        }
        self.keep(execution);
    }

    /// First the run is marked, so that what joins it is paused; then its queued members are
    /// read, at or after the mark; then all open members are paused in one commit.
    pub(crate) fn tree_pause_requested(
        &mut self,
        now: Timestamp,
        wish: Box<TreePause>,
        out: &mut Effects,
    ) {
        let Some(known) = &wish.known else {
            return out.loads.push(Load::TreePause(wish));
        };
        let held = self.runs.get(&wish.run);
        let found = held
            .map(|run| (run.root.clone(), run.cancelled))
            .or_else(|| {
                known
                    .run
                    .as_ref()
                    .map(|run| (run.root.clone(), run.cancelled))
            });
        let Some((root, cancelled)) = found else {
            return out.replies.push((wish.waiter, Reply::UnknownRun));
        };
        if cancelled {
            let message = format!("run {} was cancelled", wish.run);
            let status = None;
            return out
                .replies
                .push((wish.waiter, Reply::Conflict { message, status }));
        }
        if !wish.on {
            return self.resume_tree(now, *wish, out);
        }
        let marked = held.and_then(|run| run.paused_at);
        if held.is_none() && known.queued.is_empty() {
            let message = format!("run {} has ended: nothing of it is open", wish.run);
            let status = None;
            return out
                .replies
                .push((wish.waiter, Reply::Conflict { message, status }));
        }
        if marked.is_none() && !self.paused_runs.contains(&wish.run) {
            self.mark_paused(now, &wish, root, out);
            // The read may have missed what was queued in this very batch.
            return out.loads.push(Load::TreePause(wish));
        }
        if marked.is_some_and(|marked| known.as_of < marked) || !self.recent.ends_cover(known.as_of)
        {
            return out.loads.push(Load::TreePause(wish));
        }
        self.pause_members(now, *wish, out);
    }

    fn pause_members(&mut self, now: Timestamp, wish: TreePause, out: &mut Effects) {
        for row in wish.known.map(|known| known.queued).unwrap_or_default() {
            if !self.executions.contains_key(&row.id) && self.recent.ended(&row.id).is_none() {
                self.adopt_queued(row);
            }
        }
        let text = because(&wish.by, wish.reason.as_deref());
        let mut paused = Vec::new();
        for id in self.members(&wish.run) {
            let moved = self.pause_one(now, &id, wish.reason.as_deref(), text.clone(), out);
            if moved == Ok(true) {
                paused.push(id);
            }
        }
        if let Some(run) = self.runs.get_mut(&wish.run)
            && run.paused_at.take().is_some()
        {
            self.leave_run(&wish.run);
        }
        let status = Status::Paused;
        let executions = paused;
        out.replies
            .push((wish.waiter, Reply::Moved { executions, status }));
    }

    fn mark_paused(
        &mut self,
        now: Timestamp,
        wish: &TreePause,
        root: ExecutionId,
        out: &mut Effects,
    ) {
        out.writes.push(Write::PutRun(Box::new(RunRow {
            paused_at: Some(now),
            paused_by: Some(wish.by.clone()),
            ..RunRow::unmarked(wish.run.clone(), root.clone())
        })));
        let mut line = EventRow::line(EventKind::RunPaused, now);
        line.run = Some(wish.run.clone());
        line.execution = Some(root.clone());
        line.reason.clone_from(&wish.reason);
        line.text = Some(format!("by {}", wish.by).into());
        let seq = self.tell(line, out);
        self.paused_runs.insert(wish.run.clone());
        let run = self.runs.entry(wish.run.clone()).or_insert_with(|| Run {
            root,
            cancelled: false,
            marked_at: None,
            paused_at: None,
            size: 0,
            open: 0,
        });
        // The mark itself keeps the run in memory until its members are paused.
        run.open += 1;
        run.paused_at = Some(seq);
    }

    /// Every paused member is in memory, so nothing more needs to be read.
    fn resume_tree(&mut self, now: Timestamp, wish: TreePause, out: &mut Effects) {
        let stored = wish.known.as_ref().and_then(|known| known.run.as_ref());
        let mark = self.paused_runs.remove(&wish.run)
            || (!self.runs.contains_key(&wish.run) && stored.is_some_and(|run| run.paused));
        if mark {
            out.writes.push(Write::ResumeRun(wish.run.clone()));
            let mut line = EventRow::line(EventKind::RunResumed, now);
            line.run = Some(wish.run.clone());
            line.reason.clone_from(&wish.reason);
            line.text = Some(format!("by {}", wish.by).into());
            self.tell(line, out);
        }
        let text = because(&wish.by, wish.reason.as_deref());
        let mut executions = Vec::new();
        for id in self.members(&wish.run) {
            if self.resume_one(now, &id, text.clone(), out) == Ok(true) {
                executions.push(id);
            }
        }
        let reply = if mark || !executions.is_empty() {
            Reply::Moved {
                executions,
                status: Status::Running,
            }
        } else {
            Reply::Conflict {
                message: format!("run {} is not paused", wish.run),
                status: None,
            }
        };
        out.replies.push((wish.waiter, reply));
    }

    /// Open members of a run in memory: those that were not dispatched first, in their order.
    fn members(&self, run: &RunId) -> Vec<ExecutionId> {
        let mut members: Vec<(bool, QueueKey, ExecutionId)> = self
            .executions
            .values()
            .filter(|e| e.row.run == *run)
            .map(|e| {
                let first = matches!(e.phase, Phase::Queued | Phase::Shelved);
                (!first, e.row.queue, e.row.id.clone())
            })
            .collect();
        members.sort_unstable();
        members.into_iter().map(|(_, _, id)| id).collect()
    }
}

fn because(by: &str, reason: Option<&str>) -> Arc<str> {
    match reason {
        Some(reason) => format!("by {by}: {reason}").into(),
        None => format!("by {by}").into(),
    }
}

fn not_paused_text(status: Status) -> String {
    format!("it is not paused: it is {status}")
}

fn not_paused(status: Status) -> Reply {
    Reply::Conflict {
        message: not_paused_text(status),
        status: Some(status),
    }
}
