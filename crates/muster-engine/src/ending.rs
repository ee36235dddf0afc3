//! Ends: the one place through which every execution reaches a terminal status, so that the
//! row, the event, the counters, the caller and the slot are served whatever caused it.

use std::hash::Hasher as _;
use std::sync::Arc;

use bytes::Bytes;
use muster_wire::{Category, ExecutionId, ExecutionKind, Status, Timestamp};
use rustc_hash::FxHasher;

use crate::effect::{
    Count, Effects, Ending, ExecutionChange, Notice, Reply, Send, TellCancel, Write,
};
use crate::engine::{Engine, attempt_key, attempt_secret, is_queued};
use crate::event::Outcome;
use crate::execution::{Execution, Phase};
use crate::recent::Ended;
use crate::row::{AttemptOutcome, DeliveryRow, EventKind, EventRow, Payload, PayloadKind};
use crate::start::Launch;

/// How long an observed execution may outlive its parent.
const OBSERVED_AFTER_PARENT: std::time::Duration = std::time::Duration::from_secs(60);

/// How an execution ends.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) attempt: AttemptOutcome,
}

impl End {
    /// As its agent said.
    pub(crate) fn said(outcome: Outcome) -> Self {
        Self {
            outcome,
            attempt: AttemptOutcome::Answered,
        }
    }

    fn ours(status: Status, category: Category, text: String) -> Self {
        let reason = Some(Arc::from(category.word()));
        Self {
            outcome: Outcome {
                status,
                result: None,
                result_stored: None,
                error: Some(Payload(Bytes::from(text))),
                details: None,
                category: Some(category),
                reason,
                http_status: None,
                usage: None,
            },
            attempt: AttemptOutcome::Disowned,
        }
    }

    /// Failed, by our own finding.
    pub(crate) fn failed(category: Category, text: impl Into<String>) -> Self {
        Self::ours(Status::Failed, category, text.into())
    }

    /// Timed out, by one of the clocks.
    pub(crate) fn timeout(category: Category, text: impl Into<String>) -> Self {
        Self::ours(Status::Timeout, category, text.into())
    }

    /// Cancelled.
    pub(crate) fn cancelled(by: &str, reason: Option<&str>) -> Self {
        let text = match reason {
            Some(reason) => format!("cancelled by {by}: {reason}"),
            None => format!("cancelled by {by}"),
        };
        Self::ours(Status::Cancelled, Category::Cancelled, text)
    }

    /// With another word for the attempt.
    pub(crate) fn attempt(mut self, outcome: AttemptOutcome) -> Self {
        self.attempt = outcome;
        self
    }

    /// With another reason.
    pub(crate) fn reason(mut self, reason: &str) -> Self {
        self.outcome.reason = Some(reason.into());
        self
    }
}

