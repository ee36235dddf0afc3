//! Executions: a line of a list, one whole, its attempts, and how accepted or ended calls answer.

use serde::{Deserialize, Serialize};

use super::At;
use super::webhook::WebhookMessage;
use super::word::{
    ApprovalStateWord, AttemptOutcomeWord, ExecutionKindWord, FunctionKindWord, LaneWord,
    OriginWord, ReplayModeWord, StatusWord, WaitCauseWord,
};
use crate::{AgentId, Category, ExecutionId, FunctionName, InstanceId, RunId, Status};

/// An execution without its payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionItem {
    /// Its id.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// The same as `run_id`.
    pub workflow_id: RunId,
    /// Where it is, in the words that SDKs know: `paused` is shown as `waiting`.
    pub status: StatusWord,
    /// Where it is.
    pub state: StatusWord,
    /// A finer word, sometimes with a text behind a colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// One sentence: why it waits, or why it did not end well. Only in lists and of one that is
    /// asked for alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<ExecutionWait>,
    /// The state that a resume gives back; only while paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes_to: Option<StatusWord>,
    /// The same as `agent`.
    pub node_id: AgentId,
    /// The agent.
    pub agent: AgentId,
    /// The function.
    pub function: FunctionName,
    /// `agent.function`.
    pub target: String,
    /// What the function was registered as.
    pub r#type: FunctionKindWord,
    /// Whether the plane sent it.
    pub kind: ExecutionKindWord,
    /// How it came in.
    pub lane: LaneWord,
    /// What kind of plane took it in.
    pub origin: OriginWord,
    /// The execution that called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_execution_id: Option<ExecutionId>,
    /// The root of its run; itself for a root.
    pub root_execution_id: ExecutionId,
    /// Calls from the root down to it.
    pub depth: u32,
    /// How often it was sent; 0 before the first time.
    pub attempt: u32,
    /// Its class in the queue: 0 goes first, 9 last.
    pub priority: u8,
    /// `X-Session-ID` of its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// `X-Actor-ID` of its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// Bytes of its input.
    pub input_size: u64,
    /// When it was accepted.
    pub created_at: At,
    /// When it was first sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<At>,
    /// Milliseconds from the first sending, or from acceptance, to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Bytes of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_size: Option<u64>,
    /// The execution that it is a restart or a fork of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_of: Option<ExecutionId>,
    /// Its own latest restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_as_execution_id: Option<ExecutionId>,
    /// Its twin in the run that its run takes over from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<ExecutionId>,
    /// The run that its run takes over from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_run_id: Option<RunId>,
    /// What is taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_mode: Option<ReplayModeWord>,
    /// Only what was accepted before this one is taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_before_execution_id: Option<ExecutionId>,
    /// It was not sent: another execution's end was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_hit: Option<bool>,
    /// The execution whose end was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_from_execution_id: Option<ExecutionId>,
    /// It started over its agent's cap, because its callers hold every slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_cap: Option<bool>,
    /// The agent's own text about its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same as `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_category: Option<Category>,
    /// What the agent reported about tokens and cost, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<serde_json::Value>,
    /// An outcome came after the end; it was kept, not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_outcome: Option<StatusWord>,
    /// Bytes of the details of its error; absent when there are none, and in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details_size: Option<u64>,
    /// Bytes of the outcome that came late; absent when there is none, and in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_size: Option<u64>,
    /// Whether somebody is told of its end.
    pub webhook_registered: bool,
}

/// What an execution waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionWait {
    /// For what.
    pub cause: WaitCauseWord,
    /// The approval's request id, or the child's execution id.
    pub reference: String,
    /// When it ends by itself; absent when the plane sees the end of its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
}

/// One execution, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Execution {
    /// What lists show of it too.
    #[serde(flatten)]
    pub item: ExecutionItem,
    /// The plane's time of this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<At>,
    /// Its result, once it ended: any JSON, `null` when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// Its result was there and was removed by retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_removed: Option<bool>,
    /// What the agent said about its failure: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details: Option<serde_json::Value>,
    /// Its latest restart, while that is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarted_as: Option<Successor>,
    /// What became of the messages for its webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_events: Option<Vec<WebhookMessage>>,
    /// What it asked a person last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_request_id: Option<String>,
    /// What became of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_status: Option<ApprovalStateWord>,
    /// Where a person decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_request_url: Option<String>,
}

/// The execution by which another one was run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Successor {
    /// Its id.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
}

/// A page of executions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionList {
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete, opaque.
    pub position: String,
    /// The page.
    pub executions: Vec<ExecutionItem>,
    /// How many are in the page.
    pub count: u64,
    /// How many there are of each state, under the filter without its states.
    pub counts: ExecutionCounts,
    /// How many the whole filter finds.
    pub total: u64,
    /// Behind the last one; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// How many there are of each state; a state without any is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct ExecutionCounts {
    /// So many are queued.
    #[serde(skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// So many are running.
    #[serde(skip_serializing_if = "is_zero")]
    pub running: u64,
    /// So many are waiting.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// So many are paused.
    #[serde(skip_serializing_if = "is_zero")]
    pub paused: u64,
    /// So many are succeeded.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// So many are failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// So many are cancelled.
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u64,
    /// So many are timeout.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout: u64,
}

