//! Log lines, notes and events of one execution.

use serde::{Deserialize, Serialize};

use super::At;
use super::word::StatusWord;
use crate::{AgentId, Category, ExecutionId, FunctionName, InstanceId, RunId};

/// A page of the log lines of an execution, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogPage {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The page.
    pub entries: Vec<LogEntry>,
    /// How many lines are kept.
    pub total: u64,
    /// How many lines a bound dropped: the gaps say where.
    pub dropped: u64,
    /// Stretches of lines that are not there any more, as far as this page goes.
    pub gaps: Vec<LogGap>,
    /// Give it as `after` for what follows.
    pub next_after: u64,
    /// Whether more is there now.
    pub has_more: bool,
}

/// A line that an agent logged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogEntry {
    /// Its number in the execution.
    pub seq: u64,
    /// When, by the agent's clock.
    pub ts: At,
    /// `debug`, `info`, `warn`, `error`, or the agent's own word.
    pub level: String,
    /// Who logged.
    pub source: String,
    /// The kind of line.
    pub event_type: String,
    /// Its text.
    pub message: String,
    /// Whatever the agent added: any JSON.
    pub attributes: serde_json::Value,
}

/// Lines that were there and were dropped by a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LogGap {
    /// Behind the line of this number; 0 for the beginning.
    pub after: u64,
    /// How many lines.
    pub lines: u64,
}

/// The notes of an execution, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NoteList {
    /// The execution.
    pub execution_id: ExecutionId,
    /// How many.
    pub total: u64,
    /// The notes.
    pub notes: Vec<Note>,
}

/// A note that an agent left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Note {
    /// Its text.
    pub message: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When, by the agent's clock.
    pub timestamp: At,
    /// Who wrote it; `null` when it did not say.
    #[cfg_attr(feature = "schema", schema(required))]
    pub agent_node_id: Option<String>,
    /// The run; `null` when it was not said.
    #[cfg_attr(feature = "schema", schema(required))]
    pub run_id: Option<RunId>,
}

/// The events of an execution, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionEvents {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The events.
    pub events: Vec<ExecutionEvent>,
}

/// Something that happened to an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionEvent {
    /// Its number in the plane's sequence.
    pub seq: u64,
    /// When.
    pub at: At,
    /// What.
    pub r#type: String,
    /// The execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Its function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionName>,
    /// The instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,
    /// The attempt's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Where the execution is after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusWord>,
    /// A finer word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_category: Option<Category>,
    /// A sentence of evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
