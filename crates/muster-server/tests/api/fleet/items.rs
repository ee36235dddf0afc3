//! What a node says is taken item by item, cleaned, and only where the plane minted the id; what
//! cannot be taken is said in words, and the link goes on.

use http::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{node_is, quick};
use crate::support::{Enrolled, TestPlane, Wire, eventually};

fn item(id: &str, name: &str) -> Value {
    json!({"worker_id": id, "name": name, "state": "running"})
}

#[tokio::test]
async fn one_bad_item_of_an_inventory_is_refused_and_the_rest_counts() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.connect().await;
    let good = muster_wire::mint("wrk");
    let long = "x".repeat(10_000);
    wire.say(
        &json!({"v": 1, "type": "muster.inventory", "id": "i1", "workers": [
            {"worker_id": "bogus", "name": "a", "state": "bogus"},
            {"worker_id": "negative", "name": "a", "state": "running", "pid": -1},
            {"worker_id": "nameless", "state": "running"},
            7, {"name": "no id", "state": "running"},
            item("", "a"), item("a\u{1b}[2J", "a"), item(&long, "a"),
            item(&good, "good"),
        ]}),
    )
    .await;
    let reply = wire.hear("reply").await;
    assert_eq!(reply["id"], "i1");
    let verdicts = reply["data"]["verdicts"].as_array().unwrap();
    let verdict = |id: &str| {
        let found = verdicts.iter().find(|v| v["worker_id"] == id);
        found.unwrap_or_else(|| panic!("{id:?} has no verdict: {reply}"))["verdict"].clone()
    };
    for id in [
        "bogus",
        "negative",
        "nameless",
        "",
        "a\u{1b}[2J",
        &long[..256],
    ] {
        assert_eq!(verdict(id), "refused");
    }
    assert_eq!(verdict(&good), "adopted");
}

#[tokio::test]
async fn what_a_node_says_of_itself_and_its_workers_is_cleaned() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    let mut register = node.register("e1");
    register["tags"] = json!(["gpu\u{1b}]52;c;eA==\u{7}", "\u{0}", "x".repeat(5_000)]);
    register["version"] = json!("1\u{1b}[31m");
    register["capabilities"][0]["metadata"]["host"] = json!("box\u{9b}");
    wire.say(&register).await;
    assert_eq!(wire.hear("reply").await["ok"], true);
    let (one, two) = (muster_wire::mint("wrk"), muster_wire::mint("wrk"));
    wire.say(
        &json!({"v": 1, "type": "muster.inventory", "id": "i1", "workers": [
        {"worker_id": one, "name": "a\u{1b}[2Jb\u{0}", "state": "running", "started_at": i64::MIN},
        {"worker_id": two, "name": "\u{0}", "state": "running", "started_at": i64::MAX}]}),
    )
    .await;
    wire.hear("reply").await;
    for load in [json!(-5), json!(1e308)] {
        wire.say(
            &json!({"v": 1, "type": "muster.beat", "id": "b", "seq": 1, "count": 2,
                         "digest": "", "load": load}),
        )
        .await;
        wire.hear("reply").await;
    }
    let shown = node_is(&plane, "edge-1", "online").await;
    assert_eq!(shown["labels"], json!(["gpu]52;c;eA==", "x".repeat(128)]));
    assert!(!shown.to_string().contains("\\u00"), "{shown}");
    let load = shown["load"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&load), "{load}");
    for (id, name) in [(&one, "a[2Jb"), (&two, two.as_str())] {
        let path = format!("/api/v1/fleet/workers/{id}");
        let worker = plane.client.get(&path).await.json();
        assert_eq!(worker["name"], name);
        assert_eq!(worker["started_at"], Value::Null, "{worker}");
    }
}

/// A frame over the limit is answered with a close that says so, on every socket.
#[tokio::test]
async fn a_frame_that_is_too_large_is_closed_with_1009() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let control = node.connect().await;
    let terminal = node.open("/v1/node/terminal/ws", &[]).await.unwrap();
    for mut wire in [control, terminal] {
        use futures_util::SinkExt as _;
        let text = "x".repeat(1024 * 1024 + 1);
        wire.0.send(Message::text(text)).await.unwrap();
        let (code, why) = wire.closed().await.expect("it was reset");
        assert_eq!(
            (code, why.as_str()),
            (1009, "a frame here has at most 1024 KiB")
        );
    }
}

/// What is wrong with a frame is said, and no place that there is not.
#[tokio::test]
async fn an_unreadable_frame_is_told_what_is_wrong_with_it() {
    let plane = TestPlane::with(quick).await;
    let node = Enrolled::new(&plane, "edge-1", &[], 4).await;
    let mut wire = node.connect().await;
    for text in [
        r#"{"v":1,"type":"muster.beat","id":"b","seq":"x","count":1,"digest":""}"#,
        r#"{"v":1,"type":"muster.beat","id":"b"}"#,
    ] {
        use futures_util::SinkExt as _;
        wire.0.send(Message::text(text)).await.unwrap();
        let message = wire.hear("error").await["message"].to_string();
        assert!(message.contains("field"), "{message}");
        assert!(!message.contains("line 0"), "{message}");
    }
}

