//! Placing a worker: what became of it, what waits, and why nodes were passed over.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FleetWorker;
use crate::api::At;
use crate::status::words;
use crate::{Category, NodeId};

words!(
    /// What a placement would come to.
    PlacementEnd {
        /// A node takes it.
        Place = "place",
        /// It waits for a place.
        Queue = "queue",
        /// It is refused.
        Refuse = "refuse",
    }
);

/// A worker was placed, or waits for a place.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlacementMade {
    /// The worker.
    pub worker: FleetWorker,
    /// Whether the same placement had been made before.
    pub repeated: bool,
    /// Whether it lived through its start window; absent while it waits for a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// What a placement would come to, or what came of it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum PlacementAnswer {
    /// What it would come to; nothing was changed.
    Would(PlacementPlan),
    /// What came of it.
    Did(Box<PlacementMade>),
}

/// What a placement would come to; nothing was changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlacementPlan {
    /// Always true.
    pub dry_run: bool,
    /// What it would come to.
    pub would: PlacementEnd,
    /// In a sentence.
    pub text: String,
    /// The node that would take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The category of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_category: Option<Category>,
    /// What to do about a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Nodes that would take it, the best first; at most 100.
    pub candidates: Vec<PlacementCandidate>,
    /// Why each other node was passed over; at most 100.
    pub passed_over: Vec<PassedOver>,
    /// How many nodes were passed over, by the word of the reason.
    pub passed_over_counts: BTreeMap<String, u64>,
}

/// A node that would take a worker.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlacementCandidate {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Free places; `null` is without bound.
    #[cfg_attr(feature = "schema", schema(required))]
    pub free: Option<u32>,
    /// Its load; `null` when it does not tell.
    #[cfg_attr(feature = "schema", schema(required))]
    pub load: Option<f64>,
}

/// Why a node was not taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PassedOver {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// `labels`, `full`, `leaving`, `suspect`, `unreachable`, `lost`, `cordoned`, `draining`,
    /// `retired` or `unsupported`.
    pub why: String,
    /// A sentence with the evidence and its age.
    pub evidence: String,
}

/// Placements that wait.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Placements {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// How many are here.
    pub count: u64,
    /// How many wait in all.
    pub total: u64,
    /// The oldest first.
    pub placements: Vec<WaitingPlacement>,
}

/// A placement that waits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitingPlacement {
    /// What waits.
    pub worker: FleetWorker,
    /// Since when.
    pub since: At,
    /// Until when it may wait; `null` is without end.
    #[cfg_attr(feature = "schema", schema(required))]
    pub expires_at: Option<At>,
    /// Why it waits, in a sentence.
    pub text: String,
    /// Why each node was passed over; at most 50.
    pub passed_over: Vec<PassedOver>,
    /// How many nodes were passed over, by the word of the reason.
    pub passed_over_counts: BTreeMap<String, u64>,
}
