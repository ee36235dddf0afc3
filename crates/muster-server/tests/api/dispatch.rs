//! What the agent's answer means, row by row, and what reaches the agent.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_of_an_agent_becomes_its_outcome() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    for (function, status, category) in [
        ("boom", 502, "agent_error"),
        ("teapot", 418, "agent_error"),
        ("invalid", 422, "validation"),
        ("redirect", 502, "bad_response"),
        ("html", 502, "bad_response"),
        ("toolarge", 502, "bad_response"),
        ("fail", 404, "agent_error"),
    ] {
        let answer = plane.call(&format!("a.{function}"), json!({})).await;
        let body = answer.is_problem(status, category);
        assert_eq!(body["status"], "failed", "{function}: {body}");
        let id = body["execution_id"].as_str().unwrap();
        let stored = plane.execution(id).await;
        assert_eq!(stored["status"], "failed", "{function}: {stored}");
        assert_eq!(stored["error_category"], category, "{function}: {stored}");
        assert!(stored["error"].is_string(), "{function}: {stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_any_kind_arrive_to_the_byte() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let text = |answer: &crate::support::Answer| String::from_utf8(answer.bytes.to_vec()).unwrap();
    let empty = plane.call("a.empty", json!({})).await;
    assert!(text(&empty).contains("\"result\":null"), "{}", text(&empty));
    let numbers = plane.call("a.numbers", json!({})).await;
    let want = "\"result\":[1e400,123456789012345678901234567890,0.10]";
    assert!(text(&numbers).contains(want), "{}", text(&numbers));
    let usage = plane.call("a.usage", json!({})).await;
    assert!(
        text(&usage).contains("\"result\":{\"x\":1.50}"),
        "{}",
        text(&usage)
    );
    let id = usage.json()["execution_id"].as_str().unwrap().to_owned();
    assert_eq!(plane.execution(&id).await["usage"]["total_tokens"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_stored_apart_and_read_back_whole_or_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let answer = plane.call("a.large", json!({})).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!(body["result"].as_str().unwrap().len(), 300 * 1024);
    let id = body["execution_id"].as_str().unwrap();
    let path = format!("/api/v1/executions/{id}/payload/result");
    let part = plane
        .client
        .send(http::Method::GET, &path, &[("range", "bytes=0-3")], "")
        .await;
    assert_eq!(part.status, 206);
    assert_eq!(&part.bytes[..], b"\"xxx");
    let size = 300 * 1024 + 2;
    assert_eq!(
        part.header("content-range"),
        Some(&*format!("bytes 0-3/{size}"))
    );
    assert_eq!(plane.client.get(&path).await.bytes.len(), size);
    plane
        .client
        .get(&format!("/api/v1/executions/{id}/payload/late"))
        .await
        .is_problem(404, "not_found");
    plane
        .client
        .get(&format!("/api/v1/executions/{id}/payload/secrets"))
        .await
        .is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_headers_reach_the_agent() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("x-run-id", "run_mine"),
        ("x-session-id", "s@1"),
        ("x-actor-id", "someone"),
        ("x-parent-execution-id", "exec_unknown~1.secret"),
        ("traceparent", trace),
    ];
    let answer = plane
        .client
        .post_with("/api/v1/execute/a.echo", &headers, &json!({"input": {}}))
        .await;
    assert_eq!(answer.json()["run_id"], "run_mine");
    let request = agent.seen().remove(0);
    assert_eq!(request.header("x-run-id"), "run_mine");
    assert_eq!(request.header("x-session-id"), "s@1");
    assert_eq!(request.header("x-actor-id"), "someone");
    let seen = request.header("traceparent");
    assert_eq!(seen[3..35], trace[3..35], "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_after_the_request_is_never_sent_twice() {
    let plane = TestPlane::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let registration = json!({
        "id": "breaks", "base_url": format!("http://127.0.0.1:{port}"),
        "instance_id": "i", "reasoners": [{"id": "f"}], "skills": [],
    });
    let answer = plane
        .client
        .post("/api/v1/nodes/register", &registration)
        .await;
    assert_eq!(answer.status, 201);
    let taken = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = taken.clone();
    tokio::spawn(async move {
        use tokio::io::AsyncReadExt;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0u8; 4096];
            // A probe of /health is not a call.
            let read = stream.read(&mut buffer).await.unwrap_or(0);
            if buffer[..read].starts_with(b"POST") {
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    });
    let answer = plane.call("breaks.f", json!({})).await;
    assert_eq!(answer.status, 502, "{}", answer.json());
    assert_eq!(taken.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_answer_in_time_has_timed_out() {
    let plane = TestPlane::with(|c| {
        c.agents.call_timeout = muster_server::config::Span(std::time::Duration::from_millis(150));
    })
    .await;
    let _agent = FakeAgent::start(&plane, "a").await;
    plane
        .call("a.sleepy", json!({}))
        .await
        .is_problem(504, "agent_timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_a_host_takes_at_once_wait_and_all_end() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(plane.submit("a.gate", json!({})).await);
    }
    eventually("the host is full", || async {
        (agent.most_at_once() >= 256).then_some(())
    })
    .await;
    assert_eq!(agent.most_at_once(), 256);
    for id in ids {
        eventually("it ends", || async {
            agent.open_gate();
            (plane.execution(&id).await["status"] == "succeeded").then_some(())
        })
        .await;
    }
}
