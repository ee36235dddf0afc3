//! The Relay adapter: what the unmodified broker of Agent Relay asks of its engine over REST, and
//! its registry of agents. Its frames are `fleet/dialect/relay.rs`. It translates and keeps names;
//! what a node's or a worker's facts amount to is the engine's. There is no chat behind it.

mod actions;
pub(crate) mod agents;
pub(crate) mod ask;
mod bindings;
mod channels;
pub(crate) mod envelope;
pub(crate) mod identity;
mod nodes;
mod public;
mod record;
pub mod registry;
mod taken;

use muster_wire::WorkerId;
use muster_wire::id::check_id;
use utoipa_axum::router::OpenApiRouter;

use crate::api::problem::Problem;
use crate::app::App;
pub use registry::Registry;

/// Why a broker's worker has no pid, start time, exit code or signal.
pub(crate) const NOT_REPORTED: &str = "not_reported_by_node";

/// Every route of the adapter but the sockets.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(agents::routes())
        .merge(nodes::routes())
        .merge(bindings::routes())
        .merge(channels::routes())
        .merge(actions::routes())
        .merge(taken::routes())
}

/// A worker has ended for good: at a broker its name is free again, and its token is no longer taken.
pub(crate) async fn worker_ended(app: &App, worker: &WorkerId) {
    let left = identity::leave(app, worker.as_str(), identity::Leaving::Offline).await;
    if let Err(problem) = left {
        tracing::warn!(worker.id = %worker, error = %problem.body.message, "the record of a Relay agent could not be written");
    }
}

/// Checks a name that comes from outside.
///
/// # Errors
/// 400 with the rule that it breaks.
fn name(text: &str) -> Result<(), Problem> {
    check_id(text).map_err(|error| Problem::validation(format!("name: {error}")))
}
