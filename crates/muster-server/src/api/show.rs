//! How an execution is shown: to the SDK's polls, to lists, to the caller of a sync call. One
//! place, so that the routes agree.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use muster_engine::effect::{ExecutionView, Receipt};
use muster_engine::row::{ExecutionRow, Payload, PayloadKind};
use muster_wire::{Category, ExecutionId, RunId, Status};
use serde::Serialize;

use super::problem::{Problem, status};
use super::webhooks::MessageShown;
use super::write::{Writer, answer};
use crate::app::AppState;
use crate::webhooks::Registered;

/// The newest view of an execution, from the working set or from the store, with its result
/// and details where it ended.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn find(
    app: &AppState,
    id: &ExecutionId,
) -> Result<Option<Arc<ExecutionView>>, Problem> {
    if let Some(view) = app.views.get(id.as_str()) {
        return Ok(Some(with_payloads(app, view).await?));
    }
    let wanted = id.clone();
    let read = move |stores: &muster_store::Stores| -> muster_store::StoreResult<_> {
        let (_, row) = stores.decisions.execution(&wanted)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let (result, details) = payloads(stores, &row)?;
        Ok(Some(Arc::new(ExecutionView {
            row: Arc::new(row),
            result,
            details,
        })))
    };
    Ok(app.blocking(read).await?)
}

/// The newest view of an execution without its payloads.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn find_row(
    app: &AppState,
    id: &ExecutionId,
) -> Result<Option<Arc<ExecutionView>>, Problem> {
    let bare = |row| ExecutionView {
        row,
        result: None,
        details: None,
    };
    if let Some(view) = app.views.get(id.as_str()) {
        return Ok(Some(Arc::new(bare(view.row.clone()))));
    }
    let wanted = id.clone();
    let (_, row) = app
        .blocking(move |stores| stores.decisions.execution(&wanted))
        .await?;
    Ok(row.map(|row| Arc::new(bare(Arc::new(row)))))
}

/// Fills in what is not at hand.
pub(crate) async fn with_payloads(
    app: &AppState,
    view: Arc<ExecutionView>,
) -> Result<Arc<ExecutionView>, Problem> {
    let row = &view.row;
    let lacks_result = row.result_size.is_some() && view.result.is_none();
    // Details have no size in the row: of a failure they are looked up.
    let lacks_details = row.status == Status::Failed && view.details.is_none();
    if !row.status.is_terminal() || !(lacks_result || lacks_details) {
        return Ok(view);
    }
    let row = row.clone();
    let (result, details) = app.blocking(move |stores| payloads(stores, &row)).await?;
    Ok(Arc::new(ExecutionView {
        row: view.row.clone(),
        result: result.or_else(|| view.result.clone()),
        details: details.or_else(|| view.details.clone()),
    }))
}

fn payloads(
    stores: &muster_store::Stores,
    row: &ExecutionRow,
) -> muster_store::StoreResult<(Option<Payload>, Option<Payload>)> {
    let result = match row.result_size {
        Some(_) => stores.decisions.payload(&row.id, PayloadKind::Result)?,
        None => None,
    };
    let details = match row.status {
        Status::Failed => stores
            .decisions
            .payload(&row.id, PayloadKind::ErrorDetails)?,
        _ => None,
    };
    Ok((result, details))
}

/// The body of an entry of a batch.
pub(crate) fn whole(out: Vec<u8>, view: &ExecutionView) -> Vec<u8> {
    whole_with(out, view, &Beside::default())
}

/// The approval that an execution asked for last.
#[derive(Debug)]
pub(crate) struct ApprovalShown {
    pub(crate) request: Arc<str>,
    pub(crate) status: &'static str,
    pub(crate) url: Option<Arc<str>>,
}

/// How large the payloads are of which no row knows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    /// The details of its error.
    pub(crate) details: Option<u64>,
    /// The outcome that came late.
    pub(crate) late: Option<u64>,
}

