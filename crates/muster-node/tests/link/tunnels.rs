//! Calls that reach a port of the node's loopback through its link.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::tests;
use crate::support::daemon::Daemon;
use crate::support::plane::{Plane, Served};
use crate::support::soon;

tests!(
    a_port_where_nobody_listens_is_told_at_once,
    bytes_go_both_ways_and_either_end_can_be_first,
    large_bodies_arrive_whole_both_ways_at_once,
    a_tunnel_that_the_plane_closes_frees_the_port,
    a_port_that_breaks_closes_the_tunnel_with_a_reason,
    a_plane_that_does_not_read_stops_the_port_and_nothing_else,
    a_port_on_the_other_loopback_is_found,
);

fn open(served: &Served, tunnel: &str, port: u16) {
    served.send(json!({"v": 1, "type": "muster.tunnel.open", "tunnel_id": tunnel, "port": port}));
}

async fn port() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

async fn a_port_where_nobody_listens_is_told_at_once() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let (listener, free) = port().await;
    drop(listener);
    open(&served, "tun_1", free);
    let failed = served.frame("muster.tunnel.failed").await;
    assert_eq!(failed["tunnel_id"], "tun_1");
    assert!(
        failed["error"].as_str().expect("text").contains("refused"),
        "{failed}"
    );
    open(&served, "tun_2", 0);
    assert_eq!(
        served.frame("muster.tunnel.failed").await["tunnel_id"],
        "tun_2"
    );
}

async fn bytes_go_both_ways_and_either_end_can_be_first() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let (listener, port) = port().await;
    for plane_first in [true, false] {
        open(&served, "tun_1", port);
        let (mut local, _) = soon("a dial", listener.accept()).await.expect("a dial");
        let (id, mut socket) = plane.tunnel().await;
        assert_eq!(id, "tun_1");
        socket
            .send(Message::binary(b"GET /".to_vec()))
            .await
            .expect("sent");
        let mut request = [0; 5];
        soon("a request", local.read_exact(&mut request))
            .await
            .expect("read");
        assert_eq!(&request, b"GET /");
        local.write_all(b"200").await.expect("written");
        let answer = soon("an answer", socket.next())
            .await
            .expect("open")
            .expect("read");
        assert_eq!(answer.into_data().as_ref(), b"200");
        let mut end = [0; 1];
        if plane_first {
            // The plane has said all; the port reads its end and still answers.
            socket
                .send(Message::binary(Vec::new()))
                .await
                .expect("sent");
            assert_eq!(
                soon("the end", local.read(&mut end)).await.expect("read"),
                0
            );
            local.write_all(b"late").await.expect("written");
            drop(local);
            let late = soon("the rest", socket.next())
                .await
                .expect("open")
                .expect("read");
            assert_eq!(late.into_data().as_ref(), b"late");
            let end = soon("the end", socket.next())
                .await
                .expect("open")
                .expect("read");
            assert!(end.is_binary() && end.into_data().is_empty());
        } else {
            local.shutdown().await.expect("shut");
            let end = soon("the end", socket.next())
                .await
                .expect("open")
                .expect("read");
            assert!(end.is_binary() && end.into_data().is_empty());
            socket
                .send(Message::binary(b"late".to_vec()))
                .await
                .expect("sent");
            socket
                .send(Message::binary(Vec::new()))
                .await
                .expect("sent");
            let mut rest = Vec::new();
            soon("the rest", local.read_to_end(&mut rest))
                .await
                .expect("read");
            assert_eq!(rest, b"late");
        }
        let close = soon("a close", socket.next())
            .await
            .expect("open")
            .expect("read");
        assert!(close.is_close(), "{close:?}");
    }
}

