//! A store that was copied: the plane that starts on it dispatches nothing until a person says
//! so, because the one it was copied from may have done it already.

use std::path::Path;
use std::time::Duration;

use http::Method;
use muster_server::config::{PlaneOrigin, SpanOrOff};
use muster_wire::Origin;
use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

/// Copies a data directory as `cp` does: the files get inodes of their own.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
    }
    to
}

/// A plane that gives agents all the time a test may take to come back.
async fn patient(directory: &Path) -> TestPlane {
    TestPlane::sqlite_with(directory, |c| {
        c.agents.restart_grace = SpanOrOff(Some(Duration::from_secs(120)));
    })
    .await
}

async fn unhold(plane: &TestPlane, directory: &Path) -> Value {
    let key = muster_server::auth::read_owner_key(directory)
        .unwrap()
        .unwrap();
    let headers = [("x-api-key", key.expose())];
    let path = "/api/v1/unhold";
    let answer = plane.client.send(Method::POST, path, &headers, "").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

async fn hold(plane: &TestPlane) -> Value {
    plane.client.get("/api/v1/hold").await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_stopped_plane_starts_in_hold_until_somebody_lifts_it() {
    let original = tempfile::tempdir().unwrap();
    let plane = patient(original.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    assert_eq!(hold(&plane).await["held"], false);
    plane.running.stop().await;

    let copied = copy(original.path());
    let plane = patient(copied.path()).await;
    let held = hold(&plane).await;
    assert_eq!(held["held"], true, "{held}");
    assert!(
        held["reason"].as_str().unwrap().contains("copied"),
        "{held}"
    );
    assert_eq!(held["agents"], json!([]), "no agent is held by itself");
    agent.register(&plane).await;
    assert_eq!(agent.beat(&plane).await, 200);
    let id = plane.submit("a.echo", json!({"new": 1})).await;
    assert_eq!(plane.execution(&id).await["status"], "queued");
    assert_eq!(
        hold(&plane).await["queued"],
        json!([{"agent": "a", "executions": 1}])
    );
    let attempts = format!("/api/v1/executions/{id}/attempts");
    let attempts = plane.client.get(&attempts).await.json();
    assert_eq!(attempts["attempts"], json!([]));
    plane.running.stop().await;

    // Nobody has lifted it: the next start is held for the same reason.
    let plane = patient(copied.path()).await;
    assert_eq!(hold(&plane).await["reason"], held["reason"]);
    assert_eq!(agent.seen().len(), 1, "only the original sent something");
    let lifted = unhold(&plane, copied.path()).await;
    assert_eq!(lifted["executions"], 1, "{lifted}");
    assert_eq!(lifted["held"], false, "{lifted}");
    assert_eq!(plane.end_of(&id).await["result"], json!({"new": 1}));
    plane.running.stop().await;

    let plane = patient(copied.path()).await;
    assert_eq!(hold(&plane).await["held"], false);
    let health = plane.client.get("/api/v1/health").await.json();
    assert!(!health.to_string().contains("suspicious"), "{health}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_plane_that_was_killed_sends_nothing_it_had_absorbed() {
    let original = tempfile::tempdir().unwrap();
    let plane = patient(original.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    agent.beat(&plane).await;
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
    let port = agent.kill().await;
    let id = plane.submit("a.echo", json!({"old": 1})).await;
    eventually("it is absorbed", || async {
        let execution = plane.execution(&id).await;
        (execution["status_reason"] == "awaiting_agent_restart").then_some(())
    })
    .await;
    // All that was acknowledged is in the files: this is what a killed plane leaves.
    let copied = copy(original.path());
    plane.running.stop().await;

    let plane = patient(copied.path()).await;
    assert_eq!(hold(&plane).await["held"], true);
    let agent = FakeAgent::instance(&plane, "a", "instance-2", port).await;
    assert_eq!(agent.beat(&plane).await, 200);
    let new = plane.submit("a.echo", json!({"new": 1})).await;
    assert_eq!(plane.execution(&new).await["status"], "queued");
    let old = plane.execution(&id).await;
    assert_eq!(old["status_reason"], "awaiting_agent_restart", "{old}");
    assert_eq!(agent.seen().len(), 0);
    unhold(&plane, copied.path()).await;
    assert_eq!(plane.end_of(&id).await["result"], json!({"old": 1}));
    assert_eq!(plane.end_of(&new).await["result"], json!({"new": 1}));
    assert_eq!(agent.seen().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_under_dev_is_not_held() {
    let original = tempfile::tempdir().unwrap();
    patient(original.path()).await.running.stop().await;
    let copied = copy(original.path());
    let dev = |c: &mut muster_server::Config| c.origin = PlaneOrigin(Origin::Dev);
    let plane = TestPlane::sqlite_with(copied.path(), dev).await;
    assert_eq!(hold(&plane).await["held"], false);
}
