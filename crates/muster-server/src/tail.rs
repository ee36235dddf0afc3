//! Follows the event sequence from any position: pages from the store, then the live feed, and
//! back to the store whenever the two do not join. No event is skipped and none comes twice.
//! A slow reader is bounded by the feed, told of it, and continues from the store. Knows
//! nothing of HTTP.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_engine::row::EventRow;
use muster_store::StoreResult;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;

/// Rows of one read.
const PAGE: usize = 256;

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The next event of the sequence.
    Event(Arc<EventRow>),
    /// It was too slow for the live feed by so many events; they come from the store now.
    Gap(u64),
    /// Its position is not there any more: it continues after this number.
    Reset(u64),
    /// The plane stops.
    End,
}

/// One reader.
pub(crate) struct Tail {
    app: App,
    live: Receiver<Arc<EventRow>>,
    /// The last number that was handed out or passed over.
    after: u64,
    /// Whether what comes next is in the store.
    behind: bool,
    page: VecDeque<EventRow>,
    /// A position that is not known to be in the store any more.
    unchecked: bool,
    /// Found gone, and not told yet.
    reset: bool,
}

impl Tail {
    /// From now on.
    pub(crate) fn from_now(app: App) -> Self {
        // Subscribed first: what is committed in between comes twice, and is dropped by number.
        let live = app.feed.subscribe();
        let after = app.driver.vitals().last_seq;
        Self {
            app,
            live,
            after,
            behind: false,
            page: VecDeque::new(),
            unchecked: false,
            reset: false,
        }
    }

    /// After a number.
    pub(crate) fn after(app: App, after: u64) -> Self {
        let live = app.feed.subscribe();
        Self {
            app,
            live,
            after,
            behind: true,
            page: VecDeque::new(),
            unchecked: true,
            reset: false,
        }
    }

    /// The last number that was handed out or passed over.
    pub(crate) fn position(&self) -> u64 {
        self.after
    }

