//! Workers that are agents: a registration with a worker's key links the two. The worker's exit
//! and restart are then evidence about the instance; that its node is unreachable is not.

use std::sync::Arc;

use muster_wire::fleet::{NodeState, RestartMode};
use muster_wire::{AgentId, NodeId, Timestamp, WorkerId};

use super::{FleetNotice, notice};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::{InstanceKey, WorkerChange};

/// The longest time between two starts that calls wait for.
const BACK_OFF_MOST: std::time::Duration = std::time::Duration::from_secs(300);

impl Engine {
    /// An agent registered with a worker's key: calls to it go through the worker's node.
    pub(crate) fn link_agent(&mut self, worker: &str, agent: &AgentId, out: &mut Effects) {
        let Some(held) = self.fleet.workers.get_mut(worker) else {
            return;
        };
        if !held.lives() || held.row.agent.as_ref() == Some(agent) {
            return;
        }
        held.row.agent = Some(agent.clone());
        let id = held.row.id.clone();
        let node = held.row.node.clone();
        self.put_worker(&id, out);
        notice(
            FleetNotice::Route {
                worker: id.clone(),
                node,
            },
            out,
        );
        self.note_restarts(&id);
    }

    /// Notes whether a worker's node would start it again, for goodbyes of its agent.
    pub(crate) fn note_restarts(&mut self, id: &WorkerId) {
        let Some(worker) = self.fleet.workers.get(id) else {
            return;
        };
        let again = worker.lives()
            && worker.row.release.is_none()
            && (worker.row.restart.mode != RestartMode::Never || worker.restarting.is_some());
        self.workers.insert(id.as_str().into(), again);
    }

    /// Somebody wants a worker ended, or started again, or does no longer: whether a goodbye of its
    /// agent is one for good is another question now.
    pub(crate) fn agent_is_wished(&mut self, id: &WorkerId) {
        if self.worker_is_agent(id).is_some() {
            self.note_restarts(id);
        }
    }

    fn worker_is_agent(&self, id: &WorkerId) -> Option<AgentId> {
        self.fleet.workers.get(id)?.row.agent.clone()
    }

    /// The instances that are a worker's processes.
    fn processes_of(&self, id: &WorkerId) -> Vec<InstanceKey> {
        let Some(agent) = self.worker_is_agent(id).and_then(|a| self.agents.get(&a)) else {
            return Vec::new();
        };
        agent
            .instances
            .iter()
            .filter(|i| i.facts.worker.as_deref() == Some(id.as_str()) && i.is_present())
            .map(|i| i.facts.key.clone())
            .collect()
    }

    pub(crate) fn agent_process_started(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        out: &mut Effects,
    ) {
        if self.worker_is_agent(id).is_some() {
            self.worker_changed(now, id.as_str().into(), &WorkerChange::Started, out);
            self.note_restarts(id);
        }
    }

    pub(crate) fn agent_process_restarts(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        how: String,
        at: Timestamp,
        out: &mut Effects,
    ) {
        if self.worker_is_agent(id).is_none() {
            return;
        }
        let change = WorkerChange::ExitedWillRestart(how.into());
        self.worker_changed(now, id.as_str().into(), &change, out);
        // Its back-off may be longer than the grace: it is waited for until then.
        let wait = at.since(now).min(BACK_OFF_MOST);
        for key in self.processes_of(id) {
            let grace = self.restart_grace(&key.agent).unwrap_or_default();
            if let Some(instance) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|agent| agent.instance_mut(&key.instance))
            {
                instance.facts.restart_until = Some(now + wait + grace);
            }
            self.wait_for_restart(now, &key.agent, now + wait + grace, out);
            self.rearm(now, &key);
        }
    }

    pub(crate) fn agent_process_ended(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        text: Arc<str>,
        out: &mut Effects,
    ) {
        if self.worker_is_agent(id).is_some() {
            let change = WorkerChange::Exited(text);
            self.worker_changed(now, id.as_str().into(), &change, out);
        }
    }

    /// A node cannot be reached: whether its agents' processes run, nobody knows. That is no
    /// exit, and what cannot be dialled there says nothing about them.
    pub(crate) fn agents_of_node_are_unknown(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        out: &mut Effects,
    ) {
        let Some(held) = self.fleet.nodes.get(node) else {
            return;
        };
        let workers: Vec<WorkerId> = held.workers.iter().cloned().collect();
        for id in workers {
            self.agent_is_away(now, &id, out);
        }
    }

    /// The same for one worker, where its node is not online.
    pub(crate) fn agent_is_away(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        if self.worker_is_agent(id).is_none() {
            return;
        }
        let node = self.fleet.workers.get(id).and_then(|w| w.row.node.as_ref());
        let Some(node) = node.and_then(|node| self.fleet.nodes.get(node)) else {
            return;
        };
        if node.state.0 == NodeState::Online {
            return;
        }
        let text: Arc<str> = format!("its node {} is {}", node.row.name, node.state.0).into();
        for key in self.processes_of(id) {
            if let Some(instance) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|agent| agent.instance_mut(&key.instance))
            {
                let since = instance.facts.node_away.as_ref().map_or(now, |(at, _)| *at);
                instance.facts.node_away = Some((since, text.clone()));
            }
            self.rearm(now, &key);
            self.tell_instances(now, &key.agent, out);
        }
    }

    /// A worker that is an agent was confirmed: its node can be reached.
    pub(crate) fn agent_is_back(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        if self.worker_is_agent(id).is_none() {
            return;
        }
        for key in self.processes_of(id) {
            let Some(instance) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|agent| agent.instance_mut(&key.instance))
            else {
                continue;
            };
            if instance.facts.node_away.take().is_none() {
                continue;
            }
            // It could not be reached, and that said nothing about it.
            instance.facts.probe_failed = None;
            instance.facts.forgiven_until = instance.facts.forgiven_until.max(now);
            self.rearm(now, &key);
            self.after_sign_of_life(now, &key.agent, out);
        }
    }

    pub(crate) fn agents_of_node_are_back(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        out: &mut Effects,
    ) {
        let Some(held) = self.fleet.nodes.get(node) else {
            return;
        };
        let workers: Vec<WorkerId> = held.workers.iter().cloned().collect();
        for id in workers {
            self.agent_is_back(now, &id, out);
        }
    }
}
