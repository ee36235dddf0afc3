//! The fleet in memory: what its writes do and how each is taken back, and the questions of
//! lists.

use std::collections::BTreeMap;

use muster_engine::fleet::row::{FleetHistoryRow, FleetSnapshot, FleetWrite, NodeRow, WorkerRow};
use muster_engine::row::Payload;
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::state::{Undo, conflict, put_back};
use crate::{Page, Retention, StoreResult, WorkerFilter, fleet};

/// Nodes, workers and their history.
#[derive(Default)]
pub(super) struct Fleet {
    nodes: BTreeMap<NodeId, NodeRow>,
    workers: BTreeMap<WorkerId, WorkerRow>,
    history: BTreeMap<u64, FleetHistoryRow>,
}

impl Fleet {
    /// Applies one write; how to take it back.
    pub(super) fn apply(&mut self, write: &FleetWrite) -> StoreResult<Undo> {
        match write {
            FleetWrite::PutNode(row) => {
                let id = row.id.clone();
                let before = self.nodes.insert(id.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    put_back(&mut state.fleet.nodes, id, before);
                }))
            }
            FleetWrite::DeleteNode(id) => {
                let node = self.nodes.remove(id);
                let mut lines = BTreeMap::new();
                self.history.retain(|seq, line| {
                    let stays = line.node.as_ref() != Some(id);
                    if !stays {
                        lines.insert(*seq, line.clone());
                    }
                    stays
                });
                let id = id.clone();
                Ok(Box::new(move |state| {
                    put_back(&mut state.fleet.nodes, id, node);
                    state.fleet.history.append(&mut lines);
                }))
            }
            FleetWrite::PutWorker(row) => self.put_worker(row),
            FleetWrite::InsertHistory(row) => {
                let seq = row.seq;
                if self.history.contains_key(&seq) {
                    return Err(conflict(format!("history has a line {seq} already")));
                }
                self.history.insert(seq, (**row).clone());
                Ok(Box::new(move |state| {
                    state.fleet.history.remove(&seq);
                }))
            }
        }
    }

    fn put_worker(&mut self, row: &WorkerRow) -> StoreResult<Undo> {
        let mut freed = None;
        if let Some(key) = &row.idempotency_key {
            let other = self
                .workers
                .values_mut()
                .find(|other| other.id != row.id && other.idempotency_key.as_ref() == Some(key));
            match other {
                Some(other) if other.ended.is_none() => {
                    let text = format!("worker {} has this idempotency key", other.id);
                    return Err(conflict(text));
                }
                // One that has ended gives its key up to whom it was decided to belong.
                Some(other) => {
                    other.idempotency_key = None;
                    freed = Some((other.id.clone(), key.clone()));
                }
                None => {}
            }
        }
        let id = row.id.clone();
        let before = self.workers.insert(id.clone(), row.clone());
        Ok(Box::new(move |state| {
            let workers = &mut state.fleet.workers;
            put_back(workers, id, before);
            if let Some((other, key)) = freed
                && let Some(other) = workers.get_mut(&other)
            {
                other.idempotency_key = Some(key);
            }
        }))
    }

    /// What a start reads.
    pub(super) fn snapshot(&self, now: Timestamp) -> FleetSnapshot {
        let lately = fleet::ended_lately(now);
        let counts = |row: &&WorkerRow| row.ended.is_none_or(|(at, _)| at > lately);
        let mut workers: Vec<WorkerRow> = self.workers.values().filter(counts).cloned().collect();
        workers.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        FleetSnapshot {
            nodes: self.nodes.values().cloned().collect(),
            workers,
        }
    }

    /// Workers as the filter says, newest first, without their specs.
    pub(super) fn workers(&self, filter: &WorkerFilter, page: &Page) -> Vec<WorkerRow> {
        let wanted = |row: &&WorkerRow| {
            let node = filter.node.as_ref();
            let name = filter.name.as_ref();
            node.is_none_or(|node| row.node.as_ref() == Some(node))
                && name.is_none_or(|name| *row.name == **name)
                && filter
                    .ended
                    .is_none_or(|ended| row.ended.is_some() == ended)
                && (filter.states.is_empty() || filter.states.contains(&row.state))
                && filter.id_part.as_ref().is_none_or(|part| {
                    row.id.as_str().starts_with(&**part) || row.id.as_str().ends_with(&**part)
                })
                && page
                    .after
                    .as_ref()
                    .is_none_or(|(at, id)| (row.created_at, row.id.as_str()) < (*at, id.as_str()))
        };
        let mut found: Vec<WorkerRow> = self.workers.values().filter(wanted).cloned().collect();
        found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        found.truncate(page.limit);
        for row in &mut found {
            row.spec = Payload::default();
        }
        found
    }

    /// One worker, with its spec.
    pub(super) fn worker(&self, id: &WorkerId) -> Option<WorkerRow> {
        self.workers.get(id).cloned()
    }

    /// Lines of history, newest first.
    pub(super) fn history(
        &self,
        node: Option<&NodeId>,
        worker: Option<&WorkerId>,
        before: Option<u64>,
        limit: usize,
    ) -> Vec<FleetHistoryRow> {
        let wanted = |row: &&FleetHistoryRow| {
            node.is_none_or(|node| row.node.as_ref() == Some(node))
                && worker.is_none_or(|worker| row.worker.as_ref() == Some(worker))
        };
        let lines = self.history.range(..before.unwrap_or(u64::MAX)).rev();
        let found = lines.map(|(_, row)| row).filter(wanted).take(limit);
        found.cloned().collect()
    }

    /// Removes what ended, and lines, from before.
    pub(super) fn retire(&mut self, cut: &Retention, limit: usize) -> u64 {
        let before = cut.workers_before;
        let old = |row: &WorkerRow| row.ended.is_some_and(|(at, _)| at < before);
        let mut gone = super::retire::removed(&mut self.workers, limit, old);
        let lines: Vec<u64> = self
            .history
            .iter()
            .take(limit)
            .filter(|(_, line)| line.at < before)
            .map(|(seq, _)| *seq)
            .collect();
        gone += lines.len() as u64;
        lines.iter().for_each(|seq| drop(self.history.remove(seq)));
        gone
    }
}
