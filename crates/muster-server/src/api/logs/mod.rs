//! Log lines of executions: taken from agents, read back, followed.

mod follow;

use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use muster_store::StoreError;
use muster_store::annex::{LogRow, Logs};
use muster_store::{Annex, Stores};
use muster_wire::api::log::{LogGap, LogPage};
use muster_wire::{AttemptRef, ExecutionId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query, json as parse, read};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use crate::app::App;
use crate::logs::text::{MESSAGE_BYTES_MAX, WORD_BYTES_MAX, kept, without_secrets};
use crate::logs::{Line, What};

/// Lines of one request.
const ENTRIES_MAX: usize = 1_000;
/// Bytes of one request.
const BODY_MAX: usize = 4 * 1024 * 1024;
/// The longest page.
const PAGE_MAX: usize = 5_000;
/// Lines read at once.
const READ: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(add))
        .routes(routes!(list))
}

/// Lines of one execution.
#[derive(Debug, Deserialize, ToSchema)]
struct LogsBody<'a> {
    /// At most 1,000.
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
}

/// One line. What it repeats of its execution is not read.
#[derive(Debug, Deserialize, ToSchema)]
struct Entry<'a> {
    /// When, by the agent's clock.
    ts: Option<String>,
    /// The execution that called this one in the same process, as the agent knows it.
    parent_execution_id: Option<String>,
    /// `debug`, `info`, `warn`, `error`.
    level: Option<String>,
    /// Who logged.
    source: Option<String>,
    /// The kind of line.
    event_type: Option<String>,
    /// Its text; over 64 KiB it is cut.
    message: Option<String>,
    /// Any JSON object; over 64 KiB it is left out.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    attributes: Option<&'a RawValue>,
}

/// Takes log lines of an execution. They are answered before they are written; lines that do
/// not prove to come from their execution are dropped and counted.
#[utoipa::path(post, path = "/api/v1/executions/{id}/logs", tag = "executions",
    params(("id" = String, Path, description = "The execution, as the agent got it")),
    request_body = LogsBody<'static>,
    responses((status = 202, description = "How many lines were taken in")))]
async fn add(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    request: Request,
) -> Answer {
    let about = AttemptRef::parse(&id).map_err(|error| Problem::validation(error.to_string()))?;
    let body = read(request, BODY_MAX).await?;
    let wish: LogsBody<'_> = parse(&body, "{entries: [{ts, level, message, …}]}")?;
    if wish.entries.len() > ENTRIES_MAX {
        return Err(Problem::validation(format!(
            "at most {ENTRIES_MAX} entries"
        )));
    }
    let (now, since) = (app.clock.now(), Instant::now());
    let lines: Vec<Line> = wish
        .entries
        .into_iter()
        .map(|entry| Line {
            about: about.clone(),
            parent: entry
                .parent_execution_id
                .as_deref()
                .and_then(|parent| AttemptRef::parse(parent).ok()),
            by: caller.clone(),
            what: What::Log(row(about.execution.clone(), entry, now)),
            since,
        })
        .collect();
    let accepted = lines.len();
    app.logs.push(&app, lines);
    let answer = json!({ "success": true, "accepted": accepted });
    Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response())
}

fn row(execution: ExecutionId, entry: Entry<'_>, now: Timestamp) -> LogRow {
    let word = |text: Option<String>, or: &str| match text {
        Some(text) if !text.is_empty() => kept(&text, WORD_BYTES_MAX),
        _ => or.to_owned(),
    };
    let attributes = match entry.attributes.map(RawValue::get) {
        None | Some("null") => Bytes::from_static(b"{}"),
        Some(text) if text.len() > MESSAGE_BYTES_MAX => {
            Bytes::from(json!({ "omitted_bytes": text.len() }).to_string())
        }
        Some(text) => Bytes::copy_from_slice(without_secrets(text).as_bytes()),
    };
    LogRow {
        seq: 0,
        execution,
        at: entry
            .ts
            .as_deref()
            .and_then(Timestamp::parse)
            .unwrap_or(now),
        level: word(entry.level, "info").to_lowercase(),
        source: word(entry.source, ""),
        event_type: word(entry.event_type, "log"),
        message: kept(entry.message.as_deref().unwrap_or(""), MESSAGE_BYTES_MAX),
        attributes,
    }
}

/// Which lines.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsQuery {
    /// Only lines after this number.
    after: Option<u64>,
    /// This level or a graver one: `debug`, `info`, `warn`, `error`.
    level: Option<String>,
    /// At most so many, up to 5,000 (500).
    limit: Option<usize>,
    /// Keep the answer open, as server-sent events, until the execution has ended.
    follow: Option<bool>,
}

