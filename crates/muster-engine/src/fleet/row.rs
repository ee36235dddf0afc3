//! What the fleet keeps: nodes and workers as facts with their times, and their history. States
//! of nodes are computed from these when asked, never stored as the truth.

use std::sync::Arc;

use muster_wire::fleet::{
    ExitHow, ExitReport, NodeKind, NodeState, NodeWish, RestartPolicy, WorkerIo, WorkerState,
};
use muster_wire::{AgentId, NodeId, Timestamp, WorkerId};

use crate::row::Payload;

/// A machine that runs workers.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRow {
    /// Its id.
    pub id: NodeId,
    /// Its name, unique among nodes that are not retired.
    pub name: Arc<str>,
    /// What speaks to us.
    pub kind: NodeKind,
    /// Labels that placements ask for: `gpu`, `zone=eu`.
    pub labels: Vec<Arc<str>>,
    /// How many workers it takes; 0 is without bound.
    pub max_workers: u32,
    /// Names of what it can do.
    pub capabilities: Vec<Arc<str>>,
    /// Its version.
    pub version: Arc<str>,
    /// The host's name, where it told one.
    pub host: Option<Arc<str>>,
    /// Inventories of different epochs are not compared.
    pub epoch: Option<Arc<str>>,
    /// Who enrolled it.
    pub principal: Arc<str>,
    /// What an operator wants of it.
    pub wish: NodeWish,
    /// Who wants it, since when, and why.
    pub wished: Option<Wished>,
    /// An operator's word that goes before the computed state.
    pub pin: Option<Pin>,
    /// When it was enrolled.
    pub enrolled_at: Timestamp,
    /// When its last link opened.
    pub connected_at: Option<Timestamp>,
    /// When its last link closed, and how.
    pub disconnected: Option<(Timestamp, Arc<str>)>,
    /// The last frame, as of the last transition that was written; memory knows better.
    pub heard_at: Option<Timestamp>,
    /// The last beat, and how many workers it claimed.
    pub beat: Option<(Timestamp, u32)>,
    /// The last inventory, and how many workers it named.
    pub inventory: Option<(Timestamp, u32)>,
    /// When it said goodbye, and why.
    pub goodbye: Option<(Timestamp, Arc<str>)>,
    /// When it was declared lost, and by whom or what.
    pub lost: Option<(Timestamp, Arc<str>)>,
    /// The state that was last told, and since when: transitions are told once.
    pub told: (NodeState, Timestamp),
}

/// An operator's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wished {
    /// Who.
    pub by: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<Arc<str>>,
}

/// An operator's word about a node's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The state it counts as.
    pub state: NodeState,
    /// Whose word.
    pub wished: Wished,
}

/// One supervised process, over all its restarts. Also a placement that waits: it is `queued`.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    /// Its id.
    pub id: WorkerId,
    /// Its name; at a Relay broker the name of the agent.
    pub name: Arc<str>,
    /// Where it is; `None` while it waits for a place.
    pub node: Option<NodeId>,
    /// Where it may be.
    pub target: Target,
    /// What it is to be: JSON of a `WorkerSpec`, sealed by the shell. Empty for adopted ones.
    pub spec: Payload,
    /// The command as people read it: program and arguments, no variables.
    pub command: Arc<str>,
    /// Terminal or pipes; `None` when its node does not say.
    pub io: Option<WorkerIo>,
    /// When it is started again.
    pub restart: RestartPolicy,
    /// Labels of its own, which spread workers over nodes.
    pub labels: Vec<Arc<str>>,
    /// Who placed it.
    pub principal: Arc<str>,
    /// `Idempotency-Key`, scoped: the principal, a NUL, the key.
    pub idempotency_key: Option<Arc<str>>,
    /// BLAKE3 over what was asked, first 16 bytes.
    pub body_hash: [u8; 16],
    /// When it was asked for.
    pub created_at: Timestamp,
    /// `queued`, `starting`, `running`, `restarting`, `exited` or `lost`; never `unknown`.
    pub state: WorkerState,
    /// Since when.
    pub state_at: Timestamp,
    /// Until when it may wait for a place.
    pub place_by: Option<Timestamp>,
    /// Why it waits for a place, the last time somebody looked.
    pub waits_for: Option<Arc<str>>,
    /// Its process; `None` when there is none or its node does not say.
    pub pid: Option<u32>,
    /// When that process was started, by its node's clock.
    pub started_at: Option<Timestamp>,
    /// How often it was started again.
    pub restarts: u32,
    /// When its node starts it again.
    pub next_start_at: Option<Timestamp>,
    /// The last time that its node confirmed it; memory knows better.
    pub confirmed_at: Option<Timestamp>,
    /// Somebody wants it ended; who, when and why.
    pub release: Option<Wished>,
    /// Its node runs it and nobody here had placed it.
    pub adopted: bool,
    /// The agent that registered with its key.
    pub agent: Option<AgentId>,
    /// Its last exit.
    pub exit: Option<ExitReport>,
    /// How its end became known; `None` while it has not ended for good.
    pub ended: Option<(Timestamp, ExitHow)>,
}

/// Where a worker may be placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Target {
    /// On this node: its name or its id. `None` is any.
    pub node: Option<Arc<str>>,
    /// On nodes that have all of these.
    pub labels: Vec<Arc<str>>,
}

/// One line of the history of a node or of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHistoryRow {
    /// The number of the event that told it; a line has the same one.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// The node.
    pub node: Option<NodeId>,
    /// The worker.
    pub worker: Option<WorkerId>,
    /// `node.state`, `worker.state`, `drift`, `alarm`, `wish`, `link`: what kind of line.
    pub kind: Arc<str>,
    /// The word before.
    pub from: Option<Arc<str>>,
    /// The word after.
    pub to: Option<Arc<str>>,
    /// Why, with the evidence and what happens next, in a sentence.
    pub evidence: Arc<str>,
}

/// One row change of the fleet.
#[derive(Debug, Clone)]
pub enum FleetWrite {
    /// A new or changed node.
    PutNode(Box<NodeRow>),
    /// A node and its history go.
    DeleteNode(NodeId),
    /// A new or changed worker.
    PutWorker(Box<WorkerRow>),
    /// A line of history.
    InsertHistory(Box<FleetHistoryRow>),
}

/// What a start reads.
#[derive(Debug, Clone, Default)]
pub struct FleetSnapshot {
    /// Every node that is not deleted.
    pub nodes: Vec<NodeRow>,
    /// Every worker that has not ended, and those that ended in the last 24 hours: late frames,
    /// idempotency keys and duplicates are about them.
    pub workers: Vec<WorkerRow>,
}
