//! Waits: how an execution leaves the running state for a while and comes back, what becomes of
//! its slot and its clock meanwhile, and waiting for a child that waits itself.

use std::sync::Arc;

use muster_wire::{ExecutionId, ExecutionKind, Status, Timestamp, WaitCause};

use crate::effect::{Count, Effects, ExecutionChange, Load, Move, Notice, Reply, Write};
use crate::engine::Engine;
use crate::event::Awaiter;
use crate::execution::Execution;
use crate::row::{EventKind, EventRow, ExecutionRow, Wait};

/// The reason word of an execution that waits.
pub(crate) fn reason_of(wait: &Wait) -> Arc<str> {
    match wait.cause {
        WaitCause::Approval => "waiting_for_approval".into(),
        WaitCause::AwaitingChild => "awaiting_child".into(),
    }
}

/// A row's present state as a change.
pub(crate) fn moved(row: &ExecutionRow) -> ExecutionChange {
    ExecutionChange::Moved(Box::new(Move {
        status: row.status,
        reason: row.status_reason.clone(),
        wait: row.wait.clone(),
        resume_to: row.resume_to,
        absorb_until: row.absorb_until,
        clock_from: row.clock_from,
        active_us: row.active_us,
        over_cap: row.over_cap,
    }))
}

impl Engine {
    /// Puts back an execution that went from one open state to another: its slot follows, the
    /// change is written, told and shown, and whoever gains by it goes on.
    pub(crate) fn settle(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        kind: EventKind,
        text: Option<Arc<str>>,
        out: &mut Effects,
    ) {
        self.reslot(&mut execution);
        let row = execution.row.clone();
        out.writes.push(Write::UpdateExecution {
            id: row.id.clone(),
            change: moved(&row),
        });
        let mut line = EventRow::of(kind, now, &execution);
        line.text = text;
        self.tell(line, out);
        Self::publish(&execution, None, None, out);
        let stands = execution.stands();
        self.keep(execution);
        if !stands {
            self.child_moved_on(now, row.parent.as_ref(), out);
        }
        self.pump(now, &row.agent, out);
        self.break_deadlocks(now, [Some(row.agent.clone()), None], out);
    }

    /// Takes or gives back its slot, as its state says. One that returns takes its slot even
    /// when others have taken all of them meanwhile.
    fn reslot(&mut self, execution: &mut Execution) {
        let (holds, has_attempt) = (execution.holds_slot(), execution.attempt().is_some());
        let over_cap = self.is_full(&execution.row.agent);
        let Some(agent) = self.agents.get_mut(&execution.row.agent) else {
            return;
        };
        let row = Arc::make_mut(&mut execution.row);
        if holds {
            agent.waiters.remove(&row.id);
            if agent.holders.insert(row.id.clone()) {
                row.over_cap = over_cap;
            }
            return;
        }
        agent.holders.remove(&row.id);
        row.over_cap = false;
        if has_attempt {
            agent.waiters.insert(row.id.clone());
        } else {
            agent.waiters.remove(&row.id);
        }
    }

    /// Whether every slot of an agent is held.
    pub(crate) fn is_full(&self, agent: &muster_wire::AgentId) -> bool {
        let running = self.agents.get(agent).map_or(0, |agent| agent.running());
        self.cap(agent).is_some_and(|cap| running >= cap)
    }

    /// It waits from now on; a paused one will when it is resumed.
    pub(crate) fn begin_wait(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        wait: Wait,
        out: &mut Effects,
    ) {
        execution.stop_clock(now);
        let text = Some(wait.reference.clone());
        let row = Arc::make_mut(&mut execution.row);
        if row.status == Status::Paused {
            row.resume_to = Some(Status::Waiting);
        } else {
            row.status = Status::Waiting;
            row.status_reason = Some(reason_of(&wait));
        }
        row.wait = Some(Box::new(wait));
        self.settle(now, execution, EventKind::ExecutionWaiting, text, out);
    }

    /// It waits no more; a paused one will go on when it is resumed.
    pub(crate) fn end_wait(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        reason: Option<Arc<str>>,
        text: Option<Arc<str>>,
        out: &mut Effects,
    ) {
        let row = Arc::make_mut(&mut execution.row);
        row.wait = None;
        if row.status == Status::Paused {
            row.resume_to = Some(Status::Running);
        } else {
            row.status = Status::Running;
            row.status_reason = reason;
            execution.run_clock(now);
        }
        self.settle(now, execution, EventKind::ExecutionContinued, text, out);
    }

