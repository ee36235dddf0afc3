//! The rows: what the store keeps of executions, attempts, agents, instances, runs and events,
//! and what a start reads back. Knows no SQL.

use std::sync::Arc;

use bytes::Bytes;
use muster_wire::{
    AgentId, Category, Decision, ExecutionId, ExecutionKind, FunctionKind, FunctionName,
    InstanceId, Lane, Origin, ParentEnd, ReplayMode, RunId, SecretHash, Status, Timestamp,
    WaitCause,
};
use serde::{Deserialize, Serialize};

pub use crate::history::{EventKind, EventRow};
pub use muster_wire::AttemptOutcome;

/// Text or JSON from outside. The engine hands it on and never looks into it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload(pub Bytes);

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

impl Payload {
    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a payload is of its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PayloadKind {
    /// The `input` of the call.
    Input,
    /// The value of a success, or the one that came with a failure.
    Result,
    /// The agent's `error_details`, or the body of its error answer.
    ErrorDetails,
    /// What came after the end.
    Late,
}

impl PayloadKind {
    /// The word in rows and routes.
    pub fn word(self) -> &'static str {
        match self {
            PayloadKind::Input => "input",
            PayloadKind::Result => "result",
            PayloadKind::ErrorDetails => "error_details",
            PayloadKind::Late => "late",
        }
    }
}

/// A place in an agent's queue. The order is the order of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueKey {
    /// 0 goes first, 9 last.
    pub class: u8,
    /// Which turn of its run at this agent.
    pub turn: u64,
    /// The order of acceptance.
    pub seq: u64,
}

/// One execution, whole, as it is inserted and as lists read it back. No payload is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRow {
    /// Its id.
    pub id: ExecutionId,
    /// The run it is in.
    pub run: RunId,
    /// The root of the run; itself for a root.
    pub root: ExecutionId,
    /// The execution that called it.
    pub parent: Option<ExecutionId>,
    /// Calls from the root down to it; 0 for a root.
    pub depth: u32,
    /// Dispatched by the plane, or observed.
    pub kind: ExecutionKind,
    /// How it came in.
    pub lane: Lane,
    /// The agent.
    pub agent: AgentId,
    /// The function.
    pub function: FunctionName,
    /// What the function was registered as.
    pub function_kind: FunctionKind,
    /// Where it is.
    pub status: Status,
    /// A finer word, sometimes with a text behind a colon.
    pub status_reason: Option<Arc<str>>,
    /// Why it failed.
    pub error_category: Option<Category>,
    /// The agent's text; bytes, as it came.
    pub error_text: Option<Payload>,
    /// The HTTP status that a failed sync call answers with, when the agent named one.
    pub error_status: Option<u16>,
    /// Its place in the queue.
    pub queue: QueueKey,
    /// The latest attempt's number; 0 before the first dispatch.
    pub attempt: u32,
    /// Agents on which it or an ancestor holds a slot; at most 32.
    pub holds: Vec<AgentId>,
    /// Started over the cap, because its callers hold every slot.
    pub over_cap: bool,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it was first dispatched.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Active microseconds counted so far, up to `clock_from`.
    pub active_us: i64,
    /// Since when the clock runs; `None` while it stands.
    pub clock_from: Option<Timestamp>,
    /// How much active time it may take, in microseconds.
    pub deadline_us: i64,
    /// Until when a failed dial is absorbed; only while `awaiting_agent_restart`.
    pub absorb_until: Option<Timestamp>,
    /// Size of the input in bytes.
    pub input_size: u64,
    /// BLAKE3 of the canonical input, first 16 bytes.
    pub input_hash: [u8; 16],
    /// Size of the result in bytes.
    pub result_size: Option<u64>,
    /// The caller's key, hashed; scope of idempotency keys.
    pub key_hash: Option<Arc<str>>,
    /// Who called.
    pub principal: Arc<str>,
    /// `X-Session-ID`.
    pub session: Option<Arc<str>>,
    /// `X-Actor-ID`.
    pub actor: Option<Arc<str>>,
    /// W3C `traceparent` of the caller, and behind a blank its `tracestate`.
    pub traceparent: Option<Arc<str>>,
    /// Usage the agent reported, as JSON.
    pub usage: Option<Payload>,
    /// What kind of plane took it in.
    pub origin: Origin,
    /// An outcome came after the end and was kept, not applied.
    pub late_outcome: Option<Status>,
    /// What it waits for; also while a paused one would wait.
    pub wait: Option<Box<Wait>>,
    /// The state that a resume gives back; only while paused.
    pub resume_to: Option<Status>,
    /// What happens to it when its parent ends.
    pub on_parent_end: ParentEnd,
    /// What few executions have; `None` when it has nothing of it.
    pub links: Option<Box<Links>>,
}

