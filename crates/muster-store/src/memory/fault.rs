//! Faults for tests of whoever drives a store: commits that are refused, whose end is unknown,
//! or that take their time. Nothing here happens unless a test asks for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::Write;
use parking_lot::Mutex;

use crate::Commit;

/// What happens to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Refused: the disk is full. Trying again helps.
    Full,
    /// Refused for good.
    Broken,
    /// Its end is unknown, and it is not there.
    UnknownLost,
    /// Its end is unknown, and it is there.
    UnknownKept,
    /// Its end is unknown; it is there after [`super::MemoryStore::settle`], unless the lease was taken
    /// meanwhile.
    UnknownLate,
}

type Poison = Arc<dyn Fn(&Write) -> bool + Send + Sync>;

/// The faults that wait for their commits.
#[derive(Default)]
pub struct Faults {
    waiting: Mutex<VecDeque<Fault>>,
    slow: Mutex<Duration>,
    poison: Mutex<Option<Poison>>,
    late: Mutex<Option<Commit>>,
    committed: Mutex<u64>,
}

impl Faults {
    /// The next commits without a fault end with this one, so many of them.
    pub fn next(&self, fault: Fault, count: usize) {
        let mut waiting = self.waiting.lock();
        waiting.extend(std::iter::repeat_n(fault, count));
    }

    /// Every commit takes so long.
    pub fn slow(&self, by: Duration) {
        *self.slow.lock() = by;
    }

    /// Every commit that has such a write is refused for good.
    pub fn poison(&self, is_bad: impl Fn(&Write) -> bool + Send + Sync + 'static) {
        *self.poison.lock() = Some(Arc::new(is_bad));
    }

    /// Takes back everything that was asked for.
    pub fn clear(&self) {
        self.waiting.lock().clear();
        *self.slow.lock() = Duration::ZERO;
        *self.poison.lock() = None;
    }

    /// How many commits were made.
    pub fn committed(&self) -> u64 {
        *self.committed.lock()
    }

    pub(super) fn take(&self, commit: &Commit) -> Option<Fault> {
        let slow = *self.slow.lock();
        if !slow.is_zero() {
            std::thread::sleep(slow);
        }
        let poison = self.poison.lock().clone();
        if poison.is_some_and(|is_bad| commit.writes.iter().any(|write| is_bad(write))) {
            return Some(Fault::Broken);
        }
        self.waiting.lock().pop_front()
    }

    pub(super) fn count(&self) {
        *self.committed.lock() += 1;
    }

    pub(super) fn keep_late(&self, commit: &Commit) {
        *self.late.lock() = Some(commit.clone());
    }

    pub(super) fn take_late(&self) -> Option<Commit> {
        self.late.lock().take()
    }
}
