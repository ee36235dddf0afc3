//! Approvals: an agent asks, a person decides or the time for it runs out, the execution goes
//! on, and only then the agent is told. Knows no address and no signature.

use std::sync::Arc;

use muster_wire::{
    Decision, ExecutionId, ExecutionKind, FunctionKind, Status, Timestamp, WaitCause,
};
use rustc_hash::FxHashMap;

use crate::effect::{Count, Effects, Load, Notice, Reply, Send, TellApproval, Write};
use crate::ending::End;
use crate::engine::{Engine, attempt_secret};
use crate::event::{ApprovalAsk, AttemptKey, Verdict};
use crate::execution::Execution;
use crate::recovery::Outage;
use crate::row::{ApprovalRow, EventKind, EventRow, Payload, Wait};

/// What `told` says of an approval whose agent named no address: it asks by itself.
pub(crate) const NOBODY_TO_TELL: &str = "not asked for: the agent named no callback_url and polls";
/// Who decides when nobody does.
const EXPIRY: &str = "expiry";

/// Approvals that are pending, and decided ones whose agent has not been told.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    rows: FxHashMap<ExecutionId, Vec<ApprovalRow>>,
    /// Number of the latest event that changed one: an older read cannot decide.
    changed_at: u64,
}

impl Approvals {
    pub(crate) fn all(&self) -> impl Iterator<Item = &ApprovalRow> {
        self.rows.values().flatten()
    }

    /// Those of one execution, oldest first.
    pub(crate) fn of(&self, id: &ExecutionId) -> &[ApprovalRow] {
        self.rows.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The one an execution waits for.
    pub(crate) fn pending(&self, id: &ExecutionId) -> Option<&ApprovalRow> {
        self.of(id).iter().find(|row| is_pending(row))
    }

    pub(crate) fn keep(&mut self, row: ApprovalRow) {
        self.rows
            .entry(row.execution.clone())
            .or_default()
            .push(row);
    }

    fn take(
        &mut self,
        id: &ExecutionId,
        fits: impl Fn(&ApprovalRow) -> bool,
    ) -> Option<ApprovalRow> {
        let rows = self.rows.get_mut(id)?;
        let at = rows.iter().position(fits)?;
        let row = rows.remove(at);
        if rows.is_empty() {
            self.rows.remove(id);
        }
        Some(row)
    }
}

/// Whether nobody has decided and it is not closed.
pub(crate) fn is_pending(row: &ApprovalRow) -> bool {
    row.decided_at.is_none()
}

/// The reason word of an execution that goes on after a decision.
pub(crate) fn reason_after(decision: Decision) -> Arc<str> {
    format!("approval_{}", decision.word()).into()
}

/// What was decided, and by whom.
struct Decided {
    decision: Decision,
    by: Arc<str>,
    feedback: Option<Payload>,
    response: Option<Payload>,
}

impl Engine {
    pub(crate) fn approval_asked(
        &mut self,
        now: Timestamp,
        ask: Box<ApprovalAsk>,
        out: &mut Effects,
    ) {
        let id = &ask.from.execution;
        let Some(execution) = self.executions.get(id) else {
            return self.asked_after(ask, out);
        };
        let row = &execution.row;
        let by_key = ask.key_agent.as_ref() == Some(&row.agent);
        let there = execution.attempt().is_some() || row.kind == ExecutionKind::Observed;
        let proved = self.proves(execution, ask.from.proof) || (by_key && there);
        if !proved || row.agent != ask.agent {
            out.notices.push(Notice::Count(Count::Unproved));
            return out.replies.push((ask.waiter, Reply::WrongAttempt));
        }
        let same = |row: &&ApprovalRow| row.request == ask.request && is_pending(row);
        if let Some(row) = self.approvals.of(id).iter().find(same) {
            let row = Box::new(row.clone());
            return out.replies.push((ask.waiter, Reply::ApprovalPending(row)));
        }
        let Some((as_of, _)) = ask.known else {
            return out.loads.push(Load::ApprovalAsk(ask));
        };
        if ask.earlier.as_deref().is_some_and(is_pending) && as_of < self.approvals.changed_at {
            return out.loads.push(Load::ApprovalAsk(ask));
        }
        if let Some(pending) = self.approvals.pending(id) {
            let message = format!(
                "the execution waits for the approval {:?} already; it can wait for one at a time",
                pending.request
            );
            let status = Some(execution.row.status);
            return out
                .replies
                .push((ask.waiter, Reply::Conflict { message, status }));
        }
        // Asked again after a decision, it is a new round: the agent waits for a new one, and what
        // becomes of telling it of the old one does not matter any more.
        let request = ask.request.clone();
        self.approvals.take(id, |row| row.request == request);
        let Some(execution) = self.take(id) else {
            return;
        };
        self.ask_person(now, execution, *ask, out);
    }

