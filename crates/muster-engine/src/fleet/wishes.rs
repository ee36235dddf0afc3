//! What operators want of nodes: cordon, drain, retire, pin, declare lost, delete. Wishes are
//! facts and stay; none is undone by what a node says.

use std::sync::Arc;

use muster_wire::fleet::{NodeState, NodeWish};
use muster_wire::{NodeId, Timestamp, WorkerId, plain};

use super::row::{FleetWrite, Pin, Wished};
use super::{FleetReply, FleetSend, Line, reply, send};
use crate::effect::{Effects, Write};
use crate::engine::Engine;
use crate::event::Waiter;
use crate::row::EventKind;
use crate::timers::TimerKey;

/// Who wants it, and why.
pub(crate) type By = (Arc<str>, Option<Arc<str>>);

impl Engine {
    /// Finds the node that somebody names, or tells them that there is none.
    fn named_node(&self, waiter: Waiter, node: &str, out: &mut Effects) -> Option<NodeId> {
        let found = self.fleet.find(node).map(|node| node.row.id.clone());
        if found.is_none() {
            reply(waiter, FleetReply::UnknownNode, out);
        }
        found
    }

    fn wish_line(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        to: &'static str,
        text: String,
        out: &mut Effects,
    ) {
        let line = Line {
            kind: EventKind::NodeWished,
            history: "wish",
            node: Some(id.clone()),
            worker: None,
            from: None,
            to: Some(to),
            warn: false,
            text: text.into(),
        };
        self.fleet_line(now, line, out);
    }

    fn reply_node(&self, now: Timestamp, waiter: Waiter, id: &NodeId, out: &mut Effects) {
        if let Some(view) = self.node_view(now, id) {
            reply(waiter, FleetReply::Node(Box::new(view)), out);
        }
    }

    pub(crate) fn node_wished(
        &mut self,
        now: Timestamp,
        waiter: Waiter,
        node: &str,
        wish: NodeWish,
        (by, reason): By,
        out: &mut Effects,
    ) {
        let Some(id) = self.named_node(waiter, node, out) else {
            return;
        };
        let Some(node) = self.fleet.nodes.get(&id) else {
            return;
        };
        let name = node.row.name.clone();
        let conflict = if wish == NodeWish::Retired && !node.workers.is_empty() {
            let workers = plain::count(node.workers.len() as u64, "worker");
            Some(format!(
                "node {name} has {workers}: drain it first, or declare it lost"
            ))
        } else if node.is_retired()
            && wish != NodeWish::Retired
            && self.fleet.names.contains_key(&name)
        {
            Some(format!("the name {name} belongs to another node now"))
        } else {
            None
        };
        if let Some(text) = conflict {
            return reply(waiter, FleetReply::Conflict(text), out);
        }
        let why = reason
            .as_deref()
            .map(|r| format!(": {r}"))
            .unwrap_or_default();
        let text = format!("{by} wants {name} to be {wish}{why}");
        let Some(node) = self.fleet.nodes.get_mut(&id) else {
            return;
        };
        if node.row.wish == wish {
            return self.reply_node(now, waiter, &id, out);
        }
        let was_retired = node.is_retired();
        node.row.wish = wish;
        node.row.wished = Some(Wished {
            by: by.clone(),
            at: now,
            reason,
        });
        if wish == NodeWish::Retired {
            node.silent_at = None;
            if let Some(link) = node.link.take() {
                node.row.disconnected = Some((now, "it was retired".into()));
                let close = FleetSend::Close {
                    node: id.clone(),
                    link: link.id,
                    why: "the node was retired".into(),
                };
                send(close, out);
            }
            if self.fleet.names.get(&name) == Some(&id) {
                self.fleet.names.remove(&name);
            }
        } else if was_retired {
            self.fleet.names.insert(name, id.clone());
        }
        self.put_node(&id, out);
        self.wish_line(now, &id, wish.word(), text, out);
        self.settle_node(now, &id, out);
        self.weigh_capacity(now, out);
        self.reply_node(now, waiter, &id, out);
        if wish == NodeWish::Draining {
            self.drain_next(now, &id, out);
        }
        if wish == NodeWish::Active {
            self.place_waiting(now, out);
        }
    }

    /// A node that is drained releases its workers one after another: the next one goes when
    /// none is on its way out.
    pub(crate) fn drain_next(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get(id) else {
            return;
        };
        if node.row.wish != NodeWish::Draining || node.link.is_none() {
            return;
        }
        let by = match &node.row.wished {
            Some(wished) => wished.by.clone(),
            None => "plane".into(),
        };
        let mut next: Option<(Timestamp, WorkerId)> = None;
        for held in node
            .workers
            .iter()
            .filter_map(|w| self.fleet.workers.get(w))
        {
            if held.release_by.is_some() {
                return;
            }
            let key = (held.row.created_at, held.row.id.clone());
            if held.row.release.is_none() && next.as_ref().is_none_or(|least| key < *least) {
                next = Some(key);
            }
        }
        if let Some((_, worker)) = next {
            self.release_for_drain(now, &worker, by, out);
        }
    }

