//! Which node stands at the door: the one whose token it shows. A node's sockets take nothing
//! else.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST};
use muster_wire::{Category, NodeId};

use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{Credential, Held, NotTaken};

/// A node that showed its token. What it opens lasts as long as the token is taken.
pub(crate) struct Admitted {
    /// Which.
    pub(crate) node: NodeId,
    credential: Credential,
    _held: Held,
}

impl Admitted {
    /// Waits until its token is no longer taken.
    pub(crate) async fn until_over(&self, app: &App) -> NotTaken {
        self.credential.until_over(&app.auth.ring, &app.clock).await
    }
}

/// The node whose token these headers carry.
///
/// # Errors
/// 401 without a token that is known; 403 with the key of somebody else.
pub(crate) fn node_of(app: &App, headers: &HeaderMap) -> Result<Admitted, Problem> {
    let refused = |message: &str| Problem::new(Category::Unauthenticated, message);
    let value = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused(
            "a node shows its token as Authorization: Bearer; see `muster node enroll`",
        ));
    }
    let key = app
        .auth
        .ring
        .find(token.trim(), app.clock.now())
        .map_err(|why| refused(why.message()))?;
    let node = key.identity.node.clone().ok_or_else(|| {
        Problem::new(
            Category::PermissionDenied,
            "this key is no node's: it takes one with the scope node:ID",
        )
    })?;
    let credential = Credential::of_key(key);
    Ok(Admitted {
        node,
        _held: credential.hold(),
        credential,
    })
}

/// The plane's address as whoever sent this request reaches it.
pub(crate) fn plane_url(app: &App, headers: &HeaderMap) -> String {
    if let Some(url) = &app.config.server.advertise {
        return url.trim_end_matches('/').to_owned();
    }
    let text = |name: http::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(HOST).map_or_else(
        || app.config.server.listen.to_string(),
        |host| host.trim().to_owned(),
    );
    let scheme = match text(http::HeaderName::from_static("x-forwarded-proto")) {
        Some(proto) if proto.eq_ignore_ascii_case("https") => "https",
        _ => "http",
    };
    format!("{scheme}://{host}")
}
