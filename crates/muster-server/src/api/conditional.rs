//! `HEAD`, `ETag` and conditional `GET` on what a dashboard polls: an answer that the other side
//! has already is 304 and no body. The tag is of the bytes, so it never lies; the list is still
//! read. Only what an answer begins with, when it was given and up to which event it is complete,
//! is not part of it: that changes though nothing else does.

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;

/// What is polled. Streams and payloads are not here.
const POLLED: &[&str] = &[
    "/api/v1/executions",
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/steps",
    "/api/v1/nodes",
    "/api/v1/overview",
    "/api/v1/fleet",
    "/api/v1/fleet/nodes",
    "/api/v1/fleet/workers",
    "/api/v1/queues",
    "/api/v1/webhooks",
];

/// Answers conditional requests.
pub(super) async fn conditional(mut request: Request, next: Next) -> Response {
    let head = request.method() == Method::HEAD;
    let polled = request
        .extensions()
        .get::<MatchedPath>()
        .is_some_and(|path| is_polled(path.as_str()));
    if !polled || !(head || request.method() == Method::GET) {
        return next.run(request).await;
    }
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    // The same bytes have the same tag, whether they are sent or not.
    *request.method_mut() = Method::GET;
    let (mut parts, body) = next.run(request).await.into_parts();
    if parts.status != StatusCode::OK || !is_json(&parts.headers) {
        let body = if head { Body::empty() } else { body };
        return Response::from_parts(parts, body);
    }
    // The bodies of these routes are in memory already.
    let Ok(whole) = body.collect().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let bytes = whole.to_bytes();
    let own = parts
        .headers
        .get(header::ETAG)
        .and_then(|tag| tag.to_str().ok());
    let tag = own.map_or_else(|| tag_of(&bytes), str::to_owned);
    let fresh = known.is_some_and(|known| names(&known, &tag));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, tag);
    }
    let private = HeaderValue::from_static("private, no-cache");
    parts
        .headers
        .entry(header::CACHE_CONTROL)
        .or_insert(private);
    if fresh {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    if head {
        parts
            .headers
            .insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// The tag of a body. One that begins with the time of the answer and its position is tagged
/// without them, weakly: it is the same as long as it says the same.
fn tag_of(bytes: &[u8]) -> String {
    let rest = unstamped(bytes);
    if rest.len() + 1 < bytes.len() {
        return weak(rest);
    }
    format!("\"{}\"", &blake3::hash(rest).to_hex()[..32])
}

/// A weak tag.
pub(super) fn weak(bytes: &[u8]) -> String {
    format!("W/\"{}\"", &blake3::hash(bytes).to_hex()[..32])
}

/// A body without the `as_of` and `position` that it begins with.
fn unstamped(body: &[u8]) -> &[u8] {
    let mut rest = body.strip_prefix(b"{").unwrap_or(body);
    for name in ["\"as_of\":\"", "\"position\":\""] {
        let Some(value) = rest.strip_prefix(name.as_bytes()) else {
            continue;
        };
        let end = value.iter().position(|byte| *byte == b'"');
        rest = end.map_or(rest, |end| &value[end + 1..]);
        rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    rest
}

/// Whether a route is one of them, whatever its parameters are called.
fn is_polled(path: &str) -> bool {
    let plain = |segment: &str| !segment.starts_with('{');
    POLLED.iter().any(|polled| {
        let (mut one, mut other) = (polled.split('/'), path.split('/'));
        loop {
            match (one.next(), other.next()) {
                (None, None) => return true,
                (Some(a), Some(b)) if a == b || (!plain(a) && !plain(b)) => {}
                _ => return false,
            }
        }
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// Whether `If-None-Match` names a tag; a weak one is as good.
fn names(known: &HeaderValue, tag: &str) -> bool {
    let Ok(known) = known.to_str() else {
        return false;
    };
    let plain = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    let tag = plain(tag);
    known
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || plain(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_leaves_out_when_an_answer_was_made() {
        let body = |at: &str, n: u8| {
            format!("{{\"as_of\":\"{at}\",\"position\":\"p{at}\",\"n\":{n}}}").into_bytes()
        };
        assert_eq!(tag_of(&body("1", 1)), tag_of(&body("2", 1)));
        assert_ne!(tag_of(&body("1", 1)), tag_of(&body("1", 2)));
        assert!(tag_of(&body("1", 1)).starts_with("W/"));
        assert_ne!(tag_of(b"{\"n\":1}"), tag_of(b"{\"n\":2}"));
    }

    #[test]
    fn tags_are_compared_as_http_means_them() {
        let is = |known: &str| names(&HeaderValue::from_str(known).unwrap(), "\"a\"");
        assert!(is("\"a\"") && is("W/\"a\"") && is("\"b\", \"a\"") && is("*"));
        assert!(!is("\"b\"") && !is("a") && !is(""));
        assert!(is_polled("/api/v1/runs/{id}/steps"));
        assert!(!is_polled("/api/v1/executions/{id}") && !is_polled("/api/v1/events"));
    }
}
