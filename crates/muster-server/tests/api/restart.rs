//! Agents that restart, and a plane that restarts under its agents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_while_the_agent_is_gone_waits_for_it_and_succeeds() {
    let plane = Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(agent.beat(&plane).await, 200);
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    let port = agent.kill().await;
    let caller = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.echo", json!({"back": true})).await })
    };
    eventually("it is absorbed", || async {
        let list = plane
            .client
            .get("/api/v1/executions?status=running")
            .await
            .json();
        let reason = &list["executions"][0]["status_reason"];
        (*reason == "awaiting_agent_restart").then_some(())
    })
    .await;
    let agent = FakeAgent::instance(&plane, "a", "instance-2", port).await;
    let answer = caller.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["result"], json!({"back": true}));
    assert_eq!(agent.seen().len(), 1);
    let failed = plane
        .client
        .get("/api/v1/executions?status=failed")
        .await
        .json();
    assert_eq!(failed["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_never_comes_back_fails_after_the_grace_and_the_next_call_at_once() {
    let plane = TestPlane::with(|c| {
        c.agents.restart_grace = muster_server::config::SpanOrOff(Some(Duration::from_millis(500)));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    agent.kill().await;
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(504, "agent_unreachable");
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(503, "node_unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_that_restarts_keeps_what_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    plane.running.stop().await;

    let plane = TestPlane::sqlite(directory.path()).await;
    assert_eq!(plane.execution(&id).await["status"], "running");
    assert_eq!(agent.beat(&plane).await, 200, "the agent is still known");
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": 7});
    let answer = plane.client.post(&path, &said).await;
    assert_eq!(
        answer.status,
        200,
        "its attempt still proves itself: {}",
        answer.json()
    );
    assert_eq!(plane.execution(&id).await["result"], 7);
    let cancelled = plane
        .client
        .post(&format!("/api/v1/executions/{id}/cancel"), &json!({}))
        .await;
    cancelled.is_problem(409, "conflict");
}
