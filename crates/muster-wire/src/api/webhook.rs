//! Messages for webhooks, as they are shown.

use serde::{Deserialize, Serialize};

use super::At;
use super::word::DeliveryStateWord;
use crate::status::words;
use crate::{ExecutionId, RunId};

words!(
    /// What became of a message.
    DeliveryState {
        /// It is to be sent, or to be sent again.
        Pending = "pending",
        /// Its receiver took it.
        Delivered = "delivered",
        /// It was given up.
        Dead = "dead",
    }
);

/// A message about the end of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookMessage {
    /// Its id: the receiver sees it as `webhook-id`, the same with each try.
    pub id: String,
    /// What it tells: `execution.succeeded`, `execution.failed`, `execution.cancelled` or
    /// `execution.timed_out`.
    pub r#type: String,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its run.
    pub run_id: RunId,
    /// Scheme, host and port of its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What became of it.
    pub state: DeliveryStateWord,
    /// How often it was sent.
    pub tries: u32,
    /// When the execution ended.
    pub created_at: At,
    /// When it is sent next; absent while it is on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<At>,
    /// When it was last sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<At>,
    /// When it was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<At>,
    /// When it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_at: Option<At>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The HTTP status of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_status: Option<u16>,
}
