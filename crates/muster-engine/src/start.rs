//! Starting: which instance, the first attempt and later ones, whose turn is next, and what
//! waits while no instance can be called.

use std::sync::Arc;

use muster_wire::{InstanceId, Status, Timestamp};

use crate::agent::{Agent, Gate, Instance};
use crate::effect::{Dispatch, Effects, ExecutionChange, Send, Write};
use crate::engine::{Engine, attempt_secret};
use crate::event::AttemptKey;
use crate::execution::{Attempt, Execution, Phase};
use crate::liveness::{InstanceState, LivenessLimits};
use crate::row::{AttemptRow, EventKind, EventRow, Payload, PayloadKind};

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
    pub(crate) fn choose(
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
                && i.replaced_at.is_none()
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
    pub(crate) fn can_start(&self, now: Timestamp, limits: LivenessLimits) -> bool {
        self.instances.iter().any(|i| {
            i.is_present()
                && i.facts.goodbye_at.is_none()
                && i.replaced_at.is_none()
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
        if execution.row.status == Status::Paused {
            return self.park(now, execution, out);
        }
        let limits = self.liveness(&execution.row.agent);
        let not = match &how {
            Launch::Moved { from } => Some(from),
            Launch::New { .. } | Launch::Stored => None,
        };
        let agent_id = execution.row.agent.clone();
        let Some(agent) = self.agents.get(&agent_id) else {
            return;
        };
        let held = self.hold.is_some() || agent.stopped();
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
        let on_ramp = matches!(instance.gate, Gate::Ramp { .. });
        // One that was replaced there may yet beat again, and then they share the address.
        let here = |i: &&Instance| i.is_present() && i.facts.base_url == base_url;
        let shared = instance.shares_address
            || agent
                .instances
                .iter()
                .filter(here)
                .any(|i| i.replaced_at.is_some());
        let shares: Vec<InstanceId> = if shared {
            let here = agent.instances.iter().filter(here);
            here.map(|i| i.id().clone()).collect()
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
            sent_at: now,
            recover_until: None,
            on_ramp,
        };
        let again = execution.row.attempt > 0 || execution.row.status_reason.is_some();
        let row = Arc::make_mut(&mut execution.row);
        row.status = Status::Running;
        row.status_reason = None;
        row.attempt = n;
        row.started_at.get_or_insert(now);
        row.clock_from.get_or_insert(now);
        row.absorb_until = None;
        row.wait = None;
        row.resume_to = None;
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
            replay: replay(row),
            call_timeout: own.unwrap_or(self.limits.call_timeout),
            tell_when_taken: on_ramp,
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
                if let Gate::Ramp { allowed } = &mut instance.gate {
                    *allowed = allowed.saturating_sub(1);
                }
            }
        }
        self.keep(execution);
    }
}

/// From where the calls of an execution may be taken over.
fn replay(row: &crate::row::ExecutionRow) -> Option<Box<crate::row::Replay>> {
    let replay = row.links.as_ref()?.replay.as_ref()?;
    Some(Box::new(replay.clone()))
}
