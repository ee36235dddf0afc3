//! Starts: a wish for a worker is placed, queued or refused; what its node answers; what becomes
//! of a start that nobody answers. One round trip.

use std::sync::Arc;

use muster_wire::fleet::frame::SpawnOutput;
use muster_wire::fleet::{ExitHow, ExitReport, NodeKind, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::effect::FleetRefusal;
use super::event::{LinkId, SpawnAsk};
use super::row::{Wished, WorkerRow};
use super::worker::Worker;
use super::{FleetReply, FleetSend, queue, reply, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;

/// Who ends a worker whose start was never confirmed.
const PLANE: &str = "plane";

fn refuse(waiter: Waiter, refusal: FleetRefusal, out: &mut Effects) {
    reply(waiter, FleetReply::Refused(refusal), out);
}

fn simple(category: Category, message: String, retry_after: Option<u32>) -> FleetRefusal {
    FleetRefusal {
        category,
        message,
        hint: None,
        retry_after,
        passed_over: Vec::new(),
    }
}

/// What an error in answer to a start says of it.
enum Sense {
    /// It is not started, and another node may.
    Busy,
    /// It is not started.
    Refused,
    /// Nothing: it may run.
    Nothing,
}

/// A broker's error is a refusal. Our daemon says by its first word what it did not even try;
/// anything else is an answer that nobody can read.
fn sense_of(kind: NodeKind, message: &str) -> Sense {
    match (kind, message.split(':').next()) {
        (NodeKind::Daemon, Some("busy")) => Sense::Busy,
        (NodeKind::Relay, _) | (_, Some("invalid_input")) => Sense::Refused,
        (NodeKind::Daemon, _) => Sense::Nothing,
    }
}

impl Engine {
    pub(crate) fn spawn_asked(&mut self, now: Timestamp, ask: SpawnAsk, out: &mut Effects) {
        let waiter = ask.waiter;
        if let Some(key) = &ask.idempotency_key
            && let Some(known) = self.fleet.keys.get(key).cloned()
        {
            return self.spawn_repeated(now, &known, &ask, out);
        }
        if let Some(refusal) = self.refuses_spawns(&ask) {
            return refuse(waiter, refusal, out);
        }
        let row = WorkerRow {
            id: ask.worker.clone(),
            name: ask.name,
            node: None,
            target: ask.target,
            spec: ask.spec,
            command: ask.command,
            io: Some(ask.io),
            restart: ask.restart,
            labels: ask.labels,
            principal: ask.principal,
            idempotency_key: ask.idempotency_key,
            body_hash: ask.body_hash,
            created_at: now,
            state: WorkerState::Queued,
            state_at: now,
            place_by: ask.queue_for.map(|wait| now + wait),
            waits_for: None,
            pid: None,
            started_at: None,
            restarts: 0,
            next_start_at: None,
            confirmed_at: None,
            release: None,
            adopted: false,
            agent: None,
            exit: None,
            ended: None,
        };
        match self.choose_node(now, &row, None) {
            Ok((node, link)) => {
                let id = self.take_in(now, row);
                if let Some(worker) = self.fleet.workers.get_mut(&id) {
                    worker.starters.push((waiter, false));
                }
                self.start_at(now, &id, &node, link, out);
            }
            Err(refusal) if ask.queue_for.is_some() && queue::may_pass(&refusal.category) => {
                let capacity = self.limits.fleet.queue_capacity as usize;
                if self.fleet.queue.len() >= capacity {
                    let text = format!("{capacity} placements wait already; {}", refusal.message);
                    return refuse(waiter, simple(Category::FleetCapacity, text, Some(30)), out);
                }
                let mut row = row;
                let why = queue::cause(&refusal);
                row.waits_for = Some(why.clone());
                let id = self.take_in(now, row);
                self.fleet.queue.insert((now, id.clone()));
                let text = format!("it waits for a place: {why}");
                self.worker_is(now, &id, WorkerState::Queued, text, out);
                self.tell_queued(now, &id, waiter, false, out);
            }
            Err(refusal) => refuse(waiter, refusal, out),
        }
    }

    /// What stands in the way of a new worker.
    fn refuses_spawns(&self, ask: &SpawnAsk) -> Option<FleetRefusal> {
        if self.fleet.workers.contains_key(&ask.worker) {
            let text = format!("there is a worker {} already", ask.worker);
            return Some(simple(Category::Conflict, text, None));
        }
        self.refuses_any_spawn()
    }

    /// What stands in the way of any new worker.
    pub(crate) fn refuses_any_spawn(&self) -> Option<FleetRefusal> {
        if self.draining {
            let text = "the control plane is shutting down".to_owned();
            return Some(simple(Category::ControlPlaneShutdown, text, Some(1)));
        }
        if self.store_full {
            let text = "the store's disk is full".to_owned();
            return Some(simple(Category::StoreFull, text, Some(30)));
        }
        let living = self.fleet.living();
        if living >= self.limits.fleet.workers_max as usize {
            let text = format!("there are {living} workers, the most there may be");
            return Some(simple(Category::FleetCapacity, text, Some(30)));
        }
        None
    }

    /// The same key again: the same answer, or a conflict.
    fn spawn_repeated(
        &mut self,
        now: Timestamp,
        known: &WorkerId,
        ask: &SpawnAsk,
        out: &mut Effects,
    ) {
        let Some(worker) = self.fleet.workers.get_mut(known) else {
            return;
        };
        if worker.row.body_hash != ask.body_hash {
            let text =
                format!("this idempotency key placed worker {known}, and asked for something else");
            return refuse(
                ask.waiter,
                simple(Category::IdempotencyConflict, text, None),
                out,
            );
        }
        let failed = worker
            .row
            .ended
            .is_some_and(|(_, how)| how == ExitHow::StartFailed);
        match worker.row.state {
            WorkerState::Queued => self.tell_queued(now, known, ask.waiter, true, out),
            WorkerState::Starting if worker.sent.is_some() => {
                worker.starters.push((ask.waiter, true));
            }
            WorkerState::Starting
            | WorkerState::Running
            | WorkerState::Restarting
            | WorkerState::Exited
            | WorkerState::Lost
            | WorkerState::Unknown => {
                let unconfirmed = worker.row.state == WorkerState::Starting;
                if let Some(view) = self.worker_view(now, known) {
                    let worker = Box::new(view);
                    let with = if failed {
                        FleetReply::StartFailed(worker)
                    } else if unconfirmed {
                        FleetReply::StartUnconfirmed(worker)
                    } else {
                        FleetReply::Placed {
                            worker,
                            repeated: true,
                        }
                    };
                    reply(ask.waiter, with, out);
                }
            }
        }
    }

    /// A new worker is held from now on, with its key.
    fn take_in(&mut self, now: Timestamp, row: WorkerRow) -> WorkerId {
        let id = row.id.clone();
        if let Some(key) = &row.idempotency_key {
            self.fleet.keys.insert(key.clone(), id.clone());
        }
        let worker = Box::new(Worker::new(row, now));
        self.fleet.workers.insert(id.clone(), worker);
        id
    }

    /// Sends a worker to a node. It counts against the node's places from now on.
    pub(crate) fn start_at(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        node: &NodeId,
        link: LinkId,
        out: &mut Effects,
    ) {
        let name = self
            .fleet
            .nodes
            .get(node)
            .map(|node| node.row.name.clone())
            .unwrap_or_default();
        self.bind(id, node);
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        worker.row.node = Some(node.clone());
        worker.row.waits_for = None;
        worker.sent = Some((link, now));
        worker.tried = Some(link);
        worker.omitted = None;
        let text = format!("sent to {name}");
        self.worker_is(now, id, WorkerState::Starting, text, out);
        self.send_start(id, out);
    }

    fn send_start(&self, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.fleet.workers.get(id) else {
            return;
        };
        if let (Some((link, _)), Some(node)) = (worker.sent, &worker.row.node) {
            let start = FleetSend::Start {
                node: node.clone(),
                link,
                worker: Box::new(worker.row.clone()),
            };
            send(start, out);
        }
    }

    /// A node that was told of a start does not have it: it is sent again over its present link.
    /// The node deduplicates by id, so nothing runs twice.
    pub(crate) fn start_again(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        link: LinkId,
        out: &mut Effects,
    ) {
        if let Some(worker) = self.fleet.workers.get_mut(id) {
            worker.sent = Some((link, now));
            worker.tried = Some(link);
            worker.omitted = None;
        }
        self.send_start(id, out);
        self.rearm_worker(id);
    }

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
                    super::exits::how(&exit)
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
