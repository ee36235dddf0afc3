//! What the plane asks of workers, and what it hears of them, over links that break.

use muster_node::{LinkState, Stop};
use serde_json::{Value, json};

use crate::harness::tests;
use crate::support::daemon::{Daemon, file_has, shell};
use crate::support::logged;
use crate::support::plane::Plane;

tests!(
    a_start_over_the_link_is_answered_and_listed,
    a_start_that_is_asked_twice_runs_once,
    a_link_that_dies_under_a_start_costs_nothing,
    an_exit_without_a_link_arrives_once_after_it,
    an_exit_that_was_not_acknowledged_is_told_again,
    a_worker_that_the_plane_does_not_want_is_released,
    a_release_is_answered_with_the_exit,
    a_restart_tells_the_exit_first_and_then_what_became_of_it,
    what_it_cannot_do_is_said,
    a_stop_with_its_workers_tells_their_exits_first,
    a_beat_counts_and_digests_what_the_inventory_names,
);

fn workers(inventory: &Value) -> Vec<String> {
    let all = inventory["workers"].as_array().expect("workers");
    let id = |worker: &Value| worker["worker_id"].as_str().expect("an id").to_owned();
    all.iter().map(id).collect()
}

async fn a_start_over_the_link_is_answered_and_listed() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("inv_1", "spawn", shell("wrk_1", "sleep 600"));
    // The order of the two is the machine's: the worker is running, and the start is answered.
    let mut told = (Value::Null, Value::Null);
    while told.0.is_null() || told.1.is_null() {
        let frame = served.next().await.expect("an open socket");
        match frame["type"].as_str() {
            Some("action.result") => told.0 = frame,
            Some("muster.worker") if frame["worker"]["state"] == "running" => told.1 = frame,
            _ => {}
        }
    }
    let (result, changed) = told;
    assert_eq!(result["invocation_id"], "inv_1");
    assert_eq!(result["output"]["outcome"], "started");
    assert!(result.get("error").is_none());
    assert_eq!(changed["worker"]["worker_id"], "wrk_1");
    assert_eq!(changed["worker"]["pid"], result["output"]["pid"]);
    let status = daemon.status().await;
    assert_eq!(status.workers.len(), 1);
}

/// The node deduplicates by worker id: a repeated start is answered, never run twice.
async fn a_start_that_is_asked_twice_runs_once() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let directory = tempfile::tempdir().expect("a directory");
    let ran = directory.path().join("ran");
    let start = shell(
        "wrk_1",
        &format!("echo ran >> {}; sleep 600", ran.display()),
    );
    served.invoke("inv_1", "spawn", start.clone());
    served.invoke("inv_1", "spawn", start.clone());
    let first = served.result("inv_1").await;
    let second = served.result("inv_1").await;
    served.invoke("inv_2", "spawn", start);
    let third = served.result("inv_2").await;
    assert_eq!(first["output"]["outcome"], "started");
    assert_eq!(first["output"], second["output"]);
    assert_eq!(first["output"], third["output"]);
    assert_eq!(file_has(&ran, "ran").await, "ran\n");
}

/// Plane killed while a start is in flight: it is found in the inventory, and asked again it is
/// answered.
async fn a_link_that_dies_under_a_start_costs_nothing() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let directory = tempfile::tempdir().expect("a directory");
    let ran = directory.path().join("ran");
    let start = shell(
        "wrk_1",
        &format!("echo ran >> {}; sleep 600", ran.display()),
    );
    served.invoke("inv_1", "spawn", start.clone());
    file_has(&ran, "ran").await;
    served.cut();
    let mut control = plane.control().await;
    control.register().await;
    let inventory = control.frame("muster.inventory").await;
    assert_eq!(workers(&inventory), ["wrk_1"]);
    control.reply(&inventory, json!({})).await;
    control.send(json!({"v": 1, "type": "action.invoke", "invocation_id": "inv_1", "action": "spawn", "input": start})).await;
    let result = control.frame("action.result").await;
    assert_eq!(result["output"]["outcome"], "started");
    assert_eq!(std::fs::read_to_string(&ran).expect("a file"), "ran\n");
}

