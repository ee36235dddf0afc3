//! The control socket: who may open it, deadlines, fencing, garbage, floods, and the two
//! incidents that it is there for.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{self, Message};

use super::{node_is, quick};
use crate::support::{Daemon, Enrolled, TestPlane, eventually};

fn beat(seq: u64, count: u32) -> Value {
    json!({"v": 1, "type": "muster.beat", "id": format!("b{seq}"), "seq": seq, "count": count,
           "digest": muster_wire::fleet::frame::roster_digest([])})
}

#[tokio::test]
async fn the_door_takes_a_node_s_token_and_nothing_else() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let status = |token: &str| {
        let node = Enrolled {
            token: token.to_owned(),
            ..node.clone()
        };
        async move {
            match node.open("/v1/node/ws", &[]).await {
                Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
                Err(other) => panic!("{other}"),
                Ok(_) => 101,
            }
        }
    };
    assert_eq!(status("nonsense").await, 401);
    assert_eq!(status(plane.key()).await, 403);
    assert_eq!(status(&node.token).await, 101);
    // Its token reaches nothing but its sockets.
    let headers = [("x-api-key", node.token.as_str())];
    let answer = plane
        .client
        .send(http::Method::GET, "/api/v1/fleet/nodes", &headers, "")
        .await;
    answer.is_problem(403, "permission_denied");
    let answer = plane.client.get("/v1/node/ws").await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_registration_is_answered_with_every_capability_and_the_beat() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    let register = node.register("e1");
    wire.say(&register).await;
    let reply = wire.hear("reply").await;
    assert_eq!(reply["id"], register["id"]);
    let names: Vec<&str> = reply["data"]["accepted_capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["accepted"] == true)
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["muster:link-v1", "spawn", "release", "restart"]);
    assert_eq!(reply["data"]["beat_ms"], 200);
    wire.say(&beat(1, 0)).await;
    assert_eq!(wire.hear("reply").await["id"], "b1");
    wire.say(
        &json!({"v": 1, "type": "muster.inventory", "id": "i1", "workers": [
        {"worker_id": "wrk_00000000000000000000000BEF", "name": "old", "state": "running", "pid": 9}]}),
    )
    .await;
    let reply = wire.hear("reply").await;
    assert_eq!(
        reply["data"]["verdicts"][0]["verdict"], "adopted",
        "{reply}"
    );
    let worker = plane
        .client
        .get("/api/v1/fleet/workers/wrk_00000000000000000000000BEF")
        .await
        .json();
    assert_eq!(
        (&worker["adopted"], &worker["state"]),
        (&json!(true), &json!("running"))
    );
    // Nobody here placed it.
    assert_eq!(
        (&worker["principal"], &worker["principal_reason"]),
        (&Value::Null, &json!("adopted"))
    );
}

#[tokio::test]
async fn who_is_not_who_their_token_says_is_refused() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    let mut register = node.register("e1");
    register["node_id"] = json!("node_other");
    wire.say(&register).await;
    let error = wire.hear("error").await;
    assert_eq!(
        (&error["code"], &error["id"]),
        (&json!("node_id_mismatch"), &register["id"])
    );
    assert_eq!(wire.closed().await.unwrap().0, 1008);
    // A retired one is told so.
    plane
        .as_person("/api/v1/fleet/nodes/edge-1/retire", &json!({}))
        .await;
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    wire.say(&node.register("e1")).await;
    assert_eq!(wire.hear("error").await["code"], "node_retired");
    wire.closed().await;
}

