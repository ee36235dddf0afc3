//! Attach: several viewers, one driver by explicit hand-over, the screen on joining, counted
//! drops, and a close that says why.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use muster_server::auth::Scope;
use muster_store::annex::AuditFilter;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

use super::{node_is, quick};
use crate::support::{Daemon, Enrolled, TestPlane, Wire, eventually};

/// A node with one worker, its terminal socket, and a second person's key.
pub(super) struct Stage {
    pub(super) plane: TestPlane,
    node: Enrolled,
    daemon: Daemon,
    worker: String,
    terminal: Wire,
    bob: String,
}

impl Stage {
    pub(super) async fn set() -> Self {
        let plane = TestPlane::with(quick).await;
        let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
        let daemon = Daemon::start(&node).await;
        node_is(&plane, "edge-1", "online").await;
        let placed = plane
            .as_person(
                "/api/v1/fleet/workers",
                &json!({"command": "bash", "name": "shell"}),
            )
            .await;
        assert_eq!(placed.status, 201, "{}", placed.json());
        let worker = placed.json()["worker"]["id"].as_str().unwrap().to_owned();
        let terminal = node.open("/v1/node/terminal/ws", &[]).await.unwrap();
        let app = &plane.running.app;
        let now = muster_wire::Timestamp::wall_clock();
        let scopes = [Scope::Operate];
        let made = app
            .auth
            .create(&*app.stores.annex, "bob", &scopes, "bob", None, now);
        let bob = made.unwrap().0.expose().to_owned();
        Self {
            plane,
            node,
            daemon,
            worker,
            terminal,
            bob,
        }
    }

    pub(super) fn path(&self) -> String {
        format!("/api/v1/fleet/workers/{}/terminal", self.worker)
    }

    pub(super) async fn attach(&self, key: &str) -> Wire {
        self.try_attach(&self.path(), Some(key)).await.unwrap()
    }

    pub(super) async fn try_attach(
        &self,
        path: &str,
        key: Option<&str>,
    ) -> Result<Wire, tungstenite::Error> {
        let key = key.map(|key| ("x-api-key", key));
        self.open(path, key.as_slice()).await
    }

