//! Carries out what the plane asks of workers, beside the link: each action is a task, their
//! number is bounded, and the results go back over whichever link is there then. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::WorkerId;
use muster_wire::fleet::frame::{NodeFrame, ReleaseInput, RestartInput, SpawnInput, SpawnOutput};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tracing::{debug, info, warn};

use crate::supervise::Supervisor;

/// Actions under way at once; one more is answered `busy`.
const ACTIONS_MAX: usize = 256;

/// Runs actions.
#[derive(Debug)]
pub(crate) struct Actions {
    supervisor: Supervisor,
    room: Arc<Semaphore>,
    results: mpsc::Sender<NodeFrame>,
}

impl Actions {
    /// On these workers; results go into `results`, and are dropped when it is full: the plane
    /// asks again, and a start is deduplicated.
    pub(crate) fn new(supervisor: Supervisor, results: mpsc::Sender<NodeFrame>) -> Self {
        Self {
            supervisor,
            room: Arc::new(Semaphore::new(ACTIONS_MAX)),
            results,
        }
    }

    /// Does what an `action.invoke` says.
    pub(crate) fn invoke(&self, invocation_id: String, action: &str, input: Value) {
        let supervisor = self.supervisor.clone();
        match action {
            "spawn" => match read::<SpawnInput>(input) {
                Ok(input) => self.run(invocation_id, spawn(supervisor, input)),
                Err(error) => self.reply(invocation_id, Err(error)),
            },
            "release" => match read::<ReleaseInput>(input) {
                Ok(input) => self.run(invocation_id, release(supervisor, input)),
                Err(error) => self.reply(invocation_id, Err(error)),
            },
            "restart" => match read::<RestartInput>(input) {
                Ok(input) => self.run(invocation_id, restart(supervisor, input)),
                Err(error) => self.reply(invocation_id, Err(error)),
            },
            _ => self.reply(invocation_id, Err("handler_unavailable".into())),
        }
    }

    /// Ends a worker that the plane does not want; nobody waits for it.
    pub(crate) fn release(&self, worker: WorkerId) {
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            // The next inventory brings the same verdict.
            return;
        };
        let supervisor = self.supervisor.clone();
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = supervisor.release(&worker, None).await {
                warn!(worker.id = %worker, %error, "a worker could not be released");
            }
        });
    }

    fn run(
        &self,
        invocation_id: String,
        work: impl Future<Output = Result<Value, String>> + Send + 'static,
    ) {
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            let text = format!("busy: {ACTIONS_MAX} actions are under way on this node");
            return self.reply(invocation_id, Err(text));
        };
        let results = self.results.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let result = work.await;
            give(&results, invocation_id, result);
        });
    }

    fn reply(&self, invocation_id: String, result: Result<Value, String>) {
        give(&self.results, invocation_id, result);
    }
}

async fn spawn(supervisor: Supervisor, input: SpawnInput) -> Result<Value, String> {
    let worker = WorkerId::parse(&input.worker_id).map_err(|error| error.to_string())?;
    let output = supervisor.start(input).await;
    match &output {
        SpawnOutput::Started { pid, .. } => info!(worker.id = %worker, pid, "started"),
        SpawnOutput::Exited { exit } => {
            info!(worker.id = %worker, code = exit.code, signal = exit.signal, "it exited within its start window");
        }
        SpawnOutput::Refused { full, .. } => {
            warn!(worker.id = %worker, full, "it could not be started");
        }
    }
    written(&output)
}

async fn release(supervisor: Supervisor, input: ReleaseInput) -> Result<Value, String> {
    let worker = WorkerId::parse(&input.worker_id).map_err(|error| error.to_string())?;
    let grace = input.grace_ms.map(Duration::from_millis);
    let exit = supervisor.release(&worker, grace).await.map_err(|error| {
        warn!(worker.id = %worker, %error, "it could not be released");
        error.to_string()
    })?;
    info!(worker.id = %worker, code = exit.code, signal = exit.signal, "released");
    written(&exit)
}

async fn restart(supervisor: Supervisor, input: RestartInput) -> Result<Value, String> {
    let worker = WorkerId::parse(&input.worker_id).map_err(|error| error.to_string())?;
    let grace = input.grace_ms.map(Duration::from_millis);
    let restarted = supervisor.restart(&worker, grace, input.reason).await;
    let output = restarted.map_err(|error| {
        warn!(worker.id = %worker, %error, "it could not be restarted");
        error.to_string()
    })?;
    info!(worker.id = %worker, "restarted by hand");
    written(&output)
}

/// Reads an input. A reader's own words would quote it, and it may hold secrets.
fn read<T: DeserializeOwned>(input: Value) -> Result<T, String> {
    serde_json::from_value(input)
        .map_err(|_| "invalid_input: this node does not understand the action's input".into())
}

fn give(results: &mpsc::Sender<NodeFrame>, invocation_id: String, result: Result<Value, String>) {
    let (output, error) = match result {
        Ok(output) => (Some(output), None),
        Err(error) => (None, Some(error)),
    };
    let frame = NodeFrame::ActionResult {
        invocation_id,
        output,
        error,
    };
    if results.try_send(frame).is_err() {
        debug!("a result was dropped: too many wait for a link");
    }
}

fn written<T: Serialize>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
