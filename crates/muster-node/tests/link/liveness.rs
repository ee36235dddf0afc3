//! The fault table's rows of the link: what a node notices, says and does.

use std::time::Duration;

use futures_util::SinkExt as _;
use muster_node::{LinkState, Timing};
use serde_json::json;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::tests;
use crate::support::daemon::{Daemon, timing};
use crate::support::plane::Plane;
use crate::support::{logged, logged_times};

tests!(
    a_socket_that_is_open_while_replies_are_withheld_is_unhealthy_at_the_deadline,
    a_plane_that_replies_is_never_dropped,
    a_peer_that_accepts_and_never_reads_is_given_up,
    frames_that_cannot_be_written_end_the_link_within_the_write_bound,
    a_plane_that_does_not_answer_the_dial_is_given_up_at_the_bound,
    one_beat_without_an_answer_changes_nothing,
    a_plane_that_died_is_found_again,
);

/// Socket open, pongs flow, application replies withheld: unhealthy at the deadline, logged,
/// reconnected.
async fn a_socket_that_is_open_while_replies_are_withheld_is_unhealthy_at_the_deadline() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    daemon
        .is("ready", |status| status.link.state == LinkState::Ready)
        .await;
    served.withhold_replies();
    // Pings are answered by the daemon and prove nothing to it: the plane's own keep coming.
    let pings = tokio::spawn(async move {
        while tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>())
            .await
            .is_err()
        {
            served.send_raw(Message::Ping(vec![1].into()));
        }
    });
    let from = Instant::now();
    let _second = plane.ready().await;
    let took = from.elapsed();
    pings.abort();
    let deadline = timing().beat * 3;
    assert!(took > deadline - timing().beat * 2, "after {took:?}");
    assert!(took < deadline * 10, "after {took:?}");
    let status = daemon.is("ready again", |s| s.link.sessions == 2).await;
    assert_eq!(status.link.state, LinkState::Ready);
    let logged = logged();
    for part in [
        "the link to the plane is unhealthy",
        "the plane does not acknowledge",
        "the socket is open",
        "the link to the plane is reconnecting",
        "dials again in",
    ] {
        assert!(logged.contains(part), "not logged: {part}");
    }
    assert_eq!(logged_times("the link to the plane is unhealthy"), 1);
}

/// The control of the one above.
async fn a_plane_that_replies_is_never_dropped() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let mut last = 0;
    while last < 40 {
        let beat = served.frame("muster.beat").await;
        let seq = beat["seq"].as_u64().expect("a number");
        assert!(seq > last);
        assert_eq!(beat["count"], 0);
        last = seq;
    }
    let status = daemon.status().await;
    assert_eq!(status.link.state, LinkState::Ready);
    assert_eq!((plane.controls(), status.link.sessions), (1, 1));
    assert!(status.link.last_acknowledged_ms_ago.expect("acknowledged") < 5_000);
    assert_eq!(logged_times("unhealthy"), 0);
}

/// Peer accepts and never reads: the watchdog is not starved by it.
async fn a_peer_that_accepts_and_never_reads_is_given_up() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    control.register().await;
    let inventory = control.frame("muster.inventory").await;
    control.reply(&inventory, json!({})).await;
    // From here on nothing is read; the socket stays open.
    let from = Instant::now();
    let _second = plane.ready().await;
    assert!(
        from.elapsed() < timing().write + timing().beat * 30,
        "{:?}",
        from.elapsed()
    );
    daemon
        .is("ready again", |status| {
            status.link.state == LinkState::Ready
        })
        .await;
    assert!(logged().contains("the link to the plane is unhealthy"));
    drop(control);
}

/// The same when much is to be written: within the write bound, long before the deadline.
async fn frames_that_cannot_be_written_end_the_link_within_the_write_bound() {
    let plane = Plane::new().await;
    let daemon = Daemon::with_timing(
        &plane,
        Timing {
            ack_beats: 100_000,
            ..timing()
        },
    );
    let mut control = plane.control().await;
    control.register().await;
    let inventory = control.frame("muster.inventory").await;
    control.reply(&inventory, json!({})).await;
    // Each question is answered with its own id: more than any socket's buffers hold, in fewer
    // frames than the daemon's queue has places for.
    let id = "x".repeat(200_000);
    for _ in 0..100 {
        let ask = json!({"v": 1, "type": "muster.ask", "id": id}).to_string();
        if control.sink.send(Message::text(ask)).await.is_err() {
            break;
        }
    }
    let _second = plane.ready().await;
    daemon
        .is("ready again", |status| status.link.sessions == 2)
        .await;
    let logged = logged();
    assert!(
        logged.contains("the plane accepts and does not read"),
        "{logged}"
    );
    drop(control);
}

/// A dial that nobody answers is bounded. The port accepts connections and never upgrades them.
async fn a_plane_that_does_not_answer_the_dial_is_given_up_at_the_bound() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let mut settings = crate::support::daemon::settings(&address);
    settings.timing.connect = Duration::from_millis(300);
    let daemon = Daemon::with(settings);
    let (first, _) = listener.accept().await.expect("a dial");
    let (second, _) = listener.accept().await.expect("another dial");
    let status = daemon.status().await;
    assert_eq!(status.link.sessions, 0);
    assert!(logged().contains("no connection within 300ms"));
    drop((first, second));
}

/// One beat missed: nothing.
async fn one_beat_without_an_answer_changes_nothing() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let mut control = plane.control().await;
    control.register().await;
    let mut passed_over = 0;
    let mut beats = 0;
    while beats < 15 {
        let frame = control.next().await.expect("an open socket");
        if frame["type"] == "muster.beat" {
            beats += 1;
            if beats % 5 == 0 {
                passed_over += 1;
                continue;
            }
        }
        control.reply(&frame, json!({})).await;
    }
    assert_eq!(passed_over, 3);
    let status = daemon.status().await;
    assert_eq!(
        (status.link.state, status.link.sessions),
        (LinkState::Ready, 1)
    );
    assert_eq!(plane.controls(), 1);
}

/// Plane killed and back on its port: the link comes back by itself.
async fn a_plane_that_died_is_found_again() {
    let plane = Plane::new().await;
    let daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let port = plane.port();
    drop(plane);
    served.cut();
    let status = daemon
        .is("reconnecting", |status| {
            status.link.state == LinkState::Reconnecting && status.link.attempts > 1
        })
        .await;
    assert!(status.link.reconnect_in_ms.is_some(), "{status:?}");
    assert!(status.link.last_acknowledged_at.is_some());
    let plane = Plane::at(port).await;
    let _served = plane.ready().await;
    daemon
        .is("ready again", |status| {
            status.link.state == LinkState::Ready
        })
        .await;
}
