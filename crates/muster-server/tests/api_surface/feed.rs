//! The change feed: WebSocket, server-sent events, history.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use muster_store::annex::{MemoryBy, MemoryScope};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::on_each_store;
use crate::world::{Events, PATIENCE, World};

on_each_store!(
    a_socket_without_a_query_hears_everything,
    a_socket_hears_what_it_asked_for,
    a_socket_is_told_that_the_plane_stops,
    a_slow_socket_is_closed_with_the_count_it_missed,
    large_values_do_not_break_the_socket,
    a_plain_request_for_the_socket_is_a_clear_error,
    events_resume_after_the_last_one_seen,
    the_history_is_filtered,
);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn socket(world: &World, query: &str) -> Socket {
    let url = format!("ws://{}/api/v1/memory/events/ws{query}", world.address());
    connect_async(url).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Message {
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next())
            .await
            .expect("a frame in time")
            .expect("an open socket")
            .unwrap();
        if !matches!(message, Message::Ping(_) | Message::Pong(_)) {
            return message;
        }
    }
}

async fn next_change(socket: &mut Socket) -> Value {
    match next(socket).await {
        Message::Text(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn set(world: &World, headers: &[(&str, &str)], key: &str, data: Value) {
    let body = json!({ "key": key, "data": data });
    world
        .post("/api/v1/memory/set", headers, body)
        .await
        .is(200);
}

async fn a_socket_without_a_query_hears_everything(world: World) {
    let mut socket = socket(&world, "").await;
    let headers = [
        ("X-Session-ID", "s"),
        ("X-Actor-ID", "a"),
        ("X-Agent-Node-ID", "n"),
        ("X-Execution-ID", "exec_1~1.ABCDEFGHIJKLMNOP"),
        ("X-Parent-Execution-ID", "exec_1~1.ABCDEFGHIJKLMNOP"),
    ];
    set(&world, &headers, "k", json!({ "v": 1 })).await;
    set(&world, &headers, "k", Value::Null).await;
    world
        .post("/api/v1/memory/delete", &headers, json!({ "key": "k" }))
        .await
        .is(204);
    world
        .post("/api/v1/memory/delete", &headers, json!({ "key": "k" }))
        .await
        .is(204);
    set(&world, &[], "last", json!(1)).await;
    let first = next_change(&mut socket).await;
    assert_eq!(first["type"], "memory_change");
    assert_eq!(first["action"], "set");
    assert_eq!(
        (&first["scope"], &first["scope_id"]),
        (&json!("session"), &json!("s"))
    );
    assert_eq!(
        (&first["key"], &first["data"]),
        (&json!("k"), &json!({ "v": 1 }))
    );
    assert_eq!(first["previous_data"], Value::Null);
    let by = json!({ "agent_id": "n", "actor_id": "a", "workflow_id": null });
    assert_eq!(first["metadata"], by);
    assert!(first["id"].is_string() && first["timestamp"].is_string());
    let second = next_change(&mut socket).await;
    assert_eq!(second["previous_data"], json!({ "v": 1 }));
    let third = next_change(&mut socket).await;
    assert_eq!(
        (&third["action"], &third["data"]),
        (&json!("delete"), &Value::Null)
    );
    // Deleting what is not there changes nothing, so nothing is told.
    assert_eq!(next_change(&mut socket).await["key"], "last");
}

async fn a_socket_hears_what_it_asked_for(world: World) {
    let mut one = socket(&world, "?patterns=a*,b.%3F&scope=session&scope_id=s").await;
    for (id, key) in [
        ("s", "xa"),
        ("other", "a1"),
        ("s", "a1"),
        ("s", "b.12"),
        ("s", "b.1"),
    ] {
        set(&world, &[("X-Session-ID", id)], key, json!(id)).await;
    }
    set(&world, &[], "a-global", json!(1)).await;
    set(&world, &[("X-Session-ID", "s")], "a-last", json!(1)).await;
    for want in ["a1", "b.1", "a-last"] {
        assert_eq!(next_change(&mut one).await["key"], want);
    }
    for bad in ["?scope=galaxy", &format!("?patterns={}", "a,".repeat(65))] {
        let url = format!("ws://{}/api/v1/memory/events/ws{bad}", world.address());
        assert!(connect_async(url).await.is_err(), "{bad}");
    }
}

async fn a_socket_is_told_that_the_plane_stops(mut world: World) {
    let mut socket = socket(&world, "").await;
    let stopping = tokio::spawn(async move {
        world.stop().await;
        world
    });
    match next(&mut socket).await {
        Message::Close(Some(frame)) => {
            assert_eq!(frame.code, CloseCode::Away);
            assert!(frame.reason.contains("shutting down"));
        }
        other => panic!("{other:?}"),
    }
    drop(socket);
    tokio::time::timeout(Duration::from_secs(10), stopping)
        .await
        .expect("an open socket does not hold up the end")
        .unwrap();
}

async fn a_slow_socket_is_closed_with_the_count_it_missed(world: World) {
    let mut slow = socket(&world, "").await;
    // Far more than the buffers of two sockets take while nobody reads. Not over HTTP, which
    // would take longer than a peer that reads nothing is waited for.
    let app = world.plane.as_ref().unwrap().app.clone();
    tokio::task::spawn_blocking(move || {
        let scope = MemoryScope {
            scope: "global".into(),
            id: "global".into(),
        };
        let large = Bytes::from(format!("\"{}\"", "x".repeat(64 * 1024)));
        for number in 0..1_300 {
            let (key, by) = (format!("k{number}"), MemoryBy::default());
            let annex = &*app.stores.annex;
            app.memory
                .set(annex, &scope, &key, large.clone(), &by, app.clock.now())
                .unwrap();
        }
    })
    .await
    .unwrap();
    let mut heard = 0;
    let reason = loop {
        match next(&mut slow).await {
            Message::Text(_) => heard += 1,
            Message::Close(Some(frame)) => break frame.reason.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("changes were missed"), "{reason}");
    assert!(heard < 1_300, "{heard}");
    let mut again = socket(&world, "").await;
    set(&world, &[], "after", json!(1)).await;
    assert_eq!(next_change(&mut again).await["key"], "after");
}

async fn large_values_do_not_break_the_socket(world: World) {
    let mut socket = socket(&world, "").await;
    set(&world, &[], "large", json!("x".repeat(2 * 1024 * 1024))).await;
    set(&world, &[], "large", json!(1)).await;
    let first = next_change(&mut socket).await;
    assert_eq!(first["data"], Value::Null);
    assert_eq!(first["omitted"], json!(["data"]));
    let second = next_change(&mut socket).await;
    assert_eq!(second["data"], 1);
    assert_eq!(second["omitted"], json!(["previous_data"]));
}

async fn a_plain_request_for_the_socket_is_a_clear_error(world: World) {
    let answer = world.get("/api/v1/memory/events/ws").await;
    answer.is_problem(400, "validation");
}

async fn events_resume_after_the_last_one_seen(world: World) {
    let path = "/api/v1/memory/events/sse?patterns=k*";
    let mut live = Events::of(&world, path, &[]).await;
    for number in 0..5 {
        set(&world, &[], &format!("k{number}"), json!("a\nb")).await;
        set(&world, &[], "other", json!(1)).await;
    }
    let mut ids = Vec::new();
    for number in 0..5 {
        let message = live.next().await.unwrap();
        let change: Value = serde_json::from_str(&message.data).unwrap();
        assert_eq!(change["key"], format!("k{number}"));
        assert_eq!(change["sequence"].to_string(), message.id);
        ids.push(message.id);
    }
    drop(live);
    // The store has what came while nobody listened, more than one page of it.
    for number in 5..200 {
        set(&world, &[], &format!("k{number}"), json!(1)).await;
    }
    let mut again = Events::of(&world, path, &[("Last-Event-ID", &ids[1])]).await;
    for number in 2..200 {
        let change: Value = serde_json::from_str(&again.next().await.unwrap().data).unwrap();
        assert_eq!(change["key"], format!("k{number}"));
    }
    set(&world, &[], "klast", json!(1)).await;
    let change: Value = serde_json::from_str(&again.next().await.unwrap().data).unwrap();
    assert_eq!(change["key"], "klast");
    let odd = world
        .raw("GET", path, &[("Last-Event-ID", "soon")], "")
        .await;
    odd.is_problem(400, "validation");
}

async fn the_history_is_filtered(world: World) {
    for number in 0..5 {
        set(&world, &[], &format!("ev_{number}"), json!(number)).await;
        set(&world, &[("X-Actor-ID", "a")], "other", json!(number)).await;
    }
    let history = |query: &str| {
        let path = format!("/api/v1/memory/events/history{query}");
        let world = &world;
        async move {
            let answer = world.get(&path).await;
            answer.is(200);
            let keys = |e: &Value| format!("{}={}", e["key"].as_str().unwrap(), e["data"]);
            answer
                .json()
                .as_array()
                .unwrap()
                .iter()
                .map(keys)
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(history("").await.len(), 10);
    assert_eq!(
        history("?limit=2&patterns=ev_%2A").await,
        ["ev_3=3", "ev_4=4"]
    );
    assert_eq!(
        history("?scope=actor&scope_id=a&limit=1").await,
        ["other=4"]
    );
    assert_eq!(history("?since=2100-01-01T00:00:00").await.len(), 0);
    assert_eq!(
        history("?since=2000-01-01T00:00:00%2B00:00&limit=3")
            .await
            .len(),
        3
    );
    assert_eq!(history("?limit=0").await.len(), 0);
    for bad in [
        "?since=yesterday",
        "?limit=-1",
        "?limit=1e400",
        "?scope=x",
        "?since=%00",
        "?since=%ff",
    ] {
        let path = format!("/api/v1/memory/events/history{bad}");
        world.get(&path).await.is_problem(400, "validation");
    }
}
