//! The fleet over HTTP: the sockets of nodes, and what people ask and want of nodes and workers.

mod sockets;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(sockets::routes())
}
