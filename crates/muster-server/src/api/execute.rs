//! `POST /api/v1/execute/…`: the sync and the async lane.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use muster_engine::Reply;
use muster_engine::effect::Receipt;
use muster_wire::{ExecutionId, Lane};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::call;
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use super::submit::submit;
use super::write::Writer;
use crate::app::App;
use crate::bodies::{Held, Patience};

const EXECUTION: HeaderName = HeaderName::from_static("x-execution-id");
const RUN: HeaderName = HeaderName::from_static("x-run-id");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(execute_sync))
        .routes(routes!(execute_async))
}

/// Calls a function and waits for its end.
#[utoipa::path(
    post, path = "/api/v1/execute/{target}", tag = "calls",
    params(("target" = String, Path, description = "agent.function")),
    request_body(content = serde_json::Value, description = "{\"input\": {…}, \"priority\"?, \"deadline\"?, \"on_parent_end\"?: \"detach\"}"),
    responses(
        (status = 200, description = "It ended well", body = serde_json::Value),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "No such agent or function"),
        (status = 502, description = "It failed; the error shape and the execution at once"),
        (status = 503, description = "Refused; nothing was stored"),
        (status = 504, description = "Still running, unreachable or out of time"),
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
    let call = call::read(
        &target,
        Lane::Sync,
        &caller,
        &headers,
        &held.bytes,
        app.clock.now(),
    )?;
    let webhook_asked = call.webhook_asked;
    let minted = call.submission.execution.clone();
    // The wait may be long: the head's buffer is not kept for it.
    drop(headers);
    match submit(&app, call, held).await? {
        Reply::Ended(view) => {
            let view = show::with_payloads(&app, view).await?;
            let mut response = show::ended(&view, webhook_asked);
            name(&mut response, &view.row.id, view.row.run.as_str());
            if view.row.id != minted {
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
    request_body(content = serde_json::Value, description = "{\"input\": {…}, \"priority\"?, \"deadline\"?, \"on_parent_end\"?: \"detach\"}"),
    responses(
        (status = 202, description = "Accepted and stored", body = serde_json::Value),
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
    let call = call::read(
        &target,
        Lane::Async,
        &caller,
        &headers,
        &held.bytes,
        app.clock.now(),
    )?;
    let webhook_asked = call.webhook_asked;
    match submit(&app, call, held).await? {
        Reply::Accepted(receipt) => Ok(accepted(&receipt, &target, webhook_asked)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "an async call was answered {other:?}"
        ))),
    }
}

async fn read_body(app: &App, body: Body) -> Result<Held, Problem> {
    let limit = usize::try_from(app.config.server.max_body.0).unwrap_or(usize::MAX);
    let read = app.room.read(body, limit, Patience::Usual).await;
    read.map_err(|why| why.problem(limit))
}

fn accepted(receipt: &Receipt, target: &str, webhook_asked: bool) -> Response {
    let mut writer = Writer::object();
    show::receipt(&mut writer, receipt, target);
    show::webhook(&mut writer, webhook_asked);
    let mut response = writer.answer(StatusCode::ACCEPTED);
    name(&mut response, &receipt.execution, receipt.run.as_str());
    if receipt.replayed {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Names execution and run in the headers.
fn name(response: &mut Response, execution: &ExecutionId, run: &str) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(execution.as_str()) {
        headers.insert(EXECUTION, value);
    }
    if let Ok(value) = HeaderValue::from_str(run) {
        headers.insert(RUN, value);
    }
}
