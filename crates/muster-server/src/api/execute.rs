//! `POST /api/v1/execute/…`: the sync and the async lane.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use muster_engine::effect::Receipt;
use muster_engine::event::{Submission, Waiter};
use muster_engine::row::PayloadKind;
use muster_engine::{Event, Refusal, Reply};
use muster_wire::{Category, ExecutionId, Lane};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::call::{self, Call};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use super::write::Writer;
use crate::app::{App, LifePhase};
use crate::bodies::{Held, Patience, SMALL};
use crate::{inputs, payloads};

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

/// Checks the input, stores a large one first, tells the engine, waits for its word.
async fn submit(app: &App, call: Call, held: Held) -> Result<Reply, Problem> {
    let mut submission = call.submission;
    let entry = app.directory.agent(submission.agent.as_str());
    let function = entry
        .as_ref()
        .and_then(|agent| agent.function(&submission.function));
    if let Some(function) = &function {
        submission.input_fault =
            inputs::fault(app, &submission.agent, function, &submission.input.0).await;
    }
    if submission.input.len() <= SMALL {
        // The input was copied out: the body and its room are given back before the wait.
        drop(held);
        return tell(app, submission).await;
    }
    would_refuse(app, &submission, function.is_some())?;
    // A large input's steps must all happen, or none: they do not hang on the connection.
    let work = app.clone();
    let task = app
        .tasks
        .spawn(async move { submit_large(&work, submission, held).await });
    task.await.map_err(|error| Problem::internal(&error))?
}

async fn tell(app: &App, mut submission: Submission) -> Result<Reply, Problem> {
    let execution = submission.execution.clone();
    let lane = submission.lane;
    let make = |waiter: Waiter| {
        submission.waiter = waiter;
        Event::Submitted(Box::new(submission))
    };
    if lane == Lane::Sync {
        Ok(app.driver.ask_with_place(&execution, make).await?)
    } else {
        Ok(app.driver.ask(make).await?)
    }
}

async fn submit_large(app: &App, mut submission: Submission, held: Held) -> Result<Reply, Problem> {
    let input = std::mem::take(&mut submission.input);
    let id = submission.execution.clone();
    let size = input.len() as u64;
    payloads::store(&app.stores, &id, PayloadKind::Input, input.0).await?;
    drop(held);
    submission.input_stored = Some(size);
    let reply = tell(app, submission).await;
    if !took(&reply, &id) {
        payloads::drop_stored(&app.stores, &id, PayloadKind::Input).await;
    }
    reply
}

/// Whether an execution of this id exists after this reply.
fn took(reply: &Result<Reply, Problem>, id: &ExecutionId) -> bool {
    match reply {
        Ok(Reply::Accepted(receipt)) => receipt.execution == *id,
        Ok(Reply::Ended(view)) => view.row.id == *id,
        Ok(Reply::StillRunning { execution, .. }) => execution == id,
        Ok(Reply::Refused(_)) => false,
        // Nobody knows: what is left over is collected.
        Ok(_) | Err(_) => true,
    }
}

/// A cheap look at whether admission would refuse, so that nothing large is stored for that.
fn would_refuse(app: &App, submission: &Submission, function_known: bool) -> Result<(), Problem> {
    let refusal = if let Some(fault) = &submission.input_fault {
        Some(Refusal::Input {
            field: fault.field.clone(),
            message: fault.message.clone(),
        })
    } else if app.phase.get() >= LifePhase::Draining {
        Some(Refusal::Draining)
    } else {
        match app.directory.agent(submission.agent.as_str()) {
            None => Some(Refusal::NoAgent {
                agent: submission.agent.clone(),
            }),
            Some(agent) if !function_known => Some(Refusal::NoFunction {
                agent: submission.agent.clone(),
                function: submission.function.clone(),
                has: agent.functions().iter().map(|f| f.name.clone()).collect(),
            }),
            Some(agent) => {
                agent
                    .down(app.clock.now(), &app.limits)
                    .map(|evidence| Refusal::AgentDown {
                        agent: submission.agent.clone(),
                        evidence,
                    })
            }
        }
    };
    match refusal {
        None => Ok(()),
        Some(refusal) => {
            let category: Category = refusal.category();
            app.meters.count(&muster_engine::effect::Count::Refused {
                lane: submission.lane,
                category,
            });
            Err(refusal.into())
        }
    }
}

fn accepted(receipt: &Receipt, target: &str, webhook_asked: bool) -> Response {
    let created_at = receipt.created_at.rfc3339();
    let mut writer = Writer::object();
    writer
        .text("execution_id", receipt.execution.as_str())
        .text("run_id", receipt.run.as_str())
        .text("workflow_id", receipt.run.as_str())
        .text("status", receipt.status.for_sdk())
        .text("target", target)
        .text("type", receipt.kind.word())
        .text("created_at", &created_at)
        .text("enqueued_at", &created_at);
    if let Some(position) = &receipt.position {
        writer
            .number(
                "queue_position",
                i64::try_from(position.ahead).unwrap_or(i64::MAX),
            )
            .flag("queue_position_exact", position.exact);
        match position.starts_in_ms {
            Some(ms) => writer.number("starts_in_ms", i64::try_from(ms).unwrap_or(i64::MAX)),
            None => writer.raw("starts_in_ms", b"null"),
        };
    }
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
