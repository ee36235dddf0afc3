//! `POST /api/v1/executions/{id}/status`: an agent tells how an attempt ended. Never refused
//! for load; one that cannot be used ends its attempt instead of being lost.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use muster_engine::event::{Callback, Outcome};
use muster_engine::row::Payload;
use muster_engine::{Event, Reply};
use muster_wire::{AttemptRef, Category, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use super::write::Writer;
use crate::app::App;
use crate::bodies::{NotRead, Patience};
use crate::dispatch::answer::{bad, blank, succeeded};
use crate::{json, payloads};

/// What a callback may have beside its result.
const BESIDE_RESULT: usize = 1024 * 1024;
/// The longest error text and the largest details that are kept whole.
pub(crate) const TEXT_MAX: usize = 64 * 1024;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(status))
}

/// Takes a status callback.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/status", tag = "agents",
    params(("id" = String, Path, description = "The id the agent got as X-Execution-ID")),
    request_body(content = serde_json::Value, description = "{status, result?, error?, error_details?, …}"),
    responses(
        (status = 200, description = "Taken, or known already", body = serde_json::Value),
        (status = 403, description = "It does not prove that it comes from the attempt"),
        (status = 404, description = "No such execution"),
        (status = 409, description = "It contradicts the end; kept as a late outcome"),
    )
)]
async fn status(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    body: Body,
) -> Answer {
    let from = AttemptRef::parse(&id)
        .map_err(|error| Problem::validation(format!("execution id: {error}")))?;
    let max_result = usize::try_from(app.config.executions.max_result.0).unwrap_or(usize::MAX);
    let limit = max_result.saturating_add(BESIDE_RESULT);
    let (said, held) = match app.room.read(body, limit, Patience::Callback).await {
        Ok(held) => (read(&held.bytes, max_result), Some(held)),
        Err(NotRead::TooLarge(kept)) => {
            let why = format!("the callback is over the limit of {max_result} bytes");
            (Err((why, kept)), None)
        }
        Err(why) => return Err(why.problem(limit)),
    };
    let outcome = match said {
        Ok(outcome) => outcome,
        // The sender does not come back after a 4xx: what proves its attempt ends it.
        Err((why, kept)) if from.proof.is_some() || caller.key_agent.is_some() => bad(why, &kept),
        Err((why, _)) => return Err(Problem::validation(why)),
    };
    let outcome = payloads::store_result(&app.stores, &from.execution, outcome).await;
    drop(held);
    let execution = from.execution.clone();
    let key_agent = caller.key_agent.clone();
    let make = |waiter| {
        Event::CalledBack(Box::new(Callback {
            waiter,
            from,
            key_agent,
            outcome: Box::new(outcome),
            known: None,
        }))
    };
    match app.driver.ask(make).await? {
        Reply::CallbackTaken => Ok(taken(execution.as_str(), false)),
        Reply::CallbackRepeated => Ok(taken(execution.as_str(), true)),
        Reply::CallbackLate { status } => Err(Problem::new(
            Category::Conflict,
            format!("the execution ended as {status} before; this outcome is kept as a late one"),
        )
        .execution(execution.as_str())),
        Reply::UnknownExecution => Err(show::unknown_execution(&execution)),
        Reply::WrongAttempt => Err(Problem::new(
            Category::WrongAttempt,
            "this does not come from the execution's live attempt: send the id that came as X-Execution-ID, whole, in the path",
        )
        .execution(execution.as_str())),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!("a callback was answered {other:?}"))),
    }
}

fn taken(execution: &str, repeated: bool) -> axum::response::Response {
    Writer::object()
        .flag("success", true)
        .text("execution_id", execution)
        .flag("repeated", repeated)
        .answer(StatusCode::OK)
}

#[derive(Deserialize)]
struct CallbackBody<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    error_details: Option<&'a RawValue>,
    #[serde(borrow)]
    error_status_code: Option<&'a RawValue>,
    #[serde(borrow)]
    status_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Reads a callback; the error carries why it cannot be used, and its first bytes.
fn read(body: &Bytes, max_result: usize) -> Result<Outcome, (String, Bytes)> {
    let unusable = |why: String| (why, body.slice(..body.len().min(4096)));
    if let Err(why) = json::check(body) {
        return Err(unusable(format!("the callback is {why}")));
    }
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(unusable("the callback is no JSON object".into()));
    }
    let said: CallbackBody<'_> = serde_json::from_slice(body)
        .map_err(|error| unusable(format!("the callback: {}", json::place(&error))))?;
    let word = said
        .status
        .and_then(|word| serde_json::from_str::<String>(word.get()).ok());
    let Some(status) = word.as_deref().and_then(Status::from_agent) else {
        return Err(unusable(
            "the callback's status is no word for a status".into(),
        ));
    };
    if let Some(result) = said.result
        && result.get().len() > max_result
    {
        return Err(unusable(format!(
            "the result is over the limit of {max_result} bytes"
        )));
    }
    Ok(outcome(status, &said, body))
}

