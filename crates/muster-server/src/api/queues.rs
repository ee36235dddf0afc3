//! Queues: who waits where, and how long it may take.

use axum::Json;
use axum::extract::State;
use muster_engine::effect::AgentState;
use muster_engine::event::Question;
use muster_engine::row::QueuedRow;
use muster_engine::{Event, Reply};
use muster_wire::AgentId;
use muster_wire::api::At;
use muster_wire::api::held::HeldCause;
use muster_wire::api::queues::{HeldBy, Queue, QueueEntry, QueueLine, Queues};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents;
use super::body::{PathText, Query};
use super::problem::Problem;
use super::stamp::Stamp;
use crate::app::App;

/// Entries of a queue that are shown when nobody says how many, and at most: up to there a place
/// is exact.
const ENTRIES: usize = 100;
const ENTRIES_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(all))
        .routes(routes!(one))
}

/// The queue of every agent.
#[utoipa::path(
    get, path = "/api/v1/queues", tag = "queues",
    responses((status = 200, description = "One entry for each agent", body = Queues))
)]
async fn all(State(app): State<App>) -> Result<Json<Queues>, Problem> {
    let stamp = Stamp::now(&app);
    let states = agents::states(&app).await?;
    Ok(Json(Queues {
        as_of: stamp.as_of,
        position: stamp.position,
        queues: states.iter().map(line).collect(),
    }))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Wanted {
    limit: Option<usize>,
}

/// The queue of one agent
///
/// With its first entries in the order in which they start: class, turn, acceptance.
#[utoipa::path(
    get, path = "/api/v1/queues/{agent}", tag = "queues",
    params(("agent" = String, Path, description = "The agent"),
           ("limit" = Option<usize>, Query, description = "Entries; 100 when absent, 1,000 at most")),
    responses(
        (status = 200, description = "Its queue", body = Queue),
        (status = 404, description = "No such agent"),
    )
)]
async fn one(
    State(app): State<App>,
    PathText(agent): PathText,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Queue>, Problem> {
    let stamp = Stamp::now(&app);
    let state = ask(&app, &agent).await?;
    let limit = wanted.limit.unwrap_or(ENTRIES).min(ENTRIES_MAX);
    let id = state.id.clone();
    let window = app
        .blocking(move |stores| stores.decisions.window(&id, None, limit))
        .await?;
    let estimated = state.starts_in_ms.is_some();
    let rate = state
        .starts_per_minute
        .filter(|rate| *rate > 0.0 && estimated);
    let entry = |(n, queued): (usize, &QueuedRow)| {
        let row = &queued.row;
        let position = n as u64 + 1;
        QueueEntry {
            position,
            execution_id: row.id.clone(),
            run_id: row.run.clone(),
            function: row.function.clone(),
            class: row.queue.class,
            turn: row.queue.turn,
            created_at: At(row.created_at),
            starts_in_ms: rate.map(|rate| (position as f64 * 60_000.0 / rate) as u64),
        }
    };
    let entries: Vec<QueueEntry> = window.rows.iter().enumerate().map(entry).collect();
    Ok(Json(Queue {
        as_of: stamp.as_of,
        position: stamp.position,
        more: state.queued.saturating_sub(entries.len() as u64),
        line: line(&state),
        entries,
    }))
}

/// The engine's state of an agent.
///
/// # Errors
/// 400 and 404 as their names say.
pub(crate) async fn ask(app: &App, agent: &str) -> Result<Box<AgentState>, Problem> {
    let id = AgentId::parse(agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    let question = Question::Agent(id);
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Agent(Some(state)) => Ok(state),
        Reply::Agent(None) | Reply::UnknownAgent => {
            Err(Problem::not_found(format!("there is no agent {agent}")))
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}

/// A queue as answers show it.
pub(crate) fn line(state: &AgentState) -> QueueLine {
    let unapproved = state.tags.unapproved();
    let pending: Vec<String> = unapproved.iter().map(ToString::to_string).collect();
    QueueLine {
        agent: state.id.to_string(),
        cap: state.cap,
        running: state.running,
        over_cap: state.over_cap,
        queued: state.queued,
        waiting_callers: state.places,
        absorbed: state.absorbed,
        held: state.held,
        oldest_queued_at: state.oldest_queued_at.map(At),
        starts_per_minute: state.starts_per_minute,
        starts_in_ms: state.starts_in_ms,
        held_by: held_by(state),
        pending_tags: (!pending.is_empty()).then_some(pending),
    }
}

/// The hold over an agent in words: who, and why.
pub(crate) fn hold_text(state: &AgentState) -> String {
    let (mut text, by) = match &state.hold {
        Some(_) => ("everything is held".to_owned(), state.hold_by.as_ref()),
        None => (format!("{} is held", state.id), state.held_by.as_ref()),
    };
    if let Some(by) = by {
        text.push_str(&format!(" by {}", by.by));
    }
    if let Some(reason) = state.hold.as_deref().or(by.map(|by| &*by.reason)) {
        text.push_str(&format!(": {reason}"));
    }
    text
}

/// What holds an agent's queue up: the strongest cause, as the engine itself asks for them.
pub(crate) fn held_by(state: &AgentState) -> Option<HeldBy> {
    let waits = state.queued > 0 || state.places > 0;
    let says = |cause, text: String| {
        Some(HeldBy {
            cause,
            text,
            until: None,
        })
    };
    if state.hold.is_some() || state.held_itself {
        return says(HeldCause::Hold, hold_text(state));
    }
    let unapproved = state.tags.unapproved();
    if waits && !unapproved.is_empty() {
        let text = format!("tags are not approved: {}", unapproved.join(", "));
        return says(HeldCause::TagsPending, text);
    }
    if let Some(cap) = state.cap.filter(|cap| waits && state.running >= *cap) {
        let text = format!("{} of {cap} slots are held", state.running);
        return says(HeldCause::AgentFull, text);
    }
    if state.absorbed > 0 {
        return Some(HeldBy {
            cause: HeldCause::AgentRestart,
            text: format!("{} is restarting", state.id),
            until: state.absorbed_until.map(At),
        });
    }
    if waits && !state.can_start {
        let text = format!("no instance of {} can be called", state.id);
        return says(HeldCause::AgentUnavailable, text);
    }
    None
}
