//! What lists and start-up ask, and the shapes of the answers. No SQL is here.

use muster_engine::row::{AgentRow, AttemptRow, EventRow, ExecutionRow, InstanceRow, QueuedRow};
use muster_wire::{
    AgentId, Category, Decision, ExecutionId, FunctionName, Origin, RunId, Status, Timestamp,
};

/// What and where a store is, for people.
#[derive(Debug, Clone, Default)]
pub struct StoreAbout {
    /// `sqlite` or `memory`.
    pub kind: &'static str,
    /// The directory.
    pub place: String,
    /// `power`, `process` or `none`.
    pub durability: &'static str,
    /// The format number it has.
    pub format: u32,
    /// Its own id, made at creation.
    pub mark: String,
    /// Why it should start in hold: it was copied or restored.
    pub suspicious: Option<String>,
}

/// How much of a list, and from where. Stable under inserts: the cursor is the last row's
/// (time, id).
#[derive(Debug, Clone)]
pub struct Page {
    /// After this row; `None` from the start.
    pub after: Option<(Timestamp, String)>,
    /// At most so many.
    pub limit: usize,
}

/// Which executions.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Any of these statuses; empty is any.
    pub statuses: Vec<Status>,
    /// Of any of these agents; empty is any.
    pub agents: Vec<AgentId>,
    /// Only this function.
    pub function: Option<FunctionName>,
    /// Only this run.
    pub run: Option<RunId>,
    /// Only children of this one.
    pub parent: Option<ExecutionId>,
    /// Only with this error category.
    pub category: Option<Category>,
    /// Accepted at or after.
    pub since: Option<Timestamp>,
    /// Accepted before.
    pub until: Option<Timestamp>,
    /// Oldest first.
    pub oldest_first: bool,
    /// Ids that begin or end with this.
    pub id_part: Option<String>,
    /// What else it may be narrowed to.
    pub also: Also,
}

/// What both executions and runs may be narrowed to; of a run its root is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Also {
    /// A finer word: of its status, or of what it waits for.
    pub reason: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this actor.
    pub actor: Option<String>,
    /// Taken in by such a plane.
    pub origin: Option<Origin>,
    /// Of what ended, only what ended at or after; what is open always fits.
    pub ended_since: Option<Timestamp>,
    /// Of what ended, only what ended before; what is open always fits.
    pub ended_until: Option<Timestamp>,
    /// The id begins or ends with this, or it is a part of `agent.function`.
    pub text: Option<String>,
}

/// Which workers. A page's cursor is the moment a worker was asked for, and its id.
#[derive(Debug, Clone, Default)]
pub struct WorkerFilter {
    /// Only on this node.
    pub node: Option<muster_wire::NodeId>,
    /// Only in one of these stored states; empty is any.
    pub states: Vec<muster_wire::fleet::WorkerState>,
    /// Ended ones, or all others.
    pub ended: Option<bool>,
    /// Only of this name.
    pub name: Option<String>,
    /// Ids that begin or end with this.
    pub id_part: Option<String>,
}

/// Which runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Any of these, as [`run_status`] says; but `Running` means "some member is open".
    pub statuses: Vec<Status>,
    /// Only where the root's agent is this.
    pub agent: Option<AgentId>,
    /// Started at or after.
    pub since: Option<Timestamp>,
    /// Started before.
    pub until: Option<Timestamp>,
    /// Ids that begin or end with this.
    pub id_part: Option<String>,
    /// Only in one of these states, exactly as [`run_status`] says; empty is any.
    pub states: Vec<Status>,
    /// Only where the root's function is this.
    pub function: Option<FunctionName>,
    /// Only where the root has this error category.
    pub category: Option<Category>,
    /// What else it may be narrowed to.
    pub also: Also,
}

/// What the steps of a run are grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// Its id.
    pub id: ExecutionId,
    /// The execution that called it.
    pub parent: Option<ExecutionId>,
    /// The agent.
    pub agent: AgentId,
    /// The function.
    pub function: FunctionName,
    /// Where it is.
    pub status: Status,
    /// When it was first sent, or accepted where it never was.
    pub from: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// What is stored of the life of one execution.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// Its attempts, first first.
    pub attempts: Vec<AttemptRow>,
    /// Its events, in order.
    pub events: Vec<EventRow>,
}

/// Which approvals. The id in a page's cursor is execution and request with a space between.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Pending ones, or all others.
    pub pending: Option<bool>,
    /// Only those so decided.
    pub decision: Option<Decision>,
    /// Only those that nobody can decide any more.
    pub closed: bool,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only of this run.
    pub run: Option<RunId>,
}

/// A run as lists show it.
#[derive(Debug, Clone)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// Its root's row.
    pub root: ExecutionRow,
    /// Its status, as [`run_status`] says.
    pub status: Status,
    /// Members, by status.
    pub counts: Vec<(Status, u64)>,
    /// When its last member ended; `None` while one is open.
    pub ended_at: Option<Timestamp>,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
}

/// What open members make of their run, the first that any of them is in: at work, or next in a
/// queue, or waiting for somebody, or, when nothing else is open, paused.
pub(crate) const OPEN_FIRST: [Status; 4] = [
    Status::Running,
    Status::Queued,
    Status::Waiting,
    Status::Paused,
];

/// The status of a run from its root's and the counts of all its members: what its open members
/// make of it, the most active of them first; with none open, what became of the root.
///
/// | open members | status |
/// |---|---|
/// | none | the root's end |
/// | any that runs | running |
/// | none that runs, any queued | queued |
/// | waiting and paused ones | waiting |
/// | only paused ones | paused |
pub fn run_status(root: Status, counts: &[(Status, u64)]) -> Status {
    let any = |wanted: &Status| counts.iter().any(|(one, n)| one == wanted && *n > 0);
    OPEN_FIRST.into_iter().find(any).unwrap_or(root)
}

/// An agent with its instances.
#[derive(Debug, Clone)]
pub struct StoredAgent {
    /// Its row, registration included.
    pub row: AgentRow,
    /// Its instances, latest registered last.
    pub instances: Vec<InstanceRow>,
}

/// The next entries of a queue.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// In order.
    pub rows: Vec<QueuedRow>,
    /// Nothing is behind them.
    pub exhausted: bool,
    /// The last event number that the read saw.
    pub as_of: u64,
}

/// Something that could not be handled, set aside whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantineItem {
    /// Its id.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// `event` or `row`.
    pub kind: String,
    /// What it was about.
    pub about: String,
    /// What went wrong.
    pub error: String,
    /// The thing itself, as text for a person; no payload, no secret.
    pub what: String,
}

/// Bytes by kind.
#[derive(Debug, Clone, Default)]
pub struct StoreSizes {
    /// (kind, bytes).
    pub kinds: Vec<(&'static str, u64)>,
    /// Free bytes on the disk; `None` when there is no disk.
    pub free: Option<u64>,
    /// Size of the disk.
    pub disk: Option<u64>,
}
