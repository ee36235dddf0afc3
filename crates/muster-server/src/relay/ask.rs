//! Nodes of brokers, as the engine knows them.

use muster_engine::fleet::effect::NodeView;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::Category;
use muster_wire::fleet::NodeKind;

use super::envelope::refuse;
use crate::api::fleet;
use crate::api::problem::Problem;
use crate::app::App;

/// A broker's node by name or id.
///
/// # Errors
/// 404 when there is none.
pub(crate) async fn node(app: &App, name: &str) -> Result<NodeView, Problem> {
    match fleet::ask(app, FleetQuestion::Node(name.into())).await? {
        FleetReply::Node(view) if view.row.kind == NodeKind::Relay => Ok(*view),
        _ => Err(refuse(
            Category::NotFound,
            "node_not_found",
            "there is no Relay node of that name; see GET /v1/nodes",
        )),
    }
}

/// Every broker's node by name.
///
/// # Errors
/// When nobody decides here any more.
pub(crate) async fn nodes(app: &App) -> Result<Vec<NodeView>, Problem> {
    match fleet::ask(app, FleetQuestion::Nodes).await? {
        FleetReply::Nodes(mut views) => {
            views.retain(|view| view.row.kind == NodeKind::Relay);
            Ok(views)
        }
        _ => Err(Problem::internal(
            &"a list of nodes was answered with something else",
        )),
    }
}
