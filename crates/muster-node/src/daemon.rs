//! The daemon: puts the supervisor, the link, the terminal socket and the local socket together,
//! and takes them apart in order. Each of them says in its own file what it does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use muster_wire::{Timestamp, WorkerId};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::actions::Actions;
use crate::address::AddressError;
use crate::dial::Dialer;
use crate::enroll::{self, EnrollError, Enrolment};
use crate::identity::{Identity, IdentityError};
use crate::link::board::{Board, LinkState};
use crate::link::{self, Feeds, Goodbye};
use crate::settings::Settings;
use crate::state::{OpenError, StateDir};
use crate::status;
use crate::supervise::{Supervisor, WorkerNews};
use crate::terminal;
use crate::tunnel::Tunnels;

/// Results that wait for a link.
const RESULTS: usize = 1024;
/// News of workers that wait for the link; the inventory has what does not fit.
const NEWS: usize = 1024;
/// How long the link has for its goodbye.
const GOODBYE: Duration = Duration::from_secs(4);
/// How long the exits of released workers have to be acknowledged.
const LAST_EXITS: Duration = Duration::from_secs(3);

/// What a daemon is to be.
#[derive(Debug, Clone, Default)]
pub struct DaemonSettings {
    /// Its state directory.
    pub state: PathBuf,
    /// The plane. Without it the one of its identity.
    pub plane: Option<String>,
    /// The name that it wants when it is enrolled.
    pub name: Option<String>,
    /// Its labels: `gpu`, `zone=eu`.
    pub labels: Vec<String>,
    /// A file with an enrolment token, used when it is not enrolled yet.
    pub token_file: Option<PathBuf>,
    /// Certificates to trust besides the public ones.
    pub ca: Option<PathBuf>,
    /// How workers are supervised.
    pub supervision: Settings,
    /// Deadlines of the link.
    pub timing: Timing,
}

/// Deadlines of the link.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How often it beats, unless the plane says otherwise.
    pub beat: Duration,
    /// So many beats may pass without an acknowledgement.
    pub ack_beats: u32,
    /// How often the whole set of workers is told.
    pub inventory_every: Duration,
    /// From the dial to the open socket.
    pub connect: Duration,
    /// For one frame to be written.
    pub write: Duration,
    /// For the answer to the registration.
    pub register: Duration,
    /// The shortest wait before the next dial.
    pub reconnect_min: Duration,
    /// The longest.
    pub reconnect_max: Duration,
    /// The longest when the plane does not take this node.
    pub refused_wait: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(5),
            ack_beats: 3,
            inventory_every: Duration::from_secs(60),
            connect: Duration::from_secs(15),
            write: Duration::from_secs(10),
            register: Duration::from_secs(10),
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(10),
            refused_wait: Duration::from_secs(30),
        }
    }
}

/// How a daemon is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Its workers go on in their holders; the next daemon finds them.
    Leave,
    /// Its workers are released first.
    Release,
    /// Now, without a goodbye. Its workers go on.
    AtOnce,
}

