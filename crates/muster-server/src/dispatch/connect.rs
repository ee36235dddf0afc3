//! Dials an agent: resolves, checks every address, connects within the dial time-out, speaks
//! TLS for https; a worker of a node is reached through that node's link. Follows nothing and
//! uses no proxy. Whatever fails here failed before a byte of a request left.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::DialRules;
use crate::fleet::Fleet;
use crate::fleet::tunnel::{self, TunnelStream};

/// Makes connections to agents.
#[derive(Clone)]
pub struct Connector {
    rules: DialRules,
    dial_timeout: Duration,
    tls: TlsConnector,
    fleet: Option<Arc<Fleet>>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// A connector under these rules.
    pub fn new(rules: DialRules, dial_timeout: Duration) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider);
        let config = builder
            .with_safe_default_protocol_versions()
            .unwrap_or_else(|error| unreachable!("ring has the default versions: {error}"))
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            rules,
            dial_timeout,
            tls: TlsConnector::from(Arc::new(config)),
            fleet: None,
        }
    }

    /// The same that reaches workers through the links of their nodes.
    #[must_use]
    pub fn with_fleet(self, fleet: Arc<Fleet>) -> Self {
        Self {
            fleet: Some(fleet),
            ..self
        }
    }

    /// The same for what the operator named in the configuration: the lists for agents say
    /// nothing about it.
    pub(crate) fn for_the_operator(&self) -> Self {
        Self {
            rules: self.rules.without_lists(),
            ..self.clone()
        }
    }

    /// The rules.
    pub fn rules(&self) -> &DialRules {
        &self.rules
    }

    /// Looks whether somebody takes connections where this address points.
    ///
    /// # Errors
    /// When the address may not be dialled, or nobody answers.
    pub async fn knock(&self, uri: &Uri) -> io::Result<()> {
        match tunnel::worker_of(uri) {
            Some(worker) => self.tunnel(uri, worker).await.map(drop),
            None => self.dial(uri).await.map(drop),
        }
    }

    /// Opens a connection through the node where a worker runs.
    async fn tunnel(&self, uri: &Uri, worker: &str) -> io::Result<TunnelStream> {
        let Some(fleet) = &self.fleet else {
            let text = "addresses of workers are not dialled for this";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        };
        let port = uri.port_u16().unwrap_or(80);
        fleet.tunnel(worker, port, self.dial_timeout).await
    }

    /// Opens a bare TCP connection to where this address points.
    async fn dial(&self, uri: &Uri) -> io::Result<TcpStream> {
        let late = || {
            let limit = self.dial_timeout;
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no connection within {limit:?}"),
            )
        };
        tokio::time::timeout(self.dial_timeout, self.dial_now(uri))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn dial_now(&self, uri: &Uri) -> io::Result<TcpStream> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let addresses: Vec<SocketAddr> = match host.parse() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => tokio::net::lookup_host((host, port)).await?.collect(),
        };
        for address in &addresses {
            self.rules
                .check(*address)
                .map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn connect(self, uri: Uri) -> io::Result<Stream> {
        if let Some(worker) = tunnel::worker_of(&uri) {
            let stream = self.tunnel(&uri, worker).await?;
            return Ok(Stream::Tunnel(Box::new(TokioIo::new(stream))));
        }
        let stream = self.dial(&uri).await?;
        if uri.scheme_str() != Some("https") {
            return Ok(Stream::Plain(TokioIo::new(stream)));
        }
        let host = uri
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_owned();
        let name = ServerName::try_from(host)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let hands = tokio::time::timeout(self.dial_timeout, self.tls.connect(name, stream));
        let stream = hands
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time"))??;
        Ok(Stream::Tls(Box::new(TokioIo::new(stream))))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection: of its own, with or without TLS, or through a node.
pub enum Stream {
    /// TCP.
    Plain(TokioIo<TcpStream>),
    /// TLS over TCP.
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
    /// Through a node's link.
    Tunnel(Box<TokioIo<TunnelStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tunnel(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tunnel(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tunnel(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tunnel(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
            Stream::Tunnel(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tunnel(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }
}
