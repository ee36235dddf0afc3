//! Calls to agents that are workers: linked by their key, dialled through their node's link.

use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_server::config::{Size, Span};
use serde_json::{Value, json};

use super::{node_is, quick, worker_when};
use crate::support::{Daemon, Enrolled, FakeAgent, TestPlane, eventually};

/// Places a worker and lets an agent that listens here register with its key.
pub(super) async fn agent_of(plane: &TestPlane, daemon: &Daemon, id: &str) -> (FakeAgent, String) {
    let before = daemon.script.started.lock().len();
    let placed = plane
        .as_person(
            "/api/v1/fleet/workers",
            &json!({"command": "python3", "node": daemon.node.name}),
        )
        .await;
    assert_eq!(placed.status, 201, "{}", placed.json());
    let worker = placed.json()["worker"]["id"].as_str().unwrap().to_owned();
    let key = daemon.script.started.lock()[before]["given_env"]["AGENTFIELD_API_KEY"]
        .as_str()
        .unwrap()
        .to_owned();
    let agent = FakeAgent::listen(&plane.client, id, &format!("{id}-1"), 0).await;
    let headers = [("x-api-key", key.as_str())];
    let registered = plane
        .client
        .post_with("/api/v1/nodes/register", &headers, &agent.registration())
        .await;
    assert_eq!(registered.status, 201, "{}", registered.json());
    // It is answered with the address that it gave.
    assert_eq!(
        registered.json()["resolved_base_url"],
        format!("http://127.0.0.1:{}", agent.port)
    );
    (agent, worker)
}

/// A call goes through the node's link, and the agent is shown as the worker that it is.
#[tokio::test]
async fn an_agent_that_is_a_worker_is_called_through_its_node() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let (agent, worker) = agent_of(&plane, &daemon, "billing").await;
    let answer = plane.call("billing.echo", json!({"a": 1})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["status"], "succeeded");
    assert_eq!(agent.seen().len(), 1);
    assert_eq!(
        agent.seen()[0].header("host"),
        format!("127.0.0.1:{}", agent.port)
    );
    assert_eq!(daemon.script.tunnels.load(Ordering::Relaxed), 1);
    // A connection that is there is used again.
    let answer = plane.call("billing.echo", json!({"a": 2})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(daemon.script.tunnels.load(Ordering::Relaxed), 1);
    let shown = plane
        .client
        .get(&format!("/api/v1/fleet/workers/{worker}"))
        .await
        .json();
    assert_eq!(shown["agent"], "billing");
}

/// Two machines have an agent at the same address; neither takes the other's.
#[tokio::test]
async fn the_same_address_on_two_machines_is_two() {
    let plane = TestPlane::with(quick).await;
    let mut daemons = Vec::new();
    for name in ["edge-1", "edge-2"] {
        let node = Enrolled::new(&plane, name, &[], 4).await;
        daemons.push(Daemon::start(&node).await);
        node_is(&plane, name, "online").await;
    }
    let (one, _) = agent_of(&plane, &daemons[0], "one").await;
    let (two, _) = agent_of(&plane, &daemons[1], "two").await;
    // What each says is localhost's port 8001 leads to its own process.
    daemons[0].script.ports.lock().insert(8001, one.port);
    daemons[1].script.ports.lock().insert(8001, two.port);
    for (daemon, agent) in [(&daemons[0], &one), (&daemons[1], &two)] {
        let key = daemon.script.started.lock()[0]["given_env"]["AGENTFIELD_API_KEY"].clone();
        let mut registration = agent.registration();
        registration["base_url"] = json!("http://localhost:8001");
        let headers = [("x-api-key", key.as_str().unwrap())];
        let path = "/api/v1/nodes/register";
        let answer = plane.client.post_with(path, &headers, &registration).await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    }
    for _ in 0..2 {
        for (id, agent) in [("one", &one), ("two", &two)] {
            let before = agent.seen().len();
            let answer = plane.call(&format!("{id}.echo"), json!({})).await;
            assert_eq!(answer.status, 200, "{id}: {}", answer.json());
            assert_eq!(agent.seen().len(), before + 1, "{id}");
        }
    }
}

/// A body of 32 MiB goes through and comes back.
#[tokio::test]
async fn large_bodies_go_through() {
    let plane = TestPlane::with(|config| {
        quick(config);
        config.server.max_body = Size(40 << 20);
        config.executions.max_result = Size(64 << 20);
        config.executions.sync_wait = Span(Duration::from_secs(80));
    })
    .await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let (agent, _) = agent_of(&plane, &daemon, "bulk").await;
    let text = "y".repeat(32 << 20);
    let answer = plane.call("bulk.echo", json!({"text": text})).await;
    assert_eq!(answer.status, 200);
    assert!(agent.seen()[0].body.len() > 32 << 20);
    assert!(answer.bytes.len() > 32 << 20, "{}", answer.bytes.len());
}

/// Nobody listens: a failed dial, so nothing was sent; the wait for it is absorbed and ends when
/// it listens again, and its node's silence is a failed dial, too.
#[tokio::test]
async fn a_port_where_nobody_listens_is_a_failed_dial_and_is_absorbed() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let (agent, _) = agent_of(&plane, &daemon, "late").await;
    let registration = agent.registration();
    let key = daemon.script.started.lock()[0]["given_env"]["AGENTFIELD_API_KEY"]
        .as_str()
        .unwrap()
        .to_owned();
    let port = agent.kill().await;
    let execution = plane.submit("late.echo", json!({"n": 1})).await;
    eventually("it waits for the agent", || async {
        let row = plane.execution(&execution).await;
        (row["status_reason"] == "awaiting_agent_restart").then_some(())
    })
    .await;
    let back = FakeAgent::listen(&plane.client, "late", "late-1", port).await;
    let headers = [("x-api-key", key.as_str())];
    let path = "/api/v1/nodes/register";
    let answer = plane.client.post_with(path, &headers, &registration).await;
    assert_eq!(answer.status, 201);
    let end = plane.end_of(&execution).await;
    assert_eq!(end["status"], "succeeded", "{end}");
    assert_eq!(back.seen().len(), 1);
}

/// What a worker's end says of its agent: at once, and no dial goes to its address any more.
#[tokio::test]
async fn a_worker_that_exits_takes_its_agent_down_at_once() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let (agent, worker) = agent_of(&plane, &daemon, "gone").await;
    assert_eq!(plane.call("gone.echo", json!({})).await.status, 200);
    daemon.script.workers.lock().remove(&worker);
    daemon
        .say
        .send(
            json!({"v": 1, "type": "muster.exited", "id": "x1", "worker_id": worker,
                     "name": "w", "restarts": 0, "exit": {"code": 3, "output": "boom"}}),
        )
        .unwrap();
    worker_when(&plane, &worker, "its exit is known", |shown| {
        shown["state"] == "exited"
    })
    .await;
    let refused = plane.call("gone.echo", json!({})).await;
    refused.is_problem(503, "node_unavailable");
    assert_eq!(agent.seen().len(), 1);
}

/// A loopback address is taken from a node's worker only.
#[tokio::test]
async fn a_stranger_s_tunnel_is_refused() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let _daemon = Daemon::start(&node).await;
    let end = node
        .open("/v1/node/tunnel/ws", &[("x-muster-tunnel", "tun_nobody")])
        .await;
    match end {
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
            assert_eq!(response.status().as_u16(), 404);
        }
        other => panic!("{:?}", other.map(|_| Value::Null)),
    }
}
