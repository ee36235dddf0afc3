//! `[fleet]`: beats of nodes, and how long they and their workers count without a sign.

use muster_engine::fleet::FleetLimits;
use serde::{Deserialize, Serialize};

use super::{Span, SpanOrOff};

/// `[fleet]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fleet {
    /// How often our own daemon beats.
    pub heartbeat: Span,
    /// After so many beats without an acknowledgement a daemon gives its link up; after so many
    /// that were missed a node is suspect.
    pub ack_deadline: u32,
    /// How long a node is suspect before it is unreachable.
    pub node_grace: Span,
    /// How long a node is unreachable before its workers are lost.
    pub node_lost_after: SpanOrOff,
    /// How long a worker counts without a confirmation.
    pub binding_ttl: Span,
    /// How long a worker must live to count as started, where its placement does not say.
    pub start_window: Span,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            heartbeat: Span::seconds(5),
            ack_deadline: 3,
            node_grace: Span::seconds(60),
            node_lost_after: SpanOrOff::OFF,
            binding_ttl: Span::seconds(24 * 3600),
            start_window: Span::seconds(1),
        }
    }
}

impl Fleet {
    pub(super) fn limits(&self) -> FleetLimits {
        FleetLimits {
            heartbeat: self.heartbeat.0,
            beats_missed_max: self.ack_deadline.max(1),
            node_grace: self.node_grace.0,
            node_lost_after: self.node_lost_after.0,
            binding_ttl: self.binding_ttl.0,
            ..FleetLimits::default()
        }
    }
}
