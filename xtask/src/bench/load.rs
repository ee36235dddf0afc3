//! The load generator: a process of its own that takes one order a line on its stdin and
//! answers one line. Closed loop over keep-alive connections, or a fixed rate.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::connection::{Connection, request};
use super::histogram::Histogram;
use crate::say;

/// What to send, over how many connections, for how long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) to: SocketAddr,
    pub(crate) method: String,
    /// `{n}` stands for a number that counts up, `{ip}` for a loopback address of its own.
    pub(crate) path: String,
    /// As in the path.
    pub(crate) body: String,
    pub(crate) connections: usize,
    /// Stops after so many seconds …
    pub(crate) seconds: f64,
    /// … or so many requests, whichever comes first; 0 is no limit.
    pub(crate) requests: u64,
    /// Requests a second over all connections; 0 is as fast as answers come.
    pub(crate) rate: f64,
    /// `{n}` starts again at 0 here; 0 is never.
    pub(crate) wrap: u64,
    /// Sends one request on each connection, keeps them all open and does not wait for the
    /// answers. The next order closes them.
    pub(crate) hold: bool,
}

/// What came of an order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Exchanges without an answer.
    pub(crate) broken: u64,
    pub(crate) latencies: Histogram,
    /// One body of each status, to look at when the statuses surprise.
    pub(crate) samples: BTreeMap<u16, String>,
}

/// Serves orders until stdin ends.
///
/// # Errors
/// When an order cannot be read.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut held = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        held.clear();
        let outcome = if order.hold {
            runtime.block_on(hold(&order, &mut held))?
        } else {
            runtime.block_on(run(order))
        };
        say::line(&serde_json::to_string(&outcome)?);
    }
    Ok(())
}

async fn hold(order: &Order, held: &mut Vec<Connection>) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    for n in 0..order.connections as u64 {
        let mut connection = Connection::open(order.to).await?;
        connection.send(&spell(order, n)).await?;
        held.push(connection);
    }
    Ok(Outcome {
        seconds: began.elapsed().as_secs_f64(),
        ..Outcome::default()
    })
}

async fn run(order: Order) -> Outcome {
    let began = Instant::now();
    let order = Arc::new(order);
    let next = Arc::new(AtomicU64::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..order.connections {
        workers.spawn(work(Arc::clone(&order), Arc::clone(&next), began));
    }
    let mut sum = Outcome::default();
    while let Some(ended) = workers.join_next().await {
        let Ok(part) = ended else { continue };
        sum.latencies.add(&part.latencies);
        sum.broken += part.broken;
        for (status, count) in part.statuses {
            *sum.statuses.entry(status).or_default() += count;
        }
        sum.samples.extend(part.samples);
    }
    sum.seconds = began.elapsed().as_secs_f64();
    sum
}

async fn work(order: Arc<Order>, next: Arc<AtomicU64>, began: Instant) -> Outcome {
    let mut part = Outcome::default();
    let fixed = !order.path.contains("{n}") && !order.body.contains("{n}");
    let mut bytes = spell(&order, 0);
    let mut connection = None;
    let limit = Duration::from_secs_f64(order.seconds);
    while began.elapsed() < limit {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if order.requests > 0 && n >= order.requests {
            break;
        }
        if order.rate > 0.0 {
            let due = began + Duration::from_secs_f64(n as f64 / order.rate);
            tokio::time::sleep_until(due.into()).await;
        }
        if !fixed {
            bytes = spell(&order, if order.wrap > 0 { n % order.wrap } else { n });
        }
        let sent = Instant::now();
        let mut open = match connection.take() {
            Some(open) => open,
            None => match Connection::open(order.to).await {
                Ok(open) => open,
                Err(_) => {
                    part.broken += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
        };
        match open.exchange(&bytes).await {
            Ok((status, body)) => {
                part.latencies.record(sent.elapsed().as_nanos() as u64);
                *part.statuses.entry(status).or_default() += 1;
                part.samples.entry(status).or_insert_with(|| {
                    let text = String::from_utf8_lossy(&body);
                    text.chars().take(300).collect()
                });
                connection = Some(open);
            }
            Err(_) => part.broken += 1,
        }
    }
    part
}

fn spell(order: &Order, n: u64) -> Vec<u8> {
    let [.., high, low] = n.to_be_bytes();
    let ip = format!("127.9.{high}.{low}");
    let n = n.to_string();
    let fill = |text: &str| text.replace("{n}", &n).replace("{ip}", &ip);
    let (path, body) = (fill(&order.path), fill(&order.body));
    request(&order.method, &path, order.to, &body)
}
