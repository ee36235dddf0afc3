//! Inventories against what is believed: each item has a verdict, none is refused as a whole.
//! What one inventory omits is missing; what two of the same epoch omit has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_wire::fleet::frame::{InventoryAnswer, ItemVerdict, WorkerReport};
use muster_wire::fleet::{ExitHow, ExitReport, NodeKind, WorkerState};
use muster_wire::id::ID_BYTES_MAX;
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::event::Inventory;
use super::exits::{AHEAD_MOST, believable, shown_name};
use super::row::Wished;
use super::{FleetReply, FleetSend, reply, send};
use crate::effect::Effects;
use crate::engine::Engine;

/// Inventories in a row that must omit a worker before it has ended.
const OMITTED_ENDS: u32 = 2;
/// The verdict of what is not taken over: of another node, of no id of ours, one too many.
const REFUSED: &str = "refused";
const ADOPTED: &str = "adopted";

impl Engine {
    pub(crate) fn inventory_told(
        &mut self,
        now: Timestamp,
        inventory: Inventory,
        out: &mut Effects,
    ) {
        let id = inventory.node.clone();
        if !self.takes(now, &id, inventory.link, inventory.waiter, out) {
            return;
        }
        let count = u32::try_from(inventory.workers.len()).unwrap_or(u32::MAX);
        let mut verdicts = Vec::with_capacity(inventory.workers.len());
        let mut named: BTreeMap<WorkerId, Arc<str>> = BTreeMap::new();
        let (mut adopted, mut refused) = (BTreeSet::new(), 0);
        let from = out.notices.len();
        for report in &inventory.workers {
            let verdict = match WorkerId::parse(&report.worker_id) {
                Ok(worker) => {
                    named.insert(worker.clone(), shown_name(&report.name));
                    let verdict = self.worker_told(now, &id, &worker, report, out);
                    if verdict == ADOPTED {
                        adopted.insert(worker);
                    }
                    verdict
                }
                Err(_) => REFUSED,
            };
            refused += usize::from(verdict == REFUSED);
            verdicts.push(ItemVerdict {
                worker_id: report.worker_id.chars().take(ID_BYTES_MAX).collect(),
                verdict: verdict.into(),
            });
        }
        if let Some(node) = self.fleet.nodes.get_mut(&id) {
            node.row.inventory = Some((now, count));
            node.named = named;
            if let Some(link) = &mut node.link {
                link.inventory_at = Some(now);
            }
        }
        self.tell_adoptions(now, &id, (&adopted, refused), from, out);
        self.judge_omitted(now, &id, out);
        self.compare_inventory(now, &id, out);
        if let Some(waiter) = inventory.waiter {
            let answer = InventoryAnswer { verdicts };
            reply(waiter, FleetReply::Inventory(answer), out);
        }
        self.settle_node(now, &id, out);
    }

