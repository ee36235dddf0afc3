//! `GET /api/v1/events`: the one dense sequence of what happened, as server-sent events that
//! resume by an opaque cursor, or as a page of JSON. Reads; decides nothing.

mod stream;
mod topics;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use muster_engine::row::EventRow;
use muster_wire::api::events::{EventPage, EventShown, StreamMessage};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Query;
use crate::api::cursor::Cursors;
use crate::api::problem::Problem;
use crate::app::App;
use crate::tail::Tail;
use topics::Filter;

/// Events of one page, at most.
const LIMIT_MAX: usize = 1_000;
/// Rows that one page looks at for those that fit its filter.
const LOOKED_AT_MAX: usize = 20_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Which events, and from where.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Continue after this event's `id`. A stream without it starts from now, a page from the
    /// oldest event. `Last-Event-ID` outranks it.
    cursor: Option<String>,
    /// The same as `cursor`.
    after: Option<String>,
    /// The same as `cursor`.
    from: Option<String>,
    /// Only these, comma-separated; of several, all that fit any. Kinds by their first word:
    /// `execution`, `approval`, `run`, `instance`, `agent`, `node`, `worker`, `llm`, `hold`,
    /// `plane`. Wider: `runs` (execution, approval, run), `agents` (instance, agent, llm, hold),
    /// `fleet` (node, worker, fleet). All about one thing: `run:ID`, `agent:ID`, `node:ID`,
    /// `worker:ID`, `execution:ID`. And `summary` and `queues`: no events, but a `changed`
    /// message, once a second at most. With `kind` beside it, those kinds as well.
    topics: Option<String>,
    /// Only these kinds, comma-separated: `execution.failed`, …
    kind: Option<String>,
    /// Of those, only this execution's.
    execution: Option<String>,
    /// Of those, only this run's.
    run: Option<String>,
    /// Of those, only this agent's.
    agent: Option<String>,
    /// Of those, only this node's, by its id.
    node: Option<String>,
    /// Of those, only this worker's, by its id.
    worker: Option<String>,
    /// Events of one page; 100 when absent, 1,000 at most.
    limit: Option<usize>,
}

/// An event as it is told.
pub(crate) fn shown(row: &EventRow, cursors: Cursors) -> EventShown {
    let text = |value: &Option<std::sync::Arc<str>>| value.as_deref().map(str::to_owned);
    EventShown {
        id: cursors.text(row.seq),
        at: row.at.into(),
        kind: row.kind.into(),
        execution_id: row.execution.as_ref().map(ToString::to_string),
        run_id: row.run.as_ref().map(ToString::to_string),
        agent: row.agent.as_ref().map(ToString::to_string),
        function: row.function.as_ref().map(ToString::to_string),
        instance: row.instance.as_ref().map(ToString::to_string),
        node: row.node.as_ref().map(ToString::to_string),
        worker: row.worker.as_ref().map(ToString::to_string),
        attempt: row.attempt,
        status: row.status.map(Into::into),
        reason: text(&row.reason),
        error_category: row.category.clone(),
        text: text(&row.text),
    }
}

/// Follow what happens
///
/// Server-sent events: one dense sequence, written in the commit of each change. A message's
/// `data` is an event; its `id` is a cursor. Named messages tell of the stream itself: `tick`
/// (`TickFrame`: the first message, and whenever nothing else came for 5 seconds), `changed`
/// (`ChangedFrame`: for the topics `summary` and `queues`, of each one a second at most, and one
/// at once when you continue from a cursor), `reset` (`ResetFrame`: the position asked for is
/// gone, the oldest events follow; forget what you know and read lists anew), `gap`
/// (`GapFrame`: you are slow; what you missed follows from the store), `end` (`EndFrame`:
/// connect again later with the last id).
///
/// A cursor is a place in the whole sequence: continue with other topics as you like, and no
/// event after it that fits them is left out. With `Accept: application/json` the answer is one
/// page.
#[utoipa::path(get, path = "/api/v1/events", tag = "events",
    params(Wanted, ("Last-Event-ID" = Option<String>, Header, description = "Continue after this event.")),
    responses(
        (status = 200, description = "The stream, or a page.", content((StreamMessage = "text/event-stream"), (EventPage = "application/json"))),
        (status = 400, description = "A filter or the cursor is not right.")))]
async fn events(
    State(app): State<App>,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let filter = Filter::of(&wanted)?;
    let cursors = Cursors::of(&app);
    let named = [&wanted.cursor, &wanted.after, &wanted.from];
    let asked = match named.into_iter().flatten().next() {
        Some(cursor) => Some(cursors.read(cursor).ok_or_else(|| {
            Problem::validation("cursor must be the id of an event of this plane")
        })?),
        None => None,
    };
    if wants_a_page(&headers) {
        let limit = wanted.limit.unwrap_or(100).clamp(1, LIMIT_MAX);
        return Ok(Json(
            page(
                &app,
                cursors,
                &filter,
                asked.unwrap_or(0),
                asked.is_some(),
                limit,
            )
            .await?,
        )
        .into_response());
    }
    let resumed = headers.get("last-event-id").map(|id| {
        // An id that cannot be read is a position that is gone: a browser would otherwise
        // knock for ever with it.
        id.to_str()
            .ok()
            .and_then(|id| cursors.read(id))
            .unwrap_or(u64::MAX)
    });
    let position = resumed.or(asked);
    let tail = match position {
        Some(after) => Tail::after(app.clone(), after),
        None => Tail::from_now(app.clone()),
    };
    let body = stream::body(app, tail, filter, position.is_some());
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (
            axum::http::HeaderName::from_static("x-accel-buffering"),
            "no",
        ),
    ];
    Ok((headers, body).into_response())
}

fn wants_a_page(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    accept.contains("application/json") && !accept.contains("text/event-stream")
}

async fn page(
    app: &App,
    cursors: Cursors,
    filter: &Filter,
    asked: u64,
    must_be_there: bool,
    limit: usize,
) -> Result<EventPage, Problem> {
    let filter = filter.clone();
    app.blocking(move |stores| {
        let store = &stores.decisions;
        let last = store.last_seq()?;
        let first = store.oldest_event()?.unwrap_or(last + 1);
        let gone = asked.saturating_add(1) < first || asked > last;
        let mut after = if gone { first - 1 } else { asked };
        let (mut events, mut looked_at) = (Vec::new(), 0);
        while events.len() < limit && looked_at < LOOKED_AT_MAX {
            let rows = store.events(after, limit.max(256))?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                after = row.seq;
                looked_at += 1;
                if filter.fits(&row) {
                    events.push(shown(&row, cursors));
                }
                if events.len() == limit {
                    break;
                }
            }
        }
        Ok(EventPage {
            events,
            next_cursor: cursors.text(after),
            more: after < last,
            reset: gone && must_be_there,
        })
    })
    .await
}
