//! Relay's envelope: `{ok:true, data}`, and around the plane's one error shape
//! `{ok:false, error:{code, message}}`. The words inside are the plane's own.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use muster_wire::{Category, ErrorBody};
use serde::Serialize;
use serde_json::json;

use crate::api::problem::Problem;

/// An answer that went well.
pub(crate) fn ok(status: StatusCode, data: impl Serialize) -> Response {
    (status, Json(json!({"ok": true, "data": data}))).into_response()
}

/// A refusal with a word of Relay's, of one of the plane's categories.
pub(crate) fn refuse(
    category: Category,
    code: &'static str,
    message: impl Into<String>,
) -> Problem {
    let mut problem = Problem::new(category, message);
    problem.body.error = code.to_owned();
    problem
}

/// Whether a path is of the surface that speaks in this envelope.
pub(crate) fn is_spoken_at(path: &str) -> bool {
    path.starts_with("/v1/")
}

/// The same answer in this envelope, where it is a refusal in the plane's shape.
pub(crate) fn wrap(mut response: Response) -> Response {
    let Some(body) = response.extensions_mut().remove::<Box<ErrorBody>>() else {
        return response;
    };
    let (status, retry_after) = (response.status(), body.retry_after);
    let error = json!({"code": body.error, "message": body.message});
    let mut wrapped = (status, Json(json!({"ok": false, "error": error}))).into_response();
    if let Some(seconds) = retry_after {
        let headers = wrapped.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refusal_keeps_its_status_word_sentence_and_patience() {
        let problem = refuse(Category::Conflict, "node_name_conflict", "taken").retry_after(7);
        let wrapped = wrap(problem.into_response());
        assert_eq!(wrapped.status(), 409);
        assert_eq!(wrapped.headers()[header::RETRY_AFTER], "7");
        let body = axum::body::to_bytes(wrapped.into_body(), 1_000)
            .await
            .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let error = json!({"code": "node_name_conflict", "message": "taken"});
        assert_eq!(body, json!({"ok": false, "error": error}));
    }
}
