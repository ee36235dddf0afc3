//! Beats and inventories against what is believed: a difference that lasts is told with names,
//! and so is its end. Ends no worker.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_wire::{NodeId, Timestamp, WorkerId, plain};

use super::effect::DriftView;
use super::event::Beat;
use super::node::Node;
use super::{FleetSend, Line, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::row::EventKind;

/// Beats in a row that must differ.
const LASTS: u32 = 2;
/// Names in one sentence.
const NAMED: usize = 20;

/// Where a node and what is believed of it differ.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    /// Beats in a row that differed.
    pub(crate) beats: u32,
    /// Since when it is told.
    pub(crate) since: Option<Timestamp>,
    /// Its names were told: a beat that has a digest alone tells a difference without any.
    pub(crate) is_named: bool,
    /// The names of its last beat, where it tells names.
    pub(crate) names: Option<BTreeSet<Arc<str>>>,
    /// How many it claims.
    pub(crate) claimed: u32,
}

fn some(names: &[Arc<str>]) -> String {
    let mut text = names
        .iter()
        .take(NAMED)
        .map(|name| &**name)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

impl Engine {
    /// Whether what a node has is just being changed by us: then nothing is compared.
    fn in_motion(&self, node: &Node) -> bool {
        node.workers
            .iter()
            .filter_map(|id| self.fleet.workers.get(id))
            .any(|worker| worker.sent.is_some() || worker.release_by.is_some())
    }

    fn believed_names(&self, node: &Node) -> Vec<Arc<str>> {
        let held = node.workers.iter();
        held.filter_map(|id| self.fleet.workers.get(id))
            .map(|worker| worker.row.name.clone())
            .collect()
    }

    /// A beat against what is believed.
    pub(crate) fn compare_beat(&mut self, now: Timestamp, beat: &Beat, out: &mut Effects) {
        let id = &beat.node;
        let Some(node) = self.fleet.nodes.get(id) else {
            return;
        };
        if self.in_motion(node) {
            return;
        }
        let (same, proves) = match (&beat.digest, &beat.names) {
            (Some(digest), _) => {
                let Some(node) = self.fleet.nodes.get_mut(id) else {
                    return;
                };
                (node.digest() == *digest, true)
            }
            (None, Some(names)) => {
                let claimed: BTreeSet<&Arc<str>> = names.iter().collect();
                let believed = self.believed_names(node);
                let believed: BTreeSet<&Arc<str>> = believed.iter().collect();
                (claimed == believed, true)
            }
            (None, None) => (node.workers.len() == beat.count as usize, false),
        };
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        node.drift.claimed = beat.count;
        node.drift.names = beat.names.as_ref().map(|n| n.iter().cloned().collect());
        if same {
            if proves {
                node.matched_at = Some(now);
            }
            return self.drift_over(now, id, out);
        }
        node.drift.beats = node.drift.beats.saturating_add(1);
        if beat.digest.is_some() {
            // A digest names nobody: whoever is asked tells its workers anew, so that the names
            // need not wait for the next inventory.
            let ask = FleetSend::Ask {
                node: id.clone(),
                link: beat.link,
            };
            send(ask, out);
        }
        if node.drift.beats >= LASTS {
            self.raise_drift(now, id, out);
        }
    }

    /// An inventory against what is believed: where both are the same, a drift is over.
    pub(crate) fn compare_inventory(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        node.drift.claimed = u32::try_from(node.named.len()).unwrap_or(u32::MAX);
        // The names of its last beat are older.
        node.drift.names = None;
        let same = node.named.len() == node.workers.len()
            && node.workers.iter().all(|w| node.named.contains_key(w));
        if same {
            self.drift_over(now, id, out);
        } else if node.drift.since.is_some() {
            self.raise_drift(now, id, out);
        }
    }

    /// Tells a difference, once; and once more when its names are known.
    pub(crate) fn raise_drift(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        let is_told = node.drift.since.is_some();
        if is_told && node.drift.is_named {
            return;
        }
        node.drift.since.get_or_insert(now);
        let Some(view) = self.drift_view(id) else {
            return;
        };
        let is_named = !view.missing.is_empty() || !view.surplus.is_empty();
        if is_told && !is_named {
            return;
        }
        if let Some(node) = self.fleet.nodes.get_mut(id) {
            node.drift.is_named = is_named;
        }
        let mut text = format!(
            "{}: {} believed, {} claimed",
            view.name,
            plain::they(view.believed.into(), "worker is", "workers are"),
            plain::they(view.claimed.into(), "is", "are")
        );
        if !view.missing.is_empty() {
            text.push_str(&format!("; missing there: {}", some(&view.missing)));
        }
        if !view.surplus.is_empty() {
            text.push_str(&format!("; unknown here: {}", some(&view.surplus)));
        }
        text.push_str(&format!("; {}", view.next));
        self.drift_line(now, id, Some("drift"), true, text, out);
    }

    fn drift_over(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get_mut(id) else {
            return;
        };
        node.drift.beats = 0;
        node.drift.is_named = false;
        if node.drift.since.take().is_some() {
            let count = node.workers.len();
            let text = format!(
                "{}: what it says is what is believed: {count}",
                node.row.name
            );
            self.drift_line(now, id, Some("reconciled"), false, text, out);
        }
    }

    pub(crate) fn drift_line(
        &mut self,
        now: Timestamp,
        id: &NodeId,
        to: Option<&'static str>,
        warn: bool,
        text: String,
        out: &mut Effects,
    ) {
        let line = Line {
            kind: EventKind::NodeDrift,
            history: "drift",
            node: Some(id.clone()),
            worker: None,
            from: None,
            to,
            warn,
            text: text.into(),
        };
        self.fleet_line(now, line, out);
    }

    /// Whether a node had said of a worker that it has it, or was asked for it before its last
    /// inventory: what is newer than that is not missing there.
    fn was_told(&self, node: &Node, worker: &WorkerId) -> bool {
        let told = node.row.inventory.map(|(at, _)| at);
        self.fleet.workers.get(worker).is_some_and(|worker| {
            worker.row.confirmed_at.is_some() || Some(worker.row.state_at) <= told
        })
    }

    /// Where a node's claims and what is believed differ now.
    pub(crate) fn drift_view(&self, id: &NodeId) -> Option<DriftView> {
        let node = self.fleet.nodes.get(id)?;
        let since = node.drift.since?;
        let held: Vec<(&WorkerId, Arc<str>)> = node
            .workers
            .iter()
            .filter_map(|id| Some((id, self.fleet.workers.get(id)?.row.name.clone())))
            .collect();
        let (missing, surplus): (Vec<Arc<str>>, Vec<Arc<str>>) = match &node.drift.names {
            Some(names) => {
                let believed: BTreeSet<&Arc<str>> = held.iter().map(|(_, name)| name).collect();
                let absent = held.iter().filter(|(_, name)| !names.contains(name));
                let more = names.iter().filter(|name| !believed.contains(name));
                (
                    absent.map(|(_, name)| name.clone()).collect(),
                    more.cloned().collect(),
                )
            }
            None => {
                let absent = held
                    .iter()
                    .filter(|(id, _)| !node.named.contains_key(*id) && self.was_told(node, id));
                let more = node
                    .named
                    .iter()
                    .filter(|(id, _)| !node.workers.contains(*id));
                (
                    absent.map(|(_, name)| name.clone()).collect(),
                    more.map(|(_, name)| name.clone()).collect(),
                )
            }
        };
        let next = if missing.is_empty() && surplus.is_empty() {
            "its next inventory will name them"
        } else {
            "what two inventories in a row omit ends as exited(unobserved), what they name is adopted"
        };
        Some(DriftView {
            node: id.clone(),
            name: node.row.name.clone(),
            since,
            believed: u32::try_from(node.workers.len()).unwrap_or(u32::MAX),
            claimed: node.drift.claimed,
            missing,
            surplus,
            next: next.into(),
        })
    }
}
