//! The bounds and durations of the fleet's decisions.

use std::time::Duration;

/// The fleet's configuration. Defaults are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetLimits {
    /// How often our daemon beats.
    pub heartbeat: Duration,
    /// Beats that may be missed before a node is suspect.
    pub beats_missed_max: u32,
    /// How old a Relay broker's inventory may be while it counts as online.
    pub relay_inventory: Duration,
    /// How long a node may be suspect before it is unreachable; also the time between two
    /// changes of its state, and the grace after a start of the plane.
    pub node_grace: Duration,
    /// How long a node may be unreachable before its workers are lost; `None` is for ever.
    pub node_lost_after: Option<Duration>,
    /// How long a worker counts without a confirmation.
    pub binding_ttl: Duration,
    /// How long a start may take to be answered.
    pub start_answer: Duration,
    /// How long a release may take to be answered, on top of its grace.
    pub release_answer: Duration,
    /// Placements that may wait.
    pub queue_capacity: u32,
    /// Nodes there may be.
    pub nodes_max: u32,
    /// Living workers there may be.
    pub workers_max: u32,
    /// So many silent peers within one grace, and more than a third of all, raise the doubt.
    pub doubt_least: u32,
    /// How long a doubt lasts at most.
    pub doubt_max: Duration,
}

impl Default for FleetLimits {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(5),
            beats_missed_max: 3,
            relay_inventory: Duration::from_secs(130),
            node_grace: Duration::from_secs(60),
            node_lost_after: None,
            binding_ttl: Duration::from_secs(24 * 3600),
            start_answer: Duration::from_secs(45),
            release_answer: Duration::from_secs(15),
            queue_capacity: 10_000,
            nodes_max: 10_000,
            workers_max: 200_000,
            doubt_least: 4,
            doubt_max: Duration::from_secs(15 * 60),
        }
    }
}
