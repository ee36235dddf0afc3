//! The routes, one file per noun. Each has `routes()`, which registers path and document
//! together.

pub(crate) mod body;
pub mod caller;
pub mod problem;

mod agent_waits;
mod agents;
mod approvals;
mod audit;
mod backup;
mod batch_status;
pub(crate) mod call;
mod callbacks;
pub(crate) mod cancel;
mod caps;
mod circuits;
mod conditional;
mod config;
pub(crate) mod cursor;
mod did;
pub(crate) mod discovery;
mod docs;
mod dry;
mod events;
mod execute;
mod execution_events;
pub(crate) mod executions;
mod filters;
pub(crate) mod fleet;
mod health;
mod hold;
pub(crate) mod keys;
pub(crate) mod later;
mod logs;
mod memory;
mod metrics;
mod nodes;
mod notes;
mod openapi;
mod overview;
pub(crate) mod paging;
mod parameters;
mod pauses;
mod payloads;
mod quarantine;
mod queues;
mod registration;
mod restart;
mod retire;
pub(crate) mod runs;
mod search;
mod session;
pub(crate) mod show;
pub(crate) mod stamp;
pub(crate) mod steps;
pub(crate) mod submit;
mod system;
mod tags;
mod ui_events;
pub(crate) mod usage;
mod webhooks;
pub(crate) mod why;
mod workflow;
pub mod write;

use axum::Router;
use axum::response::{IntoResponse, Response};
use muster_wire::Category;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::relay::envelope;
use problem::Problem;

/// Every route of the API with its document.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(execute::routes())
        .merge(executions::routes())
        .merge(callbacks::routes())
        .merge(cancel::routes())
        .merge(restart::routes())
        .merge(tags::routes())
        .merge(circuits::routes())
        .merge(pauses::routes())
        .merge(approvals::routes())
        .merge(agent_waits::routes())
        .merge(payloads::routes())
        .merge(execution_events::routes())
        .merge(runs::routes())
        .merge(why::routes())
        .merge(nodes::routes())
        .merge(agents::routes())
        .merge(overview::routes())
        .merge(search::routes())
        .merge(workflow::routes())
        .merge(queues::routes())
        .merge(fleet::routes())
        .merge(later::routes())
        .merge(events::routes())
        .merge(health::routes())
        .merge(system::routes())
        .merge(metrics::routes())
        .merge(keys::routes())
        .merge(session::routes())
        .merge(audit::routes())
        .merge(hold::routes())
        .merge(quarantine::routes())
        .merge(backup::routes())
        .merge(webhooks::routes())
        .merge(usage::routes())
        .merge(caps::routes())
        .merge(retire::routes())
        .merge(config::routes())
        .merge(openapi::routes())
        .merge(memory::routes())
        .merge(notes::routes())
        .merge(logs::routes())
        .merge(did::routes())
        .merge(discovery::routes())
        .merge(batch_status::routes())
        .merge(ui_events::routes())
        .merge(crate::mcp::routes())
        .merge(crate::relay::routes())
}

/// The OpenAPI document of every route.
pub fn document() -> serde_json::Value {
    openapi::finish(&routes().split_for_parts().1)
}

/// Whether a route is one that the design names and that is not there yet.
pub(crate) fn is_later(template: &str) -> bool {
    later::LATER.iter().any(|(path, _)| *path == template)
}

/// The whole service: routes, documents, the answers for what is not there, and the guard.
pub fn service(app: App) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = openapi::finish(&document);
    let parameters = parameters::Parameters::of(&document);
    openapi::serve(router, &document)
        .merge(crate::ui::routes())
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn(conditional::conditional))
        .layer(axum::middleware::from_fn_with_state(
            parameters,
            parameters::checked,
        ))
        .layer(axum::middleware::from_fn_with_state(
            app.clone(),
            crate::auth::guard,
        ))
        .with_state(app)
}

async fn unknown_route(uri: http::Uri) -> Response {
    Problem::not_found(format!("there is no route {}; see /docs", uri.path())).into_response()
}

async fn wrong_method(method: http::Method, uri: http::Uri) -> Response {
    if envelope::is_spoken_at(uri.path()) {
        return Problem::not_supported("this part of Relay's engine").into_response();
    }
    let mut problem = Problem::new(
        Category::Validation,
        format!("{} does not take {method}; see /docs", uri.path()),
    );
    problem.status = http::StatusCode::METHOD_NOT_ALLOWED;
    problem.into_response()
}
