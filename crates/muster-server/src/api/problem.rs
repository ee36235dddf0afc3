//! The one error shape as an HTTP answer. The header `Retry-After` always equals the field.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_engine::Refusal;
use muster_wire::{Category, ErrorBody};

/// An answer with a status of 400 and above.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body.
    pub body: Box<ErrorBody>,
}

/// What handlers return.
pub type Answer = Result<Response, Problem>;

impl Problem {
    /// A category with its own status and a sentence.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        let status = status(category.http_status());
        Self {
            status,
            body: Box::new(ErrorBody::new(category, message)),
        }
    }

    /// 400: the request itself is wrong.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(Category::Validation, message)
    }

    /// 404: there is no such object.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Category::NotFound, message)
    }

    /// 501: this plane does not have that surface.
    pub fn not_supported(what: &str) -> Self {
        Self::not_supported_by(what, "docs/agentfield.md")
    }

    /// 501 of the surface of Relay's engine.
    pub(crate) fn not_supported_of_relay(what: &str) -> Self {
        Self::not_supported_by(what, "docs/relay.md")
    }

    fn not_supported_by(what: &str, document: &str) -> Self {
        let mut problem = Self::new(
            Category::NotSupported,
            format!("{what} is not supported by this plane; see {document}"),
        );
        problem.body.details = Some(serde_json::json!({ "link": document }));
        problem
    }

    /// 500: a fault of ours. The cause is logged, not shown.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %cause, "a request failed by a fault of ours");
        Self::new(
            Category::InternalError,
            "a fault of ours; the plane's log has the cause",
        )
    }

    /// 503: the store or the engine cannot answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Category::ControlPlaneUnavailable, message).retry_after(1)
    }

    /// Sets seconds after which trying again makes sense.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.body.retry_after = Some(seconds);
        self
    }

    /// Names the execution it is about.
    #[must_use]
    pub fn execution(mut self, id: &str) -> Self {
        self.body.execution_id = Some(id.to_owned());
        self
    }

    /// Adds what helps.
    #[must_use]
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.body.details = Some(details);
        self
    }
}

/// A status number, 500 when it is none.
pub(crate) fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: status(refusal.http_status()),
            body: Box::new(refusal.body()),
        }
    }
}

impl From<ErrorBody> for Problem {
    fn from(body: ErrorBody) -> Self {
        Self {
            status: status(body.error_category.http_status()),
            body: Box::new(body),
        }
    }
}

impl From<crate::driver::DriverGone> for Problem {
    fn from(_: crate::driver::DriverGone) -> Self {
        Problem::unavailable("the plane has stopped deciding; its log says why")
    }
}

impl From<muster_store::StoreError> for Problem {
    fn from(error: muster_store::StoreError) -> Self {
        if let muster_store::StoreError::Unreadable(_) = &error {
            tracing::error!(error = %error, "a row could not be read");
            return Self::new(
                Category::InternalError,
                "a row that this needs cannot be read and is set aside; see `muster quarantine list`",
            );
        }
        tracing::error!(error = %error, "the store could not answer");
        Problem::unavailable("the store cannot answer now; the plane's log has the cause")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = serde_json::to_vec(&self.body).unwrap_or_default();
        let mut response = (
            self.status,
            [(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            )],
            text,
        )
            .into_response();
        if let Some(seconds) = self.body.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // Whoever speaks in another envelope finds the words here.
        response.extensions_mut().insert(self.body);
        response
    }
}