/// The log lines of an execution in order, or, with `follow=true`, as server-sent events.
#[utoipa::path(get, path = "/api/v1/executions/{id}/logs", tag = "executions",
    params(("id" = String, Path, description = "The execution"), LogsQuery),
    responses((status = 200, description = "A page of its lines", body = LogPage),
              (status = 404, description = "No such execution")))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(wish): Query<LogsQuery>,
) -> Answer {
    let id = execution(&id)?;
    let least = wish.level.as_deref().filter(|level| !level.is_empty());
    let least = least
        .map(str::to_lowercase)
        .map_or(Ok(Gravity::Debug), |level| {
            Gravity::parse(&level)
                .ok_or_else(|| Problem::validation("level is one of debug, info, warn, error"))
        })?;
    app.logs.flush(&app).await;
    let (question, after) = (id.clone(), wish.after.unwrap_or(0));
    let limit = wish.limit.unwrap_or(READ).clamp(1, PAGE_MAX);
    let (row, page) = app
        .blocking(move |stores| {
            let (_, row) = stores.decisions.execution(&question)?;
            Ok::<_, StoreError>((row, page(stores, &question, after, least, limit)?))
        })
        .await?;
    may_see(&caller, row.as_ref().map(|row| &*row.principal), &id)?;
    if wish.follow == Some(true) {
        return Ok(follow::stream(app, id, after, least));
    }
    let answer = json!({
        "execution_id": id,
        "entries": page.lines.iter().map(shown).collect::<Vec<_>>(),
        "total": page.total,
        "dropped": page.dropped,
        "gaps": page.gaps,
        "next_after": page.at,
        "has_more": page.has_more,
    });
    Ok(axum::Json(answer).into_response())
}

/// A page of lines that are grave enough.
struct Page {
    lines: Vec<LogRow>,
    /// The number up to which it looked.
    at: u64,
    has_more: bool,
    total: u64,
    dropped: u64,
    gaps: Vec<LogGap>,
}

fn page(
    stores: &Stores,
    id: &ExecutionId,
    after: u64,
    least: Gravity,
    limit: usize,
) -> Result<Page, StoreError> {
    let annex: &dyn Annex = &*stores.annex;
    let mut page = Page {
        lines: Vec::new(),
        at: after,
        has_more: false,
        total: 0,
        dropped: 0,
        gaps: Vec::new(),
    };
    loop {
        let Logs {
            lines,
            dropped,
            total,
        } = annex.logs(id, page.at, READ)?;
        (page.total, page.dropped) = (total, dropped);
        let read = lines.len();
        for line in lines {
            if page.lines.len() == limit {
                page.has_more = true;
                return Ok(page);
            }
            let missing = line.seq.saturating_sub(page.at + 1);
            if missing > 0 {
                page.gaps.push(LogGap {
                    after: page.at,
                    lines: missing,
                });
            }
            page.at = line.seq;
            if Gravity::of(&line.level) >= least {
                page.lines.push(line);
            }
        }
        if read < READ {
            return Ok(page);
        }
    }
}

/// How grave a line is. A level nobody knows counts as `info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gravity {
    Debug,
    Info,
    Warn,
    Error,
}

impl Gravity {
    fn parse(level: &str) -> Option<Self> {
        Some(match level {
            "trace" | "debug" => Gravity::Debug,
            "info" => Gravity::Info,
            "warn" | "warning" => Gravity::Warn,
            "error" | "critical" | "fatal" => Gravity::Error,
            _ => return None,
        })
    }

    fn of(level: &str) -> Self {
        Self::parse(level).unwrap_or(Gravity::Info)
    }
}

fn shown(line: &LogRow) -> Value {
    let attributes: Value = serde_json::from_slice(&line.attributes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line.attributes).into_owned()));
    json!({
        "seq": line.seq,
        "ts": line.at.rfc3339(),
        "level": line.level,
        "source": line.source,
        "event_type": line.event_type,
        "message": line.message,
        "attributes": attributes,
    })
}

/// An execution's id out of a path; an attempt's id is cut down.
pub(super) fn execution(text: &str) -> Result<ExecutionId, Problem> {
    match AttemptRef::parse(text) {
        Ok(from) => Ok(from.execution),
        Err(error) => Err(Problem::validation(error.to_string())),
    }
}

/// Whether a caller may see what belongs to an execution. `principal` is `None` when there is
/// no such execution.
pub(super) fn may_see(
    caller: &Caller,
    principal: Option<&str>,
    id: &ExecutionId,
) -> Result<(), Problem> {
    match principal {
        Some(principal) if caller.sees(principal) => Ok(()),
        _ => Err(Problem::not_found(format!("there is no execution {id}"))),
    }
}
