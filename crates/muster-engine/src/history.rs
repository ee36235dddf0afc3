//! The lines of the event sequence: what happened, as people and programs read it. Which change
//! writes which line is elsewhere.

use std::sync::Arc;

use muster_wire::{
    AgentId, Category, ExecutionId, FunctionName, InstanceId, NodeId, RunId, Status, Timestamp,
    WorkerId,
};

/// What an event says, as a closed set of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Accepted and waiting for a slot.
    ExecutionQueued,
    /// Handed to an instance.
    ExecutionStarted,
    /// A dial failed; it waits for the agent to come back.
    ExecutionAbsorbed,
    /// The same execution goes out again.
    ExecutionResent,
    /// Ended with a result.
    ExecutionSucceeded,
    /// Ended with an error.
    ExecutionFailed,
    /// Ended by a person or a policy.
    ExecutionCancelled,
    /// Ended by a clock.
    ExecutionTimedOut,
    /// An outcome came after the end.
    ExecutionLateOutcome,
    /// What the agent did about a cancel.
    ExecutionCancelReceipt,
    /// It waits for a person or for a waiting child.
    ExecutionWaiting,
    /// It no longer waits.
    ExecutionContinued,
    /// A person stopped it for a while.
    ExecutionPaused,
    /// It goes on from where it was paused.
    ExecutionResumed,
    /// It was restarted or forked; the text names the new one.
    ExecutionRestarted,
    /// An agent asked for a person's decision.
    ApprovalRequested,
    /// A person decided, or the time for it ran out.
    ApprovalDecided,
    /// Whether the agent could be told of a decision.
    ApprovalTold,
    /// A run was marked cancelled.
    RunCancelled,
    /// A run was marked paused.
    RunPaused,
    /// A run's pause was lifted.
    RunResumed,
    /// An instance registered.
    InstanceRegistered,
    /// It was found at another address than the one it gave.
    InstanceMoved,
    /// An instance said goodbye.
    InstanceGoodbye,
    /// Beats are late.
    InstanceDegraded,
    /// It is alive again.
    InstanceActive,
    /// It is down.
    InstanceDown,
    /// A supervisor is about to start it again.
    InstanceRestarting,
    /// Beats are fresh but dials fail.
    InstanceUnreachableCallback,
    /// It is gone.
    InstanceGone,
    /// Tags of an agent wait for an approval, or were decided.
    AgentTagsChanged,
    /// The circuit of an LLM endpoint opened, half opened or closed.
    LlmCircuitChanged,
    /// Dispatching to an agent, or to all, was stopped or allowed again.
    HoldChanged,
    /// A node's state changed; the text says why, and what happens next.
    NodeStateChanged,
    /// An operator's wish about a node changed, or its pin.
    NodeWished,
    /// A node's link opened, closed or was superseded.
    NodeLink,
    /// What a node says and what is believed differ lastingly, or no longer.
    NodeDrift,
    /// A worker waits for a place.
    WorkerQueued,
    /// A worker was sent to its node.
    WorkerStarting,
    /// A worker runs.
    WorkerRunning,
    /// A worker exited and will be started again.
    WorkerRestarting,
    /// A worker ended, on evidence.
    WorkerExited,
    /// A worker's node was declared lost.
    WorkerLost,
    /// A worker's node became unreachable: nobody knows.
    WorkerUnknown,
    /// Somebody took or gave back the keyboard of a worker's terminal.
    WorkerDriven,
    /// Mass silence, or a fall of the reachable capacity; or its end.
    FleetAlarm,
    /// The plane started.
    PlaneStarted,
    /// The plane began to shut down.
    PlaneDraining,
}