    /// A node says that it has a worker: what the plane thinks of that.
    pub(crate) fn worker_told(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        id: &WorkerId,
        report: &WorkerReport,
        out: &mut Effects,
    ) -> &'static str {
        let known = self.fleet.workers.contains_key(id);
        if !known && !self.adopt(now, node, id, &report.name, out) {
            return REFUSED;
        }
        let worker = match self.fleet.workers.get(id) {
            // A node's frames can touch only its own workers.
            Some(worker) if worker.row.node.as_ref() == Some(node) => worker,
            _ => return REFUSED,
        };
        let ends = worker.row.release.is_some()
            || matches!(
                worker.row.ended,
                Some((
                    _,
                    ExitHow::Released | ExitHow::StartFailed | ExitHow::Cancelled
                ))
            );
        let name = worker.row.name.clone();
        self.confirm_worker(now, id, report, out);
        if !ends {
            return if known { "confirmed" } else { ADOPTED };
        }
        if let Some(held) = self.fleet.nodes.get(node)
            && held.row.kind == NodeKind::Relay
            && let Some(link) = &held.link
        {
            // The broker reads no verdicts.
            let release = FleetSend::Release {
                node: node.clone(),
                link: link.id,
                worker: id.clone(),
                name,
                grace: None,
            };
            send(release, out);
        }
        "release"
    }

    /// Its node has it: what is known of it is as the node says. One whose end was concluded
    /// and not seen lives again.
    pub(crate) fn confirm_worker(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        report: &WorkerReport,
        out: &mut Effects,
    ) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        let row = &mut worker.row;
        if report.restarts < row.restarts {
            return;
        }
        let started_at = report.started_at.and_then(|at| believable(now, at));
        let next_start_at = report.next_start_at.map(|at| at.min(now + AHEAD_MOST));
        let mut text: Option<String> = None;
        if let Some((_, how)) = row.ended {
            let seen = match how {
                ExitHow::Reported => true,
                ExitHow::Released | ExitHow::StartFailed => {
                    row.exit.as_ref().is_some_and(|exit| exit.at.is_some())
                }
                ExitHow::Unobserved
                | ExitHow::Declared
                | ExitHow::Cancelled
                | ExitHow::PlacementExpired
                | ExitHow::BindingExpired => false,
            };
            // Its exit was reported, and this came later from before it.
            if seen && report.restarts == row.restarts {
                return;
            }
            row.ended = None;
            if how == ExitHow::StartFailed {
                // Whoever asked was told that it failed.
                row.release.get_or_insert_with(|| Wished {
                    by: "plane".into(),
                    at: now,
                    reason: Some("its start was told to have failed".into()),
                });
            }
            text = Some("its node has it: that it had ended was concluded, and wrong".into());
        }
        let revived = text.is_some();
        let state = match report.state {
            WorkerState::Starting => WorkerState::Starting,
            WorkerState::Restarting => WorkerState::Restarting,
            WorkerState::Queued
            | WorkerState::Running
            | WorkerState::Exited
            | WorkerState::Lost
            | WorkerState::Unknown => WorkerState::Running,
        };
        let pid = report.pid.filter(|_| state != WorkerState::Restarting);
        let started_anew = report.restarts > row.restarts;
        let changed = row.state != state
            || row.pid != pid
            || started_anew
            || (started_at.is_some() && row.started_at != started_at)
            || row.next_start_at != next_start_at;
        let was = row.state;
        row.pid = pid;
        row.restarts = report.restarts;
        row.started_at = started_at.or(row.started_at);
        row.next_start_at = next_start_at;
        row.confirmed_at = Some(now);
        worker.omitted = None;
        worker.answer = None;
        worker.revived |= revived;
        let (node, name) = (worker.row.node.clone(), worker.row.name.clone());
        if let Some(held) = node.as_ref().and_then(|n| self.fleet.nodes.get_mut(n)) {
            held.names_too(id, &name);
        }
        if let (true, Some(node)) = (revived, &node) {
            self.bind(id, node);
        }
        if was != state || started_anew || revived {
            let text = text.unwrap_or_else(|| match (state, pid) {
                (WorkerState::Running, Some(pid)) => format!("its node runs it as process {pid}"),
                (WorkerState::Running, None) => "its node runs it".into(),
                (WorkerState::Starting, _) => "its node is starting it".into(),
                _ => "its node will start it again".into(),
            });
            self.worker_is(now, id, state, text, out);
        } else if changed {
            self.put_worker(id, out);
        }
        self.rearm_worker(id);
        if state == WorkerState::Running && (was != state || started_anew) {
            self.agent_process_started(now, id, out);
        }
        self.agent_is_back(now, id, out);
    }

    /// What the last inventory of a node omits of what is believed.
    fn judge_omitted(&mut self, now: Timestamp, id: &NodeId, out: &mut Effects) {
        let Some(node) = self.fleet.nodes.get(id) else {
            return;
        };
        let Some(link) = node.link.as_ref().map(|link| link.id) else {
            return;
        };
        let epoch = node.row.epoch.clone();
        let absent = |worker: &&WorkerId| !node.named.contains_key(*worker);
        let absent: Vec<WorkerId> = node.workers.iter().filter(absent).cloned().collect();
        let mut ended = Vec::new();
        for worker in absent {
            let Some(held) = self.fleet.workers.get_mut(&worker) else {
                continue;
            };
            if held.sent.is_some() {
                // Its start is still on its way.
                continue;
            }
            let never_seen = held.row.confirmed_at.is_none();
            if never_seen && held.row.release.is_none() && held.tried != Some(link) {
                self.start_again(now, &worker, link, out);
                continue;
            }
            let before = match &held.omitted {
                Some((of, count)) if *of == epoch => *count,
                _ => 0,
            };
            held.omitted = Some((epoch.clone(), before + 1));
            if before + 1 >= OMITTED_ENDS {
                ended.push(worker);
            }
        }
        if ended.is_empty() {
            return;
        }
        // Never silent: what ends so was told before as a drift, or is now.
        self.raise_drift(now, id, out);
        for worker in ended {
            let released = self
                .fleet
                .workers
                .get(&worker)
                .is_some_and(|w| w.row.release.is_some());
            let exit = ExitReport {
                reason: Some("exit_not_observed".into()),
                ..ExitReport::default()
            };
            let how = if released {
                ExitHow::Released
            } else {
                ExitHow::Unobserved
            };
            let text = "two inventories in a row omit it, and nobody reported its exit";
            self.end_worker(now, &worker, how, Some(exit), text, out);
        }
    }
}
