//! Placement, each row of the contract's table, from the caller's side.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use super::{node_is, quick, worker_when};
use crate::support::{Daemon, Enrolled, TestPlane};

const WORKERS: &str = "/api/v1/fleet/workers";

/// placed: 201, worker, node, pid, verified started; with variables of its own and no other
/// secret; none of them is shown anywhere.
#[tokio::test]
async fn a_worker_is_placed_started_and_shown_without_its_variables() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &["gpu"], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let body = json!({
        "command": "python3", "args": ["main.py"], "env": {"TOKEN": "canary-7f3"},
        "io": "pipes", "restart": "on-failure", "target_labels": ["gpu"], "name": "billing-1",
        "cwd": "/srv", "stop_grace": "3s", "start_window": "500ms",
    });
    let placed = plane.as_person(WORKERS, &body).await;
    assert_eq!(placed.status, 201, "{}", placed.json());
    let answer = placed.json();
    let worker = &answer["worker"];
    assert_eq!(answer["started"], true);
    assert_eq!(worker["state"], "running");
    assert_eq!(worker["node_name"], "edge-1");
    assert_eq!(worker["pid"], 4242);
    assert_eq!(worker["command"], "python3 main.py");
    let id = worker["id"].as_str().unwrap();
    let started = daemon.script.started.lock()[0].clone();
    assert_eq!(started["worker_id"], id);
    assert_eq!(started["spec"]["env"]["TOKEN"], "canary-7f3");
    assert_eq!(started["spec"]["start_window_ms"], 500);
    assert_eq!(started["spec"]["stop_grace_ms"], 3000);
    let given = started["given_env"].as_object().unwrap();
    assert_eq!(given["AGENTFIELD_SERVER"], plane.url());
    assert_eq!(given["MUSTER_WORKER_ID"], id);
    assert!(
        given["AGENTFIELD_API_KEY"]
            .as_str()
            .unwrap()
            .starts_with("mk_")
    );
    assert_eq!(given.len(), 3);
    for path in [
        WORKERS.to_owned(),
        format!("{WORKERS}/{id}"),
        format!("{WORKERS}/{id}/history"),
        format!("/api/v1/why/{id}"),
        "/api/v1/fleet/nodes/edge-1".to_owned(),
    ] {
        let shown = plane.client.get(&path).await;
        assert_eq!(shown.status, 200, "{path}");
        let text = String::from_utf8_lossy(&shown.bytes).into_owned();
        assert!(!text.contains("canary"), "{path}: {text}");
    }
    let node = plane.client.get("/api/v1/fleet/nodes/edge-1").await.json();
    assert_eq!(node["workers"], 1);
}

/// The key that a worker gets is its own: it ends with it.
#[tokio::test]
async fn a_worker_s_key_ends_with_the_worker() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let placed = plane.as_person(WORKERS, &json!({"command": "cat"})).await;
    let id = placed.json()["worker"]["id"].as_str().unwrap().to_owned();
    let key = daemon.script.started.lock()[0]["given_env"]["AGENTFIELD_API_KEY"]
        .as_str()
        .unwrap()
        .to_owned();
    let asks = || async {
        let headers = [("x-api-key", key.as_str())];
        let path = "/api/v1/nodes";
        plane.client.send(Method::GET, path, &headers, "").await
    };
    assert_eq!(asks().await.status, 200);
    let spawn = plane
        .client
        .post_with(WORKERS, &[("x-api-key", &key)], &json!({"command": "cat"}))
        .await;
    spawn.is_problem(403, "permission_denied");
    let released = plane
        .as_person(
            &format!("{WORKERS}/{id}/release"),
            &json!({"grace": "1s", "reason": "done"}),
        )
        .await;
    assert_eq!(released.status, 200, "{}", released.json());
    let released = released.json();
    assert_eq!(released["ended"], true);
    assert_eq!(released["worker"]["ended_how"], "released");
    assert_eq!(released["worker"]["exit"]["signal"], 15);
    assert_eq!(daemon.script.released.lock()[0]["grace_ms"], 1000);
    crate::support::eventually("the key is revoked", || async {
        (asks().await.status == 401).then_some(())
    })
    .await;
    let list = plane.client.get(WORKERS).await.json();
    assert_eq!(list["count"], 0);
    let past = plane
        .client
        .get(&format!("{WORKERS}?ended=true"))
        .await
        .json();
    assert_eq!(past["workers"][0]["id"], id.as_str());
    let output = plane
        .client
        .send(
            Method::GET,
            &format!("{WORKERS}/{id}/output"),
            &[("x-api-key", plane.key())],
            "",
        )
        .await;
    assert_eq!(&output.bytes[..], b"bye");
}

