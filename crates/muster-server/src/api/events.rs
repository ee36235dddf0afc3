//! `GET /api/v1/events`: the one dense sequence of what happened, as server-sent events that
//! resume by an opaque cursor, or as a page of JSON. Reads; decides nothing.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use muster_engine::row::{EventKind, EventRow};
use muster_wire::{AgentId, AttemptRef, ExecutionId, NodeId, RunId, WorkerId};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Query;
use crate::api::cursor::Cursors;
use crate::api::problem::Problem;
use crate::app::App;
use crate::meters::{Open, Stream};
use crate::tail::{Step, Tail};

/// How often something is sent while nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
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
    /// Only these kinds by their first word, comma-separated: `execution`, `approval`, `run`,
    /// `instance`, `agent`, `node`, `worker`, `fleet`, `llm`, `hold`, `plane`. With `kind` beside it, those as well.
    topics: Option<String>,
    /// Only these kinds, comma-separated: `execution.failed`, …
    kind: Option<String>,
    /// Only this execution.
    execution: Option<String>,
    /// Only this run.
    run: Option<String>,
    /// Only this agent.
    agent: Option<String>,
    /// Only this node, by its id.
    node: Option<String>,
    /// Only this worker, by its id.
    worker: Option<String>,
    /// Events of one page; 100 when absent, 1,000 at most.
    limit: Option<usize>,
}

/// One event. Absent keys do not apply to its kind.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventShown {
    /// Its position, opaque; continue after it with `cursor` or `Last-Event-ID`.
    id: String,
    /// When.
    at: String,
    /// What: `execution.queued`, `execution.started`, `execution.absorbed`,
    /// `execution.resent`, `execution.succeeded`, `execution.failed`, `execution.cancelled`,
    /// `execution.timed_out`, `execution.late_outcome`, `execution.cancel_receipt`,
    /// `execution.waiting`, `execution.continued`, `execution.paused`, `execution.resumed`,
    /// `execution.restarted`, `approval.requested`, `approval.decided`, `approval.told`,
    /// `run.cancelled`, `run.paused`, `run.resumed`, `instance.registered`, `instance.moved`,
    /// `instance.goodbye`, `instance.degraded`, `instance.active`, `instance.down`,
    /// `instance.restarting`, `instance.unreachable_callback`, `instance.gone`,
    /// `agent.tags_changed`, `node.state_changed`, `node.wished`, `node.link`, `node.drift`,
    /// `worker.queued`, `worker.starting`, `worker.running`, `worker.restarting`,
    /// `worker.exited`, `worker.lost`, `worker.unknown`, `worker.driven`, `fleet.alarm`,
    /// `llm.circuit_changed`, `hold.changed`, `plane.started`, `plane.draining`. A newer plane may know more.
    kind: &'static str,
    /// The execution it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<String>,
    /// Its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The function.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    /// The instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// The attempt's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// The execution's status after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// The finer word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_category: Option<String>,
    /// A sentence of evidence; never a payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl EventShown {
    pub(crate) fn of(row: &EventRow, cursors: Cursors) -> Self {
        let text = |value: &Option<std::sync::Arc<str>>| value.as_deref().map(str::to_owned);
        Self {
            id: cursors.text(row.seq),
            at: row.at.rfc3339(),
            kind: row.kind.word(),
            execution_id: row.execution.as_ref().map(ToString::to_string),
            run_id: row.run.as_ref().map(ToString::to_string),
            agent: row.agent.as_ref().map(ToString::to_string),
            function: row.function.as_ref().map(ToString::to_string),
            instance: row.instance.as_ref().map(ToString::to_string),
            node: row.node.as_ref().map(ToString::to_string),
            worker: row.worker.as_ref().map(ToString::to_string),
            attempt: row.attempt,
            status: row.status.map(muster_wire::Status::word),
            reason: text(&row.reason),
            error_category: row
                .category
                .as_ref()
                .map(|category| category.word().to_owned()),
            text: text(&row.text),
        }
    }
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
struct EventPage {
    /// In order.
    events: Vec<EventShown>,
    /// Continue after this, also when the page is empty.
    next_cursor: String,
    /// Whether there is more now.
    more: bool,
    /// The position asked for is not there any more: the page starts with the oldest event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reset: bool,
}