async fn an_exit_without_a_link_arrives_once_after_it() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let directory = tempfile::tempdir().expect("a directory");
    let go = directory.path().join("go");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; echo last words; exit 7",
        go.display()
    );
    served.invoke("inv_1", "spawn", shell("wrk_1", &script));
    served.result("inv_1").await;
    let port = plane.port();
    drop(plane);
    served.cut();
    daemon
        .is("no link", |status| {
            status.link.state == LinkState::Reconnecting
        })
        .await;
    std::fs::write(&go, "").expect("a file");
    daemon
        .is("an exit waits", |status| status.exits_waiting == 1)
        .await;
    let plane = Plane::at(port).await;
    let mut control = plane.control().await;
    control.register().await;
    let exited = control.frame("muster.exited").await;
    assert_eq!(exited["worker_id"], "wrk_1");
    assert_eq!(exited["exit"]["code"], 7);
    assert!(
        exited["exit"]["output"]
            .as_str()
            .expect("text")
            .contains("last words")
    );
    // Exits go before the inventory that lacks their workers.
    let inventory = control.frame("muster.inventory").await;
    assert_eq!(workers(&inventory), [""; 0]);
    control.reply(&exited, json!({})).await;
    control.reply(&inventory, json!({})).await;
    daemon
        .is("an empty outbox", |status| status.exits_waiting == 0)
        .await;
    daemon
        .ask(muster_node::status::Question::Reconnect)
        .await
        .expect("asked");
    let mut again = plane.open().await;
    drop(control);
    let mut beats = 0;
    while beats < 3 {
        let frame = again.next().await.expect("an open socket");
        assert_ne!(frame["type"], "muster.exited", "an exit was told again");
        beats += usize::from(frame["type"] == "muster.beat");
    }
}

async fn an_exit_that_was_not_acknowledged_is_told_again() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    control.register().await;
    control.send(json!({"v": 1, "type": "action.invoke", "invocation_id": "i", "action": "spawn", "input": shell("wrk_1", "sleep 0.3; exit 3")})).await;
    let first = control.frame("muster.exited").await;
    drop(control);
    let mut control = plane.control().await;
    control.register().await;
    let second = control.frame("muster.exited").await;
    assert_eq!(first, second);
    control.refuse(&second, "internal_error").await;
    drop(control);
    // A refusal is no acknowledgement.
    let mut served = plane.open().await;
    assert_eq!(served.frame("muster.exited").await, first);
    daemon
        .is("an empty outbox", |status| status.exits_waiting == 0)
        .await;
    served.frame("muster.beat").await;
}

async fn a_worker_that_the_plane_does_not_want_is_released() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    for worker in ["wrk_1", "wrk_2"] {
        served.invoke(worker, "spawn", shell(worker, "sleep 600"));
        served.result(worker).await;
    }
    served.cut();
    let mut served = plane
        .served(|kind, _| {
            (kind == "muster.inventory").then(|| {
                json!({"verdicts": [
                    {"worker_id": "wrk_1", "verdict": "release"},
                    {"worker_id": "wrk_2", "verdict": "confirmed"},
                    {"worker_id": "wrk_3", "verdict": "release"},
                    {"worker_id": "../etc", "verdict": "release"},
                ]})
            })
        })
        .await;
    let exited = served.frame("muster.exited").await;
    assert_eq!(exited["worker_id"], "wrk_1");
    let status = daemon
        .is("one worker", |status| status.workers.len() == 1)
        .await;
    assert_eq!(status.workers[0].worker_id, "wrk_2");
}

