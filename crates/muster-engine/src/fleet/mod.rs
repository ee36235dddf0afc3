//! The fleet: nodes, their links, their workers, placements. Facts with times; a state is
//! computed from them when asked. Knows no socket, no key and no clock.

mod adoptions;
mod agents;
mod check;
mod doubt;
mod drift;
pub mod effect;
pub mod event;
mod exits;
mod inventory;
pub mod limits;
mod links;
mod node;
mod pages;
mod placement;
mod plan;
mod queue;
mod recovery;
mod releases;
mod restarts;
pub mod row;
mod settle;
mod starts;
mod summary;
mod views;
mod wishes;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_wire::{NodeId, Timestamp, WorkerId};
use rustc_hash::FxHashMap;

pub use effect::{FleetNotice, FleetQuestion, FleetReply, FleetSend};
pub use event::FleetEvent;
pub use limits::FleetLimits;
pub use row::{FleetSnapshot, FleetWrite, NodeRow, WorkerRow};

use crate::effect::{Effects, Notice, Reply, Send, Write};
use crate::engine::Engine;
use crate::event::Waiter;
use crate::row::{EventKind, EventRow};
use doubt::Doubt;
use node::Node;
use row::FleetHistoryRow;
use worker::Worker;

/// What the engine holds of the fleet.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) nodes: FxHashMap<NodeId, Node>,
    /// Names of nodes that are not retired.
    pub(crate) names: FxHashMap<Arc<str>, NodeId>,
    /// Living ones, and those that ended in the last day.
    pub(crate) workers: FxHashMap<WorkerId, Box<Worker>>,
    /// Idempotency keys of the workers it holds.
    pub(crate) keys: FxHashMap<Arc<str>, WorkerId>,
    /// Placements that wait, in the order in which they were asked for.
    pub(crate) queue: BTreeSet<(Timestamp, WorkerId)>,
    /// While it is there nothing acts on silence.
    pub(crate) doubt: Option<Doubt>,
    /// Since when too few places can be reached.
    pub(crate) capacity_alarm: Option<Timestamp>,
}

impl Fleet {
    /// Whether anything may act on silence.
    pub(crate) fn acts(&self, now: Timestamp) -> bool {
        self.doubt.as_ref().is_none_or(|doubt| now >= doubt.until)
    }

    /// Workers that have not ended, those that wait for a place too.
    pub(crate) fn living(&self) -> usize {
        let placed: usize = self.nodes.values().map(|node| node.workers.len()).sum();
        placed + self.queue.len()
    }

    /// A node by its name or its id. A name is of one that is not retired.
    pub(crate) fn find(&self, node: &str) -> Option<&Node> {
        let id = self.names.get(node).map_or(node, NodeId::as_str);
        self.nodes.get(id)
    }
}

/// A line about the fleet: for the event sequence, the history and the log alike.
pub(crate) struct Line {
    pub(crate) kind: EventKind,
    /// The word of the history.
    pub(crate) history: &'static str,
    pub(crate) node: Option<NodeId>,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) from: Option<&'static str>,
    pub(crate) to: Option<&'static str>,
    pub(crate) warn: bool,
    pub(crate) text: Arc<str>,
}

