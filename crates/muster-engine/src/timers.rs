//! The one timer wheel: an ordered set of moments at which something must be looked at again.
//!
//! Each owner keeps the moment it is armed for, so that re-arming finds and removes the old
//! entry and the set holds at most one entry an owner. Fires nothing by itself.

use std::collections::BTreeSet;

use muster_wire::{ExecutionId, NodeId, Timestamp, WorkerId};

use crate::event::{InstanceKey, Waiter};

/// Who wants to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKey {
    /// An open execution: deadline, absorption, waiters, recovery.
    Execution(ExecutionId),
    /// An instance: beats, replacement, orphans.
    Instance(InstanceKey),
    /// A sync caller that waits for its turn without a row.
    Place(Waiter),
    /// The circuit of an LLM endpoint: its next check.
    Circuit(usize),
    /// A node: silence, recovery, loss.
    Node(NodeId),
    /// A worker: a start, a release, a place, a binding.
    Worker(WorkerId),
    /// The doubt about ourselves.
    Doubt,
}

/// The wheel.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Timestamp, TimerKey)>,
}

impl Timers {
    /// Moves an owner's entry from `armed` to `to`.
    pub(crate) fn arm(
        &mut self,
        armed: &mut Option<Timestamp>,
        to: Option<Timestamp>,
        key: impl Fn() -> TimerKey,
    ) {
        if *armed == to {
            return;
        }
        if let Some(old) = armed.take() {
            self.due.remove(&(old, key()));
        }
        if let Some(new) = to {
            self.due.insert((new, key()));
            *armed = Some(new);
        }
    }

    /// The earliest moment.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the earliest entry if it is due. Its owner's `armed` is then stale and must be
    /// cleared by whoever handles it.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<TimerKey> {
        if self.due.first()?.0 > now {
            return None;
        }
        self.due.pop_first().map(|(_, key)| key)
    }

    /// Instances whose entry is due, without taking them.
    pub(crate) fn due_instances(&self, now: Timestamp, into: &mut Vec<InstanceKey>) {
        for (at, key) in &self.due {
            if *at > now {
                break;
            }
            if let TimerKey::Instance(key) = key {
                into.push(key.clone());
            }
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether an entry is there.
    pub(crate) fn has(&self, at: Timestamp, key: TimerKey) -> bool {
        self.due.contains(&(at, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn re_arming_leaves_one_entry_and_popping_goes_by_time() {
        let mut timers = Timers::default();
        let (mut a, mut b) = (None, None);
        let key = |n| move || TimerKey::Place(Waiter(n));
        timers.arm(&mut a, Some(Timestamp(30)), key(1));
        timers.arm(&mut b, Some(Timestamp(20)), key(2));
        timers.arm(&mut a, Some(Timestamp(10)), key(1));
        assert_eq!(timers.len(), 2);
        assert_eq!(timers.pop(Timestamp(9)), None);
        assert_eq!(timers.pop(Timestamp(10)), Some(TimerKey::Place(Waiter(1))));
        timers.arm(&mut b, None, key(2));
        assert_eq!(timers.next(), None);
    }
}
