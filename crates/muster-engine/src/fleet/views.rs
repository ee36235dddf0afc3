//! Nodes and workers as they are shown: the verdict with its evidence, its age and what happens
//! next. What nobody can know is nothing with a reason and the last known value, never 0.

use std::sync::Arc;

use muster_wire::Timestamp;
use muster_wire::fleet::{NodeKind, NodeState, WorkerState};
use muster_wire::id::minted_noun;
use muster_wire::{NodeId, WorkerId, plain};

use super::effect::{Fact, FleetQuestion, FleetReply, Known, NodeView, WorkerView};
use super::limits::FleetLimits;
use super::node::Node;
use super::worker::Worker;
use crate::effect::Reply;
use crate::engine::Engine;
use crate::liveness::seconds;

impl Engine {
    /// Answers a question about the fleet.
    pub(crate) fn fleet_ask(&self, now: Timestamp, question: &FleetQuestion) -> Reply {
        Reply::Fleet(Box::new(self.fleet_answer(now, question)))
    }

    fn fleet_answer(&self, now: Timestamp, question: &FleetQuestion) -> FleetReply {
        match question {
            FleetQuestion::Nodes => {
                let ids = self.fleet.nodes.keys();
                let mut views: Vec<NodeView> =
                    ids.filter_map(|id| self.node_view(now, id)).collect();
                views.sort_by(|a, b| (&a.row.name, &a.row.id).cmp(&(&b.row.name, &b.row.id)));
                FleetReply::Nodes(views)
            }
            FleetQuestion::NodesPage(ask) => {
                FleetReply::NodesPage(Box::new(self.nodes_page(now, ask)))
            }
            FleetQuestion::Placements(limit) => {
                let total = self.fleet.queue.len() as u64;
                FleetReply::Placements(self.placements(now, *limit), total)
            }
            FleetQuestion::WorkersNamed(part, limit) => {
                FleetReply::Workers(self.workers_named(now, part, *limit))
            }
            FleetQuestion::Plan(ask) => FleetReply::Plan(Box::new(self.plan(now, ask))),
            FleetQuestion::Restart(id) => match self.fleet.workers.get(id) {
                None => FleetReply::UnknownWorker,
                Some(worker) => match self.refuses_restart(now, worker) {
                    Some(refusal) => FleetReply::Refused(refusal),
                    None => FleetReply::Worker(Box::new(self.view_of(now, worker))),
                },
            },
            FleetQuestion::Node(node) => self
                .fleet
                .find(node)
                .and_then(|node| self.node_view(now, &node.row.id))
                .map_or(FleetReply::UnknownNode, |view| {
                    FleetReply::Node(Box::new(view))
                }),
            FleetQuestion::Workers { node, ended } => {
                let of = match node {
                    None => None,
                    Some(node) => match self.fleet.find(node) {
                        Some(node) => Some(node.row.id.clone()),
                        None => return FleetReply::UnknownNode,
                    },
                };
                let fits = |worker: &&Worker| {
                    (*ended || worker.lives())
                        && of
                            .as_ref()
                            .is_none_or(|of| worker.row.node.as_ref() == Some(of))
                };
                let held = self.fleet.workers.values().map(|worker| &**worker);
                let mut views: Vec<WorkerView> = held
                    .filter(fits)
                    .map(|worker| self.view_of(now, worker))
                    .collect();
                views.sort_by(|a, b| {
                    (b.row.created_at, &b.row.id).cmp(&(a.row.created_at, &a.row.id))
                });
                FleetReply::Workers(views)
            }
            FleetQuestion::Worker(name) => match self.find_worker(name) {
                Ok(Some(worker)) => FleetReply::Worker(Box::new(self.view_of(now, worker))),
                Ok(None) => FleetReply::UnknownWorker,
                Err(several) => FleetReply::AmbiguousWorker(several),
            },
            FleetQuestion::Summary => FleetReply::Summary(Box::new(self.fleet_summary(now))),
            FleetQuestion::Drift => {
                let ids = self.fleet.nodes.keys();
                let mut drifts: Vec<_> = ids.filter_map(|id| self.drift_view(id)).collect();
                drifts.sort_by(|a, b| a.name.cmp(&b.name));
                FleetReply::Drift(drifts)
            }
        }
    }