impl ExecutionRow {
    /// What few executions have, to be changed.
    pub fn links_mut(&mut self) -> &mut Links {
        self.links.get_or_insert_default()
    }
    /// The execution whose stored end this one took over instead of being dispatched.
    pub fn replayed_from(&self) -> Option<&str> {
        self.status_reason.as_deref()?.strip_prefix(REPLAYED_FROM)
    }
}

/// What the reason of a replayed execution begins with; the source's id follows.
pub const REPLAYED_FROM: &str = "replayed_from_execution:";

/// Why an execution waits. Every wait has an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// For what.
    pub cause: WaitCause,
    /// The approval's request id, or the child's execution id.
    pub reference: Arc<str>,
    /// When it ends by itself; `None` when the plane sees the end of its cause.
    pub until: Option<Timestamp>,
}

/// Where an execution came from and what comes after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The run from which its children may be taken over.
    pub replay: Option<Replay>,
    /// Its twin in that run.
    pub replay_of: Option<ExecutionId>,
    /// The execution it is a restart or a fork of.
    pub restart_of: Option<ExecutionId>,
    /// Its own latest restart.
    pub restarted_as: Option<ExecutionId>,
    /// Where its end is told: JSON with the secret sealed; opaque here.
    pub webhook: Option<Arc<str>>,
}

/// From where a run takes over what it need not do again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    /// The source run.
    pub source: RunId,
    /// Which of its executions.
    pub mode: ReplayMode,
    /// The restarted execution of the source run; `None` when it was the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ExecutionId>,
}

/// An approval that an agent asked for: (execution, request id) is its name.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    /// The execution that waits.
    pub execution: ExecutionId,
    /// The agent's own id of the request.
    pub request: Arc<str>,
    /// Its run.
    pub run: RunId,
    /// Its agent.
    pub agent: AgentId,
    /// The attempt that asked: the agent knows the execution by it.
    pub attempt: u32,
    /// Where a person decides.
    pub request_url: Option<Arc<str>>,
    /// Where the agent wants to be told.
    pub callback_url: Option<Arc<str>>,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// What was decided; `None` while it is pending.
    pub decision: Option<Decision>,
    /// When it was decided, or closed without a decision.
    pub decided_at: Option<Timestamp>,
    /// Who decided, or why it was closed.
    pub decided_by: Option<Arc<str>>,
    /// What the person wrote.
    pub feedback: Option<Payload>,
    /// The person's answer as JSON text.
    pub response: Option<Payload>,
    /// Whether the agent was told: `None` not yet, then what it said.
    pub told: Option<Arc<str>>,
}

/// A message about an end that is to be delivered to its webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Number of the event it tells of; its name.
    pub seq: u64,
    /// The execution.
    pub execution: ExecutionId,
    /// Its run.
    pub run: RunId,
    /// The terminal status.
    pub status: Status,
    /// When it ended.
    pub at: Timestamp,
    /// Where to: as in [`Links::webhook`].
    pub webhook: Arc<str>,
}

impl DeliveryRow {
    /// The message about the end of an execution, where somebody is to be told of it.
    pub fn of(seq: u64, at: Timestamp, row: &ExecutionRow) -> Option<crate::Write> {
        let webhook = row.links.as_ref()?.webhook.clone()?;
        Some(crate::Write::InsertDelivery(Box::new(Self {
            seq,
            execution: row.id.clone(),
            run: row.run.clone(),
            status: row.status,
            at,
            webhook,
        })))
    }
}

/// What became of the tags of an agent that need an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTags {
    /// All that its latest registration asks for and that need an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Box<str>>,
    /// Approved; they stay so over new registrations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<Box<str>>,
    /// Asked for and not decided: the agent is not called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Box<str>>,
    /// Refused; an agent that asks for one is not called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Box<str>>,
}

/// One dispatch of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    /// The execution.
    pub execution: ExecutionId,
    /// 1 for the first.
    pub n: u32,
    /// The instance it went to.
    pub instance: InstanceId,
    /// All instances that shared the address when it went out; empty when only `instance` did.
    pub candidates: Vec<InstanceId>,
    /// What its messages must prove.
    pub secret_hash: SecretHash,
    /// When it was handed to the dispatcher.
    pub sent_at: Timestamp,
    /// When the agent answered 202, or first gave a later sign.
    pub accepted_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<AttemptOutcome>,
    /// The error or answer behind the outcome.
    pub evidence: Option<Payload>,
}

/// What the decisions need to know of a function. Its schemas stay in the agent's stored
/// registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: FunctionName,
    /// What it was registered as.
    pub kind: FunctionKind,
    /// Required top-level fields of the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Box<str>>,
    /// Tagged `idempotent`: may be run again when its outcome is unknown.
    #[serde(default)]
    pub idempotent: bool,
    /// Tagged `on_parent_end:cancel`: its executions end with their caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_with_parent: bool,
}