impl Engine {
    /// Applies one event of the fleet.
    pub(crate) fn fleet_step(&mut self, now: Timestamp, event: FleetEvent, out: &mut Effects) {
        match event {
            FleetEvent::Enrolled(enrolment) => self.node_enrolled(now, *enrolment, out),
            FleetEvent::LinkOpened(hello) => self.link_opened(now, *hello, out),
            FleetEvent::LinkClosed { node, link, why } => {
                self.link_closed(now, &node, link, why, out);
            }
            FleetEvent::Beat(beat) => self.node_beat(now, &beat, out),
            FleetEvent::AskAnswered { node, link } => self.ask_answered(now, &node, link, out),
            FleetEvent::Inventory(inventory) => self.inventory_told(now, *inventory, out),
            FleetEvent::WorkerSeen {
                node,
                link,
                report,
                waiter,
            } => self.worker_seen(now, &node, link, &report, waiter, out),
            FleetEvent::WorkerExited {
                node,
                link,
                worker,
                restarts,
                exit,
                next_start_at,
                waiter,
            } => {
                let exited = exits::Exited {
                    worker,
                    restarts,
                    exit: *exit,
                    next_start_at,
                };
                self.exit_told(now, &node, link, exited, waiter, out);
            }
            FleetEvent::Goodbye {
                node,
                link,
                reason,
                workers_stay,
            } => self.node_goodbye(now, &node, link, &reason, workers_stay, out),
            FleetEvent::StartAnswered {
                node,
                worker,
                outcome,
            } => self.start_answered(now, &node, &worker, outcome.map(|o| *o), out),
            FleetEvent::ReleaseAnswered {
                node,
                worker,
                outcome,
            } => self.release_answered(now, &node, &worker, outcome.map(|o| *o), out),
            FleetEvent::SpawnAsked(ask) => self.spawn_asked(now, *ask, out),
            FleetEvent::RestartAnswered {
                node,
                worker,
                outcome,
            } => self.restart_answered(now, &node, &worker, outcome.map(|o| *o), out),
            FleetEvent::RestartAsked(ask) => self.restart_asked(now, *ask, out),
            FleetEvent::ReleaseAsked { .. } => self.release_asked(now, event, out),
            FleetEvent::NodeWished {
                waiter,
                node,
                wish,
                by,
                reason,
            } => self.node_wished(now, waiter, &node, wish, (by, reason), out),
            FleetEvent::NodePinned {
                waiter,
                node,
                state,
                by,
                reason,
            } => self.node_pinned(now, waiter, &node, state, (by, reason), out),
            FleetEvent::NodeDeclaredLost {
                waiter,
                node,
                by,
                reason,
            } => self.node_declared_lost(now, waiter, &node, (by, reason), out),
            FleetEvent::NodeDeleted { waiter, node, by } => {
                self.node_deleted(now, waiter, &node, &by, out);
            }
            FleetEvent::DoubtEnded { waiter, by } => self.doubt_ended(now, waiter, &by, out),
            FleetEvent::WorkerDriven {
                worker,
                driver,
                text,
            } => self.worker_driven(now, &worker, driver.is_some(), text, out),
            FleetEvent::WasLate { by } => self.was_late(now, by, out),
        }
    }

    /// Who drives a terminal is told and kept; it changes nothing else.
    fn worker_driven(
        &mut self,
        now: Timestamp,
        worker: &WorkerId,
        driven: bool,
        text: Arc<str>,
        out: &mut Effects,
    ) {
        let Some(held) = self.fleet.workers.get(worker) else {
            return;
        };
        let line = Line {
            kind: EventKind::WorkerDriven,
            history: "driver",
            node: held.row.node.clone(),
            worker: Some(worker.clone()),
            from: None,
            to: Some(if driven { "driven" } else { "watched" }),
            warn: false,
            text,
        };
        self.fleet_line(now, line, out);
    }

    /// Tells a line of the fleet: event, history, log.
    pub(crate) fn fleet_line(&mut self, now: Timestamp, line: Line, out: &mut Effects) {
        let mut event = EventRow::line(line.kind, now);
        event.node.clone_from(&line.node);
        event.worker.clone_from(&line.worker);
        event.reason = line.to.map(Into::into);
        event.text = Some(line.text.clone());
        let seq = self.tell(event, out);
        out.writes
            .push(Write::Fleet(FleetWrite::InsertHistory(Box::new(
                FleetHistoryRow {
                    seq,
                    at: now,
                    node: line.node.clone(),
                    worker: line.worker.clone(),
                    kind: line.history.into(),
                    from: line.from.map(Into::into),
                    to: line.to.map(Into::into),
                    evidence: line.text.clone(),
                },
            ))));
        notice(
            FleetNotice::Log {
                warn: line.warn,
                node: line.node,
                worker: line.worker,
                text: line.text,
            },
            out,
        );
    }

    /// Writes a node as it now is.
    pub(crate) fn put_node(&self, id: &NodeId, out: &mut Effects) {
        if let Some(node) = self.fleet.nodes.get(id) {
            let row = Box::new(node.row.clone());
            out.writes.push(Write::Fleet(FleetWrite::PutNode(row)));
        }
    }

    /// Writes a worker as it now is.
    pub(crate) fn put_worker(&self, id: &WorkerId, out: &mut Effects) {
        if let Some(worker) = self.fleet.workers.get(id) {
            let row = Box::new(worker.row.clone());
            out.writes.push(Write::Fleet(FleetWrite::PutWorker(row)));
        }
    }
}

pub(crate) fn reply(waiter: Waiter, with: FleetReply, out: &mut Effects) {
    out.replies.push((waiter, Reply::Fleet(Box::new(with))));
}

pub(crate) fn send(what: FleetSend, out: &mut Effects) {
    out.sends.push(Send::Fleet(Box::new(what)));
}

pub(crate) fn notice(what: FleetNotice, out: &mut Effects) {
    out.notices.push(Notice::Fleet(Box::new(what)));
}
