//! What leaves the process towards agents. Says exactly how far each exchange came: a dial that
//! failed sent nothing; whatever happens later may have been worked on.

pub mod address;
pub mod answer;
mod call;
pub mod connect;
mod llm;
mod peer;
mod tell;
pub mod told;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use dashmap::DashMap;
use muster_engine::Send;
use muster_engine::event::{AttemptKey, InstanceKey};
use muster_engine::fleet::FleetSend;
use muster_store::Stores;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

use crate::bodies::BodyRoom;
use crate::config::Config;
use crate::driver::DriverHandle;
use crate::telemetry::Propagation;
use connect::Connector;
use hyper_util::client::legacy::Client;
use peer::{Body, Peer};

/// Exchanges at once.
pub const IN_FLIGHT_MAX: usize = 4_096;
/// Exchanges at once with one host.
pub const PER_HOST_MAX: usize = 256;
/// Probes at once.
const PROBES_MAX: usize = 64;

/// Takes what the engine wants told to nodes; never waits.
pub type FleetSender = Box<dyn Fn(FleetSend) + std::marker::Send + Sync>;

/// Sends what the engine decided. Cloning it is one reference count.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

struct Inner {
    driver: DriverHandle,
    stores: Stores,
    config: Arc<Config>,
    traces: Propagation,
    connector: Connector,
    room: BodyRoom,
    peers: DashMap<InstanceKey, Arc<Peer>>,
    hosts: DashMap<Arc<str>, Arc<Semaphore>>,
    flights: Semaphore,
    probes: Semaphore,
    llm: Client<Connector, Body>,
    tasks: TaskTracker,
    /// Whether an execution ended meanwhile: what still waits for its turn is not sent then.
    ended: Box<dyn Fn(&str) -> bool + std::marker::Send + Sync>,
    tellers: told::Tellers,
    /// Calls whose connection is not there yet: a cancel takes them back.
    dialling: DashMap<AttemptKey, Arc<Notify>>,
    /// Calls that are wanted back, and may have gone out.
    wanted_back: Mutex<FxHashSet<AttemptKey>>,
    /// How many there are.
    wanted_back_count: AtomicUsize,
}

impl Dispatcher {
    /// A dispatcher that reports to this driver.
    pub fn new(
        driver: DriverHandle,
        stores: Stores,
        config: Arc<Config>,
        connector: Connector,
        room: BodyRoom,
        ended: impl Fn(&str) -> bool + std::marker::Send + Sync + 'static,
        tellers: told::Tellers,
    ) -> Self {
        Self(Arc::new(Inner {
            driver,
            stores,
            traces: Propagation::of(&config.telemetry),
            config,
            llm: peer::client(connector.for_the_operator()),
            connector,
            room,
            peers: DashMap::new(),
            hosts: DashMap::new(),
            flights: Semaphore::new(IN_FLIGHT_MAX),
            probes: Semaphore::new(PROBES_MAX),
            tasks: TaskTracker::new(),
            ended: Box::new(ended),
            tellers,
            dialling: DashMap::new(),
            wanted_back: Mutex::default(),
            wanted_back_count: AtomicUsize::new(0),
        }))
    }

    /// Starts one send; must be called within the runtime.
    pub fn start(&self, send: Send) {
        let this = self.clone();
        match send {
            Send::Dispatch(dispatch) => {
                self.0
                    .tasks
                    .spawn(async move { this.call(*dispatch).await });
            }
            Send::TellCancel(tell) => {
                self.0
                    .tasks
                    .spawn(async move { this.tell_cancel(*tell).await });
            }
            Send::Dial {
                key,
                base_url,
                after,
            } => {
                self.0
                    .tasks
                    .spawn(async move { this.dial(key, base_url, after).await });
            }
            Send::Probe { key, base_url } => {
                self.0
                    .tasks
                    .spawn(async move { this.probe(key, base_url).await });
            }
            Send::Seek { key, at } => {
                self.0.tasks.spawn(async move { this.seek(key, at).await });
            }
            Send::Fleet(send) => (self.0.tellers.nodes)(*send),
            Send::TakeBack(attempt) => self.wants_back(attempt),
            Send::CloseIdle(key) => self.close_idle(&key),
            Send::CheckLlm { endpoint } => {
                self.0
                    .tasks
                    .spawn(async move { this.check_llm(endpoint).await });
            }
            Send::TellApproval(tell) => {
                self.0
                    .tasks
                    .spawn(async move { this.tell_approval(*tell).await });
            }
        }
    }

