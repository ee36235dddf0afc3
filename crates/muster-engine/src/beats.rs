//! Beats and silence: each instance has one deadline; when it is due it is heard, doubted, probed
//! or found gone. Every change of its state is told once.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Timestamp};

use crate::agent::Gate;
use crate::effect::{Effects, Notice, Send, Write};
use crate::engine::Engine;
use crate::event::InstanceKey;
use crate::liveness::InstanceState;
use crate::row::{EventKind, EventRow};
use crate::timers::TimerKey;

/// The least and the most that is believed of learned gaps.
const BEAT_LEAST: Duration = Duration::from_secs(2);

const BEAT_MOST: Duration = Duration::from_secs(60);

impl Engine {
    pub(crate) fn heard(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        at: Timestamp,
        interval: Option<Duration>,
        out: &mut Effects,
    ) {
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        if instance.facts.goodbye_at.is_some()
            || instance.facts.beat_at.is_some_and(|known| known >= at)
        {
            return;
        }
        let at = at.min(now);
        instance.facts.beat_at = Some(at);
        if let Some(interval) = interval {
            instance.facts.beat_interval = interval.clamp(BEAT_LEAST, BEAT_MOST);
        }
        if let Some(replaced) = instance.replaced_at
            && at > replaced
        {
            // Both beat: they share the address, behind a balancer.
            instance.replaced_at = None;
            instance.shares_address = true;
            let url = instance.facts.base_url.clone();
            if let Some(agent) = self.agents.get_mut(&key.agent) {
                for other in agent
                    .instances
                    .iter_mut()
                    .filter(|i| i.facts.base_url == url)
                {
                    other.shares_address = true;
                }
            }
        }
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        if instance.facts.gone.is_some() {
            // It was taken for gone by silence and a refused dial, and speaks again.
            instance.facts.gone = None;
            instance.facts.probe_failed = None;
            instance.orphans_at = None;
            out.writes
                .push(Write::PutInstance(Box::new(instance.row())));
        }
        let steady = !instance.watched && instance.gate == Gate::Open;
        self.rearm(now, key);
        if !steady {
            self.after_sign_of_life(now, &key.agent.clone(), out);
        }
    }

    /// Something lives: tells it, dials closed gates, starts who waits.
    pub(crate) fn after_sign_of_life(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        self.tell_instances(now, id, out);
        self.dial_gates(now, id, out);
        self.release_absorbed(now, id, out);
        self.pump(now, id, out);
    }

    /// An instance's timer: late beats, replacement, probes, orphans, a supervisor's time.
    pub(crate) fn instance_due(&mut self, now: Timestamp, key: &InstanceKey, out: &mut Effects) {
        let limits = self.liveness(&key.agent);
        let drain = self.limits.drain_grace;
        let acts = self.fleet.acts(now);
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        instance.armed = None;
        let facts = &mut instance.facts;
        if facts.restart_until.is_some_and(|until| until <= now) {
            facts.restart_until = None;
        }
        let doubt = !acts && facts.goodbye_at.is_none();
        let orphaned = !doubt && instance.orphans_at.is_some_and(|at| at <= now);
        let late = facts.late_after();
        let left = facts.gone.is_some() || facts.goodbye_at.is_some();
        let replaced = instance.replaced_at.filter(|at| !left && *at + late <= now);
        if facts.gone.is_none() {
            if let Some(at) = replaced {
                let evidence =
                    "another process registered at its address, and it has been silent since";
                self.gone(now, key, evidence.into(), at + drain, out);
            } else if facts.goodbye_at.is_none()
                && facts.restart_until.is_none()
                && now.since(facts.silent_since()) >= facts.probe_after(limits)
                && facts
                    .probe_failed
                    .as_ref()
                    .is_none_or(|(at, _)| *at <= facts.sign_at())
                && !instance.probing
            {
                if facts.base_url.is_empty() {
                    let text: Arc<str> = "another agent registered its address".into();
                    facts.probe_failed = Some((now, text.clone()));
                    self.gone(now, key, text, now + drain, out);
                } else {
                    instance.probing = true;
                    out.sends.push(Send::Probe {
                        key: key.clone(),
                        base_url: facts.base_url.clone(),
                    });
                }
            }
        }
        if orphaned {
            let evidence = self
                .agents
                .get(&key.agent)
                .and_then(|a| a.instance(&key.instance))
                .map(|i| i.facts.verdict(now, limits).evidence)
                .unwrap_or_default();
            self.orphan(now, key, &evidence, out);
        }
        self.rearm(now, key);
        self.tell_instances(now, &key.agent, out);
        self.end_absorbed_when_down(now, &key.agent, out);
    }

