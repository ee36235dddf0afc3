//! Runs: the tree of calls under one root.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_its_roots_tree() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let root = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let run = plane.execution(&root).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let headers = [("x-run-id", &*run), ("x-parent-execution-id", &*attempt)];
    let child = plane
        .client
        .post_with("/api/v1/execute/a.echo", &headers, &json!({"input": {}}))
        .await;
    assert_eq!(child.status, 200, "{}", child.json());
    let seen = &agent.seen()[1];
    assert_eq!(
        seen.header("x-parent-execution-id"),
        root,
        "cut down to the execution"
    );

    let steps = plane
        .client
        .get(&format!("/api/v1/runs/{run}/steps"))
        .await
        .json();
    let steps = steps["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0]["execution_id"], root);
    assert_eq!(steps[1]["parent_execution_id"], root);
    let summary = plane
        .client
        .get(&format!("/api/v1/runs/{run}"))
        .await
        .json();
    assert_eq!(summary["status"], "running", "{summary}");
    assert_eq!(summary["executions"], 2);
    assert_eq!(summary["counts"], json!({"running": 1, "succeeded": 1}));
    let list = plane.client.get("/api/v1/runs?status=running").await.json();
    assert_eq!(list["runs"][0]["run_id"], run, "{list}");
    plane
        .client
        .get("/api/v1/runs/run_none")
        .await
        .is_problem(404, "not_found");
    plane
        .client
        .get("/api/v1/runs/a%2Fb")
        .await
        .is_problem(400, "validation");
}
