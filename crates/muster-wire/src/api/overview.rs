//! The answer of `GET /api/v1/overview`: what needs somebody, what is held up, and how work flows.

use std::collections::BTreeMap;

use serde::Serialize;

use super::At;
use super::held::HeldCause;
use crate::Category;
use crate::status::words;

words!(
    /// What kind of thing needs somebody.
    NeedKind {
        /// A person's decision.
        Approval = "approval",
        /// A node that is not there.
        Node = "node",
        /// An agent that cannot be called.
        Agent = "agent",
        /// A duty of the plane that is late or fails.
        Duty = "duty",
        /// A node says other than what is believed.
        Drift = "drift",
        /// Dispatching is stopped.
        Hold = "hold",
        /// Messages for webhooks were given up.
        DeadLetters = "dead_letters",
        /// Something was set aside.
        Quarantine = "quarantine",
        /// So many fell silent that the plane doubts itself.
        Doubt = "doubt",
        /// An alarm of the fleet, or a problem of the plane.
        Alarm = "alarm",
        /// The disk fills.
        Disk = "disk",
    }
);

/// The whole plane at a glance.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overview {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// What needs somebody, most pressing first; at most 20.
    pub needs: Vec<Need>,
    /// How many there are in all.
    pub needs_total: u64,
    /// What is held up, by cause.
    pub held: HeldUp,
    /// Whether work ends as fast as it starts.
    pub flow: Flow,
    /// What failed lately.
    pub failed: Failures,
    /// Agents by state.
    pub agents: StateCounts,
    /// Nodes by state, without retired ones.
    pub nodes: StateCounts,
    /// Workers that have not ended, by state.
    pub workers: BTreeMap<String, u64>,
    /// Places for workers.
    pub slots: Slots,
    /// Executions that run.
    pub running: u64,
    /// Executions that wait for a person or a child.
    pub waiting: u64,
    /// Executions in queues.
    pub queued: u64,
    /// Executions that a person paused.
    pub paused: u64,
}

/// Something that needs somebody.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Need {
    /// What kind of thing.
    pub kind: NeedKind,
    /// Its id; what it is about, where it has none.
    pub id: String,
    /// Its state in a word.
    pub state: String,
    /// What is the matter, in a sentence.
    pub text: String,
    /// Since when; `null` when that is not known.
    #[cfg_attr(feature = "schema", schema(required))]
    pub since: Option<At>,
    /// Who did it, where somebody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Until when somebody can act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<At>,
    /// The page that shows it.
    pub path: String,
}

/// What is held up.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeldUp {
    /// How many executions: the sum of the causes.
    pub total: u64,
    /// By cause, the largest first.
    pub causes: Vec<HeldGroup>,
}

/// Executions that are held up by one cause.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeldGroup {
    /// The cause.
    pub cause: HeldCause,
    /// The status that they have.
    pub state: crate::Status,
    /// The cause in a sentence.
    pub text: String,
    /// How many.
    pub count: u64,
    /// When the oldest was accepted.
    #[cfg_attr(feature = "schema", schema(required))]
    pub oldest_at: Option<At>,
    /// The query of the list of executions that lists exactly these; `null` where so many agents
    /// are concerned that no query names them all.
    #[cfg_attr(feature = "schema", schema(required))]
    pub query: Option<String>,
}

/// Executions that start and end, in equal stretches of time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Flow {
    /// When the first bucket begins.
    pub from: At,
    /// The length of a bucket.
    pub bucket_ms: u64,
    /// Accepted in each bucket; `null` while the plane was not there to know.
    pub started: Vec<Option<u64>>,
    /// Ended in each bucket.
    pub ended: Vec<Option<u64>>,
    /// Accepted a minute, over the buckets that are known; `null` when none is.
    #[cfg_attr(feature = "schema", schema(required))]
    pub started_per_min: Option<f64>,
    /// Ended a minute.
    #[cfg_attr(feature = "schema", schema(required))]
    pub ended_per_min: Option<f64>,
    /// Executions that are open.
    pub open: u64,
    /// How long the oldest queued one has waited; `null` when nothing waits.
    #[cfg_attr(feature = "schema", schema(required))]
    pub oldest_wait_ms: Option<u64>,
}

/// What failed or ran out of time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Failures {
    /// Since when.
    pub from: At,
    /// How many since then.
    pub total: u64,
    /// How many in the stretch of the same length before; `null` when the plane was not there.
    #[cfg_attr(feature = "schema", schema(required))]
    pub before: Option<u64>,
    /// By category, the most frequent first.
    pub categories: Vec<FailureGroup>,
}

/// Failures of one category.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureGroup {
    /// The category.
    pub category: Category,
    /// How many.
    pub count: u64,
    /// How many in the stretch before.
    #[cfg_attr(feature = "schema", schema(required))]
    pub before: Option<u64>,
    /// The query of the list of executions that lists exactly these.
    pub query: String,
}

/// How many there are, and in which states.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StateCounts {
    /// How many.
    pub total: u64,
    /// By the word of their state; states that nothing has are left out.
    pub states: BTreeMap<String, u64>,
}

/// Places for workers on all nodes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Slots {
    /// Free places on nodes that can be reached.
    #[cfg_attr(feature = "schema", schema(required))]
    pub free: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_unknown: Option<String>,
    /// Places on nodes that can be reached.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reachable: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_unknown: Option<String>,
    /// Places on all nodes that have a bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub total: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_unknown: Option<String>,
    /// Places on nodes about which nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub unknown: Option<u64>,
    /// Why their number is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_unknown: Option<String>,
    /// Since when, the longest of them; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<At>,
}
