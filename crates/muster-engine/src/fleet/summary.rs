//! The whole fleet in numbers, and the alarm when too little of it can be reached: work gathers
//! silently on what is left. Recounted when asked; nothing is counted up and down.

use std::collections::BTreeMap;

use muster_wire::Timestamp;
use muster_wire::fleet::{NodeState, NodeWish, WorkerState};
use muster_wire::plain;

use super::effect::{FleetSummary, Known, NAMED_MAX};
use super::node::Node;
use super::views::is_known;
use crate::effect::Effects;
use crate::engine::Engine;

/// Below this share of the places that can be reached an alarm is raised.
const REACHABLE_LEAST: f64 = 0.75;
/// Nodes that an alarm names.
const NAMED: usize = 10;

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
        let sum =
            |nodes: &mut dyn Iterator<Item = &&Node>| nodes.fold(0.0, |all, n| all + weight(n));
        let all = sum(&mut nodes.iter());
        let here = sum(&mut nodes.iter().filter(|node| reached(node)));
        (all > 0.0).then(|| here / all)
    }

    /// How much can be reached and who cannot, as of now.
    fn capacity_text(&self) -> String {
        let share = self.share(|node| !is_out_of_reach(node));
        let percent = (share.unwrap_or_default() * 100.0) as u32;
        let nodes = self.fleet.nodes.values();
        let mut away: Vec<&str> = nodes
            .filter(|node| counts(node) && is_out_of_reach(node))
            .map(|node| &*node.row.name)
            .collect();
        away.sort_unstable();
        let more = match away.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        away.truncate(NAMED);
        format!(
            "{percent} % of the fleet's places can be reached; out of reach: {}{more}; new work gathers on what is left",
            away.join(", ")
        )
    }

    /// Raises the alarm about reachable capacity, or ends it.
    pub(crate) fn weigh_capacity(&mut self, now: Timestamp, out: &mut Effects) {
        let share = self.share(|node| !is_out_of_reach(node));
        let low = share.is_some_and(|share| share < REACHABLE_LEAST);
        match (self.fleet.capacity_alarm, low) {
            (None, true) => {
                self.fleet.capacity_alarm = Some(now);
                let text = self.capacity_text();
                self.alarm_line(now, "capacity", true, text, out);
            }
            (Some(_), false) => {
                self.fleet.capacity_alarm = None;
                let text = "enough of the fleet's places can be reached again";
                self.alarm_line(now, "capacity_over", false, text, out);
            }
            // Its words are made when somebody asks.
            (None, false) | (Some(_), true) => {}
        }
    }

    pub(crate) fn fleet_summary(&self, now: Timestamp) -> FleetSummary {
        let mut nodes: BTreeMap<NodeState, u32> = BTreeMap::new();
        let mut workers: BTreeMap<WorkerState, u32> = BTreeMap::new();
        let mut summary = FleetSummary::default();
        for node in self.fleet.nodes.values() {
            summary.late_frames += node.late_frames;
            summary.drifting += u32::from(node.drift.since.is_some());
            if !node.is_retired() {
                *nodes.entry(node.state.0).or_default() += 1;
            }
        }
        for worker in self.fleet.workers.values().filter(|worker| worker.lives()) {
            let state = self.worker_state(worker).0;
            *workers.entry(state).or_default() += 1;
        }
        let drifting = self
            .fleet
            .nodes
            .values()
            .filter(|node| node.drift.since.is_some());
        let mut names: Vec<_> = drifting.map(|node| node.row.name.clone()).collect();
        names.sort_unstable();
        names.truncate(NAMED_MAX);
        summary.drifting_names = names;
        (summary.missing, summary.missing_total) = self.missing_nodes(now);
        summary.labels = self.label_sums();
        summary.nodes = nodes.into_iter().collect();
        summary.workers = workers.into_iter().collect();
        self.count_places(&mut summary);
        summary.queued = u32::try_from(self.fleet.queue.len()).unwrap_or(u32::MAX);
        summary.capacity_alarm = self.fleet.capacity_alarm.map(|at| {
            let age = crate::liveness::seconds(now.since(at));
            format!("for {age}: {}", self.capacity_text())
        });
        let doubt = self.fleet.doubt.as_ref();
        summary.doubt = doubt.map(|doubt| (doubt.since, self.doubt_text(now)));
        summary
    }

    /// Places, and what nobody can know about them.
    fn count_places(&self, summary: &mut FleetSummary) {
        let all = self.fleet.nodes.values().filter(|node| !node.is_retired());
        let (here, away): (Vec<&Node>, Vec<&Node>) = all.partition(|node| node.is_here());
        let bound = |node: &&Node| u64::from(node.row.max_workers);
        let was_here = |node: &&&Node| node.row.connected_at.is_some();
        let connecting = away
            .iter()
            .filter(was_here)
            .filter(|node| node.state.0 == NodeState::Connecting);
        let yet = match (here.is_empty(), connecting.count()) {
            (true, n @ 1..) => Some(format!("no node is online yet, {n} connect")),
            _ => None,
        };
        let boundless = here.iter().filter(|node| node.row.max_workers == 0).count();
        let reason = yet.clone().or_else(|| match boundless {
            0 => None,
            n => Some(format!(
                "{} no bound, of {} online",
                plain::they(n as u64, "node has", "nodes have"),
                here.len()
            )),
        });
        summary.capacity = number(here.iter().map(bound).sum(), reason);
        let untold = here.iter().filter(|node| !is_known(node)).count();
        let away_from: Vec<&&Node> = away.iter().filter(was_here).collect();
        let none_here = (here.is_empty() && !away_from.is_empty())
            .then(|| format!("no node is online; {}", in_words(&away_from)));
        let reason = yet.clone().or(none_here).or_else(|| match untold {
            0 => None,
            n => Some(format!(
                "{} not told its workers since it connected, of {} online",
                plain::they(n as u64, "node has", "nodes have"),
                here.len()
            )),
        });
        summary.used = number(here.iter().map(|n| n.workers.len() as u64).sum(), reason);
        if summary.used.value.is_none() {
            let believed = self.fleet.nodes.values().map(|n| n.workers.len() as u64);
            let heard = self.fleet.nodes.values().filter_map(|n| n.row.heard_at);
            summary.used.last = heard.max().map(|at| (believed.sum(), at));
        }
        let boundless = away
            .iter()
            .filter(was_here)
            .filter(|node| node.row.max_workers == 0)
            .count();
        let reason = match boundless {
            0 => None,
            n => Some(format!(
                "{} not online and without a bound",
                plain::they(n as u64, "node is", "nodes are")
            )),
        };
        let away_since = away.iter().filter(was_here).map(|node| node.state.1);
        summary.unknown_since = away_since.min();
        summary.capacity_unknown = number(away.iter().map(bound).sum(), reason);
        let share = self.share(Node::is_here).filter(|_| yet.is_none());
        summary.reachable_share = Known {
            value: share,
            reason: share
                .is_none()
                .then(|| yet.unwrap_or_else(|| "no node that takes work has connected yet".into())),
            last: None,
        };
    }
}

/// How many nodes are in which state, in words.
fn in_words(nodes: &[&&Node]) -> String {
    let mut states: BTreeMap<NodeState, u32> = BTreeMap::new();
    for node in nodes {
        *states.entry(node.state.0).or_default() += 1;
    }
    let words: Vec<String> = states
        .iter()
        .map(|(state, n)| format!("{n} {state}"))
        .collect();
    words.join(", ")
}

/// A number, unless there is a reason why it is not known.
fn number(value: u64, reason: Option<String>) -> Known<u64> {
    Known {
        value: reason.is_none().then_some(value),
        reason,
        last: None,
    }
}
