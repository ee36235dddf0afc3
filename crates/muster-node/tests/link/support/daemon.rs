//! A daemon in this process, with deadlines that a test can wait for.

use std::path::PathBuf;
use std::time::Duration;

use muster_node::status::{AskError, Question, StatusReport, ask};
use muster_node::{DaemonSettings, Identity, RunError, Settings, Stop, Timing};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::plane::Plane;
use super::{LONG, listen_to_logs, soon, until};

/// The node's id and token in every test.
pub(crate) const NODE: &str = "node_test";
pub(crate) const TOKEN: &str = "nt_canary_0123456789";

pub(crate) struct Daemon {
    pub(crate) state: PathBuf,
    settings: DaemonSettings,
    _directory: tempfile::TempDir,
    stop: watch::Sender<Option<Stop>>,
    running: Option<JoinHandle<Result<(), RunError>>>,
}

/// Deadlines short enough to be waited for, and long enough for a busy machine.
pub(crate) fn timing() -> Timing {
    Timing {
        beat: Duration::from_millis(200),
        ack_beats: 3,
        inventory_every: Duration::from_secs(60),
        connect: Duration::from_secs(5),
        write: Duration::from_secs(1),
        register: Duration::from_secs(1),
        reconnect_min: Duration::from_millis(20),
        reconnect_max: Duration::from_millis(80),
        refused_wait: Duration::from_secs(600),
    }
}

/// Settings whose holders are this program.
pub(crate) fn settings(plane: &str) -> DaemonSettings {
    let own = std::env::current_exe().expect("its own path");
    DaemonSettings {
        plane: Some(plane.to_owned()),
        labels: vec!["zone=eu".into()],
        supervision: Settings {
            holder: vec![own.into(), "holder".into()],
            start_window: Duration::from_millis(150),
            ..Settings::default()
        },
        timing: timing(),
        ..DaemonSettings::default()
    }
}

impl Daemon {
    /// Runs one that is enrolled at this plane.
    pub(crate) fn start(plane: &Plane) -> Self {
        Self::with(settings(&plane.address()))
    }

    pub(crate) fn with_timing(plane: &Plane, timing: Timing) -> Self {
        let mut settings = settings(&plane.address());
        settings.timing = timing;
        Self::with(settings)
    }

    pub(crate) fn with(mut settings: DaemonSettings) -> Self {
        listen_to_logs();
        let directory = tempfile::tempdir().expect("a directory");
        settings.state = directory.path().join("node");
        let identity = Identity {
            plane: settings.plane.clone().expect("a plane"),
            node_id: NODE.into(),
            name: "mini".into(),
            token: TOKEN.into(),
            labels: Vec::new(),
            max_workers: 0,
        };
        identity.write(&settings.state, false).expect("an identity");
        let mut daemon = Self {
            state: settings.state.clone(),
            settings,
            _directory: directory,
            stop: watch::channel(None).0,
            running: None,
        };
        daemon.run();
        daemon
    }

    /// Runs it, again on the same directory.
    pub(crate) fn run(&mut self) {
        let (stop, stopped) = watch::channel(None);
        self.stop = stop;
        self.running = Some(tokio::spawn(muster_node::run(
            self.settings.clone(),
            stopped,
        )));
    }

    pub(crate) fn ask_to_stop(&self, how: Stop) {
        self.stop.send_replace(Some(how));
    }

    /// Waits until it has stopped.
    pub(crate) async fn ended(&mut self) {
        let running = self.running.take().expect("it runs");
        let ended = soon("the daemon stops", running).await;
        ended.expect("no panic").expect("a clean end");
    }

    pub(crate) async fn stop(&mut self, how: Stop) {
        self.ask_to_stop(how);
        self.ended().await;
    }

    pub(crate) async fn ask(&self, question: Question) -> Result<StatusReport, AskError> {
        soon("its local socket answers", ask(&self.state, question)).await
    }

    pub(crate) async fn status(&self) -> StatusReport {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            match self.ask(Question::Status).await {
                Ok(status) => return status,
                Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until its status is so.
    pub(crate) async fn is(
        &self,
        what: &str,
        mut so: impl FnMut(&StatusReport) -> bool,
    ) -> StatusReport {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let status = self.status().await;
            if so(&status) {
                return status;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "never {what}: {status:#?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
        kill_holders(&self.state);
    }
}

/// No process of a test outlives it: holders name the state directory in their arguments or
/// hold it as their own, and their workers are their children.
fn kill_holders(state: &std::path::Path) {
    let Ok(workers) = std::fs::read_dir(state.join("workers")) else {
        return;
    };
    for worker in workers.flatten() {
        let text = std::fs::read(worker.path().join("state.json")).unwrap_or_default();
        let state: Value = serde_json::from_slice(&text).unwrap_or_default();
        for pid in [&state["holder"]["pid"], &state["process"]["pid"]] {
            if let Some(pid) = pid.as_i64().and_then(|pid| i32::try_from(pid).ok())
                && let Some(pid) = rustix::process::Pid::from_raw(pid)
            {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// The input of a start: a shell with a script.
pub(crate) fn shell(worker: &str, script: &str) -> Value {
    json!({
        "worker_id": worker,
        "name": worker,
        "spec": {"command": "/bin/sh", "args": ["-c", script], "io": "pty", "stop_grace_ms": 300},
        "given_env": {},
    })
}

/// Waits until a file has some text.
pub(crate) async fn file_has(path: &std::path::Path, part: &str) -> String {
    until(&format!("{part:?} in {}", path.display()), || {
        let text = std::fs::read_to_string(path).ok()?;
        text.contains(part).then_some(text)
    })
    .await
}
