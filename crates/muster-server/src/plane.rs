//! One running plane: opens, listens, and stops in stages.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use http::{HeaderValue, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_engine::{Engine, Event, Limits};
use muster_store::{StoreError, Stores};
use muster_wire::{Origin, Timestamp, mint};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::app::{App, AppState, LifePhase, Phase};
use crate::approvals::Approvals;
use crate::auth::Auth;
use crate::bodies::BodyRoom;
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::dispatch::address::DialRules;
use crate::dispatch::connect::Connector;
use crate::dispatch::told::Tellers;
use crate::driver::DriverHandle;
use crate::driver::turn::{Driver, Parts};
use crate::fleet::Fleet;
use crate::lives::Lives;
use crate::relay::Registry;
use crate::slow_body::{self, Rest, SlowBody};
use crate::slow_head::{HeadClock, IDLE_MAX, Watched};
use crate::telemetry::Telemetry;
use crate::ui::Site;
use crate::webhooks::Webhooks;
use crate::world::PlaneWorld;

/// When the oldest event that is kept happened: the first sign of a build that kept no marks of
/// its presence.
fn oldest_sign(stores: &Stores) -> Result<Option<Timestamp>, StoreError> {
    let Some(seq) = stores.decisions.oldest_event()? else {
        return Ok(None);
    };
    let first = stores.decisions.events(seq.saturating_sub(1), 1)?;
    Ok(first.first().map(|event| event.at))
}

/// Header lines of one request.
const HEADERS_MAX: usize = 100;

/// How often a stage of the shutdown looks whether it is done.
const LOOK: Duration = Duration::from_millis(20);
/// How long answers and long-lived streams get to leave at the very end.
const LEAVE: Duration = Duration::from_secs(5);

/// How long exchanges with agents that nobody waits for any more may still take.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Why a plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value of the configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The key of the attempts cannot be read or written.
    #[error("attempt.key in the data directory: {0}")]
    Key(io::Error),
}

/// The plane.
pub struct Plane;

/// A plane that runs.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state.
    pub app: App,
    dispatcher: Dispatcher,
    driver: std::thread::JoinHandle<()>,
    accepting: JoinHandle<()>,
    closing: CancellationToken,
}

impl Plane {
    /// Listens, restores, serves, without a dashboard. Who connects meanwhile waits instead of
    /// being refused.
    ///
    /// # Errors
    /// When the address or the store cannot be used.
    pub async fn start(config: Config, stores: Stores) -> Result<Running, StartError> {
        let listener = Self::listen(config.server.listen).await?;
        Self::start_on(listener, config, stores, Site::none()).await
    }

    /// Listens. Who connects waits until the plane serves.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
        let bound = TcpListener::bind(address).await;
        bound.map_err(|error| StartError::Listen(address, error))
    }

    /// Restores and serves, with a dashboard, on a socket that listens already.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn start_on(
        listener: TcpListener,
        config: Config,
        stores: Stores,
        site: Site,
    ) -> Result<Running, StartError> {
        let address = listener
            .local_addr()
            .map_err(|error| StartError::Listen(config.server.listen, error))?;
        config.server.check_name().map_err(StartError::Config)?;
        let rules = DialRules::new(&config.agents).map_err(StartError::Config)?;
        rules.set_own(address);
        let webhooks = Webhooks::new(&config.webhooks).map_err(StartError::Config)?;
        webhooks.set_own(address);
        let telemetry = Telemetry::new(&config.telemetry).map_err(StartError::Config)?;
        let config = Arc::new(config);
        let fleet = Arc::new(Fleet::default());
        let clock = Clock::start();
        let lives = Lives::begin(&*stores.annex, clock.now(), oldest_sign(&stores)?)?;
        let app = App::new(AppState {
            start_id: mint("plane").into(),
            auth: Auth::open(&config, &stores, address.port())?,
            relay: Registry::open(&*stores.annex, Timestamp::wall_clock())?,
            limits: Arc::new(config.limits()),
            room: BodyRoom::default(),
            schemas: Default::default(),
            dialling: Connector::new(rules, config.agents.dial_timeout.0).with_fleet(fleet.clone()),
            config: config.clone(),
            stores,
            clock,
            lives,
            driver: DriverHandle::default(),
            directory: Default::default(),
            views: Default::default(),
            feed: Default::default(),
            fleet,
            followers: Default::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            phase: Phase::default(),
            duties: Default::default(),
            identity: Default::default(),
            memory: Default::default(),
            logs: Default::default(),
            webhooks,
            growth: Default::default(),
            telemetry,
            site,
            approvals: Approvals::new(&config).map_err(StartError::Config)?,
            meters: crate::meters::Meters::new(config.origin.0),
        });
        let dispatcher = dispatcher(&app);
        app.meters.watch_dispatches(dispatcher.flights());
        let driver = drive(&app, &dispatcher).await?;
        crate::health::start_duties(&app);
        crate::chores::start(&app);
        crate::webhooks::start(&app);
        crate::lives::start(&app);
        Telemetry::start(&app);
        app.phase.set(LifePhase::Serving);
        let closing = CancellationToken::new();
        let service = crate::api::service(app.clone());
        let accepting = tokio::spawn(accept(listener, service, app.clone(), closing.clone()));
        Ok(Running {
            address,
            app,
            dispatcher,
            driver,
            accepting,
            closing,
        })
    }
}

