//! The workers of this machine, as the daemon sees them: each has a holder, which does the work.
//! Knows no plane.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::WorkerId;
use muster_wire::fleet::ExitReport;
use muster_wire::fleet::frame::{NodeFrame, SpawnInput, SpawnOutput, WorkerReport};
use tokio::sync::mpsc;

use crate::attachment::{AttachError, Attachment};
use crate::settings::Settings;
use crate::state::{OpenError, StateDir};

/// Something changed. A full channel drops news, not facts: [`Supervisor::roster`] and
/// [`Supervisor::outbox`] have them.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerNews {
    /// A worker was started, or started again, or waits for that.
    Changed(WorkerReport),
    /// An exit waits in the outbox; the id of its frame.
    Exited(String),
}

/// Why a worker was not released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// This node never had it, or has forgotten it.
    #[error("this node has no worker of that id")]
    UnknownWorker,
    /// Some of its processes are still there after SIGKILL.
    #[error("{0}")]
    Stuck(String),
}

/// The supervisor of this machine's workers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: StateDir,
    settings: Settings,
    news: mpsc::Sender<WorkerNews>,
}

impl Supervisor {
    /// Connects again to the holders that still run, and reads the exits that were written
    /// meanwhile. What it finds comes as news, too.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub async fn open(
        state: StateDir,
        settings: Settings,
    ) -> Result<(Self, mpsc::Receiver<WorkerNews>), OpenError> {
        let (news, heard) = mpsc::channel(4096);
        let inner = Arc::new(Inner {
            state,
            settings,
            news,
        });
        Ok((Self { inner }, heard))
    }

    /// The state directory.
    pub fn state(&self) -> &StateDir {
        &self.inner.state
    }

    /// How it supervises.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Starts a worker and waits until it has lived through its start window. One that is known
    /// is answered as it was the first time, also after its end, and never started twice.
    pub async fn start(&self, input: SpawnInput) -> SpawnOutput {
        let _ = (input, &self.inner.news);
        SpawnOutput::Refused {
            message: "this build cannot start workers yet".into(),
            full: false,
        }
    }

    /// Ends a worker for good, with everything that descends from it: SIGTERM, `grace` (its
    /// own without one), SIGKILL. One that has ended is answered with its exit.
    ///
    /// # Errors
    /// When it is not known, or processes of it are left.
    pub async fn release(
        &self,
        worker: &WorkerId,
        grace: Option<Duration>,
    ) -> Result<ExitReport, ReleaseError> {
        let _ = (worker, grace);
        Err(ReleaseError::UnknownWorker)
    }

    /// Every worker that has not ended for good.
    pub fn roster(&self) -> Vec<WorkerReport> {
        Vec::new()
    }

    /// The exits that were not acknowledged, [`NodeFrame::Exited`] each, oldest first.
    pub fn outbox(&self) -> Vec<NodeFrame> {
        Vec::new()
    }

    /// Takes an exit out of the outbox, by the id of its frame.
    pub fn acknowledged(&self, id: &str) {
        let _ = id;
    }

    /// Watches a worker.
    ///
    /// # Errors
    /// When it does not run here, or its holder does not answer.
    pub async fn attach(&self, worker: &WorkerId) -> Result<Attachment, AttachError> {
        let _ = worker;
        Err(AttachError::UnknownWorker)
    }

    /// The last 256 KiB of a worker's output, also of one that has ended while it is kept.
    pub async fn output_tail(&self, worker: &WorkerId) -> Option<Vec<u8>> {
        let _ = worker;
        None
    }
}
