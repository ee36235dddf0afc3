//! One running plane: opens, listens, and stops in stages.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use muster_store::{StoreError, Stores};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::app::{App, AppState, LifePhase, Phase};
use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::Config;
use crate::driver::DriverHandle;
use crate::slow_body::SlowBody;

/// Slow clients: how long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Header lines of one request.
const HEADERS_MAX: usize = 100;

/// Why a plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The plane.
pub struct Plane;

/// A plane that runs.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state.
    pub app: App,
    accepting: JoinHandle<()>,
    closing: CancellationToken,
}

impl Plane {
    /// Restores, listens, serves.
    ///
    /// # Errors
    /// When the address or the store cannot be used.
    pub async fn start(config: Config, stores: Stores) -> Result<Running, StartError> {
        let config = Arc::new(config);
        let app = App::new(AppState {
            auth: Auth::open(&config, &stores)?,
            config: config.clone(),
            stores,
            clock: Clock::start(),
            driver: DriverHandle::default(),
            directory: Default::default(),
            views: Default::default(),
            feed: Default::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            phase: Phase::default(),
            duties: Default::default(),
            identity: Default::default(),
            memory: Default::default(),
            logs: Default::default(),
            meters: crate::meters::Meters::new(config.origin.0),
        });
        let wanted = config.server.listen;
        let listener = TcpListener::bind(wanted)
            .await
            .map_err(|error| StartError::Listen(wanted, error))?;
        let address = listener
            .local_addr()
            .map_err(|error| StartError::Listen(wanted, error))?;
        crate::health::start_duties(&app);
        app.phase.set(LifePhase::Serving);
        let closing = CancellationToken::new();
        let service = crate::api::service(app.clone());
        let accepting = tokio::spawn(accept(listener, service, app.clone(), closing.clone()));
        Ok(Running {
            address,
            app,
            accepting,
            closing,
        })
    }
}

impl Running {
    /// Ends everything, in stages.
    pub async fn stop(self) {
        self.app.phase.set(LifePhase::Draining);
        self.app.stop.cancel();
        self.closing.cancel();
        self.app.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(5), self.app.tasks.wait()).await;
        let _ = self.accepting.await;
    }
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
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        service.clone().call(request.map(SlowBody::new))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
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
