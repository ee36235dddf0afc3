//! The fleet after a start: facts, exits, goodbyes and wishes are as they were; only silence is
//! forgiven, for one grace. Workers are unknown until their node confirms them; none is ended.

use std::time::Duration;

use muster_wire::fleet::{ExitHow, NodeState, WorkerState};
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::node::Node;
use super::row::FleetSnapshot;
use super::worker::Worker;
use super::{FleetNotice, FleetSend, notice, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::recovery::Outage;

/// Keys of workers that ended so shortly before the start are revoked again: the order may have
/// been lost with the last process.
const REVOKE_AGAIN: Duration = Duration::from_secs(600);

impl Engine {
    pub(crate) fn restore_fleet(
        &mut self,
        now: Timestamp,
        away: Outage,
        snapshot: FleetSnapshot,
        out: &mut Effects,
    ) {
        let grace = self.limits.fleet.node_grace;
        for row in snapshot.nodes {
            let id = row.id.clone();
            if row.wish != muster_wire::fleet::NodeWish::Retired {
                self.fleet.names.insert(row.name.clone(), id.clone());
            }
            let mut node = Node::new(row, now);
            match node.row.told.0 {
                NodeState::Unreachable => {
                    // Silent before we were away. Our absence is no part of that.
                    node.unknown_from = Some(node.state.1);
                    let since = now.since(away.not_counted(node.state.1));
                    node.excused = now.since(node.state.1).saturating_sub(since);
                    if let Some(at) = node.lost_at(&self.limits.fleet)
                        && at < now + grace
                    {
                        node.excused += (now + grace).since(at);
                    }
                }
                NodeState::Lost => {}
                NodeState::Connecting | NodeState::Online | NodeState::Suspect => {
                    node.state = (NodeState::Connecting, now);
                    if node.row.connected_at.is_some() {
                        node.forgiven_until = Some(now + grace);
                        node.unknown_from = Some(now);
                    }
                }
            }
            self.fleet.nodes.insert(id, node);
        }
        for row in snapshot.workers {
            self.restore_worker(now, away, row, out);
        }
        let nodes: Vec<NodeId> = self.fleet.nodes.keys().cloned().collect();
        for id in nodes {
            self.settle_node(now, &id, out);
            self.agents_of_node_are_unknown(now, &id, out);
        }
        self.place_waiting(now, out);
    }

    fn restore_worker(
        &mut self,
        now: Timestamp,
        away: Outage,
        mut row: super::row::WorkerRow,
        out: &mut Effects,
    ) {
        let id: WorkerId = row.id.clone();
        if let Some(key) = &row.idempotency_key {
            self.fleet.keys.insert(key.clone(), id.clone());
        }
        let ended = row.ended;
        let queued = row.state == WorkerState::Queued && ended.is_none();
        if queued {
            // Stored, so that the next start adds only its own outage.
            row.place_by = row.place_by.map(|by| away.not_counted(by));
            self.fleet.queue.insert((row.created_at, id.clone()));
        }
        let node = row.node.clone();
        let (agent, adopted) = (row.agent.is_some(), row.adopted);
        let worker = Box::new(Worker::new(row, now));
        self.fleet.workers.insert(id.clone(), worker);
        if let Some((at, _)) = ended {
            if now.since(at) < REVOKE_AGAIN {
                send(FleetSend::RevokeKey { worker: id.clone() }, out);
            }
            self.rearm_worker(&id);
            if let (true, Some(node)) = (adopted, &node) {
                self.adopted_ended(node, &id);
            }
            return;
        }
        if queued {
            self.put_worker(&id, out);
        } else if node
            .as_ref()
            .is_some_and(|n| self.fleet.nodes.contains_key(n))
        {
            if let Some(node) = &node {
                self.bind(&id, node);
            }
        } else {
            let text = "its node is not known any more";
            return self.end_worker(now, &id, ExitHow::Declared, None, text, out);
        }
        if agent {
            notice(
                FleetNotice::Route {
                    worker: id.clone(),
                    node,
                },
                out,
            );
            self.note_restarts(&id);
        }
        self.rearm_worker(&id);
    }
}
