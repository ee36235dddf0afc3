//! What comes over the wire and is no frame, or none that this build knows.

use muster_node::LinkState;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::tests;
use crate::support::daemon::Daemon;
use crate::support::logged;
use crate::support::plane::Plane;

tests!(
    garbage_is_passed_over_and_the_link_stays,
    a_frame_beyond_all_bounds_ends_the_connection_and_not_the_daemon,
    a_question_is_answered,
    answers_to_nothing_change_nothing,
    the_whole_inventory_is_told_again_and_again,
);

async fn garbage_is_passed_over_and_the_link_stays() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "\"canary\"",
        r#"{"v":1,"type":"action.invoke"}"#,
        r#"{"v":1,"type":"action.invoke","invocation_id":7,"action":"canary","input":{}}"#,
        r#"{"v":1,"type":"reply","id":"beat_1"}"#,
        r#"{"type":7}"#,
        &deep,
    ] {
        served.send_raw(Message::text(text.to_owned()));
    }
    served.send_raw(Message::binary(vec![0_u8, 159, 146, 150]));
    served.send(json!({"v": 2, "type": "muster.later", "canary": 1}));
    // It still listens and is still heard.
    served.send(json!({"v": 1, "type": "muster.ask", "id": "after"}));
    served
        .frame_where("reply", |frame| frame["id"] == "after")
        .await;
    served.frame("muster.beat").await;
    let status = daemon.status().await;
    assert_eq!((status.link.state, plane.controls()), (LinkState::Ready, 1));
    assert!(logged().contains("the plane sent what is no frame"));
    assert!(!logged().contains("canary"));
}

async fn a_frame_beyond_all_bounds_ends_the_connection_and_not_the_daemon() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let huge = json!({"v": 1, "type": "muster.ask", "id": "x".repeat(9 << 20)});
    served.send(huge);
    let _second = plane.ready().await;
    daemon
        .is("ready again", |status| status.link.sessions == 2)
        .await;
    assert!(logged().contains("are taken"), "{}", logged());
}

async fn a_question_is_answered() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.send(json!({"v": 1, "type": "muster.ask", "id": "ask_1", "later": true}));
    let reply = served
        .frame_where("reply", |frame| frame["id"] == "ask_1")
        .await;
    assert_eq!(reply, json!({"v": 1, "type": "reply", "id": "ask_1"}));
}

async fn answers_to_nothing_change_nothing() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    served.withhold_replies();
    // Answers to other requests than the one that waits are no acknowledgement.
    let noise = tokio::spawn(async move {
        while let Some(frame) = served.next().await {
            if frame["type"] == "muster.beat" {
                served
                    .send(json!({"v": 1, "type": "reply", "id": "beat_0", "ok": true, "data": {}}));
                served.send(json!({"v": 1, "type": "error", "id": "nobody", "ok": false, "code": "x", "message": "y"}));
            }
        }
    });
    let _second = plane.ready().await;
    noise.abort();
    daemon
        .is("ready again", |status| status.link.sessions == 2)
        .await;
    assert!(logged().contains("the plane does not acknowledge"));
}

async fn the_whole_inventory_is_told_again_and_again() {
    let plane = Plane::new().await;
    let mut settings = crate::support::daemon::settings(&plane.address());
    settings.timing.inventory_every = std::time::Duration::from_millis(300);
    let _daemon = Daemon::with(settings);
    let mut served = plane.ready().await;
    for _ in 0..3 {
        served.frame("muster.inventory").await;
    }
    assert_eq!(plane.controls(), 1);
}
