//! How an agent waits: it asks for a person's decision, looks whether there is one, and says
//! that it waits for a child. As the published SDK speaks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use muster_engine::event::{ApprovalAsk, Awaiter};
use muster_engine::{Event, Reply};
use muster_wire::{AgentId, AttemptRef, Category, ExecutionId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals::{REQUEST_MAX, approval, status_word};
use super::body::{self, Query, RawBody};
use super::caller::Caller;
use super::pauses::{conflict, has_ended};
use super::problem::{Answer, Problem};
use super::show;
use super::write::Writer;
use crate::app::App;
use crate::approvals;

/// How long a person has, when the agent does not say.
const HOURS: f64 = 72.0;
/// The longest that an agent may ask for: a year.
const HOURS_MAX: f64 = 24.0 * 366.0;
/// The longest reason that is taken.
const REASON_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(request_approval))
        .routes(routes!(approval_status))
        .routes(routes!(awaiter_status))
}

/// Agent and execution of the path, decoded; what cannot be decoded is empty, and no id.
struct Named(String, String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, state).await;
        let (agent, id) = path.map(|path| path.0).unwrap_or_default();
        Ok(Self(agent, id))
    }
}

#[derive(Deserialize)]
struct Asked {
    approval_request_id: String,
    #[serde(default)]
    expires_in_hours: Option<f64>,
    #[serde(default)]
    approval_request_url: Option<String>,
    #[serde(default)]
    callback_url: Option<String>,
}

/// Asks for a person's decision: the execution waits until there is one, or until it expires.
#[utoipa::path(
    post, path = "/api/v1/agents/{agent}/executions/{id}/request-approval", tag = "agents",
    params(
        ("agent" = String, Path, description = "The agent"),
        ("id" = String, Path, description = "The id the agent got as X-Execution-ID"),
    ),
    request_body(content = serde_json::Value, description = "{approval_request_id, expires_in_hours?: 72, approval_request_url?, callback_url?}"),
    responses(
        (status = 200, description = "It waits", body = serde_json::Value),
        (status = 400, description = "The request is malformed, or its callback_url is no address the plane may call"),
        (status = 403, description = "It does not prove that it comes from the attempt"),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It has ended, or waits for another approval"),
    )
)]
async fn request_approval(
    State(app): State<App>,
    caller: Caller,
    Named(agent, id): Named,
    RawBody(body): RawBody,
) -> Answer {
    let (agent, from) = named(&agent, &id)?;
    let asked: Asked = body::json(&body, "{approval_request_id, expires_in_hours?, …}")?;
    let request = asked.approval_request_id;
    if request.is_empty() || request.len() > REQUEST_MAX {
        return Err(Problem::validation(format!(
            "approval_request_id must have 1 to {REQUEST_MAX} bytes"
        )));
    }
    let hours = asked.expires_in_hours.unwrap_or(HOURS);
    if !(hours > 0.0 && hours <= HOURS_MAX) {
        return Err(Problem::validation(format!(
            "expires_in_hours must be above 0 and at most {HOURS_MAX}"
        )));
    }
    let request_url = asked.approval_request_url.filter(|url| !url.is_empty());
    if request_url
        .as_ref()
        .is_some_and(|url| !approvals::is_page(url))
    {
        return Err(Problem::validation(
            "approval_request_url must be an http:// or https:// address: people are sent there",
        ));
    }
    let callback_url = asked.callback_url.filter(|url| !url.is_empty());
    if let Some(url) = &callback_url {
        approvals::check_callback(&app.directory, app.webhooks.rules(), agent.as_str(), url)
            .map_err(Problem::validation)?;
    }
    let execution = from.execution.clone();
    let key_agent = caller.key_agent.clone();
    let make = |waiter| {
        Event::ApprovalAsked(Box::new(ApprovalAsk {
            waiter,
            from,
            agent,
            key_agent,
            request: request.into(),
            request_url: request_url.map(Into::into),
            callback_url: callback_url.map(Into::into),
            expires_in: Duration::from_secs_f64(hours * 3600.0),
            known: None,
            earlier: None,
        }))
    };
    match app.driver.ask(make).await? {
        Reply::ApprovalPending(row) => {
            app.approvals
                .remember(&execution, row.request.clone(), row.request_url.clone());
            let url = row.request_url.as_deref().unwrap_or_default();
            Ok(Writer::object()
                .text("approval_request_id", &row.request)
                .text("approval_request_url", url)
                .text("execution_id", execution.as_str())
                .text("status", status_word(&row))
                .time_if("requested_at", Some(row.requested_at))
                .time_if("expires_at", Some(row.expires_at))
                .answer(StatusCode::OK))
        }
        other => Err(refused(&execution, other)),
    }
}

#[derive(Deserialize)]
struct Which {
    approval_request_id: Option<String>,
}