#[tokio::test]
async fn garbage_is_answered_with_its_id_and_the_link_survives() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.connect().await;
    for (text, id) in [
        (
            r#"{"v":1,"type":"muster.beat","id":"x1","seq":"canary"}"#,
            Some("x1"),
        ),
        (
            r#"{"v":1,"type":"muster.inventory","id":"x2","workers":3}"#,
            Some("x2"),
        ),
        ("nonsense", None),
        ("[]", None),
        ("{}", None),
        ("", None),
    ] {
        wire.0.send(Message::text(text)).await.unwrap();
        let error = wire.hear("error").await;
        assert_eq!(error["code"], "invalid_message", "{text}");
        assert!(!error.to_string().contains("canary"));
        if let Some(id) = id {
            assert_eq!(error["id"], id);
        }
    }
    wire.0.send(Message::binary(vec![0u8; 8])).await.unwrap();
    assert_eq!(wire.hear("error").await["code"], "invalid_message");
    // What a later version says is passed over.
    wire.say(&json!({"v": 1, "type": "agent.recover", "name": "x"}))
        .await;
    wire.say(&beat(1, 0)).await;
    assert_eq!(wire.hear("reply").await["id"], "b1");
    // A frame beyond the bound ends the link, and only it.
    let huge = format!(r#"{{"v":1,"type":"x","pad":"{}"}}"#, "x".repeat(2 << 20));
    let _ = wire.0.send(Message::text(huge)).await;
    wire.closed().await;
    node.connect().await;
}

/// The newest valid link wins, the older one is closed `superseded`, and what it still says is
/// counted and dropped.
#[tokio::test]
async fn a_newer_link_fences_the_older_one() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut old = node.connect().await;
    let mut new = node.connect().await;
    assert_eq!(old.closed().await, Some((1000, "superseded".into())));
    new.say(&beat(1, 0)).await;
    assert_eq!(new.hear("reply").await["id"], "b1");
    let shown = plane.client.get("/api/v1/fleet/nodes/edge-1").await.json();
    assert_eq!(shown["disconnected"], Value::Null, "{shown}");
    assert!(shown["link"].as_u64().unwrap() >= 2);
}

