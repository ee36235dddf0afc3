//! Placements that wait, with why each node was passed over, and what a placement would come to.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use muster_engine::fleet::effect::{PassedOver as Over, PlanAsk, Taker};
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::api::At;
use muster_wire::api::fleet::{
    PassedOver, PlacementCandidate, PlacementEnd, PlacementPlan, Placements, WaitingPlacement,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::placement::Checked;
use super::{ask, show, unexpected};
use crate::api::body::Query;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

/// Placements of one answer when nobody says how many, and at most.
const LIMIT: usize = 20;
const LIMIT_MAX: usize = 100;
/// Nodes that each placement names as passed over.
const OVER_MAX: usize = 50;
/// Nodes that a plan names, of each kind.
const NAMED_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(waiting))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked {
    limit: Option<usize>,
}

/// Placements that wait
///
/// The oldest first, each with why every node was passed over.
#[utoipa::path(get, path = "/api/v1/fleet/placements", tag = "fleet",
    params(("limit" = Option<usize>, Query, description = "20 when absent, 100 at most")),
    responses((status = 200, description = "What waits for a place, and why", body = Placements)))]
async fn waiting(
    State(app): State<App>,
    Query(asked): Query<Asked>,
) -> Result<Json<Placements>, Problem> {
    let stamp = Stamp::now(&app);
    let limit = asked.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let reply = ask(&app, FleetQuestion::Placements(limit)).await?;
    let FleetReply::Placements(views, total) = reply else {
        return Err(unexpected("a question about placements"));
    };
    let placements = views.iter().map(|view| {
        let row = &view.worker.row;
        let over: &[Over] = match &view.refusal {
            Some(refusal) => &refusal.passed_over,
            None => &[],
        };
        WaitingPlacement {
            worker: show::worker(&view.worker),
            since: At(row.created_at),
            expires_at: row.place_by.map(At),
            text: match &view.refusal {
                Some(refusal) => refusal.message.clone(),
                None => "a node takes it next".to_owned(),
            },
            passed_over: named(over, OVER_MAX),
            passed_over_counts: counts(over),
        }
    });
    let placements: Vec<WaitingPlacement> = placements.collect();
    Ok(Json(Placements {
        as_of: stamp.as_of,
        position: stamp.position,
        count: placements.len() as u64,
        total,
        placements,
    }))
}

fn named(over: &[Over], most: usize) -> Vec<PassedOver> {
    over.iter().take(most).map(show::passed_over).collect()
}

fn counts(over: &[Over]) -> BTreeMap<String, u64> {
    show::by_word(over.iter().map(|over| (over.why, 1)))
}

/// What a placement would come to.
pub(super) async fn plan(app: &App, checked: &Checked) -> Result<PlacementPlan, Problem> {
    let question = FleetQuestion::Plan(Box::new(PlanAsk {
        target: checked.target.clone(),
        io: checked.spec.io,
        restart: checked.spec.restart,
        labels: checked.labels.clone(),
    }));
    let FleetReply::Plan(plan) = ask(app, question).await? else {
        return Err(unexpected("a question about a placement"));
    };
    let (would, text) = match (&plan.refusal, plan.takers.first()) {
        (None, Some(best)) => (PlacementEnd::Place, format!("{} takes it", best.name)),
        (Some(refusal), _) if plan.may_wait && checked.queue_for.is_some() => {
            let text = format!("it waits for a place: {}", refusal.message);
            (PlacementEnd::Queue, text)
        }
        (Some(refusal), _) => (PlacementEnd::Refuse, refusal.message.clone()),
        (None, None) => return Err(unexpected("a question about a placement")),
    };
    let placed = would == PlacementEnd::Place;
    let best = plan.takers.first().filter(|_| placed);
    let candidate = |taker: &Taker| PlacementCandidate {
        node: taker.node.clone(),
        name: taker.name.to_string(),
        free: taker.free,
        load: taker.load,
    };
    let refusal = plan.refusal.as_ref();
    Ok(PlacementPlan {
        dry_run: true,
        would,
        text,
        node: best.map(|taker| taker.node.clone()),
        node_name: best.map(|taker| taker.name.to_string()),
        error_category: refusal.map(|refusal| refusal.category.clone()),
        hint: refusal.and_then(|refusal| refusal.hint.clone()),
        candidates: plan.takers.iter().take(NAMED_MAX).map(candidate).collect(),
        passed_over: named(&plan.passed_over, NAMED_MAX),
        passed_over_counts: counts(&plan.passed_over),
    })
}