    /// A worker by what somebody called it. A node chooses the ids and names of what it tells, so
    /// nothing that it tells may stand before a living worker's name, except an id of our form.
    ///
    /// # Errors
    /// The ids, where several living ones have that name.
    fn find_worker(&self, name: &str) -> Result<Option<&Worker>, Vec<WorkerId>> {
        let by_id = self.fleet.workers.get(name).map(|worker| &**worker);
        if by_id.is_some() && minted_noun(name).is_some() {
            return Ok(by_id);
        }
        let held = self.fleet.workers.values().map(|worker| &**worker);
        let (living, ended): (Vec<&Worker>, Vec<&Worker>) = held
            .filter(|worker| *worker.row.name == *name)
            .partition(|worker| worker.lives());
        if let [only] = living.as_slice() {
            return Ok(Some(only));
        }
        if !living.is_empty() {
            let mut ids: Vec<WorkerId> = living.iter().map(|w| w.row.id.clone()).collect();
            ids.sort_unstable();
            return Err(ids);
        }
        let last = || ended.into_iter().max_by_key(|worker| worker.row.ended);
        Ok(by_id.or_else(last))
    }

    /// The state of a worker, since when: computed from its row and from what is known of its
    /// node.
    pub(crate) fn worker_state(&self, worker: &Worker) -> (WorkerState, Timestamp) {
        let row = &worker.row;
        let said = (row.state, row.state_at);
        if !worker.lives() || row.state == WorkerState::Queued {
            return said;
        }
        let Some(node) = row.node.as_ref().and_then(|id| self.fleet.nodes.get(id)) else {
            return said;
        };
        if node.state.0 == NodeState::Unreachable {
            return (WorkerState::Unknown, node.state.1);
        }
        let confirmed = row.confirmed_at.max(node.matched_at);
        match node.unknown_from {
            Some(from) if confirmed.max(Some(row.state_at)) < Some(from) => {
                (WorkerState::Unknown, from)
            }
            _ => said,
        }
    }

    fn workers_named(&self, now: Timestamp, part: &str, limit: usize) -> Vec<WorkerView> {
        let fits = |worker: &&Worker| {
            let id = worker.row.id.as_str().to_lowercase();
            worker.lives()
                && (worker.row.name.to_lowercase().contains(part)
                    || id.starts_with(part)
                    || id.ends_with(part))
        };
        let held = self.fleet.workers.values().map(|worker| &**worker);
        let mut found: Vec<&Worker> = held.filter(fits).collect();
        found.sort_by(|a, b| (&a.row.name, &a.row.id).cmp(&(&b.row.name, &b.row.id)));
        let found = found.into_iter().take(limit);
        found.map(|worker| self.view_of(now, worker)).collect()
    }

    pub(crate) fn worker_view(&self, now: Timestamp, id: &WorkerId) -> Option<WorkerView> {
        Some(self.view_of(now, self.fleet.workers.get(id)?))
    }