/// A node that floods is not read faster than the plane likes, and others notice nothing.
#[tokio::test]
async fn a_flood_of_one_node_is_held_up_and_another_is_answered_at_once() {
    let plane = TestPlane::with(quick).await;
    let loud = Enrolled::new(&plane, "loud", &[], 4).await.connect().await;
    let quiet = Enrolled::new(&plane, "quiet", &[], 4).await;
    let flood = tokio::spawn(async move {
        let mut wire = loud;
        let mut sent = 0u64;
        let frame = beat(1, 0).to_string();
        // Never reads.
        while wire.0.feed(Message::text(frame.clone())).await.is_ok() {
            sent += 1;
        }
        sent
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut wire = quiet.connect().await;
    for seq in 1..=20 {
        let began = Instant::now();
        wire.say(&beat(seq, 0)).await;
        wire.hear("reply").await;
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
    }
    let depths = plane.running.app.driver.vitals().depths;
    assert!(depths.iter().sum::<usize>() < 2_000, "{depths:?}");
    flood.abort();
}

/// Incident (a): a link that lives only as a socket. It is noticed, the count is null with a
/// reason and what was last known, a placement says node unreachable with the evidence, and all
/// is well once the node speaks again.
#[tokio::test]
async fn a_link_that_lives_only_as_a_socket_is_noticed_and_nothing_is_claimed_of_its_workers() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "mini", &[], 8).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "mini", "online").await;
    for _ in 0..5 {
        let placed = plane
            .as_person("/api/v1/fleet/workers", &json!({"command": "cat"}))
            .await;
        assert_eq!(placed.status, 201, "{}", placed.json());
    }
    let told = daemon.script.beats.load(Ordering::Relaxed) + 3;
    eventually("it has told of five", || async {
        (daemon.script.beats.load(Ordering::Relaxed) > told).then_some(())
    })
    .await;
    daemon.script.silent.store(true, Ordering::Relaxed);
    let suspect = node_is(&plane, "mini", "suspect").await;
    assert_eq!(suspect["workers"], 5, "{suspect}");
    let fleet = plane.client.get("/api/v1/fleet").await.json();
    let capacity = &fleet["capacity"];
    assert_eq!(capacity["used"], Value::Null, "nobody knows: {fleet}");
    let reason = capacity["used_unknown"].as_str().unwrap();
    assert!(reason.starts_with("no node is online; 1 "), "{reason}");
    assert_eq!(capacity["used_last"]["value"], 5, "{fleet}");
    let overview = plane.client.get("/api/v1/overview").await.json();
    assert_eq!(overview["slots"]["free"], 0, "of none: {overview}");
    let shown = node_is(&plane, "mini", "unreachable").await;
    assert_eq!(shown["workers"], Value::Null, "{shown}");
    assert!(shown["workers_reason"].is_string(), "{shown}");
    assert_eq!(shown["workers_last"]["value"], 5);
    assert_eq!(shown["worker_names"].as_array().unwrap().len(), 5);
    let list = plane.client.get("/api/v1/fleet/nodes").await.json();
    assert_eq!(list["nodes"][0]["workers"], Value::Null);
    let workers = plane.client.get("/api/v1/fleet/workers").await.json();
    assert_eq!(workers["count"], 5);
    for worker in workers["workers"].as_array().unwrap() {
        assert_eq!(worker["state"], "unknown", "{worker}");
    }
    let refused = plane
        .as_person(
            "/api/v1/fleet/workers",
            &json!({"command": "cat", "node": "mini"}),
        )
        .await;
    let refused = refused.is_problem(503, "node_unreachable");
    assert!(
        refused["message"].as_str().unwrap().contains("ago"),
        "{refused}"
    );
    let summary = plane.client.get("/api/v1/fleet").await.json();
    assert_eq!(summary["workers"]["unknown"], 5, "{summary}");
    assert_eq!(summary["capacity"]["unknown"], 8, "{summary}");
    let history = plane
        .client
        .get("/api/v1/fleet/nodes/mini/history")
        .await
        .json();
    let told: Vec<&str> = history["history"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["to"].as_str())
        .collect();
    assert!(
        told.contains(&"suspect") && told.contains(&"unreachable"),
        "{history}"
    );
    // It speaks again, on a connection of its own: nothing was started anew.
    daemon.script.silent.store(false, Ordering::Relaxed);
    let again = daemon.again().await;
    node_is(&plane, "mini", "online").await;
    eventually("all are confirmed", || async {
        let workers = plane
            .client
            .get("/api/v1/fleet/workers?state=running")
            .await;
        (workers.json()["count"] == 5).then_some(())
    })
    .await;
    assert_eq!(again.script.started.lock().len(), 5);
    assert_eq!(again.script.released.lock().len(), 0);
}

/// Incident (b): one missed beat sweeps nobody; twenty believed against eleven reported is a
/// drift with nine names, and those nine end `unobserved`, never silently.
#[tokio::test]
async fn a_missed_beat_sweeps_nobody_and_a_difference_is_told_with_names() {
    let plane = TestPlane::with(|config| {
        quick(config);
        config.fleet.heartbeat = muster_server::config::Span(Duration::from_millis(300));
    })
    .await;
    let node = Enrolled::new(&plane, "mini", &[], 0).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "mini", "online").await;
    for n in 0..20 {
        let body = json!({"command": "cat", "name": format!("w{n:02}")});
        let placed = plane.as_person("/api/v1/fleet/workers", &body).await;
        assert_eq!(placed.status, 201, "{}", placed.json());
    }
    daemon.script.silent.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(450)).await;
    daemon.script.silent.store(false, Ordering::Relaxed);
    let workers = plane
        .client
        .get("/api/v1/fleet/workers?state=running")
        .await;
    assert_eq!(workers.json()["count"], 20);
    let gone: Vec<String> = {
        let mut held = daemon.script.workers.lock();
        let gone: Vec<String> = held
            .iter()
            .filter(|(_, name)| name.as_str() >= "w11")
            .map(|(id, _)| id.clone())
            .collect();
        held.retain(|id, _| !gone.contains(id));
        gone
    };
    assert_eq!(gone.len(), 9);
    let drift = eventually("the drift is told", || async {
        let drift = plane.client.get("/api/v1/fleet/drift").await.json();
        (drift["count"] == 1).then_some(drift)
    })
    .await;
    let drift = &drift["drift"][0];
    assert_eq!(
        (&drift["believed"], &drift["claimed"]),
        (&json!(20), &json!(11)),
        "{drift}"
    );
    let still = plane
        .client
        .get("/api/v1/fleet/workers?state=running")
        .await;
    assert_eq!(still.json()["count"], 20);
    for _ in 0..2 {
        daemon.say.send(json!("inventory")).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let ended = eventually("nine have ended", || async {
        let ended = plane
            .client
            .get("/api/v1/fleet/workers?state=exited&limit=50")
            .await
            .json();
        (ended["count"] == 9).then_some(ended)
    })
    .await;
    for worker in ended["workers"].as_array().unwrap() {
        assert_eq!(worker["ended_how"], "unobserved", "{worker}");
        assert!(worker["name"].as_str().unwrap() >= "w11");
    }
    let left = plane
        .client
        .get("/api/v1/fleet/workers?state=running")
        .await;
    assert_eq!(left.json()["count"], 11);
    let lines = plane
        .client
        .get("/api/v1/fleet/nodes/mini/history")
        .await
        .json();
    assert!(
        lines["history"]
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line["kind"] == "drift"),
        "{lines}"
    );
}

