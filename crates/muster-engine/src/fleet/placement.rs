//! Chooses the node for a worker, or says why none will do. Knows capacity, labels and verdicts;
//! knows nothing of sockets and changes nothing.

use std::cmp::Reverse;
use std::sync::Arc;

use muster_wire::fleet::{NodeKind, NodeState, NodeWish, RestartMode, WorkerIo};
use muster_wire::{Category, NodeId, Timestamp, plain};

use super::effect::{FleetRefusal, PassedOver, Taker};
use super::event::LinkId;
use super::node::Node;
use super::row::WorkerRow;
use crate::engine::Engine;
use crate::liveness::seconds;

/// How long to wait before asking again, in seconds.
const RETRY_AFTER: u32 = 5;

/// Why one node will not do, by strength: the first of them that holds is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unfit {
    Labels,
    Retired,
    Unsupported,
    Cordoned,
    Draining,
    Leaving,
    State(NodeState),
    Full,
}

impl Unfit {
    fn word(self) -> &'static str {
        match self {
            Unfit::Labels => "labels",
            Unfit::Retired => "retired",
            Unfit::Unsupported => "unsupported",
            Unfit::Cordoned => "cordoned",
            Unfit::Draining => "draining",
            Unfit::Leaving => "leaving",
            Unfit::State(state) => state.word(),
            Unfit::Full => "full",
        }
    }
}

/// What a Relay broker cannot do of what is asked.
fn beyond_a_broker(row: &WorkerRow) -> Option<&'static str> {
    if row.io == Some(WorkerIo::Pipes) {
        return Some("a Relay broker runs workers in terminals, not in pipes");
    }
    (row.restart.mode != RestartMode::Never).then_some("a Relay broker starts no worker again")
}

fn lacks(node: &Node, row: &WorkerRow) -> Vec<Arc<str>> {
    let has = |label: &&Arc<str>| node.row.labels.contains(*label);
    let wanted = row.target.labels.iter();
    wanted.filter(|label| !has(label)).cloned().collect()
}

fn unfit(node: &Node, row: &WorkerRow) -> Option<Unfit> {
    if !lacks(node, row).is_empty() {
        return Some(Unfit::Labels);
    }
    match node.row.wish {
        NodeWish::Retired => return Some(Unfit::Retired),
        _ if node.row.kind == NodeKind::Relay && beyond_a_broker(row).is_some() => {
            return Some(Unfit::Unsupported);
        }
        NodeWish::Cordoned => return Some(Unfit::Cordoned),
        NodeWish::Draining => return Some(Unfit::Draining),
        NodeWish::Active => {}
    }
    match (node.state.0, &node.link) {
        (NodeState::Online, Some(link)) if link.leaving => return Some(Unfit::Leaving),
        (NodeState::Online, Some(_)) => {}
        // Pinned, and nothing to send over.
        (NodeState::Online, None) => return Some(Unfit::State(NodeState::Unreachable)),
        (state, _) => return Some(Unfit::State(state)),
    }
    (node.free() == Some(0)).then_some(Unfit::Full)
}

impl Engine {
    fn passed_over(&self, now: Timestamp, node: &Node, row: &WorkerRow, why: Unfit) -> PassedOver {
        let limits = &self.limits.fleet;
        let evidence = match why {
            Unfit::Labels => {
                let lacks: Vec<String> = lacks(node, row).iter().map(ToString::to_string).collect();
                format!("it does not have {}", lacks.join(", "))
            }
            Unfit::Retired => "it was retired".into(),
            Unfit::Unsupported => beyond_a_broker(row).unwrap_or_default().into(),
            Unfit::Cordoned | Unfit::Draining => {
                let word = why.word();
                match &node.row.wished {
                    Some(wished) => {
                        let reason = wished.reason.as_deref().unwrap_or("no reason given");
                        let age = seconds(now.since(wished.at));
                        format!("{word} by {} {age} ago: {reason}", wished.by)
                    }
                    None => word.into(),
                }
            }
            Unfit::Leaving => node.evidence(now, limits),
            Unfit::State(_) if node.state.0 == NodeState::Online => format!(
                "it has no connection to send over; {}",
                node.evidence(now, limits)
            ),
            Unfit::State(state) => {
                let age = seconds(now.since(node.state.1));
                format!("{state} for {age}: {}", node.evidence(now, limits))
            }
            Unfit::Full => match &node.full {
                Some((at, said)) => format!(
                    "it said itself {} ago that it has no room ({said}), and has not beaten since; {} believed there",
                    seconds(now.since(*at)),
                    plain::they(node.workers.len() as u64, "worker is", "workers are")
                ),
                None => format!(
                    "{} of its {} places are taken",
                    node.workers.len(),
                    node.row.max_workers
                ),
            },
        };
        PassedOver {
            node: node.row.id.clone(),
            name: node.row.name.clone(),
            why: why.word(),
            evidence,
        }
    }

    /// The nodes that would take a worker, the best first, and why each other one would not.
    /// Retired ones are left out.
    pub(crate) fn judge_nodes(
        &self,
        now: Timestamp,
        row: &WorkerRow,
    ) -> (Vec<Taker>, Vec<PassedOver>) {
        let named = row.target.node.as_deref();
        let wanted = named.map(|name| self.fleet.find(name).map(|node| node.row.id.clone()));
        let nodes = self.fleet.nodes.values().filter(|node| match &wanted {
            Some(id) => id.as_ref() == Some(&node.row.id),
            None => !node.is_retired(),
        });
        let (mut takers, mut over) = (Vec::new(), Vec::new());
        for node in nodes {
            match unfit(node, row) {
                Some(why) => over.push(self.passed_over(now, node, row, why)),
                None => takers.push((self.score(node, row), node)),
            }
        }
        takers.sort_by(|(a, _), (b, _)| a.cmp(b));
        over.sort_by(|a, b| a.name.cmp(&b.name));
        let limits = &self.limits.fleet;
        let taker = |(_, node): (_, &Node)| Taker {
            node: node.row.id.clone(),
            name: node.row.name.clone(),
            free: node.free(),
            load: node.load_now(now, limits),
        };
        (takers.into_iter().map(taker).collect(), over)
    }

