//! Absorption: what waits for an instance to come back instead of failing, for how long, and how
//! the wait ends.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Category, ExecutionId, Status, Timestamp};

use crate::effect::{Count, Effects, ExecutionChange, Notice, Write};
use crate::ending::End;
use crate::engine::Engine;
use crate::execution::{AWAITING_RESTART, Execution, Phase};
use crate::liveness::InstanceState;
use crate::refusal::Refusal;
use crate::row::{EventKind, EventRow, PayloadKind};
use crate::start::Launch;

/// How long calls wait for an agent that beats but cannot be dialled.
const UNREACHABLE_WAIT: Duration = Duration::from_secs(1);

impl Engine {
    /// No instance can be called: waits for one, or fails at once where waiting is off.
    pub(crate) fn absorb(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        how: Launch,
        out: &mut Effects,
    ) {
        let agent_id = execution.row.agent.clone();
        let grace = self.restart_grace(&agent_id);
        let limits = self.liveness(&agent_id);
        let caller_left = execution
            .held
            .iter()
            .map(|held| held.until)
            .max()
            .filter(|_| !execution.held.is_empty());
        let only_unreachable = self.agents.get(&agent_id).is_some_and(|agent| {
            let mut states = agent
                .instances
                .iter()
                .map(|i| i.facts.verdict(now, limits).state)
                .filter(|state| *state != InstanceState::Down)
                .peekable();
            states.peek().is_some()
                && states.all(|state| state == InstanceState::UnreachableCallback)
        });
        let wait = if only_unreachable {
            grace.map(|g| g.min(UNREACHABLE_WAIT))
        } else {
            grace
        };
        // A process that its supervisor is stopping may drain first; the grace is for its return.
        let coming = self.agents.get(&agent_id).and_then(|agent| {
            let restarting = agent.instances.iter().filter(|i| i.is_present());
            restarting.filter_map(|i| i.facts.restart_until).max()
        });
        let held = self.hold.is_some() || self.agents.get(&agent_id).is_some_and(|a| a.stopped());
        let until = match execution.row.absorb_until {
            Some(until) => until,
            None if held => Timestamp::NEVER,
            None => {
                let mut until = now + wait.unwrap_or_default();
                if let (Some(coming), false) = (coming, wait.is_none()) {
                    until = until.max(coming);
                }
                caller_left.map_or(until, |left| until.min(left))
            }
        };
        let fresh = execution.row.absorb_until.is_none();
        let row = Arc::make_mut(&mut execution.row);
        row.status = Status::Running;
        row.status_reason = Some(AWAITING_RESTART.into());
        row.started_at.get_or_insert(now);
        row.clock_from.get_or_insert(now);
        row.absorb_until = Some(until);
        row.wait = None;
        row.resume_to = None;
        Self::add_hold(&mut row.holds, &agent_id);
        execution.phase = Phase::Absorbed { until };
        let row = &execution.row;
        match how {
            Launch::New { input } => {
                out.writes.push(Write::InsertExecution(row.clone()));
                if !input.is_empty() || row.input_size == 0 {
                    out.writes.push(Write::PutPayload {
                        execution: row.id.clone(),
                        kind: PayloadKind::Input,
                        bytes: input,
                    });
                }
            }
            Launch::Stored | Launch::Moved { .. } => out.writes.push(Write::UpdateExecution {
                id: row.id.clone(),
                change: ExecutionChange::Absorbed {
                    until,
                    started_at: row.started_at.unwrap_or(now),
                    clock_from: row.clock_from.unwrap_or(now),
                    over_cap: row.over_cap,
                },
            }),
        }
        let mut line = EventRow::of(EventKind::ExecutionAbsorbed, now, &execution);
        line.text.clone_from(&execution.last_dial);
        self.tell(line, out);
        Self::publish(&execution, None, None, out);
        if fresh {
            out.notices.push(Notice::Count(Count::Absorbed));
        }
        if let Some(agent) = self.agents.get_mut(&agent_id) {
            agent.holders.insert(execution.row.id.clone());
            agent
                .absorbed
                .insert(execution.row.queue.seq, execution.row.id.clone());
        }
        let id = execution.row.id.clone();
        self.keep(execution);
        if until <= now {
            self.absorption_ran_out(now, &id, out);
        } else {
            self.dial_gates(now, &agent_id, out);
        }
    }

    /// The wait of an absorbed execution is over.
    pub(crate) fn absorption_ran_out(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        out: &mut Effects,
    ) {
        let Some(execution) = self.take(id) else {
            return;
        };
        let agent_id = execution.row.agent.clone();
        let limits = self.liveness(&agent_id);
        let grace = self.restart_grace(&agent_id).unwrap_or_default();
        let mut hint = None;
        if let Some(agent) = self.agents.get_mut(&agent_id) {
            // What is known before this end itself becomes a fact, of the newest one first.
            let newest = agent.instances.last();
            hint = newest.map(|i| i.facts.verdict(now, limits).evidence);
            for instance in &mut agent.instances {
                // The failed dial is a fact newer than the last beat; a beat in between undoes
                // that. One that registered only now may not listen yet, and was not waited for.
                let sign = instance.facts.sign_at();
                let waited_for = now.since(instance.facts.renewed_at) >= grace;
                if waited_for
                    && instance
                        .facts
                        .dial_failed
                        .as_ref()
                        .is_some_and(|(at, _)| *at >= sign)
                {
                    instance.facts.wait_ran_out_at = Some(now);
                }
            }
        }
        let dial = execution
            .last_dial
            .as_deref()
            .unwrap_or("no instance could be called");
        let evidence = hint.unwrap_or_default();
        let text = format!("{agent_id} could not be reached: {dial}; {evidence}");
        self.end(
            now,
            execution,
            End::failed(Category::AgentUnreachable, text),
            out,
        );
        self.tell_instances(now, &agent_id, out);
        self.refuse_places_when_down(now, &agent_id, out);
    }