/// A peer that accepts and never reads: it is sent away within the write bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_reads_is_sent_away_within_the_write_bound() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "deaf", &[], 0).await;
    let wire = node.connect().await;
    let began = Instant::now();
    // It tells its workers again and again and reads no answer: they fill the connection.
    let (mut sink, unread) = futures_util::StreamExt::split(wire.0);
    let telling = tokio::spawn(async move {
        let workers: Vec<Value> = (0..4_000)
            .map(|n| json!({"worker_id": format!("wrk_{n:026}"), "name": format!("w{n}"), "state": "running"}))
            .collect();
        for n in 0..200 {
            let frame = json!({"v": 1, "type": "muster.inventory", "id": format!("i{n}"), "workers": workers});
            if sink.send(Message::text(frame.to_string())).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let shown = loop {
        let shown = plane.client.get("/api/v1/fleet/nodes/deaf").await.json();
        let why = shown["disconnected"]["why"].as_str().unwrap_or_default();
        if why.contains("took nothing") {
            break shown;
        }
        assert!(
            began.elapsed() < Duration::from_secs(90),
            "{}",
            shown["disconnected"]
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(
        began.elapsed() >= Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(shown["link"], Value::Null, "{}", shown["link"]);
    telling.abort();
    drop(unread);
}

/// Who does not say who it is within ten seconds is sent away.
#[tokio::test]
async fn who_does_not_register_is_sent_away() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "mute", &[], 0).await;
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    wire.say(&beat(1, 0)).await;
    assert_eq!(wire.hear("error").await["code"], "not_registered");
    let began = Instant::now();
    let (code, why) = wire.closed().await.unwrap();
    assert_eq!(code, 1008);
    assert!(why.contains("node.register"), "{why}");
    assert!(
        began.elapsed() >= Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
}

/// A plane that stops and comes back: all workers are confirmed again, none is swept, none is
/// started twice, and what was sealed is opened again.
#[tokio::test]
async fn after_a_restart_of_the_plane_all_are_confirmed_and_none_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite_with(directory.path(), quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 1).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let workers = "/api/v1/fleet/workers";
    let body = json!({"command": "cat", "env": {"TOKEN": "canary-7f3"}, "name": "first"});
    assert_eq!(plane.as_person(workers, &body).await.status, 201);
    let body =
        json!({"command": "cat", "env": {"TOKEN": "canary-7f3"}, "name": "second", "queue": true});
    assert_eq!(plane.as_person(workers, &body).await.status, 202);
    plane.running.stop().await;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(10).any(|window| window == b"canary-7f3");
        assert!(!found, "a secret lies open in {}", path.display());
    }
    let plane = TestPlane::sqlite_with(directory.path(), quick).await;
    let shown = plane
        .client
        .get(&format!("{workers}?name=first"))
        .await
        .json();
    assert_eq!(shown["count"], 1, "{shown}");
    assert_ne!(shown["workers"][0]["state"], "exited");
    let again = Daemon::with(&node.at(&plane), daemon.script.clone()).await;
    node_is(&plane, "edge-1", "online").await;
    super::worker_when(&plane, "first", "it is confirmed", |w| {
        w["state"] == "running"
    })
    .await;
    assert_eq!(again.script.started.lock().len(), 1);
    // The placement that waits was kept, and its spec is opened once there is room.
    let release = format!("{workers}/first/release");
    assert_eq!(plane.as_person(&release, &json!({})).await.status, 200);
    super::worker_when(&plane, "second", "it is placed", |w| {
        w["state"] == "running"
    })
    .await;
    let started = again.script.started.lock()[1].clone();
    assert_eq!(started["spec"]["env"]["TOKEN"], "canary-7f3");
}

/// What a scrape says of the fleet.
#[tokio::test]
async fn the_fleet_is_measured() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let placed = plane
        .as_person("/api/v1/fleet/workers", &json!({"command": "cat"}))
        .await;
    assert_eq!(placed.status, 201);
    let text = plane.client.get("/metrics").await;
    let text = String::from_utf8(text.bytes.to_vec()).unwrap();
    for line in [
        r#"muster_nodes{state="online"} 1"#,
        r#"muster_workers{state="running"} 1"#,
        "muster_fleet_reachable_share 1",
        "muster_fleet_drifting_nodes 0",
        "muster_node_links 1",
        "muster_node_links_opened_total 1",
        "muster_node_late_frames_total 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    drop(daemon);
}

/// Someone who never says who they are is sent away; and a shutdown closes links with a word.
#[tokio::test]
async fn a_shutdown_says_goodbye_to_nodes() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let ended = tokio::spawn(daemon.ended());
    plane.running.stop().await;
    assert_eq!(ended.await.unwrap().unwrap().0, 1001);
}

/// A name is its worker's: an id that another node made up stands before nobody, and where
/// several living ones have the name, the answer is 409 with their ids.
#[tokio::test]
async fn a_name_is_never_taken_by_an_id_and_several_of_one_name_are_told() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let _daemon = Daemon::start(&node).await;
    node_is(&plane, "edge-1", "online").await;
    let body = json!({"command": "sleep", "name": "coder-1", "node": "edge-1"});
    let placed = plane.as_person("/api/v1/fleet/workers", &body).await;
    assert_eq!(placed.status, 201, "{}", placed.json());
    let id = placed.json()["worker"]["id"].clone();
    let other = Enrolled::new(&plane, "edge-2", &[], 4).await;
    let mut wire = other.open("/v1/node/ws", &[]).await.unwrap();
    wire.say(&other.register("e1")).await;
    wire.hear("reply").await;
    let second = "wrk_00000000000000000000000002";
    let tell = |id: &str, of: &str| {
        json!({"v": 1, "type": "muster.inventory", "id": of, "workers": [
            {"worker_id": id, "name": "coder-1", "state": "running", "pid": 9}]})
    };
    wire.say(&tell("coder-1", "i1")).await;
    let reply = wire.hear("reply").await;
    assert_eq!(reply["data"]["verdicts"][0]["verdict"], "refused");
    let found = plane.client.get("/api/v1/fleet/workers/coder-1").await;
    assert_eq!(found.json()["id"], id);
    wire.say(&tell(second, "i2")).await;
    wire.hear("reply").await;
    let found = plane.client.get("/api/v1/fleet/workers/coder-1").await;
    assert_eq!(found.status, 409, "{}", found.json());
    let ids = found.json()["details"]["workers"].clone();
    assert_eq!(ids, json!([second, id]));
    let path = "/api/v1/fleet/workers/coder-1/release";
    let released = plane.as_person(path, &json!({})).await;
    assert_eq!(
        (released.status, &released.json()["details"]["workers"]),
        (http::StatusCode::CONFLICT, &ids)
    );
}
