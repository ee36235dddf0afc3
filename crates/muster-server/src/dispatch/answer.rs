//! The table of answers: what an agent's HTTP answer means for its execution. Knows no socket.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use muster_engine::event::Outcome;
use muster_engine::row::Payload;
use muster_wire::{Category, Status};

use crate::json;

/// The reserved key of a result under which agents report usage.
const USAGE_KEY: &str = "__agentfield_usage__";
/// How much of an answer that cannot be used is kept.
pub const KEPT_MAX: usize = 4096;
/// The largest error body that is kept as details.
const DETAILS_MAX: usize = 64 * 1024;

/// What an answer means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// It will call back.
    Accepted,
    /// It ended.
    Ended(Box<Outcome>),
}

/// Reads an answer's status and whole body.
pub fn meaning(status: StatusCode, body: Bytes) -> Meaning {
    let code = status.as_u16();
    match code {
        202 => Meaning::Accepted,
        200..=299 => Meaning::Ended(Box::new(success(status, body))),
        300..=399 => Meaning::Ended(Box::new(bad(
            format!("the agent answered {code}, and redirects are not followed"),
            &body,
        ))),
        400 | 422 => Meaning::Ended(Box::new(failure(Category::Validation, code, code, body))),
        401..=499 => Meaning::Ended(Box::new(failure(Category::AgentError, code, code, body))),
        _ => Meaning::Ended(Box::new(failure(Category::AgentError, code, 502, body))),
    }
}

/// An answer that cannot be used, with the reason and its first bytes.
pub fn bad(reason: impl Into<String>, body: &[u8]) -> Outcome {
    let reason = reason.into();
    let kept = &body[..body.len().min(KEPT_MAX)];
    let details = serde_json::json!({
        "reason": reason,
        "body": String::from_utf8_lossy(kept),
    });
    Outcome {
        error: Some(text(reason)),
        details: serde_json::to_vec(&details).ok().map(|d| Payload(d.into())),
        category: Some(Category::BadResponse),
        reason: Some(Arc::from("bad_response")),
        http_status: Some(502),
        ..blank(Status::Failed)
    }
}

/// An outcome that says nothing but its status.
pub fn blank(status: Status) -> Outcome {
    Outcome {
        status,
        result: None,
        result_stored: None,
        error: None,
        details: None,
        category: None,
        reason: None,
        http_status: None,
        usage: None,
    }
}

/// A success with this value; usage is taken out of it.
pub fn succeeded(value: Bytes) -> Outcome {
    let taken = std::str::from_utf8(&value)
        .ok()
        .and_then(|text| json::take_member(text, USAGE_KEY));
    let (result, usage) = match taken {
        Some((usage, rest)) => (Bytes::from(rest), Some(Payload(Bytes::from(usage)))),
        None => (value, None),
    };
    Outcome {
        result: Some(Payload(result)),
        usage,
        ..blank(Status::Succeeded)
    }
}

fn success(status: StatusCode, body: Bytes) -> Outcome {
    if status == StatusCode::NO_CONTENT || body.iter().all(u8::is_ascii_whitespace) {
        return succeeded(Bytes::from_static(b"null"));
    }
    match json::check(&body) {
        Ok(_) => succeeded(body),
        Err(why) => bad(format!("the agent's answer is {why}"), &body),
    }
}

fn failure(category: Category, agent_said: u16, http_status: u16, body: Bytes) -> Outcome {
    let is_json = body.len() <= DETAILS_MAX && json::check(&body).is_ok();
    let said = if is_json {
        sentence(&body)
    } else {
        plain(&body)
    };
    let reason = match category {
        Category::Validation => format!("agent_client_error:{agent_said}"),
        _ if agent_said < 500 => format!("agent_client_error:{agent_said}"),
        _ => "agent_error".to_owned(),
    };
    let error = match said {
        Some(said) => format!("the agent answered {agent_said}: {said}"),
        None => format!("the agent answered {agent_said}"),
    };
    Outcome {
        error: Some(text(error)),
        details: is_json.then(|| Payload(body)),
        category: Some(category),
        reason: Some(reason.into()),
        http_status: Some(http_status),
        ..blank(Status::Failed)
    }
}

/// The sentence in an error body: `message`, `error` or `detail` when it is text, else the body.
fn sentence(body: &[u8]) -> Option<String> {
    let json::Members(members) = match serde_json::from_slice(body) {
        Ok(members) => members,
        Err(_) => return plain(body),
    };
    ["message", "error", "detail"]
        .iter()
        .filter_map(|name| members.iter().find(|(key, _)| key == name))
        .find_map(|(_, value)| serde_json::from_str::<String>(value.get()).ok())
        .or_else(|| plain(body))
}

fn plain(body: &[u8]) -> Option<String> {
    let kept = String::from_utf8_lossy(&body[..body.len().min(KEPT_MAX)]);
    let kept = kept.trim();
    (!kept.is_empty()).then(|| kept.to_owned())
}

fn text(text: String) -> Payload {
    Payload(Bytes::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: u16, body: &'static [u8]) -> Outcome {
        match meaning(
            StatusCode::from_u16(status).unwrap(),
            Bytes::from_static(body),
        ) {
            Meaning::Ended(outcome) => *outcome,
            Meaning::Accepted => panic!("accepted"),
        }
    }

    fn result(outcome: &Outcome) -> &[u8] {
        &outcome.result.as_ref().unwrap().0
    }

    #[test]
    fn each_row_of_the_table() {
        assert_eq!(result(&ended(200, b"5")), b"5");
        assert_eq!(result(&ended(204, b"")), b"null");
        assert_eq!(result(&ended(200, b" ")), b"null");
        assert_eq!(result(&ended(201, b"[1e400]")), b"[1e400]");
        assert_eq!(
            meaning(StatusCode::ACCEPTED, Bytes::new()),
            Meaning::Accepted
        );
        for (status, body, category, http) in [
            (200, &b"<html>"[..], Category::BadResponse, 502),
            (200, b"{\"a\":", Category::BadResponse, 502),
            (302, b"", Category::BadResponse, 502),
            (400, b"{\"detail\":\"no\"}", Category::Validation, 400),
            (422, b"{\"detail\":[]}", Category::Validation, 422),
            (404, b"", Category::AgentError, 404),
            (500, b"Internal Server Error", Category::AgentError, 502),
            (503, b"", Category::AgentError, 502),
        ] {
            let outcome = ended(status, body);
            assert_eq!(outcome.status, Status::Failed, "{status}");
            assert_eq!(outcome.category, Some(category), "{status}");
            assert_eq!(outcome.http_status, Some(http), "{status}");
        }
    }

    #[test]
    fn usage_is_taken_out_and_numbers_keep_their_text() {
        let outcome = ended(
            200,
            br#"{"x":1.0e2,"__agentfield_usage__":{"total_tokens":3}}"#,
        );
        assert_eq!(result(&outcome), br#"{"x":1.0e2}"#);
        assert_eq!(&outcome.usage.unwrap().0[..], br#"{"total_tokens":3}"#);
    }

    #[test]
    fn the_agents_sentence_is_found() {
        let said = |outcome: Outcome| String::from_utf8(outcome.error.unwrap().0.to_vec()).unwrap();
        assert_eq!(
            said(ended(422, br#"{"detail":"field required"}"#)),
            "the agent answered 422: field required"
        );
        assert_eq!(said(ended(500, b"boom")), "the agent answered 500: boom");
        assert_eq!(said(ended(404, b"")), "the agent answered 404");
    }
}
