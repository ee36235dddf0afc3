//! Enrols this machine at a plane: hands in a one-use token and keeps the identity that comes
//! back. Asks once; who tries again is its caller.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use muster_wire::ErrorBody;
use serde::{Deserialize, Serialize};

use crate::address::{AddressError, PlaneAddress};
use crate::dial::Dialer;
use crate::identity::{Identity, IdentityError};

/// How long the plane may take, from the dial to the last byte.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const ANSWER_MAX: usize = 64 << 10;
/// Where a token is handed in.
pub const ENROLL_PATH: &str = "/api/v1/fleet/enroll";

/// What a node says of itself when it is enrolled.
#[derive(Clone, Default, Serialize)]
pub struct Enrolment {
    /// The one-use token.
    pub token: String,
    /// The name that it wants; the token's own without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// How many workers it takes; 0 is without bound.
    pub max_workers: u32,
    /// The host's name.
    pub host: String,
}

/// Why a node was not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrollError {
    /// The plane could not be asked.
    #[error("the plane at {plane} cannot be reached: {why}")]
    Unreachable {
        /// Which.
        plane: String,
        /// What happened.
        why: String,
    },
    /// It said no.
    #[error("the plane refused the enrolment: {}", .0.message)]
    Refused(Box<ErrorBody>),
    /// What it said is no answer of a plane.
    #[error("the plane at {plane} gave an answer that cannot be used: {why}")]
    Unreadable {
        /// Which.
        plane: String,
        /// Why not.
        why: String,
    },
    /// The identity cannot be kept.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
}

#[derive(Deserialize)]
struct Enrolled {
    node_id: String,
    name: String,
    token: String,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    max_workers: u32,
}

/// Hands in a token and writes the identity. A state directory of another plane is refused
/// before the token is used, unless `force`.
///
/// # Errors
/// When the plane refuses or cannot be reached, or another identity is there.
pub async fn enroll(
    state: &Path,
    plane: &str,
    enrolment: &Enrolment,
    ca: Option<&Path>,
    force: bool,
) -> Result<Identity, EnrollError> {
    let address = PlaneAddress::parse(plane)?;
    if !force && let Some(old) = Identity::read(state)? {
        old.must_be(plane, None)?;
    }
    let answer = tokio::time::timeout(PATIENCE, ask(&address, enrolment, ca))
        .await
        .unwrap_or_else(|_| Err(io::Error::other("no answer within 30 s")));
    let (status, body) = answer.map_err(|error| EnrollError::Unreachable {
        plane: address.to_string(),
        why: error.to_string(),
    })?;
    let unreadable = |why: String| EnrollError::Unreadable {
        plane: address.to_string(),
        why,
    };
    if !status.is_success() {
        return Err(match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => EnrollError::Refused(Box::new(body)),
            Err(_) => unreadable(format!("status {}", status.as_u16())),
        });
    }
    // The body holds the token, so nothing of it is quoted.
    let enrolled: Enrolled = serde_json::from_slice(&body)
        .map_err(|_| unreadable("it names no node_id, name and token".into()))?;
    let identity = Identity {
        plane: address.to_string(),
        node_id: enrolled.node_id,
        name: enrolled.name,
        token: enrolled.token,
        labels: enrolled.labels,
        max_workers: enrolled.max_workers,
    };
    identity.write(state, force)?;
    Ok(identity)
}

async fn ask(
    address: &PlaneAddress,
    enrolment: &Enrolment,
    ca: Option<&Path>,
) -> io::Result<(StatusCode, Bytes)> {
    let wire = Dialer::new(address.clone(), ca)?.connect().await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(wire))
        .await
        .map_err(io::Error::other)?;
    let driver = tokio::spawn(connection);
    let body = serde_json::to_vec(enrolment).map_err(io::Error::other)?;
    let request = Request::post(address.path(ENROLL_PATH))
        .header(http::header::HOST, address.authority())
        .header(http::header::CONTENT_TYPE, "application/json")
        // With a token in the header, the plane takes any name of its host.
        .header(
            http::header::AUTHORIZATION,
            format!("Bearer {}", enrolment.token),
        )
        .header(
            http::header::USER_AGENT,
            concat!("muster-node/", env!("CARGO_PKG_VERSION")),
        )
        .body(Full::new(Bytes::from(body)))
        .map_err(io::Error::other)?;
    let answer = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(io::Error::other)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX)
            .collect()
            .await
            .map_err(io::Error::other)?
            .to_bytes();
        Ok((status, body))
    }
    .await;
    driver.abort();
    answer
}

/// The host's name, for people.
pub fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
