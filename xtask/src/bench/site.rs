//! What every part of the benchmark stands on: the agent, the proxy and the load generator as
//! running processes, fixed ports, a folder, and planes started in it one after another.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::bodies;
use super::connection::{Connection, request, request_with_key};
use super::load::{Order, Outcome};
use super::process::{Load, Process, start_plane};

/// The processes and places.
pub(crate) struct Site {
    pub(crate) quick: bool,
    binary: PathBuf,
    folder: PathBuf,
    planes: usize,
    pub(crate) plane_at: SocketAddr,
    pub(crate) agent_at: SocketAddr,
    pub(crate) proxy_at: SocketAddr,
    pub(crate) agent: Process,
    pub(crate) proxy: Process,
    pub(crate) load: Load,
    runtime: tokio::runtime::Runtime,
}

/// How many agents with a queue each the agent's process is, beside `bench`.
pub(crate) const QUEUES: u8 = 100;

impl Site {
    /// Starts agent, proxy and load generator.
    pub(crate) fn open(binary: PathBuf, folder: &Path, quick: bool) -> anyhow::Result<Self> {
        allow_many_files();
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let [plane, agent, proxy] = free_ports()?.map(local);
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        Ok(Self {
            quick,
            binary,
            folder: folder.to_owned(),
            planes: 0,
            plane_at: plane,
            agent_at: agent,
            proxy_at: proxy,
            agent: Process::own(&words(&[
                "agent",
                &plane.to_string(),
                &agent.port().to_string(),
                &QUEUES.to_string(),
            ]))?,
            proxy: Process::own(&words(&[
                "proxy",
                &proxy.port().to_string(),
                &agent.to_string(),
            ]))?,
            load: Load::start()?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
        })
    }

    /// A number, or a tenth of it in a quick run.
    pub(crate) fn scaled(&self, full: u64) -> u64 {
        if self.quick { full / 10 } else { full }
    }

    /// A folder for a new store.
    pub(crate) fn new_store(&mut self) -> PathBuf {
        self.planes += 1;
        self.folder.join(format!("plane-{}", self.planes))
    }

    /// Starts a plane on a folder and waits until it is ready; also says how long that took.
    pub(crate) fn plane(
        &mut self,
        data: &Path,
        settings: &[(&str, String)],
    ) -> anyhow::Result<(Process, Duration)> {
        let began = Instant::now();
        let mut plane = start_plane(&self.binary, self.plane_at.port(), data, settings)?;
        loop {
            if matches!(self.ask(self.plane_at, "GET", "/readyz", ""), Ok((200, _))) {
                return Ok((plane, began.elapsed()));
            }
            let log = data.with_extension("log");
            ensure!(!plane.ended(), "the plane ended: see {}", log.display());
            ensure!(
                began.elapsed() < Duration::from_secs(120),
                "the plane was not ready in two minutes"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts a plane on a new store with the agent `bench` registered.
    pub(crate) fn fresh_plane(&mut self, settings: &[(&str, String)]) -> anyhow::Result<Process> {
        let data = self.new_store();
        let (plane, _) = self.plane(&data, settings)?;
        self.register_bench()?;
        Ok(plane)
    }

    /// Registers the agent `bench`, which really listens.
    pub(crate) fn register_bench(&self) -> anyhow::Result<()> {
        let url = format!("http://{}", self.agent_at);
        let (status, text) = self.ask(
            self.plane_at,
            "POST",
            "/api/v1/nodes/register",
            &bodies::bench_agent("bench", &url, "i-bench"),
        )?;
        ensure!(matches!(status, 200 | 201), "registration: {status} {text}");
        let beat = bodies::beat("i-bench");
        self.ask(
            self.plane_at,
            "POST",
            "/api/v1/nodes/bench/heartbeat",
            &beat,
        )?;
        Ok(())
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(
        &self,
        to: SocketAddr,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        self.exchange(to, request(method, path, to, body))
    }

    /// One request to the plane that carries a key.
    pub(crate) fn ask_with_key(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let bytes = request_with_key(Some(key), method, path, self.plane_at, body);
        self.exchange(self.plane_at, bytes)
    }

    fn exchange(&self, to: SocketAddr, bytes: Vec<u8>) -> anyhow::Result<(u16, String)> {
        self.runtime.block_on(async {
            let exchange = async { Connection::open(to).await?.exchange(&bytes).await };
            let (status, body) = tokio::time::timeout(Duration::from_secs(30), exchange).await??;
            Ok((status, String::from_utf8_lossy(&body).into_owned()))
        })
    }

    /// Has an order carried out and insists on its status.
    pub(crate) fn run(&mut self, order: &Order, expect: &[u16]) -> anyhow::Result<Outcome> {
        let outcome = self.load.run(order)?;
        let good: u64 = expect.iter().filter_map(|s| outcome.statuses.get(s)).sum();
        let all: u64 = outcome.statuses.values().sum();
        let odd = outcome.samples.iter().find(|(s, _)| !expect.contains(s));
        ensure!(
            good == all && outcome.broken == 0 && (all > 0 || order.hold),
            "{} {}: statuses {:?}, {} broken, e.g. {odd:?}",
            order.method,
            order.path,
            outcome.statuses,
            outcome.broken,
        );
        Ok(outcome)
    }

    /// What the agent has counted: deliveries and callbacks that were taken.
    pub(crate) fn agent_counts(&self) -> anyhow::Result<(u64, u64)> {
        let (_, text) = self.ask(self.agent_at, "GET", "/count", "")?;
        let value: serde_json::Value = serde_json::from_str(&text)?;
        let number = |name: &str| value[name].as_u64().context("the agent's count");
        Ok((number("delivered")?, number("called_back")?))
    }

    /// Commits that the plane has made: one fsync each.
    pub(crate) fn commits(&self) -> anyhow::Result<f64> {
        let (_, text) = self.ask(self.plane_at, "GET", "/metrics", "")?;
        let mut sum = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            if name == "muster_commit_seconds_count"
                && let Some(value) = line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok())
            {
                *sum.get_or_insert(0.0) += value;
            }
        }
        sum.context("/metrics has no muster_commit_seconds_count")
    }

    /// How long one small commit takes on this disk, the median: two pages written over what a
    /// file already holds, as a write-ahead log does, and an fdatasync.
    pub(crate) fn single_commit_ms(&self) -> anyhow::Result<f64> {
        use std::os::unix::fs::FileExt;
        let path = self.folder.join("single-commit");
        let file = std::fs::File::create(&path)?;
        file.write_all_at(&[0; 1 << 20], 0)?;
        file.sync_all()?;
        let mut times = Vec::new();
        for n in 0..100 {
            let began = Instant::now();
            file.write_all_at(&[7; 8192], n * 8192)?;
            file.sync_data()?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        std::fs::remove_file(path)?;
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

fn free_ports() -> anyhow::Result<[u16; 3]> {
    let listeners = [(); 3].map(|()| TcpListener::bind(("127.0.0.1", 0)));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

/// As many open files as the machine lets us have; children inherit it.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).ok();
}