    /// The node for a worker, with the link to send over; or the refusal, which names why each
    /// node was passed over.
    pub(crate) fn choose_node(
        &self,
        now: Timestamp,
        row: &WorkerRow,
        without: Option<&NodeId>,
    ) -> Result<(NodeId, LinkId), FleetRefusal> {
        if let Some(name) = &row.target.node {
            let Some(node) = self.fleet.find(name) else {
                return Err(FleetRefusal {
                    category: Category::NotFound,
                    message: format!("there is no node {name}"),
                    hint: Some("see the nodes: muster nodes".into()),
                    retry_after: None,
                    passed_over: Vec::new(),
                });
            };
            return self.refuse_or_take(now, row, std::iter::once(node), without);
        }
        let all = self.fleet.nodes.values().filter(|node| !node.is_retired());
        self.refuse_or_take(now, row, all, without)
    }

    fn refuse_or_take<'a>(
        &'a self,
        now: Timestamp,
        row: &WorkerRow,
        nodes: impl Iterator<Item = &'a Node>,
        without: Option<&NodeId>,
    ) -> Result<(NodeId, LinkId), FleetRefusal> {
        let mut unfits: Vec<(&Node, Unfit)> = Vec::new();
        let mut best: Option<(_, &Node, LinkId)> = None;
        for node in nodes {
            let why =
                unfit(node, row).or_else(|| (Some(&node.row.id) == without).then_some(Unfit::Full));
            if let Some(why) = why {
                unfits.push((node, why));
                continue;
            }
            let Some(link) = &node.link else { continue };
            let score = self.score(node, row);
            if best.as_ref().is_none_or(|(least, ..)| score < *least) {
                best = Some((score, node, link.id));
            }
        }
        if let Some((_, node, link)) = best {
            return Ok((node.row.id.clone(), link));
        }
        unfits.sort_by(|(a, _), (b, _)| a.row.name.cmp(&b.row.name));
        Err(self.refusal_of(now, row, &unfits))
    }

    /// Less is better: free capacity, then load, then spread by label, then id.
    fn score(&self, node: &Node, row: &WorkerRow) -> (Reverse<u32>, u32, usize, NodeId) {
        let used = u32::try_from(node.workers.len()).unwrap_or(u32::MAX);
        let free = node.free().unwrap_or(u32::MAX - used);
        // In hundredths, so that noise does not decide; one that cannot tell counts as half busy.
        let load = (node.load.map_or(0.5, |(load, _)| load).clamp(0.0, 100.0) * 100.0) as u32;
        let alike = node
            .workers
            .iter()
            .filter_map(|id| self.fleet.workers.get(id))
            .filter(|other| other.row.labels.iter().any(|l| row.labels.contains(l)))
            .count();
        (Reverse(free), load, alike, node.row.id.clone())
    }

    fn refusal_of(
        &self,
        now: Timestamp,
        row: &WorkerRow,
        unfits: &[(&Node, Unfit)],
    ) -> FleetRefusal {
        let over = |(node, why): &(&Node, Unfit)| self.passed_over(now, node, row, *why);
        let passed_over: Vec<PassedOver> = unfits.iter().map(over).collect();
        let any = |fits: fn(Unfit) -> bool| unfits.iter().any(|(_, why)| fits(*why));
        let (category, retry_after, hint) = if any(|why| why == Unfit::Full) {
            let hint = "wait for a place (queue), or raise a node's number of workers";
            (Category::FleetCapacity, Some(RETRY_AFTER), hint)
        } else if any(|why| matches!(why, Unfit::State(_) | Unfit::Leaving)) {
            let hint = "look at what it says itself: muster node status, on its machine";
            (Category::NodeUnreachable, Some(RETRY_AFTER), hint)
        } else if any(|why| matches!(why, Unfit::Cordoned | Unfit::Draining)) {
            let hint = "let it take work again: muster nodes activate NODE";
            (Category::NodeDraining, None, hint)
        } else if any(|why| why == Unfit::Unsupported) {
            let hint = "take a node that runs muster node, or leave out what it cannot do";
            (Category::UnsupportedByNode, None, hint)
        } else {
            let hint = "see the nodes and their labels: muster nodes";
            (Category::NoEligibleNode, None, hint)
        };
        let message = match (&row.target.node, passed_over.as_slice()) {
            (Some(_), [only]) => {
                format!("node {} takes no worker now: {}", only.name, only.evidence)
            }
            (_, []) => "there are no nodes".into(),
            (_, all) => {
                let words: Vec<String> = all
                    .iter()
                    .take(5)
                    .map(|over| format!("{} ({})", over.name, over.why))
                    .collect();
                let more = if all.len() > 5 { ", …" } else { "" };
                format!(
                    "none of {} nodes takes it now: {}{more}",
                    all.len(),
                    words.join(", ")
                )
            }
        };
        FleetRefusal {
            category,
            message,
            hint: Some(hint.into()),
            retry_after,
            passed_over,
        }
    }
}
