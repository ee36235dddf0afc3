//! `/ui/`: the dashboard's files. Which ones there are is the [`Site`]'s; here is how they are
//! served: what may be kept and for how long, what a page may load, and that every path of the
//! dashboard is the one page. Needs no key: what the page shows it asks of the API, as anybody.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muster_wire::Category;

use crate::api::body::PathText;
use crate::api::problem::Problem;
use crate::app::App;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
/// Kept for a year: the name changes with the content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// One file of the dashboard.
#[derive(Debug, Clone)]
pub struct SiteFile {
    /// Its bytes.
    pub bytes: Cow<'static, [u8]>,
    /// The same, packed with gzip.
    pub gzip: Option<Cow<'static, [u8]>>,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// A tag of its bytes, in quotes.
    pub etag: String,
    /// Whether its name changes with its content.
    pub is_immutable: bool,
}

/// Finds a file by its path below `/ui/`.
type Find = dyn Fn(&str) -> Option<SiteFile> + Send + Sync;

/// The dashboard that a plane serves.
#[derive(Clone)]
pub struct Site {
    /// The page, cut where its nonce goes.
    page: Arc<[String]>,
    find: Arc<Find>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Site(…)")
    }
}

impl Site {
    /// A page, the word in it that is replaced by a nonce, and its files.
    pub fn new(
        page: &str,
        nonce: &str,
        find: impl Fn(&str) -> Option<SiteFile> + Send + Sync + 'static,
    ) -> Self {
        Self {
            page: page.split(nonce).map(str::to_owned).collect(),
            find: Arc::new(find),
        }
    }

    /// A plane without a dashboard: one page that says so.
    pub fn none() -> Self {
        let page = "<!doctype html>\n<html lang=\"en\"><title>Muster</title>\n\
                    <h1>This plane has no dashboard</h1><p>See <a href=\"/docs\">its API</a>.</p></html>\n";
        Self::new(page, "\0", |_| None)
    }
}

/// The routes, which are in no document: people open them.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(root))
        .route("/ui", get(async || Redirect::permanent("/ui/")))
        .route("/ui/", get(async |State(app): State<App>| page(&app.site)))
        .route("/ui/{*path}", get(file))
}

/// A person with a browser is shown the dashboard; a program asks for something else.
async fn root(headers: HeaderMap) -> Response {
    match wants_a_page(&headers) {
        true => Redirect::to("/ui/").into_response(),
        false => Problem::not_found("there is no route /; see /docs").into_response(),
    }
}

async fn file(State(app): State<App>, PathText(path): PathText, headers: HeaderMap) -> Response {
    if let Some(file) = (app.site.find)(&path) {
        return serve(file, &headers);
    }
    // What the page's own router knows is the page; a missing script is not.
    match wants_a_page(&headers) {
        true => page(&app.site),
        false => {
            let mut missing = Problem::not_found("the dashboard has no such file").into_response();
            let fresh = HeaderValue::from_static("no-store");
            missing.headers_mut().insert(CACHE_CONTROL, fresh);
            missing
        }
    }
}

fn wants_a_page(headers: &HeaderMap) -> bool {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/html"));
    headers.get_all(ACCEPT).iter().any(accepts)
}

fn serve(file: SiteFile, headers: &HeaderMap) -> Response {
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|tags| {
            tags.split(',')
                .any(|tag| tag.trim().trim_start_matches("W/") == file.etag)
        });
    let packed = file.gzip.filter(|_| takes_gzip(headers));
    let mut answer = match (known, &packed) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, Some(packed)) => Body::from(bytes(packed.clone())).into_response(),
        (false, None) => Body::from(bytes(file.bytes)).into_response(),
    };
    let said = answer.headers_mut();
    said.insert(
        CACHE_CONTROL,
        if file.is_immutable {
            FOR_EVER
        } else {
            ASK_AGAIN
        },
    );
    said.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&file.etag) {
        said.insert(ETAG, tag);
    }
    if !known {
        said.insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
        if packed.is_some() {
            said.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    guard_headers(said);
    answer
}

fn bytes(from: Cow<'static, [u8]>) -> Bytes {
    match from {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    }
}

/// Whether gzip is among what the client unpacks, and not with a weight of zero.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter();
    codings
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let refused = weight
                .trim()
                .strip_prefix("q=")
                .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
            name.trim().eq_ignore_ascii_case("gzip") && !refused
        })
}

/// The page, with a nonce that no other answer has.
fn page(site: &Site) -> Response {
    let mut secret = [0u8; 16];
    if let Err(error) = getrandom::fill(&mut secret) {
        tracing::error!(error = %error, "no randomness for the nonce of a page");
        return Problem::new(Category::InternalError, "the page could not be made").into_response();
    }
    let nonce = STANDARD.encode(secret);
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; \
         img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    );
    let mut answer = site.page.join(&nonce).into_response();
    let said = answer.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    said.insert(CONTENT_TYPE, html);
    said.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        said.insert(CONTENT_SECURITY_POLICY, policy);
    }
    guard_headers(said);
    answer
}

fn guard_headers(said: &mut HeaderMap) {
    said.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    said.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    said.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_the_client_unpacks_it() {
        let takes = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(text));
            takes_gzip(&headers)
        };
        assert!(takes("gzip, deflate, br") && takes("br;q=1.0, GZIP;q=0.5"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("identity") && !takes("gzipped"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
