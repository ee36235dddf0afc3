//! The queue of one agent: a window of its first entries, sync callers that wait without a row,
//! and counts of everything behind. Decides the order; starts nothing.
//!
//! The window is always a prefix of the stored queue: nothing that is stored lies before its
//! last entry without being in it. While it is being refilled, newcomers are kept aside and
//! merged with what was read, because that read may not have seen them.

use std::collections::{BTreeMap, VecDeque};

use muster_wire::{ExecutionId, RunId, Timestamp};
use rustc_hash::FxHashMap;

use crate::effect::Position;
use crate::event::{Submission, Waiter};
use crate::row::QueueKey;

/// Up to which place a position is counted exactly.
const EXACT_TO: u64 = 1_000;
/// Runs whose last turn is remembered; the others' is read from the store.
const TURNS_MAX: usize = 4_096;
/// Starts from which the rate is taken.
const STARTS: usize = 32;

/// A sync caller that waits for its turn without a row.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) submission: Box<Submission>,
    /// The execution that called, when it proved itself: it waits for this place.
    pub(crate) parent: Option<ExecutionId>,
    pub(crate) until: Timestamp,
    pub(crate) armed: Option<Timestamp>,
}

/// Who is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// A stored execution.
    Stored(QueueKey, ExecutionId),
    /// A waiting sync caller.
    Place(QueueKey),
    /// Somebody, but the window must be read first.
    Unread,
    /// Nobody.
    Nobody,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    window: BTreeMap<QueueKey, ExecutionId>,
    places: BTreeMap<QueueKey, Place>,
    place_keys: FxHashMap<Waiter, QueueKey>,
    counts: BTreeMap<(u8, u64), u64>,
    stored: u64,
    aside: Vec<(QueueKey, ExecutionId)>,
    loading: bool,
    turns: FxHashMap<RunId, u64>,
    starts: VecDeque<Timestamp>,
}

impl Queue {
    /// Stored entries.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Waiting sync callers.
    pub(crate) fn places(&self) -> u64 {
        self.places.len() as u64
    }

