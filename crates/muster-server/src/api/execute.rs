//! `POST /api/v1/execute/…`: the sync and the async lane.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use muster_engine::Reply;
use muster_engine::effect::Receipt;
use muster_wire::api::execution::{CallAccepted, CallEnded, CallFailed};
use muster_wire::{ExecutionId, Lane};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::call;
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::restart;
use super::show;
use super::submit::submit;
use super::write::Writer;
use crate::app::App;
use crate::bodies::{Held, Patience};
use crate::webhooks::Registered;

const EXECUTION: HeaderName = HeaderName::from_static("x-execution-id");
const RUN: HeaderName = HeaderName::from_static("x-run-id");
const REPLAY_HIT: HeaderName = HeaderName::from_static("x-agentfield-replay-hit");
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(execute_sync))
        .routes(routes!(execute_async))
}

/// Calls a function and waits for its end.
#[utoipa::path(
    post, path = "/api/v1/execute/{target}", tag = "calls",
    params(("target" = String, Path, description = "agent.function")),
    request_body(content = serde_json::Value, description = "{\"input\": {…}, \"priority\"?, \"deadline\"?, \"on_parent_end\"?: \"detach\" | \"cancel\", \"context\"?: {\"llm_endpoint\"?}, \"webhook\"?: {\"url\", \"secret\"?, \"headers\"?}}"),
    responses(
        (status = 200, description = "It ended well", body = CallEnded),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "No such agent or function"),
        (status = 502, description = "It failed; the error shape and the execution at once", body = CallFailed),
        (status = 503, description = "Refused; nothing was stored"),
        (status = 504, description = "Still running, unreachable or out of time", body = CallFailed),
    )
)]
async fn execute_sync(
    State(app): State<App>,
    caller: Caller,
    PathText(target): PathText,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let held = read_body(&app, body).await?;
    app.identity
        .verify_submission(&headers, &held.bytes, app.clock.now())?;
    let mut call = call::read(
        &target,
        Lane::Sync,
        &caller,
        &headers,
        &held.bytes,
        app.clock.now(),
    )?;
    restart::only_what_is_seen(&app, &caller, &mut call).await?;
    let registered = call.seal_webhook(&app).await;
    let minted = call.submission.execution.clone();
    // The wait may be long: the head's buffer is not kept for it.
    drop(headers);
    match submit(&app, call, held).await? {
        Reply::Ended(view) => {
            let view = show::with_payloads(&app, view).await?;
            let joined = view.row.id != minted;
            let registered = if joined {
                registered.joined(show::has_webhook(&view.row))
            } else {
                registered
            };
            let mut response = show::ended(&view, &registered);
            name(&mut response, &view.row.id, view.row.run.as_str());
            if view.row.replayed_from().is_some() {
                response
                    .headers_mut()
                    .insert(REPLAY_HIT, HeaderValue::from_static("true"));
            }
            if joined {
                response
                    .headers_mut()
                    .insert(REPLAYED, HeaderValue::from_static("true"));
            }
            Ok(response)
        }
        Reply::StillRunning {
            execution,
            run,
            shutdown,
        } => {
            let mut response = show::still_running(&execution, run.as_str(), shutdown);
            name(&mut response, &execution, run.as_str());
            Ok(response)
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a sync call was answered {other:?}"
        ))),
    }
}

/// Calls a function and answers with its id at once.
#[utoipa::path(
    post, path = "/api/v1/execute/async/{target}", tag = "calls",
    params(("target" = String, Path, description = "agent.function")),
    request_body(content = serde_json::Value, description = "{\"input\": {…}, \"priority\"?, \"deadline\"?, \"on_parent_end\"?: \"detach\" | \"cancel\", \"context\"?: {\"llm_endpoint\"?}, \"webhook\"?: {\"url\", \"secret\"?, \"headers\"?}}"),
    responses(
        (status = 202, description = "Accepted and stored", body = CallAccepted),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "No such agent or function"),
        (status = 503, description = "Refused; nothing was stored"),
    )
)]
async fn execute_async(
    State(app): State<App>,
    caller: Caller,
    PathText(target): PathText,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let held = read_body(&app, body).await?;
    app.identity
        .verify_submission(&headers, &held.bytes, app.clock.now())?;
    let mut call = call::read(
        &target,
        Lane::Async,
        &caller,
        &headers,
        &held.bytes,
        app.clock.now(),
    )?;
    restart::only_what_is_seen(&app, &caller, &mut call).await?;
    let registered = call.seal_webhook(&app).await;
    let minted = call.submission.execution.clone();
    match submit(&app, call, held).await? {
        Reply::Accepted(receipt) => {
            let registered = if receipt.execution == minted {
                registered
            } else {
                registered.joined(has_webhook(&app, &receipt.execution).await?)
            };
            Ok(accepted(&receipt, &target, &registered))
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "an async call was answered {other:?}"
        ))),
    }
}

pub(super) async fn read_body(app: &App, body: Body) -> Result<Held, Problem> {
    let limit = usize::try_from(app.config.server.max_body.0).unwrap_or(usize::MAX);
    let read = app.room.read(body, limit, Patience::Usual).await;
    read.map_err(|why| why.problem(limit))
}

/// Whether an execution that was there before has a webhook.
pub(super) async fn has_webhook(app: &App, id: &ExecutionId) -> Result<bool, Problem> {
    if let Some(view) = app.views.get(id.as_str()) {
        return Ok(show::has_webhook(&view.row));
    }
    let id = id.clone();
    let (_, row) = app
        .blocking(move |stores| stores.decisions.execution(&id))
        .await?;
    Ok(row.is_some_and(|row| show::has_webhook(&row)))
}

fn accepted(receipt: &Receipt, target: &str, registered: &Registered) -> Response {
    let mut writer = Writer::object();
    show::receipt(&mut writer, receipt, target);
    show::webhook(&mut writer, registered);
    let mut response = writer.answer(StatusCode::ACCEPTED);
    name(&mut response, &receipt.execution, receipt.run.as_str());
    if receipt.replay_hit {
        response
            .headers_mut()
            .insert(REPLAY_HIT, HeaderValue::from_static("true"));
    }
    if receipt.replayed {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Names execution and run in the headers.
pub(super) fn name(response: &mut Response, execution: &ExecutionId, run: &str) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(execution.as_str()) {
        headers.insert(EXECUTION, value);
    }
    if let Ok(value) = HeaderValue::from_str(run) {
        headers.insert(RUN, value);
    }
}
