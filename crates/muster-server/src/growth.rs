//! How fast the store grows, and whether its disk is full: its size now and then, as far as
//! this process remembers, and what follows from it. An estimate; without an hour of samples
//! there is none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use muster_store::StoreSizes;
use muster_wire::Timestamp;
use parking_lot::Mutex;

/// Between two samples that are kept.
const EVERY: Duration = Duration::from_secs(600);
/// A week of them.
const KEPT: usize = 7 * 24 * 6;
/// Less says nothing of a day.
const SPAN_MIN: Duration = Duration::from_secs(3_600);
const DAY_S: f64 = 86_400.0;

/// Sizes over time.
#[derive(Debug)]
pub struct Growth {
    samples: Mutex<VecDeque<(Timestamp, u64)>>,
    full: AtomicBool,
    /// Bytes that new work may still take above the reserve, until the disk is looked at again.
    spare: AtomicI64,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            samples: Mutex::default(),
            full: AtomicBool::new(false),
            spare: AtomicI64::new(i64::MAX),
        }
    }
}

/// Bytes of a store that hold something, its logs aside: those come and go.
pub(crate) fn used(sizes: &StoreSizes) -> u64 {
    let files = sizes.kinds.iter().filter(|(kind, _)| *kind != "wal");
    files.map(|(_, bytes)| bytes).sum()
}

impl Growth {
    /// Takes a sample, unless the last one is young.
    pub(crate) fn sample(&self, now: Timestamp, bytes: u64) {
        let mut samples = self.samples.lock();
        if samples.back().is_some_and(|(at, _)| now.since(*at) < EVERY) {
            return;
        }
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back((now, bytes));
    }

    /// Whether its disk is below the reserve, as of the last look.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// A look at the disk saw so much above the reserve.
    pub(crate) fn set_spare(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.spare.store(bytes, Ordering::Relaxed);
    }

    /// New work of so many bytes is about to be stored. `true` when the room that the last look
    /// saw is used up by it: a burst must not overrun the reserve between two looks.
    pub(crate) fn spend(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let before = self.spare.fetch_sub(bytes, Ordering::Relaxed);
        before >= 0 && before < bytes
    }

    /// What a look at the disk saw; whether that is new.
    pub(crate) fn set_full(&self, full: bool) -> bool {
        self.full.swap(full, Ordering::Relaxed) != full
    }

    /// Bytes a day; negative when it shrinks, `None` while too little is known.
    pub(crate) fn a_day(&self, now: Timestamp, bytes: u64) -> Option<i64> {
        let first = *self.samples.lock().front()?;
        let span = now.since(first.0);
        if span < SPAN_MIN {
            return None;
        }
        let grown = bytes as f64 - first.1 as f64;
        Some((grown / span.as_secs_f64() * DAY_S) as i64)
    }
}

/// After how many days so much room is used up; `None` when it is not.
pub(crate) fn days_until(room: u64, a_day: i64) -> Option<f64> {
    (a_day > 0).then(|| (room as f64 / a_day as f64 * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_uses_up_what_the_last_look_saw_once() {
        let growth = Growth::default();
        assert!(!growth.spend(1_000_000), "nothing was looked at yet");
        growth.set_spare(100);
        assert!(!growth.spend(60));
        assert!(growth.spend(60));
        assert!(!growth.spend(60), "it is told once");
        growth.set_spare(100);
        assert!(!growth.spend(100));
        assert!(growth.spend(1));
    }

    #[test]
    fn a_day_s_growth_is_known_after_an_hour_and_not_before() {
        let growth = Growth::default();
        let at = |minutes: i64| Timestamp(minutes * 60_000_000);
        assert_eq!(growth.a_day(at(0), 0), None);
        for minute in 0..=60 {
            growth.sample(at(minute), 1_000 + minute as u64 * 10);
        }
        assert_eq!(growth.samples.lock().len(), 7, "one in ten minutes");
        assert_eq!(growth.a_day(at(59), 1_590), None);
        assert_eq!(growth.a_day(at(60), 1_600), Some(14_400));
        assert_eq!(growth.a_day(at(60), 400), Some(-14_400));
        assert_eq!(days_until(144_000, 14_400), Some(10.0));
        assert_eq!(days_until(144_000, -5), None);
        assert_eq!(days_until(144_000, 0), None);
    }
}
