//! The restart of a worker by hand, from the caller's side, with a scripted node.

use std::sync::atomic::Ordering;

use http::Method;
use muster_store::annex::AuditFilter;
use serde_json::{Value, json};

use super::{node_is, quick, worker_when};
use crate::support::{Daemon, Enrolled, TestPlane, eventually};

const WORKERS: &str = "/api/v1/fleet/workers";

async fn placed(plane: &TestPlane) -> String {
    let placed = plane
        .as_person(WORKERS, &json!({"command": "cat", "name": "w-1"}))
        .await;
    assert_eq!(placed.status, 201, "{}", placed.json());
    placed.json()["worker"]["id"].as_str().unwrap().to_owned()
}

async fn lines(plane: &TestPlane, worker: &str) -> Vec<String> {
    let path = format!("{WORKERS}/{worker}/history");
    let history = plane.client.get(&path).await.json();
    let lines = history["history"].as_array().cloned().unwrap_or_default();
    let text = |line: &Value| line["evidence"].as_str().unwrap_or_default().to_owned();
    lines.iter().map(text).collect()
}

/// How many restarts the audit log holds.
async fn restarts_on_record(plane: &TestPlane) -> usize {
    let audit = plane
        .running
        .app
        .blocking(|stores| stores.annex.audit(&AuditFilter::newest(100)))
        .await
        .unwrap();
    let restarts = audit
        .iter()
        .filter(|(_, row)| row.action == "worker.restarted");
    restarts.count()
}

/// restarted: 200, another process of the same worker, whose key goes on; told as who wanted it.
#[tokio::test]
async fn a_worker_gets_another_process_and_stays_itself() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let id = placed(&plane).await;
    let key = daemon.script.started.lock()[0]["given_env"]["AGENTFIELD_API_KEY"]
        .as_str()
        .unwrap()
        .to_owned();
    // First what it would come to.
    let would = plane
        .as_person(
            &format!("{WORKERS}/{id}/restart?dry_run=true"),
            &json!({"grace": "2s"}),
        )
        .await;
    assert_eq!(would.status, 200);
    let would = would.json();
    assert_eq!(
        (&would["dry_run"], &would["allowed"]),
        (&json!(true), &json!(true))
    );
    let text = would["text"].as_str().unwrap();
    assert!(
        text.contains("SIGKILL after 2 s") && text.contains("same id"),
        "{text}"
    );
    assert!(daemon.script.restarted.lock().is_empty());

    let body = json!({"grace": "2s", "reason": "a new model"});
    let restarted = plane
        .as_person(&format!("{WORKERS}/w-1/restart"), &body)
        .await;
    assert_eq!(restarted.status, 200, "{}", restarted.json());
    let restarted = restarted.json();
    let worker = &restarted["worker"];
    assert_eq!(restarted["started"], true);
    assert_eq!((&worker["id"], &worker["pid"]), (&json!(id), &json!(4343)));
    assert_eq!(
        (&worker["state"], &worker["restarts"]),
        (&json!("running"), &json!(1))
    );
    let asked = daemon.script.restarted.lock()[0].clone();
    assert_eq!(asked["worker_id"], id.as_str());
    assert_eq!(asked["grace_ms"], 2000);
    let reason = asked["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("restarted by ") && reason.ends_with(": a new model"),
        "{reason}"
    );
    let told = lines(&plane, &id).await;
    let wanted = format!("{reason} (signal 15); its node starts it again now");
    assert!(told.contains(&wanted), "{told:?}");
    assert_eq!(restarts_on_record(&plane).await, 1);
    let headers = [("x-api-key", key.as_str())];
    let known = plane
        .client
        .send(Method::GET, "/api/v1/nodes", &headers, "")
        .await;
    assert_eq!(known.status, 200, "its key is as before");
}

/// A node that does not answer leaves it under way: 202; twice at once is asked of it once.
#[tokio::test]
async fn two_at_once_are_one_and_a_lost_link_leaves_it_under_way() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let id = placed(&plane).await;
    daemon.script.no_restarts.store(true, Ordering::Relaxed);
    let path = format!("{WORKERS}/{id}/restart");
    let body = json!({});
    let (one, other, ()) = tokio::join!(
        plane.as_person(&path, &body),
        plane.as_person(&path, &body),
        async {
            eventually("it is asked, and both wait for it", || async {
                let asked = !daemon.script.restarted.lock().is_empty();
                // Behind its line of the audit log a request asks nothing more but its restart.
                let both = restarts_on_record(&plane).await == 2
                    && plane.running.app.driver.vitals().waiters >= 2;
                (asked && both).then_some(())
            })
            .await;
            // What is answered after them shows that the engine has taken both.
            assert_eq!(
                plane.client.get(&format!("{WORKERS}/{id}")).await.status,
                200
            );
            daemon.cut();
        }
    );
    for answer in [one, other] {
        assert_eq!(answer.status, 202, "{}", answer.json());
        assert_eq!(answer.json()["started"], false);
        assert_eq!(answer.json()["under_way"], true);
    }
    assert_eq!(daemon.script.restarted.lock().len(), 1);
    // It is not heard: said with what to do, and nothing is asked.
    let away = plane.as_person(&path, &body).await;
    away.is_problem(409, "conflict");
    let text = away.json()["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(text.contains("cannot be told now"), "{}", away.json());
    let would = plane
        .as_person(&format!("{path}?dry_run=true"), &body)
        .await;
    assert_eq!(would.json()["allowed"], false);
}

/// What cannot be: 404, 409 for one that has ended, a wrong grace, an old daemon, a broker.
#[tokio::test]
async fn what_cannot_be_restarted_is_said() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let id = placed(&plane).await;
    let path = format!("{WORKERS}/{id}/restart");
    let nobody = plane
        .as_person(&format!("{WORKERS}/nobody/restart"), &json!({}))
        .await;
    nobody.is_problem(404, "not_found");
    for wrong in [
        json!({"grace": "soon"}),
        json!({"grace": "2h"}),
        json!({"force": true}),
    ] {
        plane
            .as_person(&path, &wrong)
            .await
            .is_problem(400, "validation");
    }
    drop(daemon);
    // The same machine, with a daemon that knows no restart.
    let older = Enrolled {
        actions: &["spawn", "release"],
        ..node.clone()
    };
    let old = Daemon::start(&older).await;
    old.script.workers.lock().insert(id.clone(), "w-1".into());
    old.say.send(json!("inventory")).unwrap();
    let refused = eventually("it is refused for its age", || async {
        let answer = plane.as_person(&path, &json!({})).await;
        (answer.json()["error_category"] == "unsupported_by_node").then_some(answer)
    })
    .await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.json().to_string().contains("too old"),
        "{}",
        refused.json()
    );
    drop(old);
    let daemon = Daemon::start(&node).await;
    daemon
        .script
        .workers
        .lock()
        .insert(id.clone(), "w-1".into());
    daemon.say.send(json!("inventory")).unwrap();
    node_is(&plane, "edge-1", "online").await;
    let released = plane
        .as_person(&format!("{WORKERS}/{id}/release"), &json!({}))
        .await;
    assert_eq!(released.status, 200, "{}", released.json());
    worker_when(&plane, &id, "it has ended", |worker| {
        worker["state"] == "exited"
    })
    .await;
    let ended = plane.as_person(&path, &json!({})).await;
    ended.is_problem(409, "conflict");
    let would = plane
        .as_person(&format!("{path}?dry_run=true"), &json!({}))
        .await;
    assert_eq!(would.json()["allowed"], false);
}
