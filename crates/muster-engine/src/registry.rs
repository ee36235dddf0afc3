//! Who is there: registrations, beats, goodbyes, supervisors' reports, dials and probes, and
//! what follows from them. "It stopped talking to us" and "it died" are different facts; an
//! instance is gone only on evidence.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Category, ExecutionId, InstanceId, Timestamp};

use crate::agent::{Agent, DIAL_LONGEST, Gate, Instance};
use crate::effect::{Effects, Notice, Reply, Send, Write};
use crate::ending::End;
use crate::engine::Engine;
use crate::event::{InstanceKey, Probe, Registration, Waiter, WorkerChange};
use crate::execution::Phase;
use crate::liveness::{InstanceFacts, InstanceState};
use crate::refusal::Refusal;
use crate::row::{AgentRow, AttemptOutcome, EventKind, EventRow};
use crate::timers::TimerKey;

/// The gap between beats until one was learned.
const BEAT_UNLEARNED: Duration = Duration::from_secs(5);
/// The least and the most that is believed of learned gaps.
const BEAT_LEAST: Duration = Duration::from_secs(2);
const BEAT_MOST: Duration = Duration::from_secs(60);
/// How long a process may drain before its supervisor kills it; added to the grace of a restart.
const DRAIN_UNDER_SUPERVISOR: Duration = Duration::from_secs(10);
/// What a goodbye's own time-out gets on top before its executions count as orphans.
const GOODBYE_SLACK: Duration = Duration::from_secs(5);
/// Gone instances kept in memory for an agent, newest first.
const GONE_KEPT: usize = 4;

impl Engine {
    pub(crate) fn registered(
        &mut self,
        now: Timestamp,
        registration: Registration,
        out: &mut Effects,
    ) {
        let id = registration.agent.clone();
        let known = self.agents.get(&id);
        if known.is_some_and(|agent| agent.principal != registration.principal) {
            return out.replies.push((
                registration.waiter,
                Reply::Refused(Refusal::AgentIdTaken { agent: id }),
            ));
        }
        let created_at = known.map_or(now, |agent| agent.created_at);
        self.agents
            .entry(id.clone())
            .or_insert_with(|| Agent::new(id.clone(), registration.principal.clone(), now));
        out.writes.push(Write::PutAgent(Box::new(AgentRow {
            id: id.clone(),
            principal: registration.principal.clone(),
            created_at,
            registered_at: now,
            registration: registration.body.clone(),
            held: self.agents.get(&id).is_some_and(|agent| agent.held),
        })));
        out.replies.push((
            registration.waiter,
            Reply::Registered {
                base_url: registration.base_url.clone(),
            },
        ));
        self.take_address(now, &registration, out);
        self.renew_instance(now, &registration, out);
        out.notices.push(Notice::Directory {
            agent: id.clone(),
            functions: self
                .agents
                .get(&id)
                .map(Agent::functions)
                .unwrap_or_default(),
        });
        self.after_sign_of_life(now, &id, out);
    }

