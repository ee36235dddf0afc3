//! Opens connections to the plane: TCP, TLS where the address wants it, and a WebSocket on top.
//! Sets no deadline: its callers do. Knows no frame.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self};

use crate::address::PlaneAddress;

/// Bytes both ways, with or without TLS.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

/// A connection to the plane.
pub(crate) type Wire = Box<dyn Bytes>;

/// A WebSocket to the plane.
pub(crate) type Socket = WebSocketStream<Wire>;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// Nobody answered, or the network broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another end than a plane, or a broken one.
    #[error("the upgrade to a WebSocket failed: {0}")]
    Upgrade(String),
    /// The plane answered, and not by an upgrade.
    #[error("the plane answered {status}{}", said.as_deref().map(|said| format!(": {said}")).unwrap_or_default())]
    Status {
        /// The status.
        status: u16,
        /// What its body says, where it is an error of the plane.
        said: Option<String>,
    },
}

impl DialError {
    /// The plane does not take this node's token: trying faster does not help.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            DialError::Status {
                status: 401 | 403,
                ..
            }
        )
    }
}

/// Opens connections to one plane.
#[derive(Clone)]
pub(crate) struct Dialer {
    address: Arc<PlaneAddress>,
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// For a plane; `ca` is a file of certificates to trust besides the public ones.
    pub(crate) fn new(address: PlaneAddress, ca: Option<&Path>) -> io::Result<Self> {
        let tls = address.secure.then(|| connector(ca)).transpose()?;
        Ok(Self {
            address: Arc::new(address),
            tls,
        })
    }

    /// Whom it dials.
    pub(crate) fn address(&self) -> &PlaneAddress {
        &self.address
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> io::Result<Wire> {
        let (host, port) = (self.address.host.as_str(), self.address.port);
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }

    /// Connects and upgrades to a WebSocket at `path`, with the node's token.
    pub(crate) async fn socket(
        &self,
        path: &str,
        token: &str,
        headers: &[(&'static str, &str)],
        config: WebSocketConfig,
    ) -> Result<Socket, DialError> {
        let mut request = self
            .address
            .socket(path)
            .into_client_request()
            .map_err(|error| DialError::Upgrade(error.to_string()))?;
        let bearer = format!("Bearer {token}");
        for (name, value) in [("authorization", bearer.as_str())].iter().chain(headers) {
            // The value's own text stays out of the error: it may be the token.
            let value = HeaderValue::from_str(value).map_err(|_| {
                DialError::Upgrade(format!("the value for {name} holds a control character"))
            })?;
            request
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
        let wire = self.connect().await?;
        match tokio_tungstenite::client_async_with_config(request, wire, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => Err(status(&response)),
            Err(tungstenite::Error::Io(error)) => Err(error.into()),
            Err(error) => Err(DialError::Upgrade(error.to_string())),
        }
    }
}

/// What a refusal says, in the plane's error shape or the Relay's.
fn status(response: &Response<Option<Vec<u8>>>) -> DialError {
    let said = response
        .body()
        .as_deref()
        .and_then(|body| serde_json::from_slice::<serde_json::Value>(body).ok())
        .and_then(|body| {
            let error = body.get("error").unwrap_or(&body);
            let text = error.get("message").or(Some(error))?.as_str()?;
            Some(text.chars().take(300).collect())
        });
    DialError::Status {
        status: response.status().as_u16(),
        said,
    }
}

fn connector(ca: Option<&Path>) -> io::Result<TlsConnector> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = ca {
        let bad = |error: String| io::Error::other(format!("{}: {error}", path.display()));
        let all = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
        let mut found = 0;
        for certificate in all {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| bad(error.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(bad("it holds no certificate".into()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
