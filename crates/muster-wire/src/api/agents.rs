//! The answers of `/api/v1/nodes`: agents, which the AgentField wire calls nodes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::At;
use crate::FunctionKind;
use crate::status::words;

words!(
    /// How an agent or an instance is; an agent is as good as its best instance.
    AgentState {
        /// It beats.
        Active = "active",
        /// It never beat yet.
        Unknown = "unknown",
        /// Its beats are late.
        Degraded = "degraded",
        /// A supervisor is about to start it again.
        Restarting = "restarting",
        /// It beats, but cannot be dialled.
        UnreachableCallback = "unreachable_callback",
        /// Calls are refused at once.
        Down = "down",
    }
);

words!(
    /// What was last heard of an instance.
    SignKind {
        /// A beat.
        Beat = "beat",
        /// An answer, or a callback that it proved.
        Exchange = "exchange",
        /// The plane asked, and it answered as itself.
        Probe = "probe",
        /// It registered.
        Registration = "registration",
        /// It said goodbye.
        Goodbye = "goodbye",
    }
);

/// A page of agents.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Agents {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// By id.
    pub nodes: Vec<AgentLine>,
    /// How many are here.
    pub count: u64,
    /// How many fit the filter.
    pub total: u64,
    /// How many are in each state, under the filter without `status` and `state`.
    pub states: BTreeMap<String, u64>,
    /// Continue after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentLine {
    /// Its id.
    pub id: String,
    /// The same.
    pub node_id: String,
    /// The state of its best instance; `down` without any.
    pub state: AgentState,
    /// The evidence for it; absent without an instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Why it cannot be called, or may soon not be, and what would help; absent when all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The SDK's word: `ready`, `starting`, `degraded`, `offline`, or `pending_approval`.
    pub lifecycle_status: String,
    /// The SDK's word: `active`, `inactive`, `degraded` or `unknown`.
    pub health_status: String,
    /// How many instances are known.
    pub instance_count: u64,
    /// Where its newest instance is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The version of its newest instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When its newest instance last beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<At>,
    /// Tags that are not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_tags: Option<Vec<String>>,
    /// What it offers.
    pub functions: Vec<AgentFunction>,
    /// Its instances, the newest last.
    pub instances: Vec<AgentInstance>,
    /// Its slots.
    pub slots: AgentSlots,
    /// Its queue.
    pub queue: AgentQueue,
    /// What it did lately.
    pub window: AgentWindow,
    /// Why nothing is dispatched to it; absent when it is not held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<AgentHold>,
}

/// A function of an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentFunction {
    /// Its name.
    pub id: String,
    /// What it was registered as.
    pub r#type: FunctionKind,
    /// Whether it may be sent again.
    pub idempotent: bool,
}

/// An instance of an agent: one process.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentInstance {
    /// Its id.
    pub instance_id: String,
    /// Where it is called; empty when another agent took its address.
    pub base_url: String,
    /// Its version.
    pub version: String,
    /// How it is.
    pub state: AgentState,
    /// The evidence, with its age.
    pub evidence: String,
    /// When the evidence was seen.
    pub state_at: At,
    /// What was last heard of it.
    pub last_sign: LastSign,
    /// When it first registered.
    pub registered_at: At,
    /// When it last registered.
    pub renewed_at: At,
    /// When it last beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_beat: Option<At>,
    /// When it said goodbye.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodbye_at: Option<At>,
    /// The worker that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The node that the worker runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Calls in flight.
    pub in_flight: u32,
}

/// The last sign of life.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastSign {
    /// Of which kind.
    pub what: SignKind,
    /// When.
    pub at: At,
}

/// Slots of an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentSlots {
    /// How many are held.
    pub used: u32,
    /// How many there are; `null` is without bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub cap: Option<u32>,
}

/// The queue of an agent, in short.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentQueue {
    /// Executions in it.
    pub depth: u64,
    /// When the oldest was accepted; `null` when nothing waits.
    #[cfg_attr(feature = "schema", schema(required))]
    pub oldest_at: Option<At>,
}