    /// Its supervisor is about to restart it: whoever waits already, because it was restarted just
    /// before, waits for this return too.
    pub(crate) fn wait_for_restart(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        back_by: Timestamp,
        out: &mut Effects,
    ) {
        let Some(agent) = self.agents.get(id) else {
            return;
        };
        let waiting: Vec<ExecutionId> = agent.absorbed.values().cloned().collect();
        for waiting in waiting {
            let Some(mut execution) = self.take(&waiting) else {
                continue;
            };
            let left = execution.held.iter().map(|held| held.until).max();
            let until = left.map_or(back_by, |left| back_by.min(left));
            if execution
                .row
                .absorb_until
                .is_some_and(|known| known < until)
            {
                execution.phase = Phase::Absorbed { until };
                let row = Arc::make_mut(&mut execution.row);
                row.absorb_until = Some(until);
                out.writes.push(Write::UpdateExecution {
                    id: row.id.clone(),
                    change: ExecutionChange::Absorbed {
                        until,
                        started_at: row.started_at.unwrap_or(now),
                        clock_from: row.clock_from.unwrap_or(now),
                        over_cap: row.over_cap,
                    },
                });
            }
            self.keep(execution);
        }
    }

    /// A hold was set or lifted: under it a wait does not run out, after it it begins anew.
    pub(crate) fn wait_anew(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let grace = self.restart_grace(id).unwrap_or_default();
        let Some(agent) = self.agents.get(id) else {
            return;
        };
        let held = self.hold.is_some() || agent.stopped();
        let waiting: Vec<ExecutionId> = agent.absorbed.values().cloned().collect();
        for waiting in waiting {
            let Some(mut execution) = self.take(&waiting) else {
                continue;
            };
            let forever = execution.row.absorb_until == Some(Timestamp::NEVER);
            if forever != held {
                let until = if held { Timestamp::NEVER } else { now + grace };
                execution.phase = Phase::Absorbed { until };
                let row = Arc::make_mut(&mut execution.row);
                row.absorb_until = Some(until);
                out.writes.push(Write::UpdateExecution {
                    id: row.id.clone(),
                    change: ExecutionChange::Absorbed {
                        until,
                        started_at: row.started_at.unwrap_or(now),
                        clock_from: row.clock_from.unwrap_or(now),
                        over_cap: row.over_cap,
                    },
                });
            }
            self.keep(execution);
        }
        self.dial_gates(now, id, out);
    }

    /// Hands absorbed executions to instances that may take them.
    pub(crate) fn release_absorbed(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let limits = self.liveness(id);
        let held = self.hold.is_some();
        loop {
            let Some(agent) = self.agents.get(id) else {
                return;
            };
            if held || agent.stopped() || self.drain_ended || !agent.can_start(now, limits) {
                return;
            }
            let mut released = None;
            for waiting in agent.absorbed.values() {
                let Some(execution) = self.executions.get(waiting) else {
                    continue;
                };
                if agent.choose(execution, None, now, limits).is_some() {
                    released = Some(waiting.clone());
                    break;
                }
            }
            let Some(execution) = released.and_then(|id| self.take(&id)) else {
                return;
            };
            self.launch(now, execution, Launch::Stored, out);
        }
    }

    /// Ends the wait of everybody at once when every instance is down and the one that was heard
    /// last has left: by its own word, or by its supervisor's. One that only fell silent may yet
    /// come back within what is left of the waits; whoever comes newly is refused all the same.
    pub(crate) fn end_absorbed_when_down(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        out: &mut Effects,
    ) {
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get(id) else {
            return;
        };
        let mut heard_last = None;
        let mut evidence = None;
        for instance in agent.instances.iter().rev() {
            let facts = &instance.facts;
            let verdict = facts.verdict(now, limits);
            if verdict.state != InstanceState::Down {
                return;
            }
            evidence.get_or_insert(verdict.evidence);
            let worker = facts.worker.as_ref().and_then(|w| self.workers.get(w));
            let exited = facts.gone.as_ref().filter(|_| worker == Some(&false));
            let left = facts.goodbye_at.max(exited.map(|(at, _)| *at));
            let heard = facts.sign_at().max(left.unwrap_or(Timestamp::ZERO));
            heard_last = heard_last.max(Some((heard, left.is_some())));
        }
        if heard_last.is_some_and(|(_, left)| left) {
            let text = format!("{id} is down: {}", evidence.unwrap_or_default());
            let waiting: Vec<ExecutionId> = agent.absorbed.values().cloned().collect();
            for waiting in waiting {
                if let Some(execution) = self.take(&waiting) {
                    self.end(
                        now,
                        execution,
                        End::failed(Category::AgentUnreachable, text.clone()),
                        out,
                    );
                }
            }
        }
        self.refuse_places_when_down(now, id, out);
    }

    /// Sync callers without a row do not wait for an agent that is down.
    pub(crate) fn refuse_places_when_down(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        out: &mut Effects,
    ) {
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get(id) else {
            return;
        };
        if agent.queue.places() == 0 {
            return;
        }
        let mut evidence = None;
        for verdict in agent
            .instances
            .iter()
            .rev()
            .map(|i| i.facts.verdict(now, limits))
        {
            if verdict.state != InstanceState::Down {
                return;
            }
            evidence.get_or_insert(verdict.evidence);
        }
        let refusal = Refusal::AgentDown {
            agent: id.clone(),
            evidence: evidence.unwrap_or_default(),
        };
        self.refuse_places(now, id, &refusal, out);
    }
}