    /// Attaches with these headers.
    pub(super) async fn attach_with(
        &self,
        headers: &[(&'static str, &str)],
    ) -> Result<Wire, tungstenite::Error> {
        self.open(&self.path(), headers).await
    }

    async fn open(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Wire, tungstenite::Error> {
        let url = format!("ws://{}{path}", self.plane.running.address);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        connect_async(request).await.map(|(socket, _)| Wire(socket))
    }

    /// The node opens a session and paints; the session's id and mode.
    async fn opens(&mut self, screen: &str, offset: u64) -> (String, String) {
        let open = self.terminal.hear("terminal.open").await;
        assert_eq!(open["agent"], self.worker.as_str());
        let session = open["session_id"].as_str().unwrap().to_owned();
        self.terminal
            .say(
                &json!({"type": "terminal.ready", "session_id": session, "rows": 24, "cols": 80,
                         "screen": STANDARD.encode(screen), "offset": offset}),
            )
            .await;
        (session, open["mode"].as_str().unwrap().to_owned())
    }

    async fn prints(&mut self, session: &str, chunk: &str, offset: u64) {
        self.terminal
            .say(&json!({"type": "terminal.output", "session_id": session, "chunk": chunk, "offset": offset}))
            .await;
    }
}

fn screen_of(ready: &Value) -> String {
    let bytes = STANDARD.decode(ready["screen"].as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Hears who drives until something holds.
async fn driver_when(viewer: &mut Wire, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let news = viewer.hear("terminal.driver").await;
        if holds(&news) {
            return news;
        }
    }
}

#[tokio::test]
async fn two_watch_one_drives_and_the_keyboard_is_handed_over_in_the_open() {
    let mut stage = Stage::set().await;
    let key = stage.plane.key().to_owned();
    let mut ada = stage.attach(&key).await;
    let (session, mode) = stage
        .opens("\u{1b}[2J$ \u{1b}]52;c;Y2FuYXJ5\u{7}", 100)
        .await;
    assert_eq!(mode, "view");
    let ready = ada.hear("terminal.ready").await;
    assert_eq!(screen_of(&ready), "\u{1b}[2J$ ");
    assert_eq!(
        (&ready["rows"], &ready["offset"]),
        (&json!(24), &json!(100))
    );
    let driver = driver_when(&mut ada, |_| true).await;
    assert_eq!(
        (&driver["driving"], &driver["viewers"]),
        (&json!(false), &json!(1))
    );
    // Who watches types nothing.
    let typed = json!({"type": "terminal.input", "data_base64": STANDARD.encode("ls\n")});
    ada.say(&typed).await;
    assert_eq!(ada.hear("terminal.error").await["code"], "not_driving");
    // Output goes on as text, without what would steer: cut between two frames, too.
    stage.prints(&session, "a\u{1b}]0;ti", 100).await;
    stage.prints(&session, "tle\u{7}b", 107).await;
    assert_eq!(ada.hear("terminal.output").await["chunk"], "a");
    assert_eq!(ada.hear("terminal.output").await["chunk"], "b");
    // Driving opens a session that may type; the screen is painted again.
    ada.say(&json!({"type": "terminal.drive"})).await;
    assert_eq!(
        stage.terminal.hear("terminal.close").await["session_id"],
        session.as_str()
    );
    let (session, mode) = stage.opens("$ ", 112).await;
    assert_eq!(mode, "drive");
    driver_when(&mut ada, |d| d["driving"] == true && d["driver"] == "ada").await;
    ada.say(&typed).await;
    let input = stage.terminal.hear("terminal.input").await;
    assert_eq!(
        (&input["session_id"], &input["data_base64"]),
        (&json!(session), &typed["data_base64"])
    );
    stage
        .terminal
        .say(&json!({"type": "terminal.input_ack", "session_id": session, "bytes_written": 3}))
        .await;
    assert_eq!(ada.hear("terminal.input_ack").await["bytes_written"], 3);
    ada.say(&json!({"type": "terminal.resize", "rows": 40, "cols": 100}))
        .await;
    assert_eq!(stage.terminal.hear("terminal.resize").await["rows"], 40);
    // Another person watches, asks, and takes.
    let mut bob = stage.attach(&stage.bob).await;
    stage.opens("$ ", 112).await;
    bob.hear("terminal.ready").await;
    bob.say(&json!({"type": "terminal.resize", "rows": 10, "cols": 10}))
        .await;
    bob.say(&json!({"type": "terminal.drive"})).await;
    let error = bob.hear("terminal.error").await;
    assert_eq!(error["code"], "driven_by_another");
    assert!(error["message"].as_str().unwrap().contains("ada"));
    let asked = driver_when(&mut ada, |d| {
        d["why"].as_str().is_some_and(|w| w.contains("asks"))
    })
    .await;
    assert_eq!(
        (&asked["driving"], &asked["viewers"]),
        (&json!(true), &json!(2))
    );
    bob.say(&json!({"type": "terminal.drive", "take": true}))
        .await;
    driver_when(&mut ada, |d| d["driving"] == false && d["driver"] == "bob").await;
    driver_when(&mut bob, |d| d["driving"] == true).await;
    // Both are painted anew, in their new modes.
    let mut modes = vec![stage.opens("x", 120).await.1, stage.opens("x", 120).await.1];
    modes.sort();
    assert_eq!(modes, ["drive", "view"]);
    bob.say(&json!({"type": "terminal.watch"})).await;
    driver_when(&mut ada, |d| d["driver"].is_null()).await;
    // Driving is in the audit log and in the worker's history.
    let app = &stage.plane.running.app;
    let driven = eventually("who drove is in the audit log", || async {
        let audit = app
            .blocking(|stores| stores.annex.audit(&AuditFilter::newest(100)))
            .await
            .unwrap();
        let rows = audit.into_iter().rev().map(|(_, row)| row);
        let driven: Vec<(String, String)> = rows
            .filter(|row| row.object == stage.worker && row.action.contains("driv"))
            .map(|row| (row.action, row.principal))
            .collect();
        (driven.len() >= 3).then_some(driven)
    })
    .await;
    let driven: Vec<(&str, &str)> = driven
        .iter()
        .map(|(action, principal)| (action.as_str(), principal.as_str()))
        .collect();
    assert_eq!(
        driven,
        [
            ("worker.driven", "ada"),
            ("worker.driver_taken", "bob"),
            ("worker.undriven", "bob")
        ]
    );
    let path = format!("/api/v1/fleet/workers/{}/history", stage.worker);
    eventually("the worker's history has three lines of it", || async {
        let history = stage.plane.client.get(&path).await.json();
        let lines = history["history"].as_array().unwrap().iter();
        let told = lines.filter(|line| line["kind"] == "driver").count();
        (told == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_close_says_why_and_a_node_that_was_away_paints_again() {
    let mut stage = Stage::set().await;
    let key = stage.plane.key().to_owned();
    let mut viewer = stage.attach(&key).await;
    stage.opens("one", 0).await;
    assert_eq!(screen_of(&viewer.hear("terminal.ready").await), "one");
    // The node's terminal socket breaks and comes back.
    stage.terminal = stage.node.open("/v1/node/terminal/ws", &[]).await.unwrap();
    assert_eq!(viewer.hear("terminal.error").await["code"], "node_away");
    let (session, _) = stage.opens("two", 7).await;
    assert_eq!(screen_of(&viewer.hear("terminal.ready").await), "two");
    // Beats on this socket are answered.
    stage
        .terminal
        .say(&json!({"type": "muster.terminal.beat", "id": "9"}))
        .await;
    assert_eq!(stage.terminal.hear("muster.terminal.ack").await["id"], "9");
    // The worker exits.
    stage
        .terminal
        .say(&json!({"type": "terminal.closed", "session_id": session,
                     "code": "agent_exited", "message": "it exited with 3"}))
        .await;
    let closed = viewer.hear("terminal.closed").await;
    assert_eq!(
        (&closed["code"], &closed["message"]),
        (&json!("agent_exited"), &json!("it exited with 3"))
    );
    assert_eq!(viewer.closed().await.unwrap().0, 1000);
    assert!(!stage.daemon.script.workers.lock().is_empty());
}

#[tokio::test]
async fn a_ticket_opens_one_terminal_once_and_nothing_opens_it_without() {
    let mut stage = Stage::set().await;
    let refused = |end: Result<Wire, tungstenite::Error>| match end {
        Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
        Ok(_) => 101,
    };
    let path = stage.path();
    assert_eq!(refused(stage.try_attach(&path, None).await), 401);
    let ticket = stage
        .plane
        .as_person(&format!("{path}/ticket"), &json!({}))
        .await;
    assert_eq!(ticket.status, 200, "{}", ticket.json());
    let url = ticket.json()["url"].as_str().unwrap().to_owned();
    let mut viewer = stage.try_attach(&url, None).await.unwrap();
    stage.opens("hello", 0).await;
    assert_eq!(screen_of(&viewer.hear("terminal.ready").await), "hello");
    assert_eq!(refused(stage.try_attach(&url, None).await), 401);
    let wrong = format!("{path}?ticket=att_00");
    assert_eq!(refused(stage.try_attach(&wrong, None).await), 401);
    let answer = stage
        .plane
        .client
        .post(&format!("{path}/ticket"), &json!({}))
        .await;
    answer.is_problem(401, "unauthenticated");
    let key = stage.plane.key().to_owned();
    let nobody = "/api/v1/fleet/workers/wrk_nobody/terminal";
    assert_eq!(refused(stage.try_attach(nobody, Some(&key)).await), 404);
    let release = format!("/api/v1/fleet/workers/{}/release", stage.worker);
    assert_eq!(
        stage.plane.as_person(&release, &json!({})).await.status,
        200
    );
    assert_eq!(refused(stage.try_attach(&path, Some(&key)).await), 409);
}

/// The screen of a worker that runs is its last output.
#[tokio::test]
async fn the_last_output_of_one_that_runs_is_its_screen() {
    let mut stage = Stage::set().await;
    let path = format!("/api/v1/fleet/workers/{}/output", stage.worker);
    let (client, key) = (stage.plane.client.clone(), stage.plane.key().to_owned());
    let asked = tokio::spawn(async move {
        let headers = [("x-api-key", key.as_str()), ("accept", "application/json")];
        client.send(Method::GET, &path, &headers, "").await
    });
    stage
        .opens(
            "\u{1b}[2J\u{1b}[1;1Hfirst\u{1b}[2;1Hsecond\u{1b}]2;t\u{7}",
            50,
        )
        .await;
    let answer = asked.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["text"], "first\nsecond");
    assert_eq!(answer.json()["source"], "screen");
    stage.terminal.hear("terminal.close").await;
}

/// A flood with a slow viewer: who reads gets on, who does not loses output, which is counted,
/// and both have their control frames; beats on the control socket are answered at once.
#[tokio::test]
async fn a_slow_viewer_loses_output_never_control_and_holds_up_nobody() {
    let mut stage = Stage::set().await;
    let key = stage.plane.key().to_owned();
    let slow = stage.attach(&key).await;
    let (slow_session, _) = stage.opens("", 0).await;
    let mut quick = stage.attach(&stage.bob).await;
    let (quick_session, _) = stage.opens("", 0).await;
    let piece = "x".repeat(16 * 1024);
    let beats = stage
        .daemon
        .script
        .beats
        .load(std::sync::atomic::Ordering::Relaxed);
    let began = Instant::now();
    let mut read = 0usize;
    let mut offset = 0u64;
    for _ in 0..512 {
        for session in [&slow_session, &quick_session] {
            let frame = json!({"type": "terminal.output", "session_id": session, "chunk": piece, "offset": offset});
            use futures_util::SinkExt as _;
            tokio::select! {
                biased;
                sent = stage.terminal.0.send(Message::text(frame.to_string())) => sent.unwrap(),
                () = tokio::time::sleep(Duration::from_secs(20)) => panic!("the plane does not read"),
            }
        }
        offset += piece.len() as u64;
        while let Ok(Ok(news)) = tokio::time::timeout(Duration::ZERO, quick.next()).await {
            read += news["chunk"].as_str().unwrap_or_default().len();
        }
    }
    // Control frames of the slow one's session still find their place.
    stage
        .terminal
        .say(&json!({"type": "terminal.closed", "session_id": slow_session, "code": "agent_exited", "message": "done"}))
        .await;
    let took = began.elapsed();
    let mut slow = slow;
    let (mut got, mut dropped) = (0u64, 0u64);
    loop {
        let news = slow.next().await.unwrap();
        match news["type"].as_str().unwrap() {
            "terminal.output" => {
                got += news["chunk"].as_str().unwrap().len() as u64;
                dropped += news["dropped"].as_u64().unwrap_or(0);
            }
            "terminal.closed" => {
                assert_eq!(news["code"], "agent_exited");
                break;
            }
            _ => {}
        }
    }
    assert!(got < offset, "{got} of {offset}");
    assert_eq!(got + dropped, offset, "what was lost is counted");
    eprintln!(
        "{offset} bytes twice in {took:?}: quick read {read}, slow {got}, told of {dropped} dropped"
    );
    let beats = stage
        .daemon
        .script
        .beats
        .load(std::sync::atomic::Ordering::Relaxed)
        - beats;
    assert!(beats > 0);
    node_is(&stage.plane, "edge-1", "online").await;
}

/// The plane knows of an end before the terminal's node tells it, or without it ever doing so: the
/// viewers are told, with the exit.
#[tokio::test]
async fn viewers_are_told_of_an_exit_whoever_tells_it() {
    let mut stage = Stage::set().await;
    let key = stage.plane.key().to_owned();
    let mut viewer = stage.attach(&key).await;
    stage.opens("", 0).await;
    viewer.hear("terminal.ready").await;
    stage.daemon.script.workers.lock().remove(&stage.worker);
    let exited = json!({"v": 1, "type": "muster.exited", "id": "x1", "worker_id": stage.worker,
                        "name": "shell", "restarts": 0, "exit": {"code": 7, "output": ""}});
    stage.daemon.say.send(exited).unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), viewer.hear("terminal.closed")).await;
    let closed = told.expect("nobody told the viewer");
    assert_eq!(closed["code"], "agent_exited");
    let message = closed["message"].as_str().unwrap();
    assert!(message.contains("exited with 7"), "{message}");
}

/// The limit of typed input is exact.
#[tokio::test]
async fn typed_input_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    let mut stage = Stage::set().await;
    let key = stage.plane.key().to_owned();
    let mut viewer = stage.attach(&key).await;
    stage.opens("", 0).await;
    viewer.say(&json!({"type": "terminal.drive"})).await;
    stage.opens("", 0).await;
    driver_when(&mut viewer, |news| news["driving"] == true).await;
    for (bytes, taken) in [(64 * 1024 + 1, false), (64 * 1024, true)] {
        let data = STANDARD.encode("x".repeat(bytes));
        viewer
            .say(&json!({"type": "terminal.input", "data_base64": data}))
            .await;
        if taken {
            let input = stage.terminal.hear("terminal.input").await;
            assert_eq!(input["data_base64"], data.as_str());
        } else {
            let error = viewer.hear("terminal.error").await;
            assert_eq!(error["code"], "invalid_input", "{bytes}");
        }
    }
}
