//! The fleet as a whole: numbers, alarms, drift, and the end of a doubt.

use axum::Json;
use axum::extract::State;
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply};
use muster_wire::api::At;
use muster_wire::api::fleet::{DoubtEnded, Fleet, FleetDrift};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{ask, conflict, show, unexpected, wish_on_record};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(fleet))
        .routes(routes!(drift))
        .routes(routes!(end_doubt))
}

/// The fleet in numbers
///
/// Nodes and workers by state, capacity that is reachable, used and unknown, and what needs
/// attention. A doubt means that so many fell silent at once that nothing acts on it.
#[utoipa::path(get, path = "/api/v1/fleet", tag = "fleet",
    responses((status = 200, description = "Numbers and alarms", body = Fleet)))]
async fn fleet(State(app): State<App>) -> Result<Json<Fleet>, Problem> {
    let stamp = Stamp::now(&app);
    match ask(&app, FleetQuestion::Summary).await? {
        FleetReply::Summary(summary) => Ok(Json(show::summary(stamp, &summary))),
        _ => Err(unexpected("the summary of the fleet")),
    }
}

/// Where nodes say other than what is believed
#[utoipa::path(get, path = "/api/v1/fleet/drift", tag = "fleet",
    responses((status = 200, description = "Lasting differences, with names", body = FleetDrift)))]
async fn drift(State(app): State<App>) -> Result<Json<FleetDrift>, Problem> {
    match ask(&app, FleetQuestion::Drift).await? {
        FleetReply::Drift(drifts) => Ok(Json(FleetDrift {
            as_of: At(app.clock.now()),
            count: drifts.len() as u64,
            drift: drifts.iter().map(show::drift).collect(),
        })),
        _ => Err(unexpected("a question about drift")),
    }
}

/// End the doubt about ourselves
///
/// From then on what is silent is acted on again.
#[utoipa::path(post, path = "/api/v1/fleet/doubt/end", tag = "fleet",
    responses((status = 200, description = "It is over, or there was none", body = DoubtEnded)))]
async fn end_doubt(State(app): State<App>, caller: Caller) -> Result<Json<DoubtEnded>, Problem> {
    let by = caller.principal.clone();
    let about = |reply: Option<&FleetReply>| match reply {
        Some(FleetReply::Taken | FleetReply::Summary(_)) => Some(("fleet".into(), String::new())),
        _ => None,
    };
    let make = |waiter| FleetEvent::DoubtEnded { waiter, by };
    let reply = wish_on_record(&app, &caller, "fleet.doubt_ended", about, make).await?;
    let ended = match reply {
        FleetReply::Taken | FleetReply::Summary(_) => true,
        FleetReply::Conflict(message) => return Err(conflict(message)),
        _ => return Err(unexpected("the end of a doubt")),
    };
    Ok(Json(DoubtEnded { ended }))
}