    fn ask_person(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        ask: ApprovalAsk,
        out: &mut Effects,
    ) {
        if execution.row.function_kind == FunctionKind::Reasoner {
            self.mark_accepted(now, &mut execution, out);
        }
        let row = &execution.row;
        let approval = ApprovalRow {
            execution: row.id.clone(),
            request: ask.request.clone(),
            run: row.run.clone(),
            agent: row.agent.clone(),
            attempt: row.attempt,
            request_url: ask.request_url,
            callback_url: ask.callback_url,
            requested_at: now,
            expires_at: now + ask.expires_in,
            decision: None,
            decided_at: None,
            decided_by: None,
            feedback: None,
            response: None,
            told: None,
        };
        let wait = Wait {
            cause: WaitCause::Approval,
            reference: ask.request,
            until: Some(approval.expires_at),
        };
        let mut line = about(EventKind::ApprovalRequested, now, &approval);
        line.status = Some(Status::Waiting);
        self.put_approval(approval.clone(), line, out);
        self.approvals.keep(approval.clone());
        self.begin_wait(now, execution, wait, out);
        let pending = Reply::ApprovalPending(Box::new(approval));
        out.replies.push((ask.waiter, pending));
    }

    /// Writes an approval and tells of it.
    fn put_approval(&mut self, row: ApprovalRow, line: EventRow, out: &mut Effects) {
        out.writes.push(Write::PutApproval(Box::new(row)));
        self.approvals.changed_at = self.tell(line, out);
    }

    /// A wish of what is not open here: ended, queued, or unknown.
    fn asked_after(&self, ask: Box<ApprovalAsk>, out: &mut Effects) {
        if let Some(ended) = self.recent.ended(&ask.from.execution) {
            let status = ended.status;
            return out
                .replies
                .push((ask.waiter, Reply::AlreadyEnded { status }));
        }
        let reply = match &ask.known {
            Some((as_of, row)) if self.recent.ends_cover(*as_of) => match row {
                None => Reply::UnknownExecution,
                Some(row) if row.status.is_terminal() => Reply::AlreadyEnded { status: row.status },
                Some(_) => Reply::WrongAttempt,
            },
            _ => return out.loads.push(Load::ApprovalAsk(ask)),
        };
        out.replies.push((ask.waiter, reply));
    }

    pub(crate) fn approval_decided(
        &mut self,
        now: Timestamp,
        verdict: Box<Verdict>,
        out: &mut Effects,
    ) {
        let request = verdict.request.as_deref();
        let fits = |row: &&ApprovalRow| {
            is_pending(row) && request.is_none_or(|request| *row.request == *request)
        };
        let name = |row: &ApprovalRow| (row.execution.clone(), row.request.clone());
        let mut fitting: Vec<_> = match &verdict.execution {
            Some(id) => self
                .approvals
                .of(id)
                .iter()
                .filter(fits)
                .map(name)
                .collect(),
            None => self.approvals.all().filter(fits).map(name).collect(),
        };
        if fitting.len() > 1 {
            fitting.sort();
            return out
                .replies
                .push((verdict.waiter, Reply::Ambiguous(fitting)));
        }
        let Some((id, request)) = fitting.pop() else {
            return self.decided_before(verdict, out);
        };
        let decided = Decided {
            decision: verdict.decision,
            by: verdict.by,
            feedback: verdict.feedback,
            response: verdict.response,
        };
        let Some(approval) = self.decide(now, &id, &request, decided, out) else {
            return;
        };
        let status = self.executions.get(&id).map(|e| e.row.status);
        out.replies.push((
            verdict.waiter,
            Reply::Decided {
                approval: Box::new(approval),
                status,
                repeated: false,
            },
        ));
    }

