//! What happened in the fleet, in the past tense.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::{RestartOutput, SpawnOutput, WorkerReport};
use muster_wire::fleet::{ExitReport, NodeKind, NodeState, NodeWish, RestartPolicy, WorkerIo};
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::row::{Target, WorkerRow};
use crate::event::Waiter;
use crate::row::Payload;

/// One connection of a node's control socket; numbers grow, so that the newest one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// Everything that can happen in the fleet.
#[derive(Debug, Clone)]
pub enum FleetEvent {
    /// A node was enrolled, or enrolled again: its name or labels may be new.
    Enrolled(Box<Enrolment>),
    /// A node's first frame came in: who it is. The newest valid link wins; an older one is
    /// closed and what it still says is counted and dropped.
    LinkOpened(Box<Hello>),
    /// A link is gone.
    LinkClosed {
        /// Whose.
        node: NodeId,
        /// Which.
        link: LinkId,
        /// How, for people: the close's words, a deadline, an error.
        why: Arc<str>,
    },
    /// A beat came in.
    Beat(Box<Beat>),
    /// The answer to a [`super::effect::FleetSend::Ask`] came in.
    AskAnswered {
        /// Whose.
        node: NodeId,
        /// On which link.
        link: LinkId,
    },
    /// A node told its full set of workers.
    Inventory(Box<Inventory>),
    /// One worker's state changed at its node.
    WorkerSeen {
        /// Whose.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// As it now is.
        report: Box<WorkerReport>,
        /// Who is answered.
        waiter: Option<Waiter>,
    },
    /// A process exited at its node. May come twice.
    WorkerExited {
        /// Whose.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// Which worker.
        worker: WorkerId,
        /// Which of its processes.
        restarts: u32,
        /// How.
        exit: Box<ExitReport>,
        /// When its node starts it again; `None` is never.
        next_start_at: Option<Timestamp>,
        /// Who is answered: then it leaves the node's outbox.
        waiter: Option<Waiter>,
    },
    /// A node said goodbye.
    Goodbye {
        /// Which.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// Why.
        reason: Arc<str>,
        /// Whether its workers go on.
        workers_stay: bool,
    },
    /// What became of a start.
    StartAnswered {
        /// Where.
        node: NodeId,
        /// Of which worker.
        worker: WorkerId,
        /// What the node said; an error is a refusal of the broker, or an answer nobody can read.
        outcome: Result<Box<SpawnOutput>, Arc<str>>,
    },
    /// What became of a release.
    ReleaseAnswered {
        /// Where.
        node: NodeId,
        /// Of which worker.
        worker: WorkerId,
        /// How it ended, or why it could not be stopped.
        outcome: Result<Box<ExitReport>, Arc<str>>,
    },
    /// What became of a restart.
    RestartAnswered {
        /// Where.
        node: NodeId,
        /// Of which worker.
        worker: WorkerId,
        /// What became of its new process, or why there is none.
        outcome: Result<Box<RestartOutput>, Arc<str>>,
    },
    /// Somebody wants a worker's process ended, and the worker started again.
    RestartAsked(Box<RestartAsk>),
    /// Somebody wants a worker.
    SpawnAsked(Box<SpawnAsk>),
    /// Somebody wants a worker ended, or a waiting placement cancelled.
    ReleaseAsked {
        /// Who is answered: when it has ended, or its node cannot be told now.
        waiter: Waiter,
        /// Which.
        worker: WorkerId,
        /// How long between SIGTERM and SIGKILL.
        grace: Option<Duration>,
        /// Its record is closed although its node cannot be told (the node is gone for good).
        force: bool,
        /// Who.
        by: Arc<str>,
        /// Why.
        reason: Option<Arc<str>>,
        /// The row, read because the engine did not hold it.
        known: Option<Option<Box<WorkerRow>>>,
    },
    /// An operator wants a node active, cordoned, drained or retired.
    NodeWished {
        /// Who is answered.
        waiter: Waiter,
        /// Which: name or id.
        node: Arc<str>,
        /// What.
        wish: NodeWish,
        /// Who.
        by: Arc<str>,
        /// Why.
        reason: Option<Arc<str>>,
    },
    /// An operator pins a node's state, or takes the pin out.
    NodePinned {
        /// Who is answered.
        waiter: Waiter,
        /// Which: name or id.
        node: Arc<str>,
        /// The state; `None` takes the pin out.
        state: Option<NodeState>,
        /// Who.
        by: Arc<str>,
        /// Why.
        reason: Option<Arc<str>>,
    },
    /// An operator says that a node will not come back: its workers are lost.
    NodeDeclaredLost {
        /// Who is answered.
        waiter: Waiter,
        /// Which: name or id.
        node: Arc<str>,
        /// Who.
        by: Arc<str>,
        /// Why.
        reason: Option<Arc<str>>,
    },
    /// An operator deletes a node that has no living workers.
    NodeDeleted {
        /// Who is answered.
        waiter: Waiter,
        /// Which: name or id.
        node: Arc<str>,
        /// Who.
        by: Arc<str>,
    },
    /// An operator ends the doubt about ourselves.
    DoubtEnded {
        /// Who is answered.
        waiter: Waiter,
        /// Who.
        by: Arc<str>,
    },
    /// Somebody took the keyboard of a worker's terminal, or gave it back.
    WorkerDriven {
        /// Whose terminal.
        worker: WorkerId,
        /// Who drives from now on; `None` is nobody.
        driver: Option<Arc<str>>,
        /// What happened, in a sentence.
        text: Arc<str>,
    },
    /// The process was late by so much: it counts for no peer's silence.
    WasLate {
        /// By how much.
        by: Duration,
    },
}

