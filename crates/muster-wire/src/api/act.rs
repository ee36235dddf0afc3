//! What acts on executions and runs answer: what was done, or, with `dry_run=true`, what would be.

use serde::{Deserialize, Serialize};

use super::At;
use super::approval::ApprovalItem;
use super::word::{ActWord, DecisionWord, ReplayModeWord, StatusWord};
use crate::status::words;
use crate::{ExecutionId, RunId};

/// The answer to a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum CancelAnswer {
    /// Nothing was done: with `dry_run=true`.
    Would(ActConsequence),
    /// It was done.
    Cancelled(Cancelled),
}

/// What a cancel did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// The execution, when one was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The run, when one was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// `cancelled`.
    pub status: StatusWord,
    /// What ended by it.
    pub cancelled: Vec<ExecutionId>,
    /// How many agents are being told. Whether their code stops is theirs: each answer is an
    /// event `execution.cancel_receipt`.
    pub told: u32,
}

/// The answer to a pause or a resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum PauseAnswer {
    /// Nothing was done: with `dry_run=true`.
    Would(ActConsequence),
    /// It was done.
    Moved(Moved),
}

/// What a pause or a resume did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Moved {
    /// The execution, when it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The run, when it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Where it is now, in the words that SDKs know.
    pub status: StatusWord,
    /// Where it is now.
    pub state: StatusWord,
    /// Whether anything changed.
    pub changed: bool,
    /// What was paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Vec<ExecutionId>>,
    /// What was resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Vec<ExecutionId>>,
}

words!(
    /// An act on executions.
    Act {
        /// Cancel one.
        Cancel = "cancel",
        /// Cancel a run.
        CancelTree = "cancel_tree",
        /// Pause one.
        Pause = "pause",
        /// Pause a run.
        PauseTree = "pause_tree",
        /// Resume one.
        Resume = "resume",
        /// Resume a run.
        ResumeTree = "resume_tree",
        /// Decide what a person is asked.
        Decide = "decide",
    }
);

/// What an act would do, by what the plane knows now. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActConsequence {
    /// Always true.
    pub dry_run: bool,
    /// The plane's time of this answer.
    pub as_of: At,
    /// The act.
    pub act: ActWord,
    /// One sentence that says all of it.
    pub text: String,
    /// How many executions would change.
    pub total: u64,
    /// Some of them, at most 100, in the order in which they were accepted.
    pub affected: Vec<Affected>,
    /// Of them, those that are queued: nothing of them has left.
    pub queued: u64,
    /// Of them, those whose agent has them: a cancel tells it, and its code may go on; a pause
    /// lets it go on, and only what it calls or sends next waits.
    pub at_agents: u64,
    /// Agents that would be told.
    pub told: Vec<String>,
    /// Of them, those that wait for a person.
    pub waiting: u64,
    /// Open members of the same run that are left as they are.
    pub kept: u64,
    /// Whether it can be taken back, and by what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// An execution that an act would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Affected {
    /// Its id.
    pub execution_id: ExecutionId,
    /// `agent.function`.
    pub target: String,
    /// Where it is now.
    pub state: StatusWord,
    /// What becomes of it.
    pub becomes: StatusWord,
}

/// What a restart would do, by what is stored now. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RestartConsequence {
    /// Always true.
    pub dry_run: bool,
    /// The plane's time of this answer.
    pub as_of: At,
    /// One sentence that says all of it.
    pub text: String,
    /// The run that is taken over from.
    pub source_run_id: RunId,
    /// The execution that would run again.
    pub restarted_execution_id: ExecutionId,
    /// `agent.function` of it.
    pub target: String,
    /// `workflow` or `execution`.
    pub scope: String,
    /// `restart` or `fork`.
    pub kind: String,
    /// What is taken over.
    pub replay_mode: ReplayModeWord,
    /// How many calls of the source run would be taken over, if the same calls are made.
    pub reuses: u64,
    /// How many calls of the source run would be made again, the restarted one among them.
    pub runs: u64,
    /// By function: what is taken over and what is made again, the most first; at most 50.
    pub functions: Vec<RestartFunction>,
    /// What stands in the way, in words; a restart now would be refused. Empty when nothing does.
    pub refused: Vec<String>,
}

/// What a restart would do about the calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RestartFunction {
    /// `agent.function`.
    pub name: String,
    /// How many would be taken over.
    pub reuses: u64,
    /// How many would be made again.
    pub runs: u64,
}

/// The answer to a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)]
pub enum DecisionAnswer {
    /// Nothing was done: with `dry_run=true`.
    Would(ActConsequence),
    /// It was taken.
    Decided(Decided),
}

/// A decision that was taken, or the same again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decided {
    /// `taken`.
    pub message: String,
    /// The approval.
    #[serde(flatten)]
    pub approval: ApprovalItem,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionWord>,
    /// Where its execution is now, in the words that SDKs know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_status: Option<StatusWord>,
    /// Where its execution is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_state: Option<StatusWord>,
    /// It had been decided so before.
    pub repeated: bool,
}
