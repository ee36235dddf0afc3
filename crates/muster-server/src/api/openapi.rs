//! `/openapi.json` and `/docs`, generated from the routes. Replaced by its owner.

use axum::Router;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}

/// Adds the document's own routes.
pub(crate) fn serve(router: Router<App>, _document: OpenApi) -> Router<App> {
    router
}