/// A wish for a restart.
#[derive(Debug, Clone)]
pub struct RestartAsk {
    /// Who is answered: when its new process has lived through its start window or has ended, or
    /// when its node does not answer.
    pub waiter: Waiter,
    /// Which.
    pub worker: WorkerId,
    /// How long between SIGTERM and SIGKILL; `None` is its own grace.
    pub grace: Option<Duration>,
    /// Who.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
}

/// A node as it was enrolled.
#[derive(Debug, Clone)]
pub struct Enrolment {
    /// Who is answered.
    pub waiter: Waiter,
    /// Its id: minted, or the broker's own.
    pub id: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub kind: NodeKind,
    /// Its labels.
    pub labels: Vec<Arc<str>>,
    /// How many workers it takes; 0 is without bound.
    pub max_workers: u32,
    /// Who enrols it.
    pub principal: Arc<str>,
}

/// A node's first frame.
#[derive(Debug, Clone)]
pub struct Hello {
    /// Who is answered.
    pub waiter: Waiter,
    /// The node that the token belongs to.
    pub node: NodeId,
    /// The connection.
    pub link: LinkId,
    /// The name it calls itself.
    pub name: Arc<str>,
    /// What it is.
    pub kind: NodeKind,
    /// Its labels.
    pub labels: Vec<Arc<str>>,
    /// How many workers it takes; 0 is without bound.
    pub max_workers: u32,
    /// Names of what it can do.
    pub capabilities: Vec<Arc<str>>,
    /// Its version.
    pub version: Arc<str>,
    /// The host's name.
    pub host: Option<Arc<str>>,
    /// Its epoch; `None` for the broker.
    pub epoch: Option<Arc<str>>,
    /// How often it beats.
    pub beat_interval: Duration,
    /// Its inventories prove an application behind the socket; 11.x frames prove nothing.
    pub proves: bool,
}

/// A beat.
#[derive(Debug, Clone)]
pub struct Beat {
    /// Whose.
    pub node: NodeId,
    /// On which link.
    pub link: LinkId,
    /// How many workers it claims.
    pub count: u32,
    /// Their names, where it tells them (the broker).
    pub names: Option<Vec<Arc<str>>>,
    /// `muster_wire::fleet::frame::roster_digest` of their ids (our daemon).
    pub digest: Option<Arc<str>>,
    /// 0..1; `None` when it cannot tell.
    pub load: Option<f64>,
    /// How many workers it takes now, where a beat tells it.
    pub max_workers: Option<u32>,
    /// When it was received.
    pub at: Timestamp,
}

/// A node's full set of workers.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Whose.
    pub node: NodeId,
    /// On which link.
    pub link: LinkId,
    /// All of them.
    pub workers: Vec<WorkerReport>,
    /// Who is answered, item by item: it is never refused as a whole.
    pub waiter: Option<Waiter>,
}

/// A wish for a worker, checked for its form and authenticated.
#[derive(Debug, Clone)]
pub struct SpawnAsk {
    /// Who is answered.
    pub waiter: Waiter,
    /// The id it gets when it is taken.
    pub worker: WorkerId,
    /// Its name: given, or made from the command.
    pub name: Arc<str>,
    /// Where.
    pub target: Target,
    /// JSON of the `WorkerSpec`, sealed.
    pub spec: Payload,
    /// The command as people read it.
    pub command: Arc<str>,
    /// Terminal or pipes.
    pub io: WorkerIo,
    /// When it is started again.
    pub restart: RestartPolicy,
    /// Its labels.
    pub labels: Vec<Arc<str>>,
    /// Who asks.
    pub principal: Arc<str>,
    /// `Idempotency-Key`, scoped.
    pub idempotency_key: Option<Arc<str>>,
    /// BLAKE3 over what was asked, first 16 bytes.
    pub body_hash: [u8; 16],
    /// Wait for a place at most so long, when there is none now; `None` is not at all.
    pub queue_for: Option<Duration>,
}

