//! Request bodies: read up to a bound, checked for depth, parsed. What a caller sent never
//! stands in an error message: only where in the text the fault is.

use std::convert::Infallible;

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_LENGTH;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use muster_wire::Category;
use serde::Deserialize;

use crate::api::problem::Problem;
use crate::app::App;
use crate::bodies::{Held, Patience};
use crate::json::{DEPTH_MAX, depth};

/// The bytes of a body, at most `server.max_body`.
pub(crate) struct RawBody(pub(crate) Bytes);

impl FromRequest<App> for RawBody {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let HeldBody(held) = HeldBody::from_request(request, app).await?;
        Ok(Self(held.bytes.clone()))
    }
}

/// The same with its place in the room for bodies, for what is kept while something slow is
/// done with it.
pub(crate) struct HeldBody(pub(crate) Held);

impl FromRequest<App> for HeldBody {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let max = usize::try_from(app.config.server.max_body.0).unwrap_or(usize::MAX);
        let read = app.room.read(request.into_body(), max, Patience::Usual);
        read.await.map(Self).map_err(|why| why.problem(max))
    }
}

/// Reads a whole body, but not more than so many bytes.
pub(crate) async fn read(request: Request, max: usize) -> Result<Bytes, Problem> {
    let announced = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > max as u64) {
        return Err(too_large(max));
    }
    match Limited::new(request.into_body(), max).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large(max)),
        Err(_) => Err(Problem::validation("the body broke off")),
    }
}

/// 413.
pub(crate) fn too_large(max: usize) -> Problem {
    Problem::new(
        Category::TooLarge,
        format!("the body is larger than {max} bytes"),
    )
    .details(serde_json::json!({ "bytes_max": max }))
}

/// Reads JSON of one shape; `shape` names it for the message of a refusal.
pub(crate) fn json<'a, T: Deserialize<'a>>(body: &'a [u8], shape: &str) -> Result<T, Problem> {
    check_depth(body)?;
    // An array would be taken for an object, member by member.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::validation(format!(
            "the body must be {shape}, and it is an array"
        )));
    }
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Problem::validation(if error.is_data() {
            format!("the body must be {shape}; it is not at line {line}, column {column}")
        } else {
            format!("the body is not JSON at line {line}, column {column}; it must be {shape}")
        })
    })
}

/// Refuses what nests too deep for those who read it later.
pub(crate) fn check_depth(json: &[u8]) -> Result<(), Problem> {
    if depth(json) > DEPTH_MAX {
        return Err(Problem::validation(format!(
            "the JSON nests deeper than {DEPTH_MAX}"
        )));
    }
    Ok(())
}

/// A query string of one shape. Unknown names are ignored where the SDK may send more; lists of
/// people's own deny them, and the refusal names the known ones.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: serde::de::DeserializeOwned, S: Send + Sync> axum::extract::FromRequestParts<S>
    for Query<T>
{
    type Rejection = Problem;
    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &S,
    ) -> Result<Self, Problem> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(error) => Err(Problem::validation(format!(
                "the query string cannot be read: {}",
                plain(&error.body_text())
            ))),
        }
    }
}

/// A parameter of the path, decoded; what cannot be decoded is empty and found nowhere.
pub(crate) struct PathText(pub(crate) String);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for PathText {
    type Rejection = Infallible;
    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &S,
    ) -> Result<Self, Infallible> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(path.map(|path| path.0).unwrap_or_default()))
    }
}

/// A message about a query without its values.
fn plain(text: &str) -> String {
    if let Some((_, unknown)) = text.split_once("unknown field `") {
        let (name, known) = unknown.split_once("`, expected ").unwrap_or_default();
        let known = known.trim_start_matches("one of ").replace("` or `", ", ");
        let known = known.replace('`', "");
        return if name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            format!("there is no parameter {name}; known are {known}")
        } else {
            format!("one of its parameters is unknown; known are {known}")
        };
    }
    let field = text
        .split_once(": ")
        .map_or("", |(_, rest)| rest.split(':').next().unwrap_or(""));
    let known = field.len() <= 32
        && field
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if known && !field.is_empty() {
        format!("{field} has another form")
    } else {
        "a value has another form".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_and_never_what() {
        #[derive(Debug, Deserialize)]
        struct Shape {
            #[allow(dead_code, reason = "only the parsing is tested")]
            key: u32,
        }
        let problem = json::<Shape>(br#"{"key":"canary-7f3"}"#, "{key}").unwrap_err();
        assert!(
            !problem.body.message.contains("canary"),
            "{}",
            problem.body.message
        );
        assert!(problem.body.message.contains("column"));
        assert_eq!(problem.status, 400);
        assert!(json::<Shape>(b"{\"key\":\xff}", "{key}").is_err());
        assert!(json::<Shape>(b"{\"key\":5}", "{key}").is_ok());
        assert!(json::<Shape>(b" [5]", "{key}").is_err());
    }
}
