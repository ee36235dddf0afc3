//! Recounts every invariant from scratch. Property tests and the simulation call it after each
//! step; nothing in it is fast.

use muster_wire::{ExecutionKind, Status, WaitCause};

use crate::agent::Gate;
use crate::approvals::is_pending;
use crate::engine::Engine;
use crate::execution::Phase;
use crate::timers::TimerKey;

macro_rules! must {
    ($holds:expr, $($text:tt)*) => { if !$holds { return Err(format!($($text)*)); } };
}

impl Engine {
    /// Says which invariant is broken, if any.
    ///
    /// # Errors
    /// A sentence naming the first broken invariant.
    pub fn check(&self) -> Result<(), String> {
        self.check_executions()?;
        self.check_agents()?;
        self.check_runs()?;
        self.check_approvals()?;
        self.check_children()?;
        self.check_circuits()?;
        self.check_fleet()?;
        self.check_timers()
    }

    fn check_executions(&self) -> Result<(), String> {
        let mut observed = 0;
        for (id, execution) in &self.executions {
            let row = &execution.row;
            must!(row.id == *id, "{id} is filed under another id");
            must!(!row.status.is_terminal(), "{id} is terminal and still held");
            must!(
                self.recent.ended(id).is_none(),
                "{id} ended and is open again"
            );
            if let Some(equal_calls) = &execution.equal_calls {
                equal_calls.check().map_err(|e| format!("{id}: {e}"))?;
            }
            must!(!execution.unwritten, "{id} is open and was never written");
            let agent = self.agents.get(&row.agent);
            match &execution.phase {
                Phase::Queued => {
                    must!(
                        row.status == Status::Queued,
                        "{id} is queued but its row says {}",
                        row.status
                    );
                    must!(
                        row.attempt == 0,
                        "{id} is queued with attempt {}",
                        row.attempt
                    );
                }
                Phase::Shelved => {
                    must!(
                        row.status == Status::Paused && row.resume_to == Some(Status::Queued),
                        "{id} is shelved but its row says {}",
                        row.status
                    );
                }
                Phase::Absorbed { until } => {
                    let paused = row.status == Status::Paused;
                    must!(
                        paused || row.status == Status::Running,
                        "{id} is absorbed but its row says {}",
                        row.status
                    );
                    must!(
                        row.absorb_until == Some(*until),
                        "{id}: absorption differs from its row"
                    );
                    let waits = agent.is_some_and(|a| a.absorbed.get(&row.queue.seq) == Some(id));
                    must!(
                        waits != paused,
                        "{id} is absorbed and its agent does not know, or paused and it does"
                    );
                }
                Phase::Sent(attempt) | Phase::Accepted(attempt) => {
                    must!(
                        attempt.n == row.attempt,
                        "{id}: attempt {} but row {}",
                        attempt.n,
                        row.attempt
                    );
                    must!(
                        row.absorb_until.is_none(),
                        "{id} is out and still marked absorbed"
                    );
                    must!(
                        row.kind == ExecutionKind::Dispatched,
                        "{id} is observed and has an attempt"
                    );
                }
                Phase::Observed { .. } => {
                    observed += 1;
                    must!(
                        row.kind == ExecutionKind::Observed,
                        "{id} is dispatched and observed"
                    );
                }
            }
            let (waits, paused) = (row.status == Status::Waiting, row.status == Status::Paused);
            must!(
                row.wait.is_some() == execution.would_wait(),
                "{id} is {} with the wait {:?}",
                row.status,
                row.wait
            );
            must!(
                row.resume_to.is_some() == paused,
                "{id} is {} and resumes to {:?}",
                row.status,
                row.resume_to
            );
            must!(
                row.clock_from.is_none() || !(waits || paused),
                "{id} is {} and its clock runs",
                row.status
            );
            if row.kind == ExecutionKind::Dispatched && row.status == Status::Running {
                must!(
                    execution.deadline_at().is_some(),
                    "{id} is open without a deadline"
                );
            }
            if row.kind == ExecutionKind::Dispatched && row.status != Status::Queued {
                must!(agent.is_some(), "{id} is open and nobody is responsible");
            }
            must!(
                self.runs.contains_key(&row.run),
                "{id} is in run {} which is not held",
                row.run
            );
        }
        must!(
            observed == self.observed,
            "{observed} observed, counted {}",
            self.observed
        );
        Ok(())
    }