struct Broker {
    id: String,
    wire: Wire,
}

/// A broker's node with a link, enrolled with a workspace key.
async fn broker(plane: &TestPlane, key: &str, name: &str) -> Broker {
    let bearer = format!("Bearer {key}");
    let answer = plane
        .client
        .post_with(
            "/v1/nodes",
            &[("authorization", &bearer)],
            &json!({"node_id": name, "name": name, "max_agents": 4, "tags": ["a\u{1b}b"]}),
        )
        .await;
    assert_eq!(answer.status, 201, "{}", answer.json());
    assert_eq!(answer.json()["data"]["tags"], json!(["ab"]));
    let node = Enrolled {
        id: name.into(),
        name: name.into(),
        token: answer.json()["data"]["token"].as_str().unwrap().to_owned(),
        address: plane.running.address.to_string(),
        labels: Vec::new(),
        actions: &[],
        max: 4,
    };
    let mut wire = node.open("/v1/node/ws", &[]).await.unwrap();
    wire.say(
        &json!({"v": 1, "type": "node.register", "id": "r1", "name": name,
                     "node_id": name, "capabilities": [], "max_agents": 4}),
    )
    .await;
    assert_eq!(wire.hear("reply").await["ok"], true);
    Broker { id: node.id, wire }
}

/// A broker's inventory counts for ids that the plane minted for that node, and for no other: not
/// for one that it made up, nor for another broker's, nor for a start that nobody asked it for.
#[tokio::test]
async fn a_broker_adopts_only_ids_that_the_plane_minted_for_it() {
    let plane = TestPlane::with(quick).await;
    let app = &plane.running.app;
    let scopes = [muster_server::auth::Scope::Relay];
    let now = muster_wire::Timestamp::wall_clock();
    let made = app
        .auth
        .create(&*app.stores.annex, "rk", &scopes, "relay_1", None, now);
    let key = made.unwrap().0.expose().to_owned();
    let mut one = broker(&plane, &key, "broker-1").await;
    let mut two = broker(&plane, &key, "broker-2").await;
    let invented = muster_wire::mint("wrk");
    let mut ids = Vec::new();
    for (broker, name) in [(&mut one, "writer"), (&mut two, "reader")] {
        broker
            .wire
            .say(&json!({"v": 1, "type": "agent.register", "id": "a1", "name": name}))
            .await;
        let reply = broker.wire.hear("reply").await;
        ids.push(reply["data"]["agent_id"].as_str().unwrap().to_owned());
    }
    // Another's start is no way to an id.
    one.wire
        .say(
            &json!({"v": 1, "type": "agent.register", "id": "a2", "name": "thief",
                     "invocation_id": format!("start:{invented}")}),
        )
        .await;
    let reply = one.wire.hear("reply").await;
    let thief = reply["data"]["agent_id"].as_str().unwrap().to_owned();
    assert_ne!(thief, invented);

    one.wire
        .say(
            &json!({"v": 1, "type": "inventory.sync", "id": "i1", "agents": [
            {"agent_id": ids[0], "name": "writer"},
            {"agent_id": thief, "name": "thief"},
            {"agent_id": ids[1], "name": "reader"},
            {"agent_id": invented, "name": "victim"},
            {"agent_id": "reader", "name": "x"},
            {"name": "no id"}]}),
        )
        .await;
    assert_eq!(one.wire.hear("reply").await["ok"], true);
    let list = || async {
        let path = "/api/v1/fleet/workers?limit=100";
        let answer = plane.client.get(path).await.json();
        answer["workers"].as_array().unwrap().clone()
    };
    eventually("its own is there", || async {
        list()
            .await
            .iter()
            .any(|w| w["id"] == ids[0].as_str())
            .then_some(())
    })
    .await;
    for worker in list().await {
        let own = [ids[0].as_str(), thief.as_str()];
        assert!(own.contains(&worker["id"].as_str().unwrap()), "{worker}");
        assert_eq!(worker["node"], one.id.as_str());
    }
    // What it gives back that was never its own ends nothing.
    one.wire
        .say(&json!({"v": 1, "type": "agent.deregister", "id": "d1", "agent_id": ids[1]}))
        .await;
    one.wire.hear("reply").await;

    // And Relay's own list agrees with the count that it shows.
    let headers = [("authorization", format!("Bearer {key}"))];
    let headers = [(headers[0].0, headers[0].1.as_str())];
    let node = plane
        .client
        .send(Method::GET, "/v1/nodes/broker-1", &headers, "")
        .await
        .json();
    let agents = plane
        .client
        .send(Method::GET, "/v1/nodes/broker-1/agents", &headers, "")
        .await
        .json();
    let names: Vec<&Value> = agents["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["agent_name"])
        .collect();
    assert_eq!(
        node["data"]["active_agents"],
        names.len(),
        "{node} {agents}"
    );
}