    fn view_of(&self, now: Timestamp, worker: &Worker) -> WorkerView {
        let age = |at: Timestamp| seconds(now.since(at));
        let node = worker
            .row
            .node
            .as_ref()
            .and_then(|id| self.fleet.nodes.get(id));
        let (state, state_at) = self.worker_state(worker);
        let mut row = worker.row.clone();
        if let Some(matched) = node.and_then(|node| node.matched_at)
            && worker.lives()
            && matched >= row.state_at
        {
            row.confirmed_at = row.confirmed_at.max(Some(matched));
        }
        let confirmed = match row.confirmed_at {
            Some(at) => format!("last confirmed {} ago", age(at)),
            None => "never confirmed".into(),
        };
        let mut evidence = match state {
            WorkerState::Queued => format!(
                "it waits for a place since {}: {}",
                age(row.created_at),
                row.waits_for
                    .as_deref()
                    .unwrap_or("no node was looked at yet")
            ),
            WorkerState::Starting if worker.sent.is_some() => {
                "its node was told to start it and has not answered yet".into()
            }
            WorkerState::Starting => match &worker.answer {
                Some(said) => format!("its start is not confirmed; its node said: {said}"),
                None => format!("its start is not confirmed; {confirmed}"),
            },
            WorkerState::Running => format!("it runs, {confirmed}"),
            WorkerState::Restarting => match (&row.exit, row.next_start_at) {
                (Some(exit), Some(at)) => format!(
                    "{}; its node starts it again in {}",
                    super::exits::how(exit),
                    seconds(at.since(now))
                ),
                _ => format!("its node will start it again; {confirmed}"),
            },
            WorkerState::Exited => {
                let (at, how) = row
                    .ended
                    .map_or((row.state_at, "exited"), |(at, how)| (at, how.word()));
                let exit = row.exit.as_ref().map(super::exits::how);
                let exit = exit.map(|exit| format!(": {exit}")).unwrap_or_default();
                format!("{how} {} ago{exit}", age(at))
            }
            WorkerState::Lost => format!(
                "its node was declared lost {} ago; {confirmed}",
                age(state_at)
            ),
            WorkerState::Unknown => {
                let limits = &self.limits.fleet;
                let why = node.map(|node| {
                    let (name, word) = (&node.row.name, node.state.0);
                    format!("its node {name} is {word}: {}", node.evidence(now, limits))
                });
                format!("nobody knows; {confirmed}; {}", why.unwrap_or_default())
            }
        };
        if worker.lives()
            && let Some(release) = &row.release
        {
            evidence.push_str(&format!(
                "; {} wants it ended since {}",
                release.by,
                age(release.at)
            ));
        }
        let relay = node.is_some_and(|node| node.row.kind == NodeKind::Relay);
        let unknown_because = match (state, row.ended, row.pid) {
            (WorkerState::Unknown, ..) => Some("node_unreachable"),
            (WorkerState::Lost, ..) => Some("node_lost"),
            (_, Some((_, how)), _) => match (&row.exit, how.word()) {
                (Some(exit), _) if exit.code.is_some() || exit.signal.is_some() => None,
                _ if relay => Some("not_reported_by_node"),
                (_, "unobserved") => Some("exit_not_observed"),
                _ => None,
            },
            (WorkerState::Running, None, None) if relay => Some("not_reported_by_node"),
            _ => None,
        };
        WorkerView {
            node_name: node.map(|node| node.row.name.clone()),
            state,
            state_at,
            evidence,
            unknown_because,
            row,
        }
    }

    pub(crate) fn node_view(&self, now: Timestamp, id: &NodeId) -> Option<NodeView> {
        let limits = &self.limits.fleet;
        let node = self.fleet.nodes.get(id)?;
        let held = node.workers.iter();
        let mut worker_names: Vec<Arc<str>> = held
            .filter_map(|id| self.fleet.workers.get(id))
            .map(|worker| worker.row.name.clone())
            .collect();
        worker_names.sort_unstable();
        let (state, state_at) = node.state;
        Some(NodeView {
            row: node.row.clone(),
            state,
            state_at,
            flapping: node.flapping_until.is_some_and(|until| until > now),
            evidence: node.evidence(now, limits),
            facts: facts(node, now),
            next: node.next(now, limits),
            link: node.link.as_ref().map(|link| link.id),
            beat_interval: node
                .link
                .as_ref()
                .map_or(limits.heartbeat, |link| link.beat_interval),
            beats_missed: node.beats_missed(now),
            late_frames: node.late_frames,
            load: node.load_now(now, limits),
            load_last: node.load,
            load_reason: no_load(node, now, limits),
            workers: count(node, now),
            worker_names,
            free: free(node),
            drift: node.drift.since.is_some(),
        })
    }
}

/// Why its load is not known.
fn no_load(node: &Node, now: Timestamp, limits: &FleetLimits) -> Option<String> {
    if node.load_now(now, limits).is_some() {
        return None;
    }
    let age = seconds(now.since(node.state.1));
    Some(match (&node.link, node.state.0) {
        (Some(link), NodeState::Online) if link.beat_at.is_some() => "not_reported_by_node".into(),
        (None, NodeState::Online) => "the node has no connection".into(),
        (_, state) => format!("the node is {state} for {age}"),
    })
}

/// Whether its count of workers can be known: it said so, and can be reached.
pub(crate) fn is_known(node: &Node) -> bool {
    match node.state.0 {
        // Pinned, and nobody there.
        NodeState::Online if node.link.is_none() => false,
        NodeState::Online | NodeState::Suspect => match (node.row.inventory, node.unknown_from) {
            (None, _) => false,
            (Some((told, _)), Some(from)) => told >= from,
            (Some(_), None) => true,
        },
        NodeState::Connecting => node.link.as_ref().is_some_and(|l| l.inventory_at.is_some()),
        NodeState::Unreachable | NodeState::Lost => false,
    }
}

