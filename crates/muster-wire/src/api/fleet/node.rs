//! Nodes: rows of a list, one with its facts, and lines of a history.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::api::{At, LastCount, LastMeasure};
use crate::fleet::{NodeKind, NodeState, NodeWish};
use crate::{NodeId, WorkerId};

/// A page of nodes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetNodes {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// How many are here.
    pub count: u64,
    /// How many fit the filter.
    pub total: u64,
    /// How many are in each state, under the filter without `state`.
    pub states: BTreeMap<String, u64>,
    /// By name.
    pub nodes: Vec<FleetNode>,
    /// Continue after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A node with its verdict. What nobody can know is `null`, with the reason and what was last known.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetNode {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// What speaks to us.
    pub kind: NodeKind,
    /// What its facts amount to.
    pub state: NodeState,
    /// Since when.
    pub state_at: At,
    /// One sentence with the evidence and its age.
    pub evidence: String,
    /// Its state changes too often: it is damped, and shown as such.
    pub flapping: bool,
    /// What an operator wants of it.
    pub wish: NodeWish,
    /// Labels that placements ask for.
    pub labels: Vec<String>,
    /// How many workers it takes; `null` is without bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub max_workers: Option<u32>,
    /// Its version.
    pub version: String,
    /// The host's name; `null` when it told none.
    #[cfg_attr(feature = "schema", schema(required))]
    pub host: Option<String>,
    /// Names of its workers, as last known; in a list the first 32.
    pub worker_names: Vec<String>,
    /// It says other than what is believed.
    pub drift: bool,
    /// When it was last heard.
    #[cfg_attr(feature = "schema", schema(required))]
    pub heard_at: Option<At>,
    /// What happens next.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<NextStep>,
    /// Its load; `null` when it does not tell, or cannot be heard.
    #[cfg_attr(feature = "schema", schema(required))]
    pub load: Option<f64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_last: Option<LastMeasure>,
    /// How many workers it has.
    #[cfg_attr(feature = "schema", schema(required))]
    pub workers: Option<u32>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_last: Option<LastCount>,
    /// Free places; `null` is without bound, or not known: then there is a reason.
    #[cfg_attr(feature = "schema", schema(required))]
    pub free: Option<u32>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_last: Option<LastCount>,
    /// An operator's word that goes before the computed state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<NodePin>,
}

/// Something that will happen.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextStep {
    /// When.
    pub at: At,
    /// What.
    pub what: String,
}

/// An operator's wish.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WishedBy {
    /// Who.
    pub by: String,
    /// When.
    pub at: At,
    /// Why.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
}

/// A state that a node counts as.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodePin {
    /// Who.
    pub by: String,
    /// When.
    pub at: At,
    /// Why.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
    /// The state.
    pub state: NodeState,
}

/// Something that was told once, and why.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToldWhy {
    /// When.
    pub at: At,
    /// Why.
    pub why: String,
}

/// A number of workers that a node told.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToldWorkers {
    /// When.
    pub at: At,
    /// How many.
    pub workers: u32,
}

/// A fact behind a verdict.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeFact {
    /// `frame`, `acknowledged`, `beat`, `inventory`, `socket`, `goodbye`, `wish`, `pin`, `probe`.
    pub what: String,
    /// When; `null` is never.
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<At>,
    /// Who saw it: `node`, `plane` or `operator`.
    pub by: String,
    /// A sentence.
    pub text: String,
}

/// One node with every fact.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetNodeWhole {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// What lists show.
    #[serde(flatten)]
    pub node: FleetNode,
    /// Names of what it can do.
    pub capabilities: Vec<String>,
    /// Inventories of different epochs are not compared.
    #[cfg_attr(feature = "schema", schema(required))]
    pub epoch: Option<String>,
    /// Who enrolled it.
    pub principal: String,
    /// When it was enrolled.
    pub enrolled_at: At,
    /// When its last link opened.
    #[cfg_attr(feature = "schema", schema(required))]
    pub connected_at: Option<At>,
    /// When its last link closed, and how.
    #[cfg_attr(feature = "schema", schema(required))]
    pub disconnected: Option<ToldWhy>,
    /// The last beat.
    #[cfg_attr(feature = "schema", schema(required))]
    pub beat: Option<ToldWorkers>,
    /// The last inventory.
    #[cfg_attr(feature = "schema", schema(required))]
    pub inventory: Option<ToldWorkers>,
    /// Its goodbye.
    #[cfg_attr(feature = "schema", schema(required))]
    pub goodbye: Option<ToldWhy>,
    /// When it was declared lost, and by whom or what.
    #[cfg_attr(feature = "schema", schema(required))]
    pub lost: Option<ToldWhy>,
    /// Who wants what of it.
    #[cfg_attr(feature = "schema", schema(required))]
    pub wished: Option<WishedBy>,
    /// The number of its link, while it has one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub link: Option<u64>,
    /// How often it beats.
    pub beat_interval_ms: u64,
    /// Beats that were missed since it last was online.
    pub beats_missed: u32,
    /// Frames of links that had been superseded.
    pub late_frames: u64,
    /// The facts, the oldest first.
    pub facts: Vec<NodeFact>,
}

/// A page of the history of a node or of a worker.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetHistory {
    /// How many are here.
    pub count: u64,
    /// The newest first.
    pub history: Vec<FleetHistoryLine>,
    /// The state in equal stretches, the oldest first; only of a node, and when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Vec<NodeBucket>>,
    /// Continue before this; `null` at the end.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_before: Option<u64>,
}

/// A node in a stretch of time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeBucket {
    /// From when.
    pub from: At,
    /// Until when.
    pub to: At,
    /// The worst state that it had in it; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub state: Option<NodeState>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_unknown: Option<String>,
    /// Whether the plane was down in some of it.
    pub plane_down: bool,
}

/// One line of a history.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetHistoryLine {
    /// The number of the event that told it.
    pub seq: u64,
    /// When.
    pub at: At,
    /// The node.
    #[cfg_attr(feature = "schema", schema(required))]
    pub node: Option<NodeId>,
    /// The worker.
    #[cfg_attr(feature = "schema", schema(required))]
    pub worker: Option<WorkerId>,
    /// What kind of line: `node.state`, `worker.state`, `drift`, `alarm`, `wish`, `link`.
    pub kind: String,
    /// The word before.
    #[cfg_attr(feature = "schema", schema(required))]
    pub from: Option<String>,
    /// The word after.
    #[cfg_attr(feature = "schema", schema(required))]
    pub to: Option<String>,
    /// Why, with the evidence and what happens next.
    pub evidence: String,
}

/// A node was deleted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeDeleted {
    /// Which.
    pub deleted: NodeId,
}
