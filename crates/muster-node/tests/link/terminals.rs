//! Watching and driving workers over the terminal socket.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_node::LinkState;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::tests;
use crate::support::daemon::{Daemon, shell, timing};
use crate::support::plane::{Control, Plane, Served};

tests!(
    a_terminal_is_painted_driven_and_closed_with_a_reason,
    a_viewer_that_only_watches_cannot_type,
    a_worker_that_is_not_there_is_said,
    a_worker_that_ends_ends_its_viewers,
    a_flood_holds_up_no_beat_and_no_frame_that_must_arrive,
    a_viewer_that_does_not_read_costs_output_and_nothing_else,
    a_terminal_socket_that_breaks_is_opened_again,
    what_is_no_wish_is_said_or_passed_over,
    beats_of_the_terminal_socket_count_once_they_are_answered,
);

async fn with_worker(plane: &Plane, script: &str) -> (Daemon, Served, Control) {
    let daemon = Daemon::start(plane);
    let mut served = plane.ready().await;
    served.invoke("start", "spawn", shell("wrk_1", script));
    let result = served.result("start").await;
    assert_eq!(result["output"]["outcome"], "started", "{result}");
    let terminal = plane.terminal().await;
    (daemon, served, terminal)
}

fn open(session: &str, mode: &str) -> Value {
    json!({"type": "terminal.open", "session_id": session, "agent": "wrk_1", "mode": mode})
}

fn input(session: &str, text: &str) -> Value {
    json!({"type": "terminal.input", "session_id": session, "data_base64": STANDARD.encode(text)})
}

/// Reads output until it has a part.
async fn shows(terminal: &mut Control, part: &str) -> String {
    let mut shown = String::new();
    while !shown.contains(part) {
        let frame = terminal.next().await.expect("an open socket");
        match frame["type"].as_str().expect("a type") {
            "terminal.output" => shown += frame["chunk"].as_str().expect("text"),
            "terminal.ready" => {
                let screen = STANDARD.decode(frame["screen"].as_str().expect("text"));
                shown += &String::from_utf8_lossy(&screen.expect("base64"));
            }
            _ => {}
        }
    }
    shown
}

async fn a_terminal_is_painted_driven_and_closed_with_a_reason() {
    let plane = Plane::new().await;
    let (daemon, _served, mut terminal) = with_worker(&plane, "echo hello; exec cat").await;
    terminal.send(open("ses_1", "drive")).await;
    let ready = terminal.frame("terminal.ready").await;
    assert_eq!((&ready["rows"], &ready["cols"]), (&json!(24), &json!(80)));
    assert_eq!(ready["session_id"], "ses_1");
    daemon
        .is("a viewer", |status| status.terminal.viewers == 1)
        .await;
    terminal.send(input("ses_1", "echo äöü€🦀\r")).await;
    // The order of the two is the worker's.
    let (mut shown, mut acknowledged) = (String::new(), 0);
    while acknowledged == 0 || !shown.contains("äöü€🦀") {
        let frame = terminal.next().await.expect("an open socket");
        shown += frame["chunk"].as_str().unwrap_or_default();
        acknowledged += frame["bytes_written"].as_u64().unwrap_or(0);
    }
    assert_eq!(acknowledged, "echo äöü€🦀\r".len() as u64);
    terminal
        .send(json!({"type": "terminal.resize", "session_id": "ses_1", "rows": 30, "cols": 100}))
        .await;
    terminal
        .send(json!({"type": "terminal.close", "session_id": "ses_1"}))
        .await;
    let closed = terminal.frame("terminal.closed").await;
    assert_eq!(closed["code"], "closed");
    assert!(closed["message"].is_string());
    daemon
        .is("no viewer", |status| status.terminal.viewers == 0)
        .await;
    // The worker goes on, with the size that it was given.
    terminal.send(open("ses_2", "view")).await;
    let ready = terminal.frame("terminal.ready").await;
    assert_eq!((&ready["rows"], &ready["cols"]), (&json!(30), &json!(100)));
}

