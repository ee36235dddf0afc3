//! The sync and the async lane: what is taken, what is refused, what is answered.

use muster_server::config::{Full, ValidateInput};
use serde_json::json;

use crate::support::{FakeAgent, TestPlane};

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_call_returns_the_agents_value() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let answer = plane.call("a.echo", json!({"x": 1})).await;
    let body = answer.json();
    assert_eq!(answer.status, 200, "{body}");
    assert_eq!(body["result"], json!({"x": 1}));
    assert_eq!(body["status"], "succeeded");
    let id = body["execution_id"].as_str().unwrap();
    assert_eq!(answer.header("x-execution-id"), Some(id));
    assert_eq!(answer.header("x-run-id"), body["run_id"].as_str());

    let request = agent.seen().remove(0);
    assert_eq!(request.path, "/reasoners/echo");
    assert_eq!(&request.body[..], br#"{"x":1}"#);
    assert!(
        request
            .header("x-execution-id")
            .starts_with(&format!("{id}~1."))
    );
    assert_eq!(request.header("x-run-id"), body["run_id"]);
    assert_eq!(request.header("x-workflow-id"), body["run_id"]);
    assert_eq!(plane.execution(id).await["result"], json!({"x": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_call_waits_for_the_callback_after_a_202() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    for function in ["accept", "early"] {
        let answer = plane.call(&format!("a.{function}"), json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_async_call_is_polled_to_its_end() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let body = json!({"input": {"n": 1}});
    let answer = plane
        .client
        .post("/api/v1/execute/async/a.accept", &body)
        .await;
    let body = answer.json();
    assert_eq!(answer.status, 202, "{body}");
    assert_eq!(body["type"], "reasoner");
    assert_eq!(body["target"], "a.accept");
    assert_eq!(body["webhook_registered"], false);
    let id = body["execution_id"].as_str().unwrap();
    assert_eq!(answer.header("x-execution-id"), Some(id));
    let end = plane.end_of(id).await;
    assert_eq!(end["status"], "succeeded");
    assert_eq!(end["result"], json!({"ok": true}));
    assert_eq!(&agent.seen()[0].body[..], br#"{"n":1}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn null_and_absent_input_reach_the_agent_as_an_empty_object_and_skills_their_path() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    for body in [json!({}), json!({"input": null})] {
        let answer = plane.client.post("/api/v1/execute/a.echo", &body).await;
        assert_eq!(answer.json()["result"], json!({}));
    }
    let answer = plane.call("a.add", json!({})).await;
    assert_eq!(answer.json()["result"], 5);
    assert_eq!(agent.seen()[2].path, "/skills/add");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_refused_and_nothing_is_stored() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let deep = format!("{{\"input\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    for (path, body, status, category) in [
        ("a.echo", "", 400, "validation"),
        ("a.echo", "[]", 400, "validation"),
        ("a.echo", "{\"input\":5}", 400, "validation"),
        ("a.echo", "{\"input\":[1]}", 400, "validation"),
        ("a.echo", "{\"input\":{\"a\":NaN}}", 400, "validation"),
        ("a.echo", "{\"input\":{", 400, "validation"),
        ("a.echo", &deep, 400, "validation"),
        ("a", "{}", 400, "validation"),
        ("a.b.c", "{}", 400, "validation"),
        ("a%20x.echo", "{}", 400, "validation"),
        ("nobody.echo", "{}", 404, "target_not_found"),
        ("a.nothing", "{}", 404, "target_not_found"),
    ] {
        for lane in ["/api/v1/execute/", "/api/v1/execute/async/"] {
            let path = format!("{lane}{path}");
            let answer = plane
                .client
                .send(http::Method::POST, &path, &[], body.to_owned())
                .await;
            answer.is_problem(status, category);
        }
    }
    let list = plane.client.get("/api/v1/executions").await.json();
    assert_eq!(list["count"], 0, "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_values_pass_through_to_the_byte() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let input = r#"{"a":1e400,"b":"\u0000\ud800","c":123456789012345678901234567890,"d":-0.0}"#;
    let body = format!("{{\"input\":{input}}}");
    let answer = plane
        .client
        .send(http::Method::POST, "/api/v1/execute/a.echo", &[], body)
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(&agent.seen()[0].body[..], input.as_bytes());
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(text.contains(input), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_field_that_is_missing_is_refused_by_name() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let body = plane
        .call("a.strict", json!({}))
        .await
        .is_problem(400, "validation");
    assert!(
        body["message"].as_str().unwrap().contains("count"),
        "{body}"
    );
    // Lenient: its type is the agent's business.
    assert_eq!(
        plane.call("a.strict", json!({"count": "x"})).await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_checks_each_propertys_schema_and_off_checks_nothing() {
    let plane = TestPlane::with(|c| c.admission.validate_input = ValidateInput::Strict).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let body = plane
        .call("a.strict", json!({"count": "canary-in-input"}))
        .await
        .is_problem(400, "validation");
    assert!(!body.to_string().contains("canary"), "{body}");
    plane
        .call("a.strict", json!({"count": -1}))
        .await
        .is_problem(400, "validation");
    assert_eq!(
        plane.call("a.strict", json!({"count": 1})).await.status,
        200
    );

    let plane = TestPlane::with(|c| c.admission.validate_input = ValidateInput::Off).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(plane.call("a.strict", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_idempotency_key_joins_and_another_body_conflicts() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let key = [("idempotency-key", "k1")];
    let path = "/api/v1/execute/async/a.accept";
    let body = json!({"input": {"a": 1, "b": 2}});
    let first = plane.client.post_with(path, &key, &body).await;
    let again = plane
        .client
        .send(
            http::Method::POST,
            path,
            &key,
            "{\"input\":{\"b\":2,\"a\":1}}",
        )
        .await;
    assert_eq!(again.status, 202);
    assert_eq!(first.json()["execution_id"], again.json()["execution_id"]);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.header("idempotency-replayed"), None);
    let other = json!({"input": {"a": 2}});
    plane
        .client
        .post_with(path, &key, &other)
        .await
        .is_problem(409, "idempotency_conflict");
    let sync = plane
        .client
        .post_with("/api/v1/execute/a.accept", &key, &body)
        .await;
    assert_eq!(sync.status, 200, "{}", sync.json());
    assert_eq!(sync.json()["execution_id"], first.json()["execution_id"]);
    assert_eq!(agent.seen().len(), 1, "called once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_agent_queues_and_starts_the_next_when_a_slot_is_free() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let first = plane.submit("a.gate", json!({})).await;
    agent.until_seen(1).await;
    let body = json!({"input": {}});
    let second = plane
        .client
        .post("/api/v1/execute/async/a.accept", &body)
        .await
        .json();
    assert_eq!(second["status"], "queued", "{second}");
    assert_eq!(second["queue_position"], 0, "{second}");
    let queue = plane.client.get("/api/v1/queues/a").await.json();
    assert_eq!(
        (&queue["running"], &queue["queued"]),
        (&json!(1), &json!(1)),
        "{queue}"
    );
    agent.open_gate();
    assert_eq!(plane.end_of(&first).await["status"], "succeeded");
    let id = second["execution_id"].as_str().unwrap();
    assert_eq!(plane.end_of(id).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_agent_refuses_where_that_was_chosen() {
    let plane = TestPlane::with(|c| {
        c.admission.max_concurrent_per_agent = 1;
        c.admission.at_capacity = Full::Reject;
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    plane.submit("a.gate", json!({})).await;
    agent.until_seen(1).await;
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(429, "concurrency_limit");
    agent.open_gate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_at_once_all_end_and_the_cap_holds() {
    let plane =
        std::sync::Arc::new(TestPlane::with(|c| c.admission.max_concurrent_per_agent = 7).await);
    let agent = FakeAgent::start(&plane, "a").await;
    let calls = (0..100).map(|n| {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.echo", json!({"n": n})).await })
    });
    for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.json());
        assert_eq!(answer.json()["result"]["n"], n);
    }
    assert!(agent.most_at_once() <= 7, "{}", agent.most_at_once());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_caller_is_told_that_it_goes_on_when_its_wait_is_over() {
    let plane = TestPlane::with(|c| {
        c.executions.sync_wait = muster_server::config::Span(std::time::Duration::from_millis(200));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let body = plane
        .call("a.gate", json!({}))
        .await
        .is_problem(504, "still_running");
    agent.open_gate();
    let id = body["execution_id"].as_str().unwrap();
    assert_eq!(plane.end_of(id).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_a_call_when_its_parent_ends_is_not_taken_lightly() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    for path in ["/api/v1/execute/a.echo", "/api/v1/execute/async/a.echo"] {
        let with = |word: serde_json::Value| json!({"input": {}, "on_parent_end": word});
        for bad in [json!("abandon"), json!(5), json!({})] {
            let answer = plane.client.post(path, &with(bad)).await;
            answer.is_problem(400, "validation");
        }
        for fine in [json!("detach"), json!("cancel"), json!(null)] {
            let answer = plane.client.post(path, &with(fine)).await;
            assert!(answer.status.is_success(), "{}", answer.json());
        }
    }
    assert_eq!(agent.until_seen(6).await.len(), 6);
}