impl Sizes {
    /// Reads them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn read(
        stores: &muster_store::Stores,
        row: &ExecutionRow,
    ) -> muster_store::StoreResult<Self> {
        let of = |kind| -> muster_store::StoreResult<_> {
            let size = stores.decisions.payload_size(&row.id, kind)?;
            Ok(size.map(|size| size as u64))
        };
        let ended_badly = row.status.is_terminal() && row.status != Status::Succeeded;
        Ok(Self {
            details: match ended_badly {
                true => of(PayloadKind::ErrorDetails)?,
                false => None,
            },
            late: match row.late_outcome {
                Some(_) => of(PayloadKind::Late)?,
                None => None,
            },
        })
    }

    /// Reads them where there may be any.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn of(app: &AppState, row: &Arc<ExecutionRow>) -> Result<Self, Problem> {
        if row.late_outcome.is_none()
            && (!row.status.is_terminal() || row.status == Status::Succeeded)
        {
            return Ok(Self::default());
        }
        let row = row.clone();
        Ok(app.blocking(move |stores| Self::read(stores, &row)).await?)
    }
}

/// What is shown of one execution beside its row.
#[derive(Default)]
pub(crate) struct Beside {
    /// Payloads were not asked for.
    pub(crate) without: bool,
    /// How large those are of which no row knows.
    pub(crate) sizes: Sizes,
    /// The plane's time.
    pub(crate) as_of: Option<muster_wire::Timestamp>,
    /// Why it waits, or did not end well.
    pub(crate) why: Option<String>,
    /// Its latest restart.
    pub(crate) restarted_as: Option<Successor>,
    /// What became of the messages for its webhook.
    pub(crate) webhook_events: Option<Vec<MessageShown>>,
    /// What it asked a person last.
    pub(crate) approval: Option<ApprovalShown>,
}

/// The execution by which another one was run again.
#[derive(Serialize)]
pub(crate) struct Successor {
    /// Its id.
    pub(crate) execution_id: ExecutionId,
    /// Its run.
    pub(crate) run_id: RunId,
}

/// The body of `GET /api/v1/executions/{id}`: the same with what is shown beside the row.
pub(crate) fn whole_with(out: Vec<u8>, view: &ExecutionView, beside: &Beside) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    row(&mut writer, &view.row);
    let result: &[u8] = view.result.as_ref().map_or(b"null", |result| &result.0);
    if view.row.status.is_terminal() && !beside.without {
        writer.raw("result", result);
    }
    if !beside.without
        && view.row.status.is_terminal()
        && view.result.is_none()
        && had(&view.row, PayloadKind::Result)
    {
        writer.flag("result_removed", true);
    }
    if let Some(details) = &view.details {
        writer.raw("error_details", &details.0);
    }
    let sizes = [
        ("error_details_size", beside.sizes.details),
        ("late_size", beside.sizes.late),
    ];
    for (name, size) in sizes {
        if let Some(size) = size {
            writer.number(name, i64::try_from(size).unwrap_or(i64::MAX));
        }
    }
    writer
        .text_if("why", beside.why.as_deref())
        .time_if("as_of", beside.as_of);
    if let Some(successor) = &beside.restarted_as {
        writer.value("restarted_as", successor);
    }
    if let Some(events) = &beside.webhook_events {
        writer.value("webhook_events", events);
    }
    if let Some(approval) = &beside.approval {
        writer
            .text("approval_request_id", &approval.request)
            .text("approval_status", approval.status)
            .text_if("approval_request_url", approval.url.as_deref());
    }
    writer.end()
}

/// One line of a list with the sentence that says why.
pub(crate) fn line_why(out: Vec<u8>, execution: &ExecutionRow, why: Option<&str>) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    row(&mut writer, execution);
    writer.text_if("why", why);
    writer.end()
}

/// One line of a list: no payload.
pub(crate) fn line(out: Vec<u8>, execution: &ExecutionRow) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    row(&mut writer, execution);
    writer.end()
}

