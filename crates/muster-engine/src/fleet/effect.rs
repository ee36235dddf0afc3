//! What the fleet wants done, answered and told.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::InventoryAnswer;
use muster_wire::fleet::{NodeKind, NodeState, RestartPolicy, WorkerIo, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::event::LinkId;
use super::row::{NodeRow, Target, WorkerRow};

/// Something that goes out to a node.
#[derive(Debug, Clone)]
pub enum FleetSend {
    /// Start a worker. The shell opens the spec, adds the worker's key and sends it.
    Start {
        /// Where.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// The worker, with its sealed spec.
        worker: Box<WorkerRow>,
    },
    /// End a worker.
    Release {
        /// Where.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// Which worker.
        worker: WorkerId,
        /// Its name, by which a broker knows it.
        name: Arc<str>,
        /// How long between SIGTERM and SIGKILL; `None` is its own grace.
        grace: Option<Duration>,
    },
    /// End a worker's process and start it again.
    Restart {
        /// Where.
        node: NodeId,
        /// On which link.
        link: LinkId,
        /// Which worker.
        worker: WorkerId,
        /// How long between SIGTERM and SIGKILL; `None` is its own grace.
        grace: Option<Duration>,
        /// Who wants it and why: the exit is told with it.
        reason: Arc<str>,
    },
    /// One application request over an open link that says nothing.
    Ask {
        /// Whom.
        node: NodeId,
        /// On which link.
        link: LinkId,
    },
    /// Close a link: a newer one is there, or its node was retired.
    Close {
        /// Whose.
        node: NodeId,
        /// Which.
        link: LinkId,
        /// Why.
        why: Arc<str>,
    },
    /// A worker ended for good: its key is revoked.
    RevokeKey {
        /// Whose.
        worker: WorkerId,
    },
}

/// An answer to somebody who asked about the fleet.
#[derive(Debug, Clone)]
pub enum FleetReply {
    /// A node was enrolled.
    Enrolled(Box<NodeRow>),
    /// A link was taken.
    LinkTaken,
    /// A link was refused: a code of the wire and a sentence.
    LinkRefused {
        /// `node_not_found`, `node_name_conflict`, `node_id_mismatch`, `node_retired`.
        code: &'static str,
        /// A sentence.
        message: String,
    },
    /// What the plane thinks of each worker of an inventory.
    Inventory(InventoryAnswer),
    /// A frame was taken; repeats are taken, too.
    Taken,
    /// A worker was placed and lived through its start window.
    Placed {
        /// As it is now.
        worker: Box<WorkerView>,
        /// An idempotency key found it; nothing was started.
        repeated: bool,
    },
    /// A worker waits for a place.
    Queued {
        /// As it is now.
        worker: Box<WorkerView>,
        /// An idempotency key found it.
        repeated: bool,
    },
    /// A worker was sent to its node, and no answer came in time: it may run.
    StartUnconfirmed(Box<WorkerView>),
    /// It exited within its start window; the view has the exit.
    StartFailed(Box<WorkerView>),
    /// Nothing was placed.
    Refused(FleetRefusal),
    /// A worker ended, or its end is under way where its node cannot be told now.
    Released {
        /// As it is now.
        worker: Box<WorkerView>,
        /// Whether its process has ended, on evidence.
        ended: bool,
    },
    /// What became of a restart.
    Restarted {
        /// As it is now.
        worker: Box<WorkerView>,
        /// What.
        came: RestartCame,
    },
    /// No such node.
    UnknownNode,
    /// No such worker.
    UnknownWorker,
    /// Several living workers have that name: only an id says which one is meant.
    AmbiguousWorker(Vec<WorkerId>),
    /// It does not go with the state things are in.
    Conflict(String),
    /// A node, as it is now.
    Node(Box<NodeView>),
    /// All nodes, by name.
    Nodes(Vec<NodeView>),
    /// Some nodes.
    NodesPage(Box<NodesPage>),
    /// Placements that wait, the oldest first, and how many there are.
    Placements(Vec<WaitingView>, u64),
    /// What a placement would come to.
    Plan(Box<PlanView>),
    /// A worker, as it is now.
    Worker(Box<WorkerView>),
    /// Workers that the engine holds, newest first.
    Workers(Vec<WorkerView>),
    /// The whole fleet in numbers.
    Summary(Box<FleetSummary>),
    /// Where beats and inventories disagree with what is believed.
    Drift(Vec<DriftView>),
}

/// What became of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartCame {
    /// Its new process lived through its start window.
    Runs,
    /// Its new process ended within its start window, or it was ended meanwhile.
    Exited,
    /// Its node was asked, and has not answered: it is under way.
    Unconfirmed,
}

/// Why a worker was not placed. Nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRefusal {
    /// `node_unreachable`, `node_draining`, `no_eligible_node`, `unsupported_by_node`,
    /// `fleet_capacity`, `idempotency_conflict`, `not_found`, `validation`, `conflict`.
    pub category: Category,
    /// A sentence, with the evidence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Seconds.
    pub retry_after: Option<u32>,
    /// Why each node was passed over: name, word, sentence.
    pub passed_over: Vec<PassedOver>,
}

