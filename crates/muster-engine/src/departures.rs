//! Departures: goodbyes, supervisors' reports, and the end of what only the departed had. An
//! instance is gone only on evidence.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Category, ExecutionId, InstanceId, Timestamp};

use crate::agent::{Agent, Instance};
use crate::effect::{Effects, Reply, Send, Write};
use crate::ending::End;
use crate::engine::Engine;
use crate::event::{InstanceKey, Waiter, WorkerChange};
use crate::execution::Phase;
use crate::row::{AttemptOutcome, EventKind, EventRow};

/// How long a process may take to end before its supervisor kills it, what is on its way to it
/// included; added to the grace of a restart.
const DRAIN_UNDER_SUPERVISOR: Duration = Duration::from_secs(16);

/// What a goodbye's own time-out gets on top before its executions count as orphans.
const GOODBYE_SLACK: Duration = Duration::from_secs(5);

impl Engine {
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
        let Some(key) = who_left(agent, instance, now) else {
            return;
        };
        let silent: Vec<InstanceKey> = agent
            .instances
            .iter()
            .filter(|i| i.facts.key != key && i.is_present() && !speaks(i, now))
            .map(|i| i.facts.key.clone())
            .collect();
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
        for key in silent {
            self.ask_the_silent(now, &key, out);
        }
        self.end_absorbed_when_down(now, id, out);
    }

    /// The one that spoke for the agent has left: whether a silent one is still there decides
    /// whether calls wait for it, so it is asked now and not after the grace.
    fn ask_the_silent(&mut self, now: Timestamp, key: &InstanceKey, out: &mut Effects) {
        let drain = self.limits.drain_grace;
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        if instance.probing || instance.facts.goodbye_at.is_some() {
            return;
        }
        if instance.facts.base_url.is_empty() {
            let text: Arc<str> = "silent, and another agent registered its address".into();
            instance.facts.probe_failed = Some((now, text.clone()));
            return self.gone(now, key, text, now + drain, out);
        }
        instance.probing = true;
        out.sends.push(Send::Probe {
            key: key.clone(),
            base_url: instance.facts.base_url.clone(),
        });
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
                    let back_by = now + grace + DRAIN_UNDER_SUPERVISOR;
                    instance.facts.restart_until = Some(back_by);
                    self.wait_for_restart(now, &key.agent, back_by, out);
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

    /// An instance is gone: its open executions end at `orphans_at`, unless they end before.
    pub(crate) fn gone(
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
    pub(crate) fn orphan(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        evidence: &str,
        out: &mut Effects,
    ) {
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
            .chain(&agent.waiters)
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
}

/// The one there is, when there is just one.
fn only<'a>(mut some: impl Iterator<Item = &'a Instance>) -> Option<&'a Instance> {
    let first = some.next();
    first.filter(|_| some.next().is_none())
}

/// Whether an instance has an address and missed no beat.
fn speaks(instance: &Instance, now: Timestamp) -> bool {
    let facts = &instance.facts;
    let missed = facts.beat_interval + facts.beat_interval / 2;
    !facts.base_url.is_empty()
        && instance.replaced_at.is_none()
        && now.since(facts.sign_at()) <= missed
}

/// Who says goodbye. The published SDK does not say which process it is. With one there is no
/// doubt; with several it is the one that is named, or the only one that missed no beat, or else
/// nobody's: a goodbye of an old process must not take down the new one.
fn who_left(agent: &Agent, named: Option<&InstanceId>, now: Timestamp) -> Option<InstanceKey> {
    let present = || {
        agent
            .instances
            .iter()
            .filter(|i| i.is_present() && i.facts.goodbye_at.is_none())
    };
    let found = match named {
        Some(named) => present().find(|i| i.id() == named),
        None => only(present()).or_else(|| only(present().filter(|i| speaks(i, now)))),
    };
    found.map(|i| i.facts.key.clone())
}
