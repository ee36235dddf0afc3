//! What one commit changes in the store.

use std::sync::Arc;

use muster_wire::{AgentId, Category, ExecutionId, RunId, Status, Timestamp};

use crate::event::AttemptKey;
use crate::fleet::FleetWrite;
use crate::row::{
    AgentRow, AgentTags, ApprovalRow, AttemptOutcome, AttemptRow, DeliveryRow, EventRow,
    ExecutionRow, HeldBy, InstanceRow, KeyRow, Payload, PayloadKind, RunRow, Wait,
};

/// One row change. Each is one fixed statement in a store.
#[derive(Debug, Clone)]
pub enum Write {
    /// A new execution.
    InsertExecution(Arc<ExecutionRow>),
    /// A change of an execution.
    UpdateExecution {
        /// Which.
        id: ExecutionId,
        /// What changes.
        change: ExecutionChange,
    },
    /// A new attempt.
    InsertAttempt(Box<AttemptRow>),
    /// The agent took it: 202, or a later sign.
    AcceptAttempt {
        /// Which.
        attempt: AttemptKey,
        /// When.
        at: Timestamp,
    },
    /// The end of an attempt.
    EndAttempt {
        /// Which.
        attempt: AttemptKey,
        /// When.
        at: Timestamp,
        /// How.
        outcome: AttemptOutcome,
        /// The error or answer behind it.
        evidence: Option<Payload>,
    },
    /// A payload of up to 64 KiB; larger ones were stored before the event.
    PutPayload {
        /// Whose.
        execution: ExecutionId,
        /// What.
        kind: PayloadKind,
        /// The bytes.
        bytes: Payload,
    },
    /// A new or changed agent.
    PutAgent(Box<AgentRow>),
    /// Nothing is dispatched to an agent any more, or it is again.
    SetAgentHold {
        /// Which.
        agent: AgentId,
        /// Held or not.
        held: bool,
    },
    /// An agent and its instances go. Its executions stay.
    DropAgent(AgentId),
    /// How many executions an agent runs at once, as a person decided.
    SetAgentCap {
        /// Which.
        agent: AgentId,
        /// At most so many; 0 is no cap, `None` what the configuration says.
        cap: Option<u32>,
    },
    /// A new or changed instance.
    PutInstance(Box<InstanceRow>),
    /// New marks on a run. What is `None` stays as it was.
    PutRun(Box<RunRow>),
    /// A run's pause is lifted.
    ResumeRun(RunId),
    /// A new or changed approval.
    PutApproval(Box<ApprovalRow>),
    /// A message for a webhook.
    InsertDelivery(Box<DeliveryRow>),
    /// What became of an agent's tags.
    SetAgentTags {
        /// Which.
        agent: AgentId,
        /// All of them.
        tags: AgentTags,
    },
    /// An idempotency key.
    InsertKey(Box<KeyRow>),
    /// A line of the event sequence.
    InsertEvent(Arc<EventRow>),
    /// Why nothing is dispatched at all; `None` lifts it.
    SetHold(Option<Arc<str>>),
    /// Who holds all, or one agent; `None` forgets it.
    SetHeldBy {
        /// One agent, or all.
        agent: Option<AgentId>,
        /// Who.
        by: Option<HeldBy>,
    },
    /// A change of the fleet.
    Fleet(FleetWrite),
}

/// What changes in an execution's row.
#[derive(Debug, Clone)]
pub enum ExecutionChange {
    /// Handed to an instance: running, no reason.
    Started {
        /// The attempt's number.
        attempt: u32,
        /// When the first attempt started.
        started_at: Timestamp,
        /// Since when the clock runs.
        clock_from: Timestamp,
        /// Active time so far.
        active_us: i64,
        /// Started over the cap.
        over_cap: bool,
        /// The agents it now holds slots on, itself included.
        holds: Vec<AgentId>,
    },
    /// A dial failed and is absorbed: running, `awaiting_agent_restart`.
    Absorbed {
        /// When it gives up.
        until: Timestamp,
        /// When it was first dispatched.
        started_at: Timestamp,
        /// Since when the clock runs.
        clock_from: Timestamp,
        /// Started over the cap.
        over_cap: bool,
    },
    /// It ended. The queue, absorption and clock marks come off.
    Ended(Box<Ending>),
    /// An outcome came after the end.
    Late {
        /// Which status it claimed.
        status: Status,
    },
    /// It goes from one open state to another: waiting, paused, resumed, continued. Back to
    /// queued, it is in its queue again at its old place.
    Moved(Box<Move>),
    /// It was restarted or forked; also of one that ended.
    RestartedAs {
        /// The new one.
        id: ExecutionId,
    },
}

/// A change from one open state to another, as the whole new state.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    /// The new status.
    pub status: Status,
    /// The finer word.
    pub reason: Option<Arc<str>>,
    /// What it waits for.
    pub wait: Option<Box<Wait>>,
    /// The state that a resume gives back.
    pub resume_to: Option<Status>,
    /// Until when a failed dial is absorbed.
    pub absorb_until: Option<Timestamp>,
    /// Since when its clock runs; `None` while it stands.
    pub clock_from: Option<Timestamp>,
    /// Active time so far.
    pub active_us: i64,
    /// It holds a slot over the cap.
    pub over_cap: bool,
}

/// The end of an execution.
#[derive(Debug, Clone)]
pub struct Ending {
    /// A terminal status.
    pub status: Status,
    /// The finer word.
    pub reason: Option<Arc<str>>,
    /// Why it failed.
    pub category: Option<Category>,
    /// The agent's text.
    pub error: Option<Payload>,
    /// The status a failed sync call answers with.
    pub http_status: Option<u16>,
    /// When.
    pub at: Timestamp,
    /// Active time.
    pub active_us: i64,
    /// Size of the result.
    pub result_size: Option<u64>,
    /// Usage as JSON.
    pub usage: Option<Payload>,
}