fn count(node: &Node, now: Timestamp) -> Known<u32> {
    if is_known(node) {
        return Known {
            value: Some(u32::try_from(node.workers.len()).unwrap_or(u32::MAX)),
            reason: None,
            last: None,
        };
    }
    // What is believed is as old as the last thing that was heard: a worker that was placed after
    // the last inventory is known, too.
    let heard = [node.row.inventory, node.row.beat];
    let at = heard.iter().flatten().map(|(at, _)| *at).max();
    let at = at.max(node.row.heard_at.filter(|_| at.is_some()));
    let believed = u32::try_from(node.workers.len()).unwrap_or(u32::MAX);
    let reason = match node.state.0 {
        NodeState::Unreachable | NodeState::Lost => {
            let age = seconds(now.since(node.state.1));
            format!("the node is {} for {age}", node.state.0)
        }
        NodeState::Online if node.link.is_none() => "the node has no connection".into(),
        NodeState::Connecting | NodeState::Online | NodeState::Suspect => {
            "it has not told its workers since it connected".into()
        }
    };
    Known {
        value: None,
        reason: Some(reason),
        last: at.map(|at| (believed, at)),
    }
}

fn free(node: &Node) -> Known<u32> {
    let reason = match node.state.0 {
        NodeState::Online if node.link.is_none() => Some("the node has no connection".to_owned()),
        NodeState::Online if node.row.max_workers == 0 => Some("it has no bound".to_owned()),
        NodeState::Online => None,
        state => Some(format!("the node is {state}")),
    };
    Known {
        value: node.free().filter(|_| node.is_here()),
        reason,
        last: None,
    }
}

/// The facts behind the verdict, oldest first.
fn facts(node: &Node, now: Timestamp) -> Vec<Fact> {
    let row = &node.row;
    let mut facts = Vec::new();
    let mut add = |what, at: Option<Timestamp>, by, text: String| {
        facts.push(Fact { what, at, by, text });
    };
    if let Some(at) = row.connected_at {
        add("socket", Some(at), "plane", "its link opened".into());
    }
    if let (None, Some((at, why))) = (&node.link, &row.disconnected) {
        add(
            "socket",
            Some(*at),
            "plane",
            format!("its link closed: {why}"),
        );
    }
    add(
        "frame",
        row.heard_at,
        "plane",
        "the last frame of it".into(),
    );
    match row.beat {
        Some((at, count)) => {
            let text = format!(
                "a beat that claims {}",
                plain::count(count.into(), "worker")
            );
            add("beat", Some(at), "node", text);
        }
        None => add("beat", None, "node", "no beat yet".into()),
    }
    match row.inventory {
        Some((at, count)) => {
            let text = format!("an inventory of {}", plain::count(count.into(), "worker"));
            add("inventory", Some(at), "node", text);
        }
        None => add("inventory", None, "node", "no inventory yet".into()),
    }
    if let Some(at) = node.link.as_ref().and_then(|link| link.answered_at) {
        let text = "it answered a request of ours".into();
        add("acknowledged", Some(at), "plane", text);
    }
    if let Some((at, why)) = &row.goodbye {
        add(
            "goodbye",
            Some(*at),
            "node",
            format!("it said goodbye: {why}"),
        );
    }
    if let Some(wished) = &row.wished {
        let text = format!("{} wants it to be {}", wished.by, row.wish);
        add("wish", Some(wished.at), "operator", text);
    }
    if let Some(pin) = &row.pin {
        let text = format!("{} pinned it as {}", pin.wished.by, pin.state);
        add("pin", Some(pin.wished.at), "operator", text);
    }
    if let Some((at, why)) = &row.lost {
        add(
            "lost",
            Some(*at),
            "operator",
            format!("declared lost: {why}"),
        );
    }
    if let Some(until) = node.forgiven_until.filter(|until| *until > now) {
        let text = format!("silence is forgiven for {} more", seconds(until.since(now)));
        add("forgiven", Some(now), "plane", text);
    }
    facts.sort_by_key(|fact| fact.at);
    facts
}
