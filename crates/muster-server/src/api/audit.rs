//! The audit log: who changed what may be done, and what was decided by hand.

use axum::Json;
use axum::extract::State;
use muster_store::annex::AuditFilter;
use muster_wire::Timestamp;
use muster_wire::api::audit::{AuditLine, AuditPage};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Query;
use crate::api::problem::Problem;
use crate::app::App;

/// Lines of one answer, at most.
const LIMIT_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(audit_log))
}

/// Which lines of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// At most so many lines; 100 when absent, 1,000 at most.
    limit: Option<usize>,
    /// Behind the lines of the page before.
    cursor: Option<String>,
    /// Only what this principal did.
    actor: Option<String>,
    /// Only this action (`key.created`), or every action of a kind (`key`).
    action: Option<String>,
    /// Only what was done to this.
    object: Option<String>,
    /// At or after: RFC 3339.
    since: Option<String>,
    /// Before: RFC 3339.
    until: Option<String>,
}

/// Read the audit log
#[utoipa::path(get, path = "/api/v1/audit", tag = "keys", params(Wanted),
    responses((status = 200, description = "Newest first.", body = AuditPage)))]
async fn audit_log(
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<AuditPage>, Problem> {
    let limit = wanted.limit.unwrap_or(100).clamp(1, LIMIT_MAX);
    let filter = AuditFilter {
        principal: wanted.actor,
        action: wanted.action,
        object: wanted.object,
        since: moment("since", wanted.since.as_deref())?,
        until: moment("until", wanted.until.as_deref())?,
        before: wanted.cursor.as_deref().map(position).transpose()?,
        // One more tells whether there is a next page.
        limit: limit + 1,
    };
    let mut rows = app
        .blocking(move |stores| stores.annex.audit(&filter))
        .await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|(n, _)| n.to_string());
    let lines = rows.into_iter().map(|(n, row)| AuditLine {
        n,
        at: row.at.into(),
        principal: row.principal,
        action: row.action,
        object: row.object,
        detail: row.detail,
    });
    Ok(Json(AuditPage {
        as_of: app.clock.now().into(),
        lines: lines.collect(),
        next_cursor: next,
    }))
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else {
        return Ok(None);
    };
    let at = Timestamp::parse(text);
    at.map(Some).ok_or_else(|| {
        Problem::validation(format!("{name} must be a moment like 2026-11-29T18:00:00Z"))
    })
}

fn position(cursor: &str) -> Result<u64, Problem> {
    cursor
        .parse()
        .map_err(|_| Problem::validation("cursor: not one that this plane gave; start without it"))
}