/// Why a node was not taken for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The node's id.
    pub node: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// `labels`, `full`, `leaving`, `suspect`, `unreachable`, `lost`, `cordoned`, `draining`, `retired`,
    /// `unsupported`.
    pub why: &'static str,
    /// A sentence with the evidence and its age.
    pub evidence: String,
}

/// One fact behind a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// `frame`, `acknowledged`, `beat`, `inventory`, `socket`, `goodbye`, `wish`, `pin`, `probe`.
    pub what: &'static str,
    /// When; `None` is never.
    pub at: Option<Timestamp>,
    /// Who saw it: `node`, `plane` or `operator`.
    pub by: &'static str,
    /// A sentence.
    pub text: String,
}

/// A number that may not be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known<T> {
    /// The number; `None` when nobody can know.
    pub value: Option<T>,
    /// Why not.
    pub reason: Option<String>,
    /// What was last known, and when.
    pub last: Option<(T, Timestamp)>,
}

/// A node with its verdict.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// Its facts as of now.
    pub row: NodeRow,
    /// The state, computed.
    pub state: NodeState,
    /// Since when.
    pub state_at: Timestamp,
    /// It changes too often: damped, and shown as such.
    pub flapping: bool,
    /// One sentence, present tense, with the evidence and its age.
    pub evidence: String,
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
    /// What happens next, and when.
    pub next: Option<(Timestamp, String)>,
    /// Its link, while it has one.
    pub link: Option<LinkId>,
    /// How often it beats.
    pub beat_interval: Duration,
    /// Beats that were missed since it last was online.
    pub beats_missed: u32,
    /// Frames of links that had been superseded.
    pub late_frames: u64,
    /// Its load; `None` when it does not tell, or cannot be heard now.
    pub load: Option<f64>,
    /// Its load as it was last told, and when.
    pub load_last: Option<(f64, Timestamp)>,
    /// Why its load is not known.
    pub load_reason: Option<String>,
    /// How many workers it has.
    pub workers: Known<u32>,
    /// Names of them, as last known.
    pub worker_names: Vec<Arc<str>>,
    /// Free places; `None` is without bound or not known.
    pub free: Known<u32>,
    /// Beats or inventories disagree with what is believed.
    pub drift: bool,
}

/// A worker with its verdict.
#[derive(Debug, Clone)]
pub struct WorkerView {
    /// Its row as of now.
    pub row: WorkerRow,
    /// Its node's name.
    pub node_name: Option<Arc<str>>,
    /// The state, computed: `unknown` where its node is unreachable.
    pub state: WorkerState,
    /// Since when.
    pub state_at: Timestamp,
    /// One sentence, present tense, with the evidence and its age.
    pub evidence: String,
    /// Why `pid`, `started_at` or the exit's code are not known, where they are not.
    pub unknown_because: Option<&'static str>,
}

/// Nodes that a summary names.
pub const NAMED_MAX: usize = 8;
/// Labels that a summary sums up.
pub const LABELS_MAX: usize = 100;

/// A node that needs somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNode {
    /// Its name.
    pub name: Arc<str>,
    /// Its state.
    pub state: NodeState,
    /// Since when.
    pub since: Timestamp,
    /// It changes too often.
    pub flapping: bool,
    /// Workers that are believed there.
    pub workers: u32,
}

/// All nodes with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSum {
    /// The label.
    pub label: Arc<str>,
    /// By state.
    pub states: Vec<(NodeState, u32)>,
    /// Places on those that are online; `None` when one of them has no bound.
    pub capacity: Option<u64>,
    /// Workers on those that are online; `None` when none is.
    pub used: Option<u64>,
    /// Places on the others, of those that have a bound.
    pub unknown: u64,
}

/// Which nodes. The engine looks through all and views only those that it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodesAsk {
    /// In any of these; empty is any.
    pub states: Vec<NodeState>,
    /// With this label.
    pub label: Option<Arc<str>>,
    /// Of this kind.
    pub kind: Option<NodeKind>,
    /// Retired ones too.
    pub retired: bool,
    /// With this in its name or its host, or at the beginning or end of its id; lower case.
    pub part: Option<String>,
    /// Those that need somebody first, and not by name alone.
    pub by_need: bool,
    /// Behind this one: how much it needs somebody, and its name.
    pub after: Option<(u8, Arc<str>)>,
    /// At most so many.
    pub limit: usize,
}

/// Some nodes.
#[derive(Debug, Clone)]
pub struct NodesPage {
    /// Each with how much it needs somebody: 0 is most.
    pub nodes: Vec<(u8, NodeView)>,
    /// Whether there are more behind them.
    pub more: bool,
    /// How many fit.
    pub total: u64,
    /// How many fit in each state, whatever states are wanted.
    pub states: Vec<(NodeState, u32)>,
}