/// An agent: an id, who owns it, and its latest registration as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRow {
    /// Its id.
    pub id: AgentId,
    /// Who may register under this id.
    pub principal: Arc<str>,
    /// When it was first registered.
    pub created_at: Timestamp,
    /// When it was last registered.
    pub registered_at: Timestamp,
    /// The latest registration's JSON, for lists and discovery; schemas are in it.
    pub registration: Payload,
    /// Nothing is dispatched to it.
    pub held: bool,
    /// Its tags that need an approval.
    pub tags: AgentTags,
    /// At most so many executions at once, as a person decided: 0 is no cap, `None` what the
    /// configuration says.
    pub cap: Option<u32>,
}

/// One process of an agent, as facts with their times.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceRow {
    /// The agent.
    pub agent: AgentId,
    /// The process.
    pub id: InstanceId,
    /// Where it is called; empty when another agent took its address.
    pub base_url: Arc<str>,
    /// The version it registered.
    pub version: Arc<str>,
    /// What it offers.
    pub functions: Arc<Vec<Function>>,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// The latest registration of this instance.
    pub renewed_at: Timestamp,
    /// When it said goodbye.
    pub goodbye_at: Option<Timestamp>,
    /// When it was found to be gone.
    pub gone_at: Option<Timestamp>,
    /// What showed that it is gone.
    pub gone_evidence: Option<Arc<str>>,
    /// When its open executions end as orphans; stored, so that it survives a restart.
    pub orphans_at: Option<Timestamp>,
    /// The supervised process it is, when its key says so.
    pub worker: Option<Arc<str>>,
}

/// Marks on a run. A run without marks has no row: its root execution is its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The root execution.
    pub root: ExecutionId,
    /// When it was cancelled: members are refused from then on.
    pub cancelled_at: Option<Timestamp>,
    /// Who cancelled it, and why.
    pub cancelled_by: Option<Arc<str>>,
    /// When it was paused: new members are admitted as paused from then on.
    pub paused_at: Option<Timestamp>,
    /// Who paused it.
    pub paused_by: Option<Arc<str>>,
    /// The run it is a restart or a fork of.
    pub source: Option<RunId>,
}

impl RunRow {
    /// A run without marks.
    pub fn unmarked(id: RunId, root: ExecutionId) -> Self {
        Self {
            id,
            root,
            cancelled_at: None,
            cancelled_by: None,
            paused_at: None,
            paused_by: None,
            source: None,
        }
    }
}

/// An idempotency key, written in the commit of the submission it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Scope and key together: the caller's principal, a NUL, the key.
    pub key: Arc<str>,
    /// The execution it made.
    pub execution: ExecutionId,
    /// BLAKE3 over target and canonical input, first 16 bytes.
    pub body_hash: [u8; 16],
    /// When it was accepted.
    pub at: Timestamp,
}

/// An open execution with its latest attempt, as a start reads it back.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenExecution {
    /// Its row.
    pub row: ExecutionRow,
    /// Its latest attempt; `None` when it was never dispatched.
    pub attempt: Option<AttemptRow>,
}

/// How many executions wait at an agent in one class and turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    /// The agent.
    pub agent: AgentId,
    /// The class.
    pub class: u8,
    /// The turn.
    pub turn: u64,
    /// How many.
    pub count: u64,
}

/// A queued execution as the window of a queue holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRow {
    /// Its whole row: it is about to start.
    pub row: ExecutionRow,
}

/// Who stopped dispatching, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// The principal; `plane` for the plane itself.
    pub by: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Arc<str>,
}

/// What a start reads from the store.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Number of the last event.
    pub last_seq: u64,
    /// Time of the last event: since then nobody may have decided.
    pub last_at: Timestamp,
    /// Every agent.
    pub agents: Vec<AgentRow>,
    /// Every instance that is not long gone.
    pub instances: Vec<InstanceRow>,
    /// Every execution that is open and not merely queued, observed ones too.
    pub open: Vec<OpenExecution>,
    /// How many are queued where.
    pub queues: Vec<QueueCount>,
    /// Marked runs with open members.
    pub runs: Vec<RunRow>,
    /// Pending approvals, and decided ones whose agent has not been told.
    pub approvals: Vec<ApprovalRow>,
    /// Why nothing is dispatched at all, if so.
    pub hold: Option<Arc<str>>,
    /// Who holds all, or one agent, as far as that was kept.
    pub held_by: Vec<(Option<AgentId>, HeldBy)>,
    /// Nodes and workers.
    pub fleet: crate::fleet::FleetSnapshot,
}
