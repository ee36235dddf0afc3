//! Answers and callbacks: what an agent said about an attempt, and what proves that it did.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_wire::{AttemptRef, Category, ExecutionKind, SecretHash, Status, Timestamp};

use crate::agent::Gate;
use crate::effect::{Count, Effects, ExecutionChange, Load, Notice, Reply, Send, Write};
use crate::ending::{End, result_hash};
use crate::engine::{Engine, attempt_key};
use crate::event::{AttemptKey, Callback, Outcome};
use crate::execution::{Execution, Phase};
use crate::liveness::InstanceState;
use crate::row::{AttemptOutcome, EventKind, EventRow, Payload, PayloadKind};
use crate::start::Launch;

/// How old the facts of an instance that answers may be where they are shown.
const TOLD_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Takes out the execution whose live attempt this is.
    fn take_attempt(&mut self, key: &AttemptKey) -> Option<Box<Execution>> {
        let live = self.executions.get(&key.execution)?.attempt()?.n == key.n;
        if live {
            self.take(&key.execution)
        } else {
            None
        }
    }

    /// Whether a message proves that it comes from the live attempt of an execution.
    pub(crate) fn proves(&self, execution: &Execution, proof: Option<(u32, SecretHash)>) -> bool {
        let Some((n, secret)) = proof else {
            return false;
        };
        match execution.attempt() {
            Some(attempt) => attempt.n == n && attempt.proof == secret,
            // What runs inside an agent's process has the attempt 0.
            None => {
                execution.row.kind == ExecutionKind::Observed
                    && n == 0
                    && crate::engine::attempt_secret(&self.secret_key, &execution.row.id, 0).hash()
                        == secret
            }
        }
    }

    pub(crate) fn answered(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        mut outcome: Outcome,
        out: &mut Effects,
    ) {
        self.got_through(now, key, true, out);
        let Some(execution) = self.take_attempt(key) else {
            return;
        };
        if outcome.status == Status::Failed
            && outcome.category == Some(Category::AgentError)
            && let Some(reported) = &execution.reported_error
        {
            // A skill's exception: the answer is a bare 500, the event has the text.
            outcome.error = Some(reported.clone());
        }
        self.end(now, execution, End::said(Self::read_reason(outcome)), out);
    }

    /// The agent's own shutdown is not a person's cancel.
    fn read_reason(mut outcome: Outcome) -> Outcome {
        match outcome.status {
            Status::Cancelled => {
                outcome.category.get_or_insert(Category::Cancelled);
                let shutdown = outcome
                    .reason
                    .as_deref()
                    .is_some_and(|reason| reason.starts_with("shutdown"));
                if shutdown {
                    outcome.reason = Some("agent_shutdown_cancelled".into());
                }
            }
            Status::Timeout => {
                outcome.category.get_or_insert(Category::AgentTimeout);
            }
            Status::Failed => {
                outcome.category.get_or_insert(Category::AgentError);
            }
            Status::Succeeded
            | Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused => {}
        }
        if let (None, Some(category)) = (&outcome.reason, &outcome.category) {
            outcome.reason = Some(category.word().into());
        }
        outcome
    }

    pub(crate) fn accepted(&mut self, now: Timestamp, key: &AttemptKey, out: &mut Effects) {
        self.got_through(now, key, true, out);
        let Some(mut execution) = self.take_attempt(key) else {
            return;
        };
        self.mark_accepted(now, &mut execution, out);
        self.keep(execution);
    }

    pub(crate) fn mark_accepted(
        &mut self,
        now: Timestamp,
        execution: &mut Execution,
        out: &mut Effects,
    ) {
        if let Phase::Sent(attempt) = &execution.phase {
            let mut attempt = attempt.clone();
            attempt.recover_until = None;
            out.writes.push(Write::AcceptAttempt {
                attempt: AttemptKey {
                    execution: execution.row.id.clone(),
                    n: attempt.n,
                },
                at: now,
            });
            execution.phase = Phase::Accepted(attempt);
        }
    }

    /// A call reached its instance: the dial failures are over, and the ramp widens. An exchange
    /// that ended is a sign of life; a time-out is none.
    fn got_through(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        exchanged: bool,
        out: &mut Effects,
    ) {
        let Some(execution) = self.executions.get_mut(&key.execution) else {
            return;
        };
        let (Phase::Sent(attempt) | Phase::Accepted(attempt)) = &mut execution.phase else {
            return;
        };
        if attempt.n != key.n {
            return;
        };
        let on_ramp = std::mem::take(&mut attempt.on_ramp);
        let Some(agent) = self.agents.get_mut(&execution.row.agent) else {
            return;
        };
        let nobody_waits = agent.absorbed.is_empty();
        let Some(instance) = agent.instance_mut(&attempt.instance) else {
            return;
        };
        if exchanged {
            instance.facts.exchange_at = Some(now);
        }
        if instance.facts.dial_failed.is_none() && instance.gate == Gate::Open {
            // What the shell shows of it must not be older than what admission goes by.
            let differs = instance.told != InstanceState::Active;
            if exchanged && (differs || now.since(instance.told_at) >= TOLD_EVERY) {
                let id = execution.row.agent.clone();
                self.tell_instances(now, &id, out);
            }
            return;
        }
        instance.facts.dial_failed = None;
        instance.facts.dial_failing_since = None;
        instance.facts.wait_ran_out_at = None;
        if on_ramp {
            instance.off_the_ramp(true);
        }
        if nobody_waits && matches!(instance.gate, Gate::Ramp { .. }) {
            instance.gate = Gate::Open;
        }
        let id = execution.row.agent.clone();
        self.tell_instances(now, &id, out);
        self.release_absorbed(now, &id, out);
        self.pump(now, &id, out);
    }

    /// The connection of a call stands: whoever waits behind it need not wait for its answer.
    pub(crate) fn taken(&mut self, now: Timestamp, key: &AttemptKey, out: &mut Effects) {
        self.got_through(now, key, false, out);
    }

    pub(crate) fn dial_failed(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        error: Arc<str>,
        out: &mut Effects,
    ) {
        self.not_sent(now, key, error, true, out);
    }

    /// A call was taken back before it was sent: that says nothing about its instance.
    pub(crate) fn taken_back(&mut self, now: Timestamp, key: &AttemptKey, out: &mut Effects) {
        self.not_sent(now, key, "taken back before it was sent".into(), false, out);
    }

    /// No byte reached the agent; `failed` when that is a fact about its instance.
    fn not_sent(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        error: Arc<str>,
        failed: bool,
        out: &mut Effects,
    ) {
        let Some(mut execution) = self.take_attempt(key) else {
            return;
        };
        let Some(attempt) = execution.attempt().cloned() else {
            return;
        };
        if matches!(execution.phase, Phase::Accepted(_)) {
            // It gave a sign of its own: whatever failed, this call reached its agent.
            return self.keep(execution);
        }
        self.close_approval(now, &execution.row.id, "never sent", out);
        if execution.row.status == Status::Paused {
            self.leave_untold(now, &execution.row.id, out);
        }
        out.writes.push(Write::EndAttempt {
            attempt: key.clone(),
            at: now,
            outcome: AttemptOutcome::DialFailed,
            evidence: Some(Payload(Bytes::copy_from_slice(error.as_bytes()))),
        });
        if failed {
            execution.last_dial = Some(error.clone());
        }
        if !execution.holds_slot() {
            // It waited without one, and takes one again whether or not there is room.
            let over_cap = self.is_full(&execution.row.agent);
            Arc::make_mut(&mut execution.row).over_cap = over_cap;
        }
        let id = execution.row.agent.clone();
        if let Some(agent) = self.agents.get_mut(&id) {
            agent.holders.remove(&execution.row.id);
            agent.waiters.remove(&execution.row.id);
            if let Some(instance) = agent.instance_mut(&attempt.instance) {
                instance.facts.in_flight = instance.facts.in_flight.saturating_sub(1);
                if failed {
                    instance.facts.dial_failed = Some((now, error));
                    instance.facts.dial_failing_since.get_or_insert(now);
                    Self::close_gate(instance);
                    out.sends.push(Send::CloseIdle(instance.facts.key.clone()));
                } else if attempt.on_ramp {
                    instance.off_the_ramp(false);
                }
            }
        }
        if !failed {
            self.launch(now, execution, Launch::Stored, out);
            self.release_absorbed(now, &id, out);
            return;
        }
        let key = crate::event::InstanceKey {
            agent: id.clone(),
            instance: attempt.instance.clone(),
        };
        self.seek(now, &key, out);
        self.tell_instances(now, &id, out);
        self.launch(
            now,
            execution,
            Launch::Moved {
                from: attempt.instance,
            },
            out,
        );
    }

    pub(crate) fn broke(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        error: &str,
        out: &mut Effects,
    ) {
        let Some(execution) = self.take_attempt(key) else {
            return;
        };
        if matches!(execution.phase, Phase::Accepted(_)) {
            // It gave a sign of its own before the connection broke: its callback will come.
            return self.keep(execution);
        }
        let text = format!("the connection broke after the call was sent: {error}");
        self.end_unknown(
            now,
            execution,
            Category::OutcomeUnknown,
            text,
            AttemptOutcome::Broke,
            out,
        );
    }

    pub(crate) fn timed_out(&mut self, now: Timestamp, key: &AttemptKey, out: &mut Effects) {
        let Some(execution) = self.take_attempt(key) else {
            return;
        };
        if matches!(execution.phase, Phase::Accepted(_)) {
            return self.keep(execution);
        }
        self.keep(execution);
        self.got_through(now, key, false, out);
        let Some(execution) = self.take_attempt(key) else {
            return;
        };
        self.tell_cancel(&execution, "call_timeout", out);
        let text = "the agent did not answer within agents.call_timeout";
        let end = End::timeout(Category::AgentTimeout, text)
            .reason("call_timeout")
            .attempt(AttemptOutcome::TimedOut);
        self.end(now, execution, end, out);
    }

    /// A log, a note or a child: the agent has it.
    pub(crate) fn signed(&mut self, now: Timestamp, from: &AttemptRef, out: &mut Effects) {
        let Some(execution) = self.executions.get(&from.execution) else {
            return;
        };
        if !self.proves(execution, from.proof) {
            return out.notices.push(Notice::Count(Count::Unproved));
        }
        if !matches!(execution.phase, Phase::Sent(_)) {
            return;
        }
        if let Some(mut execution) = self.take(&from.execution) {
            if execution.row.function_kind == muster_wire::FunctionKind::Reasoner {
                self.mark_accepted(now, &mut execution, out);
            }
            self.keep(execution);
        }
    }

    pub(crate) fn called_back(
        &mut self,
        now: Timestamp,
        callback: Box<Callback>,
        out: &mut Effects,
    ) {
        let id = &callback.from.execution;
        let Some(execution) = self.executions.get(id) else {
            return self.called_back_after(now, callback, out);
        };
        let by_key = callback.key_agent.as_ref() == Some(&execution.row.agent);
        let proved = self.proves(execution, callback.from.proof)
            || (by_key && execution.attempt().is_some());
        if !proved {
            out.notices.push(Notice::Count(Count::Unproved));
            return out.replies.push((callback.waiter, Reply::WrongAttempt));
        }
        if let Some(key) = attempt_key(execution) {
            self.got_through(now, &key, true, out);
        }
        let Some(mut execution) = self.take(&callback.from.execution) else {
            return;
        };
        out.replies.push((callback.waiter, Reply::CallbackTaken));
        if callback.outcome.status.is_terminal() {
            self.end(
                now,
                execution,
                End::said(Self::read_reason(*callback.outcome)),
                out,
            );
        } else {
            self.mark_accepted(now, &mut execution, out);
            self.keep(execution);
        }
    }

    /// A callback for something that is not open here: ended, queued, or unknown.
    fn called_back_after(&mut self, now: Timestamp, callback: Box<Callback>, out: &mut Effects) {
        let id = callback.from.execution.clone();
        if let Some(ended) = self.recent.ended(&id).cloned() {
            let proved = callback.from.proof.is_some() && callback.from.proof == ended.proof;
            return self.repeated(now, *callback, ended.status, proved && !ended.late, out);
        }
        let Some((as_of, row)) = &callback.known else {
            return out.loads.push(Load::Callback(callback));
        };
        if !self.recent.ends_cover(*as_of) {
            return out.loads.push(Load::Callback(callback));
        }
        match row {
            None => out.replies.push((callback.waiter, Reply::UnknownExecution)),
            Some(row) if row.status.is_terminal() => {
                let status = row.status;
                self.repeated(now, *callback, status, false, out);
            }
            Some(_) => {
                out.notices.push(Notice::Count(Count::Unproved));
                out.replies.push((callback.waiter, Reply::WrongAttempt));
            }
        }
    }

    /// The same again changes nothing; another outcome is kept for people to see.
    fn repeated(
        &mut self,
        now: Timestamp,
        callback: Callback,
        status: Status,
        keep: bool,
        out: &mut Effects,
    ) {
        let said = callback.outcome.status;
        let known = self
            .recent
            .ended(&callback.from.execution)
            .and_then(|ended| ended.result);
        let other = match (known, &callback.outcome.result) {
            (Some(known), Some(result)) => known != result_hash(result),
            _ => false,
        };
        if (said == status && !other) || !said.is_terminal() {
            return out.replies.push((callback.waiter, Reply::CallbackRepeated));
        }
        if keep {
            let id = callback.from.execution;
            if let Some(ended) = self.recent.ended_mut(&id) {
                ended.late = true;
            }
            out.writes.push(Write::UpdateExecution {
                id: id.clone(),
                change: ExecutionChange::Late { status: said },
            });
            out.notices.push(Notice::Late {
                execution: id.clone(),
                status: said,
            });
            if let Some(error) = callback.outcome.error
                && callback.outcome.result.is_none()
            {
                out.writes.push(Write::PutPayload {
                    execution: id.clone(),
                    kind: PayloadKind::Late,
                    bytes: error,
                });
            }
            if let (Some(result), None) = (callback.outcome.result, callback.outcome.result_stored)
            {
                out.writes.push(Write::PutPayload {
                    execution: id.clone(),
                    kind: PayloadKind::Late,
                    bytes: result,
                });
            }
            let mut line = EventRow::line(EventKind::ExecutionLateOutcome, now);
            line.run = self.recent.ended(&id).map(|ended| ended.run.clone());
            line.execution = Some(id);
            line.status = Some(said);
            line.text = Some(format!("it said {said} after the end, which stays {status}").into());
            self.tell(line, out);
        }
        out.replies
            .push((callback.waiter, Reply::CallbackLate { status }));
    }

    /// What became of a cancel at the agent.
    pub(crate) fn cancel_told(
        &mut self,
        now: Timestamp,
        key: &AttemptKey,
        receipt: &crate::event::CancelReceipt,
        out: &mut Effects,
    ) {
        let mut line = EventRow::line(EventKind::ExecutionCancelReceipt, now);
        line.run = self
            .recent
            .ended(&key.execution)
            .map(|ended| ended.run.clone());
        line.execution = Some(key.execution.clone());
        line.attempt = Some(key.n);
        line.reason = Some(receipt.word().into());
        line.text = match receipt {
            crate::event::CancelReceipt::StillRunning(text)
            | crate::event::CancelReceipt::NotTold(text) => Some(text.clone()),
            crate::event::CancelReceipt::Stopped | crate::event::CancelReceipt::NotActive => None,
        };
        self.tell(line, out);
    }
}
