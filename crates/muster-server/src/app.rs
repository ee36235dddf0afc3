//! Everything a handler can reach. Cloning it is one reference count.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use muster_engine::Limits;
use muster_store::Stores;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::Approvals;
use crate::auth::Auth;
use crate::bodies::BodyRoom;
use crate::clock::Clock;
use crate::config::Config;
use crate::directory::Directory;
use crate::dispatch::connect::Connector;
use crate::driver::DriverHandle;
use crate::duties::Duties;
use crate::feed::EventFeed;
use crate::fleet::Fleet;
use crate::followers::Followers;
use crate::growth::Growth;
use crate::identity::Identities;
use crate::inputs::Schemas;
use crate::lives::Lives;
use crate::logs::LogSink;
use crate::memory::MemoryState;
use crate::meters::Meters;
use crate::relay::Registry;
use crate::telemetry::Telemetry;
use crate::ui::Site;
use crate::views::Views;
use crate::webhooks::Webhooks;

/// The shared state of the plane.
#[derive(Clone)]
pub struct App(Arc<AppState>);

impl App {
    /// Wraps the state.
    pub fn new(state: AppState) -> Self {
        Self(Arc::new(state))
    }
}

impl Deref for App {
    type Target = AppState;
    fn deref(&self) -> &AppState {
        &self.0
    }
}

/// What [`App`] points to.
pub struct AppState {
    /// This start of the plane: another one each time.
    pub start_id: Arc<str>,
    /// The effective configuration.
    pub config: Arc<Config>,
    /// The store and its annex. Its methods block: use [`AppState::blocking`].
    pub stores: Stores,
    /// The plane's clock.
    pub clock: Clock,
    /// The way to the engine.
    pub driver: DriverHandle,
    /// What of the configuration the decisions depend on.
    pub limits: Arc<Limits>,
    /// Room for bodies in memory.
    pub room: BodyRoom,
    /// Compiled schemas of inputs.
    pub(crate) schemas: Schemas,
    /// Where and how the plane dials.
    pub dialling: Connector,
    /// Agents, their functions, their instances and the receipts of their beats.
    pub directory: Directory,
    /// Executions at work and those that ended lately.
    pub views: Views,
    /// The live end of the event sequence.
    pub feed: EventFeed,
    /// Nodes' sockets, and where their workers are called.
    pub fleet: Arc<Fleet>,
    /// Who waits for the end of a run without a seat in the driver.
    pub followers: Followers,
    /// Cancelled when long-lived streams must end.
    pub stop: CancellationToken,
    /// Every task with a life of its own.
    pub tasks: TaskTracker,
    /// Starting, serving, draining.
    pub phase: Phase,
    /// What runs without a caller.
    pub duties: Duties,
    /// Keys and rules.
    pub auth: Auth,
    /// Identities, and the check of signed submissions.
    pub identity: Identities,
    /// Agents and channels of Relay brokers.
    pub relay: Registry,
    /// Agents' memory.
    pub memory: MemoryState,
    /// Logs and notes.
    pub logs: LogSink,
    /// What is kept of approvals beside their rows.
    pub approvals: Approvals,
    /// Who is told of ends.
    pub webhooks: Webhooks,
    /// When planes were there over this store.
    pub lives: Lives,
    /// How fast the store grows.
    pub growth: Growth,
    /// Traces.
    pub telemetry: Telemetry,
    /// The dashboard.
    pub site: Site,
    /// What is counted.
    pub meters: Meters,
}

impl AppState {
    /// Runs something that blocks on a thread of its own.
    ///
    /// # Panics
    /// When the closure panics: the panic goes on in the caller.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stores) -> T + Send + 'static,
    ) -> T {
        let stores = self.stores.clone();
        match tokio::task::spawn_blocking(move || work(&stores)).await {
            Ok(value) => value,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Where the plane is in its life.
#[derive(Debug, Default)]
pub struct Phase(AtomicU8);

/// The words for [`Phase`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifePhase {
    /// Not yet restored.
    Starting,
    /// Taking work.
    Serving,
    /// SIGTERM came: not ready any more, but all is as before.
    Leaving,
    /// New work is refused.
    Draining,
}

impl Phase {
    /// The present phase.
    pub fn get(&self) -> LifePhase {
        match self.0.load(Ordering::Acquire) {
            0 => LifePhase::Starting,
            1 => LifePhase::Serving,
            2 => LifePhase::Leaving,
            _ => LifePhase::Draining,
        }
    }

    pub(crate) fn set(&self, phase: LifePhase) {
        self.0.store(phase as u8, Ordering::Release);
    }
}
