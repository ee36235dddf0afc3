//! What the design names and this plane does not have yet: answered 501 in the one error shape,
//! so that a client can tell "not here" from "no such thing".

use axum::routing::any;
use utoipa_axum::router::OpenApiRouter;

use super::problem::Problem;
use crate::app::App;
use crate::relay::envelope::is_spoken_at;

/// Path and what it would be.
pub(crate) const LATER: &[(&str, &str)] = &[
    ("/api/v1/nodes/register-serverless", "serverless agents"),
    ("/api/v1/nodes/{id}/status", "lease renewal by status"),
    ("/api/v1/nodes/{id}/actions/{action}", "node actions"),
    ("/api/v1/reasoners/{target}", "the legacy call route"),
    ("/api/v1/skills/{target}", "the legacy call route"),
    ("/api/v1/sessions", "sessions"),
    ("/api/v1/sessions/{*rest}", "sessions"),
    ("/api/v1/triggers", "triggers"),
    ("/api/v1/triggers/{*rest}", "triggers"),
    ("/api/v1/sources", "trigger sources"),
    ("/api/v1/sources/{*rest}", "trigger sources"),
    ("/api/v1/agentic/{*rest}", "the agentic surface"),
    ("/api/v1/cluster", "several replicas"),
    ("/api/v1/workers", "workers"),
    ("/api/v1/workers/{*rest}", "workers"),
    ("/v1/agents/presence", "presence apart from GET /v1/agents"),
    ("/v1/{*rest}", "this part of Relay's engine"),
];

pub(crate) fn routes() -> OpenApiRouter<App> {
    LATER
        .iter()
        .fold(OpenApiRouter::new(), |router, (path, what)| {
            router.route(
                path,
                any(async || match is_spoken_at(path) {
                    true => Problem::not_supported_of_relay(what),
                    false => Problem::not_supported(what),
                }),
            )
        })
}
