//! What an act on a node or a worker did, or would do.

use serde::Serialize;

use super::{FleetNodeWhole, FleetWorker, NodeDeleted};
use crate::WorkerId;
use crate::api::At;
use crate::fleet::WorkerState;

/// What an act on a node did, or with `dry_run=true` would do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum NodeActed {
    /// The consequence; nothing was changed.
    Would(NodeConsequence),
    /// The node as it is now.
    Did(Box<FleetNodeWhole>),
}

/// What the deletion of a node did, or would do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum NodeDeletion {
    /// The consequence; nothing was changed.
    Would(NodeConsequence),
    /// It is gone.
    Did(NodeDeleted),
}

/// What an act on a node would come to.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeConsequence {
    /// Always true.
    pub dry_run: bool,
    /// The node.
    pub node: String,
    /// Its name.
    pub name: String,
    /// Whether it would be done: its state allows it.
    pub allowed: bool,
    /// In a sentence: what would happen, or why not.
    pub text: String,
    /// Workers that it touches; at most 200.
    pub workers: Vec<TouchedWorker>,
    /// How many it touches.
    pub workers_total: u64,
    /// Of them, those about which nobody knows: they may still run.
    pub workers_unknown: u64,
    /// What happens then, by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
}

/// A worker that an act touches.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TouchedWorker {
    /// Its id.
    pub id: WorkerId,
    /// Its name.
    pub name: String,
    /// Where it is in its life.
    pub state: WorkerState,
    /// The agent that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What a release did, or with `dry_run=true` would do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum WorkerReleased {
    /// The consequence; nothing was changed.
    Would(ReleaseConsequence),
    /// What became of it.
    Did(Box<ReleaseMade>),
}

/// A worker was released.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReleaseMade {
    /// Whether its process has ended, on evidence.
    pub ended: bool,
    /// The worker as it is now.
    pub worker: FleetWorker,
}

/// What a restart did, or with `dry_run=true` would do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum WorkerRestarted {
    /// The consequence; nothing was changed.
    Would(ReleaseConsequence),
    /// What became of it.
    Did(Box<RestartMade>),
}

/// A worker was restarted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RestartMade {
    /// Whether its new process lived through its start window.
    pub started: bool,
    /// Its node was asked and has not answered: what became of it is told as it happens. When
    /// neither holds, its new process ended within its start window.
    pub under_way: bool,
    /// The worker as it is now: the same one, with another process.
    pub worker: FleetWorker,
}

/// What the end of a worker's process would come to, for good or until its next start.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReleaseConsequence {
    /// Always true.
    pub dry_run: bool,
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: String,
    /// Whether it would be done.
    pub allowed: bool,
    /// In a sentence: what would happen, or why not.
    pub text: String,
    /// The agent that it is: its calls in flight end with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Calls in flight to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// As of when its node was last heard, when it cannot be told now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_heard_at: Option<At>,
}
