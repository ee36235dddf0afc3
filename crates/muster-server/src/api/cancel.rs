//! Cancelling one execution, or a whole run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use muster_engine::event::{Cancel, TreeCancel, Waiter};
use muster_engine::{Event, Reply};
use muster_wire::api::act::{Act, CancelAnswer};
use muster_wire::{Category, ExecutionId, RunId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, Query, RawBody};
use super::caller::Caller;
use super::dry::{self, DryRun};
use super::problem::{Answer, Problem};
use super::show;
use super::write::{Writer, string};
use crate::app::App;
use crate::driver::DriverGone;
use crate::driver::record::Line;

/// The longest reason that is taken.
pub(crate) const REASON_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(cancel_tree))
}

#[derive(Deserialize, Default)]
struct Why {
    #[serde(default)]
    reason: Option<String>,
}

/// Cancels one execution. The record is final at once; its agent is told.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/cancel", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    responses(
        (status = 200, description = "Cancelled", body = CancelAnswer),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It had ended"),
    )
)]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    let execution = show::execution_id(&id)?;
    if dry.is_wanted() {
        reason(&body)?;
        return dry::answer(dry::one(&app, &caller, Act::Cancel, &execution).await?);
    }
    let stopped = one(&app, &caller, &execution, reason(&body)?).await?;
    Ok(cancelled(
        Writer::object().text("execution_id", execution.as_str()),
        &stopped,
    ))
}

/// What a cancel did.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// Executions that ended by it.
    pub(crate) ended: Vec<ExecutionId>,
    /// Attempts that are being told.
    pub(crate) told: u32,
}

/// Cancels one execution.
///
/// # Errors
/// 404 when there is none that the caller may stop, 409 when it had ended.
pub(crate) async fn one(
    app: &App,
    caller: &Caller,
    execution: &ExecutionId,
    reason: Option<Arc<str>>,
) -> Result<Stopped, Problem> {
    if !caller.stops_all() {
        show::find(app, execution)
            .await?
            .filter(|view| caller.sees(&view.row.principal))
            .ok_or_else(|| show::unknown_execution(execution))?;
    }
    let (id, by, why) = (execution.clone(), caller.principal.clone(), reason.clone());
    let make = |waiter| {
        Event::CancelRequested(Box::new(Cancel {
            waiter,
            execution: id,
            by,
            reason,
            known: None,
        }))
    };
    let (action, object) = ("execution.cancelled", execution.as_str());
    match ask(app, caller, action, object, why, make).await? {
        Reply::Cancelled { ended, told } => Ok(Stopped { ended, told }),
        Reply::AlreadyEnded { status } => Err(Problem::new(
            Category::Conflict,
            format!("the execution has ended already: {status}"),
        )
        .execution(execution.as_str())),
        Reply::UnknownExecution => Err(show::unknown_execution(execution)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a cancel was answered {other:?}"
        ))),
    }
}

/// Cancels a run: open members end in one commit, and new ones are refused.
#[utoipa::path(
    post, path = "/api/v1/workflows/{run}/cancel-tree", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    responses(
        (status = 200, description = "Cancelled", body = CancelAnswer),
        (status = 404, description = "No such run"),
    )
)]
async fn cancel_tree(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    let run = RunId::parse(&run).map_err(|e| Problem::validation(format!("run id: {e}")))?;
    if dry.is_wanted() {
        reason(&body)?;
        return dry::answer(dry::tree(&app, &caller, Act::CancelTree, &run).await?);
    }
    let stopped = tree(&app, &caller, &run, reason(&body)?).await?;
    Ok(cancelled(
        Writer::object().text("run_id", run.as_str()),
        &stopped,
    ))
}

/// Cancels a run.
///
/// # Errors
/// 404 when there is none that the caller may stop, 409 when it had ended.
pub(crate) async fn tree(
    app: &App,
    caller: &Caller,
    run: &RunId,
    reason: Option<Arc<str>>,
) -> Result<Stopped, Problem> {
    if !caller.stops_all() {
        let wanted = run.clone();
        app.blocking(move |stores| stores.decisions.run(&wanted))
            .await?
            .filter(|found| caller.sees(&found.root.principal))
            .ok_or_else(|| unknown_run(run))?;
    }
    let (id, by, why) = (run.clone(), caller.principal.clone(), reason.clone());
    let make = |waiter| {
        Event::TreeCancelRequested(Box::new(TreeCancel {
            waiter,
            run: id,
            by,
            reason,
            known: None,
        }))
    };
    match ask(app, caller, "run.cancelled", run.as_str(), why, make).await? {
        Reply::Cancelled { ended, told } => Ok(Stopped { ended, told }),
        Reply::AlreadyEnded { status } => Err(Problem::new(
            Category::Conflict,
            format!("the run has ended already: {status}"),
        )),
        Reply::UnknownRun => Err(unknown_run(run)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a cancel was answered {other:?}"
        ))),
    }
}

/// Asks, with a line for the audit log: of what a person or a caller does, not of what an agent
/// does about its own children.
async fn ask(
    app: &App,
    caller: &Caller,
    action: &'static str,
    object: &str,
    reason: Option<Arc<str>>,
    make: impl FnOnce(Waiter) -> Event,
) -> Result<Reply, DriverGone> {
    if caller.key_agent.is_some() || caller.worker.is_some() {
        return app.driver.ask(make).await;
    }
    let object = object.to_owned();
    let line = Line::new(&caller.principal, action, move |reply| {
        let Some(Reply::Cancelled { ended, .. }) = reply else {
            return None;
        };
        let mut detail = format!("{} ended", ended.len());
        if let Some(reason) = &reason {
            detail = format!("{detail}: {reason}");
        }
        Some((object.clone(), detail))
    });
    app.driver.ask_on_record(line, make).await
}

pub(crate) fn unknown_run(run: &RunId) -> Problem {
    Problem::not_found(format!("there is no run {run}"))
}

fn cancelled(writer: &mut Writer, stopped: &Stopped) -> Response {
    writer
        .text("status", "cancelled")
        .list("cancelled", &stopped.ended, |mut out, id| {
            string(&mut out, id.as_str());
            out
        })
        .number("told", stopped.told.into())
        .answer(StatusCode::OK)
}

/// The reason in a body that may be absent.
pub(crate) fn reason(body: &[u8]) -> Result<Option<Arc<str>>, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let why: Why = body::json(body, "{reason?}")?;
    match why.reason {
        Some(reason) if reason.len() > REASON_MAX => Err(Problem::validation(format!(
            "the reason has more than {REASON_MAX} bytes"
        ))),
        reason => Ok(reason.filter(|reason| !reason.is_empty()).map(Into::into)),
    }
}
