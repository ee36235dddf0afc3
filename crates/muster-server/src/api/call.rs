//! A call, read into what the engine is told, wherever it comes from: [`read`] takes it from
//! headers and a body, other lanes spell an [`Asked`] themselves. Decides nothing but what is
//! well formed.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use muster_engine::event::{Submission, Waiter};
use muster_engine::row::Payload;
use muster_wire::{AttemptRef, ExecutionId, Lane, RunId, Target, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::caller::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::bodies::SMALL;
use crate::json;
use crate::webhooks::{self, Registered};

/// The longest free text that is taken.
const TEXT_MAX: usize = 256;

/// The body of a call.
#[derive(Deserialize)]
struct CallBody<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    webhook: Option<&'a RawValue>,
    #[serde(borrow)]
    priority: Option<&'a RawValue>,
    #[serde(borrow)]
    deadline: Option<&'a RawValue>,
    #[serde(borrow)]
    on_parent_end: Option<&'a RawValue>,
}

/// A call that is well formed.
pub(crate) struct Call {
    /// What the engine is told, but for the waiter.
    pub(crate) submission: Submission,
    /// The webhook that was asked for; not yet in the submission.
    pub(crate) webhook: webhooks::Asked,
}

/// A value with the name under which the caller gave it, for the message of a refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// A header's or an argument's.
    pub(crate) name: &'static str,
    /// What it says; never empty.
    pub(crate) text: &'a str,
}

/// A call as it was asked for, before it is checked.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a> {
    /// `agent.function`.
    pub(crate) target: &'a str,
    /// How it came in.
    pub(crate) lane: Lane,
    /// The bytes of which the raw values are parts.
    pub(crate) body: &'a Bytes,
    /// The arguments of the function.
    pub(crate) input: Option<&'a RawValue>,
    /// Its class.
    pub(crate) priority: Option<&'a RawValue>,
    /// How long it may be active.
    pub(crate) deadline: Option<&'a RawValue>,
    /// What becomes of it when its parent ends.
    pub(crate) on_parent_end: Option<&'a RawValue>,
    /// Where its end is to be told.
    pub(crate) webhook: Option<&'a RawValue>,
    /// The run it is to belong to.
    pub(crate) run: Option<Named<'a>>,
    /// The execution, or its attempt, that makes the call.
    pub(crate) parent: Option<Named<'a>>,
    /// What makes a repeat of it join it.
    pub(crate) idempotency_key: Option<Named<'a>>,
    /// The session it belongs to.
    pub(crate) session: Option<Named<'a>>,
    /// On whose behalf.
    pub(crate) actor: Option<Named<'a>>,
    /// A W3C `traceparent`, well formed.
    pub(crate) traceparent: Option<Arc<str>>,
}

/// Reads a call from its headers and its body.
///
/// # Errors
/// 400 with a sentence.
pub(crate) fn read(
    target: &str,
    lane: Lane,
    caller: &Caller,
    headers: &HeaderMap,
    body: &Bytes,
    now: Timestamp,
) -> Result<Call, Problem> {
    let parsed = parse(body)?;
    let asked = Asked {
        target,
        lane,
        body,
        input: parsed.input,
        priority: parsed.priority,
        deadline: parsed.deadline,
        on_parent_end: parsed.on_parent_end,
        webhook: parsed.webhook,
        run: header(headers, "x-run-id", "X-Run-ID")?,
        parent: header(headers, "x-parent-execution-id", "X-Parent-Execution-ID")?,
        idempotency_key: header(headers, "idempotency-key", "Idempotency-Key")?,
        session: header(headers, "x-session-id", "X-Session-ID")?,
        actor: header(headers, "x-actor-id", "X-Actor-ID")?,
        traceparent: traceparent(headers),
    };
    asked.check(caller, now)
}

impl Call {
    /// Seals its webhook into the submission; with what its caller is told of it.
    pub(crate) async fn seal_webhook(&mut self, app: &App) -> Registered {
        let asked = std::mem::take(&mut self.webhook);
        let (sealed, registered) = asked.seal(app, &self.submission.execution).await;
        self.submission.webhook = sealed;
        registered
    }
}