    /// Sets an instance's timer to the next moment at which its verdict can change by itself.
    pub(crate) fn rearm(&mut self, now: Timestamp, key: &InstanceKey) {
        let limits = self.liveness(&key.agent);
        let doubt = self.fleet.doubt.as_ref().map(|doubt| doubt.until);
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        let facts = &instance.facts;
        // While we doubt ourselves, silence orphans nothing.
        let doubt = doubt.filter(|until| *until > now && facts.goodbye_at.is_none());
        let orphans_at = instance
            .orphans_at
            .map(|at| doubt.map_or(at, |until| at.max(until)));
        let sign = facts.sign_at();
        // Each moment is one that `instance_due` handles, so that none is armed for ever: a past
        // one is looked at in this very step.
        let mut moments = [
            orphans_at,
            facts.restart_until,
            None,
            None,
            instance.replaced_at.map(|at| at + facts.late_after()),
        ];
        if facts.gone.is_none() && facts.goodbye_at.is_none() {
            let silent = facts.silent_since();
            // A microsecond past the bound: the verdict asks for more than it.
            let late = silent + facts.late_after() + Duration::from_micros(1);
            moments[2] = Some(late).filter(|late| *late > now);
            let probed = facts
                .probe_failed
                .as_ref()
                .is_some_and(|(at, _)| *at > sign);
            if !probed && !instance.probing {
                let probe = silent + facts.probe_after(limits);
                moments[3] = Some(probe.max(facts.restart_until.unwrap_or(probe)));
            }
        } else {
            moments[4] = None;
        }
        let look = moments.into_iter().flatten().min();
        let timers = &mut self.timers;
        timers.arm(&mut instance.armed, look, || {
            TimerKey::Instance(key.clone())
        });
    }

    /// Tells every state of an agent's instances that changed since it was last told.
    pub(crate) fn tell_instances(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get_mut(id) else {
            return;
        };
        let mut lines = Vec::new();
        for instance in &mut agent.instances {
            instance.told_at = now;
            let verdict = instance.facts.verdict(now, limits);
            let changed = verdict.state != instance.told;
            let watch = verdict.state != InstanceState::Active
                || instance.gate != Gate::Open
                || instance.replaced_at.is_some();
            // First the instance, then its watch: a watch of one that is not known would be lost.
            out.notices
                .push(Notice::Instance(Arc::new(instance.facts.clone())));
            if watch != instance.watched {
                instance.watched = watch;
                out.notices.push(Notice::Watch {
                    key: instance.facts.key.clone(),
                    on: watch,
                });
            }
            if !changed {
                continue;
            }
            instance.told = verdict.state;
            let kind = match verdict.state {
                InstanceState::Active => EventKind::InstanceActive,
                InstanceState::Degraded => EventKind::InstanceDegraded,
                InstanceState::Restarting => EventKind::InstanceRestarting,
                InstanceState::UnreachableCallback => EventKind::InstanceUnreachableCallback,
                InstanceState::Down => EventKind::InstanceDown,
                InstanceState::Unknown => continue,
            };
            let mut line = EventRow::line(kind, now);
            line.agent = Some(id.clone());
            line.instance = Some(instance.id().clone());
            line.text = Some(verdict.evidence.into());
            lines.push(line);
        }
        let silence_changed = lines.iter().any(|line| {
            matches!(
                line.kind,
                EventKind::InstanceDegraded | EventKind::InstanceActive
            )
        });
        for line in lines {
            self.tell(line, out);
        }
        if silence_changed {
            self.weigh_doubt(now, out);
        }
    }
}