/// Why a daemon could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its state directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is nobody, or somebody else.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It could not be enrolled.
    #[error(transparent)]
    Enroll(#[from] EnrollError),
    /// The plane's address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A file cannot be read.
    #[error("{what}: {error}")]
    Io {
        /// What was wanted.
        what: String,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
}

/// What the parts of a running daemon share.
pub(crate) struct Node {
    pub(crate) settings: DaemonSettings,
    pub(crate) supervisor: Supervisor,
    pub(crate) dialer: Dialer,
    pub(crate) board: Board,
    pub(crate) terminal: terminal::Shown,
    pub(crate) actions: Actions,
    pub(crate) tunnels: Tunnels,
    /// Somebody wants a new connection.
    pub(crate) reconnect: Notify,
    pub(crate) reconnect_terminal: Notify,
    pub(crate) started_at: Timestamp,
    /// How it is to stop.
    pub(crate) stop: watch::Sender<Option<Stop>>,
    identity: Mutex<Identity>,
    /// Held while the file of what was last known is written.
    pub(crate) remembering: Mutex<()>,
}

impl Node {
    /// Who it is.
    pub(crate) fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    /// Takes a new token of the same node; a file of another node needs another start.
    pub(crate) fn read_identity_again(&self) {
        match Identity::read(&self.settings.state) {
            Ok(Some(new)) => {
                let mut old = self.identity.lock();
                if new.node_id != old.node_id || new.must_be(&old.plane, None).is_err() {
                    warn!(
                        node.id = %old.node_id, in_file = %new.node_id,
                        "the identity in the state directory is another node's now; start this daemon again to become it"
                    );
                } else if new.token != old.token {
                    info!(node.id = %old.node_id, "the node was enrolled again; its new token is used");
                    *old = new;
                }
            }
            Ok(None) => {}
            Err(error) => warn!(%error, "the identity could not be read again"),
        }
    }
}

/// Runs a daemon until `stop` says how it is to stop, or somebody does so over its local socket.
///
/// # Errors
/// When it could not start. A plane that cannot be reached is no error: it is dialled again.
pub async fn run(
    settings: DaemonSettings,
    mut stop: watch::Receiver<Option<Stop>>,
) -> Result<(), RunError> {
    let state = StateDir::open(&settings.state)?;
    let identity = identify(&settings).await?;
    let settings = settings.or_as_enrolled(&identity);
    let plane = settings.plane.as_deref().unwrap_or(&identity.plane);
    let address = crate::address::PlaneAddress::parse(plane)?;
    let dialer = Dialer::new(address, settings.ca.as_deref()).map_err(|error| RunError::Io {
        what: "the certificates cannot be used".into(),
        error,
    })?;
    let (supervisor, heard) = Supervisor::open(state, settings.supervision.clone()).await?;
    let (results, results_read) = mpsc::channel(RESULTS);
    let (stop_all, mut stopped) = watch::channel(None);
    let node = Arc::new(Node {
        board: Board::new(&identity.node_id),
        terminal: terminal::Shown::new(),
        actions: Actions::new(supervisor.clone(), results.clone()),
        tunnels: Tunnels::new(results),
        reconnect: Notify::new(),
        reconnect_terminal: Notify::new(),
        started_at: Timestamp::wall_clock(),
        stop: stop_all,
        identity: Mutex::new(identity.clone()),
        remembering: Mutex::new(()),
        settings,
        supervisor,
        dialer,
    });
    info!(
        node.id = %identity.node_id, node.name = %identity.name, plane = %node.dialer.address(),
        workers = node.supervisor.roster().len(), exits_waiting = node.supervisor.outbox().len(),
        epoch = node.supervisor.state().epoch(), "the node starts"
    );

    let (bye, goodbye) = watch::channel(None);
    let (news, link_news) = mpsc::channel(NEWS);
    let roster_changed = Arc::new(Notify::new());
    let mut background = JoinSet::new();
    let local = status::listen(&node.settings.state).map_err(|error| RunError::Io {
        what: "the local socket cannot be opened".into(),
        error,
    })?;
    background.spawn(status::serve(node.clone(), local));
    background.spawn(status::remember(node.clone(), roster_changed.clone()));
    background.spawn(pass_on(heard, news, roster_changed));
    background.spawn({
        let node = node.clone();
        async move { terminal::keep(&node).await }
    });
    let mut keeping = tokio::spawn({
        let node = node.clone();
        let feeds = Feeds {
            news: link_news,
            results: results_read,
            stop: goodbye,
        };
        async move { link::keep(&node, feeds).await }
    });

    let wish = tokio::select! {
        wish = asked(&mut stop) => wish,
        wish = asked(&mut stopped) => wish,
        ended = &mut keeping => {
            // It only ends by a panic here, and a daemon without a link is worth nothing.
            error!(panicked = ended.is_err(), "the link's task ended; the daemon stops, its workers go on");
            Stop::AtOnce
        }
    };
    info!(how = ?wish, "the daemon stops");
    let give_up = keeping.abort_handle();
    let clean = async {
        if wish == Stop::Release {
            release_all(&node).await;
        }
        let _ = bye.send(Some(Goodbye {
            reason: match wish {
                Stop::Release => "stopped, with its workers".into(),
                Stop::Leave | Stop::AtOnce => "stopped; its workers go on".into(),
            },
            workers_stay: wish != Stop::Release,
        }));
        if tokio::time::timeout(GOODBYE, &mut keeping).await.is_err() {
            warn!("the plane did not take the goodbye in time");
        }
    };
    if wish != Stop::AtOnce {
        tokio::select! {
            () = clean => {}
            () = at_once(&mut stop) => warn!("stopped at once"),
            () = at_once(&mut stopped) => warn!("stopped at once"),
        }
    }
    give_up.abort();
    background.shutdown().await;
    status::remember_now(&node);
    status::close(&node.settings.state);
    info!(
        workers = node.supervisor.roster().len(),
        "the daemon has stopped"
    );
    Ok(())
}

impl DaemonSettings {
    /// What was agreed at enrolment holds where nothing else is said here.
    fn or_as_enrolled(mut self, identity: &Identity) -> Self {
        if self.labels.is_empty() {
            self.labels.clone_from(&identity.labels);
        }
        if self.supervision.workers_max == 0 {
            self.supervision.workers_max = identity.max_workers;
        }
        self
    }
}

/// The identity of the state directory; made from an enrolment token where there is none.
async fn identify(settings: &DaemonSettings) -> Result<Identity, RunError> {
    if let Some(identity) = Identity::read(&settings.state)? {
        if let Some(plane) = &settings.plane {
            identity.must_be(plane, None)?;
        }
        return Ok(identity);
    }
    let missing = || IdentityError::Missing(Identity::path_in(&settings.state));
    let file = settings.token_file.as_ref().ok_or_else(missing)?;
    let plane = settings.plane.as_ref().ok_or_else(missing)?;
    let token = std::fs::read_to_string(file).map_err(|error| RunError::Io {
        what: format!("the token file {} cannot be read", file.display()),
        error,
    })?;
    let enrolment = Enrolment {
        token: token.trim().to_owned(),
        name: settings.name.clone(),
        labels: settings.labels.clone(),
        max_workers: settings.supervision.workers_max,
        host: enroll::host_name(),
    };
    let ca = settings.ca.as_deref();
    let identity = enroll::enroll(&settings.state, plane, &enrolment, ca, false).await?;
    info!(node.id = %identity.node_id, node.name = %identity.name, "enrolled");
    Ok(identity)
}

/// Passes news of workers on, and never waits: the inventory has what the link cannot take.
async fn pass_on(
    mut heard: mpsc::Receiver<WorkerNews>,
    link: mpsc::Sender<WorkerNews>,
    changed: Arc<Notify>,
) {
    while let Some(news) = heard.recv().await {
        let _ = link.try_send(news);
        changed.notify_one();
    }
}

async fn release_all(node: &Node) {
    let mut releases = JoinSet::new();
    for worker in node.supervisor.roster() {
        let Ok(id) = WorkerId::parse(&worker.worker_id) else {
            continue;
        };
        let supervisor = node.supervisor.clone();
        releases.spawn(async move {
            if let Err(error) = supervisor.release(&id, None).await {
                warn!(worker.id = %id, %error, "a worker could not be released");
            }
        });
    }
    info!(workers = releases.len(), "its workers are released");
    releases.join_all().await;
    // Whoever placed them learns their exits now rather than at the next start.
    let told = async {
        while node.board.report().state == LinkState::Ready && !node.supervisor.outbox().is_empty()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(LAST_EXITS, told).await.is_err() {
        warn!(
            exits_waiting = node.supervisor.outbox().len(),
            "exits wait for the next start"
        );
    }
}

/// Waits for a wish. One who can wish no more never does.
async fn asked(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    match stop.wait_for(Option::is_some).await.map(|wish| *wish) {
        Ok(Some(wish)) => wish,
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

async fn at_once(stop: &mut watch::Receiver<Option<Stop>>) {
    let at_once = |wish: &Option<Stop>| *wish == Some(Stop::AtOnce);
    if stop.wait_for(at_once).await.is_err() {
        std::future::pending().await
    }
}