/// A placement that waits, and why.
#[derive(Debug, Clone)]
pub struct WaitingView {
    /// What waits.
    pub worker: WorkerView,
    /// Why; `None` when a node takes it next.
    pub refusal: Option<FleetRefusal>,
}

/// A placement that somebody thinks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAsk {
    /// Where.
    pub target: Target,
    /// Terminal or pipes.
    pub io: WorkerIo,
    /// When it would be started again.
    pub restart: RestartPolicy,
    /// Labels of its own.
    pub labels: Vec<Arc<str>>,
}

/// What a placement would come to.
#[derive(Debug, Clone)]
pub struct PlanView {
    /// The nodes that would take it, the best first.
    pub takers: Vec<Taker>,
    /// Why each other one would not.
    pub passed_over: Vec<PassedOver>,
    /// Why nothing would take it.
    pub refusal: Option<FleetRefusal>,
    /// Whether it could wait until that passes.
    pub may_wait: bool,
}

/// A node that would take a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Taker {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// Free places; `None` is without bound.
    pub free: Option<u32>,
    /// Its load, if it tells.
    pub load: Option<f64>,
}

/// The whole fleet in numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetSummary {
    /// Nodes by state.
    pub nodes: Vec<(NodeState, u32)>,
    /// Workers by state.
    pub workers: Vec<(WorkerState, u32)>,
    /// Places on nodes that are online.
    pub capacity: Known<u64>,
    /// Of them, taken.
    pub used: Known<u64>,
    /// Places on nodes about which nobody knows.
    pub capacity_unknown: Known<u64>,
    /// Since when, the longest of them.
    pub unknown_since: Option<Timestamp>,
    /// Nodes that need somebody, the worst first; at most [`NAMED_MAX`].
    pub missing: Vec<MissingNode>,
    /// How many need somebody.
    pub missing_total: u32,
    /// Names of nodes whose drift lasts; at most [`NAMED_MAX`].
    pub drifting_names: Vec<Arc<str>>,
    /// Sums by label, those of most nodes first; at most [`LABELS_MAX`].
    pub labels: Vec<LabelSum>,
    /// Share of the places that can be reached, 0..1.
    pub reachable_share: Known<f64>,
    /// Placements that wait.
    pub queued: u32,
    /// The reachable share fell: work gathers on what is left.
    pub capacity_alarm: Option<String>,
    /// Mass silence: verdicts go on, nothing acts on them. Since when, and the evidence.
    pub doubt: Option<(Timestamp, String)>,
    /// Nodes whose drift lasts.
    pub drifting: u32,
    /// Frames of superseded links, all nodes.
    pub late_frames: u64,
}

/// A lasting difference between what is believed and what a node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftView {
    /// Which node.
    pub node: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// Since when.
    pub since: Timestamp,
    /// How many workers the plane believes in.
    pub believed: u32,
    /// How many the node claims.
    pub claimed: u32,
    /// Names that the node does not have.
    pub missing: Vec<Arc<str>>,
    /// Names that the plane does not have.
    pub surplus: Vec<Arc<str>>,
    /// What will happen, in a sentence.
    pub next: String,
}

/// A question about the fleet; answering it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetQuestion {
    /// All nodes.
    Nodes,
    /// Some nodes.
    NodesPage(Box<NodesAsk>),
    /// Placements that wait; at most so many.
    Placements(usize),
    /// Living workers with a part in their name, or at the beginning or end of their id, in lower
    /// case; at most so many.
    WorkersNamed(Arc<str>, usize),
    /// What a placement would come to.
    Plan(Box<PlanAsk>),
    /// Whether a worker would be restarted now: as it is, or the refusal.
    Restart(WorkerId),
    /// One node, by name or id.
    Node(Arc<str>),
    /// Workers, those that ended lately too: of one node (name or id), in one state, placed by
    /// one agent's name.
    Workers {
        /// Of which node.
        node: Option<Arc<str>>,
        /// Ended ones too.
        ended: bool,
    },
    /// One worker: by an id as ours are formed, by the name of a living one, by any other id, by
    /// the name of one that ended lately.
    Worker(Arc<str>),
    /// The fleet in numbers.
    Summary,
    /// Lasting differences.
    Drift,
}

/// What goes to directories after a commit.
#[derive(Debug, Clone)]
pub enum FleetNotice {
    /// A worker is an agent's, and runs at this node: calls go through its link.
    Route {
        /// The worker.
        worker: WorkerId,
        /// Its node; `None` when it has ended.
        node: Option<NodeId>,
    },
    /// Something for the log: a transition, with reason, evidence and what happens next.
    Log {
        /// Warn, not info.
        warn: bool,
        /// The node.
        node: Option<NodeId>,
        /// The worker.
        worker: Option<WorkerId>,
        /// The line.
        text: Arc<str>,
    },
    /// The payload of a spec is not needed any more.
    Forget(WorkerId),
}
