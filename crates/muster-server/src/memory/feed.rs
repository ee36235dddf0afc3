//! The live end of the memory change feed: the latest changes in the order of their numbers,
//! and readers that pull from there. Readers share the frames, so a slow one costs nothing but
//! its place; what it missed it is told, and may read from the store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use muster_store::annex::{MemoryEvent, MemoryEventFilter};
use muster_store::{Annex, StoreResult};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::frame::Change;
use super::pattern::EventFilter;

/// How many changes a reader may be behind.
pub const BEHIND_MAX: usize = 1024;
/// How many bytes of changes are kept for readers that are behind.
const BEHIND_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a change waits for one with a lower number. Numbers are given inside transactions
/// that end in any order; one that never comes must not stop the rest.
const ORDER_WAIT: Duration = Duration::from_millis(250);

/// The latest changes.
#[derive(Debug)]
pub struct ChangeFeed {
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    /// Whether `last` was read from the store.
    primed: bool,
    /// In order, without a doubt about what is before them.
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
    /// The newest number that was let through.
    last: u64,
    /// The newest number that is no longer here.
    evicted: u64,
    /// Came before one with a lower number.
    early: BTreeMap<u64, Arc<Change>>,
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self {
            ring: Mutex::default(),
            newest: watch::channel(0).0,
        }
    }
}

/// What a reader gets.
#[derive(Debug)]
pub enum Next {
    /// The next change it wants.
    Change(Arc<Change>),
    /// It was too slow: what came after this number is no longer here.
    Missed {
        /// The last number it has seen.
        after: u64,
        /// The last number it did not get.
        until: u64,
    },
}

/// One reader's place.
#[derive(Debug)]
pub struct Reader {
    feed: Arc<ChangeFeed>,
    newest: watch::Receiver<u64>,
    filter: EventFilter,
    at: u64,
}

impl ChangeFeed {
    /// Learns the newest number from the store, once. Blocks.
    pub(super) fn prime(&self, annex: &dyn Annex) -> StoreResult<()> {
        if self.ring.lock().primed {
            return Ok(());
        }
        let newest = annex.memory_events(&MemoryEventFilter {
            limit: 1,
            ..MemoryEventFilter::default()
        })?;
        let last = newest.last().map_or(0, |event| event.seq);
        let mut ring = self.ring.lock();
        if !ring.primed {
            ring.primed = true;
            ring.last = last;
            ring.evicted = last;
        }
        Ok(())
    }

    /// Takes a change that is in the store.
    pub(super) fn publish(self: &Arc<Self>, event: MemoryEvent) {
        let change = Arc::new(Change::new(event));
        let waits = {
            let mut ring = self.ring.lock();
            if change.seq <= ring.last {
                // Too late to be in order: readers that want it all read the store.
                return;
            }
            ring.early.insert(change.seq, change);
            ring.let_through(false);
            self.newest.send_replace(ring.last);
            !ring.early.is_empty()
        };
        if waits && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let feed = self.clone();
            runtime.spawn(async move {
                tokio::time::sleep(ORDER_WAIT).await;
                feed.stop_waiting();
            });
        }
    }

    fn stop_waiting(&self) {
        let mut ring = self.ring.lock();
        ring.let_through(true);
        self.newest.send_replace(ring.last);
    }

    pub(super) fn reader(self: &Arc<Self>, after: Option<u64>, filter: EventFilter) -> Reader {
        let newest = self.newest.subscribe();
        let last = self.ring.lock().last;
        Reader {
            feed: self.clone(),
            newest,
            filter,
            // A number from the future is from another store: start at the end.
            at: after.unwrap_or(last).min(last),
        }
    }
}

impl Ring {
    fn let_through(&mut self, skip_gaps: bool) {
        while let Some((&seq, _)) = self.early.first_key_value() {
            if seq != self.last + 1 && !skip_gaps && self.early.len() < BEHIND_MAX {
                break;
            }
            let Some((_, change)) = self.early.pop_first() else {
                break;
            };
            self.last = seq;
            self.bytes += change.text.len();
            self.changes.push_back(change);
        }
        while self.changes.len() > BEHIND_MAX || self.bytes > BEHIND_BYTES_MAX {
            let Some(oldest) = self.changes.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
            self.evicted = oldest.seq;
        }
    }