/// Follow what happens
///
/// Server-sent events: one dense sequence, written in the commit of each change. A message's
/// `data` is an event; its `id` is a cursor. Named messages tell of the stream itself: `reset`
/// (`{"oldest": cursor}`: the position asked for is gone, the oldest events follow; forget what
/// you know and read lists anew), `gap` (`{"missed": n}`: you are slow; what you missed follows
/// from the store), `end` (`{"reason": "shutdown"}`: connect again later with the last id).
/// Something is sent every 5 seconds. With `Accept: application/json` the answer is one page.
#[utoipa::path(get, path = "/api/v1/events", tag = "events",
    params(Wanted, ("Last-Event-ID" = Option<String>, Header, description = "Continue after this event.")),
    responses(
        (status = 200, description = "The stream, or a page.", content((EventShown = "text/event-stream"), (EventPage = "application/json"))),
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
    let tail = match resumed.or(asked) {
        Some(after) => Tail::after(app.clone(), after),
        None => Tail::from_now(app.clone()),
    };
    let reader = Reader {
        sent: tail.position(),
        tail,
        cursors,
        filter,
        greeted: false,
        done: false,
        keep_alive: Instant::now() + KEEP_ALIVE,
        _open: app.meters.reading(Stream::Sse),
        app,
    };
    let frames = stream::unfold(reader, |mut reader| async {
        let frame = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), reader))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (
            axum::http::HeaderName::from_static("x-accel-buffering"),
            "no",
        ),
    ];
    Ok((headers, Body::from_stream(frames)).into_response())
}

fn wants_a_page(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    accept.contains("application/json") && !accept.contains("text/event-stream")
}

/// One open stream.
struct Reader {
    app: App,
    tail: Tail,
    cursors: Cursors,
    filter: Filter,
    /// The newest position that the other side knows.
    sent: u64,
    greeted: bool,
    done: bool,
    keep_alive: Instant,
    _open: Open,
}

impl Reader {
    /// The next bytes; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        if !self.greeted {
            // The head goes out at once, so that the other side knows that it is connected.
            self.greeted = true;
            return Some(Bytes::from_static(b": connected\n\n"));
        }
        loop {
            let step = tokio::select! {
                biased;
                step = self.tail.next() => step,
                () = tokio::time::sleep_until(self.keep_alive) => return Some(self.still_here()),
            };
            let frame = match step {
                Ok(Step::Event(row)) => {
                    if !self.filter.fits(&row) {
                        // A long silence of what fits must not keep the other side waiting.
                        if Instant::now() >= self.keep_alive {
                            return Some(self.still_here());
                        }
                        continue;
                    }
                    let event = EventShown::of(&row, self.cursors);
                    let data = serde_json::to_string(&event).unwrap_or_default();
                    format!("id: {}\ndata: {data}\n\n", event.id)
                }
                Ok(Step::Gap(missed)) => {
                    self.app.meters.gap(Stream::Sse);
                    format!("event: gap\ndata: {{\"missed\":{missed}}}\n\n")
                }
                Ok(Step::Reset(after)) => {
                    let oldest = self.cursors.text(after);
                    format!("event: reset\nid: {oldest}\ndata: {{\"oldest\":\"{oldest}\"}}\n\n")
                }
                Ok(Step::End) => {
                    self.done = true;
                    "event: end\ndata: {\"reason\":\"shutdown\"}\n\n".to_owned()
                }
                Err(error) => {
                    tracing::error!(error = %error, "an event stream could not read the store");
                    self.done = true;
                    "event: end\ndata: {\"reason\":\"store\"}\n\n".to_owned()
                }
            };
            self.sent = self.tail.position();
            self.keep_alive = Instant::now() + KEEP_ALIVE;
            return Some(frame.into());
        }
    }

    /// A sign of life, with the position when it moved over events that did not fit.
    fn still_here(&mut self) -> Bytes {
        self.keep_alive = Instant::now() + KEEP_ALIVE;
        let position = self.tail.position();
        if position == self.sent {
            return Bytes::from_static(b": still here\n\n");
        }
        self.sent = position;
        format!(": still here\nid: {}\n\n", self.cursors.text(position)).into()
    }
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
                    events.push(EventShown::of(&row, cursors));
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

