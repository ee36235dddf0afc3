//! A call, read into what the engine is told, wherever it comes from: [`read`] takes it from
//! headers and a body, other lanes spell an [`Asked`] themselves. Decides nothing but what is
//! well formed.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use muster_engine::event::{Submission, Waiter};
use muster_engine::row::{Payload, Replay};
use muster_wire::{AttemptRef, ExecutionId, Lane, ParentEnd, ReplayMode, RunId, Target, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::caller::Caller;
use super::problem::Problem;
use crate::app::{App, AppState};
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
    #[serde(borrow)]
    context: Option<&'a RawValue>,
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
    /// What else tells this call from others; may name the LLM endpoint it will need.
    pub(crate) context: Option<&'a RawValue>,
    /// From where it may be taken over.
    pub(crate) replay: Option<Box<Replay>>,
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
    /// A W3C `traceparent`, well formed, and behind a blank its `tracestate`.
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
        context: parsed.context,
        replay: replay(headers)?,
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
        let context = Context::read(self.context)?;
        let body_hash = hash(&target, self.input.map(RawValue::get), self.context);
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
                on_parent_end: on_parent_end(self.on_parent_end)?,
                webhook: None,
                llm_endpoint: context.llm_endpoint,
                replay: self.replay,
                replay_index: None,
                restart: None,
                received_at: now,
                known: Default::default(),
            },
        })
    }
}

/// What of a call's context matters here.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// Name or address of the LLM endpoint that the call will need.
    pub(crate) llm_endpoint: Option<Arc<str>>,
}

impl Context {
    /// Reads it from a body's `context`.
    ///
    /// # Errors
    /// 400 with a sentence.
    pub(crate) fn read(given: Option<&RawValue>) -> Result<Self, Problem> {
        /// Our own key is checked; the others are what callers of the AgentField wire say, and
        /// may as well mean something of theirs.
        #[derive(Deserialize)]
        struct Said<'a> {
            llm_endpoint: Option<String>,
            #[serde(borrow)]
            llm_backend: Option<&'a RawValue>,
            #[serde(borrow)]
            backend: Option<&'a RawValue>,
            #[serde(borrow)]
            provider: Option<&'a RawValue>,
            #[serde(borrow)]
            model_provider: Option<&'a RawValue>,
        }
        let Some(given) = given else {
            return Ok(Self::default());
        };
        if !given.get().starts_with('{') {
            return Err(Problem::validation(
                "context must be an object, null or absent",
            ));
        }
        let wrong = "context.llm_endpoint must be a name or an address";
        let said: Said<'_> =
            serde_json::from_str(given.get()).map_err(|_| Problem::validation(wrong))?;
        let others = [
            said.llm_backend,
            said.backend,
            said.provider,
            said.model_provider,
        ];
        let named = |value: &RawValue| serde_json::from_str::<String>(value.get()).ok();
        let named = others.into_iter().flatten().find_map(named);
        let endpoint = said.llm_endpoint.or(named).filter(|name| !name.is_empty());
        if endpoint.as_ref().is_some_and(|name| name.len() > 2_048) {
            return Err(Problem::validation(wrong));
        }
        Ok(Self {
            llm_endpoint: endpoint.map(Into::into),
        })
    }
}

/// The endpoint's name in the configuration; of others nothing is known.
pub(crate) fn known_endpoint(app: &AppState, asked: Option<Arc<str>>) -> Option<Arc<str>> {
    let found = app.config.llm_health.named(&asked?)?;
    Some(found.name.as_str().into())
}

/// From where a call may be taken over, as the headers say that were sent to its caller.
fn replay(headers: &HeaderMap) -> Result<Option<Box<Replay>>, Problem> {
    const SOURCE: &str = "X-AgentField-Replay-Source-Run-ID";
    const BEFORE: &str = "X-AgentField-Replay-Before-Execution-ID";
    const MODE: &str = "X-AgentField-Replay-Mode";
    let wrong = |name: &str, why: String| Problem::validation(format!("{name}: {why}"));
    let source = header(headers, "x-agentfield-replay-source-run-id", SOURCE)?;
    let Some(source) = source else {
        return Ok(None);
    };
    let before = header(headers, "x-agentfield-replay-before-execution-id", BEFORE)?;
    let mode = header(headers, "x-agentfield-replay-mode", MODE)?;
    let mode = mode.map_or(ReplayMode::SucceededBefore.word(), |mode| mode.text);
    Ok(Some(Box::new(Replay {
        source: RunId::parse(source.text).map_err(|e| wrong(SOURCE, e.to_string()))?,
        before: before
            .map(|before| AttemptRef::parse(before.text).map(|before| before.execution))
            .transpose()
            .map_err(|e| wrong(BEFORE, e.to_string()))?,
        mode: ReplayMode::from_word(mode)
            .ok_or_else(|| wrong(MODE, "is no mode of a replay".into()))?,
    })))
}

