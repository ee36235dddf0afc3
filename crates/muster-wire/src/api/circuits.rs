//! The answer of `GET /api/v1/llm-circuits`.

use serde::Serialize;

use super::At;
use crate::status::words;

words!(
    /// Whether calls that need an endpoint are let through.
    CircuitWord {
        /// They are.
        Closed = "closed",
        /// They are refused.
        Open = "open",
        /// A few are tried.
        HalfOpen = "half_open",
    }
);

/// The circuits of all LLM endpoints.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Circuits {
    /// Whether endpoints are checked at all.
    pub enabled: bool,
    /// One for each endpoint of the configuration.
    pub circuits: Vec<Circuit>,
}

/// The circuit of an LLM endpoint.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Circuit {
    /// The endpoint's name.
    pub endpoint: String,
    /// Whether calls that need it are let through.
    pub state: CircuitWord,
    /// Failed checks in a row.
    pub failures: u32,
    /// When it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<At>,
    /// When it is checked next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_check_at: Option<At>,
    /// When it was last checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<At>,
    /// Whether that check was good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
    /// What that check said, when it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
