//! The end of a worker by somebody's wish, and of a placement that waits.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use muster_engine::fleet::{FleetEvent, FleetReply};
use muster_wire::WorkerId;
use muster_wire::api::fleet::{ReleaseMade, WorkerReleased};
use muster_wire::id::minted_noun;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::consequence::{self, Dry};
use super::workers::find;
use super::{conflict, no_worker, optional, reason, show, unexpected, wish_on_record};
use crate::api::body::{PathText, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::config::Span;

/// The longest time between SIGTERM and SIGKILL.
const GRACE_MAX: Duration = Duration::from_secs(3600);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(release))
}

/// How to end it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Release {
    /// How long between SIGTERM and SIGKILL, like `10s`; its own grace without it.
    #[serde(default)]
    grace: Option<String>,
    /// Close its record although its node cannot be told: the node is gone for good.
    #[serde(default)]
    force: bool,
    /// Why; kept with the worker.
    #[serde(default)]
    reason: Option<String>,
}

/// The time between SIGTERM and SIGKILL as somebody gave it, checked.
pub(super) fn grace(text: Option<&str>) -> Result<Option<Duration>, Problem> {
    let grace = text.map(Span::parse).transpose();
    let grace = grace.map_err(|error| Problem::validation(format!("grace: {error}")))?;
    if grace.is_some_and(|grace| grace.0 > GRACE_MAX) {
        return Err(Problem::validation("grace: at most 1h"));
    }
    Ok(grace.map(|grace| grace.0))
}

/// End a worker
///
/// Answered when its process has ended. 202 when its node cannot be told now: it is told when it
/// comes back. A placement that waits is cancelled.
#[utoipa::path(post, path = "/api/v1/fleet/workers/{worker}/release", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one"), Dry),
    request_body(content = Release, description = "May be absent."),
    responses((status = 200, description = "It has ended; with dry_run the consequence", body = WorkerReleased),
              (status = 202, description = "Its end is under way", body = WorkerReleased),
              (status = 404, description = "No such worker"),
              (status = 409, description = "Its state does not allow it")))]
pub(crate) async fn release(
    State(app): State<App>,
    caller: Caller,
    PathText(worker): PathText,
    Query(dry): Query<Dry>,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let asked: Release = optional(&bytes, "{grace?, force?, reason?}")?;
    let grace = grace(asked.grace.as_deref())?;
    let reason = reason(asked.reason)?;
    if dry.dry_run {
        let found = find(&app, &worker).await?;
        let would = consequence::of_release(&app, &found, grace, asked.force);
        return Ok(Json(WorkerReleased::Would(would)).into_response());
    }
    let id = match WorkerId::parse(&worker) {
        // An id is found by the engine itself, in the store if need be.
        Ok(id) if minted_noun(&worker).is_some() => id,
        _ => find(&app, &worker).await?.id().clone(),
    };
    let (by, object, detail) = (caller.principal.clone(), id.clone(), reason.clone());
    // The wish stands before its end is answered.
    let about = move |reply: Option<&FleetReply>| match reply {
        None | Some(FleetReply::Released { .. }) => Some((
            object.to_string(),
            detail.as_deref().unwrap_or_default().to_owned(),
        )),
        _ => None,
    };
    let make = |waiter| FleetEvent::ReleaseAsked {
        waiter,
        worker: id,
        grace,
        force: asked.force,
        by,
        reason,
        known: None,
    };
    let reply = wish_on_record(&app, &caller, "worker.released", about, make).await?;
    let (view, ended) = match reply {
        FleetReply::Released { worker, ended } => (worker, ended),
        FleetReply::UnknownWorker => return Err(no_worker(&worker)),
        FleetReply::Conflict(message) => return Err(conflict(message)),
        _ => return Err(unexpected("a release")),
    };
    let status = if ended {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    let worker = show::worker(&view);
    let body = WorkerReleased::Did(Box::new(ReleaseMade { ended, worker }));
    Ok((status, Json(body)).into_response())
}