async fn a_release_is_answered_with_the_exit() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("inv_1", "spawn", shell("wrk_1", "sleep 600"));
    served.result("inv_1").await;
    // Beats go on while it takes its time.
    served.invoke(
        "inv_2",
        "release",
        json!({"worker_id": "wrk_1", "grace_ms": 200}),
    );
    let result = served.result("inv_2").await;
    assert!(
        result["output"]["signal"].is_i64() || result["output"]["code"].is_i64(),
        "{result}"
    );
    served.invoke("inv_3", "release", json!({"worker_id": "wrk_none"}));
    let result = served.result("inv_3").await;
    assert!(
        result["error"]
            .as_str()
            .expect("a sentence")
            .contains("no worker"),
        "{result}"
    );
}

/// Like a restart by its policy: the exit with the next start, then the new process; the answer
/// after the exit.
async fn a_restart_tells_the_exit_first_and_then_what_became_of_it() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("inv_1", "spawn", shell("wrk_1", "exec sleep 600"));
    let first = served.result("inv_1").await["output"]["pid"].clone();
    let input = json!({"worker_id": "wrk_1", "grace_ms": 500, "reason": "restarted by ada"});
    served.invoke("inv_2", "restart", input);
    let exited = served.frame("muster.exited").await;
    assert_eq!(exited["exit"]["signal"], 15);
    assert_eq!(exited["exit"]["reason"], "restarted by ada");
    assert!(exited["next_start_at"].is_i64(), "{exited}");
    let result = served.result("inv_2").await;
    assert_eq!(result["output"]["outcome"], "started");
    assert_eq!(result["output"]["restarts"], 1);
    assert!(result["output"]["pid"].is_u64() && result["output"]["pid"] != first);
    served.invoke("inv_3", "restart", json!({"worker_id": "wrk_none"}));
    let result = served.result("inv_3").await;
    let error = result["error"].as_str().expect("a sentence");
    assert!(error.contains("no worker"), "{result}");
}

async fn what_it_cannot_do_is_said() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("inv_1", "dance", json!({}));
    assert_eq!(served.result("inv_1").await["error"], "handler_unavailable");
    served.invoke(
        "inv_2",
        "spawn",
        json!({"worker_id": "wrk_1", "spec": "canary"}),
    );
    let error = served.result("inv_2").await["error"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(
        error.starts_with("invalid_input") && !error.contains("canary"),
        "{error}"
    );
    served.invoke("inv_3", "spawn", shell("../../etc", "true"));
    assert!(served.result("inv_3").await["error"].is_string());
    let mut missing = shell("wrk_2", "");
    missing["spec"]["command"] = json!("/no/such/program");
    served.invoke("inv_4", "spawn", missing);
    assert_eq!(served.result("inv_4").await["output"]["outcome"], "refused");
    assert!(!logged().contains("canary"));
}

async fn a_stop_with_its_workers_tells_their_exits_first() {
    let plane = Plane::new().await;
    let mut daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    for worker in ["wrk_1", "wrk_2"] {
        served.invoke(worker, "spawn", shell(worker, "sleep 600"));
        served.result(worker).await;
    }
    daemon.stop(Stop::Release).await;
    let mut exits = 0;
    loop {
        let frame = served.next().await.expect("a goodbye first");
        match frame["type"].as_str() {
            Some("muster.exited") => exits += 1,
            Some("muster.goodbye") => {
                assert_eq!(frame["workers_stay"], false);
                break;
            }
            _ => {}
        }
    }
    assert_eq!(exits, 2);
}

async fn a_beat_counts_and_digests_what_the_inventory_names() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    for worker in ["wrk_b", "wrk_a"] {
        served.invoke(worker, "spawn", shell(worker, "sleep 600"));
        served.result(worker).await;
    }
    let beat = served
        .frame_where("muster.beat", |beat| beat["count"] == 2)
        .await;
    let digest = muster_node::fleet::frame::roster_digest(["wrk_a", "wrk_b"]);
    assert_eq!(beat["digest"], digest);
}
