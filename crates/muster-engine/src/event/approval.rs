//! What an execution waits for: a person, or a call of its own.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, AttemptRef, Decision, ExecutionId};

use super::Waiter;
use crate::row::{ApprovalRow, ExecutionRow, Payload};

/// A wish of an agent for a person's decision.
#[derive(Debug, Clone)]
pub struct ApprovalAsk {
    /// Who is answered.
    pub waiter: Waiter,
    /// The execution and what proves that the sender has it.
    pub from: AttemptRef,
    /// The agent as which the sender speaks.
    pub agent: AgentId,
    /// The agent to which the sender's key is bound, if any.
    pub key_agent: Option<AgentId>,
    /// The agent's own id of the request.
    pub request: Arc<str>,
    /// Where a person decides.
    pub request_url: Option<Arc<str>>,
    /// Where the agent wants to be told.
    pub callback_url: Option<Arc<str>>,
    /// How long it may take.
    pub expires_in: Duration,
    /// The row as the store has it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
    /// What the execution asked under that name before; read with `known`.
    pub earlier: Option<Box<ApprovalRow>>,
}

/// A person's decision.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Who is answered.
    pub waiter: Waiter,
    /// Of which execution; `None` when only the request is named.
    pub execution: Option<ExecutionId>,
    /// The request; `None` for the one that is pending.
    pub request: Option<Arc<str>>,
    /// What was decided; never expired.
    pub decision: Decision,
    /// Who decided.
    pub by: Arc<str>,
    /// What they wrote.
    pub feedback: Option<Payload>,
    /// Their answer as JSON text.
    pub response: Option<Payload>,
    /// What the store has of approvals of that name, read because none is pending.
    pub known: Option<(u64, Vec<ApprovalRow>)>,
}

/// What an agent says about its waiting for a child.
#[derive(Debug, Clone)]
pub struct Awaiter {
    /// Who is answered.
    pub waiter: Waiter,
    /// The execution and what proves that the sender has it.
    pub from: AttemptRef,
    /// The agent to which the sender's key is bound, if any.
    pub key_agent: Option<AgentId>,
    /// It waits, or goes on.
    pub waiting: bool,
    /// The agent's words.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}
