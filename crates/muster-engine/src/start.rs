//! Starting: which instance, the first attempt and later ones, whose turn is next, and what
//! waits while no instance can be called.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Category, ExecutionId, InstanceId, Status, Timestamp};

use crate::agent::{Agent, DIAL_FIRST, Gate, Instance};
use crate::effect::{Count, Dispatch, Effects, ExecutionChange, Load, Notice, Send, Write};
use crate::ending::End;
use crate::engine::{Engine, attempt_secret};
use crate::event::AttemptKey;
use crate::execution::{AWAITING_RESTART, Attempt, Execution, Phase};
use crate::liveness::{InstanceState, LivenessLimits};
use crate::queue::Next;
use crate::refusal::Refusal;
use crate::row::{AttemptRow, EventKind, EventRow, Payload, PayloadKind, QueueKey, QueuedRow};

/// How long calls wait for an agent that beats but cannot be dialled.
const UNREACHABLE_WAIT: Duration = Duration::from_secs(1);

/// Where an execution comes from when it is launched.
#[derive(Debug)]
pub(crate) enum Launch {
    /// It is new: its row is written with the first attempt, or with its absorption.
    New {
        /// Its input; empty when it is stored already.
        input: Payload,
    },
    /// It was stored before: queued, or absorbed.
    Stored,
    /// A dial of it failed just now; not to be tried there again.
    Moved {
        /// Where it failed.
        from: InstanceId,
    },
}

impl Agent {
    /// The instance for a call: it may be called now, has the function, is of the version that
    /// registered last, and has the fewest in flight.
    fn choose(
        &self,
        execution: &Execution,
        not: Option<&InstanceId>,
        now: Timestamp,
        limits: LivenessLimits,
    ) -> Option<&Instance> {
        let function = &execution.row.function;
        let fits = |i: &&Instance| {
            i.is_present()
                && i.facts.goodbye_at.is_none()
                && i.lets_out()
                && !i.facts.base_url.is_empty()
                && Some(i.id()) != not
                && i.offers(function).is_some()
                && !matches!(
                    i.facts.verdict(now, limits).state,
                    InstanceState::Down | InstanceState::Restarting
                )
        };
        let version = &self.instances.iter().rev().find(fits)?.facts.version;
        self.instances
            .iter()
            .rev()
            .filter(|i| i.facts.version == *version)
            .filter(fits)
            .min_by_key(|i| i.facts.in_flight)
    }

    /// Whether some instance could take a call now.
    fn can_start(&self, now: Timestamp, limits: LivenessLimits) -> bool {
        self.instances.iter().any(|i| {
            i.is_present()
                && i.facts.goodbye_at.is_none()
                && i.lets_out()
                && !i.facts.base_url.is_empty()
                && !matches!(
                    i.facts.verdict(now, limits).state,
                    InstanceState::Down | InstanceState::Restarting
                )
        })
    }
}