/// What a row says, as members.
fn row(writer: &mut Writer, row: &ExecutionRow) {
    writer
        .text("execution_id", row.id.as_str())
        .text("run_id", row.run.as_str())
        .text("workflow_id", row.run.as_str())
        .text("status", row.status.for_sdk())
        .text("state", row.status.word())
        .text_if("status_reason", row.status_reason.as_deref());
    if let Some(wait) = &row.wait {
        let mut inner = Writer::object();
        inner
            .text("cause", wait.cause.word())
            .text("reference", &wait.reference)
            .time_if("until", wait.until);
        writer.raw("wait", &inner.end());
    }
    if let Some(state) = row.resume_to {
        writer.text("resumes_to", state.word());
    }
    writer
        .text("node_id", row.agent.as_str())
        .text("agent", row.agent.as_str())
        .text("function", row.function.as_str())
        .text("target", &format!("{}.{}", row.agent, row.function))
        .text("type", row.function_kind.word())
        .text("kind", row.kind.word())
        .text("lane", row.lane.word())
        .text("origin", row.origin.word())
        .text_if(
            "parent_execution_id",
            row.parent.as_ref().map(ExecutionId::as_str),
        )
        .text("root_execution_id", row.root.as_str())
        .number("depth", row.depth.into())
        .number("attempt", row.attempt.into())
        .number("priority", row.queue.class.into())
        .text_if("session_id", row.session.as_deref())
        .text_if("actor_id", row.actor.as_deref())
        .number(
            "input_size",
            i64::try_from(row.input_size).unwrap_or(i64::MAX),
        )
        .time_if("created_at", Some(row.created_at))
        .time_if("started_at", row.started_at)
        .time_if("completed_at", row.ended_at);
    if let Some(duration_ms) = duration_ms(row) {
        writer.number("duration_ms", duration_ms);
    }
    if let Some(size) = row.result_size {
        writer.number("result_size", i64::try_from(size).unwrap_or(i64::MAX));
    }
    links(writer, row);
    if row.over_cap {
        writer.flag("over_cap", true);
    }
    writer.bytes_if("error", row.error_text.as_ref());
    writer.bytes_if("error_message", row.error_text.as_ref());
    writer.text_if(
        "error_category",
        row.error_category.as_ref().map(Category::word),
    );
    if let Some(usage) = &row.usage {
        writer.raw("usage", &usage.0);
    }
    if let Some(late) = row.late_outcome {
        writer.text("late_outcome", late.word());
    }
    writer.flag("webhook_registered", has_webhook(row));
}

/// Whether an execution that ended has had this payload, by its row. Of details no row knows.
pub(crate) fn had(row: &ExecutionRow, kind: PayloadKind) -> bool {
    match kind {
        PayloadKind::Input => row.status.is_terminal() && row.input_size > 0,
        PayloadKind::Result => row.result_size.is_some(),
        PayloadKind::ErrorDetails | PayloadKind::Late => false,
    }
}

/// Whether somebody is told of its end.
pub(crate) fn has_webhook(row: &ExecutionRow) -> bool {
    let links = row.links.as_ref();
    links.is_some_and(|links| links.webhook.is_some())
}

/// Where it came from and what came after it, when there is anything.
fn links(writer: &mut Writer, row: &ExecutionRow) {
    if let Some(links) = row.links.as_deref() {
        let id = |id: &Option<ExecutionId>| id.as_ref().map(ToString::to_string);
        writer
            .text_if("restart_of", id(&links.restart_of).as_deref())
            .text_if(
                "restarted_as_execution_id",
                id(&links.restarted_as).as_deref(),
            )
            .text_if("replay_of", id(&links.replay_of).as_deref());
        if let Some(replay) = &links.replay {
            writer
                .text("source_run_id", replay.source.as_str())
                .text("replay_mode", replay.mode.word())
                .text_if("replay_before_execution_id", id(&replay.before).as_deref());
        }
    }
    if let Some(source) = row.replayed_from() {
        writer
            .flag("replay_hit", true)
            .text("replayed_from_execution_id", source);
    }
}

/// Milliseconds from the first dispatch, or from acceptance, to the end.
pub(crate) fn duration_ms(row: &ExecutionRow) -> Option<i64> {
    let from = row.started_at.unwrap_or(row.created_at);
    let took = row.ended_at?.since(from);
    Some(i64::try_from(took.as_millis()).unwrap_or(i64::MAX))
}

/// What the caller of a sync call gets when its execution ended.
pub(crate) fn ended(view: &ExecutionView, webhook: &Registered) -> Response {
    if view.row.status == Status::Succeeded {
        succeeded(view, webhook)
    } else {
        failed(view, webhook)
    }
}

fn succeeded(view: &ExecutionView, registered: &Registered) -> Response {
    let row = &view.row;
    let result: &[u8] = view.result.as_ref().map_or(b"null", |result| &result.0);
    let mut writer = Writer::object_in(Vec::with_capacity(320 + result.len()));
    writer
        .text("execution_id", row.id.as_str())
        .text("run_id", row.run.as_str())
        .text("workflow_id", row.run.as_str())
        .text("status", row.status.word())
        .raw("result", result)
        .number("duration_ms", duration_ms(row).unwrap_or(0))
        .time_if("finished_at", row.ended_at);
    if row.replayed_from().is_some() {
        writer.flag("replay_hit", true);
    }
    webhook(&mut writer, registered);
    writer.answer(StatusCode::OK)
}

