//! Runs: a line of the list, and one.

use serde::{Deserialize, Serialize};

use super::At;
use super::execution::{ExecutionCounts, ExecutionItem};
use super::usage::UsageSums;
use super::word::StatusWord;
use crate::{ExecutionId, RunId};

/// A run as the list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunItem {
    /// Its id.
    pub run_id: RunId,
    /// What it is called: the target of its root.
    pub name: String,
    /// What its open members make of it, the first that any of them is in: `running`, `queued`,
    /// `waiting`, `paused`; with none open, its root's end.
    pub status: StatusWord,
    /// The same as `status`.
    pub state: StatusWord,
    /// One sentence: why it waits, or why it did not end well; absent when there is nothing to
    /// say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many executions it has.
    pub executions: u64,
    /// How many of each state.
    pub counts: ExecutionCounts,
    /// When it was accepted.
    pub started_at: At,
    /// When its last member ended; absent while one is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// Milliseconds from `started_at` to `ended_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// When it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<At>,
    /// The run that it takes over from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_run_id: Option<RunId>,
    /// Its root.
    pub root: ExecutionItem,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunList {
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete, opaque.
    pub position: String,
    /// The page.
    pub runs: Vec<RunItem>,
    /// How many are in the page.
    pub count: u64,
    /// How many runs there are of each state, under the filter without its states.
    pub counts: ExecutionCounts,
    /// How many the whole filter finds.
    pub total: u64,
    /// Behind the last one; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    /// What the list shows of it too.
    #[serde(flatten)]
    pub item: RunItem,
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete, opaque.
    pub position: String,
    /// What its members spent their time with, added up.
    pub took: TimeSpent,
    /// From where it comes and what came after it.
    pub lineage: RunLineage,
    /// Members that are open though the one that called them has ended.
    pub open_detached: u64,
    /// Decisions of a person that it waits for, oldest first; at most 100.
    pub approvals: Vec<OpenApproval>,
    /// What agents reported of its members that have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSums>,
    /// When it was paused, while it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<At>,
    /// Who paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Who cancelled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// What became of the code of members that were ended while their agents had them; absent
    /// when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<RunReceipts>,
}

/// What became of the code of members that ended, by a cancel or a clock, while their agents had
/// them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunReceipts {
    /// How many agents' calls were told of, and answered: `stopped` and `still_running`.
    pub told: u64,
    /// Of them, those whose code does not run any more.
    pub stopped: u64,
    /// Of them, those whose code goes on.
    pub still_running: u64,
    /// Those that could not be told of: their code may go on.
    pub not_told: u64,
    /// Those that nobody has answered for yet: their code may go on.
    pub unanswered: u64,
    /// The run has so many members that some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
}

/// What the executions of a run spent their time with, in milliseconds: sums of their segments,
/// so they may be more than the run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeSpent {
    /// Until they were first sent.
    pub queued_ms: u64,
    /// On their way and at work; absorbed restarts too.
    pub running_ms: u64,
    /// Waiting for a person or for a child.
    pub waiting_ms: u64,
    /// Paused.
    pub paused_ms: u64,
    /// The run has so many members that the sums leave out the last ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
}

/// From where a run comes and what came after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunLineage {
    /// The run that it restarts or forks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_of_run: Option<RunId>,
    /// The execution of that run which was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_of_execution: Option<ExecutionId>,
    /// The latest run that restarts or forks this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_as: Option<RunId>,
}

/// A decision that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OpenApproval {
    /// The execution that waits.
    pub execution_id: ExecutionId,
    /// The agent's own id of what it asks.
    pub approval_request_id: String,
    /// `agent.function`.
    pub target: String,
    /// When it was asked.
    pub requested_at: At,
    /// When it expires.
    pub expires_at: At,
    /// Where what is asked can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_url: Option<String>,
}
