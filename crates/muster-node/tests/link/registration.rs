//! The first frame, what a refusal of it means, and the last one.

use std::time::Duration;

use muster_node::{LinkState, Stop};
use serde_json::json;

use crate::harness::tests;
use crate::support::daemon::{Daemon, TOKEN};
use crate::support::logged;
use crate::support::plane::Plane;

tests!(
    it_registers_with_its_offer_then_tells_its_inventory_and_beats,
    a_registration_without_an_answer_is_given_up_and_tried_again,
    a_node_that_the_plane_does_not_know_says_what_to_do_and_tries_slowly,
    a_token_that_the_plane_does_not_take_says_what_to_do,
    a_refusal_that_passes_is_tried_again_soon,
    a_new_token_of_the_same_node_is_used_without_a_restart,
    the_plane_says_how_often_it_beats,
    a_stop_says_goodbye_and_that_its_workers_stay,
    the_token_is_in_no_log,
);

async fn it_registers_with_its_offer_then_tells_its_inventory_and_beats() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    let register = control.register().await;
    assert_eq!(register["v"], 1);
    assert_eq!(register["name"], "mini");
    assert_eq!(register["tags"], json!(["zone=eu"]));
    assert_eq!(register["max_agents"], 0);
    let offer = &register["capabilities"][0];
    assert_eq!(offer["name"], "muster:link-v1");
    assert_eq!(offer["metadata"]["beat_ms"], 200);
    assert_eq!(offer["metadata"]["pid"], std::process::id());
    assert!(
        offer["metadata"]["epoch"]
            .as_str()
            .expect("an epoch")
            .starts_with("epoch_")
    );
    let first = control.next().await.expect("a beat");
    assert_eq!(
        (&first["type"], &first["seq"]),
        (&json!("muster.beat"), &json!(1))
    );
    let second = control.next().await.expect("an inventory");
    assert_eq!(second["type"], "muster.inventory");
    assert_eq!(second["workers"], json!([]));
}

async fn a_registration_without_an_answer_is_given_up_and_tried_again() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut silent = plane.control().await;
    let first = silent.frame("node.register").await;
    // It asks nothing else before it is known.
    assert!(silent.next().await.is_none());
    let mut control = plane.control().await;
    let second = control.register().await;
    let instance = |frame: &serde_json::Value| frame["provider"]["instance_id"].clone();
    assert_ne!(instance(&first), instance(&second));
    assert!(logged().contains("the plane does not answer the registration"));
    assert_eq!(daemon.status().await.link.sessions, 0);
}

async fn a_node_that_the_plane_does_not_know_says_what_to_do_and_tries_slowly() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    let register = control.frame("node.register").await;
    control.refuse(&register, "node_not_found").await;
    let status = daemon
        .is("reconnecting", |status| {
            status.link.state == LinkState::Reconnecting
        })
        .await;
    assert!(status.link.reason.contains("node_not_found"), "{status:?}");
    assert!(
        status.link.evidence.contains("muster node enroll"),
        "{status:?}"
    );
    // Half of `refused_wait` at least, of which little has passed.
    assert!(
        status.link.reconnect_in_ms.expect("a wait") > 200_000,
        "{status:?}"
    );
    assert_eq!(plane.controls(), 1);
}

async fn a_token_that_the_plane_does_not_take_says_what_to_do() {
    let plane = Plane::new().await;
    plane.refuse(401);
    let daemon = Daemon::start(&plane);
    let status = daemon
        .is("reconnecting", |status| {
            status.link.state == LinkState::Reconnecting
        })
        .await;
    assert!(status.link.evidence.contains("401"), "{status:?}");
    assert!(
        status.link.evidence.contains("muster node enroll"),
        "{status:?}"
    );
    assert!(status.link.reconnect_in_ms.expect("a wait") > 200_000);
}

async fn a_refusal_that_passes_is_tried_again_soon() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    for _ in 0..3 {
        let mut control = plane.control().await;
        let register = control.frame("node.register").await;
        control.refuse(&register, "overloaded").await;
    }
    let _served = plane.ready().await;
    daemon
        .is("ready", |status| status.link.state == LinkState::Ready)
        .await;
}

async fn a_new_token_of_the_same_node_is_used_without_a_restart() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut identity = muster_node::Identity::read(&daemon.state)
        .expect("read")
        .expect("one");
    let _served = plane.ready().await;
    identity.token = "another".into();
    identity.write(&daemon.state, false).expect("written");
    daemon
        .ask(muster_node::status::Question::Reconnect)
        .await
        .expect("asked");
    // The scripted plane insists on the old token, so the new one never gets in.
    daemon
        .is("dialled in vain", |status| status.link.attempts > 2)
        .await;
    identity.token = TOKEN.into();
    identity.write(&daemon.state, false).expect("written");
    let _served = plane.ready().await;
    assert!(logged().contains("its new token is used"));
    let other = muster_node::Identity {
        node_id: "node_other".into(),
        ..identity
    };
    other.write(&daemon.state, true).expect("written");
    daemon
        .ask(muster_node::status::Question::Reconnect)
        .await
        .expect("asked");
    let mut control = plane.control().await;
    // It goes on as who it was.
    control.register().await;
    assert!(logged().contains("another node's now"));
}

async fn the_plane_says_how_often_it_beats() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    let register = control.frame("node.register").await;
    control
        .reply(&register, json!({"heartbeat_ms": 50, "ack_beats": 100}))
        .await;
    let from = tokio::time::Instant::now();
    for _ in 0..20 {
        let beat = control.frame("muster.beat").await;
        control.reply(&beat, json!({})).await;
    }
    assert!(
        from.elapsed() < Duration::from_millis(200 * 19),
        "{:?}",
        from.elapsed()
    );
}

async fn a_stop_says_goodbye_and_that_its_workers_stay() {
    let plane = Plane::new().await;
    let mut daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    daemon.stop(Stop::Leave).await;
    let goodbye = served.frame("muster.goodbye").await;
    assert_eq!(goodbye["workers_stay"], true);
    assert_eq!(served.next().await, None);
    // A plane that does not answer holds nothing up for long.
    daemon.run();
    let silent = plane.ready().await;
    silent.withhold_replies();
    let from = tokio::time::Instant::now();
    daemon.stop(Stop::Leave).await;
    assert!(
        from.elapsed() < Duration::from_secs(20),
        "{:?}",
        from.elapsed()
    );
}

async fn the_token_is_in_no_log() {
    let plane = Plane::new().await;
    let mut daemon = Daemon::start(&plane);
    let _served = plane.ready().await;
    daemon.stop(Stop::Leave).await;
    assert!(logged().contains("the node starts"));
    assert!(!logged().contains("canary"), "the token was logged");
}
