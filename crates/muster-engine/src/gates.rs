//! Gates: one for an instance. After a failed dial nothing goes out until a dial gets through,
//! and then on a ramp; probes ask silent instances whether they are there.

use std::sync::Arc;

use muster_wire::{AgentId, Timestamp};

use crate::agent::DIAL_FIRST;
use crate::agent::{DIAL_LONGEST, Gate, Instance};
use crate::effect::{Effects, Send};
use crate::engine::Engine;
use crate::event::{InstanceKey, Probe};
use crate::liveness::InstanceState;

impl Engine {
    pub(crate) fn dialled(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        base_url: &Arc<str>,
        error: Option<Arc<str>>,
        out: &mut Effects,
    ) {
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        let Gate::Closed { wait, dialling } = &mut instance.gate else {
            return;
        };
        *dialling = false;
        if instance.facts.base_url != *base_url {
            // It moved meanwhile; its new address is dialled afresh.
            return self.dial_gates(now, &key.agent, out);
        }
        match error {
            None => instance.gate = Gate::Ramp { allowed: 1 },
            Some(error) => {
                *wait = (*wait * 2).clamp(crate::agent::DIAL_FIRST, DIAL_LONGEST);
                instance.facts.dial_failed = Some((now, error));
                instance.facts.dial_failing_since.get_or_insert(now);
                self.seek(now, key, out);
            }
        }
        self.after_sign_of_life(now, &key.agent, out);
    }

    pub(crate) fn probed(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        seen: Probe,
        out: &mut Effects,
    ) {
        let behind_proxy = self.limits.behind_proxy;
        let drain = self.limits.drain_grace;
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        instance.probing = false;
        // What cannot be reached behind an unreachable node says nothing about a process.
        let shared = behind_proxy || instance.shares_address || instance.facts.node_away.is_some();
        let gone = match seen {
            Probe::Alive => {
                instance.facts.probe_alive_at = Some(now);
                None
            }
            Probe::Silent(text) => {
                instance.facts.probe_failed = Some((now, text));
                None
            }
            Probe::Refused(text) => {
                instance.facts.probe_failed = Some((now, text.clone()));
                (!shared).then_some(format!("silent, and its address refuses: {text}"))
            }
            Probe::SomebodyElse(who) => {
                let text: Arc<str> = format!("answered as {who}").into();
                instance.facts.probe_failed = Some((now, text));
                (!shared).then_some(format!("silent, and its address answers as {who}"))
            }
        };
        if let Some(evidence) = gone {
            self.gone(now, key, evidence.into(), now + drain, out);
        }
        self.rearm(now, key);
        self.after_sign_of_life(now, &key.agent, out);
        self.end_absorbed_when_down(now, &key.agent, out);
    }

    /// Closed gates that have evidence of life are dialled: again and again while somebody waits.
    pub(crate) fn dial_gates(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let grace = self.restart_grace(id).unwrap_or_default();
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get_mut(id) else {
            return;
        };
        let somebody_waits = !agent.absorbed.is_empty() || !agent.queue.is_empty();
        for instance in &mut agent.instances {
            let facts = &instance.facts;
            let Gate::Closed { wait, dialling } = &mut instance.gate else {
                continue;
            };
            // While others serve the calls, nobody waits for this one: each beat is a reason to
            // try it once more.
            let beat_since = facts
                .dial_failed
                .as_ref()
                .zip(facts.beat_at)
                .is_some_and(|((failed, _), beat)| beat > *failed);
            if !(somebody_waits || beat_since) || instance.replaced_at.is_some() {
                continue;
            }
            let failed = facts.dial_failing_since.unwrap_or(Timestamp::ZERO);
            let state = facts.verdict(now, limits).state;
            // A beat after the first failure, or a registration so young that it may not listen
            // yet. One that has answered did listen: what listens there now may be another.
            let answered = facts.exchange_at.is_some_and(|at| at > facts.renewed_at);
            let may_not_listen_yet = facts.renewed_at + grace > now && !answered;
            let evidence = facts.beat_at.is_some_and(|beat| beat > failed) || may_not_listen_yet;
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
}