impl Asked<'_> {
    /// Checks its form and mints its ids.
    ///
    /// # Errors
    /// 400 with a sentence.
    pub(crate) fn check(self, caller: &Caller, now: Timestamp) -> Result<Call, Problem> {
        let target = Target::parse(self.target).map_err(Problem::validation)?;
        on_parent_end(self.on_parent_end)?;
        let body_hash = hash(&target, self.input);
        let run = run(self.run)?;
        Ok(Call {
            webhook: webhooks::Asked::read(self.webhook),
            submission: Submission {
                waiter: Waiter(0),
                lane: self.lane,
                execution: ExecutionId::mint(),
                run_claimed: run.is_some(),
                run: run.unwrap_or_else(RunId::mint),
                parent: parent(self.parent)?,
                agent: target.agent,
                function: target.function,
                principal: caller.principal.clone(),
                key_hash: caller.key_hash.clone(),
                idempotency_key: idempotency_key(self.idempotency_key, &caller.principal)?,
                body_hash,
                input: Payload(input(self.body, self.input)?),
                input_stored: None,
                input_fault: None,
                class: priority(self.priority)?,
                deadline: deadline(self.deadline)?,
                session: text(self.session)?,
                actor: text(self.actor)?,
                traceparent: self.traceparent,
                on_parent_end: None,
                webhook: None,
                llm_endpoint: None,
                replay: None,
                replay_index: None,
                restart: None,
                received_at: now,
                known: Default::default(),
            },
        })
    }
}

/// Of the target and of what the input means, whatever its layout.
fn hash(target: &Target, input: Option<&RawValue>) -> [u8; 16] {
    let canonical = match input {
        Some(input) => json::canonical(input.get()),
        None => b"{}".to_vec(),
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(target.agent.as_str().as_bytes());
    hasher.update(b".");
    hasher.update(target.function.as_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(&canonical);
    let mut hash = [0u8; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}

fn parse(body: &[u8]) -> Result<CallBody<'_>, Problem> {
    let example = "the body must be a JSON object like {\"input\": {…}}";
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(Problem::validation(example));
    }
    if json::depth(body) > json::DEPTH_MAX {
        return Err(Problem::validation(format!(
            "the body is nested deeper than {}",
            json::DEPTH_MAX
        )));
    }
    std::str::from_utf8(body).map_err(|_| Problem::validation("the body is not UTF-8"))?;
    serde_json::from_slice(body)
        .map_err(|error| Problem::validation(format!("{example}; {}", json::place(&error))))
}

/// The bare input; `{}` when it is null or absent.
fn input(body: &Bytes, input: Option<&RawValue>) -> Result<Bytes, Problem> {
    let Some(input) = input else {
        return Ok(Bytes::from_static(b"{}"));
    };
    let text = input.get().as_bytes();
    if !text.starts_with(b"{") {
        return Err(Problem::validation(
            "input must be an object, null or absent: its members are the function's arguments",
        ));
    }
    // A small slice would keep the connection's whole read buffer alive.
    Ok(if text.len() > SMALL {
        body.slice_ref(text)
    } else {
        Bytes::copy_from_slice(text)
    })
}

fn run(given: Option<Named<'_>>) -> Result<Option<RunId>, Problem> {
    given
        .map(|Named { name, text }| {
            RunId::parse(text).map_err(|e| Problem::validation(format!("{name}: {e}")))
        })
        .transpose()
}

fn parent(given: Option<Named<'_>>) -> Result<Option<AttemptRef>, Problem> {
    given
        .map(|Named { name, text }| {
            AttemptRef::parse(text).map_err(|e| Problem::validation(format!("{name}: {e}")))
        })
        .transpose()
}

fn idempotency_key(given: Option<Named<'_>>, principal: &str) -> Result<Option<Arc<str>>, Problem> {
    Ok(text(given)?.map(|key| Arc::from(format!("{principal}\0{key}"))))
}

/// A header's value, with its name as people write it; absent and empty are the same.
fn header<'a>(
    headers: &'a HeaderMap,
    key: &'static str,
    name: &'static str,
) -> Result<Option<Named<'a>>, Problem> {
    let Some(value) = headers.get(HeaderName::from_static(key)) else {
        return Ok(None);
    };
    match value.to_str().map(str::trim) {
        Ok("") => Ok(None),
        Ok(text) => Ok(Some(Named { name, text })),
        Err(_) => Err(Problem::validation(format!(
            "the header {name} must be visible ASCII"
        ))),
    }
}

/// Free text, bounded.
fn text(given: Option<Named<'_>>) -> Result<Option<Arc<str>>, Problem> {
    let Some(Named { name, text }) = given else {
        return Ok(None);
    };
    if text.len() > TEXT_MAX {
        return Err(Problem::validation(format!(
            "{name} has more than {TEXT_MAX} characters"
        )));
    }
    Ok(Some(text.into()))
}

/// A W3C `traceparent`; one that is malformed is ignored, as its specification asks.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let fine = text.len() == 55
        && text.bytes().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => byte == b'-',
            _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
        });
    fine.then(|| text.into())
}

