//! Facts about an instance, and the verdict computed from them when asked. Stores no state and
//! reads no clock: `now` is an argument.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::Timestamp;

use crate::event::InstanceKey;
use crate::row::Function;

/// What is known of one instance, each with its time. A later fact never overwrites an earlier
/// one of another kind.
#[derive(Debug, Clone)]
pub struct InstanceFacts {
    /// Which instance.
    pub key: InstanceKey,
    /// Where it is called; empty when another agent took its address.
    pub base_url: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// What it offers.
    pub functions: Arc<Vec<Function>>,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// When it last registered.
    pub renewed_at: Timestamp,
    /// The newest beat handed in; the shell may know a newer one.
    pub beat_at: Option<Timestamp>,
    /// The longest of its last gaps between beats.
    pub beat_interval: Duration,
    /// When it said goodbye.
    pub goodbye_at: Option<Timestamp>,
    /// When a supervisor said that it will start it again, and until when that is believed.
    pub restart_until: Option<Timestamp>,
    /// The last dial that failed, and what it said.
    pub dial_failed: Option<(Timestamp, Arc<str>)>,
    /// Since when dials have failed without one success between.
    pub dial_failing_since: Option<Timestamp>,
    /// The last probe after silence that failed, and what it said.
    pub probe_failed: Option<(Timestamp, Arc<str>)>,
    /// The last probe that it answered as itself.
    pub probe_alive_at: Option<Timestamp>,
    /// When a wait for it ran out.
    pub wait_ran_out_at: Option<Timestamp>,
    /// When it was found gone, and by what.
    pub gone: Option<(Timestamp, Arc<str>)>,
    /// Silence before this moment is forgiven: the plane itself was away.
    pub forgiven_until: Timestamp,
    /// The supervised process it is.
    pub worker: Option<Arc<str>>,
    /// Attempts in flight.
    pub in_flight: u32,
}

/// Where an instance is, with the evidence in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The word.
    pub state: InstanceState,
    /// Why, for a person.
    pub evidence: String,
    /// Since when, or how old the evidence is.
    pub at: Timestamp,
}

/// The words for an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceState {
    /// It beats.
    Active,
    /// It never beat yet.
    Unknown,
    /// Its beats are late.
    Degraded,
    /// A supervisor of ours is about to start it again.
    Restarting,
    /// It beats, but cannot be dialled at the address it gave.
    UnreachableCallback,
    /// It is down: calls are refused at once.
    Down,
}

impl InstanceState {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            InstanceState::Active => "active",
            InstanceState::Unknown => "unknown",
            InstanceState::Degraded => "degraded",
            InstanceState::Restarting => "restarting",
            InstanceState::UnreachableCallback => "unreachable_callback",
            InstanceState::Down => "down",
        }
    }
}