    pub(crate) fn node_pinned(
        &mut self,
        now: Timestamp,
        waiter: Waiter,
        node: &str,
        state: Option<NodeState>,
        (by, reason): By,
        out: &mut Effects,
    ) {
        let Some(id) = self.named_node(waiter, node, out) else {
            return;
        };
        if matches!(state, Some(NodeState::Lost | NodeState::Connecting)) {
            let text = "a node is pinned as online, suspect or unreachable; to give it up, declare it lost";
            return reply(waiter, FleetReply::Conflict(text.into()), out);
        }
        let Some(node) = self.fleet.nodes.get_mut(&id) else {
            return;
        };
        let name = node.row.name.clone();
        let why = reason
            .as_deref()
            .map(|r| format!(": {r}"))
            .unwrap_or_default();
        let text = match state {
            Some(state) => format!("{by} pinned {name} as {state}{why}"),
            None => format!("{by} took the pin out of {name}{why}"),
        };
        node.row.pin = state.map(|state| Pin {
            state,
            wished: Wished {
                by,
                at: now,
                reason,
            },
        });
        let word = state.map_or("unpinned", NodeState::word);
        self.put_node(&id, out);
        self.wish_line(now, &id, word, text, out);
        self.settle_node(now, &id, out);
        self.reply_node(now, waiter, &id, out);
    }

    pub(crate) fn node_declared_lost(
        &mut self,
        now: Timestamp,
        waiter: Waiter,
        node: &str,
        (by, reason): By,
        out: &mut Effects,
    ) {
        let Some(id) = self.named_node(waiter, node, out) else {
            return;
        };
        let Some(node) = self.fleet.nodes.get_mut(&id) else {
            return;
        };
        if node.state.0 == NodeState::Online && node.link.is_some() {
            let text = format!("node {} is online: drain or retire it", node.row.name);
            return reply(waiter, FleetReply::Conflict(text), out);
        }
        let why = reason
            .as_deref()
            .map(|r| format!(": {r}"))
            .unwrap_or_default();
        let words: Arc<str> = format!("by {by}{why}").into();
        let text = format!("{by} says that {} will not come back{why}", node.row.name);
        node.row.lost = Some((now, words));
        node.row.pin = None;
        node.silent_at = None;
        if let Some(link) = node.link.take() {
            node.row.disconnected = Some((now, "it was declared lost".into()));
            let close = FleetSend::Close {
                node: id.clone(),
                link: link.id,
                why: "the node was declared lost".into(),
            };
            send(close, out);
        }
        self.wish_line(now, &id, "lost", text, out);
        self.become_lost(now, &id, out);
        self.reply_node(now, waiter, &id, out);
    }

    pub(crate) fn node_deleted(
        &mut self,
        now: Timestamp,
        waiter: Waiter,
        node: &str,
        by: &str,
        out: &mut Effects,
    ) {
        let Some(id) = self.named_node(waiter, node, out) else {
            return;
        };
        let Some(node) = self.fleet.nodes.get(&id) else {
            return;
        };
        if !node.workers.is_empty() {
            let n = node.workers.len() as u64;
            let text = format!(
                "node {} has {} not ended: drain it, or declare it lost first",
                node.row.name,
                plain::they(n, "worker that has", "workers that have")
            );
            return reply(waiter, FleetReply::Conflict(text), out);
        }
        let Some(mut node) = self.fleet.nodes.remove(&id) else {
            return;
        };
        let key = || TimerKey::Node(id.clone());
        self.timers.arm(&mut node.armed, None, key);
        if self.fleet.names.get(&node.row.name) == Some(&id) {
            self.fleet.names.remove(&node.row.name);
        }
        if let Some(link) = node.link {
            let close = FleetSend::Close {
                node: id.clone(),
                link: link.id,
                why: "the node was deleted".into(),
            };
            send(close, out);
        }
        let text = format!("{by} deleted {}", node.row.name);
        self.wish_line(now, &id, "deleted", text, out);
        // Last, so that its history goes with it.
        out.writes
            .push(Write::Fleet(FleetWrite::DeleteNode(id.clone())));
        reply(waiter, FleetReply::Taken, out);
        self.weigh_doubt(now, out);
        self.weigh_capacity(now, out);
    }
}
