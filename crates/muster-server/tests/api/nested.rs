//! Trees of calls that come back to where they were: A→B→A and A↔B with caps of one, a recursion
//! without end, and a queue whose agent is gone for good.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

async fn two_agents_with_caps_of_one() -> (Arc<TestPlane>, FakeAgent, FakeAgent) {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let a = FakeAgent::start(&plane, "a").await;
    let b = FakeAgent::start(&plane, "b").await;
    (Arc::new(plane), a, b)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calls_b_calls_a_with_caps_of_one_ends_on_every_lane() {
    for lane in ["sync", "async"] {
        let (plane, _a, _b) = two_agents_with_caps_of_one().await;
        let input = json!({"path": ["b.relay", "a.relay", "b.relay"], "lane": lane});
        let answer = plane.call("a.relay", input).await;
        assert_eq!(answer.status, 200, "{lane}: {}", answer.json());
        assert_eq!(answer.json()["result"]["seen"], json!(["a", "b", "a", "b"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_that_cross_with_caps_of_one_all_end() {
    for lane in ["sync", "async"] {
        let (plane, _a, _b) = two_agents_with_caps_of_one().await;
        let calls: Vec<_> = (0..12)
            .map(|n| {
                let plane = plane.clone();
                let (from, to) = if n % 2 == 0 { ("a", "b") } else { ("b", "a") };
                let input = json!({"path": [format!("{to}.relay")], "lane": lane});
                let target = format!("{from}.relay");
                tokio::spawn(async move { plane.call(&target, input).await })
            })
            .collect();
        for call in calls {
            let answer = call.await.unwrap();
            assert_eq!(answer.status, 200, "{lane}: {}", answer.json());
        }
        let list = plane
            .client
            .get("/api/v1/executions?limit=1000")
            .await
            .json();
        let ended = |row: &Value| row["status"] == "succeeded";
        let rows = list["executions"].as_array().unwrap();
        assert!(rows.len() == 24 && rows.iter().all(ended), "{lane}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recursion_without_end_is_refused_at_its_depth_and_ends() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let answer = plane.call("a.recurse", json!({"depth": 0})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let said = &answer.json()["result"];
    assert_eq!(
        (&said["status"], &said["category"], &said["execution_id"]),
        (&json!(429), &json!("concurrency_limit"), &Value::Null),
        "{said}"
    );
    assert_eq!(said["depth"], 64, "{said}");
    assert_eq!(agent.seen().len(), 65);
    let list = plane
        .client
        .get("/api/v1/executions?limit=1000")
        .await
        .json();
    let rows = list["executions"].as_array().unwrap();
    assert_eq!(rows.len(), 65, "the refused one left no row");
    assert!(rows.iter().all(|row| row["status"] == "succeeded"));
}

/// Queued work stays queued; the plane stays quick, refuses more, and one cancel ends it all.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_queued_and_the_agent_gone_for_good() {
    const QUEUED: usize = 10_000;
    let plane = Arc::new(TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await);
    let agent = FakeAgent::start(&plane, "a").await;
    let running = plane.submit("a.never", json!({})).await;
    agent.until_seen(1).await;
    let run = [("x-run-id", "run_many")];
    let submit = |n: usize| {
        let plane = plane.clone();
        async move {
            let path = "/api/v1/execute/async/a.echo";
            let body = json!({"input": {"n": n}});
            plane.client.post_with(path, &run, &body).await
        }
    };
    let mut last = None;
    for from in (0..QUEUED).step_by(100) {
        let some: Vec<_> = (from..from + 100)
            .map(|n| tokio::spawn(submit(n)))
            .collect();
        for one in some {
            let answer = one.await.unwrap();
            assert_eq!(answer.status, 202, "{}", answer.json());
            last = answer.json()["execution_id"].as_str().map(str::to_owned);
        }
    }
    submit(QUEUED).await.is_problem(503, "concurrency_limit");
    let body = json!({"reason": "signal", "instance_id": "instance-1"});
    let goodbye = plane.client.post("/api/v1/nodes/a/shutdown", &body).await;
    assert_eq!(goodbye.status, 202);
    agent.kill().await;
    submit(QUEUED).await.is_problem(503, "node_unavailable");
    let id = last.unwrap();
    let began = std::time::Instant::now();
    assert_eq!(plane.execution(&id).await["status"], "queued");
    assert_eq!(plane.execution(&running).await["status"], "running");
    assert!(
        began.elapsed() < std::time::Duration::from_secs(2),
        "reads stay quick"
    );
    let queues = plane.client.get("/api/v1/queues").await.json();
    assert!(queues.to_string().contains("10000"), "{queues}");

    let cancelled = plane
        .client
        .post("/api/v1/workflows/run_many/cancel-tree", &json!({}))
        .await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.json());
    assert_eq!(
        cancelled.json()["cancelled"].as_array().unwrap().len(),
        QUEUED
    );
    assert_eq!(plane.execution(&id).await["status"], "cancelled");
    eventually("the queue is empty", || async {
        let queues = plane.client.get("/api/v1/queues").await.json();
        (!queues.to_string().contains("10000")).then_some(())
    })
    .await;
}