impl ExecutionCounts {
    /// The count of one state.
    pub fn of(&mut self, state: Status) -> &mut u64 {
        match state {
            Status::Queued => &mut self.queued,
            Status::Running => &mut self.running,
            Status::Waiting => &mut self.waiting,
            Status::Paused => &mut self.paused,
            Status::Succeeded => &mut self.succeeded,
            Status::Failed => &mut self.failed,
            Status::Cancelled => &mut self.cancelled,
            Status::Timeout => &mut self.timeout,
        }
    }

    /// Those in one of some states; all of them when none is named.
    pub fn of_states(mut self, states: &[Status]) -> u64 {
        let wanted = |state: &&Status| states.is_empty() || states.contains(state);
        Status::ALL
            .iter()
            .filter(wanted)
            .map(|state| *self.of(*state))
            .sum()
    }
}

impl FromIterator<(Status, u64)> for ExecutionCounts {
    fn from_iter<I: IntoIterator<Item = (Status, u64)>>(counts: I) -> Self {
        let mut all = Self::default();
        for (state, count) in counts {
            *all.of(state) += count;
        }
        all
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The attempts of an execution, first first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttemptList {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The plane's time of this answer.
    pub as_of: At,
    /// The attempts.
    pub attempts: Vec<Attempt>,
    /// Dials that failed before a byte left, oldest first: they are no attempts.
    pub dials: Vec<FailedDial>,
}

/// One sending of an execution. Its secret is never shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Attempt {
    /// 1 for the first.
    pub n: u32,
    /// The instance that it went to.
    pub instance_id: InstanceId,
    /// When it was handed to the dispatcher.
    pub sent_at: At,
    /// When the agent answered 202, or first gave a later sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<At>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptOutcomeWord>,
    /// The error or answer behind that, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// There may be evidence, and this key may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_hidden: Option<bool>,
}

/// A dial that failed and was absorbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailedDial {
    /// When.
    pub at: At,
    /// To which instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,
    /// The attempt that it would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A call that was accepted and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallAccepted {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// The same as `run_id`.
    pub workflow_id: RunId,
    /// Where it is: `paused` is shown as `waiting`.
    pub status: StatusWord,
    /// `agent.function`.
    pub target: String,
    /// What the function was registered as.
    pub r#type: FunctionKindWord,
    /// When it was accepted.
    pub created_at: At,
    /// The same as `created_at`.
    pub enqueued_at: At,
    /// It was answered from the run that its run takes over from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_hit: Option<bool>,
    /// How many start before it; absent when it was sent at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// Whether `queue_position` is exact, or a lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_position_exact: Option<bool>,
    /// Milliseconds until it is estimated to start; `null` without a rate, and when it is not
    /// queued.
    #[cfg_attr(feature = "schema", schema(required))]
    pub starts_in_ms: Option<u64>,
    /// Whether somebody is told of its end.
    pub webhook_registered: bool,
    /// Why a webhook that was asked for was not registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_error: Option<String>,
}

/// A call that ended well while its caller waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallEnded {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// The same as `run_id`.
    pub workflow_id: RunId,
    /// `succeeded`.
    pub status: StatusWord,
    /// What the function returned: any JSON.
    pub result: serde_json::Value,
    /// Milliseconds from the first sending to the end.
    pub duration_ms: u64,
    /// When it ended.
    pub finished_at: At,
    /// It was answered from the run that its run takes over from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_hit: Option<bool>,
    /// Whether somebody is told of its end.
    pub webhook_registered: bool,
    /// Why a webhook that was asked for was not registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_error: Option<String>,
}

/// A call that did not end well while its caller waited: the one error shape and the execution
/// at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CallFailed {
    /// What the agent said, or the category.
    pub error: String,
    /// What clients switch on.
    pub error_category: Category,
    /// A sentence for a person.
    pub message: String,
    /// The execution; absent when nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The same as `run_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<RunId>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusWord>,
    /// A finer word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The agent's own text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Milliseconds from the first sending to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<At>,
    /// What the agent said about its failure: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details: Option<serde_json::Value>,
    /// A value that came with the failure: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// Seconds after which trying again makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Whatever helps: the field, the limit, what was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    /// Whether somebody is told of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_registered: Option<bool>,
    /// Why a webhook that was asked for was not registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_error: Option<String>,
}

/// A restart or a fork that was accepted and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RestartAccepted {
    /// As every accepted call.
    #[serde(flatten)]
    pub call: CallAccepted,
    /// The execution that was named.
    pub source_execution_id: ExecutionId,
    /// The run that is taken over from.
    pub source_run_id: RunId,
    /// The execution that runs again: the root of its run, or the one that was named.
    pub restarted_execution_id: ExecutionId,
    /// What is taken over.
    pub replay_mode: ReplayModeWord,
    /// Only what was accepted before this one is taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_before_execution_id: Option<ExecutionId>,
    /// `workflow` or `execution`.
    pub scope: String,
    /// `restart` or `fork`.
    pub kind: String,
}