    /// Exchanges that are on their way now.
    pub fn in_flight(&self) -> usize {
        IN_FLIGHT_MAX - self.0.flights.available_permits()
    }

    /// Asks the same later, and keeps nothing alive for it.
    pub fn flights(&self) -> impl Fn() -> usize + std::marker::Send + Sync + 'static {
        let inner = Arc::downgrade(&self.0);
        move || inner.upgrade().map_or(0, |inner| Self(inner).in_flight())
    }

    /// Waits for what is on its way, but not for long: an answer that comes later is not heard.
    pub(crate) async fn leave(&self, patience: Duration) {
        self.0.tasks.close();
        let _ = tokio::time::timeout(patience, self.0.tasks.wait()).await;
    }

    /// Asks how many exchanges are on their way to an address, and keeps nothing alive for it.
    pub fn exchanges(&self) -> impl Fn(&str) -> usize + std::marker::Send + Sync + 'static {
        let inner = Arc::downgrade(&self.0);
        move |base_url| {
            let (Some(inner), Ok(host)) = (inner.upgrade(), peer::authority(base_url)) else {
                return 0;
            };
            let host = inner.hosts.get(host.as_str());
            host.map_or(0, |host| PER_HOST_MAX - host.available_permits())
        }
    }

    /// Drops the connections of an instance that nobody uses; an exchange on its way ends first.
    fn close_idle(&self, key: &InstanceKey) {
        self.0.peers.remove(key);
        self.0.hosts.retain(|_, host| Arc::strong_count(host) > 1);
    }

    /// The client of an instance at its present address.
    fn peer(&self, key: &InstanceKey, base_url: &Arc<str>) -> Result<Arc<Peer>, String> {
        if let Some(peer) = self.0.peers.get(key)
            && peer.base_url == *base_url
        {
            return Ok(peer.clone());
        }
        let host: Arc<str> = Arc::from(peer::authority(base_url)?);
        let host = self
            .0
            .hosts
            .entry(host)
            .or_insert_with(|| Arc::new(Semaphore::new(PER_HOST_MAX)))
            .clone();
        let peer = Arc::new(Peer::new(
            base_url.clone(),
            self.0.connector.clone(),
            host,
            self.token(key),
        ));
        self.0.peers.insert(key.clone(), peer.clone());
        Ok(peer)
    }

    /// A client of an address that nobody registered: it is shown no token, and is not kept.
    fn stranger(&self, base_url: &Arc<str>) -> Peer {
        let host = Arc::new(Semaphore::new(1));
        Peer::new(base_url.clone(), self.0.connector.clone(), host, None)
    }

    /// What the plane shows this agent to prove itself.
    fn token(&self, key: &InstanceKey) -> Option<http::HeaderValue> {
        let agent = self.0.config.agents.by_id.get(key.agent.as_str())?;
        let token = agent.internal_token.as_ref()?;
        let mut value = http::HeaderValue::try_from(format!("Bearer {}", token.reveal())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn max_result(&self) -> usize {
        usize::try_from(self.0.config.executions.max_result.0).unwrap_or(usize::MAX)
    }
}

/// How the plane names itself to those it calls.
pub(crate) fn agent_name() -> http::HeaderValue {
    call::AGENT
}

pub(crate) use call::causes;

/// How long idle connections are kept: the agents' server closes at five seconds.
const IDLE: Duration = Duration::from_secs(4);
