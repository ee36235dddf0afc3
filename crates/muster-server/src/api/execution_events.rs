//! `GET /api/v1/executions/{id}/events`: what happened to one execution, as a list, or as a
//! stream that ends when the execution has.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use futures_util::Stream;
use muster_engine::row::EventRow;
use muster_wire::ExecutionId;
use muster_wire::api::log::ExecutionEvents;
use tokio::sync::broadcast::error::RecvError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::caller::Caller;
use super::problem::Answer;
use super::show;
use super::write::Writer;
use crate::app::App;

/// Events of one execution that are shown.
const EVENTS_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// The events of one execution; a stream when `Accept` is `text/event-stream`.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}/events", tag = "executions",
    params(("id" = String, Path, description = "The execution")),
    responses(
        (status = 200, description = "Its events, in order", body = ExecutionEvents),
        (status = 404, description = "No such execution"),
    )
)]
async fn events(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    headers: HeaderMap,
) -> Answer {
    let execution = show::execution_id(&id)?;
    let feed = app.feed.subscribe();
    let view = show::find(&app, &execution).await?;
    if view.is_none_or(|view| !caller.sees(&view.row.principal)) {
        return Err(show::unknown_execution(&execution));
    }
    let past = read(&app, &execution).await?;
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if !accepts.is_some_and(|accepts| accepts.contains("text/event-stream")) {
        let mut writer = Writer::object();
        writer
            .text("execution_id", execution.as_str())
            .list("events", &past, line);
        return Ok(writer.answer(StatusCode::OK));
    }
    let stream = stream(app, execution, past, feed);
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    Ok(Sse::new(stream).keep_alive(alive).into_response())
}

async fn read(
    app: &App,
    execution: &ExecutionId,
) -> Result<Vec<EventRow>, super::problem::Problem> {
    let wanted = execution.clone();
    Ok(app
        .blocking(move |stores| stores.decisions.events_of(&wanted, EVENTS_MAX))
        .await?)
}

/// What was, then what comes; after a gap the store is read again.
fn stream(
    app: App,
    execution: ExecutionId,
    past: Vec<EventRow>,
    feed: tokio::sync::broadcast::Receiver<Arc<EventRow>>,
) -> impl Stream<Item = Result<Frame, Infallible>> {
    struct At {
        app: App,
        execution: ExecutionId,
        feed: tokio::sync::broadcast::Receiver<Arc<EventRow>>,
        waiting: std::collections::VecDeque<Arc<EventRow>>,
        last: u64,
        over: bool,
    }
    let at = At {
        app,
        execution,
        feed,
        waiting: past.into_iter().map(Arc::new).collect(),
        last: 0,
        over: false,
    };
    futures_util::stream::unfold(at, |mut at| async move {
        loop {
            if at.over {
                return None;
            }
            let event = match at.waiting.pop_front() {
                Some(event) => event,
                None => tokio::select! {
                    () = at.app.stop.cancelled() => return None,
                    next = at.feed.recv() => match next {
                        Ok(event) => event,
                        Err(RecvError::Closed) => return None,
                        Err(RecvError::Lagged(_)) => {
                            let missed = read(&at.app, &at.execution).await.ok()?;
                            at.waiting.extend(missed.into_iter().map(Arc::new));
                            continue;
                        }
                    },
                },
            };
            if event.execution.as_ref() != Some(&at.execution) || event.seq <= at.last {
                continue;
            }
            at.last = event.seq;
            at.over = event.status.is_some_and(|status| status.is_terminal());
            let data = String::from_utf8(line(Vec::new(), &event)).unwrap_or_default();
            let frame = Frame::default()
                .id(event.seq.to_string())
                .event(event.kind.word())
                .data(data);
            return Some((Ok(frame), at));
        }
    })
}

/// One event as JSON.
pub(crate) fn line(out: Vec<u8>, event: &EventRow) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    writer
        .number("seq", i64::try_from(event.seq).unwrap_or(i64::MAX))
        .time_if("at", Some(event.at))
        .text("type", event.kind.word())
        .text_if(
            "execution_id",
            event.execution.as_ref().map(|id| id.as_str()),
        )
        .text_if("run_id", event.run.as_ref().map(|id| id.as_str()))
        .text_if("agent", event.agent.as_ref().map(|id| id.as_str()))
        .text_if("function", event.function.as_ref().map(|id| id.as_str()))
        .text_if("instance_id", event.instance.as_ref().map(|id| id.as_str()));
    if let Some(attempt) = event.attempt {
        writer.number("attempt", attempt.into());
    }
    writer
        .text_if("status", event.status.map(|status| status.word()))
        .text_if("status_reason", event.reason.as_deref())
        .text_if("error_category", event.category.as_ref().map(|c| c.word()))
        .text_if("text", event.text.as_deref());
    writer.end()
}
