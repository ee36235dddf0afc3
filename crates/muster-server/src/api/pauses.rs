//! Pausing and resuming one execution, or a whole run.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use muster_engine::event::{Pause, TreePause};
use muster_engine::{Event, Reply};
use muster_wire::api::act::{Act, PauseAnswer};
use muster_wire::{Category, ExecutionId, RunId, Status};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query, RawBody};
use super::caller::Caller;
use super::cancel::{reason, unknown_run};
use super::dry::{self, DryRun};
use super::problem::{Answer, Problem};
use super::show;
use super::write::{Writer, string};
use crate::app::App;
use crate::driver::record::Line;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(pause_tree))
        .routes(routes!(resume_tree))
}

/// Pauses one execution. What was not sent is not sent until it is resumed.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/pause", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = serde_json::Value, description = "{reason?}"),
    responses(
        (status = 200, description = "Paused, or it was already", body = PauseAnswer),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It has ended, or runs inside its caller's process"),
    )
)]
async fn pause(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    if dry.is_wanted() {
        reason(&body)?;
        let execution = show::execution_id(&id)?;
        return dry::answer(dry::one(&app, &caller, Act::Pause, &execution).await?);
    }
    one(&app, &caller, &id, &body, true).await
}

/// Resumes one execution: it has the state again that it had.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/resume", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = serde_json::Value, description = "{reason?}"),
    responses(
        (status = 200, description = "Resumed", body = PauseAnswer),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It is not paused, or has ended"),
    )
)]
async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    if dry.is_wanted() {
        reason(&body)?;
        let execution = show::execution_id(&id)?;
        return dry::answer(dry::one(&app, &caller, Act::Resume, &execution).await?);
    }
    one(&app, &caller, &id, &body, false).await
}

/// Pauses a run: its open members, and whatever joins it from then on.
#[utoipa::path(
    post, path = "/api/v1/workflows/{run}/pause-tree", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = serde_json::Value, description = "{reason?}"),
    responses(
        (status = 200, description = "Paused", body = PauseAnswer),
        (status = 404, description = "No such run"),
        (status = 409, description = "It has ended or was cancelled"),
    )
)]
async fn pause_tree(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    if dry.is_wanted() {
        reason(&body)?;
        let run = RunId::parse(&run).map_err(|e| Problem::validation(format!("run id: {e}")))?;
        return dry::answer(dry::tree(&app, &caller, Act::PauseTree, &run).await?);
    }
    tree(&app, &caller, &run, &body, true).await
}

/// Resumes a run: every paused member, also those that were paused one by one.
#[utoipa::path(
    post, path = "/api/v1/workflows/{run}/resume-tree", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = serde_json::Value, description = "{reason?}"),
    responses(
        (status = 200, description = "Resumed", body = PauseAnswer),
        (status = 404, description = "No such run"),
        (status = 409, description = "Nothing of it is paused"),
    )
)]
async fn resume_tree(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    if dry.is_wanted() {
        reason(&body)?;
        let run = RunId::parse(&run).map_err(|e| Problem::validation(format!("run id: {e}")))?;
        return dry::answer(dry::tree(&app, &caller, Act::ResumeTree, &run).await?);
    }
    tree(&app, &caller, &run, &body, false).await
}

async fn one(app: &App, caller: &Caller, id: &str, body: &[u8], on: bool) -> Answer {
    let execution = show::execution_id(id)?;
    let reason = reason(body)?;
    let (id, by) = (execution.clone(), caller.principal.clone());
    let make = |waiter| {
        Event::PauseRequested(Box::new(Pause {
            waiter,
            execution: id,
            on,
            by,
            reason,
            known: None,
        }))
    };
    let line = line(caller, execution.as_str(), on);
    match app.driver.ask_on_record(line, make).await? {
        Reply::Moved { executions, status } => {
            let mut writer = Writer::object();
            writer.text("execution_id", execution.as_str());
            Ok(moved(&mut writer, &executions, status, on))
        }
        Reply::AlreadyEnded { status } => Err(has_ended(&execution, status)),
        Reply::UnknownExecution => Err(show::unknown_execution(&execution)),
        Reply::Conflict { message, status } => {
            Err(conflict(message, status).execution(execution.as_str()))
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a pause was answered {other:?}"
        ))),
    }
}

async fn tree(app: &App, caller: &Caller, run: &str, body: &[u8], on: bool) -> Answer {
    let run = RunId::parse(run).map_err(|e| Problem::validation(format!("run id: {e}")))?;
    let reason = reason(body)?;
    let (id, by) = (run.clone(), caller.principal.clone());
    let make = |waiter| {
        Event::TreePauseRequested(Box::new(TreePause {
            waiter,
            run: id,
            on,
            by,
            reason,
            known: None,
        }))
    };
    let line = line(caller, run.as_str(), on);
    match app.driver.ask_on_record(line, make).await? {
        Reply::Moved { executions, status } => {
            let mut writer = Writer::object();
            writer.text("run_id", run.as_str());
            Ok(moved(&mut writer, &executions, status, on))
        }
        Reply::UnknownRun => Err(unknown_run(&run)),
        Reply::Conflict { message, status } => Err(conflict(message, status)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a pause was answered {other:?}"
        ))),
    }
}

/// Who stopped what is on record.
fn line(caller: &Caller, object: &str, on: bool) -> Line {
    let action = if on { "paused" } else { "resumed" };
    let object = object.to_owned();
    Line::new(&caller.principal, action, move |reply| {
        matches!(reply, Some(Reply::Moved { .. })).then(|| (object.clone(), String::new()))
    })
}

fn moved(writer: &mut Writer, executions: &[ExecutionId], status: Status, on: bool) -> Response {
    writer
        .text("status", status.for_sdk())
        .text("state", status.word())
        .flag("changed", !executions.is_empty())
        .list(
            if on { "paused" } else { "resumed" },
            executions,
            |mut out, id| {
                string(&mut out, id.as_str());
                out
            },
        )
        .answer(StatusCode::OK)
}

/// 409 for what has ended.
pub(crate) fn has_ended(execution: &ExecutionId, status: Status) -> Problem {
    Problem::new(
        Category::Conflict,
        format!("the execution has ended already: {status}"),
    )
    .execution(execution.as_str())
}

/// 409 with the state that is in the way.
pub(crate) fn conflict(message: String, status: Option<Status>) -> Problem {
    let problem = Problem::new(Category::Conflict, message);
    match status {
        Some(status) => problem.details(serde_json::json!({ "state": status.word() })),
        None => problem,
    }
}