    /// Stored entries and waiting callers.
    pub(crate) fn len(&self) -> u64 {
        self.stored + self.places()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes over a count of a start.
    pub(crate) fn restore_count(&mut self, class: u8, turn: u64, count: u64) {
        *self.counts.entry((class, turn)).or_default() += count;
        self.stored += count;
    }

    /// The lowest turn that waits, of any class.
    pub(crate) fn lowest_turn(&self) -> Option<u64> {
        self.counts.keys().map(|(_, turn)| *turn).min()
    }

    /// The last turn of a run here: `Some(None)` when it is known to have none, `None` when only
    /// the store knows.
    pub(crate) fn last_turn(&self, run: &RunId) -> Option<Option<u64>> {
        match self.turns.get(run) {
            Some(turn) => Some(Some(*turn)),
            None if self.stored == 0 => Some(None),
            None => None,
        }
    }

    /// Counts a new stored entry. `run` is named when others may join it; the turn of a run of
    /// one is nobody's concern. Says whether its execution belongs in memory, and which one
    /// must leave it.
    pub(crate) fn enqueue(
        &mut self,
        key: QueueKey,
        id: ExecutionId,
        run: Option<&RunId>,
        window_max: usize,
    ) -> Enqueued {
        let complete = self.window.len() as u64 == self.stored && !self.loading;
        *self.counts.entry((key.class, key.turn)).or_default() += 1;
        self.stored += 1;
        if let Some(run) = run {
            self.note_turn(run, key.turn);
        }
        if self.loading {
            self.aside.push((key, id));
            return Enqueued {
                keep: true,
                dropped: None,
            };
        }
        let inside = match self.window.last_key_value() {
            Some((last, _)) => key < *last || (complete && self.window.len() < window_max),
            None => complete,
        };
        if !inside {
            return Enqueued {
                keep: false,
                dropped: None,
            };
        }
        self.window.insert(key, id);
        let dropped = if self.window.len() > window_max {
            self.window.pop_last().map(|(_, dropped)| dropped)
        } else {
            None
        };
        Enqueued {
            keep: true,
            dropped,
        }
    }

    /// Gives a caller its place.
    pub(crate) fn take_place(&mut self, key: QueueKey, place: Place) {
        self.place_keys.insert(place.submission.waiter, key);
        self.places.insert(key, place);
    }

    /// Takes a place away.
    pub(crate) fn leave_place(&mut self, key: &QueueKey) -> Option<Place> {
        let place = self.places.remove(key)?;
        self.place_keys.remove(&place.submission.waiter);
        Some(place)
    }

    /// The key of a waiter's place.
    pub(crate) fn place_of(&self, waiter: Waiter) -> Option<QueueKey> {
        self.place_keys.get(&waiter).copied()
    }

    /// A place.
    pub(crate) fn place_mut(&mut self, key: &QueueKey) -> Option<&mut Place> {
        self.places.get_mut(key)
    }

    /// The oldest waiting caller that an execution of ours waits for.
    pub(crate) fn oldest_nested_place(&self) -> Option<QueueKey> {
        let nested = self
            .places
            .iter()
            .filter(|(_, place)| place.parent.is_some());
        nested.map(|(key, _)| *key).min_by_key(|key| key.seq)
    }

    /// The places of calls that an execution makes, in order.
    pub(crate) fn places_of(&self, parent: &ExecutionId) -> Vec<QueueKey> {
        let of = |place: &Place| place.parent.as_ref() == Some(parent);
        let own = self.places.iter().filter(|(_, place)| of(place));
        own.map(|(key, _)| *key).collect()
    }

    /// Remembers the turn of a run's call that is in no queue yet.
    pub(crate) fn note_turn(&mut self, run: &RunId, turn: u64) {
        if self.turns.len() >= TURNS_MAX {
            self.turns.clear();
        }
        self.turns.insert(run.clone(), turn);
    }

    /// All waiting callers, in order.
    pub(crate) fn all_places(&self) -> Vec<QueueKey> {
        self.places.keys().copied().collect()
    }

    /// A stored entry left the queue: it started or ended.
    pub(crate) fn leave(&mut self, key: &QueueKey) {
        self.window.remove(key);
        self.aside.retain(|(aside, _)| aside != key);
        if let Some(count) = self.counts.get_mut(&(key.class, key.turn)) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&(key.class, key.turn));
            }
            self.stored -= 1;
        }
    }

    /// Whoever comes next.
    pub(crate) fn next(&self) -> Next {
        let stored = self.window.first_key_value();
        let place = self.places.first_key_value();
        match (stored, place) {
            (None, _) if self.stored > 0 => Next::Unread,
            (None, None) => Next::Nobody,
            (Some((key, id)), None) => Next::Stored(*key, id.clone()),
            (None, Some((key, _))) => Next::Place(*key),
            (Some((stored, id)), Some((place, _))) => {
                if stored < place {
                    Next::Stored(*stored, id.clone())
                } else {
                    Next::Place(*place)
                }
            }
        }
    }

    /// Entries in the window, in order.
    pub(crate) fn window(&self) -> impl Iterator<Item = (&QueueKey, &ExecutionId)> {
        self.window.iter()
    }

    /// Where to read on, when the window runs low: `Some(after)`.
    pub(crate) fn wants_more(&mut self, window_max: usize) -> Option<Option<QueueKey>> {
        let low = self.window.len() < window_max.div_ceil(2);
        if self.loading || !low || self.stored <= self.window.len() as u64 {
            return None;
        }
        self.loading = true;
        Some(self.window.last_key_value().map(|(last, _)| *last))
    }

    /// Merges what was read with what came meanwhile. Returns executions that must leave memory.
    pub(crate) fn loaded(
        &mut self,
        read: Vec<(QueueKey, ExecutionId)>,
        exhausted: bool,
        window_max: usize,
    ) -> Vec<ExecutionId> {
        self.loading = false;
        let edge = read
            .last()
            .map(|(key, _)| *key)
            .or(self.window.last_key_value().map(|(key, _)| *key));
        self.window.extend(read);
        let mut leaving = Vec::new();
        for (key, id) in std::mem::take(&mut self.aside) {
            if exhausted || edge.is_some_and(|edge| key < edge) {
                self.window.insert(key, id);
            } else if !self.window.contains_key(&key) {
                leaving.push(id);
            }
        }
        while self.window.len() > window_max {
            if let Some((_, id)) = self.window.pop_last() {
                leaving.push(id);
            }
        }
        leaving
    }

    /// A read could not be used; the next look asks again.
    pub(crate) fn load_again(&mut self) {
        self.loading = false;
    }

    /// Counts a start, for the rate.
    pub(crate) fn started(&mut self, now: Timestamp) {
        if self.starts.len() == STARTS {
            self.starts.pop_front();
        }
        self.starts.push_back(now);
    }

    /// Starts per minute over the last starts; `None` without enough of them.
    pub(crate) fn rate(&self, now: Timestamp) -> Option<f64> {
        let first = *self.starts.front()?;
        if self.starts.len() < 4 {
            return None;
        }
        let seconds = now.since(first).as_secs_f64().max(0.001);
        Some(self.starts.len() as f64 * 60.0 / seconds)
    }

    /// How many are before a key.
    pub(crate) fn position(&self, key: &QueueKey, now: Timestamp) -> Position {
        let mut ahead = 0;
        for ((class, turn), count) in &self.counts {
            if (*class, *turn) >= (key.class, key.turn) {
                break;
            }
            ahead += count;
            if ahead >= EXACT_TO {
                break;
            }
        }
        let mut exact = ahead < EXACT_TO;
        if exact {
            let same = self
                .counts
                .get(&(key.class, key.turn))
                .copied()
                .unwrap_or(0);
            let from = QueueKey { seq: 0, ..*key };
            let read = self
                .window
                .range(from..)
                .take_while(|(k, _)| (k.class, k.turn) == (key.class, key.turn));
            let (mut before, mut seen) = (0, 0);
            for (k, _) in read {
                seen += 1;
                if k < key {
                    before += 1;
                }
            }
            // What is not in the window comes after it; the newest entry is the last of its turn.
            let unread = same.saturating_sub(seen);
            let inside = self
                .window
                .last_key_value()
                .is_some_and(|(last, _)| key <= last);
            ahead += if inside {
                before
            } else {
                before + unread.saturating_sub(1)
            };
            exact = ahead < EXACT_TO;
        }
        ahead += self.places.range(..key).count() as u64;
        Position {
            ahead,
            exact,
            starts_in_ms: self.starts_in_ms(ahead, now),
        }
    }

    /// Milliseconds until somebody with so many before it is estimated to start.
    pub(crate) fn starts_in_ms(&self, ahead: u64, now: Timestamp) -> Option<u64> {
        let rate = self.rate(now).filter(|rate| *rate > 0.0)?;
        Some(((ahead + 1) as f64 * 60_000.0 / rate) as u64)
    }

    /// Recounts from the parts.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sum: u64 = self.counts.values().sum();
        if sum != self.stored {
            return Err(format!("stored {} but counts add up to {sum}", self.stored));
        }
        if self.window.len() as u64 > self.stored {
            return Err(format!(
                "window {} of {} stored",
                self.window.len(),
                self.stored
            ));
        }
        if self.places.len() != self.place_keys.len() {
            return Err("places and their waiters differ".into());
        }
        Ok(())
    }
}

