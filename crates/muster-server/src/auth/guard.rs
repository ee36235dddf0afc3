//! The guard in front of every route, as one table read from top to bottom: host, origin, key,
//! scope, agent. It puts the [`Caller`] into the request. A caller on loopback without a key
//! costs three header look-ups and one reference count.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, FORWARDED, USER_AGENT};
use http::{HeaderMap, StatusCode};
use muster_wire::{Category, Timestamp};

use super::cookie::{self, Shown};
use super::origin::{self, Foreign};
use super::{Auth, Credential, Identity, Key, Need, NotTaken, table};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::relay::envelope;

/// What of a program's name is shown.
const AGENT_SHOWN: usize = 40;

/// Lets a request pass with its [`Caller`], or answers why not.
pub async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let relay = envelope::is_spoken_at(request.uri().path());
    let response = match admit(&app.auth, &request, app.clock.now()) {
        Ok(caller) => {
            let credential = caller.credential().cloned();
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            match credential {
                Some(credential) if is_stream(&response) => while_taken(response, app, credential),
                _ => response,
            }
        }
        Err(problem) => {
            app.meters.denied(&problem.body.error_category);
            problem.into_response()
        }
    };
    match relay {
        true => envelope::wrap(response),
        false => response,
    }
}

fn admit(auth: &Auth, request: &Request, now: Timestamp) -> Result<Caller, Problem> {
    let headers = request.headers();
    let key = find_key(auth, headers, now);
    // A cookie does not count: a name that was made to point here has one, too.
    if !matches!(key, Some(Ok(_)))
        && !auth
            .hosts
            .names_us(request.uri(), request.version(), headers)
    {
        return Err(refuse(Foreign::Host));
    }
    let has_body = !request.body().is_end_stream();
    origin::check(request.method(), request.uri(), headers, has_body).map_err(refuse)?;
    if has_body
        && headers
            .get(CONTENT_ENCODING)
            .is_some_and(|coding| coding != "identity")
    {
        // Nothing is unpacked, so that nothing small becomes large in memory.
        return Err(Problem::validation(
            "compressed bodies are not taken: send it without Content-Encoding",
        ));
    }

    let matched = request
        .extensions()
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    let (need, agent_segment) = table::look_up(request.method(), matched);
    let shown = match key {
        Some(Ok(key)) => Shown::Good(Credential::of_key(key)),
        Some(Err(_)) if need == Need::Nothing => Shown::Nothing,
        Some(Err(why)) => return Err(unauthenticated(why.message())),
        None => cookie::look(auth, request, now)?,
    };
    let was_signed_in = matches!(shown, Shown::Over);
    let who = match shown {
        Shown::Good(credential) => {
            credential.key().note_use(|| by(request));
            Caller::with(credential)
        }
        _ if need == Need::Nothing => Caller::new(Identity::nobody()),
        _ => match without_key(auth, need, is_local(request)) {
            Ok(who) => Caller::new(who),
            Err(_) if was_signed_in => {
                return Err(unauthenticated(NotTaken::SignedOut.message()));
            }
            Err(problem) => return Err(problem),
        },
    };
    if !who.grants.satisfy(need) {
        return Err(Problem::new(
            Category::PermissionDenied,
            format!("this needs a key with the scope {}", need.scopes()),
        )
        .details(serde_json::json!({ "needs": need.scopes() })));
    }
    if let Some(segment) = agent_segment {
        let named = request
            .uri()
            .path()
            .split('/')
            .skip(1)
            .nth(segment)
            .unwrap_or("");
        // The path is compared as it came: an agent id has nothing to encode.
        if !who.grants.act_as(named) {
            return Err(Problem::new(
                Category::PermissionDenied,
                "this key is bound to another agent",
            ));
        }
    }
    Ok(who)
}

/// Whether an answer goes on for as long as its reader likes.
fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// A stream that ends with the key or the session with which it was opened.
fn while_taken(response: Response, app: App, credential: Credential) -> Response {
    let (parts, body) = response.into_parts();
    let over = async move {
        let _held = credential.hold();
        credential.until_over(&app.auth.ring, &app.clock).await;
    };
    let body = body.into_data_stream().take_until(Box::pin(over));
    Response::from_parts(parts, Body::from_stream(body))
}

/// From where a key is used, for people: an address, and what the program calls itself.
fn by(request: &Request) -> String {
    let place = place_of(request).map_or_else(|| "somewhere".to_owned(), |ip| ip.to_string());
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.and_then(|value| value.to_str().ok()).unwrap_or("");
    match agent.split(' ').next().unwrap_or("") {
        "" => place,
        name if name.starts_with("Mozilla/") => format!("{place}, a browser"),
        name => {
            let name: String = name.chars().take(AGENT_SHOWN).collect();
            format!("{place}, {name}")
        }
    }
}

/// The address of whoever sent a request; of a proxy, when one passed it on.
pub(crate) fn place_of(request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(peer.0.ip().to_canonical())
}

fn without_key(auth: &Auth, need: Need, local: bool) -> Result<Arc<Identity>, Problem> {
    if need.always_needs_a_key() {
        return Err(unauthenticated(
            "this needs a key, on loopback too: send X-API-Key; the owner's is in owner.key in the data directory",
        ));
    }
    if !local || auth.require_key {
        return Err(unauthenticated(
            "this needs a key: send X-API-Key, or Authorization: Bearer",
        ));
    }
    Ok(Identity::loopback())
}

fn find_key(
    auth: &Auth,
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<Result<Arc<Key>, NotTaken>> {
    let text = match headers.get("x-api-key") {
        Some(value) => value.to_str(),
        None => {
            let value = headers.get(AUTHORIZATION)?.to_str().unwrap_or("");
            let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Some(Err(NotTaken::Malformed));
            }
            Ok(token)
        }
    };
    Some(match text {
        Ok(text) => auth.ring.find(text.trim(), now),
        Err(_) => Err(NotTaken::Malformed),
    })
}

/// Whether the caller is on this machine. What a proxy passed on is not: the proxy is.
pub(crate) fn is_local(request: &Request) -> bool {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let headers = request.headers();
    peer.is_some_and(|ConnectInfo(peer)| is_loopback(peer.ip()))
        && !headers.contains_key(FORWARDED)
        && !headers.contains_key("x-forwarded-for")
        && !headers.contains_key("x-real-ip")
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn unauthenticated(message: &str) -> Problem {
    Problem::new(Category::Unauthenticated, message)
}

fn refuse(why: Foreign) -> Problem {
    match why {
        Foreign::Host => {
            let mut problem = Problem::new(
                Category::PermissionDenied,
                "the Host of this request is no name of this plane; use its address, or add the name to server.allowed_hosts",
            );
            problem.status = StatusCode::MISDIRECTED_REQUEST;
            problem
        }
        Foreign::Origin => Problem::new(
            Category::PermissionDenied,
            "requests from pages of other origins are refused",
        ),
        Foreign::ContentType => Problem::validation(
            "a body that comes from a browser must be sent as Content-Type: application/json",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_loopback_address_is_loopback() {
        for (ip, local) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("::ffff:10.0.0.1", false),
            ("192.168.0.1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(is_loopback(ip.parse().unwrap()), local, "{ip}");
        }
    }
}
