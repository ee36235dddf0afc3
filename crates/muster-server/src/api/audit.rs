//! The audit log: who changed what may be done, and what was decided by hand.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Query;
use crate::api::problem::Problem;
use crate::app::App;

/// Lines of one answer, at most.
const LIMIT_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// How much of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// At most so many lines; 100 when absent, 1,000 at most.
    limit: Option<usize>,
}

/// One line.
#[derive(Debug, Serialize, ToSchema)]
struct Line {
    /// When.
    at: String,
    /// Who.
    principal: String,
    /// What: `key.created`, `hold.set`, …
    action: String,
    /// On what.
    object: String,
    /// Details for a person.
    detail: String,
}

/// Lines of the audit log.
#[derive(Debug, Serialize, ToSchema)]
struct Lines {
    /// Newest first.
    lines: Vec<Line>,
}

/// Read the audit log
#[utoipa::path(get, path = "/api/v1/audit", tag = "keys", params(Wanted),
    responses((status = 200, description = "Newest first.", body = Lines)))]
async fn list(
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Lines>, Problem> {
    let limit = wanted.limit.unwrap_or(100).clamp(1, LIMIT_MAX);
    let rows = app
        .blocking(move |stores| stores.annex.audit(limit))
        .await?;
    let lines = rows
        .into_iter()
        .map(|row| Line {
            at: row.at.rfc3339(),
            principal: row.principal,
            action: row.action,
            object: row.object,
            detail: row.detail,
        })
        .collect();
    Ok(Json(Lines { lines }))
}
