//! One instance as a client sees it: its connections, its address, its share of the host.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;

use super::connect::Connector;
use super::{IDLE, PER_HOST_MAX};

/// The body of what we send: whole and in memory.
pub(super) type Body = Full<Bytes>;

/// A client of one instance. Dropping it closes its idle connections.
pub(super) struct Peer {
    pub(super) base_url: Arc<str>,
    pub(super) client: Client<Connector, Body>,
    pub(super) host: Arc<Semaphore>,
    pub(super) token: Option<HeaderValue>,
}

impl Peer {
    pub(super) fn new(
        base_url: Arc<str>,
        connector: Connector,
        host: Arc<Semaphore>,
        token: Option<HeaderValue>,
    ) -> Self {
        let client = client(connector);
        Self {
            base_url,
            client,
            host,
            token,
        }
    }

    /// An address below the base.
    pub(super) fn uri(&self, path: &str) -> Result<Uri, String> {
        let base = self.base_url.trim_end_matches('/');
        Uri::try_from(format!("{base}{path}")).map_err(|error| error.to_string())
    }
}

/// A client whose idle connections are given up soon.
pub(super) fn client(connector: Connector) -> Client<Connector, Body> {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(PER_HOST_MAX)
        .build(connector)
}

/// Host and port of an address.
pub(super) fn authority(base_url: &str) -> Result<String, String> {
    let uri: Uri = base_url
        .parse()
        .map_err(|_| format!("{base_url:?} is no address"))?;
    let host = uri
        .host()
        .ok_or_else(|| format!("{base_url:?} names no host"))?;
    let port = uri.port_u16().unwrap_or(0);
    // The same address on two machines is two.
    match crate::fleet::tunnel::worker_of(&uri) {
        Some(worker) => Ok(format!("{worker}@{host}:{port}")),
        None => Ok(format!("{host}:{port}")),
    }
}
