//! Transitions of a node: computed in one place, told once, with what follows from each. Beats
//! of a healthy node write nothing.

use std::sync::Arc;

use muster_wire::fleet::{ExitHow, NodeState, WorkerState};
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::node::Sign;
use super::{FleetSend, Line, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::row::EventKind;
use crate::timers::TimerKey;

impl Engine {
    /// Looks at a node: what changed is written and told, and what follows is done.
    pub(crate) fn settle_node(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let limits = self.limits.fleet;
        let acts = self.fleet.acts(now);
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        if node.is_retired() {
            return self.rearm_node(now, id);
        }
        let from = node.state.0;
        let to = node.verdict(now, &limits, acts);
        if from != to {
            node.state = (to, now);
            if matches!(to, NodeState::Suspect | NodeState::Unreachable) {
                // The next grace begins now, whole.
                node.excused = std::time::Duration::ZERO;
            }
            self.node_turned(now, id, from, to, out);
        }
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let sign = node.sign(now, &limits);
        if node.state.0 == NodeState::Suspect
            && sign == Sign::Overdue
            && let Some(link) = node.link.as_mut().filter(|link| !link.asked)
        {
            link.asked = true;
            let ask = FleetSend::Ask {
                node: id.clone(),
                link: link.id,
            };
            send(ask, out);
        }
        self.rearm_node(now, id);
    }

    /// Sets a node's timer. An entry that fires early is set again then, so that a beat costs
    /// nothing.
    pub(crate) fn rearm_node(&mut self, now: Timestamp, id: &NodeId) {
        let limits = self.limits.fleet;
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let look = node.next_look(now, &limits);
        let key = || TimerKey::Node(id.clone());
        match look {
            None => self.timers.arm(&mut node.armed, None, key),
            Some(at) if node.armed.is_none_or(|armed| armed > at) => {
                self.timers.arm(&mut node.armed, Some(at), key);
            }
            Some(_) => {}
        }
    }

    /// A node's timer.
    pub(crate) fn node_due(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        if let Some(node) = self.fleet.nodes.get_mut(id) {
            node.armed = None;
            self.settle_node(now, id, out);
        }
    }

    /// An operator says that a node will not come back.
    pub(crate) fn become_lost(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let from = node.state.0;
        node.state = (NodeState::Lost, now);
        if from == NodeState::Lost {
            self.put_node(id, out);
        } else {
            self.node_turned(now, id, from, NodeState::Lost, out);
        }
        self.settle_node(now, id, out);
    }

    /// A node is in another state than before.
    fn node_turned(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        from: NodeState,
        to: NodeState,
        out: &mut Effects,
    ) {
        let limits = self.limits.fleet;
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        match to {
            NodeState::Suspect => {
                if !node.said_goodbye() {
                    node.silent_at = Some(now);
                }
                let damped = node.returned_at.map(|at| at + limits.node_grace);
                if from == NodeState::Online && damped.is_some_and(|until| now < until) {
                    node.flapping_until = damped;
                }
            }
            NodeState::Online => {
                let came_back = node.silent_at.is_some()
                    || matches!(from, NodeState::Suspect | NodeState::Lost)
                    || node.unknown_from.is_some() && from == NodeState::Connecting;
                if came_back && node.forgiven_until.is_none() {
                    node.returned_at = Some(now);
                }
                node.silent_at = None;
                node.flapping_until = None;
                node.forgiven_until = None;
            }
            NodeState::Unreachable => node.unknown_from = Some(now),
            NodeState::Lost => {
                if node.row.lost.as_ref().is_none_or(|(at, _)| *at < now) {
                    let why = "unreachable for longer than fleet.node_lost_after";
                    node.row.lost = Some((now, why.into()));
                }
            }
            NodeState::Connecting => {}
        }
        self.tell_node(now, id, out);
        match to {
            NodeState::Unreachable => self.workers_unknown(now, id, out),
            NodeState::Lost => {
                let why = "its node is lost: ";
                self.lose_workers(now, id, why, out);
            }
            NodeState::Online => {
                self.agents_of_node_are_back(now, id, out);
                self.drain_next(now, id, out);
                self.place_waiting(now, out);
            }
            NodeState::Suspect => self.agents_of_node_are_unknown(now, id, out),
            NodeState::Connecting => {}
        }
        self.weigh_doubt(now, out);
        self.weigh_capacity(now, out);
    }

    /// Writes and tells a node's state if it differs from what was told last. That the plane
    /// itself was away is no news about a node.
    fn tell_node(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let limits = self.limits.fleet;
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let (from, to) = (node.row.told.0, node.state.0);
        if from == to {
            return;
        }
        let is_expected = node.said_goodbye();
        node.row.told = (to, now);
        let mut text = format!("{} is {to}: {}", node.row.name, node.evidence(now, &limits));
        if node.flapping_until.is_some_and(|until| until > now) {
            text.push_str("; it is flapping");
        }
        if let Some((at, next)) = node.next(now, &limits) {
            let wait = crate::liveness::seconds(at.since(now));
            text.push_str(&format!("; next: in {wait} {next}"));
        }
        self.put_node(id, out);
        let line = Line {
            kind: EventKind::NodeStateChanged,
            history: "node.state",
            node: Some(id.clone()),
            worker: None,
            from: Some(from.word()),
            to: Some(to.word()),
            warn: match to {
                NodeState::Online | NodeState::Connecting => false,
                // Somebody stopped it, and it said so.
                NodeState::Suspect => !is_expected,
                NodeState::Unreachable | NodeState::Lost => true,
            },
            text: text.into(),
        };
        self.fleet_line(now, line, out);
    }

    /// Nobody can know about a node's workers any more: none of them is ended by that.
    fn workers_unknown(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get(id) else {
            return;
        };
        let name = node.row.name.clone();
        let workers: Vec<WorkerId> = node.workers.iter().cloned().collect();
        for worker in &workers {
            let Some(held) = self.fleet.workers.get(worker) else {
                continue;
            };
            let line = Line {
                kind: EventKind::WorkerUnknown,
                history: "worker.state",
                node: Some(id.clone()),
                worker: Some(worker.clone()),
                from: Some(held.row.state.word()),
                to: Some(WorkerState::Unknown.word()),
                warn: false,
                text: format!("its node {name} is unreachable: nobody knows whether it runs")
                    .into(),
            };
            self.fleet_line(now, line, out);
        }
        self.agents_of_node_are_unknown(now, id, out);
    }

    /// A node counts as lost: so do its workers.
    pub(crate) fn lose_workers(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        why: &str,
        out: &mut Effects,
    ) {
        let limits = self.limits.fleet;
        let Some(node) = self.fleet.nodes.get(id) else {
            return;
        };
        let text: Arc<str> = format!("{why}{}", node.evidence(now, &limits)).into();
        let workers: Vec<WorkerId> = node.workers.iter().cloned().collect();
        for worker in workers {
            self.end_worker(now, &worker, ExitHow::Declared, None, text.clone(), out);
        }
    }
}