    /// Nothing that fits is pending: the same decision again is fine, another one is not.
    fn decided_before(&self, verdict: Box<Verdict>, out: &mut Effects) {
        let Some((as_of, rows)) = &verdict.known else {
            return out.loads.push(Load::Verdict(verdict));
        };
        if *as_of < self.approvals.changed_at {
            return out.loads.push(Load::Verdict(verdict));
        }
        let done = || rows.iter().filter(|row| !is_pending(row));
        let same = done().find(|row| row.decision == Some(verdict.decision));
        let latest = done().max_by_key(|row| row.decided_at);
        let status = |row: &ApprovalRow| {
            let open = self.executions.get(&row.execution).map(|e| e.row.status);
            open.or_else(|| self.recent.ended(&row.execution).map(|ended| ended.status))
        };
        let reply = match (same, latest) {
            (Some(row), _) => Reply::Decided {
                approval: Box::new(row.clone()),
                status: status(row),
                repeated: true,
            },
            (None, Some(row)) => Reply::Conflict {
                message: match row.decision {
                    Some(decision) => format!(
                        "the approval {:?} was decided before: {decision}, by {}",
                        row.request,
                        row.decided_by.as_deref().unwrap_or("somebody")
                    ),
                    None => format!(
                        "nobody can decide the approval {:?} any more: {}",
                        row.request,
                        row.decided_by.as_deref().unwrap_or("it was closed")
                    ),
                },
                status: status(row),
            },
            (None, None) => Reply::UnknownApproval,
        };
        out.replies.push((verdict.waiter, reply));
    }

    /// The execution goes on with the reason; its agent is told after that is committed.
    fn decide(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        request: &str,
        decided: Decided,
        out: &mut Effects,
    ) -> Option<ApprovalRow> {
        let fits = |row: &ApprovalRow| is_pending(row) && *row.request == *request;
        let mut approval = self.approvals.take(id, fits)?;
        let execution = self.take(id)?;
        approval.decision = Some(decided.decision);
        approval.decided_at = Some(now);
        approval.decided_by = Some(decided.by.clone());
        approval.feedback = decided.feedback;
        approval.response = decided.response;
        if approval.callback_url.is_none() {
            approval.told = Some(NOBODY_TO_TELL.into());
        }
        let mut line = about(EventKind::ApprovalDecided, now, &approval);
        line.reason = Some(decided.decision.word().into());
        line.text = Some(format!("{request}: {} by {}", decided.decision, decided.by).into());
        self.put_approval(approval.clone(), line, out);
        if approval.told.is_none() {
            self.approvals.keep(approval.clone());
        }
        let text = Some(Arc::from(format!("{request}: by {}", decided.by)));
        let reason = Some(reason_after(decided.decision));
        self.end_wait(now, execution, reason, text, out);
        self.tell_decisions(now, id, out);
        Some(approval)
    }

    /// Tells an agent what was decided of an execution; of a paused one when it is resumed.
    pub(crate) fn tell_decisions(&self, now: Timestamp, id: &ExecutionId, out: &mut Effects) {
        let Some(execution) = self.executions.get(id) else {
            return;
        };
        if execution.row.status == Status::Paused {
            return;
        }
        for approval in self.approvals.of(id) {
            if is_pending(approval) {
                continue;
            }
            let attempt = AttemptKey {
                execution: id.clone(),
                n: approval.attempt,
            };
            out.sends.push(Send::TellApproval(Box::new(TellApproval {
                secret: attempt_secret(&self.secret_key, id, attempt.n),
                attempt,
                agent: approval.agent.clone(),
                approval: approval.clone(),
                status: execution.row.status,
                until: now + self.limits.tell_approval_for,
            })));
        }
    }

    /// Nobody decided in time: that is a decision too.
    pub(crate) fn approval_ran_out(&mut self, now: Timestamp, id: &ExecutionId, out: &mut Effects) {
        let decided = Decided {
            decision: Decision::Expired,
            by: EXPIRY.into(),
            feedback: None,
            response: None,
        };
        if let Some(request) = self.approvals.pending(id).map(|row| row.request.clone()) {
            self.decide(now, id, &request, decided, out);
        } else if let Some(execution) = self.take(id) {
            // Its approval was set aside as unreadable; the wait still has its end.
            self.end_wait(
                now,
                execution,
                Some(reason_after(Decision::Expired)),
                None,
                out,
            );
        }
    }