/// What an agent did lately.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentWindow {
    /// Since when.
    pub from: At,
    /// Executions that ended.
    pub calls: u64,
    /// Of them, those that failed or ran out of time.
    pub failed: u64,
    /// Calls that were refused; nothing of them is stored.
    pub refused: u64,
    /// Since when refusals are counted: not before the plane's start.
    pub refused_from: At,
}

/// A hold.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentHold {
    /// Whether everything is held, and not this agent alone.
    pub everything: bool,
    /// Why; absent when nothing was kept of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who holds it; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub by: Option<String>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_unknown: Option<String>,
    /// Since when; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub since: Option<At>,
}

/// One agent with its registration.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Agent {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// What lists show.
    #[serde(flatten)]
    pub line: AgentLine,
    /// What its functions take and give, in the order of `functions`.
    pub offers: Vec<AgentOffer>,
    /// Whether an operator holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// When it first registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<At>,
    /// When it last registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<At>,
    /// Its registration as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub registration: Option<Box<RawValue>>,
}

/// What a function takes and gives.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentOffer {
    /// Its name.
    pub id: String,
    /// What it was registered as.
    pub r#type: FunctionKind,
    /// How it is called: `agent.function`.
    pub target: String,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// A JSON schema of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub input_schema: Option<Box<RawValue>>,
    /// A JSON schema of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub output_schema: Option<Box<RawValue>>,
    /// Examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
    pub examples: Option<Box<RawValue>>,
}

/// How an agent was over some time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentHistory {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// From when.
    pub from: At,
    /// Until when.
    pub to: At,
    /// Equal stretches, the oldest first.
    pub buckets: Vec<HistoryBucket>,
    /// Every change of an instance that is kept, the oldest first.
    pub changes: Vec<InstanceChange>,
    /// Whether changes before these were left out.
    pub more: bool,
}

/// A stretch of time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryBucket {
    /// From when.
    pub from: At,
    /// Until when.
    pub to: At,
    /// The worst state of its best instance in it; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub state: Option<AgentState>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_unknown: Option<String>,
    /// Whether the plane was down in some of it: what was silent then is not its fault.
    pub plane_down: bool,
}

/// A change of an instance.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InstanceChange {
    /// When.
    pub at: At,
    /// Which instance.
    pub instance: String,
    /// The state before; `null` when that is not known.
    #[cfg_attr(feature = "schema", schema(required))]
    pub from: Option<AgentState>,
    /// The state after; `null` when it left the list.
    #[cfg_attr(feature = "schema", schema(required))]
    pub to: Option<AgentState>,
    /// Why.
    pub evidence: String,
}

/// A beat was taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BeatNoted {
    /// A sentence.
    pub message: String,
}

/// A goodbye was taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct GoodbyeNoted {
    /// Always 0: beats have no lease.
    pub lease_seconds: u64,
    /// When the next beat is due.
    pub next_lease_renewal: At,
    /// A sentence.
    pub message: String,
}

/// A registration was taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Registered {
    /// Always true.
    pub success: bool,
    /// The agent.
    pub node_id: String,
    /// Where it is called.
    pub resolved_base_url: String,
    /// A sentence.
    pub message: String,
    /// `pending_approval` while tags of it are not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Those tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_tags: Option<Vec<String>>,
}

/// Tags of an agent that need an approval.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentTags {
    /// The agent.
    pub agent: String,
    /// Whether it may be called.
    pub callable: bool,
    /// Tags that wait for a decision.
    pub pending: Vec<String>,
    /// Tags that were approved.
    pub approved: Vec<String>,
    /// Tags that were rejected.
    pub rejected: Vec<String>,
}

/// Agents that ask for tags which need an approval.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TagRequests {
    /// By agent.
    pub agents: Vec<AgentTags>,
    /// Which tags need an approval.
    pub need_approval: Vec<String>,
}