    /// Looks whether its position is still there; where it is not, the oldest takes its place
    /// and the next step says so.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn settle(&mut self) -> StoreResult<()> {
        if !self.unchecked {
            return Ok(());
        }
        let (oldest, last) = self
            .app
            .blocking(|stores| {
                let store = &stores.decisions;
                Ok::<_, muster_store::StoreError>((store.oldest_event()?, store.last_seq()?))
            })
            .await?;
        let first = oldest.unwrap_or(last + 1);
        if self.after.saturating_add(1) < first || self.after > last {
            self.after = first - 1;
            self.reset = true;
        }
        self.unchecked = false;
        Ok(())
    }

    /// Waits for what comes next. May be dropped and called again: nothing is lost.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn next(&mut self) -> StoreResult<Step> {
        self.settle().await?;
        if std::mem::take(&mut self.reset) {
            return Ok(Step::Reset(self.after));
        }
        loop {
            if let Some(row) = self.page.pop_front() {
                self.after = row.seq;
                return Ok(Step::Event(Arc::new(row)));
            }
            if self.app.stop.is_cancelled() {
                return Ok(Step::End);
            }
            if self.behind {
                if let Some(step) = self.read_page().await? {
                    return Ok(step);
                }
                continue;
            }
            let stop = self.app.stop.clone();
            let received = tokio::select! {
                biased;
                received = self.live.recv() => received,
                () = stop.cancelled() => return Ok(Step::End),
            };
            match received {
                Ok(row) if row.seq <= self.after => {}
                Ok(row) if row.seq == self.after + 1 => {
                    self.after = row.seq;
                    return Ok(Step::Event(row));
                }
                // Something is missing between; it was committed before, so the store has it.
                Ok(_) => self.behind = true,
                Err(RecvError::Lagged(missed)) => {
                    self.behind = true;
                    return Ok(Step::Gap(missed));
                }
                Err(RecvError::Closed) => return Ok(Step::End),
            }
        }
    }

    /// Reads on in the store; at its end, the live feed goes on.
    async fn read_page(&mut self) -> StoreResult<Option<Step>> {
        // Anew before each read: what is committed after it is live, and what was live before
        // it cannot fill the feed meanwhile.
        self.live = self.app.feed.subscribe();
        let after = self.after;
        let rows = self
            .app
            .blocking(move |stores| stores.decisions.events(after, PAGE))
            .await?;
        // Retention went on while it read: the position fell out of the store.
        if let Some(row) = rows.first()
            && row.seq != after + 1
        {
            self.after = row.seq - 1;
            return Ok(Some(Step::Reset(self.after)));
        }
        self.behind = rows.len() == PAGE;
        self.page = rows.into();
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_engine::Write;
    use muster_engine::row::EventKind;
    use muster_store::{Commit, CommitEnd, LeaseId, MemoryStore, Stores};
    use muster_wire::Timestamp;

    use crate::feed::BEHIND_MAX;
    use crate::{Config, Plane, Running};

    async fn plane() -> Running {
        let store = Arc::new(MemoryStore::default());
        let stores = Stores {
            decisions: store.clone(),
            annex: store,
        };
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], 0).into();
        Plane::start(config, stores).await.expect("a plane")
    }

    fn row(seq: u64) -> EventRow {
        EventRow {
            seq,
            at: Timestamp(1),
            kind: EventKind::PlaneStarted,
            execution: None,
            run: None,
            agent: None,
            function: None,
            instance: None,
            node: None,
            worker: None,
            attempt: None,
            status: None,
            reason: None,
            category: None,
            text: None,
        }
    }

    /// Commits so many events and publishes them, as the driver would.
    fn happen(app: &App, n: u64) {
        let store = &app.stores.decisions;
        let lease = store
            .take_lease(LeaseId::default(), "test")
            .expect("a lease");
        let after = store.last_seq().expect("a number");
        let rows: Vec<Arc<EventRow>> = (1..=n).map(|i| Arc::new(row(after + i))).collect();
        let end = store.commit(&Commit {
            audit: Vec::new(),
            lease,
            after_seq: after,
            last_seq: after + n,
            writes: rows
                .iter()
                .map(|row| Write::InsertEvent(row.clone()))
                .collect(),
        });
        assert!(matches!(end, CommitEnd::Committed), "{end:?}");
        for row in &rows {
            app.feed.publish(row);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_slow_reader_is_told_of_the_gap_and_continues_from_the_store() {
        let plane = plane().await;
        let mut tail = Tail::from_now(plane.app.clone());
        let start = tail.position();
        let n = BEHIND_MAX as u64 + 500;
        happen(&plane.app, n);
        assert_eq!(tail.next().await.unwrap(), Step::Gap(500));
        for seq in start + 1..=start + n {
            let Step::Event(row) = tail.next().await.unwrap() else {
                panic!("{seq} is not there");
            };
            assert_eq!(row.seq, seq);
        }
        happen(&plane.app, 1);
        let Step::Event(row) = tail.next().await.unwrap() else {
            panic!("the live one is not there");
        };
        assert_eq!(row.seq, start + n + 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_position_before_the_oldest_or_behind_the_last_is_reset() {
        let plane = plane().await;
        happen(&plane.app, 3);
        let last = plane.app.stores.decisions.last_seq().unwrap();
        for position in [last + 1, u64::MAX] {
            let mut tail = Tail::after(plane.app.clone(), position);
            assert_eq!(tail.next().await.unwrap(), Step::Reset(0));
            assert!(matches!(tail.next().await.unwrap(), Step::Event(row) if row.seq == 1));
        }
        let mut tail = Tail::after(plane.app.clone(), last);
        happen(&plane.app, 1);
        assert!(matches!(tail.next().await.unwrap(), Step::Event(row) if row.seq == last + 1));
    }
}
