//! Cancels: final at once, told to the agent, refused when it is over.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_final_at_once_and_the_agent_is_told() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let path = format!("/api/v1/executions/{id}/cancel");
    let answer = plane.client.post(&path, &json!({"reason": "enough"})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["cancelled"], json!([id]));
    assert_eq!(plane.execution(&id).await["status"], "cancelled");
    eventually("the agent is told", || async {
        (agent.cancels() == [attempt.clone()]).then_some(())
    })
    .await;
    plane
        .client
        .post(&path, &json!({}))
        .await
        .is_problem(409, "conflict");
    eventually("the receipt is there", || async {
        let events = plane
            .client
            .get(&format!("/api/v1/executions/{id}/events"))
            .await
            .json();
        events
            .to_string()
            .contains("execution.cancel_receipt")
            .then_some(())
    })
    .await;
    let late = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "cancelled", "error": "cancelled_by_control_plane"});
    assert_eq!(plane.client.post(&late, &said).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_members_and_takes_no_more() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let run = [("x-run-id", "run_1")];
    let body = json!({"input": {}});
    let path = "/api/v1/execute/async/a.never";
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = plane.client.post_with(path, &run, &body).await;
        ids.push(answer.json()["execution_id"].as_str().unwrap().to_owned());
    }
    agent.until_seen(1).await;
    let answer = plane
        .client
        .post("/api/v1/workflows/run_1/cancel-tree", &json!({}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["cancelled"].as_array().unwrap().len(), 3);
    for id in &ids {
        assert_eq!(plane.execution(id).await["status"], "cancelled");
    }
    plane
        .client
        .post_with(path, &run, &body)
        .await
        .is_problem(409, "run_cancelled");
    assert_eq!(agent.seen().len(), 1, "queued members were never sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_or_malformed_is_said_so() {
    let plane = TestPlane::start().await;
    let post = async |path: &str, body: &'static str| {
        plane.client.send(http::Method::POST, path, &[], body).await
    };
    post("/api/v1/executions/exec_0/cancel", "")
        .await
        .is_problem(404, "not_found");
    post("/api/v1/workflows/run_0/cancel-tree", "")
        .await
        .is_problem(404, "not_found");
    post("/api/v1/executions/a%20b/cancel", "")
        .await
        .is_problem(400, "validation");
    post("/api/v1/executions/exec_0/cancel", "{\"reason\":5}")
        .await
        .is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_caller_of_a_cancelled_execution_is_answered_409() {
    let plane = std::sync::Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let caller = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.never", json!({})).await })
    };
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let id = attempt.split('~').next().unwrap();
    plane
        .client
        .post(&format!("/api/v1/executions/{id}/cancel"), &json!({}))
        .await;
    let body = caller.await.unwrap().is_problem(409, "cancelled");
    assert_eq!(body["execution_id"], id);
}
