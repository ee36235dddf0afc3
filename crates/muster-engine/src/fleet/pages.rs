//! Pages of nodes: which fit, in which order, and views of those of one page alone. A fleet of a
//! thousand nodes is looked through without making a view of each. Changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_wire::Timestamp;
use muster_wire::fleet::NodeState;

use super::effect::{LABELS_MAX, LabelSum, MissingNode, NAMED_MAX, NodesAsk, NodesPage};
use super::node::Node;
use crate::engine::Engine;

/// How much a node needs somebody; 0 is most.
fn need(node: &Node, now: Timestamp) -> u8 {
    match node.state.0 {
        NodeState::Lost => 0,
        NodeState::Unreachable => 1,
        _ if is_flapping(node, now) => 2,
        NodeState::Suspect => 3,
        NodeState::Connecting => 4,
        NodeState::Online => 5,
    }
}

fn is_flapping(node: &Node, now: Timestamp) -> bool {
    node.flapping_until.is_some_and(|until| until > now)
}

fn fits(node: &Node, ask: &NodesAsk) -> bool {
    let row = &node.row;
    let part = |part: &String| {
        let id = row.id.as_str().to_lowercase();
        row.name.to_lowercase().contains(part)
            || id.starts_with(part)
            || id.ends_with(part)
            || row
                .host
                .as_deref()
                .is_some_and(|host| host.to_lowercase().contains(part))
    };
    (ask.retired || !node.is_retired())
        && ask
            .label
            .as_ref()
            .is_none_or(|label| row.labels.contains(label))
        && ask.kind.is_none_or(|kind| row.kind == kind)
        && ask.part.as_ref().is_none_or(part)
}

impl Engine {
    pub(crate) fn nodes_page(&self, now: Timestamp, ask: &NodesAsk) -> NodesPage {
        let rank = |node: &Node| if ask.by_need { need(node, now) } else { 0 };
        let mut states: BTreeMap<NodeState, u32> = BTreeMap::new();
        let mut found: Vec<(u8, &Arc<str>, &Node)> = Vec::new();
        for node in self.fleet.nodes.values().filter(|node| fits(node, ask)) {
            *states.entry(node.state.0).or_default() += 1;
            if ask.states.is_empty() || ask.states.contains(&node.state.0) {
                found.push((rank(node), &node.row.name, node));
            }
        }
        let total = found.len() as u64;
        found.sort_by_key(|(rank, name, node)| (*rank, *name, &node.row.id));
        if let Some((rank, name)) = &ask.after {
            found.retain(|one| (one.0, one.1) > (*rank, name));
        }
        let more = found.len() > ask.limit;
        found.truncate(ask.limit);
        let view = |(rank, _, node): (u8, &Arc<str>, &Node)| {
            Some((rank, self.node_view(now, &node.row.id)?))
        };
        NodesPage {
            nodes: found.into_iter().filter_map(view).collect(),
            more,
            total,
            states: states.into_iter().collect(),
        }
    }

    /// Nodes that need somebody, the worst first, and how many there are.
    pub(crate) fn missing_nodes(&self, now: Timestamp) -> (Vec<MissingNode>, u32) {
        let mut missing: Vec<(u8, &Node)> = self
            .fleet
            .nodes
            .values()
            .filter(|node| !node.is_retired())
            .map(|node| (need(node, now), node))
            .filter(|(need, _)| *need <= 2)
            .collect();
        missing.sort_by_key(|(need, node)| (*need, &node.row.name));
        let total = u32::try_from(missing.len()).unwrap_or(u32::MAX);
        let named = missing
            .into_iter()
            .take(NAMED_MAX)
            .map(|(_, node)| MissingNode {
                name: node.row.name.clone(),
                state: node.state.0,
                since: node.state.1,
                flapping: is_flapping(node, now),
                workers: u32::try_from(node.workers.len()).unwrap_or(u32::MAX),
            });
        (named.collect(), total)
    }

    /// Sums by label, those of most nodes first.
    pub(crate) fn label_sums(&self) -> Vec<LabelSum> {
        let mut sums: BTreeMap<&Arc<str>, LabelSum> = BTreeMap::new();
        let nodes = self.fleet.nodes.values().filter(|node| !node.is_retired());
        for node in nodes {
            for label in &node.row.labels {
                let sum = sums.entry(label).or_insert_with(|| LabelSum {
                    label: label.clone(),
                    states: Vec::new(),
                    capacity: Some(0),
                    used: None,
                    unknown: 0,
                });
                match sum
                    .states
                    .iter_mut()
                    .find(|(state, _)| *state == node.state.0)
                {
                    Some((_, n)) => *n += 1,
                    None => sum.states.push((node.state.0, 1)),
                }
                let places = u64::from(node.row.max_workers);
                if node.is_here() {
                    sum.capacity = sum.capacity.filter(|_| places > 0).map(|all| all + places);
                    let workers = node.workers.len() as u64;
                    sum.used = Some(sum.used.unwrap_or(0) + workers);
                } else {
                    sum.unknown += places;
                }
            }
        }
        let count = |sum: &LabelSum| sum.states.iter().map(|(_, n)| *n).sum::<u32>();
        let mut sums: Vec<LabelSum> = sums.into_values().collect();
        sums.sort_by_key(|sum| (std::cmp::Reverse(count(sum)), sum.label.clone()));
        sums.truncate(LABELS_MAX);
        sums
    }
}
