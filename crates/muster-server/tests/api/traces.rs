//! Traces, as a collector gets them: a chain from the caller over the plane to the agent, told
//! once, without a payload.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};

use crate::support::agent::Request;
use crate::support::collector::{Collector, Span, attributes};
use crate::support::{FakeAgent, TestPlane, eventually};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER_SPAN: &str = "b7ad6b7169203331";
/// The spans of every execution that was sent once.
const SENT_ONCE: &[&str] = &["admission", "attempt 1", "execution", "queued"];

async fn metrics(plane: &TestPlane) -> String {
    let answer = plane.client.get("/metrics").await;
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

/// How many spans came to such an end.
async fn spans_of(plane: &TestPlane, end: &str) -> f64 {
    let metrics = metrics(plane).await;
    let name = format!("muster_trace_spans_total{{end=\"{end}\"}} ");
    let number = metrics.lines().find_map(|line| line.strip_prefix(&name));
    number.map_or(0.0, |number| number.parse().unwrap())
}

/// Submits; the execution's id.
async fn submit_with(
    plane: &TestPlane,
    target: &str,
    headers: &[(&str, &str)],
    input: Value,
) -> String {
    let body = json!({ "input": input }).to_string();
    let path = format!("/api/v1/execute/async/{target}");
    let answer = plane.client.send(Method::POST, &path, headers, body).await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    answer.json()["execution_id"].as_str().unwrap().to_owned()
}

/// Submits and waits for the end; the execution's id.
async fn call_with(
    plane: &TestPlane,
    target: &str,
    headers: &[(&str, &str)],
    input: Value,
) -> String {
    let id = submit_with(plane, target, headers, input).await;
    plane.end_of(&id).await;
    id
}

/// Waits until the plane knows that the agent took the first attempt.
async fn is_accepted(plane: &TestPlane, id: &str) {
    let path = format!("/api/v1/executions/{id}/attempts");
    eventually("the attempt is accepted", || async {
        let answer = plane.client.get(&path).await.json();
        answer["attempts"][0]["accepted_at"]
            .is_string()
            .then_some(())
    })
    .await;
}

/// Reports that the attempt of a request succeeded, as its agent does.
async fn report(plane: &TestPlane, request: &Request) {
    let path = format!(
        "/api/v1/executions/{}/status",
        request.header("x-execution-id")
    );
    let result = json!({ "status": "succeeded", "result": {} });
    let answer = plane.client.post(&path, &result).await;
    assert!(answer.status.is_success(), "{}", answer.json());
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
    let id = submit_with(&plane, "a.never", &headers, json!({})).await;
    is_accepted(&plane, &id).await;
    report(&plane, &agent.seen()[0]).await;
    plane.end_of(&id).await;
    let wanted = ["admission", "attempt 1", "callback", "execution", "queued"];
    let spans = collector.of(&id, &wanted).await;
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    assert_eq!(names, wanted);
    let own = &spans["execution"];
    assert_eq!(
        (own.name.as_str(), own.parent.as_str()),
        ("a.never", CALLER_SPAN)
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
    assert_eq!(own.kind, SpanKind::Server);
    assert_eq!(spans["attempt 1"].kind, SpanKind::Client);
    assert!(own.is_remote, "its parent is the caller's");
    assert!(!spans["attempt 1"].is_remote && !spans["queued"].is_remote);
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

    let (headers, _) = collector.seen.requests.lock()[0].clone();
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-token"], "of mine");
    let request = collector.requests().remove(0);
    assert_eq!(request.resource_spans.len(), 1, "one resource has all");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(attributes(&resource.attributes)["service.name"], "muster");
    let scope = request.resource_spans[0].scope_spans[0].scope.as_ref();
    assert_eq!(scope.unwrap().name, "muster");
}

/// An agent may report before the plane has its answer 202; then nothing waited for a callback.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_reported_before_it_is_accepted_waited_for_no_callback() {
    let collector = Collector::start().await;
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let id = call_with(&plane, "a.early", &[], json!({})).await;
    let spans = collector.of(&id, SENT_ONCE).await;
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    assert_eq!(names, SENT_ONCE);
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
    let (of_parent, of_child) = (
        collector.of(&parent, SENT_ONCE).await,
        collector.of(child, SENT_ONCE).await,
    );
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
    let spans = collector.of(&passed_on, SENT_ONCE).await;
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
    let spans = collector.of(&fails, SENT_ONCE).await;
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
    collector.of(&fine, SENT_ONCE).await;
    plane
        .running
        .app
        .telemetry
        .flush(Duration::from_secs(20))
        .await;
    let spans = collector.spans();
    for id in [&fails, &fine] {
        let own =
            |s: &&Span| s.kind == SpanKind::Server && s.attributes["muster.execution.id"] == **id;
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
        collector
            .spans()
            .iter()
            .all(|span| span.kind != SpanKind::Server),
        "it is still open"
    );

    let plane = TestPlane::again(&store, |config| collector.set(config)).await;
    report(&plane, &attempt).await;
    plane.end_of(&id).await;
    plane.running.stop().await;
    let own: Vec<Span> = collector
        .spans()
        .into_iter()
        .filter(|s| s.kind == SpanKind::Server)
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
    collector.of(&told, SENT_ONCE).await;
    plane
        .running
        .app
        .telemetry
        .flush(Duration::from_secs(20))
        .await;
    assert_eq!(
        collector
            .spans()
            .iter()
            .filter(|s| s.kind == SpanKind::Server)
            .count(),
        1
    );
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
    let count = async |end: &str| spans_of(&plane, end).await;
    eventually("they are given up", || async {
        (count("failed").await >= 4.0).then_some(())
    })
    .await;
    assert_eq!(count("exported").await, 0.0);
    collector.seen.answer.store(200, Ordering::SeqCst);
    let id = call_with(&plane, "a.echo", &[], json!({})).await;
    collector.of(&id, SENT_ONCE).await;
    eventually("they are taken", || async {
        (count("exported").await >= 4.0).then_some(())
    })
    .await;
}

/// A collector that is busy is asked again; one that takes a request without some of its spans is
/// believed.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_collector_is_asked_again_and_what_it_rejects_is_counted() {
    let collector = Collector::start().await;
    collector.seen.answer.store(503, Ordering::SeqCst);
    let plane = TestPlane::with(|config| collector.set(config)).await;
    let _a = FakeAgent::start(&plane, "a").await;
    let id = call_with(&plane, "a.echo", &[], json!({})).await;
    eventually("it was asked", || async {
        (collector.seen.asked.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;
    collector.seen.answer.store(200, Ordering::SeqCst);
    collector.of(&id, &["execution"]).await;
    assert_eq!(
        spans_of(&plane, "failed").await,
        0.0,
        "the next try took it"
    );

    let exported = spans_of(&plane, "exported").await;
    collector.seen.rejects.store(1, Ordering::SeqCst);
    call_with(&plane, "a.echo", &[], json!({})).await;
    eventually("one is counted as lost", || async {
        (spans_of(&plane, "failed").await >= 1.0).then_some(())
    })
    .await;
    assert!(
        spans_of(&plane, "exported").await > exported,
        "the others came"
    );
}

/// A collector that answers nothing at all while more comes than may wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_queue_has_no_room_for_is_dropped_and_counted_and_holds_nobody_up() {
    let collector = Collector::start().await;
    collector.seen.answer.store(0, Ordering::SeqCst);
    let plane = TestPlane::with(|config| {
        collector.set(config);
        config.telemetry.queue = 8;
        config.telemetry.timeout = muster_server::config::Span::seconds(3_600);
    })
    .await;
    let _a = FakeAgent::start(&plane, "a").await;
    // One request hangs with what it took; then eight wait; each call tells of two.
    let mut calls = 0;
    let began = std::time::Instant::now();
    let mut slowest = Duration::ZERO;
    while spans_of(&plane, "dropped").await < 40.0 {
        let sent = std::time::Instant::now();
        let answer = plane.call("a.echo", json!({ "n": calls })).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        slowest = slowest.max(sent.elapsed());
        calls += 1;
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "nothing is dropped"
        );
    }
    assert!(
        slowest < Duration::from_secs(20),
        "{slowest:?}: the collector is waited for"
    );
    assert_eq!(spans_of(&plane, "exported").await, 0.0);
    assert_eq!(spans_of(&plane, "failed").await, 0.0);
    let listed = plane.client.get("/api/v1/executions?limit=1").await.json();
    assert_eq!(listed["total"], calls, "every call is there");
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
    for (endpoint, sample, queue) in [
        ("ftp://x", 1.0, 1),
        ("http://127.0.0.1:1", 2.0, 1),
        ("http://127.0.0.1:1", 1.0, 0),
        ("nonsense", 1.0, 1),
    ] {
        let mut config = crate::support::plane::config();
        config.telemetry.endpoint = Some(endpoint.to_owned());
        config.telemetry.sample = sample;
        config.telemetry.queue = queue;
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