async fn large_bodies_arrive_whole_both_ways_at_once() {
    const SIZE: usize = 24 << 20;
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let (listener, port) = port().await;
    open(&served, "tun_1", port);
    let (local, _) = soon("a dial", listener.accept()).await.expect("a dial");
    let (_, socket) = plane.tunnel().await;
    let body: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let (mut local_read, mut local_write) = local.into_split();
    let (mut sink, mut stream) = socket.split();
    let up = body.clone();
    let to_plane = tokio::spawn(async move {
        local_write.write_all(&up).await.expect("written");
        local_write.shutdown().await.expect("shut");
    });
    let down = body.clone();
    let to_port = tokio::spawn(async move {
        for piece in down.chunks(100_000) {
            sink.send(Message::binary(piece.to_vec()))
                .await
                .expect("sent");
        }
        sink.send(Message::binary(Vec::new())).await.expect("sent");
    });
    let at_port = tokio::spawn(async move {
        let mut got = Vec::new();
        local_read.read_to_end(&mut got).await.expect("read");
        got
    });
    let at_plane = tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(Ok(Message::Binary(piece))) = stream.next().await {
            if piece.is_empty() {
                break;
            }
            got.extend_from_slice(&piece);
        }
        got
    });
    let both = soon("both bodies", async {
        tokio::join!(at_port, at_plane, to_plane, to_port)
    });
    let (at_port, at_plane, ..) = both.await;
    assert!(at_port.expect("read") == body && at_plane.expect("read") == body);
    // The link was not held up by it.
    served.frame("muster.beat").await;
    assert_eq!(plane.controls(), 1);
}

async fn a_tunnel_that_the_plane_closes_frees_the_port() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let (listener, port) = port().await;
    open(&served, "tun_1", port);
    let (mut local, _) = soon("a dial", listener.accept()).await.expect("a dial");
    let (_, mut socket) = plane.tunnel().await;
    socket.close(None).await.expect("closed");
    let mut rest = Vec::new();
    // An end or a reset: in both the port is free.
    let _ = soon("its end", local.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
}

async fn a_port_that_breaks_closes_the_tunnel_with_a_reason() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    let (listener, port) = port().await;
    open(&served, "tun_1", port);
    let (local, _) = soon("a dial", listener.accept()).await.expect("a dial");
    let (_, mut socket) = plane.tunnel().await;
    socket
        .send(Message::binary(b"unread".to_vec()))
        .await
        .expect("sent");
    let arrived = soon("it arrives", local.peek(&mut [0; 6])).await;
    assert!(arrived.expect("open") > 0);
    // With unread bytes a drop is a reset.
    drop(local);
    let close = soon("a close", async {
        loop {
            match socket.next().await.expect("open").expect("read") {
                Message::Close(close) => break close.expect("a reason"),
                Message::Binary(_) | Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
    assert!(close.reason.contains("the port"), "{close:?}");
}

/// Backpressure: a port that prints for ever is not read when the plane does not read, and the
/// link goes on.
async fn a_plane_that_does_not_read_stops_the_port_and_nothing_else() {
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let mut served = plane.ready().await;
    let (listener, port) = port().await;
    open(&served, "tun_1", port);
    let (mut local, _) = soon("a dial", listener.accept()).await.expect("a dial");
    let (_, socket) = plane.tunnel().await;
    let piece = vec![7; 1 << 20];
    let mut written = 0;
    // Until a megabyte is not taken within a while: then what lies between them is full.
    while tokio::time::timeout(std::time::Duration::from_secs(1), local.write_all(&piece))
        .await
        .is_ok()
    {
        written += piece.len();
        assert!(written < 256 << 20, "somebody takes it all");
    }
    for _ in 0..5 {
        served.frame("muster.beat").await;
    }
    assert_eq!(plane.controls(), 1);
    drop(socket);
}

async fn a_port_on_the_other_loopback_is_found() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        println!("this machine has no IPv6 loopback");
        return;
    };
    let plane = Plane::new().await;
    let _daemon = Daemon::start(&plane);
    let served = plane.ready().await;
    open(
        &served,
        "tun_1",
        listener.local_addr().expect("an address").port(),
    );
    soon("a dial", listener.accept()).await.expect("a dial");
    assert_eq!(plane.tunnel().await.0, "tun_1");
}
