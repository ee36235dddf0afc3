//! The answers of `/api/v1/queues`.

use serde::Serialize;

use super::At;
use super::held::HeldCause;
use crate::{ExecutionId, FunctionName, RunId};

/// The queues of all agents.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Queues {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// One for each agent, by its id.
    pub queues: Vec<QueueLine>,
}

/// The queue of an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueLine {
    /// The agent.
    pub agent: String,
    /// How many it may run at once; `null` is without bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub cap: Option<u32>,
    /// Slots that are held.
    pub running: u32,
    /// Of them, those that started over the cap.
    pub over_cap: u32,
    /// Executions in its queue.
    pub queued: u64,
    /// Callers that hold a connection and wait for their turn without a row.
    pub waiting_callers: u32,
    /// Executions that wait for it to come back.
    pub absorbed: u32,
    /// Nothing is dispatched to it.
    pub held: bool,
    /// When the oldest queued one was accepted; absent when nothing is queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_queued_at: Option<At>,
    /// How many started a minute lately; `null` without a rate.
    #[cfg_attr(feature = "schema", schema(required))]
    pub starts_per_minute: Option<f64>,
    /// Milliseconds until one that came now is estimated to start; `null` without a rate.
    #[cfg_attr(feature = "schema", schema(required))]
    pub starts_in_ms: Option<u64>,
    /// What holds it up; `null` when nothing does.
    #[cfg_attr(feature = "schema", schema(required))]
    pub held_by: Option<HeldBy>,
    /// Tags that are not approved; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_tags: Option<Vec<String>>,
}

/// What holds a queue up.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeldBy {
    /// The cause.
    pub cause: HeldCause,
    /// The same in a sentence.
    pub text: String,
    /// When it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
}

/// A queue with who waits in it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Queue {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// Its numbers.
    #[serde(flatten)]
    pub line: QueueLine,
    /// Its first entries, in the order in which they start.
    pub entries: Vec<QueueEntry>,
    /// Entries behind those.
    pub more: u64,
}

/// One that waits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueEntry {
    /// Its place, from 1.
    pub position: u64,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// The function.
    pub function: FunctionName,
    /// Its class: 0 goes first.
    pub class: u8,
    /// Its turn within the class.
    pub turn: u64,
    /// When it was accepted.
    pub created_at: At,
    /// Milliseconds until it is estimated to start; `null` without a rate.
    #[cfg_attr(feature = "schema", schema(required))]
    pub starts_in_ms: Option<u64>,
}
