//! Simulated nodes over real sockets: each is one link with workers that exist on paper alone.
//! They register, tell their workers, beat, and come back with jitter when their link breaks.
//! Not a daemon: starts no process and answers no spawn.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use futures_util::{SinkExt, StreamExt};
use muster_wire::fleet::WorkerState;
use muster_wire::fleet::frame::{
    Capability, LINK_CAPABILITY, LinkOffer, NodeFrame, PlaneFrame, Provider, WorkerReport,
    roster_digest, write_frame,
};
use tokio::io::AsyncBufReadExt;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::say;

/// How often each beats.
const BEAT: Duration = Duration::from_secs(5);

/// Who one simulated node is.
#[derive(serde::Serialize, serde::Deserialize, Clone)]
pub(crate) struct Identity {
    pub(crate) node_id: String,
    pub(crate) name: String,
    pub(crate) token: String,
}

/// What all of them count together.
#[derive(Default)]
struct Counts {
    inventories: AtomicU64,
    beats: AtomicU64,
    late_acks: AtomicU64,
    broken: AtomicU64,
}

/// Runs the nodes that a file names, each with so many workers, until killed. On a line
/// `counts` it prints them; on `silence NAME` that node's link is closed for good.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn serve(plane: SocketAddr, file: &Path, workers: u32) -> anyhow::Result<()> {
    let identities: Vec<Identity> = serde_json::from_slice(&std::fs::read(file)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let counts = Arc::new(Counts::default());
        let mut tasks = HashMap::new();
        let all = identities.len() as u64;
        for (n, identity) in identities.into_iter().enumerate() {
            let (counts, name) = (counts.clone(), identity.name.clone());
            let task = tokio::spawn(async move {
                // A fleet does not start in one instant.
                tokio::time::sleep(Duration::from_millis(n as u64 * 2)).await;
                live(plane, &identity, workers, &counts, n as u64).await;
            });
            tasks.insert(name, task);
        }
        while counts.inventories.load(Ordering::Relaxed) < all {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        say::line("ready");
        let mut lines = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(name) = line.strip_prefix("silence ") {
                if let Some(task) = tasks.remove(name) {
                    task.abort();
                }
                say::line("silent");
            } else {
                let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
                say::line(
                    &serde_json::json!({
                        "inventories": count(&counts.inventories),
                        "beats": count(&counts.beats),
                        "late_acks": count(&counts.late_acks),
                        "broken": count(&counts.broken),
                    })
                    .to_string(),
                );
            }
        }
        Ok(())
    })
}

async fn live(plane: SocketAddr, who: &Identity, workers: u32, counts: &Counts, seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    loop {
        if session(plane, who, workers, counts).await.is_err() {
            counts.broken.fetch_add(1, Ordering::Relaxed);
        }
        // Full jitter, 1 to 10 s.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tokio::time::sleep(Duration::from_millis(1000 + random % 9000)).await;
    }
}

async fn session(
    plane: SocketAddr,
    who: &Identity,
    workers: u32,
    counts: &Counts,
) -> anyhow::Result<()> {
    let mut request = format!("ws://{plane}/v1/node/ws").into_client_request()?;
    let bearer = format!("Bearer {}", who.token).parse()?;
    request.headers_mut().insert("authorization", bearer);
    let connect = tokio_tungstenite::connect_async(request);
    let (mut socket, _) = tokio::time::timeout(Duration::from_secs(15), connect).await??;
    let hello = NodeFrame::Register {
        id: Some("register".into()),
        name: who.name.clone(),
        node_id: who.node_id.clone(),
        provider: Some(Provider {
            name: "muster".into(),
            instance_id: "bench".into(),
        }),
        capabilities: vec![Capability {
            name: LINK_CAPABILITY.into(),
            kind: "capacity".into(),
            metadata: Some(serde_json::to_value(LinkOffer {
                epoch: who.node_id.clone(),
                beat_ms: BEAT.as_millis() as u64,
                pid: 1,
                host: who.name.clone(),
            })?),
        }],
        max_agents: workers * 2,
        tags: vec!["bench".into()],
        version: "bench".into(),
    };
    socket.send(Message::text(write_frame(&hello))).await?;
    answered(&mut socket, "register").await?;
    let reports: Vec<WorkerReport> = (0..workers)
        .map(|n| WorkerReport {
            worker_id: format!("wrk_{}_{n}", who.name),
            name: format!("{}-{n}", who.name),
            state: WorkerState::Running,
            pid: Some(1000 + n),
            started_at: None,
            restarts: 0,
            next_start_at: None,
        })
        .collect();
    let digest = roster_digest(reports.iter().map(|report| report.worker_id.as_str()));
    let inventory = |n: u64| {
        write_frame(&NodeFrame::Inventory {
            id: format!("inventory-{n}"),
            workers: reports.clone(),
        })
    };
    socket.send(Message::text(inventory(0))).await?;
    answered(&mut socket, "inventory-0").await?;
    counts.inventories.fetch_add(1, Ordering::Relaxed);
    let mut seq = 0;
    let mut acknowledged = 0;
    let mut ticks = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                if seq > acknowledged + 1 {
                    counts.late_acks.fetch_add(1, Ordering::Relaxed);
                }
                seq += 1;
                let beat = NodeFrame::Beat {
                    id: format!("beat-{seq}"),
                    seq,
                    count: workers,
                    digest: digest.clone(),
                    load: Some(0.2),
                };
                socket.send(Message::text(write_frame(&beat))).await?;
                counts.beats.fetch_add(1, Ordering::Relaxed);
                if seq % 12 == 0 {
                    socket.send(Message::text(inventory(seq))).await?;
                }
            }
            message = socket.next() => {
                let message = message.context("the link ended")??;
                if let Message::Text(text) = message
                    && let Ok(PlaneFrame::Reply { id, .. }) = serde_json::from_str(&text)
                    && let Some(n) = id.strip_prefix("beat-")
                {
                    acknowledged = n.parse().unwrap_or(acknowledged);
                }
            }
        }
    }
}

type Socket =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn answered(socket: &mut Socket, wanted: &str) -> anyhow::Result<()> {
    let wait = async {
        loop {
            let message = socket.next().await.context("the link ended")??;
            let Message::Text(text) = message else {
                continue;
            };
            match serde_json::from_str(&text)? {
                PlaneFrame::Reply { id, .. } if id == wanted => return Ok(()),
                PlaneFrame::Error { id, message, .. } if id == wanted => {
                    anyhow::bail!("{wanted}: {message}")
                }
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await?
}