impl EventKind {
    /// All of them.
    pub const ALL: &'static [EventKind] = &[
        EventKind::ExecutionQueued,
        EventKind::ExecutionStarted,
        EventKind::ExecutionAbsorbed,
        EventKind::ExecutionResent,
        EventKind::ExecutionSucceeded,
        EventKind::ExecutionFailed,
        EventKind::ExecutionCancelled,
        EventKind::ExecutionTimedOut,
        EventKind::ExecutionLateOutcome,
        EventKind::ExecutionCancelReceipt,
        EventKind::ExecutionWaiting,
        EventKind::ExecutionContinued,
        EventKind::ExecutionPaused,
        EventKind::ExecutionResumed,
        EventKind::ExecutionRestarted,
        EventKind::ApprovalRequested,
        EventKind::ApprovalDecided,
        EventKind::ApprovalTold,
        EventKind::RunCancelled,
        EventKind::RunPaused,
        EventKind::RunResumed,
        EventKind::InstanceRegistered,
        EventKind::InstanceMoved,
        EventKind::InstanceGoodbye,
        EventKind::InstanceDegraded,
        EventKind::InstanceActive,
        EventKind::InstanceDown,
        EventKind::InstanceRestarting,
        EventKind::InstanceUnreachableCallback,
        EventKind::InstanceGone,
        EventKind::AgentTagsChanged,
        EventKind::LlmCircuitChanged,
        EventKind::HoldChanged,
        EventKind::NodeStateChanged,
        EventKind::NodeWished,
        EventKind::NodeLink,
        EventKind::NodeDrift,
        EventKind::WorkerQueued,
        EventKind::WorkerStarting,
        EventKind::WorkerRunning,
        EventKind::WorkerRestarting,
        EventKind::WorkerExited,
        EventKind::WorkerLost,
        EventKind::WorkerUnknown,
        EventKind::WorkerDriven,
        EventKind::FleetAlarm,
        EventKind::PlaneStarted,
        EventKind::PlaneDraining,
    ];

    /// The word on the event stream and in rows.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::ExecutionQueued => "execution.queued",
            EventKind::ExecutionStarted => "execution.started",
            EventKind::ExecutionAbsorbed => "execution.absorbed",
            EventKind::ExecutionResent => "execution.resent",
            EventKind::ExecutionSucceeded => "execution.succeeded",
            EventKind::ExecutionFailed => "execution.failed",
            EventKind::ExecutionCancelled => "execution.cancelled",
            EventKind::ExecutionTimedOut => "execution.timed_out",
            EventKind::ExecutionLateOutcome => "execution.late_outcome",
            EventKind::ExecutionCancelReceipt => "execution.cancel_receipt",
            EventKind::ExecutionWaiting => "execution.waiting",
            EventKind::ExecutionContinued => "execution.continued",
            EventKind::ExecutionPaused => "execution.paused",
            EventKind::ExecutionResumed => "execution.resumed",
            EventKind::ExecutionRestarted => "execution.restarted",
            EventKind::ApprovalRequested => "approval.requested",
            EventKind::ApprovalDecided => "approval.decided",
            EventKind::ApprovalTold => "approval.told",
            EventKind::RunCancelled => "run.cancelled",
            EventKind::RunPaused => "run.paused",
            EventKind::RunResumed => "run.resumed",
            EventKind::InstanceRegistered => "instance.registered",
            EventKind::InstanceMoved => "instance.moved",
            EventKind::InstanceGoodbye => "instance.goodbye",
            EventKind::InstanceDegraded => "instance.degraded",
            EventKind::InstanceActive => "instance.active",
            EventKind::InstanceDown => "instance.down",
            EventKind::InstanceRestarting => "instance.restarting",
            EventKind::InstanceUnreachableCallback => "instance.unreachable_callback",
            EventKind::InstanceGone => "instance.gone",
            EventKind::AgentTagsChanged => "agent.tags_changed",
            EventKind::LlmCircuitChanged => "llm.circuit_changed",
            EventKind::HoldChanged => "hold.changed",
            EventKind::NodeStateChanged => "node.state_changed",
            EventKind::NodeWished => "node.wished",
            EventKind::NodeLink => "node.link",
            EventKind::NodeDrift => "node.drift",
            EventKind::WorkerQueued => "worker.queued",
            EventKind::WorkerStarting => "worker.starting",
            EventKind::WorkerRunning => "worker.running",
            EventKind::WorkerRestarting => "worker.restarting",
            EventKind::WorkerExited => "worker.exited",
            EventKind::WorkerLost => "worker.lost",
            EventKind::WorkerUnknown => "worker.unknown",
            EventKind::WorkerDriven => "worker.driven",
            EventKind::FleetAlarm => "fleet.alarm",
            EventKind::PlaneStarted => "plane.started",
            EventKind::PlaneDraining => "plane.draining",
        }
    }

    /// Reads a row's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}

/// One line of the dense event sequence, written in the commit of the change it tells of.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// Its number. The sequence has no holes.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
    /// The execution it is about.
    pub execution: Option<ExecutionId>,
    /// The run it is about.
    pub run: Option<RunId>,
    /// The agent it is about.
    pub agent: Option<AgentId>,
    /// The function it is about.
    pub function: Option<FunctionName>,
    /// The instance it is about.
    pub instance: Option<InstanceId>,
    /// The node it is about.
    pub node: Option<NodeId>,
    /// The worker it is about.
    pub worker: Option<WorkerId>,
    /// The attempt it is about.
    pub attempt: Option<u32>,
    /// The execution's status after it.
    pub status: Option<Status>,
    /// The finer word.
    pub reason: Option<Arc<str>>,
    /// The error category.
    pub category: Option<Category>,
    /// A sentence of evidence; never a payload.
    pub text: Option<Arc<str>>,
}
