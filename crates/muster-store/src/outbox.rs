//! The messages for webhooks: written by the commit of the end they tell of, delivered by
//! whoever claims them. A claim has a token and an end, so that a message whose deliverer died
//! is taken up again, and a deliverer that was thought dead can settle nothing any more.
//! Knows no HTTP.

use std::sync::Arc;

use muster_engine::row::DeliveryRow;
use muster_wire::{ExecutionId, RunId, Status, Timestamp};
use serde::Deserialize;

use crate::StoreResult;

/// A message and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Number of the event it tells of.
    pub seq: u64,
    /// The execution.
    pub execution: ExecutionId,
    /// Its run.
    pub run: RunId,
    /// The terminal status.
    pub status: Status,
    /// When the execution ended.
    pub at: Timestamp,
    /// Where to, as the shell wrote it.
    pub webhook: Arc<str>,
    /// From when it counts as not taken: its end, or its redrive.
    pub since: Timestamp,
    /// How often it was sent since then.
    pub tries: u32,
    /// When it goes out next; `None` when it was delivered or is dead.
    pub next_at: Option<Timestamp>,
    /// Whether somebody delivers it now.
    pub claimed: bool,
    /// When it was last sent.
    pub tried_at: Option<Timestamp>,
    /// When it was taken.
    pub delivered_at: Option<Timestamp>,
    /// When it was given up.
    pub dead_at: Option<Timestamp>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The HTTP status of the last answer.
    pub last_status: Option<u16>,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be delivered, now or later.
    Pending,
    /// Taken by its receiver.
    Delivered,
    /// Given up.
    Dead,
}

impl DeliveryState {
    /// All of them.
    pub const ALL: [DeliveryState; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// The word in lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

impl Delivery {
    /// Where it is.
    pub fn state(&self) -> DeliveryState {
        match (self.delivered_at, self.dead_at) {
            (Some(_), _) => DeliveryState::Delivered,
            (None, Some(_)) => DeliveryState::Dead,
            (None, None) => DeliveryState::Pending,
        }
    }

    /// As it was written.
    pub fn written(row: &DeliveryRow) -> Self {
        Self {
            seq: row.seq,
            execution: row.execution.clone(),
            run: row.run.clone(),
            status: row.status,
            at: row.at,
            webhook: row.webhook.clone(),
            since: row.at,
            tries: 0,
            next_at: Some(row.at),
            claimed: false,
            tried_at: None,
            delivered_at: None,
            dead_at: None,
            last_error: None,
            last_status: None,
        }
    }
}

/// What became of one claimed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Its receiver took it.
    Delivered {
        /// When.
        at: Timestamp,
        /// The answer's status.
        status: u16,
    },
    /// It was sent and not taken; it goes out again.
    Failed {
        /// When it was sent.
        at: Timestamp,
        /// When it goes out again.
        next_at: Timestamp,
        /// What went wrong.
        error: String,
        /// The answer's status, if there was one.
        status: Option<u16>,
    },
    /// It is given up.
    Dead {
        /// When.
        at: Timestamp,
        /// What went wrong.
        error: String,
        /// The answer's status, if there was one.
        status: Option<u16>,
    },
    /// It was not sent after all, and goes out later.
    Postponed {
        /// When.
        next_at: Timestamp,
    },
}

/// Which messages.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Only in this state.
    pub state: Option<DeliveryState>,
    /// Only of this execution.
    pub execution: Option<ExecutionId>,
    /// Only before this number: newest come first.
    pub before: Option<u64>,
}

/// How many messages are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    /// To be delivered.
    pub pending: u64,
    /// Given up and still kept.
    pub dead: u64,
    /// From when the oldest pending one counts as not taken.
    pub oldest: Option<Timestamp>,
}

/// The messages for webhooks.
pub trait Outbox {
    /// Targets with pending messages, by name after `after`, each with the moment when its next
    /// message is due.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn delivery_targets(
        &self,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<(Arc<str>, Timestamp)>>;

    /// Claims messages of a target that are due, earliest due first.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn claim_deliveries(
        &self,
        target: &str,
        now: Timestamp,
        claim: &Claim,
        limit: usize,
    ) -> StoreResult<Vec<Delivery>>;

    /// Writes what became of claimed messages, in one transaction. Those whose claim is another's
    /// by now stay as they are.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn settle_deliveries(&self, token: &str, settled: &[(u64, Settled)]) -> StoreResult<()>;

    /// Makes what is claimed due again: for the start of the only process that delivers.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_deliveries(&self, now: Timestamp) -> StoreResult<u64>;

    /// Gives up unclaimed messages of a target that count as not taken since before a moment.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn bury_deliveries(
        &self,
        target: &str,
        since_before: Timestamp,
        now: Timestamp,
        error: &str,
        limit: usize,
    ) -> StoreResult<u64>;

    /// Messages, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> StoreResult<Vec<Delivery>>;

    /// One message.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn delivery(&self, seq: u64) -> StoreResult<Option<Delivery>>;

    /// Makes dead messages due again, with all their tries: one, or the oldest so many.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn redrive_deliveries(
        &self,
        only: Option<u64>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<u64>;

    /// How many messages are where.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn delivery_counts(&self) -> StoreResult<DeliveryCounts>;
}

/// A claim on messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Whose.
    pub token: String,
    /// When others may take them.
    pub until: Timestamp,
}

/// The member of a webhook's text that names its target, by which messages are bounded.
pub(crate) fn target(webhook: &str) -> Arc<str> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        target: String,
    }
    // What names none is bounded together.
    serde_json::from_str::<Named>(webhook)
        .map(|named| named.target)
        .unwrap_or_default()
        .into()
}
