//! Notes that agents leave on their executions, and reading them back.

use std::time::Instant;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use muster_store::annex::NoteRow;
use muster_wire::api::log::NoteList;
use muster_wire::{AttemptRef, RunId, Timestamp};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query, RawBody, json as parse};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use crate::app::App;
use crate::logs::text::{MESSAGE_BYTES_MAX, WORD_BYTES_MAX, kept};
use crate::logs::{Line, What};

/// Tags of one note.
const TAGS_MAX: usize = 32;
/// The longest answer.
const NOTES_MAX: usize = 5_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(add))
        .routes(routes!(list))
}

/// A note.
#[derive(Debug, Deserialize, ToSchema)]
struct NoteBody {
    /// Its text; over 64 KiB it is cut.
    message: String,
    /// At most 32.
    tags: Option<Vec<String>>,
    /// Seconds since 1970, by the agent's clock.
    timestamp: Option<f64>,
    /// The agent that writes it.
    agent_node_id: Option<String>,
}

/// Leaves a note on the execution that the header `X-Execution-ID` names. It is answered before
/// it is written; a note that does not prove to come from its execution is dropped and counted.
#[utoipa::path(post, path = "/api/v1/executions/note", tag = "executions", request_body = NoteBody,
    params(("X-Execution-ID" = String, Header, description = "The execution, as the agent got it")),
    responses((status = 200, description = "The note as it will be kept")))]
async fn add(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Answer {
    let wish: NoteBody = parse(&body, "{message, tags?, timestamp?, agent_node_id?}")?;
    let Some(about) = attempt(&headers, "x-execution-id")? else {
        return Err(Problem::validation(
            "the header X-Execution-ID must name the execution",
        ));
    };
    let run = ["x-run-id", "x-workflow-id"]
        .into_iter()
        .find_map(|name| RunId::parse(headers.get(name)?.to_str().ok()?).ok());
    let mut tags = wish.tags.unwrap_or_default();
    tags.truncate(TAGS_MAX);
    let note = NoteRow {
        execution: about.execution.clone(),
        run,
        agent: wish.agent_node_id.map(|agent| kept(&agent, WORD_BYTES_MAX)),
        message: kept(&wish.message, MESSAGE_BYTES_MAX),
        tags: tags.iter().map(|tag| kept(tag, WORD_BYTES_MAX)).collect(),
        at: wish
            .timestamp
            .and_then(from_seconds)
            .unwrap_or_else(|| app.clock.now()),
    };
    let answer = json!({ "success": true, "message": "Note added", "note": shown(&note) });
    let parent = attempt(&headers, "x-parent-execution-id")?;
    let line = Line {
        about,
        parent,
        by: caller,
        what: What::Note(note),
        since: Instant::now(),
    };
    app.logs.push(&app, vec![line]);
    Ok((StatusCode::OK, axum::Json(answer)).into_response())
}

/// Which notes.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct NotesQuery {
    /// Any of these tags, comma-separated.
    tags: Option<String>,
}

/// The notes of an execution, oldest first.
#[utoipa::path(get, path = "/api/v1/executions/{id}/notes", tag = "executions",
    params(("id" = String, Path, description = "The execution"), NotesQuery),
    responses((status = 200, description = "Its notes", body = NoteList),
              (status = 404, description = "No such execution")))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(wish): Query<NotesQuery>,
) -> Answer {
    let id = super::logs::execution(&id)?;
    let tags: Vec<String> = wish
        .tags
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
        .map(str::to_owned)
        .collect();
    app.logs.flush(&app).await;
    let question = id.clone();
    let (row, notes) = app
        .blocking(move |stores| {
            let (_, row) = stores.decisions.execution(&question)?;
            let notes = stores.annex.notes(&question, &tags, NOTES_MAX)?;
            Ok::<_, muster_store::StoreError>((row, notes))
        })
        .await?;
    super::logs::may_see(&caller, row.as_ref().map(|row| &*row.principal), &id)?;
    let notes: Vec<_> = notes.iter().map(shown).collect();
    let answer = json!({ "execution_id": id, "total": notes.len(), "notes": notes });
    Ok(axum::Json(answer).into_response())
}

fn shown(note: &NoteRow) -> serde_json::Value {
    json!({
        "message": note.message,
        "tags": note.tags,
        "timestamp": note.at.rfc3339(),
        "agent_node_id": note.agent,
        "run_id": note.run,
    })
}

/// An execution named by a header, with its proof. An empty header counts as absent.
pub(super) fn attempt(headers: &HeaderMap, name: &str) -> Result<Option<AttemptRef>, Problem> {
    let Some(value) = headers.get(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    value
        .to_str()
        .ok()
        .and_then(|text| AttemptRef::parse(text).ok())
        .map(Some)
        .ok_or_else(|| Problem::validation(format!("the header {name} is no execution id")))
}

/// Python's `time.time()`; `None` for what cannot be one.
fn from_seconds(seconds: f64) -> Option<Timestamp> {
    if seconds > 0.0 && seconds < 1e11 {
        Some(Timestamp((seconds * 1e6) as i64))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_agents_are_read_and_nonsense_is_not() {
        assert_eq!(from_seconds(1.5), Some(Timestamp(1_500_000)));
        for bad in [0.0, -1.0, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(from_seconds(bad), None);
        }
    }
}