/// What became of the approval that an execution asked for last.
#[utoipa::path(
    get, path = "/api/v1/agents/{agent}/executions/{id}/approval-status", tag = "agents",
    params(
        ("agent" = String, Path, description = "The agent"),
        ("id" = String, Path, description = "The id the agent got as X-Execution-ID"),
        ("approval_request_id" = Option<String>, Query, description = "Which one, when it asked for several"),
    ),
    responses(
        (status = 200, description = "pending, approved, rejected, request_changes, expired or closed", body = serde_json::Value),
        (status = 403, description = "The execution is another agent's"),
        (status = 404, description = "No such execution, or it asked for nothing"),
    )
)]
async fn approval_status(
    State(app): State<App>,
    Named(agent, id): Named,
    Query(which): Query<Which>,
) -> Answer {
    let (agent, from) = named(&agent, &id)?;
    let execution = from.execution;
    let (wanted, request) = (execution.clone(), which.approval_request_id);
    let (row, exists) = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let store = &stores.decisions;
            let (_, rows) = store.approvals_named(Some(&wanted), request.as_deref())?;
            let latest = rows.into_iter().next_back();
            let exists = latest.is_some() || store.execution(&wanted)?.1.is_some();
            Ok((latest, exists))
        })
        .await?;
    let row = row.ok_or_else(|| {
        if exists {
            Problem::not_found(format!("{execution} asked for no such approval"))
        } else {
            show::unknown_execution(&execution)
        }
    })?;
    if row.agent != agent {
        return Err(wrong_attempt(&execution));
    }
    let mut writer = Writer::object();
    approval(&mut writer, &row);
    Ok(writer.answer(StatusCode::OK))
}

#[derive(Deserialize)]
struct Report {
    status: String,
    #[serde(default)]
    reason: Option<String>,
}

/// Says that an execution waits for a child that waits, or that it goes on.
#[utoipa::path(
    post, path = "/api/v1/agents/{agent}/executions/{id}/awaiter-status", tag = "agents",
    params(
        ("agent" = String, Path, description = "The agent"),
        ("id" = String, Path, description = "The id the agent got as X-Execution-ID"),
    ),
    request_body(content = serde_json::Value, description = "{status: waiting | running, reason?}"),
    responses(
        (status = 200, description = "Where the execution is now, and whether this changed it", body = serde_json::Value),
        (status = 403, description = "It does not prove that it comes from the attempt"),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It has ended"),
    )
)]
async fn awaiter_status(
    State(app): State<App>,
    caller: Caller,
    Named(agent, id): Named,
    RawBody(body): RawBody,
) -> Answer {
    let (agent, from) = named(&agent, &id)?;
    let report: Report = body::json(&body, "{status: \"waiting\" | \"running\", reason?}")?;
    let waiting = match report.status.as_str() {
        "waiting" => true,
        "running" => false,
        _ => return Err(Problem::validation("status must be waiting or running")),
    };
    let reason = report.reason.filter(|reason| reason.len() <= REASON_MAX);
    let execution = from.execution.clone();
    if let Some(view) = app.views.get(execution.as_str())
        && view.row.agent != agent
    {
        return Err(wrong_attempt(&execution));
    }
    let key_agent = caller.key_agent.clone();
    let make = |waiter| {
        Event::AwaiterReported(Box::new(Awaiter {
            waiter,
            from,
            key_agent,
            waiting,
            reason: reason.map(Arc::from),
            known: None,
        }))
    };
    match app.driver.ask(make).await? {
        Reply::Awaiter { status, applied } => Ok(Writer::object()
            .text("execution_id", execution.as_str())
            .text("status", status.for_sdk())
            .flag("applied", applied)
            .answer(StatusCode::OK)),
        other => Err(refused(&execution, other)),
    }
}

fn named(agent: &str, id: &str) -> Result<(AgentId, AttemptRef), Problem> {
    let agent =
        AgentId::parse(agent).map_err(|error| Problem::validation(format!("agent id: {error}")))?;
    let from = AttemptRef::parse(id)
        .map_err(|error| Problem::validation(format!("execution id: {error}")))?;
    Ok((agent, from))
}

fn wrong_attempt(execution: &ExecutionId) -> Problem {
    Problem::new(
        Category::WrongAttempt,
        "this does not come from the execution's live attempt, or names another agent: send the id that came as X-Execution-ID, whole, in the path",
    )
    .execution(execution.as_str())
}

fn refused(execution: &ExecutionId, reply: Reply) -> Problem {
    match reply {
        Reply::UnknownExecution => show::unknown_execution(execution),
        Reply::WrongAttempt => wrong_attempt(execution),
        Reply::AlreadyEnded { status } => has_ended(execution, status),
        Reply::Conflict { message, status } => {
            conflict(message, status).execution(execution.as_str())
        }
        Reply::Refused(refusal) => refusal.into(),
        other => Problem::internal(&format!("an agent's wait was answered {other:?}")),
    }
}
