//! Clients that are slow, break off, or read nothing.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::routes;
use crate::support::agent::Agent;
use crate::support::{Answer, World};

/// Longer than any client may take to send a head or the next piece of a body.
const CUT_OFF: Duration = Duration::from_secs(40);

async fn half_sent(to: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.expect("connect");
    stream.write_all(bytes).await.expect("write");
    stream
}

/// What comes back until the plane ends the connection.
async fn rest(mut stream: TcpStream) -> Option<Answer> {
    let mut got = Vec::new();
    timeout(CUT_OFF, stream.read_to_end(&mut got))
        .await
        .expect("the plane ends a slow connection")
        .ok();
    Answer::parse(&got)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_bodies_are_cut_off_while_others_are_served() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let to = world.plane.address;
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(half_sent(to, b"GET /healthz HTTP/1.1\r\nHost: local").await);
        let body = b"POST /api/v1/execute/sane.echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"input\":";
        waiting.push(half_sent(to, body).await);
    }
    let began = Instant::now();
    routes::still_works(&world, &agent).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let answers = futures_util::future::join_all(waiting.into_iter().map(rest)).await;
    for answer in answers.into_iter().flatten() {
        assert!(
            (400..500).contains(&answer.status),
            "{} {}",
            answer.status,
            answer.text()
        );
    }
    assert_eq!(agent.called(), 1, "no half body became a call");
    assert_eq!(routes::executions(&world).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_breaks_off_is_no_call() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    for path in [
        "/api/v1/execute/sane.echo",
        "/api/v1/execute/async/sane.echo",
    ] {
        for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
            let sent = if head.starts_with("Content") {
                "{\"input\":{}}"
            } else {
                "c\r\n{\"input\":{}}"
            };
            let bytes = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n{sent}");
            let mut stream = half_sent(world.plane.address, bytes.as_bytes()).await;
            stream.shutdown().await.expect("shutdown");
            if let Some(answer) = rest(stream).await {
                assert!(
                    (400..500).contains(&answer.status),
                    "{} {}",
                    answer.status,
                    answer.text()
                );
            }
        }
    }
    assert_eq!(agent.called(), 0);
    assert_eq!(routes::executions(&world).await, 0);
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_kept_connection_is_not_cut_under_a_client_that_comes_back() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(world.plane.address).await.unwrap();
    let mut buffer = vec![0; 4096];
    // Longer than a head may take: between two requests nobody is slow.
    for wait in [0, 12, 1] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        let n = timeout(Duration::from_secs(5), stream.read(&mut buffer))
            .await
            .unwrap()
            .unwrap();
        assert!(
            buffer[..n].starts_with(b"HTTP/1.1 200"),
            "after {wait} s: {}",
            String::from_utf8_lossy(&buffer[..n])
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_announced_as_too_large_is_refused_before_it_comes() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    for path in [
        "/api/v1/execute/sane.echo",
        "/api/v1/execute/async/sane.echo",
        "/api/v1/memory/set",
        "/api/v1/nodes/register",
        "/api/v1/workflow/executions/events",
    ] {
        for expect in ["", "Expect: 100-continue\r\n"] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000000000\r\n{expect}\r\n"
            );
            let began = Instant::now();
            let stream = half_sent(world.plane.address, head.as_bytes()).await;
            let answer = rest(stream).await.expect("an answer");
            // The first answer: not one that asks for the body.
            assert_eq!(answer.status, 413, "{path}: {}", answer.text());
            assert_eq!(answer.category(), "too_large", "{path}");
            assert_eq!(answer.header("connection"), Some("close"), "{path}");
            assert!(began.elapsed() < Duration::from_secs(10), "{path}");
        }
    }
    // Who writes on all the same gets to see the answer.
    let body = vec![b'x'; 40 << 20];
    let request = crate::support::wire::request("POST", "/api/v1/memory/set", &[], &body);
    let answer = crate::support::wire::raw(world.plane.address, &request).await;
    assert_eq!(answer.expect("an answer").status, 413);
    routes::still_works(&world, &agent).await;
}
