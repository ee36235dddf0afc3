//! Sizes: what is too large is refused before it is stored, what is large is stored apart.

use http::Method;
use serde_json::json;

use crate::support::{FakeAgent, TestPlane};

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_413_with_and_without_an_announced_length() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let body = format!("{{\"input\":{{\"x\":\"{}\"}}}}", "x".repeat(5 << 20));
    for path in ["/api/v1/execute/a.echo", "/api/v1/execute/async/a.echo"] {
        let answer = plane
            .client
            .send(Method::POST, path, &[], body.clone())
            .await;
        answer.is_problem(413, "too_large");
    }
    assert_eq!(
        plane.client.get("/api/v1/executions").await.json()["count"],
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_reaches_the_agent_and_a_refused_one_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let text = "x".repeat(200 * 1024);
    let input = json!({ "text": text });
    let id = plane.submit("a.accept", input.clone()).await;
    assert_eq!(plane.end_of(&id).await["status"], "succeeded");
    let sent: serde_json::Value = serde_json::from_slice(&agent.seen()[0].body).unwrap();
    assert_eq!(sent, input);
    let stored = plane
        .client
        .get(&format!("/api/v1/executions/{id}/payload/input"))
        .await;
    assert_eq!(stored.json(), input);
    plane
        .call("nobody.f", input.clone())
        .await
        .is_problem(404, "target_not_found");
    plane
        .call("a.nothing", input.clone())
        .await
        .is_problem(404, "target_not_found");
    let key = [("idempotency-key", "k")];
    let path = "/api/v1/execute/async/a.accept";
    let body = json!({ "input": input });
    let first = plane.client.post_with(path, &key, &body).await.json();
    let again = plane.client.post_with(path, &key, &body).await.json();
    assert_eq!(first["execution_id"], again["execution_id"]);
}
