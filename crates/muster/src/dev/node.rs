//! The local node of `muster dev`: a machine named `local`, which is this one, enrolled with the
//! owner's authority. Its workers end with `dev`, unless they are to stay. What supervises them
//! is the node's own crate.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster_node::enroll::{Enrolment, enroll, host_name};
use muster_node::status::{Question, ask};
use muster_node::{DaemonSettings, RunError, Stop};
use muster_wire::Category;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::{Client, read_owner_key};
use crate::failure::{Failure, Outcome};

/// Its name.
pub(super) const NAME: &str = "local";
/// How many workers it takes.
pub(super) const SLOTS: u32 = 8;
/// How long its link may take until something is said about it.
const ONLINE_WITHIN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(50);

/// The daemon, as a task of this process. Its workers are processes of their own.
pub(super) struct LocalNode {
    stop: watch::Sender<Option<Stop>>,
    state: PathBuf,
    daemon: JoinHandle<Result<(), RunError>>,
}

impl LocalNode {
    /// Enrols it and starts its daemon.
    pub(super) async fn start(address: &str, data: &Path) -> Outcome<(Self, Client)> {
        let client = Client::new(address, read_owner_key(data))?;
        let state = data.join("node");
        // Each time: its token is as old as this plane's run, and the plane may have moved to
        // another port. The same name is the same node.
        let made: Value = client
            .post(
                "/api/v1/fleet/enrollments",
                &json!({"name": NAME, "max_workers": SLOTS}),
            )
            .await?
            .json()?;
        let token = made.get("token").and_then(Value::as_str);
        let enrolment = Enrolment {
            token: token.unwrap_or_default().to_owned(),
            name: Some(NAME.to_owned()),
            labels: Vec::new(),
            max_workers: SLOTS,
            host: host_name(),
        };
        enroll(&state, address, &enrolment, None, true)
            .await
            .map_err(|error| failed(&error.to_string()))?;
        let settings = DaemonSettings {
            state: state.clone(),
            plane: Some(address.to_owned()),
            supervision: muster_node::Settings {
                workers_max: SLOTS,
                ..muster_node::Settings::default()
            },
            ..DaemonSettings::default()
        };
        let (stop, stopped) = watch::channel(None);
        let daemon = tokio::spawn(muster_node::run(settings, stopped));
        Ok((
            Self {
                stop,
                state,
                daemon,
            },
            client,
        ))
    }

    /// Waits until the plane says that it is online.
    pub(super) async fn online(&mut self, client: &Client) -> Outcome<()> {
        let began = Instant::now();
        let path = format!("/api/v1/fleet/nodes/{NAME}");
        loop {
            let seen = client.get_json(&path).await?;
            if seen.get("state").and_then(Value::as_str) == Some("online") {
                return Ok(());
            }
            if began.elapsed() > ONLINE_WITHIN {
                let why = seen.get("evidence").and_then(Value::as_str);
                return Err(failed(&format!(
                    "it is not online in {} s: {}",
                    ONLINE_WITHIN.as_secs(),
                    why.unwrap_or("the plane does not say why")
                )));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                ended = &mut self.daemon => return Err(ended_early(ended)),
            }
        }
    }

    /// Stops it. Its workers are released first, or stay; how many is said.
    pub(super) async fn end(self, keep_workers: bool) {
        let had = ask(&self.state, Question::Status)
            .await
            .map_or(0, |report| report.workers.len());
        let how = match keep_workers {
            true => Stop::Leave,
            false => Stop::Release,
        };
        let _ = self.stop.send(Some(how));
        match self.daemon.await {
            Ok(Ok(())) if had > 0 => {
                let what = if keep_workers {
                    "left running"
                } else {
                    "ended"
                };
                let s = if had == 1 { "" } else { "s" };
                crate::out::talk(&format!("{had} worker{s} of {NAME} {what}"));
            }
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(error = %error, "the local node failed"),
            Err(error) => tracing::warn!(error = %error, "the local node failed"),
        }
    }
}

fn ended_early(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Failure {
    match ended {
        Ok(Ok(())) => failed("its daemon was stopped"),
        Ok(Err(error)) => failed(&error.to_string()),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> Failure {
    Failure::new(
        Category::NodeUnavailable,
        format!("the local node cannot run: {why}"),
    )
    .hint("everything else works; workers need a node: see `muster nodes`")
}
