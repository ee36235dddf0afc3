//! What a node says of itself on its own machine: over a socket in its state directory while the
//! daemon runs, and from a file when it does not. Needs no plane.

mod ask;
mod local;
mod serve;

use std::path::Path;
use std::sync::Arc;

use muster_wire::Timestamp;
use muster_wire::fleet::frame::WorkerReport;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tracing::warn;

pub use ask::{AskError, Question, ask, last_known};
pub(crate) use serve::{close, listen, serve};

use crate::daemon::Node;
use crate::link::board::LinkReport;
use crate::state;
use crate::terminal::TerminalReport;

/// The file with what was last known.
const LAST_FILE: &str = "last-status.json";

/// A node at one moment, as it sees itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Its id.
    pub node_id: String,
    /// Its name.
    pub name: String,
    /// The plane that it speaks to.
    pub plane: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// How many workers it takes; 0 is without bound.
    pub max_workers: u32,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Changes when its memory of workers was lost.
    pub epoch: String,
    /// When the daemon was started.
    pub started_at: Timestamp,
    /// When this was said.
    pub as_of: Timestamp,
    /// It stops.
    pub stopping: bool,
    /// Its link.
    pub link: LinkReport,
    /// Its terminal socket.
    pub terminal: TerminalReport,
    /// Its workers.
    pub workers: Vec<WorkerReport>,
    /// Exits that the plane has not acknowledged.
    pub exits_waiting: usize,
}

/// The node as it is now.
pub(crate) fn report(node: &Node) -> StatusReport {
    let identity = node.identity();
    StatusReport {
        node_id: identity.node_id,
        name: identity.name,
        plane: node.dialer.address().to_string(),
        labels: node.settings.labels.clone(),
        max_workers: node.settings.supervision.workers_max,
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        epoch: node.supervisor.state().epoch().to_owned(),
        started_at: node.started_at,
        as_of: Timestamp::wall_clock(),
        stopping: node.stop.borrow().is_some(),
        link: node.board.report(),
        terminal: node.terminal.report(),
        workers: node.supervisor.roster(),
        exits_waiting: node.supervisor.outbox().len(),
    }
}

/// Writes what is known whenever the link or a worker changes, for a time when nobody answers.
pub(crate) async fn remember(node: Arc<Node>, roster_changed: Arc<Notify>) {
    let mut link = node.board.watch();
    loop {
        let writer = node.clone();
        let _ = tokio::task::spawn_blocking(move || remember_now(&writer)).await;
        // A storm of changes is one change.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        tokio::select! {
            changed = link.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = roster_changed.notified() => {}
        }
    }
}

/// The same, once. It is a convenience: that it fails is said, and harms nothing.
pub(crate) fn remember_now(node: &Node) {
    // One at a time: the file is made under a passing name.
    let _one = node.remembering.lock();
    let written = serde_json::to_vec(&report(node))
        .map_err(std::io::Error::other)
        .and_then(|text| write_last(&node.settings.state, &text));
    if let Err(error) = written {
        warn!(%error, "what is known could not be written for later");
    }
}

fn write_last(state: &Path, text: &[u8]) -> std::io::Result<()> {
    state::write_durably(state, LAST_FILE, text)
}