async fn a_viewer_that_only_watches_cannot_type() {
    let plane = Plane::new().await;
    let (_daemon, _served, mut terminal) = with_worker(&plane, "exec cat").await;
    terminal.send(open("ses_1", "view")).await;
    terminal.send(open("ses_2", "drive")).await;
    terminal.send(input("ses_1", "no\r")).await;
    let error = terminal.frame("terminal.error").await;
    assert_eq!(
        (&error["session_id"], &error["code"]),
        (&json!("ses_1"), &json!("view_only"))
    );
    terminal.send(input("ses_2", "yes\r")).await;
    let shown = shows(&mut terminal, "yes").await;
    assert!(!shown.contains("no"), "{shown:?}");
}

async fn a_worker_that_is_not_there_is_said() {
    let plane = Plane::new().await;
    let (_daemon, _served, mut terminal) = with_worker(&plane, "exec cat").await;
    // The same id again and again: it is free as soon as its session is said to be closed.
    for agent in ["wrk_none", "../x", ""].repeat(100) {
        terminal
            .send(
                json!({"type": "terminal.open", "session_id": "s", "agent": agent, "mode": "view"}),
            )
            .await;
        assert_eq!(
            terminal.frame("terminal.error").await["code"],
            "agent_not_found"
        );
        assert_eq!(
            terminal.frame("terminal.closed").await["code"],
            "agent_not_found"
        );
    }
}

async fn a_worker_that_ends_ends_its_viewers() {
    let plane = Plane::new().await;
    let script = "read line; echo bye; exit 0";
    let (_daemon, _served, mut terminal) = with_worker(&plane, script).await;
    terminal.send(open("ses_1", "view")).await;
    terminal.send(open("ses_2", "drive")).await;
    terminal.frame("terminal.ready").await;
    terminal.send(input("ses_2", "go\r")).await;
    for _ in 0..2 {
        let closed = terminal.frame("terminal.closed").await;
        assert_eq!(closed["code"], "agent_exited", "{closed}");
        assert!(!closed["message"].as_str().expect("a sentence").is_empty());
    }
}

/// A worker that prints as fast as it can neither delays beats nor grows memory; offsets grow,
/// and jump where output was dropped.
async fn a_flood_holds_up_no_beat_and_no_frame_that_must_arrive() {
    let plane = Plane::new().await;
    let script = "while :; do cat /proc/self/maps /proc/self/maps /proc/self/maps; done";
    let (daemon, mut served, mut terminal) = with_worker(&plane, script).await;
    terminal.send(open("ses_1", "drive")).await;
    let before = memory();
    let watched = Instant::now();
    let beats = tokio::spawn(async move {
        let (mut last, mut worst, mut beats) = (Instant::now(), Duration::ZERO, 0);
        while watched.elapsed() < Duration::from_secs(5) {
            served.frame("muster.beat").await;
            worst = worst.max(last.elapsed());
            last = Instant::now();
            beats += 1;
        }
        (worst, beats, served)
    });
    let (mut bytes, mut at, mut dropped) = (0_u64, 0_u64, 0_u64);
    let mut acknowledged = 0;
    while watched.elapsed() < Duration::from_secs(5) {
        let frame = terminal.next().await.expect("an open socket");
        match frame["type"].as_str().expect("a type") {
            "terminal.output" => {
                let offset = frame["offset"].as_u64().expect("a number");
                let chunk = frame["chunk"].as_str().expect("text");
                assert!(offset >= at, "it went back from {at} to {offset}");
                dropped += offset - at;
                bytes += chunk.len() as u64;
                at = offset + chunk.len() as u64;
                if bytes > acknowledged * (4 << 20) {
                    acknowledged += 1;
                    terminal.send(input("ses_1", "x")).await;
                }
            }
            "terminal.ready" => {
                let offset = frame["offset"].as_u64().expect("a number");
                dropped += offset.saturating_sub(at);
                at = offset;
            }
            _ => {}
        }
    }
    let (worst, count, _served) = beats.await.expect("beats");
    let grown = memory().saturating_sub(before);
    println!(
        "{bytes} bytes shown, {dropped} dropped, {count} beats, worst {worst:?}, {grown} KiB grown"
    );
    assert!(worst < timing().beat * 3, "a beat came after {worst:?}");
    assert!(grown < 64 << 10, "{grown} KiB");
    assert!(bytes > 1 << 20, "only {bytes} bytes in five seconds");
    let status = daemon.status().await;
    assert_eq!(
        (status.link.state, status.link.sessions),
        (LinkState::Ready, 1)
    );
    terminal
        .send(json!({"type": "terminal.close", "session_id": "ses_1"}))
        .await;
    assert_eq!(terminal.frame("terminal.closed").await["code"], "closed");
}

