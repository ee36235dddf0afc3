//! Enrolment, links and what comes over them: the newest valid link speaks for its node; what an
//! older one still says is counted and dropped.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::{NodeKind, NodeState, NodeWish};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::effect::FleetRefusal;
use super::event::{Beat, Enrolment, Hello, LinkId};
use super::exits::shown_name;
use super::node::{Link, Node};
use super::row::NodeRow;
use super::{FleetReply, FleetSend, Line, reply, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;
use crate::row::EventKind;

/// The least time between two beats that is believed.
const BEAT_LEAST: Duration = Duration::from_millis(100);
/// The most.
const BEAT_MOST: Duration = Duration::from_secs(120);

/// More load than this is told as this.
const LOAD_MOST: f64 = 100.0;

fn refuse_link(waiter: Waiter, code: &'static str, message: String, out: &mut Effects) {
    reply(waiter, FleetReply::LinkRefused { code, message }, out);
}

impl Engine {
    pub(crate) fn node_enrolled(
        &mut self,
        now: Timestamp,
        enrolment: Enrolment,
        out: &mut Effects,
    ) {
        let waiter = enrolment.waiter;
        let id = enrolment.id.clone();
        if let Some(taken) = self.fleet.names.get(&enrolment.name).filter(|n| **n != id) {
            let message = format!(
                "the name {} belongs to node {taken}; retire or delete that one, or take another name",
                enrolment.name
            );
            return refuse_link(waiter, "node_name_conflict", message, out);
        }
        if let Some(known) = self.fleet.nodes.get(&id) {
            let taken = known.row.kind != enrolment.kind
                || (known.row.kind == NodeKind::Relay
                    && known.row.principal != enrolment.principal);
            if taken {
                let message =
                    format!("node {id} was enrolled by somebody else, or as something else");
                return refuse_link(waiter, "node_id_mismatch", message, out);
            }
        } else if self.fleet.nodes.len() >= self.limits.fleet.nodes_max as usize {
            let refusal = FleetRefusal {
                category: Category::FleetCapacity,
                message: format!(
                    "there are {} nodes, the most there may be",
                    self.fleet.nodes.len()
                ),
                hint: Some("delete nodes that are history".into()),
                retry_after: None,
                passed_over: Vec::new(),
            };
            return reply(waiter, FleetReply::Refused(refusal), out);
        }
        let fresh = NodeRow {
            id: id.clone(),
            name: enrolment.name.clone(),
            kind: enrolment.kind,
            labels: Vec::new(),
            max_workers: 0,
            capabilities: Vec::new(),
            version: "".into(),
            host: None,
            epoch: None,
            principal: enrolment.principal.clone(),
            wish: NodeWish::Active,
            wished: None,
            pin: None,
            enrolled_at: now,
            connected_at: None,
            disconnected: None,
            heard_at: None,
            beat: None,
            inventory: None,
            goodbye: None,
            lost: None,
            told: (NodeState::Connecting, now),
        };
        let node = self
            .fleet
            .nodes
            .entry(id.clone())
            .or_insert_with(|| Node::new(fresh, now));
        let old_name = std::mem::replace(&mut node.row.name, enrolment.name.clone());
        node.row.labels = enrolment.labels;
        node.row.max_workers = enrolment.max_workers;
        node.row.principal = enrolment.principal;
        if node.is_retired() {
            // Enrolled anew by somebody who may: it is no longer history.
            node.row.wish = NodeWish::Active;
            node.row.wished = None;
        }
        let row = Box::new(node.row.clone());
        if self.fleet.names.get(&old_name) == Some(&id) {
            self.fleet.names.remove(&old_name);
        }
        self.fleet.names.insert(enrolment.name.clone(), id.clone());
        self.put_node(&id, out);
        let text = format!("{} was enrolled", enrolment.name);
        self.link_line(now, &id, text, out);
        reply(waiter, FleetReply::Enrolled(row), out);
        self.settle_node(now, &id, out);
    }

    fn link_line(&mut self, now: Timestamp, id: &NodeId, text: String, out: &mut Effects) {
        let line = Line {
            kind: EventKind::NodeLink,
            history: "link",
            node: Some(id.clone()),
            worker: None,
            from: None,
            to: None,
            warn: false,
            text: text.into(),
        };
        self.fleet_line(now, line, out);
    }

    pub(crate) fn link_opened(&mut self, now: Timestamp, hello: Hello, out: &mut Effects) {
        let (id, waiter) = (hello.node.clone(), hello.waiter);
        let Some(node) = self.fleet.nodes.get(&id) else {
            let message = format!("there is no node {id}; enrol it again");
            return refuse_link(waiter, "node_not_found", message, out);
        };
        if node.is_retired() {
            let message = format!("node {} was retired; enrol it again", node.row.name);
            return refuse_link(waiter, "node_retired", message, out);
        }
        if node.link.as_ref().is_some_and(|held| held.id > hello.link) {
            let message = "a newer connection of this node is there".to_owned();
            return refuse_link(waiter, "superseded", message, out);
        }
        // The broker names itself; our daemon keeps the name it was enrolled with.
        let renamed = hello.kind == NodeKind::Relay && hello.name != node.row.name;
        if renamed && self.fleet.names.contains_key(&hello.name) {
            let message = format!("the name {} belongs to another node", hello.name);
            return refuse_link(waiter, "node_name_conflict", message, out);
        }
        let needs = node.beats_needed();
        let needs = needs.max(node.link.as_ref().map_or(needs, |old| old.needs));
        let old = node.link.as_ref().map(|old| old.id);
        let old_name = node.row.name.clone();
        if let Some(old) = old {
            let why: Arc<str> = "a newer connection of this node took its place".into();
            let close = FleetSend::Close {
                node: id.clone(),
                link: old,
                why: why.clone(),
            };
            send(close, out);
            self.starts_broke(now, &id, &why, out);
            self.restarts_broke(now, &id, out);
        }
        if renamed {
            self.fleet.names.remove(&old_name);
            self.fleet.names.insert(hello.name.clone(), id.clone());
        }
        let Some(node) = self.fleet.nodes.get_mut(&id) else {
            return;
        };
        let beat_interval = hello.beat_interval.clamp(BEAT_LEAST, BEAT_MOST);
        node.link = Some(Link {
            id: hello.link,
            opened_at: now,
            beat_interval,
            proves: hello.proves,
            beats: 0,
            needs,
            beat_at: None,
            inventory_at: None,
            exchange_at: None,
            answered_at: None,
            asked: false,
            leaving: false,
        });
        node.excused = Duration::ZERO;
        node.full = None;
        if renamed {
            node.row.name = hello.name;
        }
        let labels = hello.labels.iter().map(|label| shown_name(label));
        node.row.labels = labels.filter(|label| !label.is_empty()).collect();
        node.row.max_workers = hello.max_workers;
        node.row.capabilities = hello.capabilities;
        node.row.version = shown_name(&hello.version);
        let host = hello.host.map(|host| shown_name(&host));
        node.row.host = host.or(node.row.host.take());
        node.row.epoch = hello.epoch;
        node.row.connected_at = Some(now);
        node.row.heard_at = Some(now);
        let text = match old {
            Some(_) => format!(
                "{} opened a newer link; the older one is closed",
                node.row.name
            ),
            None => format!("{} opened its link", node.row.name),
        };
        self.put_node(&id, out);
        self.link_line(now, &id, text, out);
        reply(waiter, FleetReply::LinkTaken, out);
        self.settle_node(now, &id, out);
    }

    pub(crate) fn link_closed(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        link: LinkId,
        why: Arc<str>,
        out: &mut Effects,
    ) {
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        // The end of a link that was superseded is no news about its node.
        if !node.speaks(link) {
            return;
        }
        node.link = None;
        node.excused = Duration::ZERO;
        node.row.disconnected = Some((now, why.clone()));
        let text = format!("the link of {} closed: {why}", node.row.name);
        self.put_node(id, out);
        self.link_line(now, id, text, out);
        self.starts_broke(now, id, &why, out);
        self.restarts_broke(now, id, out);
        self.settle_node(now, id, out);
    }

    /// Takes a frame of a node for one of its present link, and notes when it came. A late one
    /// is counted; whoever waits for its answer is told so.
    pub(crate) fn takes(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        link: LinkId,
        waiter: Option<Waiter>,
        out: &mut Effects,
    ) -> bool {
        let node = self.fleet.nodes.get_mut(id);
        let taken = match node {
            Some(node) if node.speaks(link) => {
                node.row.heard_at = Some(now);
                true
            }
            Some(node) => {
                node.late_frames += 1;
                false
            }
            None => false,
        };
        if let (false, Some(waiter)) = (taken, waiter) {
            let message = "this connection does not speak for the node any more".to_owned();
            refuse_link(waiter, "superseded", message, out);
        }
        taken
    }

    pub(crate) fn node_beat(&mut self, now: Timestamp, beat: &Beat, out: &mut Effects) {
        let limits = self.limits.fleet;
        if !self.takes(now, &beat.node, beat.link, None, out) {
            return;
        }
        let Some(node) = self.fleet.nodes.get_mut(&beat.node) else {
            return;
        };
        // When it came in, which may be before it could be looked at.
        let at = beat.at.min(now);
        node.beat(at, &limits);
        node.row.beat = Some((at, beat.count));
        let load = beat.load.filter(|load| load.is_finite() && *load >= 0.0);
        node.load = load.map(|load| (load.min(LOAD_MOST), at));
        let had_room = node.free() != Some(0);
        node.full = None;
        if let Some(max) = beat.max_workers {
            node.row.max_workers = max;
        }
        let room = !had_room && node.free() != Some(0);
        let looks = node.state.0 != NodeState::Online;
        self.compare_beat(now, beat, out);
        if looks {
            self.settle_node(now, &beat.node, out);
        } else {
            self.rearm_node(now, &beat.node);
        }
        if room {
            self.place_waiting(now, out);
        }
    }

    pub(crate) fn ask_answered(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        link: LinkId,
        out: &mut Effects,
    ) {
        if !self.takes(now, id, link, None, out) {
            return;
        }
        if let Some(link) = self.fleet.nodes.get_mut(id).and_then(|n| n.link.as_mut()) {
            link.exchange_at = Some(now);
            link.answered_at = Some(now);
            link.asked = false;
            // It lives; that its beats are missing is still to be mended.
            link.beats = 0;
            link.needs = 2;
        }
        self.settle_node(now, id, out);
    }

    pub(crate) fn node_goodbye(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        link: LinkId,
        reason: &str,
        workers_stay: bool,
        out: &mut Effects,
    ) {
        if !self.takes(now, id, link, None, out) {
            return;
        }
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let workers = if workers_stay {
            "its workers go on"
        } else {
            "its workers were stopped"
        };
        let why: Arc<str> = format!("{reason}; {workers}").into();
        node.row.goodbye = Some((now, why.clone()));
        if let Some(link) = &mut node.link {
            link.leaving = true;
        }
        let text = format!("{} said goodbye: {why}", node.row.name);
        self.put_node(id, out);
        self.link_line(now, id, text, out);
    }

    /// Our own lateness counts for no peer's silence.
    pub(crate) fn was_late(&mut self, now: Timestamp, by: Duration, out: &mut Effects) {
        for node in self.fleet.nodes.values_mut() {
            if node.link.is_some() || node.state.0 != NodeState::Online {
                node.excused += by;
            }
            if let Some(until) = &mut node.forgiven_until {
                *until = *until + by;
            }
        }
        for agent in self.agents.values_mut() {
            for instance in &mut agent.instances {
                let silent = instance.facts.silent_since();
                instance.facts.forgiven_until = if silent < now {
                    (silent + by).min(now)
                } else {
                    silent + by
                };
            }
        }
        // Timers that fire too early look again and are set anew; what was suspected for a
        // silence of ours is not any more.
        let nodes: Vec<NodeId> = self.fleet.nodes.keys().cloned().collect();
        for id in nodes {
            self.settle_node(now, &id, out);
        }
    }

    /// The workers of a node whose start is not answered.
    pub(crate) fn starts_at(&self, id: &NodeId) -> Vec<WorkerId> {
        let Some(node) = self.fleet.nodes.get(id) else {
            return Vec::new();
        };
        let sent = |worker: &&WorkerId| {
            self.fleet
                .workers
                .get(*worker)
                .is_some_and(|w| w.sent.is_some())
        };
        node.workers.iter().filter(sent).cloned().collect()
    }
}
