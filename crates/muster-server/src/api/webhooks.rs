//! The messages for webhooks: what was delivered, what waits and why, what was given up; and
//! sending again what was given up. Addresses are shown as far as scheme, host and port: the
//! rest may be secret.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use muster_store::outbox::{Delivery, DeliveryFilter, DeliveryState};
use muster_wire::plain;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, Query, RawBody};
use super::caller::Caller;
use super::keys::audit;
use super::paging::{LIMIT, LIMIT_MAX};
use super::problem::Problem;
use super::show;
use crate::app::App;
use crate::webhooks::message;

/// Messages that one redrive of all makes due at most in one transaction.
const REDRIVEN_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show_one))
        .routes(routes!(redrive_all))
        .routes(routes!(redrive))
}

/// Which messages.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// `pending`, `delivered` or `dead`.
    state: Option<String>,
    /// Only of this execution.
    execution: Option<String>,
    /// Continue after this: `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many; 50 when absent, 500 at most.
    limit: Option<usize>,
}

/// One message and what became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageShown {
    /// Its id: the receiver sees it as `webhook-id`, the same with each try.
    id: String,
    /// What it tells: `execution.succeeded`, `execution.failed`, `execution.cancelled` or
    /// `execution.timed_out`.
    r#type: &'static str,
    /// The execution.
    execution_id: String,
    /// Its run.
    run_id: String,
    /// Scheme, host and port of its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// `pending`, `delivered` or `dead`.
    state: &'static str,
    /// How often it was sent.
    tries: u32,
    /// When the execution ended.
    created_at: String,
    /// When it is sent next; absent while it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<String>,
    /// When it was last sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    tried_at: Option<String>,
    /// When it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
    /// When it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_at: Option<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// The HTTP status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_status: Option<u16>,
}

impl MessageShown {
    pub(crate) fn of(app: &App, delivery: Delivery) -> Self {
        let time = |at: Option<muster_wire::Timestamp>| at.map(|at| at.rfc3339());
        Self {
            id: message::id(app, delivery.seq),
            r#type: message::type_word(delivery.status),
            execution_id: delivery.execution.to_string(),
            run_id: delivery.run.to_string(),
            target: message::target(&delivery.webhook),
            state: delivery.state().word(),
            tries: delivery.tries,
            created_at: delivery.at.rfc3339(),
            next_at: time(delivery.next_at.filter(|_| !delivery.claimed)),
            tried_at: time(delivery.tried_at),
            delivered_at: time(delivery.delivered_at),
            dead_at: time(delivery.dead_at),
            last_error: delivery.last_error,
            last_status: delivery.last_status,
        }
    }
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookPage)]
struct Page {
    /// Newest first.
    webhooks: Vec<MessageShown>,
    /// How many.
    count: usize,
    /// Continue after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// What was made due again.
#[derive(Debug, Serialize, ToSchema)]
struct Redriven {
    /// How many messages.
    redriven: u64,
}

/// List messages for webhooks
#[utoipa::path(get, path = "/api/v1/webhooks", tag = "webhooks", params(Wanted),
    responses((status = 200, description = "A page.", body = Page), (status = 400, description = "A filter is not right.")))]
async fn list(State(app): State<App>, Query(wanted): Query<Wanted>) -> Result<Json<Page>, Problem> {
    let limit = wanted.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX);
    let cursor = wanted.cursor.as_deref().filter(|text| !text.is_empty());
    let filter = DeliveryFilter {
        state: wanted.state.as_deref().map(state).transpose()?,
        execution: wanted
            .execution
            .as_deref()
            .map(show::execution_id)
            .transpose()?,
        before: cursor.map(|text| seq(&app, text)).transpose()?,
    };
    let found = app
        .blocking(move |stores| stores.decisions.deliveries(&filter, limit))
        .await?;
    let next_cursor = (found.len() == limit)
        .then(|| found.last().map(|last| message::id(&app, last.seq)))
        .flatten();
    Ok(Json(Page {
        count: found.len(),
        webhooks: found
            .into_iter()
            .map(|delivery| MessageShown::of(&app, delivery))
            .collect(),
        next_cursor,
    }))
}

