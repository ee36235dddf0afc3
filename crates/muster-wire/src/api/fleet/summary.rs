//! The fleet in numbers, and where nodes disagree with the plane.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::NodeId;
use crate::api::{At, LastCount, LastMeasure};

/// The fleet in numbers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fleet {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// Nodes by state.
    pub nodes: BTreeMap<String, u64>,
    /// Workers by state.
    pub workers: BTreeMap<String, u64>,
    /// Placements that wait.
    pub queued: u32,
    /// Nodes whose drift lasts.
    pub drifting: u32,
    /// Frames of superseded links.
    pub late_frames: u64,
    /// Mass silence: nothing acts on it; `null` when there is none.
    #[cfg_attr(feature = "schema", schema(required))]
    pub doubt: Option<FleetDoubt>,
    /// Places for workers.
    pub capacity: FleetCapacity,
    /// What needs attention.
    pub alarms: Vec<FleetAlarm>,
    /// Sums by label, those of most nodes first; at most 100.
    pub labels: Vec<FleetLabel>,
}

/// All nodes with a label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetLabel {
    /// The label.
    pub label: String,
    /// How many nodes have it.
    pub nodes: u64,
    /// Of them in each state.
    pub states: BTreeMap<String, u64>,
    /// Places on those that are online; `null` when one of them has no bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub capacity: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_unknown: Option<String>,
    /// Workers on those that are online; `null` when none of them is.
    #[cfg_attr(feature = "schema", schema(required))]
    pub used: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_unknown: Option<String>,
    /// Places on the others, of those that have a bound.
    pub unknown: u64,
}

/// The fleet over some time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetPast {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// From when.
    pub from: At,
    /// Until when.
    pub to: At,
    /// Equal stretches, the oldest first.
    pub buckets: Vec<FleetBucket>,
}

/// The fleet in a stretch of time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetBucket {
    /// From when.
    pub from: At,
    /// Until when.
    pub to: At,
    /// Nodes by the worst state that each had in it; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub states: Option<BTreeMap<String, u64>>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states_unknown: Option<String>,
    /// Whether the plane was down in some of it.
    pub plane_down: bool,
}

/// The plane doubts itself.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetDoubt {
    /// Since when.
    pub since: At,
    /// Why.
    pub evidence: String,
}

/// Places for workers; what nobody can know is `null` with its reason.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetCapacity {
    /// Places on nodes that are online.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reachable: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_last: Option<LastCount>,
    /// Of them, taken.
    #[cfg_attr(feature = "schema", schema(required))]
    pub used: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_last: Option<LastCount>,
    /// Places on nodes about which nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub unknown: Option<u64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_reason: Option<String>,
    /// Since when, the longest of them; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<At>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_last: Option<LastCount>,
    /// The share of the places that can be reached, 0 to 1.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reachable_share: Option<f64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_share_reason: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_share_unknown: Option<String>,
    /// What was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reachable_share_last: Option<LastMeasure>,
}

/// Something about the fleet that needs attention.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetAlarm {
    /// `capacity`, `doubt` or `drift`.
    pub kind: String,
    /// A sentence.
    pub text: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<At>,
}

/// Where nodes say other than what is believed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetDrift {
    /// The plane's time.
    pub as_of: At,
    /// How many.
    pub count: u64,
    /// Lasting differences.
    pub drift: Vec<NodeDrift>,
}

/// A node says other than what is believed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeDrift {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Since when.
    pub since: At,
    /// How many workers the plane believes in.
    pub believed: u32,
    /// How many the node claims.
    pub claimed: u32,
    /// Names that the node does not have.
    pub missing: Vec<String>,
    /// Names that the plane does not have.
    pub surplus: Vec<String>,
    /// What will happen, in a sentence.
    pub next: String,
}

/// The doubt about ourselves is over.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DoubtEnded {
    /// Whether there was one, or is none now.
    pub ended: bool,
}