fn dispatcher(app: &App) -> Dispatcher {
    let views = app.clone();
    let ended = move |id: &str| {
        views
            .views
            .get(id)
            .is_some_and(|v| v.row.status.is_terminal())
    };
    let (agents, signs) = (app.clone(), app.clone());
    let tellers = Tellers {
        registered: Box::new(move |agent, url| {
            crate::approvals::registered_at(&agents.directory, agent, url)
        }),
        sign: Box::new(move |body, now| signs.approvals.signature(body, now)),
        nodes: crate::fleet::sender(app),
        outside: Connector::new(
            app.webhooks.rules().clone(),
            app.config.agents.dial_timeout.0,
        ),
    };
    Dispatcher::new(
        app.driver.clone(),
        app.stores.clone(),
        app.config.clone(),
        app.dialling.clone(),
        app.room.clone(),
        ended,
        tellers,
    )
}

/// Why this plane must not dispatch until a person says so: what a copied or restored store
/// believes to be under way may have been sent already. A plane of `dev` is only warned.
fn caution(app: &App) -> Option<Arc<str>> {
    let why = app.stores.decisions.about().suspicious?;
    if app.config.origin.0 != Origin::Server {
        tracing::warn!(reason = %why, "this may be a copy of a store: its calls may have been sent already");
        return None;
    }
    tracing::error!(
        reason = %why,
        "nothing is dispatched: look at `muster executions --state running,queued`, then `muster unhold`"
    );
    Some(why.into())
}

/// Restores the engine on a thread of its own, which then runs it.
async fn drive(
    app: &App,
    dispatcher: &Dispatcher,
) -> Result<std::thread::JoinHandle<()>, StartError> {
    let parts = Parts {
        shared: app.driver.shared.clone(),
        store: app.stores.decisions.clone(),
        world: Arc::new(PlaneWorld {
            app: app.clone(),
            dispatcher: dispatcher.clone(),
            runtime: tokio::runtime::Handle::current(),
        }),
        clock: app.clock,
        limits: Limits::clone(&app.limits),
        key: crate::secret_key::of_store(&*app.stores.decisions).map_err(StartError::Key)?,
        owner: app.start_id.to_string(),
        caution: caution(app),
    };
    let (told, started) = tokio::sync::oneshot::channel();
    let run = move || match Driver::<Engine>::start(parts) {
        Ok(driver) => {
            let _ = told.send(Ok(()));
            driver.run();
        }
        Err(error) => {
            let _ = told.send(Err(error));
        }
    };
    let thread = std::thread::Builder::new()
        .name("muster-driver".into())
        .spawn(run)
        .map_err(|source| {
            let doing = "start of the driver's thread".into();
            StartError::Store(StoreError::Io { doing, source })
        })?;
    match started.await {
        Ok(end) => end?,
        Err(_) => return Err(StartError::Store(StoreError::Stopped)),
    }
    Ok(thread)
}