/// What became of a new entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Enqueued {
    /// Its execution belongs in memory.
    pub(crate) keep: bool,
    /// This one no longer does.
    pub(crate) dropped: Option<ExecutionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(turn: u64, seq: u64) -> QueueKey {
        QueueKey {
            class: 5,
            turn,
            seq,
        }
    }
    fn id(n: u64) -> ExecutionId {
        ExecutionId::trusted(format!("e{n}"))
    }
    fn run(n: u64) -> RunId {
        RunId::trusted(format!("r{n}"))
    }

    #[test]
    fn the_window_stays_a_prefix_and_later_entries_stay_in_the_store() {
        let mut queue = Queue::default();
        for n in 0..3 {
            assert!(queue.enqueue(key(1, n), id(n), Some(&run(n)), 3).keep);
        }
        assert!(!queue.enqueue(key(1, 3), id(3), Some(&run(3)), 3).keep);
        let earlier = queue.enqueue(
            QueueKey {
                class: 0,
                turn: 1,
                seq: 4,
            },
            id(4),
            Some(&run(4)),
            3,
        );
        assert_eq!(
            earlier,
            Enqueued {
                keep: true,
                dropped: Some(id(2))
            }
        );
        assert_eq!(
            queue.next(),
            Next::Stored(
                QueueKey {
                    class: 0,
                    turn: 1,
                    seq: 4
                },
                id(4)
            )
        );
        assert_eq!(queue.stored(), 5);
        queue.check().unwrap();
    }

    #[test]
    fn a_newcomer_during_a_read_is_merged_by_its_key() {
        let mut queue = Queue::default();
        queue.restore_count(5, 1, 3);
        assert_eq!(queue.next(), Next::Unread);
        assert_eq!(queue.wants_more(2), Some(None));
        assert_eq!(queue.wants_more(2), None, "one read at a time");
        assert!(
            queue
                .enqueue(
                    QueueKey {
                        class: 1,
                        turn: 9,
                        seq: 9
                    },
                    id(9),
                    Some(&run(9)),
                    2
                )
                .keep
        );
        assert!(queue.enqueue(key(7, 10), id(10), Some(&run(10)), 2).keep);
        let leaving = queue.loaded(vec![(key(1, 1), id(1)), (key(1, 2), id(2))], false, 2);
        assert_eq!(
            queue.next(),
            Next::Stored(
                QueueKey {
                    class: 1,
                    turn: 9,
                    seq: 9
                },
                id(9)
            )
        );
        assert_eq!(leaving, vec![id(10), id(2)]);
        queue.check().unwrap();
    }

    #[test]
    fn positions_are_exact_until_a_thousand() {
        let mut queue = Queue::default();
        for n in 0..10 {
            queue.enqueue(key(n, n), id(n), Some(&run(1)), 4);
        }
        assert_eq!(queue.position(&key(0, 0), Timestamp(0)).ahead, 0);
        assert_eq!(queue.position(&key(9, 9), Timestamp(0)).ahead, 9);
        let mut long = Queue::default();
        long.restore_count(5, 1, 5_000);
        let far = long.position(&key(2, 9_999), Timestamp(0));
        assert_eq!((far.ahead, far.exact), (5_000, false));
    }
}