    /// The first change after a number.
    fn after(&self, at: u64) -> Option<Arc<Change>> {
        let index = self.changes.partition_point(|change| change.seq <= at);
        self.changes.get(index).cloned()
    }
}

impl Reader {
    /// Waits for the next change this reader wants. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Next {
        loop {
            self.newest.borrow_and_update();
            {
                let ring = self.feed.ring.lock();
                if self.at < ring.evicted {
                    let after = std::mem::replace(&mut self.at, ring.evicted);
                    return Next::Missed {
                        after,
                        until: ring.evicted,
                    };
                }
                while let Some(change) = ring.after(self.at) {
                    self.at = change.seq;
                    if self.filter.wants(&change) {
                        return Next::Change(change);
                    }
                }
            }
            // The feed lives as long as its readers: the sender cannot be gone.
            let _ = self.newest.changed().await;
        }
    }

    /// What it wants.
    pub fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// Moves on: everything up to this number was read from the store.
    pub fn skip_to(&mut self, seq: u64) {
        self.at = self.at.max(seq);
    }

    /// Goes back to a number, to be told what was missed since.
    pub fn resume_at(&mut self, seq: u64) {
        self.at = seq;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_store::annex::{MemoryAction, MemoryScope};
    use muster_wire::Timestamp;

    use super::*;

    fn event(seq: u64) -> MemoryEvent {
        MemoryEvent {
            seq,
            id: format!("evt_{seq}"),
            at: Timestamp(0),
            scope: MemoryScope {
                scope: Arc::from("global"),
                id: Arc::from("global"),
            },
            key: format!("k{seq}"),
            action: MemoryAction::Delete,
            data: None,
            previous: None,
            agent: None,
            actor: None,
            workflow: None,
        }
    }

    async fn seq(reader: &mut Reader) -> u64 {
        let next = tokio::time::timeout(Duration::from_secs(5), reader.next()).await;
        match next.expect("a change in time") {
            Next::Change(change) => change.seq,
            Next::Missed { after, until } => panic!("missed {after}..{until}"),
        }
    }

    #[tokio::test]
    async fn changes_come_in_the_order_of_their_numbers() {
        let feed = Arc::new(ChangeFeed::default());
        let mut reader = feed.reader(None, EventFilter::default());
        for number in [2, 3, 1] {
            feed.publish(event(number));
        }
        assert_eq!(seq(&mut reader).await, 1);
        assert_eq!(seq(&mut reader).await, 2);
        assert_eq!(seq(&mut reader).await, 3);
    }

    #[tokio::test]
    async fn a_number_that_never_comes_does_not_stop_the_rest() {
        let feed = Arc::new(ChangeFeed::default());
        let mut reader = feed.reader(None, EventFilter::default());
        feed.publish(event(1));
        feed.publish(event(3));
        assert_eq!(seq(&mut reader).await, 1);
        assert_eq!(seq(&mut reader).await, 3);
        feed.publish(event(2));
        feed.publish(event(4));
        assert_eq!(seq(&mut reader).await, 4);
    }

    #[tokio::test]
    async fn a_slow_reader_is_told_what_it_missed_and_goes_on() {
        let feed = Arc::new(ChangeFeed::default());
        let mut slow = feed.reader(None, EventFilter::default());
        for number in 1..=(BEHIND_MAX as u64 + 10) {
            feed.publish(event(number));
        }
        let Next::Missed { after, until } = slow.next().await else {
            panic!("not told");
        };
        assert_eq!((after, until), (0, 10));
        assert_eq!(seq(&mut slow).await, 11);
    }

    #[tokio::test]
    async fn a_filter_passes_only_what_it_wants() {
        let feed = Arc::new(ChangeFeed::default());
        let filter = EventFilter {
            patterns: vec!["k2".into(), "x*".into()],
            ..EventFilter::default()
        };
        let mut reader = feed.reader(Some(99), filter);
        for number in 1..=3 {
            feed.publish(event(number));
        }
        assert_eq!(seq(&mut reader).await, 2);
    }
}