/// Of the target and of what input and context mean, whatever their layout.
pub(crate) fn hash(target: &Target, input: Option<&str>, context: Option<&RawValue>) -> [u8; 16] {
    let canonical = match input {
        Some(input) => json::canonical(input),
        None => b"{}".to_vec(),
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(target.agent.as_str().as_bytes());
    hasher.update(b".");
    hasher.update(target.function.as_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(&canonical);
    if let Some(context) = context {
        hasher.update(&[0]);
        hasher.update(&json::canonical(context.get()));
    }
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
pub(super) fn input(body: &Bytes, input: Option<&RawValue>) -> Result<Bytes, Problem> {
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

pub(super) fn idempotency_key(
    given: Option<Named<'_>>,
    principal: &str,
) -> Result<Option<Arc<str>>, Problem> {
    Ok(text(given)?.map(|key| Arc::from(format!("{principal}\0{key}"))))
}

/// A header's value, with its name as people write it; absent and empty are the same.
pub(super) fn header<'a>(
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

/// A W3C `traceparent`, and behind a blank the `tracestate` that came with it; one that is
/// malformed is ignored, as its specification asks.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let fine = text.len() == 55
        && text.bytes().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => byte == b'-',
            _ => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
        });
    if !fine {
        return None;
    }
    let state = headers.get_all("tracestate").iter();
    let state: Vec<&str> = state.filter_map(|value| value.to_str().ok()).collect();
    Some(crate::telemetry::join(text, Some(state.join(",").as_str())).into())
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

/// What becomes of a call when the one that made it ends.
fn on_parent_end(given: Option<&RawValue>) -> Result<Option<ParentEnd>, Problem> {
    let Some(given) = given else {
        return Ok(None);
    };
    let word = serde_json::from_str::<String>(given.get()).ok();
    match word.as_deref().and_then(ParentEnd::from_word) {
        Some(wish) => Ok(Some(wish)),
        None => Err(Problem::validation(
            "on_parent_end must be \"detach\" (the call goes on when the one that made it ends) or \"cancel\"",
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
    fn the_context_belongs_to_the_hash_and_may_name_an_llm_endpoint() {
        let read = |body| call(body, &[]).unwrap().submission;
        let plain = read(r#"{"input":{"a":1}}"#);
        let same = read(r#"{"input":{"a":1},"context":null}"#);
        let with = read(r#"{"input":{"a":1},"context":{"llm_endpoint":"main","b":2}}"#);
        let layout = read(r#"{"context":{"b":2, "llm_endpoint":"main"},"input":{"a":1}}"#);
        assert_eq!(plain.body_hash, same.body_hash);
        assert_ne!(plain.body_hash, with.body_hash);
        assert_eq!(with.body_hash, layout.body_hash);
        assert_eq!(with.llm_endpoint.as_deref(), Some("main"));
        let other = read(r#"{"context":{"provider":"main","backend":7}}"#);
        assert_eq!(other.llm_endpoint.as_deref(), Some("main"));
        for bad in ["[]", "5", "{\"llm_endpoint\":5}"] {
            let body = format!("{{\"context\":{bad}}}");
            assert_eq!(call(&body, &[]).err().unwrap().status, 400, "{bad}");
        }
    }

    #[test]
    fn replay_headers_are_read_and_checked() {
        let source = ("x-agentfield-replay-source-run-id", "run_1");
        let before = ("x-agentfield-replay-before-execution-id", "exec_1~1.secret");
        let mode = ("x-agentfield-replay-mode", "all-succeeded");
        let read = call("{}", &[source, before, mode]).unwrap().submission;
        let replay = read.replay.unwrap();
        assert_eq!(replay.source.as_str(), "run_1");
        assert_eq!(replay.before.unwrap().as_str(), "exec_1", "cut down");
        assert_eq!(replay.mode, ReplayMode::AllSucceeded);
        let read = call("{}", &[source]).unwrap().submission;
        assert_eq!(read.replay.unwrap().mode, ReplayMode::SucceededBefore);
        assert!(call("{}", &[mode]).unwrap().submission.replay.is_none());
        assert!(call("{}", &[source, ("x-agentfield-replay-mode", "most")]).is_err());
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
