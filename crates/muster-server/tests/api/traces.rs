//! Traces, as a collector gets them: a chain from the caller over the plane to the agent, told
//! once, without a payload. The collector here reads OTLP's protobuf by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use http::Method;
use muster_server::Config;
use muster_server::config::Secret;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::{FakeAgent, TestPlane, eventually};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER_SPAN: &str = "b7ad6b7169203331";

/// One span as it came.
#[derive(Debug, Clone, Default, PartialEq)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    state: String,
    name: String,
    kind: u64,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, String>,
    error: Option<String>,
}

/// A field of a message of protobuf: its number, and a number or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let mut take = |n: usize| {
            let (head, rest) = bytes.split_at(n);
            bytes = rest;
            head
        };
        let field = match tag & 7 {
            1 => Field::Number(u64::from_le_bytes(take(8).try_into().unwrap())),
            5 => Field::Number(u32::from_le_bytes(take(4).try_into().unwrap()).into()),
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (head, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(head)
            }
            wire => panic!("wire type {wire}"),
        };
        found.push((tag >> 3, field));
    }
    found
}

fn parts<'a>(message: &'a [u8], number: u64) -> Vec<&'a [u8]> {
    let of = |(n, field): (u64, Field<'a>)| match field {
        Field::Bytes(bytes) if n == number => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn attribute(message: &[u8]) -> (String, String) {
    let key = text(parts(message, 1)[0]);
    let value = match fields(parts(message, 2)[0]).remove(0) {
        (1, Field::Bytes(bytes)) => text(bytes),
        (2 | 3, Field::Number(n)) => n.to_string(),
        _ => panic!("a value of no known kind"),
    };
    (key, value)
}

fn span(message: &[u8]) -> Span {
    let mut span = Span::default();
    for (number, field) in fields(message) {
        match (number, field) {
            (1, Field::Bytes(bytes)) => span.trace = hex(bytes),
            (2, Field::Bytes(bytes)) => span.id = hex(bytes),
            (3, Field::Bytes(bytes)) => span.state = text(bytes),
            (4, Field::Bytes(bytes)) => span.parent = hex(bytes),
            (5, Field::Bytes(bytes)) => span.name = text(bytes),
            (6, Field::Number(n)) => span.kind = n,
            (7, Field::Number(n)) => span.start = n,
            (8, Field::Number(n)) => span.end = n,
            (9, Field::Bytes(bytes)) => span.attributes.extend([attribute(bytes)]),
            (15, Field::Bytes(bytes)) => {
                span.error = Some(text(parts(bytes, 2)[0]));
                assert!(
                    fields(bytes)
                        .iter()
                        .any(|(n, f)| *n == 3 && matches!(f, Field::Number(2)))
                );
            }
            (number, _) => panic!("a span has a field {number}"),
        }
    }
    span
}

#[derive(Clone, Default)]
struct Seen {
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    answer: Arc<AtomicU16>,
}

/// A collector.
struct Collector {
    port: u16,
    seen: Seen,
    server: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Seen::default();
        seen.answer.store(200, Ordering::SeqCst);
        let take = |State(seen): State<Seen>, headers: HeaderMap, bytes: Bytes| async move {
            let status = seen.answer.load(Ordering::SeqCst);
            if status == 200 {
                seen.requests.lock().push((headers, bytes));
            }
            StatusCode::from_u16(status).unwrap()
        };
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(seen.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, seen, server }
    }

    fn set(&self, config: &mut Config) {
        config.telemetry.endpoint = Some(format!("http://127.0.0.1:{}", self.port));
        config.telemetry.headers = Some(Secret::new("x-token=of%20mine"));
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.seen.requests.lock();
        let resources = requests.iter().flat_map(|(_, body)| parts(body, 1));
        let scopes = resources.flat_map(|resource| parts(resource, 2));
        scopes.flat_map(|scope| parts(scope, 2)).map(span).collect()
    }

    /// The spans of an execution, by name, when its own has come.
    async fn of(&self, execution: &str) -> BTreeMap<String, Span> {
        eventually("the spans came", || async {
            let spans = self.spans();
            let own = spans.iter().find(|s| {
                s.attributes
                    .get("muster.execution.id")
                    .is_some_and(|id| id == execution)
                    && s.kind == 2
            })?;
            let mut family = vec![own.id.clone()];
            let mut found = BTreeMap::from([("execution".to_owned(), own.clone())]);
            while let Some(parent) = family.pop() {
                for span in spans.iter().filter(|s| s.parent == parent && s.kind != 2) {
                    family.push(span.id.clone());
                    found.insert(span.name.clone(), span.clone());
                }
            }
            found.contains_key("admission").then_some(found)
        })
        .await
    }
}

async fn metrics(plane: &TestPlane) -> String {
    text(&plane.client.get("/metrics").await.bytes)
}

