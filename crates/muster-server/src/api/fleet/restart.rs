//! The restart of a worker by somebody's wish: another process, the same worker.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use muster_engine::fleet::effect::{FleetRefusal, RestartCame};
use muster_engine::fleet::event::RestartAsk;
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply};
use muster_wire::api::fleet::{RestartMade, WorkerRestarted};
use muster_wire::{Category, WorkerId};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::consequence::{self, Dry};
use super::placement::refused;
use super::release::grace;
use super::workers::{Found, find};
use super::{ask, no_worker, optional, reason, show, unexpected, wish};
use crate::api::body::{PathText, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::keys::audit;
use crate::api::problem::Problem;
use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(restart))
}

/// How to restart it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Restart {
    /// How long between SIGTERM and SIGKILL, like `10s`; its own grace without it.
    #[serde(default)]
    grace: Option<String>,
    /// Why; told with the exit.
    #[serde(default)]
    reason: Option<String>,
}

/// Restart a worker
///
/// Its process is ended like by a release, and started again by its node whatever its policy,
/// under the same id, with the same variables, key and terminal. Answered when the new process has
/// lived through its start window, or has ended. Asked twice at once, it is restarted once.
#[utoipa::path(post, path = "/api/v1/fleet/workers/{worker}/restart", tag = "fleet",
    params(("worker" = String, Path, description = "Id, or the name of a living one"), Dry),
    request_body(content = Restart, description = "May be absent."),
    responses((status = 200, description = "It was restarted; with dry_run the consequence", body = WorkerRestarted),
              (status = 202, description = "Its node was asked, and has not answered: it is under way", body = WorkerRestarted),
              (status = 404, description = "No such worker"),
              (status = 409, description = "conflict: it has ended, or its node cannot be told now; unsupported_by_node")))]
pub(crate) async fn restart(
    State(app): State<App>,
    caller: Caller,
    PathText(worker): PathText,
    Query(dry): Query<Dry>,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let asked: Restart = optional(&bytes, "{grace?, reason?}")?;
    let grace = grace(asked.grace.as_deref())?;
    let reason = reason(asked.reason)?;
    let found = find(&app, &worker).await?;
    if dry.dry_run {
        let refused = refusal_of(&app, &found).await?;
        let would = consequence::of_restart(&app, found.row(), grace, refused);
        return Ok(Json(WorkerRestarted::Would(would)).into_response());
    }
    if let Found::Past(_) = found {
        return Err(refused(ended(&found)));
    }
    let id: WorkerId = found.id().clone();
    if let FleetReply::Refused(refusal) = ask(&app, FleetQuestion::Restart(id.clone())).await? {
        return Err(refused(refusal));
    }
    note(&app, &caller, &id, reason.as_deref()).await?;
    let by = caller.principal.clone();
    let reply = wish(&app, |waiter| {
        FleetEvent::RestartAsked(Box::new(RestartAsk {
            waiter,
            worker: id,
            grace,
            by,
            reason,
        }))
    })
    .await?;
    let (view, came) = match reply {
        FleetReply::Restarted { worker, came } => (worker, came),
        FleetReply::Refused(refusal) => return Err(refused(refusal)),
        FleetReply::UnknownWorker => return Err(no_worker(&worker)),
        _ => return Err(unexpected("a restart")),
    };
    let status = match came {
        RestartCame::Runs | RestartCame::Exited => StatusCode::OK,
        RestartCame::Unconfirmed => StatusCode::ACCEPTED,
    };
    let body = WorkerRestarted::Did(Box::new(RestartMade {
        started: came == RestartCame::Runs,
        under_way: came == RestartCame::Unconfirmed,
        worker: show::worker(&view),
    }));
    Ok((status, Json(body)).into_response())
}

/// Writes the line of the audit log, first: the plane stores nothing else of a restart, and none is
/// to be without one.
async fn note(
    app: &App,
    caller: &Caller,
    worker: &WorkerId,
    reason: Option<&str>,
) -> Result<(), Problem> {
    let (now, by) = (app.clock.now(), caller.principal.clone());
    let (worker, reason) = (worker.clone(), reason.unwrap_or_default().to_owned());
    app.blocking(move |stores| {
        audit(
            stores,
            now,
            &by,
            "worker.restarted",
            worker.as_str(),
            reason,
        )
    })
    .await
}

/// Why it would not be restarted now.
async fn refusal_of(app: &App, found: &Found) -> Result<Option<String>, Problem> {
    let said = |refusal: FleetRefusal| {
        let hint = refusal.hint.map(|hint| format!("; {hint}"));
        refusal.message + &hint.unwrap_or_default()
    };
    if let Found::Past(_) = found {
        return Ok(Some(said(ended(found))));
    }
    match ask(app, FleetQuestion::Restart(found.id().clone())).await? {
        FleetReply::Worker(_) => Ok(None),
        FleetReply::Refused(refusal) => Ok(Some(said(refusal))),
        FleetReply::UnknownWorker => Err(no_worker(found.id().as_str())),
        _ => Err(unexpected("a question about a restart")),
    }
}

/// It ended so long ago that it is only in the store.
fn ended(found: &Found) -> FleetRefusal {
    FleetRefusal {
        category: Category::Conflict,
        message: format!(
            "{} has ended: there is nothing to start again",
            found.row().name
        ),
        hint: Some("start it anew: muster spawn".to_owned()),
        retry_after: None,
        passed_over: Vec::new(),
    }
}
