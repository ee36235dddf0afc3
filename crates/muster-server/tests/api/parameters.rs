//! What stands behind the `?` of an act or of a list and is not known there is refused, and
//! nothing happens: a trial that a route does not know would else be the act itself.

use http::Method;
use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane};

/// Principle 8: consequence before action. A route without a trial says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_trial_that_a_route_does_not_know_changes_nothing() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    for (method, path, body) in [
        (Method::POST, "/api/v1/hold", json!({"reason": "z"})),
        (Method::PUT, "/api/v1/nodes/a/cap", json!({"cap": 3})),
        (
            Method::POST,
            "/api/v1/execute/async/a.accept",
            json!({"input": {}}),
        ),
        (
            Method::POST,
            "/api/v1/execute/a.answer",
            json!({"input": {}}),
        ),
        (Method::POST, "/api/v1/webhooks/redrive", json!({})),
    ] {
        // The key of a person decides; whoever calls from this machine needs none.
        let key = [("x-api-key", plane.key())];
        let calls = path.contains("/execute/");
        let headers: &[(&str, &str)] = if calls { &[] } else { &key };
        let path = format!("{path}?dry_run=true");
        let answer = plane
            .client
            .send(method, &path, headers, body.to_string())
            .await;
        let problem = answer.is_problem(400, "validation");
        assert_eq!(
            problem["details"]["parameter"], "dry_run",
            "{path}: {problem}"
        );
        let said = problem["message"].as_str().unwrap();
        assert!(said.contains("nothing was done"), "{said}");
    }
    let hold = plane.client.get("/api/v1/hold").await.json();
    assert_eq!(hold["held"], false, "{hold}");
    let queue = plane.client.get("/api/v1/queues/a").await.json();
    assert_eq!(queue["cap"], Value::Null, "{queue}");
    let listed = plane.client.get("/api/v1/executions").await.json();
    assert_eq!(listed["executions"], json!([]), "{listed}");
    assert!(agent.seen().is_empty());
}

/// A word that is on no closed list finds nothing for ever: whoever sends it is told what there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_on_no_closed_list_is_refused_with_those_that_are() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    for (path, known) in [
        ("runs?category=nonsense", "category: one of validation, "),
        ("executions?category=nonsense", "agent_error"),
        ("executions?error_category=nonsense", "agent_error"),
        ("runs?state=nonsense", "state: one of queued, running, "),
        ("executions?status=nonsense", "status: one of queued, "),
        ("runs?origin=nonsense", "origin: one of dev, server, ci"),
        ("nodes?state=active,nonsense", "state: one of active, "),
        ("nodes?status=nonsense", "status: one of active, "),
        ("fleet/nodes?state=nonsense", "state: one of connecting, "),
        ("fleet/nodes?kind=nonsense", "kind: one of "),
        ("fleet/workers?state=nonsense", "state: one of "),
        ("approvals?status=nonsense", "pending"),
    ] {
        let answer = plane.client.get(&format!("/api/v1/{path}")).await;
        let problem = answer.is_problem(400, "validation");
        let said = problem["message"].as_str().unwrap();
        assert!(said.contains(known), "{path}: {said}");
    }
    for path in ["runs?category=agent_error", "nodes?state=down,active"] {
        let answer = plane.client.get(&format!("/api/v1/{path}")).await;
        assert_eq!(answer.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_mistyped_is_refused_before_anything_happens() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.gate", json!({})).await;
    agent.until_seen(1).await;
    let path = format!("/api/v1/executions/{id}/cancel?dryrun=true");
    let answer = plane.as_person(&path, &json!({})).await;
    let problem = answer.is_problem(400, "validation");
    assert_eq!(problem["details"]["takes"], json!(["dry_run"]), "{problem}");
    let shown = plane.client.get(&format!("/api/v1/executions/{id}")).await;
    assert_eq!(shown.json()["status"], "running");
    for path in ["/api/v1/queues", "/api/v1/webhooks", "/api/v1/fleet/drift"] {
        let answer = plane.client.get(&format!("{path}?stat=nonsense")).await;
        answer.is_problem(400, "validation");
    }
    // What other clients speak keeps taking what they send.
    let call = json!({"input": {}});
    let called = plane
        .client
        .post("/api/v1/execute/async/a.accept?trace=1", &call)
        .await;
    assert_eq!(called.status, 202, "{}", called.json());
}
