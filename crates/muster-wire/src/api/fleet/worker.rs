//! Workers: the living and those of the past.

use serde::Serialize;

use super::WishedBy;
use crate::api::At;
use crate::fleet::{ExitHow, RestartMode, WorkerIo, WorkerState};
use crate::{AgentId, NodeId, WorkerId};

/// A page of workers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetWorkers {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// How many are here.
    pub count: u64,
    /// The newest first.
    pub workers: Vec<FleetWorker>,
    /// Continue after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A worker. What nobody can know is `null`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetWorker {
    /// Its id.
    pub id: WorkerId,
    /// Its name.
    pub name: String,
    /// Its node; `null` while it waits for a place.
    #[cfg_attr(feature = "schema", schema(required))]
    pub node: Option<NodeId>,
    /// The node's name; `null` when it is not known any more.
    #[cfg_attr(feature = "schema", schema(required))]
    pub node_name: Option<String>,
    /// Where it is in its life.
    pub state: WorkerState,
    /// Since when.
    pub state_at: At,
    /// One sentence with the evidence and its age.
    pub evidence: String,
    /// Why its process, its start or its exit are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_because: Option<String>,
    /// Program and arguments.
    pub command: String,
    /// Terminal or pipes; `null` when its node does not say.
    #[cfg_attr(feature = "schema", schema(required))]
    pub io: Option<WorkerIo>,
    /// When it is started again.
    pub restart: WorkerRestart,
    /// Labels of its own.
    pub labels: Vec<String>,
    /// Where it may be.
    pub target: WorkerTarget,
    /// Who placed it; `null` when a node brought it.
    #[cfg_attr(feature = "schema", schema(required))]
    pub principal: Option<String>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_reason: Option<String>,
    /// When it was asked for.
    pub created_at: At,
    /// Its process.
    #[cfg_attr(feature = "schema", schema(required))]
    pub pid: Option<u32>,
    /// When that process was started.
    #[cfg_attr(feature = "schema", schema(required))]
    pub started_at: Option<At>,
    /// How often it was started again.
    pub restarts: u32,
    /// When it is started again.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_start_at: Option<At>,
    /// When its node last confirmed it.
    #[cfg_attr(feature = "schema", schema(required))]
    pub confirmed_at: Option<At>,
    /// Whether its node brought it.
    pub adopted: bool,
    /// The agent that it registered as.
    #[cfg_attr(feature = "schema", schema(required))]
    pub agent: Option<AgentId>,
    /// Who wants it to end.
    #[cfg_attr(feature = "schema", schema(required))]
    pub release: Option<WishedBy>,
    /// How its process ended last.
    #[cfg_attr(feature = "schema", schema(required))]
    pub exit: Option<WorkerExit>,
    /// When it ended.
    #[cfg_attr(feature = "schema", schema(required))]
    pub ended_at: Option<At>,
    /// How that became known.
    #[cfg_attr(feature = "schema", schema(required))]
    pub ended_how: Option<ExitHow>,
    /// Until when it may wait for a place; only of a placement that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place_by: Option<At>,
    /// Why it waits for a place; only of a placement that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Why it ended, when it never got a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_category: Option<crate::Category>,
}

/// When and how often a worker is started again.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerRestart {
    /// After which exits.
    pub mode: RestartMode,
    /// At most so many times in a row; `null` is without end.
    #[cfg_attr(feature = "schema", schema(required))]
    pub max: Option<u32>,
}

/// Where a worker may be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerTarget {
    /// On this node; `null` is any.
    #[cfg_attr(feature = "schema", schema(required))]
    pub node: Option<String>,
    /// On nodes that have all of these.
    pub labels: Vec<String>,
}

/// How a process ended.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerExit {
    /// Its exit code; `null` when a signal ended it, or nobody saw.
    #[cfg_attr(feature = "schema", schema(required))]
    pub code: Option<i32>,
    /// The signal's number.
    #[cfg_attr(feature = "schema", schema(required))]
    pub signal: Option<i32>,
    /// When, by its node's clock.
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<At>,
    /// The end of its output, as text.
    pub output: String,
    /// What is missing of the above, and why.
    #[cfg_attr(feature = "schema", schema(required))]
    pub reason: Option<String>,
}

/// A worker with the time of the answer.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FleetWorkerWhole {
    /// The plane's time.
    pub as_of: At,
    /// The event cursor that it reflects.
    pub position: String,
    /// The worker.
    #[serde(flatten)]
    pub worker: FleetWorker,
}
