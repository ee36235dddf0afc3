//! The whole fleet in numbers, and the alarm when too little of it can be reached: work gathers
//! silently on what is left. Recounted when asked; nothing is counted up and down.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_wire::Timestamp;
use muster_wire::fleet::{NodeState, NodeWish, WorkerState};

use super::effect::FleetSummary;
use super::node::Node;
use crate::effect::Effects;
use crate::engine::Engine;

/// Below this share of the places that can be reached an alarm is raised.
const REACHABLE_LEAST: f64 = 0.75;

/// A node whose places count: it takes work, and was there once.
fn counts(node: &Node) -> bool {
    node.row.wish == NodeWish::Active && node.row.connected_at.is_some()
}

/// Whether nobody can reach it. One that is only suspect, or that we ourselves were away from,
/// raises no alarm.
fn is_out_of_reach(node: &Node) -> bool {
    matches!(node.state.0, NodeState::Unreachable | NodeState::Lost)
}

impl Engine {
    /// The share of the places that can be reached; `None` without nodes. Where a node has no
    /// bound, nodes are counted and not places.
    fn share(&self, reached: fn(&Node) -> bool) -> Option<f64> {
        let nodes: Vec<&Node> = self.fleet.nodes.values().filter(|n| counts(n)).collect();
        let bounded = nodes.iter().all(|node| node.row.max_workers > 0);
        let weight = |node: &Node| {
            if bounded {
                f64::from(node.row.max_workers)
            } else {
                1.0
            }
        };
        let all: f64 = nodes.iter().map(|node| weight(node)).sum();
        let here = nodes.iter().filter(|node| reached(node));
        let here: f64 = here.map(|node| weight(node)).sum();
        (all > 0.0).then(|| here / all)
    }

    /// Raises the alarm about reachable capacity, or ends it.
    pub(crate) fn weigh_capacity(&mut self, now: Timestamp, out: &mut Effects) {
        let share = self.share(|node| !is_out_of_reach(node));
        let low = share.is_some_and(|share| share < REACHABLE_LEAST);
        match (&self.fleet.capacity_alarm, low) {
            (None, true) => {
                let percent = (share.unwrap_or_default() * 100.0) as u32;
                let nodes = self.fleet.nodes.values();
                let mut away: Vec<&str> = nodes
                    .filter(|node| counts(node) && is_out_of_reach(node))
                    .map(|node| &*node.row.name)
                    .take(10)
                    .collect();
                away.sort_unstable();
                let text: Arc<str> = format!(
                    "{percent} % of the fleet's places can be reached; out of reach: {}; new work gathers on what is left",
                    away.join(", ")
                )
                .into();
                self.fleet.capacity_alarm = Some((now, text.clone()));
                self.alarm_line(now, "capacity", true, text, out);
            }
            (Some(_), false) => {
                self.fleet.capacity_alarm = None;
                let text = "enough of the fleet's places can be reached again";
                self.alarm_line(now, "capacity_over", false, text, out);
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    pub(crate) fn fleet_summary(&self, now: Timestamp) -> FleetSummary {
        let mut nodes: BTreeMap<NodeState, u32> = BTreeMap::new();
        let mut workers: BTreeMap<WorkerState, u32> = BTreeMap::new();
        let mut summary = FleetSummary {
            capacity: Some(0),
            ..FleetSummary::default()
        };
        for node in self.fleet.nodes.values() {
            summary.late_frames += node.late_frames;
            summary.drifting += u32::from(node.drift.since.is_some());
            if node.is_retired() {
                continue;
            }
            *nodes.entry(node.state.0).or_default() += 1;
            let places = u64::from(node.row.max_workers);
            match node.state.0 {
                NodeState::Online => {
                    summary.used += node.workers.len() as u64;
                    summary.capacity = match places {
                        0 => None,
                        places => summary.capacity.map(|all| all + places),
                    };
                }
                NodeState::Connecting
                | NodeState::Suspect
                | NodeState::Unreachable
                | NodeState::Lost => summary.capacity_unknown += places,
            }
        }
        for worker in self.fleet.workers.values().filter(|worker| worker.lives()) {
            let state = self.worker_state(worker).0;
            *workers.entry(state).or_default() += 1;
        }
        summary.nodes = nodes.into_iter().collect();
        summary.workers = workers.into_iter().collect();
        summary.reachable_share = self.share(|node| node.state.0 == NodeState::Online);
        summary.queued = u32::try_from(self.fleet.queue.len()).unwrap_or(u32::MAX);
        let alarm = self.fleet.capacity_alarm.as_ref();
        summary.capacity_alarm = alarm.map(|(at, text)| {
            let age = crate::liveness::seconds(now.since(*at));
            format!("for {age}: {text}")
        });
        let doubt = self.fleet.doubt.as_ref();
        summary.doubt = doubt.map(|doubt| (doubt.since, doubt.evidence.to_string()));
        summary
    }
}