impl Running {
    /// Asks how many exchanges are on their way to an address. For a supervisor, which waits
    /// for them before it stops a process: bytes that nobody has read yet die with it.
    pub fn exchanges(&self) -> impl Fn(&str) -> usize + Send + Sync + 'static {
        self.dispatcher.exchanges()
    }
    /// Ends everything, in stages, each with its bound: first only readiness changes; then new
    /// work is refused while what is held may end; then whoever is still held is answered; then
    /// streams and connections close; the driver commits what came until then.
    pub async fn stop(self) {
        let app = &self.app;
        app.phase.set(LifePhase::Leaving);
        tokio::time::sleep(app.config.server.shutdown_min_delay.0).await;

        app.phase.set(LifePhase::Draining);
        app.driver.tell(Event::Draining);
        let patience = app.config.server.shutdown_timeout.0;
        let dispatcher = &self.dispatcher;
        let held = || app.driver.waiting_for_an_end() + app.followers.len();
        let idle = || held() == 0 && dispatcher.in_flight() == 0;
        if !within(patience, idle).await {
            tracing::warn!(
                callers = held(),
                exchanges = dispatcher.in_flight(),
                "the time for a shutdown has passed; answering whoever is still held"
            );
        }
        app.driver.tell(Event::DrainEnded);
        app.followers.leave();
        within(LEAVE, || held() == 0).await;

        app.stop.cancel();
        self.closing.cancel();
        let _ = self.accepting.await;
        app.tasks.close();
        if tokio::time::timeout(LEAVE, app.tasks.wait()).await.is_err() {
            tracing::warn!(
                open = app.tasks.len(),
                "some connections did not end in time"
            );
        }
        dispatcher.leave(LAST_WORDS).await;
        let last = app.clone();
        let marked = app.blocking(move |stores| last.lives.mark(&*stores.annex, last.clock.now()));
        if let Err(error) = marked.await {
            tracing::warn!(error = %error, "the end of this plane could not be noted");
        }
        app.driver.close();
        let driver = self.driver;
        let joined = tokio::task::spawn_blocking(move || driver.join());
        if tokio::time::timeout(LEAVE, joined).await.is_err() {
            tracing::error!("the driver did not end in time");
        }
        app.telemetry.flush(LEAVE).await;
    }
}

/// Waits until something holds, but not longer than `patience`; whether it does.
async fn within(patience: Duration, holds: impl Fn() -> bool) -> bool {
    let until = tokio::time::Instant::now() + patience;
    while !holds() {
        if tokio::time::Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

async fn accept(listener: TcpListener, service: Router, app: App, closing: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                app.tasks
                    .spawn(connection(stream, peer, service.clone(), closing.clone()));
            }
            Err(error) => {
                // Out of file descriptors, mostly: taking a breath lets some close.
                tracing::warn!(error = %error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    service: Router,
    closing: CancellationToken,
) {
    let clock = HeadClock::new();
    let stream = Watched::new(stream, clock.clone());
    // One for the connection: its requests come one after another.
    let rest = Arc::new(Rest::default());
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        let serving = clock.serving();
        request.extensions_mut().insert(ConnectInfo(peer));
        let rest = rest.clone();
        let body = |body| SlowBody::telling(body, rest.clone());
        let answer = service.clone().call(request.map(body));
        async move {
            let mut answer = answer.await;
            // What is left of a body cannot be told from a next request, so the connection
            // ends with this answer. Who hears of that does not send into its end.
            if !rest.is_read()
                && let Ok(answer) = &mut answer
            {
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(header::CONNECTION, close);
                // Not before the answer is there: reading on would ask for the body that a
                // client with `Expect: 100-continue` still holds back.
                if let Some(left) = rest.take() {
                    tokio::spawn(slow_body::discard(left));
                }
            }
            if matches!(&answer, Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS) {
                serving.for_ever();
            }
            answer
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let end = tokio::select! {
        end = connection.as_mut() => end,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = end {
        tracing::debug!(peer = %peer, error = %error, "a connection ended badly");
    }
}