/// placed: or its exit code and last output.
#[tokio::test]
async fn a_worker_that_exits_within_its_start_window_is_told_with_code_and_output() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 0).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    *daemon.script.start.lock() = Some(json!({
        "outcome": "exited", "exit": {"code": 7, "output": "no such module\n"},
    }));
    let placed = plane
        .as_person(WORKERS, &json!({"command": "python3"}))
        .await;
    assert_eq!(placed.status, 201, "{}", placed.json());
    let answer = placed.json();
    assert_eq!(answer["started"], false);
    assert_eq!(answer["worker"]["state"], "exited");
    assert_eq!(answer["worker"]["exit"]["code"], 7);
    assert_eq!(answer["worker"]["exit"]["output"], "no such module\n");
}

/// target suspect or unreachable: 503 at once, with state, last heard and age; Retry-After 5.
#[tokio::test]
async fn a_placement_on_a_dead_target_is_refused_at_once_with_the_evidence() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    daemon.cut();
    for state in ["suspect", "unreachable"] {
        node_is(&plane, "edge-1", state).await;
        let began = Instant::now();
        let refused = plane
            .as_person(WORKERS, &json!({"command": "cat", "node": "edge-1"}))
            .await;
        let took = began.elapsed();
        let problem = refused.is_problem(503, "node_unreachable");
        assert_eq!(problem["retry_after"], 5);
        let message = problem["message"].as_str().unwrap();
        assert!(
            message.contains(state) && message.contains("ago"),
            "{message}"
        );
        eprintln!("a placement on a {state} target was refused in {took:?}");
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

/// draining, cordoned: 409; and an activated node takes work again.
#[tokio::test]
async fn a_cordoned_and_a_draining_node_take_no_work() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let wish = |word: &'static str| {
        let path = format!("/api/v1/fleet/nodes/edge-1/{word}");
        let plane = &plane;
        async move { plane.as_person(&path, &json!({"reason": "upgrade"})).await }
    };
    let body = json!({"command": "cat", "node": "edge-1"});
    let place = || plane.as_person(WORKERS, &body);
    assert_eq!(place().await.status, 201);
    let cordoned = wish("cordon").await;
    assert_eq!(cordoned.json()["wish"], "cordoned", "{}", cordoned.json());
    assert_eq!(cordoned.json()["wished"]["by"], "ada");
    place().await.is_problem(409, "node_draining");
    assert_eq!(daemon.script.released.lock().len(), 0);
    assert_eq!(wish("drain").await.status, 200);
    place().await.is_problem(409, "node_draining");
    crate::support::eventually("its worker was released", || async {
        (daemon.script.released.lock().len() == 1).then_some(())
    })
    .await;
    assert_eq!(wish("activate").await.status, 200);
    assert_eq!(place().await.status, 201);
}

/// no node has the labels: 409, and why each was passed over; all full: 503, or 202 and a
/// durable entry which is listed, and cancelled, or placed when there is room, or expires.
#[tokio::test]
async fn without_a_place_it_is_refused_with_reasons_or_queued() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &["gpu"], 1).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let labels = json!({"command": "cat", "target_labels": ["tpu"]});
    let problem = plane.as_person(WORKERS, &labels).await;
    let problem = problem.is_problem(409, "no_eligible_node");
    let over = &problem["details"]["passed_over"][0];
    assert_eq!(
        (&over["name"], &over["why"]),
        (&json!("edge-1"), &json!("labels"))
    );
    let first = plane.as_person(WORKERS, &json!({"command": "cat"})).await;
    assert_eq!(first.status, 201);
    let full = plane.as_person(WORKERS, &json!({"command": "cat"})).await;
    let full = full.is_problem(503, "fleet_capacity");
    assert!(full["retry_after"].is_number());
    let queued = plane
        .as_person(
            WORKERS,
            &json!({"command": "cat", "queue": true, "name": "second"}),
        )
        .await;
    assert_eq!(queued.status, 202, "{}", queued.json());
    assert_eq!(queued.json()["worker"]["state"], "queued");
    let third = plane
        .as_person(
            WORKERS,
            &json!({"command": "cat", "queue": "10m", "name": "third"}),
        )
        .await;
    assert_eq!(third.status, 202);
    let list = plane
        .client
        .get(&format!("{WORKERS}?state=queued"))
        .await
        .json();
    assert_eq!(list["count"], 2, "{list}");
    assert!(list["workers"][0]["place_by"].is_string());
    let cancelled = plane
        .as_person(&format!("{WORKERS}/third/release"), &json!({}))
        .await
        .json();
    assert_eq!(cancelled["worker"]["ended_how"], "cancelled", "{cancelled}");
    let expiring = plane
        .as_person(
            WORKERS,
            &json!({"command": "cat", "queue": "1s", "name": "late"}),
        )
        .await
        .json();
    let late = expiring["worker"]["id"].as_str().unwrap();
    let late = worker_when(&plane, late, "it expires", |w| w["state"] == "exited").await;
    assert_eq!(late["ended_how"], "placement_expired");
    assert_eq!(late["error_category"], "placement_expired");
    let why = late["exit"]["reason"].as_str().unwrap();
    assert!(why.contains("edge-1 is full"), "{late}");
    let first = first.json()["worker"]["id"].as_str().unwrap().to_owned();
    let release = plane
        .as_person(&format!("{WORKERS}/{first}/release"), &json!({}))
        .await;
    assert_eq!(release.status, 200);
    worker_when(&plane, "second", "it is placed", |w| {
        w["state"] == "running"
    })
    .await;
    assert_eq!(daemon.script.started.lock().len(), 2);
}