impl Engine {
    /// Sends an execution to an instance, or absorbs it when none can be called.
    pub(crate) fn launch(
        &mut self,
        now: Timestamp,
        mut execution: Box<Execution>,
        how: Launch,
        out: &mut Effects,
    ) {
        let limits = self.liveness(&execution.row.agent);
        let not = match &how {
            Launch::Moved { from } => Some(from),
            Launch::New { .. } | Launch::Stored => None,
        };
        let agent_id = execution.row.agent.clone();
        let Some(agent) = self.agents.get(&agent_id) else {
            return;
        };
        let held = self.hold.is_some() || agent.held;
        let chosen = if held {
            None
        } else {
            agent.choose(&execution, not, now, limits)
        };
        let Some(instance) = chosen else {
            return self.absorb(now, execution, how, out);
        };
        let to = instance.facts.key.clone();
        let base_url = instance.facts.base_url.clone();
        let shares: Vec<InstanceId> = if instance.shares_address {
            agent
                .instances
                .iter()
                .filter(|i| i.is_present() && i.facts.base_url == base_url)
                .map(|i| i.id().clone())
                .collect()
        } else {
            Vec::new()
        };
        let n = execution.row.attempt + 1;
        let secret = attempt_secret(&self.secret_key, &execution.row.id, n);
        let attempt = Attempt {
            n,
            instance: to.instance.clone(),
            candidates: shares,
            proof: secret.hash(),
            recover_until: None,
        };
        let again = execution.row.attempt > 0 || execution.row.status_reason.is_some();
        let row = Arc::make_mut(&mut execution.row);
        row.status = Status::Running;
        row.status_reason = None;
        row.attempt = n;
        row.started_at.get_or_insert(now);
        row.clock_from.get_or_insert(now);
        row.absorb_until = None;
        Self::add_hold(&mut row.holds, &agent_id);
        execution.phase = Phase::Sent(attempt.clone());
        let row = &execution.row;
        let stored_input = row.input_size;
        let input = match how {
            Launch::New { input } => {
                out.writes.push(Write::InsertExecution(row.clone()));
                let inline = !input.is_empty() || stored_input == 0;
                if inline {
                    out.writes.push(Write::PutPayload {
                        execution: row.id.clone(),
                        kind: PayloadKind::Input,
                        bytes: input.clone(),
                    });
                }
                inline.then_some(input)
            }
            Launch::Stored | Launch::Moved { .. } => {
                out.writes.push(Write::UpdateExecution {
                    id: row.id.clone(),
                    change: ExecutionChange::Started {
                        attempt: n,
                        started_at: row.started_at.unwrap_or(now),
                        clock_from: row.clock_from.unwrap_or(now),
                        active_us: row.active_us,
                        over_cap: row.over_cap,
                        holds: row.holds.clone(),
                    },
                });
                None
            }
        };
        out.writes.push(Write::InsertAttempt(Box::new(AttemptRow {
            execution: row.id.clone(),
            n,
            instance: attempt.instance,
            candidates: attempt.candidates,
            secret_hash: attempt.proof,
            sent_at: now,
            accepted_at: None,
            ended_at: None,
            outcome: None,
            evidence: None,
        })));
        let own = self
            .limits
            .agents
            .get(&agent_id)
            .and_then(|a| a.call_timeout);
        out.sends.push(Send::Dispatch(Box::new(Dispatch {
            attempt: AttemptKey {
                execution: row.id.clone(),
                n,
            },
            secret,
            run: row.run.clone(),
            root: row.root.clone(),
            parent: row.parent.clone(),
            to: to.clone(),
            base_url,
            function: row.function.clone(),
            kind: row.function_kind,
            input,
            session: row.session.clone(),
            actor: row.actor.clone(),
            traceparent: row.traceparent.clone(),
            call_timeout: own.unwrap_or(self.limits.call_timeout),
        })));
        let kind = if again {
            EventKind::ExecutionResent
        } else {
            EventKind::ExecutionStarted
        };
        self.tell(EventRow::of(kind, now, &execution), out);
        Self::publish(&execution, None, None, out);
        if let Some(agent) = self.agents.get_mut(&agent_id) {
            agent.holders.insert(execution.row.id.clone());
            agent.absorbed.remove(&execution.row.queue.seq);
            if let Some(instance) = agent.instance_mut(&to.instance) {
                instance.facts.in_flight += 1;
                if let Gate::Ramp { out, .. } = &mut instance.gate {
                    *out += 1;
                }
            }
        }
        self.keep(execution);
    }

