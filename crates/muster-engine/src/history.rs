//! The lines of the event sequence: what happened, as people and programs read it. Which change
//! writes which line is elsewhere.

use std::sync::Arc;

use muster_wire::{
    AgentId, Category, ExecutionId, FunctionName, InstanceId, NodeId, RunId, Status, Timestamp,
    WorkerId,
};

pub use muster_wire::EventKind;

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