/// The idempotency key: the same placement is made once; with another body it is refused.
#[tokio::test]
async fn the_same_key_places_once() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let place = |command: &'static str| {
        let headers = [("x-api-key", plane.key()), ("idempotency-key", "k1")];
        let plane = &plane;
        async move {
            let body = json!({"command": command});
            plane.client.post_with(WORKERS, &headers, &body).await
        }
    };
    let first = place("cat").await;
    assert_eq!(first.status, 201, "{}", first.json());
    let again = place("cat").await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json()["repeated"], true);
    assert_eq!(again.json()["worker"]["id"], first.json()["worker"]["id"]);
    place("dog").await.is_problem(409, "idempotency_conflict");
    assert_eq!(daemon.script.started.lock().len(), 1);
}

/// A client that hangs up: the work goes on.
#[tokio::test]
async fn a_caller_who_hangs_up_loses_only_the_answer() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    daemon.script.no_starts.store(true, Ordering::Relaxed);
    let body = json!({"command": "cat", "name": "orphan"});
    let hung_up =
        tokio::time::timeout(Duration::from_millis(500), plane.as_person(WORKERS, &body)).await;
    assert!(hung_up.is_err());
    let worker = worker_when(&plane, "orphan", "it is starting", |w| {
        w["state"] == "starting"
    })
    .await;
    let id = worker["id"].as_str().unwrap();
    daemon
        .say
        .send(
            json!({"v": 1, "type": "action.result", "invocation_id": format!("start:{id}"),
                     "output": {"outcome": "started", "pid": 5}}),
        )
        .unwrap();
    daemon
        .script
        .workers
        .lock()
        .insert(id.to_owned(), "orphan".into());
    worker_when(&plane, "orphan", "it runs", |w| w["state"] == "running").await;
}

/// Bad input is a 400 with a sentence, and starts nothing; without a key it is 401 on loopback.
#[tokio::test]
async fn placements_that_are_wrong_are_refused_with_a_sentence() {
    let plane = TestPlane::with(quick).await;
    for bad in [
        json!({}),
        json!([]),
        json!({"command": ""}),
        json!({"command": "a\u{0}b"}),
        json!({"command": "cat", "cwd": "relative"}),
        json!({"command": "cat", "io": "screen"}),
        json!({"command": "cat", "restart": "sometimes"}),
        json!({"command": "cat", "env": {"A=B": "x"}}),
        json!({"command": "cat", "name": "a b"}),
        json!({"command": "cat", "queue": "soon"}),
        json!({"command": "cat", "start_window": "10m"}),
        json!({"command": "cat", "labels": ["a b"]}),
        json!({"command": "cat", "rows": 0}),
        json!({"command": "cat", "unknown": 1}),
    ] {
        let answer = plane.as_person(WORKERS, &bad).await;
        answer.is_problem(400, "validation");
    }
    let answer = plane.client.post(WORKERS, &json!({"command": "cat"})).await;
    answer.is_problem(401, "unauthenticated");
    let answer = plane.as_person(WORKERS, &json!({"command": "cat"})).await;
    answer.is_problem(409, "no_eligible_node");
}
