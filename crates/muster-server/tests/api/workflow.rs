//! Reports of agents: evidence about dispatched executions, the truth about observed ones.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_event_never_changes_what_the_plane_dispatched() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let event = json!({
        "execution_id": attempt, "run_id": null, "workflow_id": "run_x", "reasoner_id": "never",
        "type": "never", "agent_node_id": "a", "status": "failed", "parent_execution_id": null,
        "error": "kaput", "result": null,
    });
    let answer = plane
        .client
        .post("/api/v1/workflow/executions/events", &event)
        .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["success"]),
        (200, &json!(true))
    );
    assert_eq!(plane.execution(&id).await["status"], "running");
    let path = format!("/api/v1/executions/{attempt}/status");
    plane
        .client
        .post(&path, &json!({"status": "succeeded", "result": 1}))
        .await;
    assert_eq!(plane.execution(&id).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_inside_an_agent_gets_an_id_of_ours_and_is_observed() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let parent = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let run = plane.execution(&parent).await["run_id"].clone();
    let begin = json!({
        "execution_id": "exec_17_ab", "run_id": run, "reasoner_name": "helper", "node_id": "a",
        "parent_execution_id": attempt, "session_id": null, "caller_did": null,
    });
    let answer = plane
        .client
        .post("/api/v1/workflow/executions", &begin)
        .await
        .json();
    let id = answer["execution_id"].as_str().unwrap().to_owned();
    assert_eq!(answer["run_id"], run);
    let event = json!({
        "execution_id": id, "run_id": run, "reasoner_id": "helper", "agent_node_id": "a",
        "status": "succeeded", "parent_execution_id": attempt, "result": {"deep": [1]},
        "input_data": {"x": 1},
    });
    plane
        .client
        .post("/api/v1/workflow/executions/events", &event)
        .await;
    let seen = eventually("it is observed", || async {
        let answer = plane.client.get(&format!("/api/v1/executions/{id}")).await;
        (answer.status == 200 && answer.json()["status"] == "succeeded").then(|| answer.json())
    })
    .await;
    assert_eq!(seen["kind"], "observed", "{seen}");
    assert_eq!(seen["parent_execution_id"], parent);
    assert_eq!(seen["result"], json!({"deep": [1]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_reports_are_refused() {
    let plane = TestPlane::start().await;
    for body in [
        json!({}),
        json!({"execution_id": "e", "status": "odd", "agent_node_id": "a", "reasoner_id": "f"}),
        json!({"execution_id": "a b", "status": "running", "agent_node_id": "a", "reasoner_id": "f"}),
        json!({"execution_id": "e", "status": "running", "agent_node_id": "a", "reasoner_id": "a b"}),
        json!([1]),
    ] {
        let answer = plane
            .client
            .post("/api/v1/workflow/executions/events", &body)
            .await;
        answer.is_problem(400, "validation");
        // An answer here must never carry a null execution id: the SDK would take it.
        let answer = plane
            .client
            .post("/api/v1/workflow/executions", &body)
            .await;
        assert!(!answer.json().to_string().contains("\"execution_id\":null"));
    }
}