/// The first words of all kinds.
fn all_topics() -> Vec<&'static str> {
    let mut topics: Vec<&str> = Vec::new();
    for kind in EventKind::ALL {
        let topic = kind.word().split('.').next().unwrap_or_default();
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics
}

/// Which events fit.
#[derive(Debug, Clone, Default)]
struct Filter {
    kinds: Vec<EventKind>,
    execution: Option<ExecutionId>,
    run: Option<RunId>,
    agent: Option<AgentId>,
    node: Option<NodeId>,
    worker: Option<WorkerId>,
}

impl Filter {
    fn of(wanted: &Wanted) -> Result<Self, Problem> {
        let mut kinds = Vec::new();
        for topic in words(wanted.topics.as_deref()) {
            let of_topic = |kind: &EventKind| kind.word().split('.').next() == Some(topic);
            let before = kinds.len();
            kinds.extend(EventKind::ALL.iter().copied().filter(of_topic));
            if kinds.len() == before {
                return Err(Problem::validation(format!(
                    "topics are {}",
                    all_topics().join(", ")
                )));
            }
        }
        for word in words(wanted.kind.as_deref()) {
            kinds.push(EventKind::from_word(word).ok_or_else(|| {
                let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.word()).collect();
                Problem::validation(format!("kind must be of {}", known.join(", ")))
            })?);
        }
        let wrong =
            |what: &'static str| move |error| Problem::validation(format!("{what}: {error}"));
        Ok(Self {
            kinds,
            execution: wanted
                .execution
                .as_deref()
                .map(|text| AttemptRef::parse(text).map(|found| found.execution))
                .transpose()
                .map_err(wrong("execution"))?,
            run: wanted
                .run
                .as_deref()
                .map(RunId::parse)
                .transpose()
                .map_err(wrong("run"))?,
            agent: wanted
                .agent
                .as_deref()
                .map(AgentId::parse)
                .transpose()
                .map_err(wrong("agent"))?,
            node: wanted
                .node
                .as_deref()
                .map(NodeId::parse)
                .transpose()
                .map_err(wrong("node"))?,
            worker: wanted
                .worker
                .as_deref()
                .map(WorkerId::parse)
                .transpose()
                .map_err(wrong("worker"))?,
        })
    }

    fn fits(&self, row: &EventRow) -> bool {
        fn same<T: PartialEq>(wanted: &Option<T>, has: &Option<T>) -> bool {
            wanted.is_none() || wanted == has
        }
        (self.kinds.is_empty() || self.kinds.contains(&row.kind))
            && same(&self.execution, &row.execution)
            && same(&self.run, &row.run)
            && same(&self.agent, &row.agent)
            && same(&self.node, &row.node)
            && same(&self.worker, &row.worker)
    }
}

/// Words between commas.
fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or("")
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod shown {
    use super::*;

    #[test]
    fn the_document_names_every_kind_and_every_topic() {
        let document = crate::api::document();
        let kinds =
            document["components"]["schemas"]["EventShown"]["properties"]["kind"]["description"]
                .as_str()
                .unwrap();
        for kind in EventKind::ALL {
            assert!(
                kinds.contains(&format!("`{}`", kind.word())),
                "{}",
                kind.word()
            );
        }
        let parameters = document["paths"]["/api/v1/events"]["get"]["parameters"].to_string();
        for topic in all_topics() {
            assert!(parameters.contains(&format!("`{topic}`")), "{topic}");
        }
    }
}
