//! What a node answered to a start, and what follows.

use std::sync::Arc;

use muster_wire::fleet::frame::SpawnOutput;
use muster_wire::fleet::{ExitHow, ExitReport, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::super::row::Wished;
use super::super::{FleetReply, queue, reply};
use super::{PLANE, Sense, refuse, sense_of, simple};
use crate::effect::Effects;
use crate::engine::Engine;

impl Engine {
    pub(crate) fn start_answered(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        id: &WorkerId,
        outcome: Result<SpawnOutput, Arc<str>>,
        out: &mut Effects,
    ) {
        // Without a link it is late, and whoever waited was told so; inventories say the rest.
        let Some(held) = self.fleet.nodes.get_mut(node) else {
            return;
        };
        let kind = held.row.kind;
        match &mut held.link {
            Some(link) => link.answered_at = Some(now),
            None => return,
        }
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        // A node's answers can touch only its own workers.
        if worker.row.node.as_ref() != Some(node) {
            return;
        }
        let waited = worker.sent.take().is_some();
        match outcome {
            Ok(SpawnOutput::Started { pid, started_at }) => {
                self.process_runs(now, id, pid, started_at, out);
                self.tell_placed(now, id, out);
            }
            Ok(SpawnOutput::Exited { exit }) => {
                let text = format!(
                    "it exited within its start window: {}",
                    super::super::exits::how(&exit)
                );
                self.end_worker(now, id, ExitHow::StartFailed, Some(exit), text, out);
            }
            Ok(SpawnOutput::Refused {
                message,
                full: true,
            }) if waited => {
                self.start_found_no_room(now, id, node, &message, out);
            }
            Ok(SpawnOutput::Refused { message, .. }) => {
                self.start_refused(now, id, &message, out);
            }
            Err(message) => match sense_of(kind, &message) {
                Sense::Busy if waited => self.start_found_no_room(now, id, node, &message, out),
                Sense::Refused => self.start_refused(now, id, &message, out),
                Sense::Busy | Sense::Nothing => {
                    // It may run: the next inventories tell.
                    worker.answer = Some(message);
                    self.start_unconfirmed(now, id, out);
                }
            },
        }
    }

    fn start_refused(&mut self, now: Timestamp, id: &WorkerId, message: &str, out: &mut Effects) {
        let starting = self
            .fleet
            .workers
            .get(id)
            .is_some_and(|worker| worker.row.state == WorkerState::Starting);
        // One that was seen running meanwhile is not ended by words.
        if !starting {
            return self.start_unconfirmed(now, id, out);
        }
        let exit = ExitReport {
            reason: Some(message.to_owned()),
            ..ExitReport::default()
        };
        let text = format!("it could not be started: {message}");
        self.end_worker(now, id, ExitHow::StartFailed, Some(exit), text, out);
    }

    /// The node knew better than we did: it has no room. Another one is tried.
    fn start_found_no_room(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        node: &NodeId,
        message: &str,
        out: &mut Effects,
    ) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.row.state != WorkerState::Starting {
            return self.start_unconfirmed(now, id, out);
        }
        worker.row.node = None;
        let row = worker.row.clone();
        if let Some(node) = self.fleet.nodes.get_mut(node) {
            node.has_not(id);
            node.full = Some((now, message.into()));
        }
        match self.choose_node(now, &row, Some(node)) {
            Ok((other, link)) => self.start_at(now, id, &other, link, out),
            Err(refusal) if row.place_by.is_some_and(|by| by > now) => {
                let why = queue::cause(&refusal);
                self.fleet.queue.insert((row.created_at, id.clone()));
                let Some(worker) = self.fleet.workers.get_mut(id) else {
                    return;
                };
                worker.row.waits_for = Some(why.clone());
                let starters = std::mem::take(&mut worker.starters);
                let text = format!("its node had no room, it waits for a place: {why}");
                self.worker_is(now, id, WorkerState::Queued, text, out);
                for (waiter, repeated) in starters {
                    self.tell_queued(now, id, waiter, repeated, out);
                }
            }
            Err(refusal) => {
                let starters = match self.fleet.workers.get_mut(id) {
                    Some(worker) => std::mem::take(&mut worker.starters),
                    None => Vec::new(),
                };
                self.forget_key(id);
                let exit = ExitReport {
                    reason: Some(message.to_owned()),
                    ..ExitReport::default()
                };
                let text = format!("its node has no room: {message}");
                self.end_worker(now, id, ExitHow::StartFailed, Some(exit), text, out);
                for (waiter, _) in starters {
                    refuse(waiter, refusal.clone(), out);
                }
            }
        }
    }

    /// A refused wish is not remembered: the same key may place it anew.
    fn forget_key(&mut self, id: &WorkerId) {
        if let Some(worker) = self.fleet.workers.get_mut(id)
            && let Some(key) = worker.row.idempotency_key.take()
        {
            self.fleet.keys.remove(&key);
        }
    }

    /// Its node says that a process of it runs.
    pub(crate) fn process_runs(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        pid: Option<u32>,
        started_at: Option<Timestamp>,
        out: &mut Effects,
    ) {
        let report = muster_wire::fleet::frame::WorkerReport {
            worker_id: id.as_str().to_owned(),
            name: String::new(),
            state: WorkerState::Running,
            pid,
            started_at,
            restarts: self.fleet.workers.get(id).map_or(0, |w| w.row.restarts),
            next_start_at: None,
        };
        self.confirm_worker(now, id, &report, out);
    }

    /// Answers whoever waits for a start that has come about.
    pub(crate) fn tell_placed(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.row.state != WorkerState::Running {
            return;
        }
        let starters = std::mem::take(&mut worker.starters);
        self.rearm_worker(id);
        for (waiter, repeated) in starters {
            if let Some(view) = self.worker_view(now, id) {
                let worker = Box::new(view);
                reply(waiter, FleetReply::Placed { worker, repeated }, out);
            }
        }
    }

    /// No answer came in time: it may run. Nothing is done about it; the next inventories say
    /// what became of it.
    pub(crate) fn start_unconfirmed(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        self.tell_placed(now, id, out);
        let starters = match self.fleet.workers.get_mut(id) {
            Some(worker) => std::mem::take(&mut worker.starters),
            None => return,
        };
        for (waiter, _) in starters {
            if let Some(view) = self.worker_view(now, id) {
                reply(waiter, FleetReply::StartUnconfirmed(Box::new(view)), out);
            }
        }
    }

    /// The link over which starts were sent is gone: whoever waits is told so, and what turns up
    /// later of a start that was refused is released. What nobody waits for is sent again when
    /// the node is back and does not have it.
    pub(crate) fn starts_broke(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        why: &str,
        out: &mut Effects,
    ) {
        let limits = self.limits.fleet;
        for id in self.starts_at(node) {
            let Some(worker) = self.fleet.workers.get_mut(&id) else {
                continue;
            };
            worker.sent = None;
            let starters = std::mem::take(&mut worker.starters);
            if starters.is_empty() {
                continue;
            }
            if worker.row.state != WorkerState::Starting {
                // It was seen meanwhile.
                worker.starters = starters;
                self.start_unconfirmed(now, &id, out);
                continue;
            }
            worker.row.release.get_or_insert_with(|| Wished {
                by: PLANE.into(),
                at: now,
                reason: Some("its start was never confirmed, and refused to whoever asked".into()),
            });
            self.forget_key(&id);
            self.put_worker(&id, out);
            let Some(held) = self.fleet.nodes.get(node) else {
                continue;
            };
            let message = format!(
                "the link of {} broke while it was starting worker {id} ({why}); {}; should it have started, it is released",
                held.row.name,
                held.evidence(now, &limits)
            );
            for (waiter, _) in starters {
                let refusal = simple(Category::NodeUnreachable, message.clone(), Some(5));
                refuse(waiter, refusal, out);
            }
        }
    }
}