fn priority(given: Option<&RawValue>) -> Result<Option<u8>, Problem> {
    let Some(given) = given else {
        return Ok(None);
    };
    match serde_json::from_str::<u8>(given.get()) {
        Ok(class) if class <= 9 => Ok(Some(class)),
        _ => Err(Problem::validation(
            "priority must be a whole number from 0 (goes first) to 9",
        )),
    }
}

/// What becomes of a call when the one that made it ends: it goes on. Ending it too is not
/// there yet, and somebody who asks for it must not believe it is.
fn on_parent_end(given: Option<&RawValue>) -> Result<(), Problem> {
    let Some(given) = given else {
        return Ok(());
    };
    match serde_json::from_str::<String>(given.get()).as_deref() {
        Ok("detach") => Ok(()),
        Ok("cancel") => Err(Problem::not_supported("on_parent_end \"cancel\"")),
        _ => Err(Problem::validation(
            "on_parent_end must be \"detach\": the call goes on when the one that made it ends",
        )),
    }
}

/// `"5m"`, or seconds as a number.
fn deadline(given: Option<&RawValue>) -> Result<Option<Duration>, Problem> {
    let Some(given) = given else {
        return Ok(None);
    };
    let seconds = serde_json::from_str::<u64>(given.get()).map(Duration::from_secs);
    let span = seconds.ok().or_else(|| {
        let text = serde_json::from_str::<String>(given.get()).ok()?;
        crate::config::Span::parse(&text).ok().map(|span| span.0)
    });
    match span {
        Some(span) if !span.is_zero() => Ok(Some(span)),
        _ => Err(Problem::validation(
            "deadline must be a duration like \"5m\", or seconds as a whole number above 0",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Identity;

    fn call(body: &str, headers: &[(&'static str, &str)]) -> Result<Call, Problem> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let caller = Caller::new(Identity::loopback());
        let body = Bytes::copy_from_slice(body.as_bytes());
        read("a.f", Lane::Sync, &caller, &map, &body, Timestamp(1))
    }

    #[test]
    fn input_is_an_object_null_or_absent() {
        for (body, input) in [
            (r#"{"input":{"x":1.0}}"#, r#"{"x":1.0}"#),
            (r#"{"input":null}"#, "{}"),
            (r#"{}"#, "{}"),
            (r#" {"context":{"a":[]},"input":{} }"#, "{}"),
        ] {
            let call = call(body, &[]).unwrap();
            assert_eq!(&call.submission.input.0[..], input.as_bytes(), "{body}");
        }
        for bad in [
            "",
            "[]",
            "[{}]",
            "null",
            "{\"input\":5}",
            "{\"input\":[]}",
            "{\"input\":{}",
            "{\"input\":{},\"input\":{}}",
            "{\"input\":\"x\"}",
            "{\"priority\":10}",
            "{\"priority\":1.5}",
            "{\"deadline\":\"soon\"}",
            "{\"deadline\":0}",
        ] {
            assert_eq!(call(bad, &[]).err().unwrap().status, 400, "{bad}");
        }
    }

    #[test]
    fn the_hash_depends_on_meaning_and_target_not_on_layout() {
        let hash = |body| call(body, &[]).unwrap().submission.body_hash;
        assert_eq!(
            hash(r#"{"input":{"a":1,"b":2}}"#),
            hash(r#"{"input":{ "b":2, "a":1}}"#)
        );
        assert_ne!(
            hash(r#"{"input":{"a":1}}"#),
            hash(r#"{"input":{"a":10000000000000000000001}}"#)
        );
        assert_ne!(
            hash(r#"{"input":{"a":10000000000000000000000}}"#),
            hash(r#"{"input":{"a":10000000000000000000001}}"#),
            "beyond what a float holds"
        );
    }

    #[test]
    fn headers_are_checked() {
        let ok = call(
            "{}",
            &[
                ("x-run-id", "run_1"),
                ("x-parent-execution-id", "e~1.s"),
                ("idempotency-key", "k"),
                ("traceparent", "nonsense"),
            ],
        )
        .unwrap();
        assert!(ok.submission.run_claimed);
        assert!(ok.submission.parent.unwrap().proof.is_some());
        assert_eq!(ok.submission.idempotency_key.as_deref(), Some("owner\0k"));
        assert_eq!(ok.submission.traceparent, None);
        for bad in [
            ("x-run-id", "a b"),
            ("x-run-id", ".."),
            ("x-parent-execution-id", "é"),
        ] {
            assert!(call("{}", &[bad]).is_err(), "{bad:?}");
        }
        assert!(call("{}", &[("x-session-id", &"x".repeat(300))]).is_err());
    }
}
