//! Agents that break the contract, and what becomes of their executions. Names the bad cases:
//! half a body, redirects, 202 and never a word, sleeping past the time-out, answering as somebody
//! else, callbacks that are cut, huge, of an older attempt, or for something that only waits.

use std::time::Duration;

use muster_server::config::{Size, Span, SpanOrOff};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::raw::Does;
use crate::support::{FakeAgent, RawAgent, TestPlane, eventually};

async fn run_once(does: Does) -> (Value, usize) {
    let plane = TestPlane::start().await;
    let agent = RawAgent::start(&plane, "raw", vec![does]).await;
    let answer = plane.call("raw.f", json!({})).await;
    let body = answer.json();
    let stored = plane
        .execution(body["execution_id"].as_str().unwrap())
        .await;
    assert_eq!(stored["status"], "failed", "{stored}");
    assert_eq!(stored["error_category"], body["error_category"], "{stored}");
    assert_eq!(answer.status, 502, "{body}");
    (body, agent.calls().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_body_is_a_bad_response_and_is_not_sent_again() {
    for half in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n{\"half\":\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"half\":",
    ] {
        let (body, calls) = run_once(Does::Writes(half)).await;
        assert_eq!(body["error_category"], "bad_response", "{half}: {body}");
        assert_eq!(calls, 1, "{half}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_http_leaves_the_outcome_unknown() {
    for (does, what) in [
        (Does::Writes("HTTP/1.1 2"), "half a head"),
        (Does::Writes("nonsense\r\n\r\n"), "no HTTP"),
        (Does::Breaks, "nothing"),
    ] {
        let (body, calls) = run_once(does).await;
        assert_eq!(body["error_category"], "outcome_unknown", "{what}: {body}");
        assert_eq!(calls, 1, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_never_followed() {
    let plane = TestPlane::start().await;
    let elsewhere = FakeAgent::start(&plane, "elsewhere").await;
    let text = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{}/reasoners/echo\r\ncontent-length: 0\r\n\r\n",
        elsewhere.port
    );
    let agent = RawAgent::start(&plane, "raw", vec![Does::Writes(text.leak())]).await;
    plane
        .call("raw.f", json!({}))
        .await
        .is_problem(502, "bad_response");
    assert_eq!((agent.calls().len(), elsewhere.seen().len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_202_without_a_callback_ends_by_the_deadline_and_the_agent_is_told() {
    let plane = TestPlane::with(|c| {
        c.executions.deadline = Span(Duration::from_secs(1));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let end = plane.end_of(&id).await;
    assert_eq!(
        (
            &end["status"],
            &end["error_category"],
            &end["status_reason"]
        ),
        (
            &json!("timeout"),
            &json!("agent_timeout"),
            &json!("deadline")
        ),
        "{end}"
    );
    eventually("the agent is told", || async {
        (agent.cancels().len() == 1).then_some(())
    })
    .await;
    // What it says after all is kept, and changes nothing.
    let attempt = agent.seen()[0].header("x-execution-id").to_owned();
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": 1});
    plane
        .client
        .post(&path, &said)
        .await
        .is_problem(409, "conflict");
    let after = plane.execution(&id).await;
    assert_eq!(after["status"], "timeout");
    assert_eq!(after["late_outcome"], "succeeded", "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_time_out_is_not_heard_and_nothing_is_sent_again() {
    let plane = TestPlane::with(|c| {
        c.agents.call_timeout = Span(Duration::from_millis(200));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let body = plane
        .call("a.gate", json!({}))
        .await
        .is_problem(504, "agent_timeout");
    agent.open_gate();
    let id = body["execution_id"].as_str().unwrap();
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    let stored = plane.execution(id).await;
    assert_eq!(
        (&stored["status"], &stored["status_reason"]),
        (&json!("timeout"), &json!("call_timeout")),
        "{stored}"
    );
    assert_eq!(agent.seen().len(), 2, "one of each");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_address_answers_as_somebody_else_is_down() {
    let plane = TestPlane::with(|c| {
        c.agents.restart_grace = SpanOrOff(Some(Duration::from_secs(1)));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    agent.until_seen(1).await;
    let port = agent.kill().await;
    let _stranger = FakeAgent::listen(&plane.client, "b", "b1", port).await;
    // Three beats, of 5 s while none was learned.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let node = eventually("it is found down", || async {
        let node = plane.client.get("/api/v1/nodes/a").await.json();
        (node["state"] == "down").then_some(node)
    })
    .await;
    assert!(node.to_string().contains("answers as b"), "{node}");
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(503, "node_unavailable");
    assert_eq!(
        plane.execution(&id).await["status"],
        "running",
        "it may drain"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_in_the_name_of_another_agent_is_refused() {
    let plane = TestPlane::start().await;
    let mine = FakeAgent::start(&plane, "a").await;
    let other = FakeAgent::start(&plane, "b").await;
    let id = plane.submit("a.never", json!({})).await;
    mine.until_seen(1).await;
    plane.submit("b.never", json!({})).await;
    let theirs = other.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    // The secret of an attempt of its own does not open another's.
    let secret = theirs.split_once('~').unwrap().1;
    let path = format!("/api/v1/executions/{id}~{secret}/status");
    let said = json!({"status": "succeeded", "result": "stolen"});
    plane
        .client
        .post(&path, &said)
        .await
        .is_problem(403, "wrong_attempt");
    assert_eq!(plane.execution(&id).await["status"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_an_older_attempt_is_refused_while_a_newer_one_runs() {
    let plane = TestPlane::start().await;
    let accepts = "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}";
    let does = vec![Does::Breaks, Does::Writes(accepts)];
    let agent = RawAgent::start(&plane, "raw", does).await;
    let id = plane.submit("raw.i", json!({})).await;
    let calls = eventually("it is sent again", || async {
        let calls = agent.calls();
        (calls.len() == 2).then_some(calls)
    })
    .await;
    let said = |n: usize| {
        let path = format!("/api/v1/executions/{}/status", calls[n]);
        let body = json!({"status": "succeeded", "result": n});
        (path, body)
    };
    let (path, body) = said(0);
    plane
        .client
        .post(&path, &body)
        .await
        .is_problem(403, "wrong_attempt");
    assert_eq!(plane.execution(&id).await["status"], "running");
    let (path, body) = said(1);
    assert_eq!(plane.client.post(&path, &body).await.status, 200);
    assert_eq!(plane.execution(&id).await["result"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_for_a_call_that_waits_for_its_agent_proves_nothing() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    agent.kill().await;
    let id = plane.submit("a.echo", json!({})).await;
    eventually("it waits", || async {
        (plane.execution(&id).await["status_reason"] == "awaiting_agent_restart").then_some(())
    })
    .await;
    for name in [id.clone(), format!("{id}~1.AAAAAAAAAAAAAAAA")] {
        let path = format!("/api/v1/executions/{name}/status");
        let said = json!({"status": "succeeded", "result": 1});
        plane
            .client
            .post(&path, &said)
            .await
            .is_problem(403, "wrong_attempt");
    }
    assert_eq!(plane.execution(&id).await["status"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_of_seventy_megabytes_ends_its_execution_and_keeps_its_head() {
    let plane = TestPlane::with(|c| {
        c.executions.max_result = Size(64 * 1024 * 1024);
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let body = format!(
        "{{\"status\":\"succeeded\",\"result\":\"{}\"}}",
        "x".repeat(70 << 20)
    );
    let path = format!("/api/v1/executions/{attempt}/status");
    let answer = plane
        .client
        .send(http::Method::POST, &path, &[], body)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let end = plane.execution(&id).await;
    assert_eq!(
        (&end["status"], &end["error_category"]),
        (&json!("failed"), &json!("bad_response")),
        "{end}"
    );
    let head = end["error_details"]["body"].as_str().unwrap();
    assert!(head.starts_with("{\"status\":\"succeeded\"") && head.len() <= 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_is_cut_short_is_no_callback_and_may_come_again() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let path = format!("/api/v1/executions/{attempt}/status");
    let mut stream = tokio::net::TcpStream::connect(plane.running.address)
        .await
        .unwrap();
    let cut = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"status\":\"succeeded\","
    );
    stream.write_all(cut.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    let text = String::from_utf8_lossy(&rest).into_owned();
    assert!(!text.starts_with("HTTP/1.1 2"), "{text}");
    assert_eq!(plane.execution(&id).await["status"], "running");
    let said = json!({"status": "succeeded", "result": "whole"});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.execution(&id).await["result"], "whole");
}
