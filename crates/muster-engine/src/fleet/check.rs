//! Recounts every invariant of the fleet from scratch.

use std::collections::BTreeSet;

use muster_wire::fleet::{NodeState, WorkerState};

use crate::engine::Engine;
use crate::timers::TimerKey;

macro_rules! must {
    ($holds:expr, $($text:tt)*) => { if !$holds { return Err(format!($($text)*)); } };
}

impl Engine {
    pub(crate) fn check_fleet(&self) -> Result<(), String> {
        self.check_nodes()?;
        self.check_workers()?;
        let limits = &self.limits.fleet;
        let living = self.fleet.workers.values();
        // One that was taken for ended and lives is not ended again for want of room.
        let living = living.filter(|w| w.lives() && !w.revived).count();
        must!(
            self.fleet.nodes.len() <= limits.nodes_max as usize,
            "{} nodes are too many",
            self.fleet.nodes.len()
        );
        must!(
            living <= limits.workers_max as usize,
            "{living} workers are too many"
        );
        must!(
            self.fleet.queue.len() <= limits.queue_capacity as usize,
            "{} placements are too many",
            self.fleet.queue.len()
        );
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), String> {
        let limits = &self.limits.fleet;
        let acts = self.fleet.acts(self.now);
        for (id, node) in &self.fleet.nodes {
            must!(node.row.id == *id, "node {id} is filed under another id");
            let named = self.fleet.names.get(&node.row.name) == Some(id);
            must!(
                named != node.is_retired(),
                "node {id}: retired {}, and its name finds it: {named}",
                node.is_retired()
            );
            let believed: BTreeSet<_> = self
                .fleet
                .workers
                .values()
                .filter(|w| w.lives() && w.row.node.as_ref() == Some(id))
                .map(|w| w.row.id.clone())
                .collect();
            must!(
                believed == node.workers,
                "node {id}: {} workers are its, listed {}",
                believed.len(),
                node.workers.len()
            );
            if node.is_retired() {
                must!(node.workers.is_empty(), "retired node {id} has workers");
                must!(node.link.is_none(), "retired node {id} has a link");
                continue;
            }
            let verdict = node.verdict(self.now, limits, acts);
            must!(
                verdict == node.state.0,
                "node {id} is {} and counts as {verdict}",
                node.state.0
            );
            let quiet = node.state.0 == NodeState::Connecting && node.forgiven_until.is_some();
            must!(
                quiet || node.row.told.0 == node.state.0,
                "node {id} is {}, told {}",
                node.state.0,
                node.row.told.0
            );
            let look = node.next_look(self.now, limits);
            must!(
                look.is_none() || node.armed.is_some_and(|armed| Some(armed) <= look),
                "node {id} is armed for {:?}, wants {look:?}",
                node.armed
            );
            if let Some(at) = node.armed {
                must!(
                    self.timers.has(at, TimerKey::Node(id.clone())),
                    "the timer of node {id} is not in the wheel"
                );
            }
        }
        for (name, id) in &self.fleet.names {
            must!(
                self.fleet.nodes.contains_key(id),
                "the name {name} is of node {id}, which is not held"
            );
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), String> {
        for (id, worker) in &self.fleet.workers {
            let row = &worker.row;
            must!(row.id == *id, "worker {id} is filed under another id");
            let over = matches!(row.state, WorkerState::Exited | WorkerState::Lost);
            must!(
                over == row.ended.is_some(),
                "worker {id} is {} and ended {:?}",
                row.state,
                row.ended
            );
            must!(
                row.state != WorkerState::Unknown,
                "worker {id}: unknown is never stored"
            );
            let queued = self.fleet.queue.contains(&(row.created_at, id.clone()));
            must!(
                queued == (row.state == WorkerState::Queued),
                "worker {id} is {} and in the queue: {queued}",
                row.state
            );
            if row.state == WorkerState::Queued {
                must!(row.node.is_none(), "worker {id} waits and has a node");
                must!(row.place_by.is_some(), "worker {id} waits without end");
            }
            if worker.lives() && row.state != WorkerState::Queued {
                must!(
                    row.node
                        .as_ref()
                        .is_some_and(|n| self.fleet.nodes.contains_key(n)),
                    "worker {id} lives nowhere"
                );
            }
            if over {
                must!(
                    worker.starters.is_empty()
                        && worker.releasers.is_empty()
                        && worker.restarting.is_none(),
                    "worker {id} has ended, and somebody waits for it"
                );
            }
            must!(
                worker.starters.is_empty() || worker.sent.is_some(),
                "somebody waits for the start of {id}, and nothing is on its way"
            );
            must!(
                worker.releasers.is_empty() || worker.release_by.is_some(),
                "somebody waits for the end of {id} without end"
            );
            let Some(at) = worker.armed else {
                return Err(format!("worker {id} has no timer"));
            };
            must!(
                self.timers.has(at, TimerKey::Worker(id.clone())),
                "the timer of worker {id} is not in the wheel"
            );
            if let Some(key) = &row.idempotency_key {
                must!(
                    self.fleet.keys.contains_key(key),
                    "the key of worker {id} is not known"
                );
            }
        }
        for (_, id) in &self.fleet.queue {
            must!(
                self.fleet.workers.contains_key(id),
                "{id} is in the queue and not held"
            );
        }
        for id in self.fleet.keys.values() {
            must!(
                self.fleet.workers.contains_key(id),
                "a key is of worker {id}, which is not held"
            );
        }
        Ok(())
    }

    /// Timers that the fleet has armed.
    pub(crate) fn fleet_timers(&self) -> usize {
        let nodes = self.fleet.nodes.values().filter(|n| n.armed.is_some());
        let workers = self.fleet.workers.values().filter(|w| w.armed.is_some());
        let doubt = self.fleet.doubt.as_ref().and_then(|doubt| doubt.armed);
        nodes.count() + workers.count() + usize::from(doubt.is_some())
    }
}
