//! Why a line of a list waits, or did not end well, in one sentence. Of what ended the row alone
//! tells it; of what is held up the engine does, in the words that `why` has for it.

use std::collections::HashMap;

use muster_engine::event::Question;
use muster_engine::row::ExecutionRow;
use muster_engine::{Event, Reply};
use muster_wire::{ExecutionId, Status};

use crate::api::problem::Problem;
use crate::app::App;

/// Of what an agent said about a failure, so many characters are shown in a list.
const SAID_MAX: usize = 160;

/// Whether something holds it up: whether there is a reason to look for.
pub(crate) fn is_held_up(row: &ExecutionRow) -> bool {
    match row.status {
        Status::Queued | Status::Waiting | Status::Paused => true,
        Status::Running => row.absorb_until.is_some(),
        Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout => false,
    }
}

/// The engine's sentence for each of these that is held up.
///
/// # Errors
/// When the engine cannot be asked.
pub(crate) async fn verdicts(
    app: &App,
    rows: impl Iterator<Item = &ExecutionRow>,
) -> Result<HashMap<ExecutionId, String>, Problem> {
    let ids: Vec<ExecutionId> = rows
        .filter(|row| is_held_up(row))
        .map(|row| row.id.clone())
        .collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let question = Question::Verdicts(ids);
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Verdicts(verdicts) => Ok(verdicts.into_iter().collect()),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}

/// The sentence of a row; `None` when there is nothing to explain.
pub(crate) fn of(row: &ExecutionRow, verdicts: &HashMap<ExecutionId, String>) -> Option<String> {
    if let Some(verdict) = verdicts.get(&row.id) {
        return Some(verdict.clone()).filter(|verdict| !verdict.is_empty());
    }
    let reason = row.status_reason.as_deref();
    let plain = |status: &str| match reason {
        Some(reason) => format!("{status}: {reason}"),
        None => status.to_owned(),
    };
    match row.status {
        Status::Succeeded => None,
        Status::Running if row.absorb_until.is_some() => {
            Some(format!("waits for {} to come back", row.agent))
        }
        Status::Running => None,
        // The engine holds the head of a long queue only.
        Status::Queued => Some(format!("waits in the queue of {}", row.agent)),
        Status::Waiting => Some(plain("waits")),
        Status::Paused => Some(reason.map_or_else(|| "paused".to_owned(), str::to_owned)),
        Status::Cancelled => Some(cancelled(row)),
        Status::Failed | Status::Timeout => Some(ended_badly(row)),
    }
}

/// By whom it was cancelled and why, as far as anybody said.
pub(crate) fn cancelled(row: &ExecutionRow) -> String {
    let said = row.error_text.as_ref().map(|said| first_line(&said.0));
    let reason = row.status_reason.as_deref();
    match (said, reason) {
        (Some(said), _) if said.starts_with("cancelled") => said,
        (Some(said), _) => format!("cancelled: {said}"),
        (None, Some(reason)) if reason != "cancelled" => format!("cancelled: {reason}"),
        (None, _) => "cancelled".to_owned(),
    }
}

/// The category, and what the agent said, cut.
fn ended_badly(row: &ExecutionRow) -> String {
    let word = match &row.error_category {
        Some(category) => category.word(),
        None => row.status.word(),
    };
    let Some(said) = &row.error_text else {
        return match row.status_reason.as_deref() {
            Some(reason) if reason != word => format!("{word}: {reason}"),
            _ => word.to_owned(),
        };
    };
    format!("{word}: {}", first_line(&said.0))
}

/// What was said of its end: the agent's words, with the status of its answer when it was one.
pub(super) fn said(row: &ExecutionRow) -> Option<String> {
    row.error_text.as_ref().map(|said| first_line(&said.0))
}

/// The first line of what somebody said, cut.
fn first_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let first = said.lines().next().unwrap_or_default();
    let mut cut: String = first.chars().take(SAID_MAX).collect();
    if cut.len() < said.trim_end().len() {
        cut.push('…');
    }
    cut
}
