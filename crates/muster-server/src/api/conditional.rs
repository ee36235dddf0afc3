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
    let tag = format!("\"{}\"", &blake3::hash(unstamped(&bytes)).to_hex()[..32]);
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
    known
        .split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_as_http_means_them() {
        let is = |known: &str| names(&HeaderValue::from_str(known).unwrap(), "\"a\"");
        assert!(is("\"a\"") && is("W/\"a\"") && is("\"b\", \"a\"") && is("*"));
        assert!(!is("\"b\"") && !is("a") && !is(""));
        assert!(is_polled("/api/v1/runs/{id}/steps"));
        assert!(!is_polled("/api/v1/executions/{id}") && !is_polled("/api/v1/events"));
    }
}