fn outcome(status: Status, said: &CallbackBody<'_>, body: &Bytes) -> Outcome {
    let usage = said.usage.map(|usage| copied(usage, body));
    if status == Status::Succeeded {
        let value = said.result.map_or_else(
            || Bytes::from_static(b"null"),
            |result| copied(result, body).0,
        );
        let outcome = succeeded(value);
        return Outcome {
            usage: usage.or(outcome.usage.clone()),
            ..outcome
        };
    }
    let reason = reason(status, said);
    let http_status = said
        .error_status_code
        .and_then(|code| serde_json::from_str::<u16>(code.get()).ok())
        .filter(|code| (400..=599).contains(code));
    Outcome {
        result: said.result.map(|result| copied(result, body)),
        error: said.error.and_then(text_of),
        details: said.error_details.map(|details| bounded(details, body)),
        category: match status {
            Status::Failed => Some(Category::AgentError),
            Status::Cancelled => Some(Category::Cancelled),
            Status::Timeout => Some(Category::AgentTimeout),
            Status::Queued
            | Status::Running
            | Status::Waiting
            | Status::Paused
            | Status::Succeeded => None,
        },
        reason,
        http_status,
        usage,
        ..blank(status)
    }
}

/// The finer word: the agent's own, or the one in its details. An agent that shuts down is not
/// a person who cancels.
fn reason(status: Status, said: &CallbackBody<'_>) -> Option<Arc<str>> {
    let own = said
        .status_reason
        .and_then(|reason| serde_json::from_str::<String>(reason.get()).ok());
    let detail = said.error_details.and_then(|details| {
        let json::Members(members) = serde_json::from_str(details.get()).ok()?;
        let (_, reason) = members.into_iter().find(|(name, _)| name == "reason")?;
        serde_json::from_str::<String>(reason.get()).ok()
    });
    if status == Status::Cancelled
        && (detail.as_deref() == Some("shutdown")
            || own
                .as_deref()
                .is_some_and(|own| own.starts_with("shutdown")))
    {
        return Some("agent_shutdown_cancelled".into());
    }
    let mut word = own.or(detail).filter(|word| !word.is_empty())?;
    if word.len() > 256 {
        let cut = (0..=256)
            .rev()
            .find(|at| word.is_char_boundary(*at))
            .unwrap_or(0);
        word.truncate(cut);
    }
    Some(word.into())
}

/// Text as it was meant: a JSON string's content, anything else as its JSON.
pub(crate) fn text_of(raw: &RawValue) -> Option<Payload> {
    let text = match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => text,
        Err(_) => raw.get().to_owned(),
    };
    if text.is_empty() {
        return None;
    }
    let cut = (0..=text.len().min(TEXT_MAX))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    Some(Payload(Bytes::copy_from_slice(&text.as_bytes()[..cut])))
}

/// A member's bytes, apart from the body unless they are large.
fn copied(raw: &RawValue, body: &Bytes) -> Payload {
    let text = raw.get().as_bytes();
    Payload(if text.len() > crate::bodies::SMALL {
        body.slice_ref(text)
    } else {
        Bytes::copy_from_slice(text)
    })
}

/// Details up to their bound; of larger ones the beginning, as text.
fn bounded(raw: &RawValue, body: &Bytes) -> Payload {
    if raw.get().len() <= TEXT_MAX {
        return copied(raw, body);
    }
    let start = &raw.get().as_bytes()[..4096];
    let kept = serde_json::json!({
        "truncated": true,
        "bytes": raw.get().len(),
        "begins": String::from_utf8_lossy(start),
    });
    Payload(Bytes::from(kept.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &'static str) -> Result<Outcome, String> {
        read(&Bytes::from_static(body.as_bytes()), 1000).map_err(|(why, _)| why)
    }

    #[test]
    fn what_the_sdk_sends_is_understood() {
        let ok = said(r#"{"status":"completed","result":42,"usage":{"total_tokens":1}}"#).unwrap();
        assert_eq!(ok.status, Status::Succeeded);
        assert_eq!(&ok.result.unwrap().0[..], b"42");
        assert_eq!(&ok.usage.unwrap().0[..], br#"{"total_tokens":1}"#);
        let null = said(r#"{"status":"succeeded","result":null}"#).unwrap();
        assert_eq!(&null.result.unwrap().0[..], b"null");
        let failed = said(
            r#"{"status":"failed","error":"kaput","error_details":null,"error_status_code":404}"#,
        )
        .unwrap();
        assert_eq!(failed.http_status, Some(404));
        assert_eq!(failed.category, Some(Category::AgentError));
        assert_eq!(&failed.error.unwrap().0[..], b"kaput");
        let gone = said(
            r#"{"status":"cancelled","error_details":{"reason":"shutdown"},"status_reason":"shutdown timeout exceeded"}"#,
        )
        .unwrap();
        assert_eq!(gone.reason.as_deref(), Some("agent_shutdown_cancelled"));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for bad in [
            "",
            "{",
            "[]",
            "5",
            r#"{"status":5}"#,
            r#"{"status":"maybe"}"#,
            r#"{"result":1}"#,
            r#"{"status":"ok","result":NaN}"#,
        ] {
            assert!(said(bad).is_err(), "{bad:?}");
        }
        let large = format!(r#"{{"status":"ok","result":"{}"}}"#, "x".repeat(2000));
        assert!(read(&Bytes::from(large), 1000).is_err());
    }
}
