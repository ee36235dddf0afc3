//! How a machine becomes a node.

use std::os::unix::fs::PermissionsExt as _;

use muster_node::enroll::{EnrollError, Enrolment, enroll};
use muster_node::{DaemonSettings, Identity, IdentityError, Stop};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::tests;
use crate::support::daemon::settings;
use crate::support::{LONG, listen_to_logs, logged, until};

tests!(
    a_token_is_handed_in_and_the_identity_kept,
    a_refusal_is_said_in_the_planes_words_and_leaves_nothing,
    another_planes_identity_is_not_replaced_and_the_token_not_used,
    an_answer_that_is_none_is_said_without_quoting_it,
    a_daemon_enrols_itself_from_a_token_file,
    a_daemon_that_is_nobody_says_what_to_do,
);

/// Answers so many requests alike, and hands their bodies out.
async fn plane(status: u16, body: &str) -> (String, tokio::sync::mpsc::UnboundedReceiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (asked, asks) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = Vec::new();
            let request = loop {
                let mut piece = [0; 4096];
                let read = stream.read(&mut piece).await.expect("a request");
                if read == 0 {
                    break None;
                }
                text.extend_from_slice(&piece[..read]);
                let whole = String::from_utf8_lossy(&text).into_owned();
                if let Some((head, body)) = whole.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break Some((head.to_owned(), body));
                }
            };
            // A dialled socket gets no upgrade here.
            if let Some((head, body)) = request {
                assert!(
                    head.starts_with("POST /api/v1/fleet/enroll HTTP/1.1"),
                    "{head}"
                );
                assert!(
                    head.to_lowercase()
                        .contains("content-type: application/json")
                );
                let _ = asked.send(body);
                stream.write_all(answer.as_bytes()).await.expect("answered");
            }
        }
    });
    (address, asks)
}

fn enrolment() -> Enrolment {
    Enrolment {
        token: "enr_canary".into(),
        name: Some("mini".into()),
        labels: vec!["gpu".into()],
        max_workers: 4,
        host: "host".into(),
    }
}

const ENROLLED: &str = r#"{"node_id":"node_1","name":"mini","token":"nt_canary","labels":["gpu","eu"],"max_workers":2,"later":true}"#;

async fn a_token_is_handed_in_and_the_identity_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("node");
    let (address, mut asks) = plane(201, ENROLLED).await;
    let identity = enroll(&state, &address, &enrolment(), None, false)
        .await
        .expect("enrolled");
    let asked = asks.recv().await.expect("a request");
    assert_eq!(
        asked,
        json!({"token": "enr_canary", "name": "mini", "labels": ["gpu"], "max_workers": 4, "host": "host"})
    );
    assert_eq!(
        Identity::read(&state).expect("read"),
        Some(identity.clone())
    );
    assert_eq!(
        (identity.node_id.as_str(), identity.plane.as_str()),
        ("node_1", address.as_str())
    );
    // What the plane agreed to, not what was asked for.
    assert_eq!(
        (&*identity.labels, identity.max_workers),
        (&["gpu".to_owned(), "eu".to_owned()][..], 2)
    );
    let mode = std::fs::metadata(Identity::path_in(&state))
        .expect("a file")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    // The same node again: a new token of it.
    enroll(&state, &address, &enrolment(), None, false)
        .await
        .expect("enrolled again");
}

async fn a_refusal_is_said_in_the_planes_words_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let body = serde_json::to_string(&muster_wire::ErrorBody::new(
        muster_wire::Category::Unauthenticated,
        "this enrolment token was used already",
    ))
    .expect("JSON");
    let (address, _asks) = plane(401, &body).await;
    let refused = enroll(directory.path(), &address, &enrolment(), None, false).await;
    let refused = refused.expect_err("a refusal");
    assert!(matches!(refused, EnrollError::Refused(_)));
    assert!(
        refused.to_string().contains("was used already"),
        "{refused}"
    );
    assert_eq!(Identity::read(directory.path()).expect("read"), None);
}

async fn another_planes_identity_is_not_replaced_and_the_token_not_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, _) = plane(201, ENROLLED).await;
    enroll(directory.path(), &first, &enrolment(), None, false)
        .await
        .expect("enrolled");
    let (second, mut asks) = plane(201, ENROLLED).await;
    let refused = enroll(directory.path(), &second, &enrolment(), None, false).await;
    let refused = refused.expect_err("a mismatch");
    assert!(
        matches!(
            refused,
            EnrollError::Identity(IdentityError::Mismatch { .. })
        ),
        "{refused}"
    );
    assert!(asks.try_recv().is_err(), "the token was used");
    enroll(directory.path(), &second, &enrolment(), None, true)
        .await
        .expect("by force");
    let kept = Identity::read(directory.path())
        .expect("read")
        .expect("one");
    assert_eq!(kept.plane, second);
    // Another node of the same plane is a mismatch, too.
    let other = Identity {
        node_id: "node_2".into(),
        ..kept
    };
    assert!(other.write(directory.path(), false).is_err());
}

async fn an_answer_that_is_none_is_said_without_quoting_it() {
    let directory = tempfile::tempdir().expect("a directory");
    for (status, body) in [
        (200, r#"{"token":"nt_canary"}"#),
        (200, "<html>canary"),
        (500, "canary"),
    ] {
        let (address, _asks) = plane(status, body).await;
        let refused = enroll(directory.path(), &address, &enrolment(), None, false).await;
        let refused = refused.expect_err("no answer");
        assert!(
            matches!(refused, EnrollError::Unreadable { .. }),
            "{refused}"
        );
        assert!(
            !format!("{refused} {refused:?}").contains("canary"),
            "{refused}"
        );
    }
    let gone = enroll(
        directory.path(),
        "http://127.0.0.1:1",
        &enrolment(),
        None,
        false,
    )
    .await;
    assert!(matches!(gone, Err(EnrollError::Unreachable { .. })));
}

async fn a_daemon_enrols_itself_from_a_token_file() {
    listen_to_logs();
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, "enr_canary\n").expect("a file");
    let (address, mut asks) = plane(201, ENROLLED).await;
    let state = directory.path().join("node");
    let settings = DaemonSettings {
        state: state.clone(),
        token_file: Some(token),
        name: Some("mini".into()),
        ..settings(&address)
    };
    let (stop, stopped) = tokio::sync::watch::channel(None);
    let running = tokio::spawn(muster_node::run(settings, stopped));
    assert_eq!(asks.recv().await.expect("a request")["token"], "enr_canary");
    until("an identity", || Identity::read(&state).ok().flatten()).await;
    until("its socket", || {
        state.join("node.sock").exists().then_some(())
    })
    .await;
    stop.send_replace(Some(Stop::AtOnce));
    tokio::time::timeout(LONG, running)
        .await
        .expect("stops")
        .expect("no panic")
        .expect("clean");
    assert!(logged().contains("enrolled") && !logged().contains("canary"));
}

async fn a_daemon_that_is_nobody_says_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = DaemonSettings {
        state: directory.path().join("node"),
        ..settings("http://127.0.0.1:1")
    };
    let (_stop, stopped) = tokio::sync::watch::channel(None);
    let refused = muster_node::run(settings, stopped)
        .await
        .expect_err("it is nobody");
    assert!(
        refused.to_string().contains("muster node enroll"),
        "{refused}"
    );
}