impl FleetEvent {
    /// Who waits for its reply.
    pub fn waiter(&self) -> Option<Waiter> {
        match self {
            FleetEvent::Enrolled(enrolment) => Some(enrolment.waiter),
            FleetEvent::LinkOpened(hello) => Some(hello.waiter),
            FleetEvent::Inventory(inventory) => inventory.waiter,
            FleetEvent::WorkerSeen { waiter, .. } | FleetEvent::WorkerExited { waiter, .. } => {
                *waiter
            }
            FleetEvent::SpawnAsked(ask) => Some(ask.waiter),
            FleetEvent::RestartAsked(ask) => Some(ask.waiter),
            FleetEvent::ReleaseAsked { waiter, .. }
            | FleetEvent::NodeWished { waiter, .. }
            | FleetEvent::NodePinned { waiter, .. }
            | FleetEvent::NodeDeclaredLost { waiter, .. }
            | FleetEvent::NodeDeleted { waiter, .. }
            | FleetEvent::DoubtEnded { waiter, .. } => Some(*waiter),
            FleetEvent::LinkClosed { .. }
            | FleetEvent::Beat(_)
            | FleetEvent::AskAnswered { .. }
            | FleetEvent::Goodbye { .. }
            | FleetEvent::StartAnswered { .. }
            | FleetEvent::ReleaseAnswered { .. }
            | FleetEvent::RestartAnswered { .. }
            | FleetEvent::WorkerDriven { .. }
            | FleetEvent::WasLate { .. } => None,
        }
    }

    /// Whether a person or a program asked for it, and may be told to come back.
    pub fn is_wish(&self) -> bool {
        matches!(
            self,
            FleetEvent::SpawnAsked(_)
                | FleetEvent::ReleaseAsked { .. }
                | FleetEvent::RestartAsked(_)
                | FleetEvent::NodeWished { .. }
                | FleetEvent::NodePinned { .. }
                | FleetEvent::NodeDeclaredLost { .. }
                | FleetEvent::NodeDeleted { .. }
                | FleetEvent::DoubtEnded { .. }
        )
    }

    /// What it is about, in a few words.
    pub fn about(&self) -> String {
        match self {
            FleetEvent::Enrolled(enrolment) => format!("enrolment of node {}", enrolment.name),
            FleetEvent::LinkOpened(hello) => format!("link of node {}", hello.node),
            FleetEvent::LinkClosed { node, .. } => format!("closed link of node {node}"),
            FleetEvent::Beat(beat) => format!("beat of node {}", beat.node),
            FleetEvent::AskAnswered { node, .. } => format!("answer of node {node}"),
            FleetEvent::Inventory(inventory) => format!("inventory of node {}", inventory.node),
            FleetEvent::WorkerSeen { node, report, .. } => {
                format!("worker {} of node {node}", report.worker_id)
            }
            FleetEvent::WorkerExited { node, worker, .. } => {
                format!("exit of worker {worker} of node {node}")
            }
            FleetEvent::Goodbye { node, .. } => format!("goodbye of node {node}"),
            FleetEvent::StartAnswered { worker, .. } => format!("start of worker {worker}"),
            FleetEvent::ReleaseAnswered { worker, .. } => format!("release of worker {worker}"),
            FleetEvent::RestartAnswered { worker, .. } => format!("restart of worker {worker}"),
            FleetEvent::RestartAsked(ask) => format!("wish to restart worker {}", ask.worker),
            FleetEvent::SpawnAsked(ask) => format!("placement of worker {}", ask.worker),
            FleetEvent::ReleaseAsked { worker, .. } => format!("wish to end worker {worker}"),
            FleetEvent::NodeWished { node, .. } => format!("wish about node {node}"),
            FleetEvent::NodePinned { node, .. } => format!("pin of node {node}"),
            FleetEvent::NodeDeclaredLost { node, .. } => format!("loss of node {node}"),
            FleetEvent::NodeDeleted { node, .. } => format!("removal of node {node}"),
            FleetEvent::DoubtEnded { .. } => "end of the doubt about ourselves".into(),
            FleetEvent::WorkerDriven { worker, .. } => format!("driver of worker {worker}"),
            FleetEvent::WasLate { .. } => "our own lateness".into(),
        }
    }
}
