//! Lists, attempts, events and reasons of executions.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane};

/// Interface: HEAD, ETag and conditional GET where a dashboard polls.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dashboard_polls_is_304_while_nothing_changed() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(plane.call("a.echo", json!({"n": 1})).await.status, 200);
    let path = "/api/v1/executions?limit=10";
    let first = plane.client.get(path).await;
    let tag = first.header("etag").unwrap().to_owned();
    let known = [("if-none-match", tag.as_str())];
    let same = plane.client.send(http::Method::GET, path, &known, "").await;
    assert_eq!(same.status, 304);
    assert!(same.bytes.is_empty());
    assert_eq!(same.header("etag"), Some(tag.as_str()));
    let head = plane.client.send(http::Method::HEAD, path, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(head.bytes.is_empty());
    assert_eq!(head.header("etag"), Some(tag.as_str()));
    assert_eq!(
        head.header("content-length"),
        Some(first.bytes.len().to_string().as_str())
    );
    assert_eq!(plane.call("a.echo", json!({"n": 2})).await.status, 200);
    let changed = plane.client.send(http::Method::GET, path, &known, "").await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
    let wrong = plane.client.get("/api/v1/executions?limit=x").await;
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.header("etag"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged_without_gaps_or_repeats() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        let body = plane.call("a.echo", json!({})).await.json();
        ids.push(body["execution_id"].as_str().unwrap().to_owned());
    }
    plane.call("a.boom", json!({})).await;
    let mut found = Vec::new();
    let mut path = "/api/v1/executions?status=succeeded&limit=3".to_owned();
    loop {
        let page = plane.client.get(&path).await.json();
        for row in page["executions"].as_array().unwrap() {
            assert!(row.get("result").is_none(), "no payload in a list");
            found.push(row["execution_id"].as_str().unwrap().to_owned());
        }
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/api/v1/executions?status=succeeded&limit=3&cursor={cursor}");
    }
    found.reverse();
    assert_eq!(found, ids, "newest first");
    let failed = plane
        .client
        .get("/api/v1/executions?error_category=agent_error")
        .await
        .json();
    assert_eq!(failed["count"], 1, "{failed}");
    for bad in [
        "status=odd",
        "cursor=!",
        "since=yesterday",
        "order=up",
        "agent=a%20b",
        "limit=x",
    ] {
        let answer = plane.client.get(&format!("/api/v1/executions?{bad}")).await;
        answer.is_problem(400, "validation");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_events_and_the_reason_are_shown_without_the_secret() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let secret = attempt.rsplit('.').next().unwrap();
    for part in ["", "/attempts", "/events"] {
        let answer = plane
            .client
            .get(&format!("/api/v1/executions/{id}{part}"))
            .await;
        assert_eq!(answer.status, 200, "{part}");
        let text = answer.json().to_string();
        assert!(!text.contains(secret), "{part}: {text}");
    }
    let attempts = plane
        .client
        .get(&format!("/api/v1/executions/{id}/attempts"))
        .await
        .json();
    assert_eq!(attempts["attempts"][0]["n"], 1);
    let why = plane.client.get(&format!("/api/v1/why/{id}")).await.json();
    assert!(!why["verdict"].as_str().unwrap().is_empty(), "{why}");
    assert_eq!(why["state"], "running");
    let path = format!("/api/v1/executions/{attempt}/status");
    plane
        .client
        .post(&path, &json!({"status": "succeeded"}))
        .await;
    let why = plane.client.get(&format!("/api/v1/why/{id}")).await.json();
    assert_eq!(why["state"], "succeeded", "{why}");
    assert!(why["facts"].to_string().contains("it ended well"), "{why}");
    let verdict = why["verdict"].as_str().unwrap();
    let took = verdict.split(" after ").nth(1).unwrap();
    assert!(took.ends_with(" s") || took.ends_with(" ms"), "{verdict}");
    let why = plane.client.get("/api/v1/why/a").await.json();
    assert_eq!(why["kind"], "agent", "{why}");
    plane
        .client
        .get("/api/v1/why/nobody")
        .await
        .is_problem(404, "not_found");
    plane
        .client
        .get("/api/v1/executions/nobody")
        .await
        .is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_one_execution_ends_with_it() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let client = plane.client.clone();
    let path = format!("/api/v1/executions/{id}/events");
    let stream = tokio::spawn(async move {
        let accept = [("accept", "text/event-stream")];
        client.send(http::Method::GET, &path, &accept, "").await
    });
    let path = format!("/api/v1/executions/{attempt}/status");
    plane
        .client
        .post(&path, &json!({"status": "failed", "error": "x"}))
        .await;
    let answer = tokio::time::timeout(std::time::Duration::from_secs(20), stream).await;
    let answer = answer.expect("the stream ends").unwrap();
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(text.contains("event: execution.started"), "{text}");
    assert!(
        text.trim_end().ends_with('}') && text.contains("event: execution.failed"),
        "{text}"
    );
    assert!(!text.contains("\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_execution_is_read_from_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let body = plane.call("a.echo", json!({"v": 1})).await.json();
    let id = body["execution_id"].as_str().unwrap();
    let failed = plane.call("a.teapot", json!({})).await.json();
    plane.running.stop().await;
    let plane = TestPlane::sqlite(directory.path()).await;
    let again = plane.execution(id).await;
    assert_eq!(
        (&again["status"], &again["result"]),
        (&json!("succeeded"), &json!({"v": 1}))
    );
    let failed = plane
        .execution(failed["execution_id"].as_str().unwrap())
        .await;
    assert_eq!(
        failed["error_details"]["error"], "short and stout",
        "{failed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_a_list_does_not_know_is_named_and_not_ignored() {
    let plane = TestPlane::start().await;
    for path in [
        "/api/v1/executions",
        "/api/v1/runs",
        "/api/v1/runs/r/steps",
        "/api/v1/nodes",
    ] {
        let asked = format!("{path}?limit=3&stauts=failed");
        let problem = plane.client.get(&asked).await.is_problem(400, "validation");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("no parameter stauts"), "{message}");
        assert!(message.contains("limit, cursor"), "{message}");
        let asked = format!("{path}?%3Cb%3E=secret");
        let problem = plane.client.get(&asked).await.is_problem(400, "validation");
        assert!(!problem.to_string().contains("<b>"), "{problem}");
    }
}

/// Why an execution failed is told with what its agent answered, word and number.
#[tokio::test(flavor = "multi_thread")]
async fn the_evidence_of_a_failure_has_the_status_that_the_agent_answered() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    for (function, said) in [
        ("boom", "the agent answered 500"),
        ("teapot", "the agent answered 418"),
        ("fail", "kaput"),
    ] {
        let id = plane.submit(&format!("a.{function}"), json!({})).await;
        plane.end_of(&id).await;
        let why = plane.client.get(&format!("/api/v1/why/{id}")).await.json();
        let facts = why["facts"].as_array().unwrap();
        let end = facts.last().unwrap()["text"].as_str().unwrap();
        assert!(
            end.starts_with("it failed: ") && end.contains(said),
            "{why}"
        );
        assert_eq!(end.matches(said).count(), 1, "{end}");
    }
}
