//! Waiting for an end: woken by it, bounded, told of progress, ended by a shutdown, and nothing
//! left of a client that hangs up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_server::config::Span;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::Mcp;
use crate::support::{FakeAgent, TestPlane, eventually};

/// Until somebody waits.
async fn until_waiting(plane: &TestPlane, count: usize) {
    eventually("somebody waits", || async {
        (plane.running.app.followers.len() == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_what_it_waits_for_and_not_before() {
    let plane = Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let root = mcp
        .tool("execute_reasoner", json!({"target": "a.gate"}))
        .await
        .ok();
    agent.until_seen(1).await;
    let waiting = |id: Value| {
        let mcp = Mcp::of(&plane);
        tokio::spawn(async move {
            mcp.tool("wait_run", json!({"id": id, "wait_seconds": 60}))
                .await
                .ok()
        })
    };
    let of_run = waiting(root["run_id"].clone());
    let of_root = waiting(root["execution_id"].clone());
    until_waiting(&plane, 2).await;
    let late = json!({"target": "a.never", "run_id": root["run_id"]});
    let late = mcp.tool("execute_reasoner", late).await.ok();
    agent.open_gate();
    let root_end = of_root.await.unwrap();
    assert_eq!(
        (&root_end["done"], &root_end["status"]),
        (&json!(true), &json!("running"))
    );
    assert_eq!(root_end["execution"]["result"], "through");
    // The root has ended, and a member is open: the run goes on.
    assert!(!of_run.is_finished());
    mcp.tool("cancel_run", json!({"id": late["execution_id"]}))
        .await
        .ok();
    let run_end = of_run.await.unwrap();
    assert_eq!(
        (&run_end["done"], &run_end["status"]),
        (&json!(true), &json!("succeeded"))
    );
    assert_eq!(run_end["counts"], json!({"cancelled": 1, "succeeded": 1}));
    until_waiting(&plane, 0).await;
    // What has ended long ago is answered at once.
    let began = Instant::now();
    let again = json!({"id": root["run_id"], "wait_seconds": 60});
    assert_eq!(mcp.tool("wait_run", again).await.ok()["done"], true);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_end_answers_everybody_who_waits_for_it() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let root = mcp
        .tool("execute_reasoner", json!({"target": "a.gate"}))
        .await
        .ok();
    agent.until_seen(1).await;
    let waiting: Vec<_> = (0..200)
        .map(|n| {
            let mcp = Mcp::of(&plane);
            let ids = [&root["run_id"], &root["execution_id"]];
            let wait = json!({"id": ids[n % 2], "wait_seconds": 60});
            tokio::spawn(async move { mcp.tool("wait_run", wait).await.ok() })
        })
        .collect();
    until_waiting(&plane, 200).await;
    agent.open_gate();
    for one in waiting {
        assert_eq!(one.await.unwrap()["execution"]["result"], "through");
    }
    until_waiting(&plane, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_runs_out_says_that_it_goes_on() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let call = json!({"target": "a.never", "wait_seconds": 1});
    let began = Instant::now();
    let given = mcp.tool("execute_reasoner", call).await.ok();
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(
        (&given["done"], &given["status"]),
        (&json!(false), &json!("running"))
    );
    let once = json!({"id": given["run_id"], "wait_seconds": 0});
    let shown = mcp.tool("wait_run", once).await.ok();
    assert_eq!(
        (&shown["done"], &shown["status"]),
        (&json!(false), &json!("running"))
    );
    assert!(shown["next"].as_str().unwrap().contains("why"));
    assert!(plane.running.app.followers.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_as_events_where_it_was_asked_for() {
    let plane = Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let root = mcp
        .tool("execute_reasoner", json!({"target": "a.gate"}))
        .await
        .ok();
    let run = root["run_id"].clone();
    agent.until_seen(1).await;
    let asking = {
        let (mcp, run) = (Mcp::of(&plane), run.clone());
        tokio::spawn(async move {
            let params = json!({"name": "wait_run", "_meta": {"progressToken": "p1"},
                "arguments": {"id": run, "wait_seconds": 60}});
            mcp.ask("tools/call", params).await
        })
    };
    until_waiting(&plane, 1).await;
    let member = json!({"target": "a.echo", "run_id": run, "wait_seconds": 20});
    mcp.tool("execute_reasoner", member).await.ok();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    agent.open_gate();
    let answer = asking.await.unwrap();
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect();
    let (last, told) = messages.split_last().unwrap();
    assert!(told.len() >= 2, "{text}");
    let mut before = -1.0;
    for message in told {
        assert_eq!(message["method"], "notifications/progress", "{text}");
        assert_eq!(message["params"]["progressToken"], "p1");
        let now = message["params"]["progress"].as_f64().unwrap();
        assert!(now > before, "{text}");
        before = now;
    }
    assert!(
        told[0]["params"]["message"]
            .as_str()
            .unwrap()
            .contains("executions have ended")
    );
    assert_eq!(last["result"]["structuredContent"]["done"], true, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_leaves_nothing_behind_and_changes_nothing() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute_reasoner", "arguments": {"target": "a.gate", "wait_seconds": 300}}})
    .to_string();
    let mut stream = tokio::net::TcpStream::connect(plane.running.address)
        .await
        .unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    agent.until_seen(1).await;
    until_waiting(&plane, 1).await;
    drop(stream);
    until_waiting(&plane, 0).await;
    let list = plane.client.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["status"], "running");
    agent.open_gate();
    let id = list["executions"][0]["execution_id"].as_str().unwrap();
    assert_eq!(plane.end_of(id).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_waits_within_the_drain_and_refuses_new_work() {
    let plane = TestPlane::with(|c| {
        c.server.shutdown_timeout = Span(Duration::from_secs(2));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let waiting: Vec<_> = ["gate", "never"]
        .into_iter()
        .map(|function| {
            let mcp = Mcp::of(&plane);
            let call = json!({"target": format!("a.{function}"), "wait_seconds": 60});
            tokio::spawn(async move { mcp.tool("execute_reasoner", call).await })
        })
        .collect();
    until_waiting(&plane, 2).await;
    agent.until_seen(2).await;
    let mcp = Mcp::of(&plane);
    let began = Instant::now();
    let stopping = tokio::spawn(plane.running.stop());
    eventually("new work is refused", || async {
        let given = mcp
            .tool("execute_reasoner", json!({"target": "a.echo"}))
            .await;
        given.is_error.then(|| {
            let body = given.refused("control_plane_shutdown");
            assert_eq!(body["retry_after"], 1, "{body}");
        })
    })
    .await;
    agent.open_gate();
    let mut ends = Vec::new();
    for one in waiting {
        ends.push(one.await.unwrap().ok());
    }
    stopping.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(15));
    let (through, held) = (&ends[0], &ends[1]);
    assert_eq!(through["execution"]["result"], "through", "{through}");
    assert_eq!(
        (&held["done"], &held["shutting_down"]),
        (&json!(false), &json!(true))
    );
    let plane = TestPlane::again(&store, |_| {}).await;
    let id = held["execution_id"].as_str().unwrap();
    assert_eq!(plane.execution(id).await["status"], "running", "it goes on");
}
