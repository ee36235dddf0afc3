//! Things that happen at the same moment: two callbacks and the 202, two registrations, a cancel
//! and a return, a caller that hangs up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn of_two_callbacks_that_race_the_202_one_counts_and_it_ends_once() {
    let plane = Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let plane = plane.clone();
            tokio::spawn(async move { plane.call("a.race", json!({})).await })
        })
        .collect();
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.json());
        let body = answer.json();
        let id = body["execution_id"].as_str().unwrap();
        let stored = plane.execution(id).await;
        assert_eq!(stored["result"], body["result"], "told and stored alike");
    }
    assert_eq!(agent.seen().len(), 20);
    let store = plane.memory.clone().unwrap();
    let ends = muster_store::Store::events(&*store, 0, 10_000)
        .unwrap()
        .into_iter()
        .filter(|event| event.kind == muster_engine::row::EventKind::ExecutionSucceeded)
        .count();
    assert_eq!(ends, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_registrations_in_one_second_leave_one_agent_and_end_nothing() {
    let plane = TestPlane::start().await;
    let first = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = first.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    // The same process twice, and another one at another address, all at once.
    let second = FakeAgent::listen(&plane.client, "a", "instance-2", 0).await;
    tokio::join!(
        first.register(&plane),
        first.register(&plane),
        second.register(&plane),
        second.register(&plane),
    );
    let node = plane.client.get("/api/v1/nodes/a").await.json();
    assert_eq!(node["instances"].as_array().unwrap().len(), 2, "{node}");
    for _ in 0..4 {
        assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    }
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": "still mine"});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.execution(&id).await["result"], "still mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_while_its_root_waits_for_its_agent_is_never_sent() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    let port = agent.kill().await;
    let run = [("x-run-id", "run_waits")];
    let answer = plane
        .client
        .post_with("/api/v1/execute/async/a.echo", &run, &json!({"input": {}}))
        .await;
    let id = answer.json()["execution_id"].as_str().unwrap().to_owned();
    eventually("it waits", || async {
        (plane.execution(&id).await["status_reason"] == "awaiting_agent_restart").then_some(())
    })
    .await;
    let cancelled = plane
        .client
        .post("/api/v1/workflows/run_waits/cancel-tree", &json!({}))
        .await;
    assert_eq!(cancelled.json()["cancelled"], json!([id]));
    assert_eq!(plane.execution(&id).await["status"], "cancelled");
    let agent = FakeAgent::instance(&plane, "a", "instance-2", port).await;
    agent.beat(&plane).await;
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    assert_eq!(agent.seen().len(), 1, "only the call after it");
    assert_eq!(plane.execution(&id).await["status"], "cancelled");
    plane
        .client
        .post_with("/api/v1/execute/async/a.echo", &run, &json!({"input": {}}))
        .await
        .is_problem(409, "run_cancelled");
}

/// A client that hangs up changes nothing: the call goes on, and is told to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_sync_caller_that_hangs_up_leaves_its_execution_running() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mut stream = tokio::net::TcpStream::connect(plane.running.address)
        .await
        .unwrap();
    let body = "{\"input\":{}}";
    let request = format!(
        "POST /api/v1/execute/a.gate HTTP/1.1\r\nhost: localhost\r\nx-run-id: run_hung_up\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    drop(stream);
    let id = attempt.split('~').next().unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(plane.execution(id).await["status"], "running");
    assert!(agent.cancels().is_empty());
    eventually("it ends", || async {
        agent.open_gate();
        (plane.execution(id).await["status"] == "succeeded").then_some(())
    })
    .await;
    eventually("nobody is held", || async {
        (plane.running.app.driver.vitals().waiters == 0).then_some(())
    })
    .await;
}

/// One that only waits for its turn has no row: hanging up gives its place away.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_hangs_up_before_its_turn_is_never_sent() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let first = plane.submit("a.gate", json!({})).await;
    agent.until_seen(1).await;
    let mut stream = tokio::net::TcpStream::connect(plane.running.address)
        .await
        .unwrap();
    let request = "POST /api/v1/execute/a.echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).await.unwrap();
    let places = || async {
        let queues = plane.client.get("/api/v1/queues").await.json();
        queues["queues"][0]["waiting_callers"].as_u64()
    };
    eventually("it has a place", || async {
        let queues = plane.client.get("/api/v1/queues").await.json();
        assert!(queues.is_object(), "{queues}");
        (places().await == Some(1)).then_some(())
    })
    .await;
    drop(stream);
    eventually("its place is free", || async {
        (places().await == Some(0)).then_some(())
    })
    .await;
    eventually("the first ends", || async {
        agent.open_gate();
        (plane.execution(&first).await["status"] == "succeeded").then_some(())
    })
    .await;
    assert_eq!(plane.call("a.add", json!({})).await.status, 200);
    assert_eq!(agent.seen().len(), 2, "the one that hung up was not sent");
}