    fn check_agents(&self) -> Result<(), String> {
        let mut waiting = 0;
        for (id, agent) in &self.agents {
            agent
                .queue
                .check()
                .map_err(|e| format!("queue of {id}: {e}"))?;
            waiting += agent.queue.len();
            for holder in &agent.holders {
                let holds = self
                    .executions
                    .get(holder)
                    .is_some_and(|e| e.holds_slot() && e.row.agent == *id);
                must!(
                    holds,
                    "{holder} is counted as holding a slot of {id} and holds none"
                );
            }
            let recount = self
                .executions
                .values()
                .filter(|e| e.row.agent == *id && e.holds_slot())
                .count();
            must!(
                recount == agent.holders.len(),
                "{id}: {recount} hold slots, counted {}",
                agent.holders.len()
            );
            for waiter in &agent.waiters {
                let waits = self.executions.get(waiter).is_some_and(|e| {
                    !e.holds_slot() && e.attempt().is_some() && e.row.agent == *id
                });
                must!(waits, "{waiter} is counted as waiting at {id} and does not");
            }
            let recount = self
                .executions
                .values()
                .filter(|e| e.row.agent == *id && !e.holds_slot() && e.attempt().is_some())
                .count();
            must!(
                recount == agent.waiters.len(),
                "{id}: {recount} wait without a slot, counted {}",
                agent.waiters.len()
            );
            if let Some(cap) = self.cap(id) {
                let within = self.within_cap(id).len();
                must!(
                    within <= cap as usize,
                    "{id}: {within} within a cap of {cap}"
                );
            }
            for (seq, absorbed) in &agent.absorbed {
                let there = self
                    .executions
                    .get(absorbed)
                    .is_some_and(|e| e.row.queue.seq == *seq);
                must!(there, "{absorbed} is listed as absorbed at {id} and is not");
            }
            for (key, queued) in agent.queue.window() {
                let execution = self.executions.get(queued);
                let fits = execution
                    .is_some_and(|e| matches!(e.phase, Phase::Queued) && e.row.queue == *key);
                must!(
                    fits,
                    "{queued} is in the window of {id} and not queued there"
                );
            }
            for instance in &agent.instances {
                let recount = agent
                    .holders
                    .iter()
                    .chain(&agent.waiters)
                    .filter_map(|holder| self.executions.get(holder)?.attempt())
                    .filter(|attempt| attempt.instance == *instance.id())
                    .count();
                must!(
                    recount == instance.facts.in_flight as usize,
                    "{}: {recount} in flight, counted {}",
                    instance.id(),
                    instance.facts.in_flight
                );
                if let Gate::Ramp { allowed } = instance.gate {
                    let on_ramp = agent
                        .holders
                        .iter()
                        .chain(&agent.waiters)
                        .filter_map(|holder| self.executions.get(holder)?.attempt())
                        .filter(|a| a.on_ramp && a.instance == *instance.id())
                        .count();
                    must!(
                        allowed > 0 || on_ramp > 0,
                        "{}: nothing is on its ramp, and nothing may go",
                        instance.id()
                    );
                }
            }
        }
        must!(
            waiting == self.waiting_total,
            "{waiting} wait, counted {}",
            self.waiting_total
        );
        Ok(())
    }

    pub(crate) fn called_by_a_holder(&self, execution: &crate::execution::Execution) -> bool {
        let parent = execution
            .row
            .parent
            .as_ref()
            .and_then(|id| self.executions.get(id));
        parent.is_some_and(|parent| parent.holds_on(&execution.row.agent))
    }

    fn check_runs(&self) -> Result<(), String> {
        for (id, run) in &self.runs {
            let open = self
                .executions
                .values()
                .filter(|e| e.row.run == *id)
                .count() as u32;
            let mark = u32::from(run.marked_at.is_some()) + u32::from(run.paused_at.is_some());
            must!(
                run.open == open + mark,
                "run {id}: {open} open and {mark} mark, counted {}",
                run.open
            );
        }
        Ok(())
    }

    /// A pending approval is what its execution waits for, and the other way round; a wait for a
    /// child has one.
    fn check_approvals(&self) -> Result<(), String> {
        for approval in self.approvals.all() {
            let id = &approval.execution;
            if !is_pending(approval) {
                must!(
                    approval.told.is_none(),
                    "{id}: an approval is told and kept"
                );
                continue;
            }
            let wait = self
                .executions
                .get(id)
                .and_then(|e| e.waits_for(WaitCause::Approval));
            let fits = wait.is_some_and(|wait| {
                wait.reference == approval.request && wait.until == Some(approval.expires_at)
            });
            must!(fits, "{id} has a pending approval and waits for {wait:?}");
        }
        for (id, execution) in &self.executions {
            if execution.waits_for(WaitCause::Approval).is_some() {
                must!(
                    self.approvals.pending(id).is_some(),
                    "{id} waits for an approval that is not there"
                );
            }
            if let Some(wait) = execution.waits_for(WaitCause::AwaitingChild) {
                let child = self
                    .executions
                    .values()
                    .find(|e| *e.row.id.as_str() == *wait.reference);
                let waits = child
                    .is_some_and(|child| child.stands() && child.row.parent.as_ref() == Some(id));
                must!(
                    waits,
                    "{id} waits for {}, which does not wait",
                    wait.reference
                );
            }
        }
        Ok(())
    }

    fn check_children(&self) -> Result<(), String> {
        let mut count = 0;
        for (parent, children) in &self.children {
            must!(!children.is_empty(), "{parent} is kept without children");
            for child in children {
                let fits = self
                    .executions
                    .get(child)
                    .is_some_and(|e| e.row.parent.as_ref() == Some(parent));
                must!(fits, "{child} is listed as a child of {parent} and is not");
                count += 1;
            }
        }
        let recount = self
            .executions
            .values()
            .filter(|e| e.row.parent.is_some())
            .count();
        must!(
            recount == count,
            "{recount} executions have a parent, listed {count}"
        );
        for (id, execution) in &self.executions {
            must!(
                !self.is_bereaved(&execution.row) || matches!(execution.phase, Phase::Queued),
                "{id} outlives its parent"
            );
        }
        Ok(())
    }

    fn check_timers(&self) -> Result<(), String> {
        for (id, execution) in &self.executions {
            let want = execution.next_look(self.limits.queue_timeout);
            must!(
                execution.armed == want,
                "{id} is armed for {:?}, wants {want:?}",
                execution.armed
            );
            if let Some(at) = execution.armed {
                must!(
                    self.timers.has(at, TimerKey::Execution(id.clone())),
                    "{id}'s timer is not in the wheel"
                );
            }
        }
        let instances = self
            .agents
            .values()
            .flat_map(|a| &a.instances)
            .filter(|i| i.armed.is_some())
            .count();
        let executions = self
            .executions
            .values()
            .filter(|e| e.armed.is_some())
            .count();
        let all =
            instances + executions + self.places.len() + self.circuits.len() + self.fleet_timers();
        must!(
            all == self.timers.len(),
            "{all} timers armed, {} in the wheel",
            self.timers.len()
        );
        Ok(())
    }
}
