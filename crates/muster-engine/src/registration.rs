//! Registrations: who owns an id, whose address it is, what is offered. A registration never ends
//! another instance.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, Timestamp, WorkerId};

use crate::agent::{Agent, DIAL_LONGEST, Gate, Instance};
use crate::effect::{Effects, Notice, Reply, Send, Write};
use crate::engine::Engine;
use crate::event::{InstanceKey, Registration};
use crate::liveness::{InstanceFacts, InstanceState};
use crate::refusal::Refusal;
use crate::row::{AgentRow, EventKind, EventRow};

/// The gap between beats until one was learned.
const BEAT_UNLEARNED: Duration = Duration::from_secs(5);
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
        if let Some(owner) = self.owner_of_address(now, &registration) {
            let refusal = Refusal::AddressTaken {
                base_url: registration.base_url.clone(),
                owner,
            };
            return out
                .replies
                .push((registration.waiter, Reply::Refused(refusal)));
        }
        let created_at = known.map_or(now, |agent| agent.created_at);
        self.agents
            .entry(id.clone())
            .or_insert_with(|| Agent::new(id.clone(), registration.principal.clone(), now));
        let was_stopped = self.agents.get(&id).is_some_and(Agent::stopped);
        let pending_tags = self.ask_for_tags(now, &id, &registration.tags, out);
        out.writes.push(Write::PutAgent(Box::new(AgentRow {
            id: id.clone(),
            principal: registration.principal.clone(),
            created_at,
            registered_at: now,
            registration: registration.body.clone(),
            held: self.agents.get(&id).is_some_and(|agent| agent.held),
            tags: self
                .agents
                .get(&id)
                .map(|agent| agent.tags.clone())
                .unwrap_or_default(),
            cap: self.agents.get(&id).and_then(|agent| agent.cap),
        })));
        out.replies.push((
            registration.waiter,
            Reply::Registered {
                base_url: registration.base_url.clone(),
                pending_tags,
            },
        ));
        if let Some(worker) = &registration.worker {
            self.link_agent(worker, &id, out);
        }
        self.take_address(now, &registration, out);
        self.renew_instance(now, &registration, out);
        if let Some(worker) = &registration.worker {
            self.agent_is_away(now, &WorkerId::trusted(worker.clone()), out);
        }
        self.tell_directory(&id, out);
        if was_stopped != self.agents.get(&id).is_some_and(Agent::stopped) {
            self.wait_anew(now, &id, out);
        }
        self.after_sign_of_life(now, &id, out);
    }

    /// A registration takes its address from another agent, and replaces an older process of
    /// its own there unless that one beats again.
    /// The agent of somebody else that lives at the address, if there is one: only within one
    /// principal does a registration take an address away.
    fn owner_of_address(&self, now: Timestamp, registration: &Registration) -> Option<AgentId> {
        let here = self.addresses.get(&registration.base_url)?;
        let lives = |key: &&InstanceKey| {
            let limits = self.liveness(&key.agent);
            self.agents.get(&key.agent).is_some_and(|agent| {
                agent.principal != registration.principal
                    && agent.instance(&key.instance).is_some_and(|instance| {
                        instance.is_present()
                            && instance.facts.verdict(now, limits).state != InstanceState::Down
                    })
            })
        };
        here.iter().find(lives).map(|key| key.agent.clone())
    }

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
        // One that was found elsewhere than it says stays there: it says the same again.
        let moved = position.is_some()
            && instance.given_url == registration.base_url
            && !old_url.is_empty()
            && registration.candidates.contains(&old_url);
        if !moved {
            instance.facts.base_url = registration.base_url.clone();
        }
        instance.given_url = registration.base_url.clone();
        instance.facts.candidates = registration.candidates.iter().cloned().collect();
        instance.sought_at = None;
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
        let base_url = instance.facts.base_url.clone();
        agent.instances.push(instance);
        forget_long_gone(agent);
        if position.is_none() || old_url != base_url {
            out.sends.push(Send::CloseIdle(key.clone()));
            self.forget_address(&old_url, &key);
            let here = self.addresses.entry(base_url).or_default();
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

    /// Tells what an agent offers, and whether it may be called.
    pub(crate) fn tell_directory(&self, id: &AgentId, out: &mut Effects) {
        let Some(agent) = self.agents.get(id) else {
            return;
        };
        let unapproved = if agent.unapproved {
            agent.tags.unapproved()
        } else {
            Vec::new()
        };
        out.notices.push(Notice::Directory {
            agent: id.clone(),
            functions: agent.functions(),
            unapproved: Arc::new(unapproved),
        });
    }

    pub(crate) fn forget_address(&mut self, url: &Arc<str>, key: &InstanceKey) {
        if let Some(here) = self.addresses.get_mut(url) {
            here.retain(|other| other != key);
            if here.is_empty() {
                self.addresses.remove(url);
            }
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
            exchange_at: None,
            wait_ran_out_at: None,
            gone: None,
            forgiven_until: Timestamp::ZERO,
            heard_since: None,
            worker: registration.worker.clone(),
            node_away: None,
            candidates: Arc::default(),
            in_flight: 0,
        },
        gate: Gate::Open,
        replaced_at: None,
        shares_address: false,
        orphans_at: None,
        probing: false,
        given_url: registration.base_url.clone(),
        sought_at: None,
        told: InstanceState::Unknown,
        told_at: now,
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
