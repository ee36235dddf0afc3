//! Input that nobody sends by accident: always a clear error in the one shape, never a fault.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::on_each_store;
use crate::world::World;

on_each_store!(
    bodies_that_are_not_what_they_should_be_are_refused,
    keys_and_headers_are_bounded,
    nothing_of_a_body_comes_back_in_an_error,
);

const BODIES: &[(&str, &[(&str, &str)])] = &[
    ("/api/v1/memory/set", &[]),
    ("/api/v1/memory/get", &[]),
    ("/api/v1/memory/delete", &[]),
    ("/api/v1/executions/note", &[("X-Execution-ID", "exec_1")]),
    ("/api/v1/executions/exec_1/logs", &[]),
    ("/api/v1/executions/batch-status", &[]),
    ("/api/v1/did/register", &[]),
    ("/api/v1/did/verify", &[]),
    ("/api/v1/execution/vc", &[]),
];

async fn bodies_that_are_not_what_they_should_be_are_refused(world: World) {
    let deep = format!(
        "{{\"key\":\"k\",\"data\":{}{}}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let bodies: &[&[u8]] = &[
        b"",
        b"\0",
        b"null",
        b"7",
        b"[]",
        b"{",
        b"\"text\"",
        b"{\"key\":7,\"data\":1}",
        b"{\"key\":\"\\ud800\",\"data\":1}",
        b"{\"key\":\"\xff\",\"data\":1}",
        b"{\"key\":null}",
        b"{\"message\":{},\"entries\":7,\"execution_ids\":{},\"agent_node_id\":[]}",
        b"{\"entries\":[{\"level\":7}],\"message\":1}",
        b"{\"timestamp\":1e400}",
        b"\xef\xbb\xbf{}",
        deep.as_bytes(),
    ];
    for (path, headers) in BODIES {
        for body in bodies {
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let answer = world.raw("POST", path, headers, body.to_vec()).await;
            assert_eq!(answer.status, 400, "{path} {shown}: {answer:?}");
            answer.is_problem(400, "validation");
        }
    }
    // After all that the plane works.
    let body = json!({ "key": "k", "data": 1 });
    world.post("/api/v1/memory/set", &[], body).await.is(200);
}

async fn keys_and_headers_are_bounded(world: World) {
    let set = |key: String| json!({ "key": key, "data": 1 });
    world
        .post("/api/v1/memory/set", &[], set("k".repeat(1024)))
        .await
        .is(200);
    for key in [String::new(), "k".repeat(1025), "é".repeat(513)] {
        world
            .post("/api/v1/memory/set", &[], set(key))
            .await
            .is_problem(400, "validation");
    }
    let long = "s".repeat(513);
    for header in [long.as_str(), "\u{80}", "a\tb"] {
        let headers = [("X-Session-ID", header)];
        let answer = world
            .post("/api/v1/memory/set", &headers, set("k".into()))
            .await;
        answer.is_problem(400, "validation");
    }
    let named = [("X-Session-ID", "Zoë <zoe@example.org>")];
    world
        .post("/api/v1/memory/set", &named, set("k".into()))
        .await
        .is(200);
    // Refused by its announced length, before it is sent.
    let mut socket = TcpStream::connect(world.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/memory/set HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        33 * 1024 * 1024
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 1024];
    let read = socket.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("too_large"), "{answer}");
}

async fn nothing_of_a_body_comes_back_in_an_error(world: World) {
    for (path, headers) in BODIES {
        for body in [
            r#"{"key":{"canary-41":1},"message":["canary-41"],"entries":"canary-41","execution_ids":"canary-41","agent_node_id":{"canary-41":1},"execution_context":"canary-41"}"#,
            r#"canary-41"#,
            r#"{"canary-41"}"#,
        ] {
            let answer = world.raw("POST", path, headers, body).await;
            assert!(!answer.text.contains("canary-41"), "{path}: {answer:?}");
        }
    }
    for path in [
        "/api/v1/memory/list?scope=canary-41",
        "/api/v1/memory/list?limit=canary-41",
        "/api/v1/memory/events/history?since=canary-41",
        "/api/v1/discovery/capabilities?limit=canary-41",
        "/api/v1/discovery/capabilities?health_status=canary-41",
    ] {
        let answer = world.get(path).await;
        assert!(!answer.text.contains("canary-41"), "{path}: {answer:?}");
    }
}
