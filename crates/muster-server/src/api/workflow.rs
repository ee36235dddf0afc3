//! What agents report of calls: workflow events, and calls inside their own process. Answered
//! before any commit: skills wait for it inside the call.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use muster_engine::Event;
use muster_engine::event::{Outcome, Report};
use muster_engine::row::Payload;
use muster_wire::{AgentId, AttemptRef, ExecutionId, FunctionName, RunId, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body;
use super::callbacks::text_of;
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::write::{Writer, answer};
use crate::app::App;
use crate::bodies::{Patience, SMALL};
use crate::dispatch::answer::blank;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(events))
        .routes(routes!(begin))
}

#[derive(Deserialize)]
struct EventBody<'a> {
    #[serde(borrow)]
    execution_id: Cow<'a, str>,
    #[serde(borrow, default)]
    workflow_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    run_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoner_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    agent_node_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_execution_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
}

/// A workflow event: evidence about a dispatched execution, the truth about an observed one.
#[utoipa::path(
    post, path = "/api/v1/workflow/executions/events", tag = "agents",
    request_body(content = serde_json::Value, description = "{execution_id, status, agent_node_id, reasoner_id, …}"),
    responses((status = 200, description = "Noted", body = serde_json::Value))
)]
async fn events(State(app): State<App>, caller: Caller, body: Body) -> Answer {
    let bytes = read_body(&app, body).await?;
    let said: EventBody<'_> = body::json(&bytes, "a workflow event {execution_id, status, …}")?;
    let about = attempt("execution_id", &said.execution_id)?;
    let agent = agent_of(&caller, said.agent_node_id.as_deref())?;
    let function = function_of(said.reasoner_id.as_deref())?;
    let status = Status::from_agent(&said.status)
        .ok_or_else(|| Problem::validation("status is no word for a status"))?;
    let report = Report {
        about,
        parent: parent(said.parent_execution_id.as_deref())?,
        run: run(said.run_id.as_deref().or(said.workflow_id.as_deref()))?,
        agent,
        function,
        outcome: Box::new(Outcome {
            result: said.result.and_then(small),
            error: said.error.and_then(text_of),
            reason: said
                .status_reason
                .filter(|reason| !reason.is_empty() && reason.len() <= 256)
                .map(|reason| reason.into()),
            ..blank(status)
        }),
        input: said.input_data.and_then(small),
        session: said
            .session_id
            .filter(|session| !session.is_empty() && session.len() <= 256)
            .map(|session| session.into()),
    };
    if !app.driver.tell_if_room(Event::Reported(Box::new(report))) {
        tracing::warn!("the inbox is full: a report of an agent was dropped");
    }
    Ok(answer(
        StatusCode::OK,
        Bytes::from_static(b"{\"success\":true}"),
    ))
}

#[derive(Deserialize)]
struct BeginBody<'a> {
    #[serde(borrow, default)]
    execution_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    run_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    workflow_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoner_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    node_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parent_execution_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
}

/// A call inside an agent's own process begins. It gets an id of ours, which the SDK takes.
#[utoipa::path(
    post, path = "/api/v1/workflow/executions", tag = "agents",
    request_body(content = serde_json::Value, description = "{reasoner_name, node_id, parent_execution_id?, …}"),
    responses((status = 200, description = "The ids to use", body = serde_json::Value))
)]
async fn begin(State(app): State<App>, caller: Caller, body: Body) -> Answer {
    let bytes = read_body(&app, body).await?;
    let said: BeginBody<'_> = body::json(&bytes, "{reasoner_name, node_id, …}")?;
    let agent = agent_of(&caller, said.node_id.as_deref())?;
    let function = function_of(said.reasoner_name.as_deref())?;
    // Their id is checked, as whatever comes from outside, and then replaced.
    if let Some(theirs) = said.execution_id.as_deref().filter(|id| !id.is_empty()) {
        attempt("execution_id", theirs)?;
    }
    let parent = parent(said.parent_execution_id.as_deref())?;
    let run =
        run(said.run_id.as_deref().or(said.workflow_id.as_deref()))?.unwrap_or_else(RunId::mint);
    let execution = ExecutionId::mint();
    let report = Report {
        about: AttemptRef {
            execution: execution.clone(),
            proof: None,
        },
        parent,
        run: Some(run.clone()),
        agent,
        function,
        outcome: Box::new(blank(Status::Running)),
        input: None,
        session: said
            .session_id
            .filter(|session| !session.is_empty() && session.len() <= 256)
            .map(|session| session.into()),
    };
    if !app.driver.tell_if_room(Event::Reported(Box::new(report))) {
        tracing::warn!("the inbox is full: a report of an agent was dropped");
    }
    Ok(Writer::object()
        .text("execution_id", execution.as_str())
        .text("workflow_id", run.as_str())
        .text("run_id", run.as_str())
        .answer(StatusCode::OK))
}

async fn read_body(app: &App, body: Body) -> Result<Bytes, Problem> {
    let limit = usize::try_from(app.config.server.max_body.0).unwrap_or(usize::MAX);
    let read = app.room.read(body, limit, Patience::Usual).await;
    read.map(|held| held.bytes)
        .map_err(|why| why.problem(limit))
}

fn attempt(name: &str, text: &str) -> Result<AttemptRef, Problem> {
    AttemptRef::parse(text).map_err(|error| Problem::validation(format!("{name}: {error}")))
}

fn parent(text: Option<&str>) -> Result<Option<AttemptRef>, Problem> {
    text.filter(|text| !text.is_empty())
        .map(|text| attempt("parent_execution_id", text))
        .transpose()
}

fn run(text: Option<&str>) -> Result<Option<RunId>, Problem> {
    text.filter(|text| !text.is_empty())
        .map(RunId::parse)
        .transpose()
        .map_err(|error| Problem::validation(format!("run_id: {error}")))
}

/// The agent that reports: the one it names, as far as its key may act as it.
fn agent_of(caller: &Caller, named: Option<&str>) -> Result<AgentId, Problem> {
    let named = named.filter(|name| !name.is_empty());
    match (named, &caller.key_agent) {
        (Some(name), _) => {
            caller.must_be(name)?;
            AgentId::parse(name).map_err(|e| Problem::validation(format!("agent id: {e}")))
        }
        (None, Some(agent)) => Ok(agent.clone()),
        (None, None) => Err(Problem::validation("the agent's id is missing")),
    }
}

fn function_of(named: Option<&str>) -> Result<FunctionName, Problem> {
    FunctionName::parse(named.unwrap_or_default())
        .map_err(|error| Problem::validation(format!("function: {error}")))
}

/// A payload of a report, if it is not too large for one: reports are evidence, not storage.
fn small(raw: &RawValue) -> Option<Payload> {
    let text = raw.get().as_bytes();
    (text.len() <= SMALL).then(|| Payload(Bytes::copy_from_slice(text)))
}
