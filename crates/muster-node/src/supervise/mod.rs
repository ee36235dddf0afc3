//! The workers of this machine, as the daemon sees them: each has a holder, which does the work.
//! Knows no plane.

mod begin;
mod bury;
mod core;
mod link;
mod plan;
mod recover;
mod restart;
mod stop;
mod watching;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use muster_wire::WorkerId;
use muster_wire::fleet::frame::{NodeFrame, RestartOutput, SpawnInput, SpawnOutput, WorkerReport};
use muster_wire::fleet::{ExitReport, WorkerIo};
use tokio::sync::{mpsc, watch};

use self::core::{Admission, Core};
pub(crate) use self::link::Request;
use crate::attachment::{AttachError, Attachment};
use crate::holder::FIRST_OTHER_FILE;
use crate::holder::protocol::{Ask, Frame};
use crate::record::{Phase, StateRecord};
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

/// How much news waits for who reads it.
const NEWS_MAX: usize = 4096;

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

/// Why a worker was not started again, or why nobody knows whether it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// This node never had it, or has forgotten it.
    #[error("this node has no worker of that id")]
    UnknownWorker,
    /// Its holder was started by a build that could not do that.
    #[error(
        "unsupported: this worker's holder is of an older build, which knows no restart; release \
         it and start it anew"
    )]
    OldHolder,
    /// Its holder does not do it now.
    #[error("{0}")]
    Refused(String),
    /// Its holder did not answer.
    #[error("its holder did not answer: what became of it is told as it happens")]
    Unanswered,
}

/// The supervisor of this machine's workers. Cheap to clone. When the last one is dropped the
/// workers go on in their holders.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    state: StateDir,
    core: Arc<Core>,
    /// Its end ends the tasks.
    _stop: watch::Sender<()>,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("state", &self.inner.state)
            .finish_non_exhaustive()
    }
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
        // Files that this process was given by whoever started it, without being told to keep
        // them to itself: a holder would have them for as long as its worker lives.
        close_fds::set_fds_cloexec(FIRST_OTHER_FILE, &[]);
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let (stop, stopped) = watch::channel(());
        let workers = state.workers();
        let epoch = state.epoch().to_owned();
        let core = Arc::new(Core::new(workers.clone(), epoch, settings, news, stopped));
        recover::recover(&core)
            .await
            .map_err(|error| OpenError::Io {
                path: workers,
                error,
            })?;
        let inner = Arc::new(Inner {
            state,
            core,
            _stop: stop,
        });
        Ok((Self { inner }, heard))
    }

    /// The state directory.
    pub fn state(&self) -> &StateDir {
        &self.inner.state
    }

    /// How it supervises.
    pub fn settings(&self) -> &Settings {
        &self.inner.core.settings
    }

    /// Starts a worker and waits until it has lived through its start window. One that is known
    /// is answered as it was the first time, also after its end, and never started twice. A
    /// caller that goes away changes nothing.
    pub async fn start(&self, input: SpawnInput) -> SpawnOutput {
        let refused = |message: String, full| SpawnOutput::Refused { message, full };
        if let Err(error) = WorkerId::parse(&input.worker_id) {
            return refused(format!("the worker's id: {error}"), false);
        }
        let core = &self.inner.core;
        let mut answer = match core.admit(first_state(&input)) {
            Admission::Full(message) => return refused(message, true),
            Admission::Known(answer) => answer,
            Admission::New(answer) => {
                tokio::spawn(begin::begin(core.clone(), input));
                answer
            }
        };
        let answered = answer.wait_for(Option::is_some).await;
        match answered.ok().and_then(|answer| answer.clone()) {
            Some(answer) => answer,
            None => refused("the node is stopping".into(), false),
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
        // In a task of its own: a caller that goes away changes nothing.
        let (core, worker) = (self.inner.core.clone(), worker.as_str().to_owned());
        let stopping = tokio::spawn(async move { stop::stop(&core, &worker, grace).await });
        match stopping.await {
            Ok(stopped) => stopped,
            Err(error) => Err(ReleaseError::Stuck(format!("the release failed: {error}"))),
        }
    }

    /// Ends a worker's process like a release, and starts it again under the same id, with the
    /// same variables and terminal, whatever its policy. Answered when the new process has lived
    /// through its start window, or has ended. Asked twice while it is under way, it is done once.
    ///
    /// # Errors
    /// When it is not known, has ended or ends, or its holder cannot or does not do it.
    pub async fn restart(
        &self,
        worker: &WorkerId,
        grace: Option<Duration>,
        reason: Option<String>,
    ) -> Result<RestartOutput, RestartError> {
        // In a task of its own: a caller that goes away changes nothing.
        let (core, worker) = (self.inner.core.clone(), worker.as_str().to_owned());
        let restarting =
            tokio::spawn(async move { restart::restart(&core, &worker, grace, reason).await });
        match restarting.await {
            Ok(restarted) => restarted,
            Err(error) => Err(RestartError::Refused(format!(
                "the restart failed: {error}"
            ))),
        }
    }

    /// Every worker that has not ended for good.
    pub fn roster(&self) -> Vec<WorkerReport> {
        self.inner.core.roster()
    }

    /// The exits that were not acknowledged, [`NodeFrame::Exited`] each, oldest first.
    pub fn outbox(&self) -> Vec<NodeFrame> {
        self.inner.core.outbox()
    }

    /// Takes an exit out of the outbox, by the id of its frame.
    pub fn acknowledged(&self, id: &str) {
        self.inner.core.acknowledged(id);
    }

    /// Watches a worker.
    ///
    /// # Errors
    /// When it does not run here, or its holder does not answer.
    pub async fn attach(&self, worker: &WorkerId) -> Result<Attachment, AttachError> {
        watching::watch(&self.inner.core, worker.as_str()).await
    }

    /// The last 256 KiB of a worker's output, also of one that has ended while it is kept.
    pub async fn output_tail(&self, worker: &WorkerId) -> Option<Vec<u8>> {
        let core = &self.inner.core;
        let requests = core.look(worker.as_str(), |worker| worker.requests.borrow().clone())?;
        if let Some(requests) = requests {
            let (request, heard) = Request::new(|id| Frame::Message(Ask::Tail { id }));
            let asked = tokio::time::timeout(Duration::from_secs(10), async {
                requests.send(request).await.ok()?;
                heard.await.ok()
            });
            if let Ok(Some(Frame::Tail { bytes, .. })) = asked.await {
                return Some(bytes);
            }
        }
        core.dir(worker.as_str()).read_output()
    }
}

/// Before anything was done.
fn first_state(input: &SpawnInput) -> StateRecord {
    StateRecord {
        worker_id: input.worker_id.clone(),
        name: input.name.clone(),
        phase: Phase::Starting,
        io: input.spec.io,
        holder: None,
        process: None,
        started_at: None,
        restarts: 0,
        next_start_at: None,
        answer: None,
        boot: crate::tree::boot_id(),
        stop_grace_ms: input.spec.stop_grace_ms.unwrap_or(10_000),
    }
}

impl StateRecord {
    fn has_terminal(&self) -> bool {
        self.io == WorkerIo::Pty
    }
}
