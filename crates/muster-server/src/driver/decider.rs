//! What the driver needs of an engine. The second implementation is the tests', which fails on
//! demand.

use muster_engine::event::InstanceKey;
use muster_engine::row::Snapshot;
use muster_engine::{Effects, Engine, Event, Limits};
use muster_wire::Timestamp;

/// The decisions, as the driver runs them.
pub(crate) trait Decider: Sized + Send + 'static {
    /// Rebuilds from what the store holds; `out` is committed before anything else.
    fn restore(
        limits: Limits,
        key: [u8; 32],
        now: Timestamp,
        snapshot: Snapshot,
        out: &mut Effects,
    ) -> Self;
    /// Applies one event.
    fn step(&mut self, now: Timestamp, event: Event, out: &mut Effects);
    /// When a `Tick` could next change anything.
    fn next_deadline(&self) -> Option<Timestamp>;
    /// The number of the last event it decided.
    fn last_seq(&self) -> u64;
    /// Instances whose beat deadline is due.
    fn due_beats(&mut self, now: Timestamp, due: &mut Vec<InstanceKey>);
}

impl Decider for Engine {
    fn restore(
        limits: Limits,
        key: [u8; 32],
        now: Timestamp,
        snapshot: Snapshot,
        out: &mut Effects,
    ) -> Self {
        Engine::restore(limits, key, now, snapshot, out)
    }
    fn step(&mut self, now: Timestamp, event: Event, out: &mut Effects) {
        Engine::step(self, now, event, out);
    }
    fn next_deadline(&self) -> Option<Timestamp> {
        Engine::next_deadline(self)
    }
    fn last_seq(&self) -> u64 {
        Engine::last_seq(self)
    }
    fn due_beats(&mut self, now: Timestamp, due: &mut Vec<InstanceKey>) {
        Engine::due_beats(self, now, due);
    }
}
