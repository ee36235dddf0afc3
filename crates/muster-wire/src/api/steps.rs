//! The steps of a run: by pages, in columns for a graph, and grouped where there are very many.

use serde::{Deserialize, Serialize};

use super::At;
use super::execution::{ExecutionCounts, ExecutionItem};
use super::word::{SegmentKindWord, StatusWord, StepReceiptWord};
use crate::status::words;
use crate::{AgentId, Category, ExecutionId, RunId};

/// The steps of a run, by pages or in columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)]
pub enum Steps {
    /// With `view=columns`.
    Columns(StepColumns),
    /// Without.
    Page(StepPage),
}

/// A page of the executions of a run, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepPage {
    /// The run.
    pub run_id: RunId,
    /// Its status.
    pub status: StatusWord,
    /// The page.
    pub steps: Vec<ExecutionItem>,
    /// Behind the last one; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The executions of a run without payloads, one list for each thing known of them. All columns
/// are of the same length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepColumns {
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete: give it as `after_position` for what changed since.
    pub position: String,
    /// The run.
    pub run_id: RunId,
    /// The run's state.
    pub state: StatusWord,
    /// How many steps the run has.
    pub total: u64,
    /// `agent.function`, as `columns.name` names them by number.
    pub names: Vec<String>,
    /// The steps.
    pub columns: Columns,
    /// Give it as `after` for the steps behind these; absent at the end, and of what changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What changed since `after_position` can no longer be told: read all of them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
}

/// What is known of each step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Columns {
    /// Its place among all steps of the run, from 0, oldest first.
    pub index: Vec<u64>,
    /// Its execution.
    pub id: Vec<ExecutionId>,
    /// The place (`index`) of the step that called it; -1 for the root, or when that one is gone.
    pub parent: Vec<i64>,
    /// Its function, as a number into `names`.
    pub name: Vec<u32>,
    /// Its agent.
    pub agent: Vec<AgentId>,
    /// Where it is.
    pub state: Vec<StatusWord>,
    /// A finer word.
    pub reason: Vec<Option<String>>,
    /// Why it failed.
    pub category: Vec<Option<Category>>,
    /// When it was accepted: milliseconds since 1970, as all times here.
    pub created: Vec<i64>,
    /// Since when it waits in a queue, or waited there last; `null` when it never did.
    pub queued: Vec<Option<i64>>,
    /// When it was first sent.
    pub started: Vec<Option<i64>>,
    /// When it ended.
    pub ended: Vec<Option<i64>>,
    /// How often it was sent.
    pub attempts: Vec<u32>,
    /// Bits: detached 1, observed 2, over_cap 4, late_outcome 8, replayed 16, inferred_end 32,
    /// stopped_knowing 64, paused 128, resent 256, code_may_run 512.
    pub flags: Vec<u32>,
    /// The execution whose end it took over.
    pub replay_of: Vec<Option<ExecutionId>>,
    /// One sentence: why it waits, or why it did not end well.
    pub why: Vec<Option<String>>,
    /// Where its time went; what no segment covers is not known.
    pub segments: Vec<Vec<Segment>>,
    /// Of one that ended while its agent had it, by a cancel or a clock: what its agent did about
    /// it; `null` where there was nothing to tell.
    pub receipt: Vec<Option<StepReceiptWord>>,
}

words!(
    /// What an agent did when it was told that a call is not wanted any more.
    StepReceipt {
        /// It stopped the code.
        Stopped = "stopped",
        /// It had no such code at work.
        NotActive = "not_active",
        /// Its code goes on.
        StillRunning = "still_running",
        /// It could not be told.
        NotTold = "not_told",
        /// It has not answered: it is being told, or was away.
        Unanswered = "unanswered",
    }
);

/// A stretch of a step's time: its kind, from when, until when (`null`: it goes on).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment(pub SegmentKindWord, pub i64, pub Option<i64>);

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for Segment {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, ObjectBuilder, Schema, Type};
        let kind = SegmentKind::schema();
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        let or_null =
            ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::from_iter([
                Type::Integer,
                Type::Null,
            ]));
        let kind = match kind {
            utoipa::openapi::RefOr::T(kind) => kind,
            utoipa::openapi::RefOr::Ref(_) => Schema::default(),
        };
        ArrayBuilder::new()
            .prefix_items([kind, number.into(), or_null.into()])
            .items(ArrayItems::False)
            .min_items(Some(3))
            .description(Some(
                "A stretch of a step's time: its kind, from when, until when (`null`: it goes on).",
            ))
            .into()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for Segment {}

words!(
    /// What a step's time went into.
    SegmentKind {
        /// It waited for a slot.
        Queued = "queued",
        /// It was on its way: sent, and not yet taken.
        Dispatch = "dispatch",
        /// Its agent had it.
        Running = "running",
        /// It waited for its agent to come back.
        Absorbed = "absorbed",
        /// It waited for a person.
        WaitingPerson = "waiting_person",
        /// It waited for a call of its own.
        WaitingChild = "waiting_child",
        /// A person stopped it for a while.
        Paused = "paused",
    }
);

/// Marks of a step, as `flags` adds them up.
pub mod flag {
    /// It does not end with the one that called it.
    pub const DETACHED: u32 = 1;
    /// The plane did not send it: its agent reported it.
    pub const OBSERVED: u32 = 2;
    /// It started over its agent's cap.
    pub const OVER_CAP: u32 = 4;
    /// An outcome came after its end.
    pub const LATE_OUTCOME: u32 = 8;
    /// The end of another execution was taken over.
    pub const REPLAYED: u32 = 16;
    /// Its end was inferred, not reported.
    pub const INFERRED_END: u32 = 32;
    /// It ended because nobody knows more of it.
    pub const STOPPED_KNOWING: u32 = 64;
    /// It is paused, or was.
    pub const PAUSED: u32 = 128;
    /// It was sent more than once.
    pub const RESENT: u32 = 256;
    /// It has ended, and its code may be at work still: its agent said so, could not be told, or
    /// has not answered.
    pub const CODE_MAY_RUN: u32 = 512;
}

/// The steps of a run, grouped by what called them and what they call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepGroups {
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete, opaque.
    pub position: String,
    /// The run.
    pub run_id: RunId,
    /// How many steps the run has.
    pub total: u64,
    /// The largest first.
    pub groups: Vec<StepGroup>,
    /// How many groups are left out.
    pub more: u64,
}

/// The calls of one function by one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepGroup {
    /// The step that called them; absent for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
    /// `agent.function`.
    pub name: String,
    /// How many.
    pub total: u64,
    /// How many of each state.
    pub states: ExecutionCounts,
    /// The shortest that ended, in milliseconds from its first sending; absent while none ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<u64>,
    /// The one in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<u64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// The first one that failed or ran out of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failed_id: Option<ExecutionId>,
}