    /// A registration takes its address from another agent, and replaces an older process of
    /// its own there unless that one beats again.
    fn take_address(&mut self, now: Timestamp, registration: &Registration, out: &mut Effects) {
        let here = self
            .addresses
            .get(&registration.base_url)
            .cloned()
            .unwrap_or_default();
        for key in here {
            let own = key.agent == registration.agent;
            if own && key.instance == registration.instance {
                continue;
            }
            let Some(other) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|a| a.instance_mut(&key.instance))
            else {
                continue;
            };
            if !other.is_present() {
                continue;
            }
            if own {
                if other.replaced_at.is_none() && !other.shares_address {
                    other.replaced_at = Some(now);
                }
            } else {
                other.facts.base_url = "".into();
                other.gate = Gate::Closed {
                    wait: DIAL_LONGEST,
                    dialling: false,
                };
                out.writes.push(Write::PutInstance(Box::new(other.row())));
                out.sends.push(Send::CloseIdle(key.clone()));
                self.forget_address(&registration.base_url, &key);
            }
            self.rearm(now, &key);
            self.tell_instances(now, &key.agent, out);
        }
    }

    fn renew_instance(&mut self, now: Timestamp, registration: &Registration, out: &mut Effects) {
        let key = InstanceKey {
            agent: registration.agent.clone(),
            instance: registration.instance.clone(),
        };
        let Some(agent) = self.agents.get_mut(&key.agent) else {
            return;
        };
        let position = agent.instances.iter().position(|i| *i.id() == key.instance);
        let shares = agent.instances.iter().any(|i| {
            *i.id() != key.instance
                && i.is_present()
                && i.facts.base_url == registration.base_url
                && i.shares_address
        });
        let mut instance = match position {
            Some(position) => agent.instances.remove(position),
            None => new_instance(now, registration),
        };
        let old_url = instance.facts.base_url.clone();
        // A drain of the SDK registers again; that does not undo its goodbye.
        let leaving = instance.facts.goodbye_at.is_some() && !registration.starting;
        instance.facts.renewed_at = now;
        if !leaving {
            instance.facts.goodbye_at = None;
            instance.facts.restart_until = None;
            instance.facts.gone = None;
            instance.orphans_at = None;
        }
        instance.facts.base_url = registration.base_url.clone();
        instance.facts.version = registration.version.clone();
        instance.facts.functions = registration.functions.clone();
        if registration.worker.is_some() {
            instance.facts.worker.clone_from(&registration.worker);
        }
        instance.facts.dial_failed = None;
        instance.facts.dial_failing_since = None;
        instance.facts.probe_failed = None;
        instance.facts.wait_ran_out_at = None;
        instance.replaced_at = None;
        instance.shares_address = shares;
        let somebody_waits = !agent.absorbed.is_empty();
        instance.gate = if somebody_waits {
            Gate::Closed {
                wait: Duration::ZERO,
                dialling: false,
            }
        } else {
            Gate::Open
        };
        out.writes
            .push(Write::PutInstance(Box::new(instance.row())));
        agent.instances.push(instance);
        forget_long_gone(agent);
        if position.is_none() || old_url != registration.base_url {
            out.sends.push(Send::CloseIdle(key.clone()));
            self.forget_address(&old_url, &key);
            let here = self
                .addresses
                .entry(registration.base_url.clone())
                .or_default();
            if !here.contains(&key) {
                here.push(key.clone());
            }
        }
        let mut line = EventRow::line(EventKind::InstanceRegistered, now);
        line.agent = Some(key.agent.clone());
        line.instance = Some(key.instance.clone());
        line.text = Some(registration.base_url.clone());
        self.tell(line, out);
        // The old process of the same worker is gone: its supervisor started this one.
        if let Some(worker) = &registration.worker {
            self.older_of_worker_gone(now, worker, &key, out);
        }
        self.rearm(now, &key);
    }

    fn older_of_worker_gone(
        &mut self,
        now: Timestamp,
        worker: &Arc<str>,
        newest: &InstanceKey,
        out: &mut Effects,
    ) {
        let older: Vec<InstanceKey> = self
            .agents
            .get(&newest.agent)
            .into_iter()
            .flat_map(|agent| &agent.instances)
            .filter(|i| {
                i.facts.worker.as_ref() == Some(worker)
                    && *i.id() != newest.instance
                    && i.is_present()
            })
            .map(|i| i.facts.key.clone())
            .collect();
        for key in older {
            self.gone(
                now,
                &key,
                "its supervisor started another process in its place".into(),
                now,
                out,
            );
        }
    }

    fn forget_address(&mut self, url: &Arc<str>, key: &InstanceKey) {
        if let Some(here) = self.addresses.get_mut(url) {
            here.retain(|other| other != key);
            if here.is_empty() {
                self.addresses.remove(url);
            }
        }
    }

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
    fn after_sign_of_life(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        self.tell_instances(now, id, out);
        self.dial_gates(now, id, out);
        self.release_absorbed(now, id, out);
        self.pump(now, id, out);
    }

    pub(crate) fn goodbye(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        instance: Option<&InstanceId>,
        drain: Duration,
        waiter: Waiter,
        out: &mut Effects,
    ) {
        let Some(agent) = self.agents.get(id) else {
            return out.replies.push((waiter, Reply::UnknownAgent));
        };
        out.replies.push((waiter, Reply::Done));
        // The published SDK does not say which process says goodbye. With one there is no doubt;
        // with several it is the one whose key says so, or else nobody's.
        let present: Vec<&Instance> = agent
            .instances
            .iter()
            .filter(|i| i.is_present() && i.facts.goodbye_at.is_none())
            .collect();
        let key = match instance {
            Some(named) => present
                .iter()
                .find(|i| i.id() == named)
                .map(|i| i.facts.key.clone()),
            None => match present.as_slice() {
                [only] => Some(only.facts.key.clone()),
                _ => None,
            },
        };
        let Some(key) = key else { return };
        let grace = self.restart_grace(id).unwrap_or_default();
        let slack = self.limits.drain_grace.max(drain + GOODBYE_SLACK);
        let restarts = agent
            .instance(&key.instance)
            .and_then(|i| i.facts.worker.as_ref())
            .is_some_and(|worker| self.workers.get(worker) == Some(&true));
        let Some(leaving) = self
            .agents
            .get_mut(id)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        leaving.facts.goodbye_at = Some(now);
        leaving.orphans_at = Some(now + slack);
        if restarts {
            leaving.facts.restart_until = Some(now + grace + DRAIN_UNDER_SUPERVISOR);
        }
        out.writes.push(Write::PutInstance(Box::new(leaving.row())));
        out.sends.push(Send::CloseIdle(key.clone()));
        let mut line = EventRow::line(EventKind::InstanceGoodbye, now);
        line.agent = Some(id.clone());
        line.instance = Some(key.instance.clone());
        self.tell(line, out);
        self.rearm(now, &key);
        self.tell_instances(now, id, out);
        self.end_absorbed_when_down(now, id, out);
    }

    pub(crate) fn worker_changed(
        &mut self,
        now: Timestamp,
        worker: Arc<str>,
        change: &WorkerChange,
        out: &mut Effects,
    ) {
        let restarts = !matches!(change, WorkerChange::Exited(_));
        self.workers.insert(worker.clone(), restarts);
        let keys: Vec<InstanceKey> = self
            .agents
            .values()
            .flat_map(|agent| &agent.instances)
            .filter(|i| i.facts.worker.as_ref() == Some(&worker) && i.is_present())
            .map(|i| i.facts.key.clone())
            .collect();
        for key in keys {
            let grace = self.restart_grace(&key.agent).unwrap_or_default();
            let Some(instance) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|a| a.instance_mut(&key.instance))
            else {
                continue;
            };
            match change {
                WorkerChange::WillRestart => {
                    instance.facts.restart_until = Some(now + grace + DRAIN_UNDER_SUPERVISOR);
                    self.rearm(now, &key);
                    self.tell_instances(now, &key.agent, out);
                }
                WorkerChange::Started => {
                    if instance.facts.restart_until.is_some() {
                        instance.facts.restart_until = Some(now + grace);
                    }
                    self.rearm(now, &key);
                }
                WorkerChange::ExitedWillRestart(how) => {
                    instance.facts.restart_until = Some(now + grace);
                    self.orphan(now, &key, how, out);
                    self.rearm(now, &key);
                    self.tell_instances(now, &key.agent, out);
                }
                WorkerChange::Exited(how) => {
                    instance.facts.restart_until = None;
                    self.gone(now, &key, how.clone(), now, out);
                    self.end_absorbed_when_down(now, &key.agent, out);
                }
            }
        }
    }

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
            None => instance.gate = Gate::Ramp { allowed: 1, out: 0 },
            Some(error) => {
                *wait = (*wait * 2).clamp(crate::agent::DIAL_FIRST, DIAL_LONGEST);
                instance.facts.dial_failed = Some((now, error));
                instance.facts.dial_failing_since.get_or_insert(now);
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
        let shared = behind_proxy || instance.shares_address;
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

    /// An instance is gone: its open executions end at `orphans_at`, unless they end before.
    fn gone(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        evidence: Arc<str>,
        orphans_at: Timestamp,
        out: &mut Effects,
    ) {
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        if instance.facts.gone.is_none() {
            instance.facts.gone = Some((now, evidence.clone()));
            let mut line = EventRow::line(EventKind::InstanceGone, now);
            line.agent = Some(key.agent.clone());
            line.instance = Some(key.instance.clone());
            line.text = Some(evidence.clone());
            let orphans_at = instance
                .orphans_at
                .map_or(orphans_at, |at| at.min(orphans_at));
            instance.orphans_at = Some(orphans_at);
            instance.replaced_at = None;
            out.writes
                .push(Write::PutInstance(Box::new(instance.row())));
            out.sends.push(Send::CloseIdle(key.clone()));
            self.tell(line, out);
        }
        if orphans_at <= now {
            self.orphan(now, key, &evidence, out);
        }
        self.rearm(now, key);
        self.tell_instances(now, &key.agent, out);
    }

    /// Ends the open executions that only this instance can have.
    fn orphan(&mut self, now: Timestamp, key: &InstanceKey, evidence: &str, out: &mut Effects) {
        let Some(agent) = self.agents.get_mut(&key.agent) else {
            return;
        };
        if let Some(instance) = agent.instance_mut(&key.instance) {
            instance.orphans_at = None;
        }
        let Some(agent) = self.agents.get(&key.agent) else {
            return;
        };
        let lives = |id: &InstanceId| {
            *id != key.instance
                && agent
                    .instance(id)
                    .is_some_and(|i| i.facts.gone.is_none() && i.facts.goodbye_at.is_none())
        };
        let mut orphans: Vec<ExecutionId> = agent
            .holders
            .iter()
            .filter(|id| {
                self.executions
                    .get(*id)
                    .and_then(|e| e.attempt())
                    .is_some_and(|attempt| {
                        let mine = attempt.instance == key.instance
                            || attempt.candidates.contains(&key.instance);
                        mine && !attempt.candidates.iter().any(lives) && !lives(&attempt.instance)
                    })
            })
            .cloned()
            .collect();
        if self.observed > 0 {
            orphans.extend(self.executions.values().filter_map(|e| match &e.phase {
                Phase::Observed {
                    instance: Some(instance),
                    ..
                } if *instance == key.instance && e.row.agent == key.agent => {
                    Some(e.row.id.clone())
                }
                _ => None,
            }));
        }
        for id in orphans {
            let Some(execution) = self.take(&id) else {
                continue;
            };
            let text = format!("the process that had it is gone: {evidence}");
            let observed = matches!(execution.phase, Phase::Observed { .. });
            if observed {
                self.end(
                    now,
                    execution,
                    End::failed(Category::AgentRestartOrphaned, text),
                    out,
                );
            } else {
                self.end_unknown(
                    now,
                    execution,
                    Category::AgentRestartOrphaned,
                    text,
                    AttemptOutcome::Orphaned,
                    out,
                );
            }
        }
    }

    /// An instance's timer: late beats, replacement, probes, orphans, a supervisor's time.
    pub(crate) fn instance_due(&mut self, now: Timestamp, key: &InstanceKey, out: &mut Effects) {
        let limits = self.liveness(&key.agent);
        let drain = self.limits.drain_grace;
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
        let orphaned = instance.orphans_at.is_some_and(|at| at <= now);
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
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        let facts = &instance.facts;
        let sign = facts.sign_at();
        // Each moment is one that `instance_due` handles, so that none is armed for ever: a past
        // one is looked at in this very step.
        let mut moments = [
            instance.orphans_at,
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
            let verdict = instance.facts.verdict(now, limits);
            let changed = verdict.state != instance.told;
            let watch = verdict.state != InstanceState::Active
                || instance.gate != Gate::Open
                || instance.replaced_at.is_some();
            if watch != instance.watched {
                instance.watched = watch;
                out.notices.push(Notice::Watch {
                    key: instance.facts.key.clone(),
                    on: watch,
                });
            }
            out.notices
                .push(Notice::Instance(Arc::new(instance.facts.clone())));
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
        for line in lines {
            self.tell(line, out);
        }
    }
}

fn new_instance(now: Timestamp, registration: &Registration) -> Instance {
    Instance {
        facts: InstanceFacts {
            key: InstanceKey {
                agent: registration.agent.clone(),
                instance: registration.instance.clone(),
            },
            base_url: registration.base_url.clone(),
            version: registration.version.clone(),
            functions: registration.functions.clone(),
            registered_at: now,
            renewed_at: now,
            beat_at: None,
            beat_interval: BEAT_UNLEARNED,
            goodbye_at: None,
            restart_until: None,
            dial_failed: None,
            dial_failing_since: None,
            probe_failed: None,
            probe_alive_at: None,
            wait_ran_out_at: None,
            gone: None,
            forgiven_until: Timestamp::ZERO,
            worker: registration.worker.clone(),
            in_flight: 0,
        },
        gate: Gate::Open,
        replaced_at: None,
        shares_address: false,
        orphans_at: None,
        probing: false,
        told: InstanceState::Unknown,
        watched: false,
        armed: None,
    }
}

/// Gone instances without work are history; a few are kept to explain.
fn forget_long_gone(agent: &mut Agent) {
    let mut gone = agent
        .instances
        .iter()
        .filter(|i| i.facts.gone.is_some())
        .count();
    agent.instances.retain(|i| {
        let old = i.facts.gone.is_some()
            && i.facts.in_flight == 0
            && i.orphans_at.is_none()
            && i.armed.is_none();
        let drop = old && gone > GONE_KEPT;
        if drop {
            gone -= 1;
        }
        !drop
    });
}
