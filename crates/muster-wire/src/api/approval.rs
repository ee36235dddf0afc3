//! Approvals: what agents ask people.

use serde::{Deserialize, Serialize};

use super::At;
use super::word::ApprovalStateWord;
use crate::status::words;
use crate::{AgentId, ExecutionId, RunId};

words!(
    /// What became of what was asked.
    ApprovalState {
        /// Nobody has decided yet.
        Pending = "pending",
        /// Go on.
        Approved = "approved",
        /// Do not.
        Rejected = "rejected",
        /// Go on, with changes.
        RequestChanges = "request_changes",
        /// Nobody decided in time.
        Expired = "expired",
        /// Nobody can decide any more: its execution has ended.
        Closed = "closed",
    }
);

/// What an agent asked a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalItem {
    /// The agent's own id of it.
    pub approval_request_id: String,
    /// The execution that waits.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// Its agent.
    pub agent: AgentId,
    /// What became of it.
    pub status: ApprovalStateWord,
    /// Where what is asked can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_url: Option<String>,
    /// When it was asked.
    pub requested_at: At,
    /// When it expires.
    pub expires_at: At,
    /// When it was decided, or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responded_at: Option<At>,
    /// Who decided, or why it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// What the person wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// What came of telling the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The person's answer: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<serde_json::Value>,
}

/// A page of approvals: pending ones first, then the others; each newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalList {
    /// The plane's time of this answer.
    pub as_of: At,
    /// The event up to which it is complete, opaque.
    pub position: String,
    /// The page.
    pub approvals: Vec<ApprovalItem>,
    /// How many are in the page.
    pub count: u64,
    /// Behind the last one; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