    /// An agent says that its execution waits for a child, or goes on.
    pub(crate) fn awaiter_reported(
        &mut self,
        now: Timestamp,
        awaiter: Box<Awaiter>,
        out: &mut Effects,
    ) {
        let id = &awaiter.from.execution;
        let Some(execution) = self.executions.get(id) else {
            return self.awaiter_after(awaiter, out);
        };
        let by_key = awaiter.key_agent.as_ref() == Some(&execution.row.agent);
        let there = execution.attempt().is_some() || execution.row.kind == ExecutionKind::Observed;
        if !(self.proves(execution, awaiter.from.proof) || (by_key && there)) {
            out.notices.push(Notice::Count(Count::Unproved));
            return out.replies.push((awaiter.waiter, Reply::WrongAttempt));
        }
        let awaits = execution.waits_for(WaitCause::AwaitingChild).is_some();
        let child = match (awaiter.waiting, execution.row.wait.is_some()) {
            (true, false) => self.waiting_child(id),
            (true, true) | (false, _) => None,
        };
        let mut applied = false;
        if let Some(child) = child {
            if let Some(execution) = self.take(id) {
                let wait = Wait {
                    cause: WaitCause::AwaitingChild,
                    reference: child.as_str().into(),
                    until: None,
                };
                self.begin_wait(now, execution, wait, out);
                applied = true;
            }
        } else if !awaiter.waiting
            && awaits
            && let Some(execution) = self.take(id)
        {
            self.end_wait(now, execution, None, Some("its agent goes on".into()), out);
            applied = true;
        }
        let status = self.executions.get(id).map(|e| e.row.status);
        out.replies.push((
            awaiter.waiter,
            Reply::Awaiter {
                status: status.unwrap_or(Status::Running),
                applied,
            },
        ));
    }

    /// A report about what is not open here: ended, queued, or unknown.
    fn awaiter_after(&self, awaiter: Box<Awaiter>, out: &mut Effects) {
        if let Some(ended) = self.recent.ended(&awaiter.from.execution) {
            let status = ended.status;
            return out
                .replies
                .push((awaiter.waiter, Reply::AlreadyEnded { status }));
        }
        let reply = match &awaiter.known {
            Some((as_of, row)) if self.recent.ends_cover(*as_of) => match row {
                None => Reply::UnknownExecution,
                Some(row) if row.status.is_terminal() => Reply::AlreadyEnded { status: row.status },
                Some(_) => Reply::WrongAttempt,
            },
            _ => return out.loads.push(Load::Awaiter(awaiter)),
        };
        out.replies.push((awaiter.waiter, reply));
    }

    /// The oldest open child that waits or is paused: to its caller both look the same.
    fn waiting_child(&self, parent: &ExecutionId) -> Option<ExecutionId> {
        let children = self.children.get(parent)?;
        children
            .iter()
            .filter_map(|id| self.executions.get(id))
            .filter(|child| child.stands())
            .min_by_key(|child| child.row.queue.seq)
            .map(|child| child.row.id.clone())
    }

    /// A child goes on or has ended: a parent that waited for it goes on, whether or not its
    /// agent says so, unless another child of it still waits.
    pub(crate) fn child_moved_on(
        &mut self,
        now: Timestamp,
        parent: Option<&ExecutionId>,
        out: &mut Effects,
    ) {
        let Some((id, wait)) = parent.and_then(|id| {
            let wait = self
                .executions
                .get(id)?
                .waits_for(WaitCause::AwaitingChild)?;
            Some((id, wait.reference.clone()))
        }) else {
            return;
        };
        let child = self.waiting_child(id);
        if child.as_ref().is_some_and(|child| *wait == *child.as_str()) {
            return;
        }
        let Some(mut execution) = self.take(id) else {
            return;
        };
        let Some(child) = child else {
            let text = format!("{wait} waits no more");
            return self.end_wait(now, execution, None, Some(text.into()), out);
        };
        let row = Arc::make_mut(&mut execution.row);
        if let Some(wait) = &mut row.wait {
            wait.reference = child.as_str().into();
        }
        out.writes.push(Write::UpdateExecution {
            id: row.id.clone(),
            change: moved(row),
        });
        Self::publish(&execution, None, None, out);
        self.keep(execution);
    }
}