/// A failed sync call is the error shape and the execution at once.
fn failed(view: &ExecutionView, registered: &Registered) -> Response {
    let row = &view.row;
    let category = failure_category(row);
    let http = match row.error_status {
        Some(number) if (400..=599).contains(&number) => number,
        _ => category.http_status(),
    };
    let said = row
        .error_text
        .as_ref()
        .map(|text| String::from_utf8_lossy(&text.0));
    let message = said.as_deref().unwrap_or(failure_text(row.status));
    let mut writer = Writer::object();
    writer
        .text("error", said.as_deref().unwrap_or(category.word()))
        .text("error_category", category.word())
        .text("message", message)
        .text("execution_id", row.id.as_str())
        .text("run_id", row.run.as_str())
        .text("workflow_id", row.run.as_str())
        .text("status", row.status.word())
        .text_if("status_reason", row.status_reason.as_deref())
        .text_if("error_message", said.as_deref())
        .number("duration_ms", duration_ms(row).unwrap_or(0))
        .time_if("finished_at", row.ended_at);
    if let Some(details) = &view.details {
        writer.raw("error_details", &details.0);
    }
    if let Some(result) = &view.result {
        writer.raw("result", &result.0);
    }
    webhook(&mut writer, registered);
    answer(status(http), writer.end().into())
}

/// Why an execution did not end well.
pub(crate) fn failure_category(row: &ExecutionRow) -> Category {
    row.error_category.clone().unwrap_or(match row.status {
        Status::Cancelled => Category::Cancelled,
        Status::Timeout => Category::AgentTimeout,
        _ => Category::AgentError,
    })
}

/// The same in a sentence, where nobody said more.
pub(crate) fn failure_text(status: Status) -> &'static str {
    match status {
        Status::Cancelled => "the execution was cancelled",
        Status::Timeout => "the execution ran out of time",
        _ => "the execution failed",
    }
}

/// What an accepted call is answered with: its ids, where it is, its place in the queue.
pub(crate) fn receipt(writer: &mut Writer, receipt: &Receipt, target: &str) {
    let created_at = receipt.created_at.rfc3339();
    writer
        .text("execution_id", receipt.execution.as_str())
        .text("run_id", receipt.run.as_str())
        .text("workflow_id", receipt.run.as_str())
        .text("status", receipt.status.for_sdk())
        .text("target", target)
        .text("type", receipt.kind.word())
        .text("created_at", &created_at)
        .text("enqueued_at", &created_at);
    if receipt.replay_hit {
        writer.flag("replay_hit", true);
    }
    if let Some(position) = &receipt.position {
        writer
            .number(
                "queue_position",
                i64::try_from(position.ahead).unwrap_or(i64::MAX),
            )
            .flag("queue_position_exact", position.exact);
    }
    let starts_in_ms = receipt.position.as_ref().and_then(|it| it.starts_in_ms);
    writer.value("starts_in_ms", &starts_in_ms);
}

/// Says whether a webhook was registered, and why not when one was asked for.
pub(crate) fn webhook(writer: &mut Writer, registered: &Registered) {
    writer.flag("webhook_registered", *registered == Registered::Yes);
    if let Registered::Not(why) = registered {
        writer.text("webhook_error", why);
    }
}

/// 404 for an execution.
pub(crate) fn unknown_execution(id: &ExecutionId) -> Problem {
    Problem::not_found(format!("there is no execution {id}"))
}

/// An execution's id from a path: cut down to what stands before an attempt's number.
///
/// # Errors
/// 400 when it is no id.
pub(crate) fn execution_id(text: &str) -> Result<ExecutionId, Problem> {
    muster_wire::AttemptRef::parse(text)
        .map(|attempt| attempt.execution)
        .map_err(|error| Problem::validation(format!("execution id: {error}")))
}

/// A 504 that names the execution which goes on.
pub(crate) fn still_running(execution: &ExecutionId, run: &str, shutdown: bool) -> Response {
    let message = if shutdown {
        "the control plane is shutting down; the execution goes on: ask for it by its id"
    } else {
        "the execution is still running; ask for it by its id"
    };
    let mut problem = Problem::new(Category::StillRunning, message).execution(execution.as_str());
    problem.body.details = Some(serde_json::json!({ "run_id": run, "shutdown": shutdown }));
    problem.into_response()
}