/// Show one message
#[utoipa::path(get, path = "/api/v1/webhooks/{id}", tag = "webhooks", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "The message.", body = MessageShown), (status = 404, description = "No such message.")))]
async fn show_one(
    State(app): State<App>,
    PathText(id): PathText,
) -> Result<Json<MessageShown>, Problem> {
    let found = find(&app, &id).await?;
    Ok(Json(MessageShown::of(&app, found)))
}

/// Send a message again that was given up
///
/// It gets all its tries anew. A message that is pending or delivered is 409.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/redrive", tag = "webhooks", params(("id" = String, Path, description = "Its id.")),
    responses((status = 200, description = "It is due.", body = MessageShown), (status = 404, description = "No such message."), (status = 409, description = "It was not given up.")))]
async fn redrive(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
) -> Result<Json<MessageShown>, Problem> {
    let found = find(&app, &id).await?;
    let (now, by, seq) = (app.clock.now(), caller.principal.clone(), found.seq);
    let object = id.clone();
    let is_dead = found.state() == DeliveryState::Dead;
    let redriven = app
        .blocking(move |stores| {
            if is_dead {
                audit(stores, now, &by, "webhook.redriven", &object, String::new())?;
            }
            Ok::<_, Problem>(stores.decisions.redrive_deliveries(Some(seq), now, 1)?)
        })
        .await?;
    if redriven == 0 {
        return Err(Problem::new(
            muster_wire::Category::Conflict,
            format!("this message is {}, not dead", found.state().word()),
        ));
    }
    app.webhooks.wake();
    show_one(State(app), PathText(id)).await
}

/// Send every message again that was given up
#[utoipa::path(post, path = "/api/v1/webhooks/redrive", tag = "webhooks",
    request_body(content = Option<serde_json::Value>, description = "Nothing, or an object."),
    responses((status = 200, description = "How many are due.", body = Redriven), (status = 400, description = "The body is neither empty nor an object.")))]
async fn redrive_all(
    State(app): State<App>,
    caller: Caller,
    RawBody(body): RawBody,
) -> Result<Json<Redriven>, Problem> {
    if !body.trim_ascii().is_empty() {
        body::json::<HashMap<String, IgnoredAny>>(&body, "empty or {}")?;
    }
    let (now, by) = (app.clock.now(), caller.principal.clone());
    let redriven = app
        .blocking(move |stores| {
            let dead = stores.decisions.delivery_counts()?.dead;
            if dead > 0 {
                let detail = plain::count(dead, "message");
                let what = "all that were dead";
                audit(stores, now, &by, "webhook.redriven", what, detail)?;
            }
            let mut all = 0;
            loop {
                let some = stores
                    .decisions
                    .redrive_deliveries(None, now, REDRIVEN_MAX)?;
                all += some;
                if some < REDRIVEN_MAX as u64 {
                    break;
                }
            }
            Ok::<_, Problem>(all)
        })
        .await?;
    app.webhooks.wake();
    Ok(Json(Redriven { redriven }))
}

fn state(word: &str) -> Result<DeliveryState, Problem> {
    DeliveryState::ALL
        .into_iter()
        .find(|state| state.word() == word)
        .ok_or_else(|| Problem::validation("state is pending, delivered or dead"))
}

fn seq(app: &App, text: &str) -> Result<u64, Problem> {
    message::seq_of(app, text).ok_or_else(|| {
        Problem::validation("cursor: not one that this plane gave; start without it")
    })
}

async fn find(app: &App, id: &str) -> Result<Delivery, Problem> {
    let none = || Problem::not_found("there is no message of that id; see `muster webhooks list`");
    let seq = message::seq_of(app, id).ok_or_else(none)?;
    let found = app
        .blocking(move |stores| stores.decisions.delivery(seq))
        .await?;
    found.ok_or_else(none)
}
