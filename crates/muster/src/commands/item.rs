//! Reads what the API says of things: a field, whatever of its names the plane uses. A field
//! that is not there is `None`, never zero.

use muster_wire::Timestamp;
use serde_json::Value;

use crate::out::{clean, span};

/// A text field by the first of its names that is there, cleaned for a terminal.
pub(super) fn text(item: &Value, names: &[&str]) -> Option<String> {
    raw(item, names).map(|text| clean(&text))
}

/// The same as it is: for ids that are asked for again.
pub(super) fn raw(item: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match item.get(*name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    })
}

/// A number field.
pub(super) fn number(item: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| item.get(*name)?.as_u64())
}

/// A time field.
pub(super) fn time(item: &Value, names: &[&str]) -> Option<Timestamp> {
    names
        .iter()
        .find_map(|name| Timestamp::parse(item.get(*name)?.as_str()?))
}

/// Milliseconds between two moments; negative when the second is earlier.
pub(super) fn between(from: Timestamp, to: Timestamp) -> i64 {
    (to.0 - from.0) / 1_000
}

/// Its exact state: `state` has the word that `status` may hide from old clients.
pub(super) fn state(item: &Value) -> String {
    text(item, &["state", "status"]).unwrap_or_else(|| "unknown".to_owned())
}

/// Its id.
pub(super) fn id(item: &Value) -> String {
    text(item, &["id", "execution_id", "run_id", "node_id"]).unwrap_or_default()
}

/// `agent.function`.
pub(super) fn target(item: &Value) -> String {
    if let Some(target) = text(item, &["target"]) {
        return target;
    }
    let agent = text(item, &["agent", "agent_id", "node_id"]).unwrap_or_else(|| "?".to_owned());
    let function = text(item, &["function", "reasoner_id"]).unwrap_or_else(|| "?".to_owned());
    format!("{agent}.{function}")
}

/// How long ago it was accepted.
pub(super) fn age(item: &Value, now: Timestamp) -> String {
    time(item, &["created_at", "started_at", "at"])
        .map_or_else(String::new, |at| span::age(between(at, now)))
}

/// How long it took, or has taken so far.
pub(super) fn took(item: &Value, now: Timestamp) -> Option<i64> {
    let ended = time(item, &["ended_at", "completed_at", "finished_at"]);
    if ended.is_some()
        && let Some(ms) = number(item, &["duration_ms"])
    {
        return i64::try_from(ms).ok();
    }
    let began = time(item, &["started_at", "created_at"])?;
    Some(between(began, ended.unwrap_or(now)))
}

/// Why it is where it is, in a few words: what it waits for, or why it failed.
pub(super) fn why(item: &Value, now: Timestamp) -> String {
    let wait = item.get("wait").filter(|wait| wait.is_object());
    let said = text(item, &["why", "verdict"]);
    match (wait, said) {
        // A place in a queue is more than a sentence knows.
        (Some(wait), None) => return waits(item, wait, now),
        (Some(wait), _) if wait.get("position").is_some() => return waits(item, wait, now),
        // What it is about stands beside it.
        (_, Some(said)) => {
            let about = format!("{} ", target(item));
            return said
                .strip_prefix(&about)
                .map_or(said.clone(), str::to_owned);
        }
        (None, None) => {}
    }
    let reason = text(item, &["status_reason", "reason"]);
    if reason
        .as_deref()
        .is_some_and(|r| r.starts_with("awaiting_agent_restart"))
    {
        let agent = target(item);
        let agent = agent.split('.').next().unwrap_or_default();
        return format!("waits for {agent} to restart");
    }
    let category = text(item, &["error_category"]);
    let error = text(item, &["error_message", "error"]).filter(|e| Some(e) != category.as_ref());
    match (category, error, reason) {
        (Some(category), Some(error), _) => format!("{category}: {error}"),
        (Some(category), None, Some(reason)) if category != reason => {
            format!("{category}: {reason}")
        }
        (Some(category), None, _) => category,
        (None, Some(error), _) => error,
        (None, None, Some(reason)) => reason.replace('_', " "),
        (None, None, None) => String::new(),
    }
}

fn waits(item: &Value, wait: &Value, now: Timestamp) -> String {
    let cause = text(wait, &["cause", "kind"]).unwrap_or_else(|| "unknown".to_owned());
    let agent = target(item);
    let agent = agent.split('.').next().unwrap_or_default().to_owned();
    let mut said = match cause.as_str() {
        "agent_full" => match (
            number(wait, &["holders", "running"]),
            number(wait, &["cap"]),
        ) {
            (Some(holders), Some(cap)) => format!("agent full {holders}/{cap}"),
            _ => "agent full".to_owned(),
        },
        "agent_restart" | "awaiting_agent_restart" => format!("waits for {agent} to restart"),
        "hold" | "held" => "held".to_owned(),
        "dispatch" | "waiting_for_dispatch" => "waits for a free connection".to_owned(),
        "approval" | "waiting_for_approval" => "a person decides".to_owned(),
        "awaiting_child" | "waiting_child" => "waits for a call of its own".to_owned(),
        other => other.replace('_', " "),
    };
    match (text(wait, &["reason"]), text(wait, &["text"])) {
        (Some(reason), _) => said += &format!(": {reason}"),
        // The plane's own sentence is all of it.
        (None, Some(text)) if cause != "agent_full" => said = text,
        _ => {}
    }
    if let Some(position) = number(wait, &["position"]) {
        said += &format!(", position {}", span::number(position));
        if let Some(of) = number(wait, &["of", "depth"]) {
            said += &format!(" of {}", span::number(of));
        }
    }
    if let Some(ms) = number(wait, &["starts_in_ms"]) {
        said += &format!(", ≈ {}", span::age(i64::try_from(ms).unwrap_or(i64::MAX)));
    }
    if let Some(until) = time(wait, &["until", "expires_at"]) {
        said += &format!(", {} left", span::age(between(now, until).max(0)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wait_reads_as_a_few_words() {
        let now = Timestamp(1_000_000_000);
        for (item, want) in [
            (
                json!({"target":"a.b","wait":{"cause":"agent_full","holders":4,"cap":4,"position":14,"of":29,"starts_in_ms":20000}}),
                "agent full 4/4, position 14 of 29, ≈ 20 s",
            ),
            (
                json!({"target":"hotel.search","status_reason":"awaiting_agent_restart"}),
                "waits for hotel to restart",
            ),
            (
                json!({"target":"a.b","error_category":"agent_error","error_message":"KeyError"}),
                "agent_error: KeyError",
            ),
            (
                json!({"target":"a.b","error":"agent_error","error_category":"agent_error"}),
                "agent_error",
            ),
            (json!({"target":"a.b"}), ""),
        ] {
            assert_eq!(why(&item, now), want);
        }
    }
}
