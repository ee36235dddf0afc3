//! `GET /metrics`: what was counted and what is read now, as Prometheus' text.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::meters::sampled;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Metrics in Prometheus' text format
///
/// Rates, errors and durations by lane, category and origin; commits; queues and slots of
/// agents; store, duties, process. What cannot be read at the moment is absent.
#[utoipa::path(
    get, path = "/metrics", tag = "plane",
    responses((status = 200, description = "The text exposition format, version 0.0.4.", body = String, content_type = "text/plain"))
)]
async fn metrics(State(app): State<App>) -> Response {
    let sampled = sampled::lines(&app).await;
    let mut text = app.meters.render();
    text.push_str(&sampled);
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response()
}
