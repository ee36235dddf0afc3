//! Interleaved rounds: each lane at each concurrency for a moment, then all again, so that a
//! slow minute of the machine slows all lanes and not one.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::gates::Gates;
use super::histogram::Histogram;
use super::load::Order;
use super::process::Process;
use super::site::Site;
use super::{Options, bodies};
use crate::say;

/// Ways to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Lane {
    /// The agent itself.
    Direct,
    /// The agent behind the bare proxy.
    Proxy,
    /// The plane's sync lane, the agent answers 200.
    Sync,
    /// The same, the agent answers 202 and calls back.
    SyncCallback,
    /// The plane's async lane: until the 202.
    AsyncAccept,
    /// A call of an unknown agent.
    Refusal,
    /// A heartbeat.
    Beat,
    /// A poll of a finished execution.
    Poll,
}

const LANES: [Lane; 8] = [
    Lane::Direct,
    Lane::Proxy,
    Lane::Sync,
    Lane::SyncCallback,
    Lane::AsyncAccept,
    Lane::Refusal,
    Lane::Beat,
    Lane::Poll,
];
const CONNECTIONS: [usize; 3] = [1, 16, 64];

/// A lane at one concurrency, over all rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) lane: Lane,
    pub(crate) connections: usize,
    /// A second, the median of the rounds.
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Of the plane, or of the proxy, or of the agent: of who answers.
    pub(crate) cpu_us: f64,
    pub(crate) commits_each: f64,
    /// Async only: until the last one has ended.
    pub(crate) end_to_end_rate: Option<f64>,
    /// Async only: of what was left when accepting stopped.
    pub(crate) drain_rate: Option<f64>,
    #[serde(skip)]
    rates: Vec<f64>,
    #[serde(skip)]
    latencies: Histogram,
    #[serde(skip)]
    cpu: f64,
    #[serde(skip)]
    commits: f64,
    #[serde(skip)]
    whole: Whole,
}

/// Sums over the rounds of the async lane.
#[derive(Debug, Default)]
struct Whole {
    accepted: f64,
    seconds: f64,
    left: f64,
    drain_seconds: f64,
}

/// Runs the rounds and judges them.
pub(crate) fn measure(
    site: &mut Site,
    options: &Options,
    gates: &mut Gates,
) -> anyhow::Result<Vec<Measured>> {
    let plane = site.fresh_plane(&[])?;
    let finished = finished_execution(site)?;
    let rounds = options.rounds.unwrap_or(if site.quick { 2 } else { 5 });
    let seconds = if site.quick { 0.7 } else { 2.0 };
    let mut table: Vec<Measured> = Vec::new();
    for lane in LANES {
        table.extend(CONNECTIONS.map(|connections| Measured::new(lane, connections)));
    }
    let mut single_commits = Vec::new();
    for round in 0..=rounds {
        // The first round warms everything up and is thrown away.
        let warm_up = round == 0;
        say::note(&match warm_up {
            true => "warming up".to_owned(),
            false => format!("round {round} of {rounds}"),
        });
        single_commits.push(site.single_commit_ms()?);
        for measured in &mut table {
            let length = if warm_up { 0.3 } else { seconds };
            one(site, &plane, measured, &finished, length, warm_up)?;
        }
    }
    for measured in &mut table {
        measured.conclude();
    }
    single_commits.sort_by(f64::total_cmp);
    let commit_ms = single_commits[single_commits.len() / 2];
    say::note(&format!("a single small commit: {commit_ms:.3} ms"));
    judge(&table, commit_ms, gates);
    Ok(table)
}