    /// An agent was told, or could not be: then a refusal is carried out here.
    pub(crate) fn approval_told(
        &mut self,
        now: Timestamp,
        id: ExecutionId,
        request: Arc<str>,
        told: Result<Arc<str>, Arc<str>>,
        out: &mut Effects,
    ) {
        let fits = |row: &ApprovalRow| !is_pending(row) && row.request == request;
        let Some(mut approval) = self.approvals.take(&id, fits) else {
            return;
        };
        let mut line = about(EventKind::ApprovalTold, now, &approval);
        line.reason = Some(if told.is_ok() { "told" } else { "not_told" }.into());
        let text = match &told {
            Ok(said) => said.clone(),
            Err(why) => format!("not told: {why}").into(),
        };
        line.text = Some(format!("{request}: {text}").into());
        approval.told = Some(text);
        let refused = match approval.decision {
            Some(decision @ (Decision::Rejected | Decision::Expired)) => Some(decision),
            Some(Decision::Approved | Decision::RequestChanges) | None => None,
        };
        let (n, by) = (approval.attempt, approval.decided_by.clone());
        self.put_approval(approval, line, out);
        let (Some(decision), true) = (refused, told.is_err()) else {
            return;
        };
        // One that asked again since knows what was decided before.
        let asked_again = !self.approvals.of(&id).is_empty();
        let same = self.executions.get(&id).is_some_and(|e| e.row.attempt == n);
        if same && !asked_again {
            let reason = reason_after(decision);
            let why = format!("{request} is {decision}, and its agent could not be told");
            let by = by.as_deref().unwrap_or(EXPIRY);
            let end = End::cancelled(by, Some(&why)).reason(&reason);
            self.cancel_as(now, &id, &reason, end, out);
        }
    }

    /// Nobody can decide any more: the execution ended, or its attempt did.
    pub(crate) fn close_approval(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        why: &str,
        out: &mut Effects,
    ) {
        if let Some(mut approval) = self.approvals.take(id, is_pending) {
            approval.decided_at = Some(now);
            approval.decided_by = Some(format!("closed: {why}").into());
            // The end's own event tells of it.
            self.approvals.changed_at = self.seq;
            out.writes.push(Write::PutApproval(Box::new(approval)));
        }
    }

    /// What was decided while it was paused was to be told at its resume, and now never is.
    pub(crate) fn leave_untold(&mut self, now: Timestamp, id: &ExecutionId, out: &mut Effects) {
        while let Some(mut approval) = self.approvals.take(id, |row| !is_pending(row)) {
            let mut line = about(EventKind::ApprovalTold, now, &approval);
            line.reason = Some("not_told".into());
            approval.told = Some("not told: its attempt ended while it was paused".into());
            self.put_approval(approval, line, out);
        }
    }

    /// Takes over what a start read. Time without a decider counts for nobody.
    pub(crate) fn restore_approvals(
        &mut self,
        now: Timestamp,
        away: Outage,
        rows: Vec<ApprovalRow>,
        out: &mut Effects,
    ) {
        for mut row in rows {
            let awaited = self
                .executions
                .get(&row.execution)
                .is_some_and(|execution| {
                    let wait = execution.waits_for(WaitCause::Approval);
                    wait.is_some_and(|wait| wait.reference == row.request)
                });
            let open = self.executions.contains_key(&row.execution);
            if is_pending(&row) && awaited {
                row.expires_at = away.not_counted(row.expires_at);
                out.writes.push(Write::PutApproval(Box::new(row.clone())));
                self.approvals.keep(row);
            } else if !is_pending(&row) && open {
                self.approvals.keep(row);
            } else {
                row.decided_at.get_or_insert(now);
                row.told = Some("not told: the execution had ended".into());
                row.decided_by
                    .get_or_insert_with(|| "closed: it had ended".into());
                out.writes.push(Write::PutApproval(Box::new(row)));
            }
        }
        self.approvals.changed_at = self.seq;
        let ids: Vec<ExecutionId> = self.approvals.rows.keys().cloned().collect();
        for id in ids {
            self.tell_decisions(now, &id, out);
        }
    }
}

/// A line about an approval.
fn about(kind: EventKind, now: Timestamp, approval: &ApprovalRow) -> EventRow {
    let mut line = EventRow::line(kind, now);
    line.execution = Some(approval.execution.clone());
    line.run = Some(approval.run.clone());
    line.agent = Some(approval.agent.clone());
    line.attempt = (approval.attempt > 0).then_some(approval.attempt);
    line.text = Some(approval.request.clone());
    line
}
