//! The audit log: who changed what may be done, and what was decided by hand.

use serde::{Deserialize, Serialize};

use super::At;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// Its number: later lines have larger ones.
    pub n: u64,
    /// When.
    pub at: At,
    /// Who.
    pub principal: String,
    /// What: `key.created`, `hold.set`, …
    pub action: String,
    /// On what.
    pub object: String,
    /// Details for a person.
    pub detail: String,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The plane's time of this answer.
    pub as_of: At,
    /// Newest first.
    pub lines: Vec<AuditLine>,
    /// Where the next page begins; `null` at the end.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_cursor: Option<String>,
}
