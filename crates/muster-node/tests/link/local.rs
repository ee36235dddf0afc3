//! The local socket: what a node says of itself where no plane is, and the verbs.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use muster_node::status::{AskError, Question, last_known};
use muster_node::{LinkState, RunError, Stop};

use crate::harness::tests;
use crate::support::daemon::{Daemon, NODE, settings, shell};
use crate::support::plane::Plane;
use crate::support::{logged, until};

tests!(
    a_node_answers_for_itself_while_its_plane_is_away,
    a_new_connection_can_be_forced,
    what_was_given_up_is_not_done_later,
    it_can_be_stopped_and_then_says_what_was_last_known,
    a_deep_state_directory_has_a_socket_too,
    a_second_daemon_is_refused,
    a_plane_that_is_not_its_own_is_refused,
);

async fn a_node_answers_for_itself_while_its_plane_is_away() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("start", "spawn", shell("wrk_1", "sleep 600"));
    assert_eq!(served.result("start").await["output"]["outcome"], "started");
    drop(plane);
    served.cut();
    let status = daemon
        .is("reconnecting", |status| {
            status.link.state == LinkState::Reconnecting && status.link.attempts > 0
        })
        .await;
    assert_eq!(status.node_id, NODE);
    assert_eq!(status.workers.len(), 1);
    assert_eq!(status.workers[0].worker_id, "wrk_1");
    assert!(status.workers[0].pid.is_some() && status.workers[0].started_at.is_some());
    assert!(!status.link.reason.is_empty() && !status.link.evidence.is_empty());
    assert!(status.link.last_acknowledged_ms_ago.is_some());
    let mode = std::fs::metadata(daemon.state.join("node.sock"))
        .expect("a socket")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

async fn a_new_connection_can_be_forced() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut first = plane.ready().await;
    daemon
        .is("ready", |status| status.link.state == LinkState::Ready)
        .await;
    daemon.ask(Question::Reconnect).await.expect("asked");
    let _second = plane.ready().await;
    while first.next().await.is_some() {}
    daemon
        .is("ready again", |status| status.link.sessions == 2)
        .await;
    assert!(logged().contains("somebody asked for a new connection"));
}

/// A daemon that was stopped finds, when it goes on, questions whose askers have long been told
/// that nobody answered. Here it is kept from them by askers who say nothing.
async fn what_was_given_up_is_not_done_later() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    plane.ready().await;
    daemon.status().await;
    let dial = || UnixStream::connect(daemon.state.join("node.sock")).expect("a socket");
    // As many as it serves at once; the next one waits, in order.
    let silent: Vec<UnixStream> = (0..16).map(|_| dial()).collect();
    let mut given_up = dial();
    given_up
        .write_all(b"{\"ask\":\"stop\",\"stop_workers\":true}\n")
        .expect("asked");
    drop(given_up);
    drop(silent);
    until("it is said", || {
        logged()
            .contains("somebody asked and hung up")
            .then_some(())
    })
    .await;
    assert!(!daemon.status().await.stopping);
    assert!(!logged().contains("somebody asks the daemon to stop"));
}

async fn it_can_be_stopped_and_then_says_what_was_last_known() {
    let plane = Plane::new().await;
    let mut daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.invoke("start", "spawn", shell("wrk_1", "sleep 600"));
    served.result("start").await;
    daemon
        .ask(Question::Stop {
            stop_workers: false,
        })
        .await
        .expect("asked");
    daemon.ended().await;
    let refused = daemon.ask(Question::Status).await.expect_err("nobody runs");
    assert!(matches!(refused, AskError::NotRunning(_)), "{refused}");
    let last = last_known(&daemon.state).expect("it wrote it");
    assert_eq!((last.node_id.as_str(), last.workers.len()), (NODE, 1));
    assert_eq!(last.link.state, LinkState::Stopped);
    // The next daemon finds the worker that the last one had left.
    daemon.run();
    let mut served = plane.raw_control().await;
    drop(served.close(None).await);
    let served = plane.ready().await;
    let status = daemon
        .is("its worker", |status| status.workers.len() == 1)
        .await;
    assert_eq!(status.workers[0].pid, last.workers[0].pid);
    drop(served);
}

async fn a_deep_state_directory_has_a_socket_too() {
    let plane = Plane::new().await;
    let deep = tempfile::tempdir().expect("a directory");
    let state = deep.path().join("d".repeat(120));
    let identity = muster_node::Identity {
        plane: plane.address(),
        node_id: NODE.into(),
        name: "mini".into(),
        token: crate::support::daemon::TOKEN.into(),
        labels: Vec::new(),
        max_workers: 0,
    };
    identity.write(&state, false).expect("an identity");
    let settings = muster_node::DaemonSettings {
        state: state.clone(),
        ..settings(&plane.address())
    };
    let (stop, stopped) = tokio::sync::watch::channel(None);
    let running = tokio::spawn(muster_node::run(settings, stopped));
    until("its socket", || {
        state.join("node.sock").exists().then_some(())
    })
    .await;
    let status = muster_node::status::ask(&state, Question::Status)
        .await
        .expect("an answer");
    assert_eq!(status.node_id, NODE);
    stop.send_replace(Some(Stop::AtOnce));
    running.await.expect("no panic").expect("a clean end");
}

async fn a_second_daemon_is_refused() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    daemon.status().await;
    let settings = muster_node::DaemonSettings {
        state: daemon.state.clone(),
        ..settings(&plane.address())
    };
    let (_stop, stopped) = tokio::sync::watch::channel(None);
    let refused = muster_node::run(settings, stopped)
        .await
        .expect_err("the first one runs");
    assert!(refused.to_string().contains("another daemon"), "{refused}");
}

async fn a_plane_that_is_not_its_own_is_refused() {
    let plane = Plane::new().await;
    let mut daemon = Daemon::start(&plane);
    daemon.status().await;
    daemon.stop(Stop::AtOnce).await;
    let settings = muster_node::DaemonSettings {
        state: daemon.state.clone(),
        ..settings("http://other.example:1")
    };
    let (_stop, stopped) = tokio::sync::watch::channel(None);
    let refused = muster_node::run(settings, stopped)
        .await
        .expect_err("another plane");
    assert!(matches!(refused, RunError::Identity(_)), "{refused}");
    assert!(refused.to_string().contains("--force"), "{refused}");
}
