//! Starts: a wish for a worker is placed, queued or refused; what its node answers; what becomes
//! of a start that nobody answers. One round trip.

mod answered;

use muster_wire::fleet::{ExitHow, NodeKind, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::effect::FleetRefusal;
use super::event::{LinkId, SpawnAsk};
use super::row::WorkerRow;
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
}