fn finished_execution(site: &Site) -> anyhow::Result<String> {
    let (status, text) = site.ask(
        site.plane_at,
        "POST",
        "/api/v1/execute/bench.fast",
        bodies::CALL,
    )?;
    anyhow::ensure!(status == 200, "the first call: {status} {text}");
    let value: serde_json::Value = serde_json::from_str(&text)?;
    Ok(value["execution_id"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

fn order(site: &Site, lane: Lane, finished: &str) -> (Order, u16) {
    let plane = site.plane_at;
    let (to, method, path, body, status) = match lane {
        Lane::Direct => (
            site.agent_at,
            "POST",
            "/skills/fast".to_owned(),
            bodies::INPUT,
            200,
        ),
        Lane::Proxy => (
            site.proxy_at,
            "POST",
            "/skills/fast".to_owned(),
            bodies::INPUT,
            200,
        ),
        Lane::Sync => (plane, "POST", execute("", "bench.fast"), bodies::CALL, 200),
        Lane::SyncCallback => (plane, "POST", execute("", "bench.later"), bodies::CALL, 200),
        Lane::AsyncAccept => (
            plane,
            "POST",
            execute("async/", "bench.fast"),
            bodies::CALL,
            202,
        ),
        Lane::Refusal => (plane, "POST", execute("", "nobody.fast"), bodies::CALL, 404),
        Lane::Beat => {
            let path = "/api/v1/nodes/bench/heartbeat".to_owned();
            (plane, "POST", path, BEAT, 200)
        }
        Lane::Poll => {
            let path = format!("/api/v1/executions/{finished}");
            (plane, "GET", path, "", 200)
        }
    };
    let order = Order {
        to,
        method: method.to_owned(),
        path,
        body: body.to_owned(),
        connections: 1,
        seconds: 1.0,
        requests: 0,
        rate: 0.0,
        wrap: 0,
        hold: false,
    };
    (order, status)
}

const BEAT: &str = r#"{"status":"ready","timestamp":"2026-01-01T00:00:00.000000","version":"1.0.0","instance_id":"i-bench"}"#;

fn execute(lane: &str, target: &str) -> String {
    format!("/api/v1/execute/{lane}{target}")
}

/// One lane for a moment. The agent's heart beats before each, as it would beside the load.
fn one(
    site: &mut Site,
    plane: &Process,
    measured: &mut Measured,
    finished: &str,
    seconds: f64,
    warm_up: bool,
) -> anyhow::Result<()> {
    site.ask(site.plane_at, "POST", "/api/v1/nodes/bench/heartbeat", BEAT)?;
    let (mut order, status) = order(site, measured.lane, finished);
    order.connections = measured.connections;
    order.seconds = seconds;
    let delivered = site.agent_counts()?.0;
    let commits = site.commits()?;
    let cpu = answering(site, plane, measured.lane).cpu();
    let outcome = site.run(&order, &[status])?;
    let count = outcome.latencies.count();
    let mut whole = Whole::default();
    if measured.lane == Lane::AsyncAccept {
        let left = count.saturating_sub(site.agent_counts()?.0 - delivered);
        let began = Instant::now();
        wait_delivered(site, delivered + count)?;
        whole = Whole {
            accepted: count as f64,
            seconds: outcome.seconds + began.elapsed().as_secs_f64(),
            left: left as f64,
            drain_seconds: began.elapsed().as_secs_f64(),
        };
    }
    if warm_up {
        return Ok(());
    }
    measured.cpu += answering(site, plane, measured.lane).cpu() - cpu;
    measured.commits += site.commits()? - commits;
    measured.rates.push(count as f64 / outcome.seconds);
    measured.latencies.add(&outcome.latencies);
    measured.whole.accepted += whole.accepted;
    measured.whole.seconds += whole.seconds;
    measured.whole.left += whole.left;
    measured.whole.drain_seconds += whole.drain_seconds;
    Ok(())
}

fn answering<'a>(site: &'a Site, plane: &'a Process, lane: Lane) -> &'a Process {
    match lane {
        Lane::Direct => &site.agent,
        Lane::Proxy => &site.proxy,
        _ => plane,
    }
}

fn wait_delivered(site: &Site, wanted: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    while site.agent_counts()?.0 < wanted {
        anyhow::ensure!(
            began.elapsed() < Duration::from_secs(120),
            "the backlog did not drain in two minutes"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Measured {
    fn new(lane: Lane, connections: usize) -> Self {
        Self {
            lane,
            connections,
            rate: 0.0,
            p50_ms: 0.0,
            p99_ms: 0.0,
            cpu_us: 0.0,
            commits_each: 0.0,
            end_to_end_rate: None,
            drain_rate: None,
            rates: Vec::new(),
            latencies: Histogram::default(),
            cpu: 0.0,
            commits: 0.0,
            whole: Whole::default(),
        }
    }

    fn conclude(&mut self) {
        self.rates.sort_by(f64::total_cmp);
        self.rate = self.rates[self.rates.len() / 2];
        self.p50_ms = self.latencies.quantile_ms(0.5);
        self.p99_ms = self.latencies.quantile_ms(0.99);
        let count = self.latencies.count() as f64;
        self.cpu_us = self.cpu * 1e6 / count;
        self.commits_each = self.commits / count;
        if self.lane == Lane::AsyncAccept {
            let whole = &self.whole;
            let end_to_end = whole.accepted / whole.seconds;
            self.end_to_end_rate = Some(end_to_end);
            // Where dispatching kept up there is no backlog to speak of.
            let backlog = whole.left > 0.1 * whole.accepted;
            self.drain_rate = backlog.then(|| whole.left / whole.drain_seconds);
        }
    }
}

fn judge(table: &[Measured], commit_ms: f64, gates: &mut Gates) {
    let find = |lane, connections| {
        table
            .iter()
            .find(|m| m.lane == lane && m.connections == connections)
    };
    let (Some(direct1), Some(direct16), Some(direct64)) = (
        find(Lane::Direct, 1),
        find(Lane::Direct, 16),
        find(Lane::Direct, 64),
    ) else {
        return;
    };
    let (Some(proxy), Some(sync), Some(sync1)) = (
        find(Lane::Proxy, 64),
        find(Lane::Sync, 64),
        find(Lane::Sync, 1),
    ) else {
        return;
    };
    let ratio = sync.rate / proxy.rate;
    gates.at_least("sync c=64, of the proxy's throughput", ratio, 0.25, 0.4);
    gates.at_most("sync c=64, p99", sync.p99_ms, "ms", 16.0, 10.0);
    let cpu = sync.cpu_us / proxy.cpu_us;
    gates.at_most("sync c=64, CPU, times the proxy's", cpu, "×", 8.0, 4.0);
    let over = sync1.p50_ms - direct1.p50_ms - 2.0 * commit_ms;
    gates.at_most(
        "sync c=1, p50 over direct + 2 commits",
        over,
        "ms",
        0.4,
        0.15,
    );
    if let Some(accept) = find(Lane::AsyncAccept, 64) {
        let ratio = accept.rate / proxy.rate;
        gates.at_least("async accept c=64, of the proxy's", ratio, 0.5, 1.0);
        gates.at_most(
            "async c=64, fsyncs per execution",
            accept.commits_each,
            "",
            0.2,
            0.2,
        );
        let drain = accept.drain_rate.or(accept.end_to_end_rate);
        let ratio = drain.unwrap_or(f64::NAN) / sync.rate;
        gates.at_least("async backlog drains, of the sync rate", ratio, 1.0, 1.0);
    }
    if let Some(refusal) = find(Lane::Refusal, 64) {
        let ratio = refusal.rate / direct64.rate;
        gates.at_least("a refusal c=64, of the direct call's", ratio, 0.3, 0.5);
        gates.at_most(
            "a refusal, fsyncs each",
            refusal.commits_each,
            "",
            0.001,
            0.0,
        );
    }
    if let Some(beat) = find(Lane::Beat, 16) {
        let ratio = beat.rate / direct16.rate;
        gates.at_least("heartbeats c=16, of the direct call's", ratio, 0.3, 0.3);
    }
}