async fn call_with(
    plane: &TestPlane,
    target: &str,
    headers: &[(&str, &str)],
    input: Value,
) -> String {
    let body = json!({ "input": input }).to_string();
    let path = format!("/api/v1/execute/async/{target}");
    let answer = plane.client.send(Method::POST, &path, headers, body).await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    let id = answer.json()["execution_id"].as_str().unwrap().to_owned();
    plane.end_of(&id).await;
    id
}

/// Section 8: from the caller's span over admission, queue and attempt to the agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_from_the_caller_over_the_plane_to_the_agent() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let headers = [
        ("traceparent", CALLER),
        ("tracestate", "rojo=00f067aa0ba902b7"),
    ];
    let id = call_with(&plane, "a.accept", &headers, json!({})).await;
    let spans = collector.of(&id).await;
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["admission", "attempt 1", "callback", "execution", "queued"]
    );
    let own = &spans["execution"];
    assert_eq!(
        (own.name.as_str(), own.parent.as_str()),
        ("a.accept", CALLER_SPAN)
    );
    for span in spans.values() {
        assert_eq!(
            (span.trace.as_str(), span.state.as_str()),
            (TRACE, "rojo=00f067aa0ba902b7")
        );
        assert!(
            span.start <= span.end && span.start > 1_600_000_000_000_000_000,
            "{span:?}"
        );
    }
    for (child, parent) in [
        ("admission", "execution"),
        ("queued", "execution"),
        ("attempt 1", "execution"),
        ("callback", "attempt 1"),
    ] {
        assert_eq!(spans[child].parent, spans[parent].id, "{child}");
    }
    assert_eq!((own.kind, spans["attempt 1"].kind), (2, 3));
    assert_eq!(own.attributes["muster.status"], "succeeded");
    assert_eq!(spans["attempt 1"].attributes["muster.outcome"], "answered");
    assert_eq!(own.end, spans["attempt 1"].end, "they end in one commit");
    // The agent was given its attempt as the parent.
    let sent = &agent.seen()[0];
    let attempt = &spans["attempt 1"].id;
    assert_eq!(
        sent.header("traceparent"),
        format!("00-{TRACE}-{attempt}-01")
    );
    assert_eq!(sent.header("tracestate"), "rojo=00f067aa0ba902b7");

    let (headers, body) = collector.seen.requests.lock()[0].clone();
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-token"], "of mine");
    let resource = parts(parts(&body, 1)[0], 1)[0];
    let resource: BTreeMap<String, String> =
        parts(resource, 1).into_iter().map(attribute).collect();
    assert_eq!(resource["service.name"], "muster");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_call_hangs_from_what_the_agent_sends_back_or_else_from_its_parent() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let a = FakeAgent::start(&plane, "a").await;
    let _b = FakeAgent::start(&plane, "b").await;
    let parent = call_with(&plane, "a.relay", &[], json!({"path": ["b.echo"]})).await;
    let list = plane.client.get("/api/v1/executions").await.json();
    let rows = list["executions"].as_array().unwrap();
    let child = rows
        .iter()
        .find(|row| row["parent_execution_id"] == parent.as_str())
        .unwrap();
    let child = child["execution_id"].as_str().unwrap();
    let (of_parent, of_child) = (collector.of(&parent).await, collector.of(child).await);
    // The agent of these tests passes on no traceparent.
    assert_eq!(of_child["execution"].parent, of_parent["execution"].id);
    assert_eq!(of_child["execution"].trace, of_parent["execution"].trace);
    assert_eq!(
        of_parent["execution"].parent, "",
        "nobody called it with a trace"
    );

    let sent = a.seen()[0].header("traceparent").to_owned();
    let headers = [
        ("traceparent", sent.as_str()),
        ("x-parent-execution-id", parent.as_str()),
    ];
    let passed_on = call_with(&plane, "b.echo", &headers, json!({})).await;
    let spans = collector.of(&passed_on).await;
    assert_eq!(spans["execution"].parent, of_parent["attempt 1"].id);
    assert_eq!(spans["execution"].trace, of_parent["execution"].trace);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_is_told_once_with_its_category_and_no_word_of_anybody() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let _a = FakeAgent::start(&plane, "a").await;
    let canary = "canary-1f2e3d";
    let secret = [("x-session-id", canary), ("x-actor-id", canary)];
    let fails = call_with(&plane, "a.fail", &secret, json!({ "text": canary })).await;
    let fine = call_with(&plane, "a.echo", &secret, json!({ "text": canary })).await;
    let spans = collector.of(&fails).await;
    assert_eq!(spans["execution"].error.as_deref(), Some("agent_error"));
    assert_eq!(
        spans["execution"].attributes["muster.error_category"],
        "agent_error"
    );
    let restarted = plane
        .client
        .post(&format!("/api/v1/executions/{fails}/restart"), &json!({}))
        .await;
    assert!(restarted.status.is_success(), "{}", restarted.json());
    collector.of(&fine).await;
    plane
        .running
        .app
        .telemetry
        .flush(std::time::Duration::from_secs(20))
        .await;
    let spans = collector.spans();
    for id in [&fails, &fine] {
        let own = |s: &&Span| s.kind == 2 && s.attributes["muster.execution.id"] == **id;
        assert_eq!(spans.iter().filter(own).count(), 1, "{id}");
    }
    for (headers, body) in collector.seen.requests.lock().iter() {
        let found = |bytes: &[u8]| {
            bytes
                .windows(canary.len())
                .any(|part| part == canary.as_bytes())
        };
        assert!(!found(body), "a payload is in the spans");
        assert!(!headers.values().any(|value| found(value.as_bytes())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_outlives_a_restart_of_the_plane_and_is_told_once() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let headers = [("traceparent", CALLER)];
    let body = json!({ "input": {} }).to_string();
    let path = "/api/v1/execute/async/a.never";
    let answer = plane.client.send(Method::POST, path, &headers, body).await;
    let id = answer.json()["execution_id"].as_str().unwrap().to_owned();
    let attempt = agent.until_seen(1).await[0].clone();
    let store = plane.memory.clone().unwrap();
    plane.running.stop().await;
    assert!(
        collector.spans().iter().all(|span| span.kind != 2),
        "it is still open"
    );

    let plane = TestPlane::again(&store, |config| collector.set(config)).await;
    let result = json!({ "status": "succeeded", "result": {} });
    let attempt_id = attempt.header("x-execution-id").to_owned();
    let callback = format!("/api/v1/executions/{attempt_id}/status");
    let answer = plane.client.post(&callback, &result).await;
    assert!(answer.status.is_success(), "{}", answer.json());
    plane.end_of(&id).await;
    plane.running.stop().await;
    let own: Vec<Span> = collector
        .spans()
        .into_iter()
        .filter(|s| s.kind == 2)
        .collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(
        (own[0].trace.as_str(), own[0].parent.as_str()),
        (TRACE, CALLER_SPAN)
    );
    let spans = collector.spans();
    let sent = attempt.header("traceparent");
    let of_attempt = spans.iter().find(|s| s.name == "attempt 1").unwrap();
    assert_eq!(
        sent,
        format!("00-{TRACE}-{}-01", of_attempt.id),
        "the id that was sent before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_no_trace_gets_none_and_the_flag_goes_on() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let not = CALLER.replace("-01", "-00");
    call_with(&plane, "a.echo", &[("traceparent", &not)], json!({})).await;
    let told = call_with(&plane, "a.echo", &[("traceparent", CALLER)], json!({})).await;
    collector.of(&told).await;
    plane
        .running
        .app
        .telemetry
        .flush(std::time::Duration::from_secs(20))
        .await;
    assert_eq!(collector.spans().iter().filter(|s| s.kind == 2).count(), 1);
    let sent = agent.seen()[0].header("traceparent").to_owned();
    assert!(
        sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with("-00"),
        "{sent}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_nothing_holds_nobody_up_and_is_counted() {
    let collector = Collector::start().await;
    collector.seen.answer.store(400, Ordering::SeqCst);
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let _a = FakeAgent::start(&plane, "a").await;
    call_with(&plane, "a.echo", &[], json!({})).await;
    let count = async |end: &str| {
        let metrics = metrics(&plane).await;
        let name = format!("muster_trace_spans_total{{end=\"{end}\"}} ");
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&name).map(str::to_owned));
        line.map_or(0.0, |n| n.parse::<f64>().unwrap())
    };
    eventually("they are given up", || async {
        (count("failed").await >= 4.0).then_some(())
    })
    .await;
    assert_eq!(count("exported").await, 0.0);
    collector.seen.answer.store(200, Ordering::SeqCst);
    let id = call_with(&plane, "a.echo", &[], json!({})).await;
    collector.of(&id).await;
    eventually("they are taken", || async {
        (count("exported").await >= 4.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_off_what_came_is_passed_on_as_it_came() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let headers = [("traceparent", CALLER), ("tracestate", "a=1")];
    call_with(&plane, "a.echo", &headers, json!({})).await;
    call_with(&plane, "a.echo", &[], json!({})).await;
    let seen = agent.seen();
    assert_eq!(seen[0].header("traceparent"), CALLER);
    assert_eq!(seen[0].header("tracestate"), "a=1");
    assert_eq!(
        (seen[1].header("traceparent"), seen[1].header("tracestate")),
        ("", "")
    );
    let metrics = metrics(&plane).await;
    assert!(
        !metrics.contains("muster_trace_spans_total{"),
        "absent, not zero"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_cannot_be_used_stops_the_start() {
    for (endpoint, sample) in [
        ("ftp://x", 1.0),
        ("http://127.0.0.1:1", 2.0),
        ("nonsense", 1.0),
    ] {
        let mut config = crate::support::plane::config();
        config.telemetry.endpoint = Some(endpoint.to_owned());
        config.telemetry.sample = sample;
        let store = Arc::new(muster_store::MemoryStore::new());
        let stores = muster_store::Stores {
            decisions: store.clone(),
            annex: store,
        };
        let started = muster_server::Plane::start(config, stores).await;
        let error = started.err().expect("it does not start").to_string();
        assert!(error.contains("telemetry."), "{error}");
    }
}
