//! A shutdown in stages: nothing acknowledged is lost, whoever is held is answered.

use std::sync::Arc;
use std::time::Duration;

use muster_server::config::Span;
use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_held_caller_is_told_that_it_goes_on_and_new_work_is_refused() {
    let plane = TestPlane::with(|c| {
        c.server.shutdown_timeout = Span(Duration::from_millis(700));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let client = plane.client.clone();
    let held = {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .post("/api/v1/execute/a.never", &json!({"input": {}}))
                .await
        })
    };
    agent.until_seen(1).await;
    let stopping = tokio::spawn(plane.running.stop());
    eventually("new work is refused", || async {
        let answer = client
            .post("/api/v1/execute/async/a.echo", &json!({}))
            .await;
        (answer.status == 503).then(|| answer.is_problem(503, "control_plane_shutdown"))
    })
    .await;
    let body = held.await.unwrap().is_problem(504, "still_running");
    let id = body["execution_id"].as_str().unwrap();
    stopping.await.unwrap();
    let plane = TestPlane::again(&store, |_| {}).await;
    assert_eq!(plane.execution(id).await["status"], "running", "it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn callbacks_are_taken_to_the_end() {
    let plane = Arc::new(
        TestPlane::with(|c| c.server.shutdown_timeout = Span(Duration::from_secs(10))).await,
    );
    let agent = FakeAgent::start(&plane, "a").await;
    let caller = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.never", json!({})).await })
    };
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let client = plane.client.clone();
    plane
        .running
        .app
        .driver
        .tell(muster_engine::Event::Draining);
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": "in time"});
    assert_eq!(client.post(&path, &said).await.status, 200);
    let answer = caller.await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["result"]),
        (200, &json!("in time"))
    );
}
