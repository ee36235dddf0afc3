//! An open execution as the engine holds it: its row, where it is, who waits for it.
//! The transitions are elsewhere; this file only says what is true of one.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, ExecutionKind, InstanceId, SecretHash, Status, Timestamp, WaitCause};

use crate::event::Waiter;
use crate::replay::EqualCalls;
use crate::row::{ExecutionRow, Payload, Wait};

/// The reason word while a failed dial is absorbed.
pub(crate) const AWAITING_RESTART: &str = "awaiting_agent_restart";

/// Where an open execution is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// In its agent's queue.
    Queued,
    /// Paused before its dispatch: in no queue, and occupies nothing.
    Shelved,
    /// Not sent; waits for an instance, or, when paused, for its resume.
    Absorbed {
        /// Until when.
        until: Timestamp,
    },
    /// Sent; the exchange is open, or was when the plane crashed.
    Sent(Attempt),
    /// The agent has it and will call back.
    Accepted(Attempt),
    /// It runs inside an agent's process.
    Observed {
        /// Which agent's process reported it; ends with it.
        instance: Option<InstanceId>,
        /// When it ends by itself, after its parent.
        ends_at: Option<Timestamp>,
    },
}

/// The live attempt.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) n: u32,
    pub(crate) instance: InstanceId,
    /// Everybody that shared the address when it went out, `instance` included when there are any.
    pub(crate) candidates: Vec<InstanceId>,
    pub(crate) proof: SecretHash,
    /// When it was handed to the dispatcher.
    pub(crate) sent_at: Timestamp,
    /// Sent before a crash of the plane, and nothing heard since: given up at this moment.
    pub(crate) recover_until: Option<Timestamp>,
    /// It went out on the ramp after its instance came back, and has not reached it yet.
    pub(crate) on_ramp: bool,
}

/// A caller that is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) waiter: Waiter,
    pub(crate) until: Timestamp,
}

/// One open execution.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) row: Arc<ExecutionRow>,
    pub(crate) phase: Phase,
    pub(crate) held: Vec<Held>,
    pub(crate) armed: Option<Timestamp>,
    /// Children of it that are queued.
    pub(crate) queued_children: u32,
    /// Queued children that end with it may be in the store alone.
    pub(crate) stored_children: bool,
    /// May be run again when its outcome is unknown.
    pub(crate) idempotent: bool,
    /// How often it was run again.
    pub(crate) reruns: u32,
    /// What a workflow event said of its error, when the answer itself says nothing.
    pub(crate) reported_error: Option<Payload>,
    /// It, or an execution above it, was cancelled: it may not call any more.
    pub(crate) disowned: bool,
    /// Since when it waits for a slot, as far as `executions.queue_timeout` is concerned.
    pub(crate) queued_from: Timestamp,
    /// The hint to give when it cannot be reached.
    pub(crate) last_dial: Option<Arc<str>>,
    /// Its calls that equal each other, once one of them may be taken over.
    pub(crate) equal_calls: Option<Box<EqualCalls>>,
    /// Its row is not written yet: an end writes it whole.
    pub(crate) unwritten: bool,
}

impl Execution {
    pub(crate) fn new(row: Arc<ExecutionRow>, phase: Phase, idempotent: bool) -> Self {
        let queued_from = row.created_at;
        Self {
            row,
            phase,
            queued_from,
            held: Vec::new(),
            armed: None,
            queued_children: 0,
            stored_children: false,
            idempotent,
            reruns: 0,
            reported_error: None,
            disowned: false,
            last_dial: None,
            equal_calls: None,
            unwritten: false,
        }
    }

    /// The live attempt, if it was sent.
    pub(crate) fn attempt(&self) -> Option<&Attempt> {
        match &self.phase {
            Phase::Sent(attempt) | Phase::Accepted(attempt) => Some(attempt),
            Phase::Queued | Phase::Shelved | Phase::Absorbed { .. } | Phase::Observed { .. } => {
                None
            }
        }
    }

    /// Whether it holds a slot of its agent.
    pub(crate) fn holds_slot(&self) -> bool {
        match &self.phase {
            Phase::Absorbed { .. } => true,
            Phase::Sent(_) | Phase::Accepted(_) => !self.would_wait(),
            Phase::Queued | Phase::Shelved | Phase::Observed { .. } => false,
        }
    }

    /// Whether it waits, or would if it were not paused.
    pub(crate) fn would_wait(&self) -> bool {
        match self.row.status {
            Status::Waiting => true,
            Status::Paused => self.row.resume_to == Some(Status::Waiting),
            Status::Queued
            | Status::Running
            | Status::Succeeded
            | Status::Failed
            | Status::Cancelled
            | Status::Timeout => false,
        }
    }

    /// Whether it stands still for a person or a child: what its caller may wait for.
    pub(crate) fn stands(&self) -> bool {
        matches!(self.row.status, Status::Waiting | Status::Paused)
    }

    /// What it waits for, when it is this.
    pub(crate) fn waits_for(&self, cause: WaitCause) -> Option<&Wait> {
        let wait = self.row.wait.as_deref()?;
        (wait.cause == cause).then_some(wait)
    }

    /// Its clock stands from now on.
    pub(crate) fn stop_clock(&mut self, now: Timestamp) {
        let active_us = self.active_us(now);
        let row = Arc::make_mut(&mut self.row);
        row.active_us = active_us;
        row.clock_from = None;
    }

    /// Its clock runs from now on.
    pub(crate) fn run_clock(&mut self, now: Timestamp) {
        Arc::make_mut(&mut self.row).clock_from.get_or_insert(now);
    }

    /// Active time until `now`, in microseconds.
    pub(crate) fn active_us(&self, now: Timestamp) -> i64 {
        let running = self
            .row
            .clock_from
            .map_or(0, |from| now.0.saturating_sub(from.0).max(0));
        self.row.active_us.saturating_add(running)
    }

    /// When its active time runs out; `None` while its clock stands.
    pub(crate) fn deadline_at(&self) -> Option<Timestamp> {
        if self.row.kind == ExecutionKind::Observed {
            return None;
        }
        let from = self.row.clock_from?;
        let left = self
            .row
            .deadline_us
            .saturating_sub(self.row.active_us)
            .max(0);
        Some(Timestamp(from.0.saturating_add(left)))
    }

    /// The next moment at which it must be looked at.
    pub(crate) fn next_look(&self, queue_timeout: Option<Duration>) -> Option<Timestamp> {
        let own = match &self.phase {
            Phase::Queued => queue_timeout.map(|wait| self.queued_from + wait),
            Phase::Shelved => None,
            Phase::Absorbed { until } => Some(*until),
            Phase::Sent(attempt) | Phase::Accepted(attempt) => attempt.recover_until,
            Phase::Observed { ends_at, .. } => *ends_at,
        };
        let held = self.held.iter().map(|held| held.until).min();
        let wait = self.row.wait.as_ref().and_then(|wait| wait.until);
        let all = [own, held, wait, self.deadline_at()];
        all.into_iter().flatten().min()
    }

    /// Whether it keeps the agent named from counting as deadlock-free: it holds a slot there.
    pub(crate) fn holds_on(&self, agent: &AgentId) -> bool {
        self.row.holds.contains(agent)
    }
}
