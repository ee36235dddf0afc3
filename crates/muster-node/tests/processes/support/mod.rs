//! A node in a temporary directory, workers to put on it, and looks at processes.

pub(crate) mod daemon;
pub(crate) mod proc;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster_node::fleet::frame::{NodeFrame, SpawnInput, SpawnOutput, WorkerReport};
use muster_node::fleet::{ExitReport, RestartMode, RestartPolicy, WorkerIo, WorkerSpec};
use muster_node::{Settings, StateDir, Supervisor, WorkerNews};
use muster_wire::{Timestamp, WorkerId};
use tokio::sync::mpsc::Receiver;

/// How long a thing may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A node whose holders are gone when it is dropped, also by a failed test.
pub(crate) struct Node {
    /// Taken out when another node goes on with it.
    directory: Option<tempfile::TempDir>,
    pub(crate) supervisor: Supervisor,
    pub(crate) news: Receiver<WorkerNews>,
}

/// Settings with short waits. Holders are this program, as by default.
pub(crate) fn settings() -> Settings {
    Settings {
        start_window: Duration::from_millis(150),
        restart_wait: Duration::from_millis(100),
        restart_wait_max: Duration::from_millis(400),
        ..Settings::default()
    }
}

impl Node {
    pub(crate) async fn new() -> Self {
        Self::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::at(tempfile::tempdir().expect("a directory"), settings).await
    }

    /// On a directory that was used before.
    pub(crate) async fn at(directory: tempfile::TempDir, settings: Settings) -> Self {
        // A daemon that was dropped or killed lets go of it within a moment.
        let state = until("the state directory is free", || {
            StateDir::open(&state_of(&directory)).ok()
        });
        let opened = Supervisor::open(state.await, settings).await;
        let (supervisor, news) = opened.expect("a supervisor");
        Self {
            directory: Some(directory),
            supervisor,
            news,
        }
    }

    /// Another supervisor on the same directory, as after a restart of the daemon.
    pub(crate) async fn again(mut self) -> Self {
        let directory = self.directory.take().expect("a directory");
        drop(self);
        Self::at(directory, settings()).await
    }

    pub(crate) fn state_path(&self) -> PathBuf {
        state_of(self.directory.as_ref().expect("a directory"))
    }

    pub(crate) fn worker_path(&self, worker: &str) -> PathBuf {
        self.state_path().join("workers").join(worker)
    }

    pub(crate) async fn start(&self, input: SpawnInput) -> SpawnOutput {
        let started = self.supervisor.start(input);
        tokio::time::timeout(LONG, started)
            .await
            .expect("an answer")
    }

    /// Starts a worker that has to live; its process.
    pub(crate) async fn started(&self, input: SpawnInput) -> u32 {
        match self.start(input).await {
            SpawnOutput::Started { pid: Some(pid), .. } => pid,
            other => panic!("it was not started: {other:?}"),
        }
    }

    pub(crate) async fn release(&self, worker: &str, grace_ms: u64) -> ExitReport {
        let grace = Some(Duration::from_millis(grace_ms));
        let worker = id(worker);
        let released = self.supervisor.release(&worker, grace);
        let released = tokio::time::timeout(LONG, released).await;
        released.expect("an answer").expect("a release")
    }

    pub(crate) fn report(&self, worker: &str) -> Option<WorkerReport> {
        let roster = self.supervisor.roster();
        roster.into_iter().find(|report| report.worker_id == worker)
    }

    pub(crate) async fn tail(&self, worker: &str) -> String {
        let tail = self.supervisor.output_tail(&id(worker)).await;
        String::from_utf8_lossy(&tail.unwrap_or_default()).into_owned()
    }

    /// Waits until a worker has printed something.
    pub(crate) async fn prints(&self, worker: &str, part: &str) -> String {
        let deadline = Instant::now() + LONG;
        loop {
            let tail = self.tail(worker).await;
            if tail.contains(part) {
                return tail;
            }
            assert!(
                Instant::now() < deadline,
                "{worker} printed {tail:?} and not {part:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The exits of a worker that wait, oldest first.
    pub(crate) fn exits(&self, worker: &str) -> Vec<Exit> {
        let frames = self.supervisor.outbox().into_iter();
        frames
            .filter_map(Exit::of)
            .filter(|exit| exit.worker == worker)
            .collect()
    }

    /// Waits for so many exits of a worker.
    pub(crate) async fn exits_of(&self, worker: &str, count: usize) -> Vec<Exit> {
        until("an exit waits", || {
            let exits = self.exits(worker);
            (exits.len() >= count).then_some(exits)
        })
        .await
    }

    /// The holder of a worker.
    pub(crate) fn holder(&self, worker: &str) -> u32 {
        let text = std::fs::read(self.worker_path(worker).join("state.json")).expect("a state");
        let state: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let pid = state["holder"]["pid"].as_u64().expect("a holder");
        pid.try_into().expect("a process id")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            proc::kill_mentioning(directory.path());
        }
    }
}

pub(crate) fn state_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("node")
}

/// An exit in the outbox.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub(crate) frame: String,
    pub(crate) worker: String,
    pub(crate) restarts: u32,
    pub(crate) exit: ExitReport,
    pub(crate) next_start_at: Option<Timestamp>,
}

impl Exit {
    fn of(frame: NodeFrame) -> Option<Self> {
        let NodeFrame::Exited {
            id,
            worker_id,
            restarts,
            exit,
            next_start_at,
            ..
        } = frame
        else {
            return None;
        };
        Some(Self {
            frame: id,
            worker: worker_id,
            restarts,
            exit,
            next_start_at,
        })
    }
}

pub(crate) fn id(worker: &str) -> WorkerId {
    WorkerId::parse(worker).expect("an id")
}

/// A worker that runs a shell script on a terminal.
pub(crate) fn script(worker: &str, script: &str) -> SpawnInput {
    program(worker, "sh", &["-c", script])
}

/// The same with pipes.
pub(crate) fn piped(worker: &str, text: &str) -> SpawnInput {
    let mut input = script(worker, text);
    input.spec.io = WorkerIo::Pipes;
    input
}

pub(crate) fn program(worker: &str, command: &str, args: &[&str]) -> SpawnInput {
    SpawnInput {
        worker_id: worker.into(),
        name: format!("name-of-{worker}"),
        spec: WorkerSpec {
            command: command.into(),
            args: args.iter().map(|one| (*one).to_owned()).collect(),
            cwd: None,
            env: BTreeMap::new(),
            io: WorkerIo::Pty,
            size: (24, 80),
            restart: RestartPolicy::default(),
            start_window_ms: None,
            stop_grace_ms: Some(2_000),
        },
        given_env: BTreeMap::new(),
    }
}

/// The same worker with a restart policy.
pub(crate) fn again(mut input: SpawnInput, mode: RestartMode, max: Option<u32>) -> SpawnInput {
    input.spec.restart = RestartPolicy { mode, max };
    input
}

/// Polls until there is something, within [`LONG`].
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a file has a line, and gives it.
pub(crate) async fn line_of(path: &Path) -> String {
    until("a line is in the file", || {
        let text = std::fs::read_to_string(path).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    })
    .await
}