    /// No instance can be called: waits for one, or fails at once where waiting is off.
    fn absorb(
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
        let held = self.hold.is_some() || self.agents.get(&agent_id).is_some_and(|a| a.held);
        let until = match execution.row.absorb_until {
            Some(until) => until,
            None if held => Timestamp::NEVER,
            None => {
                let until = now + wait.unwrap_or_default();
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
        let mut hint = None;
        if let Some(agent) = self.agents.get_mut(&agent_id) {
            for instance in &mut agent.instances {
                // The failed dial is a fact newer than the last beat; a beat in between undoes that.
                let sign = instance.facts.sign_at();
                if instance
                    .facts
                    .dial_failed
                    .as_ref()
                    .is_some_and(|(at, _)| *at >= sign)
                {
                    instance.facts.wait_ran_out_at = Some(now);
                }
                hint.get_or_insert_with(|| instance.facts.verdict(now, limits).evidence);
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

    /// Hands absorbed executions to instances that may take them.
    pub(crate) fn release_absorbed(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let limits = self.liveness(id);
        let held = self.hold.is_some();
        loop {
            let Some(agent) = self.agents.get(id) else {
                return;
            };
            if held || agent.held || !agent.can_start(now, limits) {
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

    /// Ends the wait of everybody at once when every instance is down for good.
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
        let verdicts = agent
            .instances
            .iter()
            .rev()
            .map(|i| i.facts.verdict(now, limits));
        let mut evidence = None;
        for verdict in verdicts {
            if verdict.state != InstanceState::Down {
                return;
            }
            evidence.get_or_insert(verdict.evidence);
        }
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
        self.refuse_places_when_down(now, id, out);
    }

    /// Sync callers without a row do not wait for an agent that is down.
    fn refuse_places_when_down(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
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

    /// Closed gates that somebody waits for, and that have evidence of life, are dialled.
    pub(crate) fn dial_gates(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let grace = self.restart_grace(id).unwrap_or_default();
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get_mut(id) else {
            return;
        };
        if agent.absorbed.is_empty() && agent.queue.is_empty() {
            return;
        }
        for instance in &mut agent.instances {
            let facts = &instance.facts;
            let Gate::Closed { wait, dialling } = &mut instance.gate else {
                continue;
            };
            let failed = facts.dial_failing_since.unwrap_or(Timestamp::ZERO);
            let state = facts.verdict(now, limits).state;
            // A beat after the first failure, or a registration young enough that it may not
            // listen yet.
            let evidence =
                facts.beat_at.is_some_and(|beat| beat > failed) || facts.renewed_at + grace > now;
            if *dialling || !evidence || facts.base_url.is_empty() || state == InstanceState::Down {
                continue;
            }
            *dialling = true;
            out.sends.push(Send::Dial {
                key: facts.key.clone(),
                base_url: facts.base_url.clone(),
                after: *wait,
            });
        }
    }

    /// The gate of an instance after a failed dial.
    pub(crate) fn close_gate(instance: &mut Instance) {
        instance.gate = match instance.gate {
            Gate::Closed { wait, .. } => Gate::Closed {
                wait,
                dialling: false,
            },
            Gate::Open | Gate::Ramp { .. } => Gate::Closed {
                wait: DIAL_FIRST,
                dialling: false,
            },
        };
    }

    /// Starts whoever is next while there is room.
    pub(crate) fn pump(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let cap = self.limits.cap(id);
        let limits = self.liveness(id);
        if self.hold.is_some() || self.draining {
            return;
        }
        loop {
            let Some(agent) = self.agents.get(id) else {
                return;
            };
            if agent.queue.is_empty() || agent.held || cap.is_some_and(|cap| agent.running() >= cap)
            {
                break;
            }
            if !agent.can_start(now, limits) {
                self.dial_gates(now, id, out);
                break;
            }
            match agent.queue.next() {
                Next::Nobody => break,
                Next::Unread => break,
                Next::Stored(key, execution) => {
                    let Some(execution) = self.take(&execution) else {
                        debug_assert!(false, "the window names an execution that is not in memory");
                        if let Some(agent) = self.agents.get_mut(id) {
                            agent.queue.leave(&key);
                        }
                        continue;
                    };
                    self.start_queued(now, key, execution, false, out);
                }
                Next::Place(key) => {
                    if let Some(agent) = self.agents.get_mut(id) {
                        agent.turn = agent.turn.max(key.turn);
                        agent.queue.started(now);
                    }
                    if let Some(place) = self.remove_place(id, &key) {
                        self.admit_place(now, place, out);
                    }
                }
            }
        }
        self.refill(id, out);
    }

    /// A queued execution leaves the queue and starts.
    pub(crate) fn start_queued(
        &mut self,
        now: Timestamp,
        key: QueueKey,
        mut execution: Box<Execution>,
        over_cap: bool,
        out: &mut Effects,
    ) {
        self.unqueue(&execution);
        if let Some(agent) = self.agents.get_mut(&execution.row.agent) {
            agent.turn = agent.turn.max(key.turn);
            agent.queue.started(now);
        }
        Arc::make_mut(&mut execution.row).over_cap = over_cap;
        self.launch(now, execution, Launch::Stored, out);
    }

    /// Takes an execution out of its queue's counts.
    pub(crate) fn unqueue(&mut self, execution: &Execution) {
        let row = &execution.row;
        if let Some(agent) = self.agents.get_mut(&row.agent) {
            agent.queue.leave(&row.queue);
        }
        self.waiting_total -= 1;
        if let Some(parent) = row
            .parent
            .as_ref()
            .and_then(|id| self.executions.get_mut(id))
        {
            parent.queued_children = parent.queued_children.saturating_sub(1);
        }
    }

    /// When all holders of an agent wait for queued children of theirs, its oldest nested call
    /// starts over the cap: nobody else could ever free a slot.
    pub(crate) fn break_deadlocks(
        &mut self,
        now: Timestamp,
        among: [Option<AgentId>; 2],
        out: &mut Effects,
    ) {
        let stuck: Vec<AgentId> = among
            .iter()
            .flatten()
            .filter_map(|id| self.agents.get(id))
            .filter(|agent| {
                let Some(cap) = self.limits.cap(&agent.id) else {
                    return false;
                };
                agent.queue.stored() > 0
                    && agent.running() >= cap
                    && agent.holders.iter().all(|holder| {
                        self.executions
                            .get(holder)
                            .is_some_and(|holder| holder.queued_children > 0)
                    })
            })
            .map(|agent| agent.id.clone())
            .collect();
        for id in stuck {
            let Some(agent) = self.agents.get(&id) else {
                continue;
            };
            let oldest = agent
                .queue
                .window()
                .filter(|(_, id)| {
                    self.executions
                        .get(*id)
                        .is_some_and(|e| !e.row.holds.is_empty())
                })
                .min_by_key(|(key, _)| key.seq)
                .map(|(key, id)| (*key, id.clone()));
            if let Some((key, execution)) = oldest
                && let Some(execution) = self.take(&execution)
            {
                self.start_queued(now, key, execution, true, out);
            }
        }
    }

    pub(crate) fn window_loaded(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        rows: Vec<QueuedRow>,
        exhausted: bool,
        as_of: u64,
        out: &mut Effects,
    ) {
        let window = self.limits.queue_window;
        if !self.recent.ends_cover(as_of) {
            if let Some(agent) = self.agents.get_mut(id) {
                agent.queue.load_again();
            }
            return self.refill(id, out);
        }
        let mut read = Vec::with_capacity(rows.len());
        for QueuedRow { row } in rows {
            // What started or ended since the read is not queued any more.
            let known = self
                .executions
                .get(&row.id)
                .is_some_and(|e| !matches!(e.phase, Phase::Queued));
            if known || self.recent.ended(&row.id).is_some() {
                continue;
            }
            read.push((row.queue, row.id.clone()));
            if self.executions.contains_key(&row.id) {
                continue;
            }
            let idempotent = self
                .agents
                .get(id)
                .and_then(|agent| agent.function(&row.function))
                .is_some_and(|function| function.idempotent);
            self.join_run(&row.run, &row.root, 0, false);
            self.keep(Box::new(Execution::new(
                Arc::new(row),
                Phase::Queued,
                idempotent,
            )));
        }
        let leaving = match self.agents.get_mut(id) {
            Some(agent) => agent.queue.loaded(read, exhausted, window),
            None => return,
        };
        for left in leaving {
            self.forget_queued(&left);
        }
        self.pump(now, id, out);
    }
}

/// What an engine asks for again after a start: the heads of all queues.
pub(crate) fn first_windows(engine: &mut Engine, out: &mut Effects) {
    let limit = engine.limits.queue_window;
    for agent in engine.agents.values_mut() {
        if let Some(after) = agent.queue.wants_more(limit) {
            out.loads.push(Load::Window {
                agent: agent.id.clone(),
                after,
                limit,
            });
        }
    }
}