/// The plane does not read the terminal socket: output is dropped at its source, the link goes
/// on, and the socket is given up within the write bound.
async fn a_viewer_that_does_not_read_costs_output_and_nothing_else() {
    let plane = Plane::new().await;
    let script = "while :; do cat /proc/self/maps; done";
    let (daemon, mut served, mut terminal) = with_worker(&plane, script).await;
    let before = memory();
    terminal.send(open("ses_1", "view")).await;
    let mut again = plane.terminal().await;
    let grown = memory().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
    served.frame("muster.beat").await;
    again.send(open("ses_1", "view")).await;
    again.frame("terminal.output").await;
    let status = daemon.status().await;
    assert_eq!(
        (status.link.state, status.link.sessions),
        (LinkState::Ready, 1)
    );
    drop(terminal);
}

async fn a_terminal_socket_that_breaks_is_opened_again() {
    let plane = Plane::new().await;
    let (daemon, _served, terminal) = with_worker(&plane, "exec cat").await;
    drop(terminal);
    let mut terminal = plane.terminal().await;
    terminal.send(open("ses_1", "view")).await;
    terminal.frame("terminal.ready").await;
    let status = daemon.is("open", |status| status.terminal.open).await;
    assert_eq!(status.link.sessions, 1);
}

async fn what_is_no_wish_is_said_or_passed_over() {
    let plane = Plane::new().await;
    let (_daemon, _served, mut terminal) = with_worker(&plane, "exec cat").await;
    terminal
        .send(json!({"type": "terminal.later", "session_id": "x"}))
        .await;
    terminal.send(json!("nothing")).await;
    terminal.send(input("nobody", "x")).await;
    assert_eq!(
        terminal.frame("terminal.error").await["code"],
        "session_not_found"
    );
    terminal.send(open("ses_1", "drive")).await;
    terminal.send(open("ses_1", "drive")).await;
    assert_eq!(
        terminal.frame("terminal.error").await["code"],
        "session_exists"
    );
    terminal
        .send(json!({"type": "terminal.input", "session_id": "ses_1", "data_base64": "%"}))
        .await;
    assert_eq!(
        terminal.frame("terminal.error").await["code"],
        "invalid_input"
    );
    terminal
        .send(json!({"type": "terminal.close", "session_id": "nobody"}))
        .await;
    terminal.send(input("ses_1", "still here\r")).await;
    shows(&mut terminal, "still here").await;
}

async fn beats_of_the_terminal_socket_count_once_they_are_answered() {
    let plane = Plane::new().await;
    let (daemon, _served, mut terminal) = with_worker(&plane, "exec cat").await;
    // A plane that never answers them is not held to it: its pongs are enough.
    for _ in 0..10 {
        terminal.frame("muster.terminal.beat").await;
    }
    let beat = terminal.frame("muster.terminal.beat").await;
    terminal
        .send(json!({"type": "muster.terminal.ack", "id": beat["id"]}))
        .await;
    // One that did and stops is: pongs are not enough any more.
    while terminal.next().await.is_some() {}
    let _again = plane.terminal().await;
    assert_eq!(daemon.status().await.link.sessions, 1);
}

/// Resident memory of this process, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number")
}
