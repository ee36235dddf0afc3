//! The quarantine: events and rows that could not be handled and were set aside whole, so that
//! one bad thing harms one thing. Looking at them and dropping them. Nothing is tried again
//! from here: what was set aside was answered then, and its sender has moved on.

use axum::Json;
use axum::extract::State;
use muster_store::QuarantineItem;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::{PathText, Query};
use crate::api::caller::Caller;
use crate::api::keys::audit;
use crate::api::problem::Problem;
use crate::app::App;

/// Items of one answer, at most; more than a start sets aside.
const LIMIT_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(drop_item))
}

/// How much of the quarantine.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// At most so many; 100 when absent, 1,000 at most.
    limit: Option<usize>,
}

/// Something set aside.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarantineItem)]
struct Item {
    /// Its id.
    id: String,
    /// When.
    at: String,
    /// `event` or `row`.
    kind: String,
    /// What it was about.
    about: String,
    /// What went wrong.
    error: String,
    /// The thing itself, for a person; without payloads and secrets.
    what: String,
}

impl From<QuarantineItem> for Item {
    fn from(item: QuarantineItem) -> Self {
        Self {
            id: item.id,
            at: item.at.rfc3339(),
            kind: item.kind,
            about: item.about,
            error: item.error,
            what: item.what,
        }
    }
}

/// What was set aside.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quarantine)]
struct Items {
    /// Newest first.
    items: Vec<Item>,
}

/// List what was set aside
#[utoipa::path(get, path = "/api/v1/quarantine", tag = "quarantine", params(Wanted),
    responses((status = 200, description = "Newest first.", body = Items)))]
async fn list(
    State(app): State<App>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Items>, Problem> {
    let limit = wanted.limit.unwrap_or(100).clamp(1, LIMIT_MAX);
    let items = app
        .blocking(move |stores| stores.decisions.quarantine(limit))
        .await?;
    Ok(Json(Items {
        items: items.into_iter().map(Item::from).collect(),
    }))
}

/// Show one thing that was set aside
#[utoipa::path(get, path = "/api/v1/quarantine/{id}", tag = "quarantine", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The thing.", body = Item), (status = 404, description = "No such thing.")))]
async fn show(State(app): State<App>, PathText(id): PathText) -> Result<Json<Item>, Problem> {
    let items = app
        .blocking(|stores| stores.decisions.quarantine(usize::MAX >> 1))
        .await?;
    let found = items.into_iter().find(|item| item.id == id);
    Ok(Json(found.ok_or_else(nothing_there)?.into()))
}

/// Drop one thing that was set aside
///
/// It is gone then. An event that was set aside was answered when it happened; a row that was
/// set aside is out of the decisions, and dropping it does not bring it back.
#[utoipa::path(post, path = "/api/v1/quarantine/{id}/drop", tag = "quarantine", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "What was dropped.", body = Item), (status = 404, description = "No such thing.")))]
async fn drop_item(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
) -> Result<Json<Item>, Problem> {
    let (now, by) = (app.clock.now(), caller.principal.clone());
    let dropped = app
        .blocking(move |stores| {
            let items = stores.decisions.quarantine(usize::MAX >> 1)?;
            let found = items
                .into_iter()
                .find(|item| item.id == id)
                .ok_or_else(nothing_there)?;
            audit(
                stores,
                now,
                &by,
                "quarantine.dropped",
                &found.id,
                format!("{} {}: {}", found.kind, found.about, found.error),
            )?;
            if !stores.decisions.drop_quarantined(&found.id)? {
                return Err(nothing_there());
            }
            Ok::<_, Problem>(found)
        })
        .await?;
    Ok(Json(dropped.into()))
}

fn nothing_there() -> Problem {
    Problem::not_found("nothing of that id is set aside; see `muster quarantine list`")
}