impl Engine {
    /// Ends an execution that was taken out of the map.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        end: End,
        out: &mut Effects,
    ) {
        self.disarm(&mut execution);
        let paused = execution.row.status == Status::Paused;
        let End {
            outcome,
            attempt: attempt_outcome,
        } = end;
        if is_queued(&execution) && !execution.unwritten {
            self.unqueue(&execution);
        }
        if matches!(execution.phase, Phase::Observed { .. }) {
            self.observed -= 1;
        }
        let result_size = match (&outcome.result, outcome.result_stored) {
            (_, Some(size)) => Some(size),
            (Some(result), None) => Some(result.len() as u64),
            (None, None) => None,
        };
        let active_us = execution.active_us(now);
        let attempt = attempt_key(&execution);
        let proof = execution.attempt().map(|a| (a.n, a.proof));
        let was_on_ramp = execution.attempt().is_some_and(|a| a.on_ramp);
        let instance = execution.attempt().map(|a| a.instance.clone());
        let row = Arc::make_mut(&mut execution.row);
        row.status = outcome.status;
        row.status_reason.clone_from(&outcome.reason);
        row.error_category.clone_from(&outcome.category);
        row.error_text.clone_from(&outcome.error);
        row.error_status = outcome.http_status;
        row.ended_at = Some(now);
        row.active_us = active_us;
        row.clock_from = None;
        row.absorb_until = None;
        row.wait = None;
        row.resume_to = None;
        row.result_size = result_size;
        row.usage.clone_from(&outcome.usage);
        let ended = Write::UpdateExecution {
            id: row.id.clone(),
            change: ExecutionChange::Ended(Box::new(Ending {
                status: outcome.status,
                reason: outcome.reason,
                category: outcome.category,
                error: outcome.error,
                http_status: outcome.http_status,
                at: now,
                active_us,
                result_size,
                usage: outcome.usage,
            })),
        };
        out.writes.push(if execution.unwritten {
            Write::InsertExecution(execution.row.clone())
        } else {
            ended
        });
        if let Some(attempt) = attempt {
            out.writes.push(Write::EndAttempt {
                attempt,
                at: now,
                outcome: attempt_outcome,
                evidence: None,
            });
        }
        if let (Some(result), None) = (&outcome.result, outcome.result_stored) {
            out.writes.push(Write::PutPayload {
                execution: execution.row.id.clone(),
                kind: PayloadKind::Result,
                bytes: result.clone(),
            });
        }
        if let Some(details) = &outcome.details {
            out.writes.push(Write::PutPayload {
                execution: execution.row.id.clone(),
                kind: PayloadKind::ErrorDetails,
                bytes: details.clone(),
            });
        }
        let kind = match execution.row.status {
            Status::Succeeded => EventKind::ExecutionSucceeded,
            Status::Cancelled => EventKind::ExecutionCancelled,
            Status::Timeout => EventKind::ExecutionTimedOut,
            Status::Failed
            | Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused => EventKind::ExecutionFailed,
        };
        let mut line = EventRow::of(kind, now, &execution);
        line.instance.clone_from(&instance);
        let seq = self.tell(line, out);
        out.writes.extend(DeliveryRow::of(seq, now, &execution.row));
        let result = outcome.result.filter(|_| outcome.result_stored.is_none());
        let view = Self::publish(&execution, result, outcome.details, out);
        for held in &execution.held {
            out.replies.push((held.waiter, Reply::Ended(view.clone())));
        }
        let row = &execution.row;
        if row.kind == ExecutionKind::Dispatched {
            out.notices.push(Notice::Count(Count::Ended {
                lane: row.lane,
                status: row.status,
                category: row.error_category.clone(),
                took_us: u64::try_from(now.0 - row.created_at.0).unwrap_or(0),
            }));
        }
        self.recent.end(
            seq,
            row.id.clone(),
            Ended {
                status: row.status,
                proof,
                run: row.run.clone(),
                late: false,
                result: view.result.as_ref().map(result_hash),
            },
        );
        self.free(&execution, instance.as_ref());
        self.let_observed_children_go(now, &row.id);
        let ended = format!("the execution ended: {}", row.status);
        self.close_approval(now, &row.id, &ended, out);
        if paused {
            self.leave_untold(now, &row.id, out);
        }
        let (agent, run) = (row.agent.clone(), row.run.clone());
        self.lose_child(row);
        self.leave_run(&run);
        if was_on_ramp {
            self.release_absorbed(now, &agent, out);
        }
        self.end_children(now, &execution, seq, out);
        self.child_moved_on(now, execution.row.parent.as_ref(), out);
        self.pump(now, &agent, out);
    }

    /// Gives back what an execution held.
    fn free(&mut self, execution: &Execution, instance: Option<&muster_wire::InstanceId>) {
        let row = &execution.row;
        let Some(agent) = self.agents.get_mut(&row.agent) else {
            return;
        };
        agent.holders.remove(&row.id);
        agent.waiters.remove(&row.id);
        agent.absorbed.remove(&row.queue.seq);
        if let Some(instance) = instance.and_then(|id| agent.instance_mut(id))
            && let Some(attempt) = execution.attempt()
        {
            instance.facts.in_flight = instance.facts.in_flight.saturating_sub(1);
            if attempt.on_ramp {
                instance.off_the_ramp(false);
            }
        }
    }

    fn let_observed_children_go(&mut self, now: Timestamp, parent: &ExecutionId) {
        if self.observed == 0 {
            return;
        }
        let children: Vec<ExecutionId> = self
            .executions
            .values()
            .filter(|e| {
                e.row.parent.as_ref() == Some(parent) && matches!(e.phase, Phase::Observed { .. })
            })
            .map(|e| e.row.id.clone())
            .collect();
        for id in children {
            if let Some(mut child) = self.take(&id) {
                if let Phase::Observed { ends_at, .. } = &mut child.phase {
                    ends_at.get_or_insert(now + OBSERVED_AFTER_PARENT);
                }
                self.keep(child);
            }
        }
    }

    /// Ends an execution whose outcome nobody knows, or runs it again when its function allows.
    pub(crate) fn end_unknown(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        category: Category,
        text: String,
        attempt: AttemptOutcome,
        out: &mut Effects,
    ) {
        let again = execution.idempotent
            && execution.reruns < self.limits.reruns_max
            && !execution.disowned;
        if !again {
            return self.end(
                now,
                execution,
                End::failed(category, text).attempt(attempt),
                out,
            );
        }
        execution.reruns += 1;
        // The next attempt makes its calls from the first on.
        execution.equal_calls = None;
        if let Some(key) = attempt_key(&execution) {
            out.writes.push(Write::EndAttempt {
                attempt: key,
                at: now,
                outcome: attempt,
                evidence: Some(Payload(Bytes::from(text))),
            });
        }
        let instance = execution.attempt().map(|a| a.instance.clone());
        let kept_slot = execution.holds_slot();
        self.free(&execution, instance.as_ref());
        if !kept_slot {
            // It waited without one, and takes one again whether or not there is room.
            let over_cap = self.is_full(&execution.row.agent);
            Arc::make_mut(&mut execution.row).over_cap = over_cap;
        }
        self.close_approval(
            now,
            &execution.row.id,
            "its attempt ended, and it is sent again",
            out,
        );
        if execution.row.status == Status::Paused {
            self.leave_untold(now, &execution.row.id, out);
        }
        self.launch(now, execution, Launch::Stored, out);
    }

    /// Takes back a call that was decided in the same batch and has not gone out: what is
    /// disowned by now must not reach its agent. `true` when there was one.
    fn take_back(&self, execution: &Execution, out: &mut Effects) -> bool {
        let Some(attempt) = execution.attempt() else {
            return false;
        };
        // A batch has one moment.
        if attempt.sent_at != self.now {
            return false;
        }
        let before = out.sends.len();
        out.sends.retain(|send| match send {
            Send::Dispatch(dispatch) => {
                dispatch.attempt.n != attempt.n || dispatch.attempt.execution != execution.row.id
            }
            _ => true,
        });
        out.sends.len() < before
    }

    /// Tells the agent that an execution is no longer wanted, as far as it can be told.
    pub(crate) fn tell_cancel(
        &self,
        execution: &Execution,
        reason: &str,
        out: &mut Effects,
    ) -> bool {
        let row = &execution.row;
        if self.take_back(execution, out) {
            return false;
        }
        let Some(attempt) = execution.attempt() else {
            return false;
        };
        let Some(instance) = self
            .agents
            .get(&row.agent)
            .and_then(|agent| agent.instance(&attempt.instance))
        else {
            return false;
        };
        if instance.facts.base_url.is_empty() || instance.facts.gone.is_some() {
            return false;
        }
        out.sends.push(Send::TellCancel(Box::new(TellCancel {
            attempt: crate::event::AttemptKey {
                execution: row.id.clone(),
                n: attempt.n,
            },
            secret: attempt_secret(&self.secret_key, &row.id, attempt.n),
            run: row.run.clone(),
            to: instance.facts.key.clone(),
            base_url: instance.facts.base_url.clone(),
            kind: row.function_kind,
            reason: reason.into(),
        })));
        true
    }

    /// Something about an open execution is due: a deadline, a wait, a held caller.
    pub(crate) fn execution_due(&mut self, now: Timestamp, id: &ExecutionId, out: &mut Effects) {
        let Some(mut execution) = self.take(id) else {
            return;
        };
        execution.armed = None;
        if execution.deadline_at().is_some_and(|at| at <= now) {
            self.tell_cancel(&execution, "deadline", out);
            let seconds = execution.row.deadline_us / 1_000_000;
            let text = format!("it was active for its deadline of {seconds} s");
            return self.end(
                now,
                execution,
                End::timeout(Category::AgentTimeout, text).reason("deadline"),
                out,
            );
        }
        match &mut execution.phase {
            Phase::Queued => {
                if self
                    .limits
                    .queue_timeout
                    .is_some_and(|wait| execution.queued_from + wait <= now)
                {
                    let text = "no slot became free within executions.queue_timeout";
                    let end =
                        End::timeout(Category::ConcurrencyLimit, text).reason("queue_timeout");
                    return self.end(now, execution, end, out);
                }
            }
            Phase::Shelved => {}
            Phase::Absorbed { until } => {
                if *until <= now {
                    self.keep(execution);
                    return self.absorption_ran_out(now, id, out);
                }
            }
            Phase::Sent(attempt) | Phase::Accepted(attempt) => {
                if attempt.recover_until.is_some_and(|at| at <= now) {
                    let text = "the plane stopped while it was being sent, and nothing was heard of it since";
                    let category = Category::OutcomeUnknown;
                    return self.end_unknown(
                        now,
                        execution,
                        category,
                        text.into(),
                        AttemptOutcome::Unknown,
                        out,
                    );
                }
            }
            Phase::Observed { ends_at, .. } => {
                if ends_at.is_some_and(|at| at <= now) {
                    let text = "its caller ended a minute ago, and it was never reported to end";
                    return self.end(
                        now,
                        execution,
                        End::failed(Category::OutcomeUnknown, text),
                        out,
                    );
                }
            }
        }
        let expired = execution
            .row
            .wait
            .as_ref()
            .and_then(|wait| wait.until)
            .is_some_and(|at| at <= now);
        let row = &execution.row;
        execution.held.retain(|held| {
            let over = held.until <= now;
            if over {
                let still = Reply::StillRunning {
                    execution: row.id.clone(),
                    run: row.run.clone(),
                    shutdown: false,
                };
                out.replies.push((held.waiter, still));
            }
            !over
        });
        self.keep(execution);
        if expired {
            self.approval_ran_out(now, id, out);
        }
    }

    /// The last moment of a shutdown: whoever is still held is answered, and what cannot go on
    /// without this process ends.
    pub(crate) fn shut_down_one(&mut self, now: Timestamp, id: &ExecutionId, out: &mut Effects) {
        let Some(mut execution) = self.take(id) else {
            return;
        };
        let skill = execution.row.function_kind == muster_wire::FunctionKind::Skill;
        match &execution.phase {
            Phase::Sent(_) if skill && !execution.idempotent => {
                let text = "the plane was shut down while the agent was answering";
                return self.end(
                    now,
                    execution,
                    End::failed(Category::OutcomeUnknown, text).attempt(AttemptOutcome::Unknown),
                    out,
                );
            }
            Phase::Absorbed { .. } if !execution.held.is_empty() => {
                let text = "the plane was shut down before the agent came back; it was never sent";
                return self.end(
                    now,
                    execution,
                    End::failed(Category::ControlPlaneShutdown, text),
                    out,
                );
            }
            Phase::Queued
            | Phase::Shelved
            | Phase::Absorbed { .. }
            | Phase::Sent(_)
            | Phase::Accepted(_)
            | Phase::Observed { .. } => {}
        }
        let row = &execution.row;
        for held in execution.held.drain(..) {
            let still = Reply::StillRunning {
                execution: row.id.clone(),
                run: row.run.clone(),
                shutdown: true,
            };
            out.replies.push((held.waiter, still));
        }
        self.keep(execution);
    }
}

/// Names a result by a hash that only tells it from another one.
pub(crate) fn result_hash(result: &Payload) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(&result.0);
    hasher.finish()
}
