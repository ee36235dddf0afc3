//! The cookie of a session: how it is set, and which requests may use it. A browser sends it by
//! itself, so it counts only for what comes from a page of this plane.

use std::sync::Arc;

use axum::extract::Request;
use http::header::{COOKIE, HeaderMap, HeaderValue, ORIGIN, UPGRADE};
use http::{Method, Uri};
use muster_wire::{Category, Timestamp};

use super::session::LIFE;
use super::{Auth, Credential, KeyText};
use crate::api::problem::Problem;

/// What of a session a request shows.
pub(super) enum Shown {
    /// No cookie, or one that does not count here.
    Nothing,
    /// One that is not taken, or no longer.
    Over,
    /// One that is taken.
    Good(Credential),
}

/// The session of a request whose origin was looked at already.
///
/// # Errors
/// When it would change something, and nothing says that a page of this plane asks.
pub(super) fn look(auth: &Auth, request: &Request, now: Timestamp) -> Result<Shown, Problem> {
    let headers = request.headers();
    let mut texts = values(headers, auth.cookie()).peekable();
    if texts.peek().is_none() {
        return Ok(Shown::Nothing);
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    match site {
        None | Some(b"same-origin" | b"none") => {}
        // Another port of this machine is the same site, and somebody else.
        Some(_) => return Ok(Shown::Nothing),
    }
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let acts = !reads || headers.contains_key(UPGRADE);
    if acts && !headers.contains_key(ORIGIN) && site != Some(b"same-origin") {
        return Err(Problem::new(
            Category::PermissionDenied,
            "a session acts only from the dashboard's own pages; a program sends a key in X-API-Key",
        ));
    }
    let good = texts.find_map(|text| auth.ring.find_session(text, now).ok());
    Ok(good.map_or(Shown::Over, Shown::Good))
}

/// The values of a cookie; several when it was set for several paths.
fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = headers.get_all(COOKIE).iter();
    pairs
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(move |pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name && !value.is_empty()).then_some(value)
        })
}

impl Auth {
    /// The sessions whose cookies a browser sends along, whatever it asks for.
    pub(crate) fn sessions_in(&self, headers: &HeaderMap, now: Timestamp) -> Vec<Arc<str>> {
        values(headers, self.cookie())
            .filter_map(|text| self.ring.find_session(text, now).ok())
            .filter_map(|found| Some(found.session()?.record.id.as_str().into()))
            .collect()
    }

    /// The header that gives a browser its session.
    pub(crate) fn set_cookie(&self, text: &KeyText, is_secure: bool) -> String {
        self.cookie_line(text.expose(), LIFE.as_secs(), is_secure)
    }

    /// The header that takes it away.
    pub(crate) fn clear_cookie(&self, is_secure: bool) -> String {
        self.cookie_line("", 0, is_secure)
    }

    fn cookie_line(&self, value: &str, seconds: u64, is_secure: bool) -> String {
        let name = self.cookie();
        let secure = if is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }
}

/// Whether a browser reaches the plane over TLS: the origin of its page says so, or the proxy
/// that ends TLS. Whoever lies gets a cookie that their own browser does not send.
pub(crate) fn is_secure(uri: &Uri, headers: &HeaderMap) -> bool {
    let begins = |name: &str, with: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.to_ascii_lowercase().starts_with(with))
    };
    uri.scheme_str() == Some("https")
        || begins("origin", "https://")
        || begins("x-forwarded-proto", "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; muster=one;b=2"));
        headers.append(
            COOKIE,
            HeaderValue::from_static("muster2=no; muster=two; muster="),
        );
        let found: Vec<&str> = values(&headers, "muster").collect();
        assert_eq!(found, ["one", "two"]);
        assert_eq!(values(&headers, "muste").count(), 0);
    }

    #[test]
    fn tls_is_seen_in_the_origin_or_told_by_a_proxy() {
        let uri: Uri = "/api/v1/session".parse().unwrap();
        let says = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            is_secure(&uri, &headers)
        };
        assert!(says("origin", "https://plane.example") && says("x-forwarded-proto", "https"));
        assert!(!says("origin", "http://localhost:8080") && !says("x-forwarded-proto", "http"));
    }
}
