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
        }
    }

    /// The last number that was handed out or passed over.
    pub(crate) fn position(&self) -> u64 {
        self.after
    }

    /// Waits for what comes next. May be dropped and called again: nothing is lost.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn next(&mut self) -> StoreResult<Step> {
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
        let (after, check) = (self.after, self.unchecked);
        let (oldest, last, rows) = self
            .app
            .blocking(move |stores| {
                let store = &stores.decisions;
                let (oldest, last) = if check {
                    (store.oldest_event()?, store.last_seq()?)
                } else {
                    (None, 0)
                };
                Ok::<_, muster_store::StoreError>((oldest, last, store.events(after, PAGE)?))
            })
            .await?;
        if check {
            self.unchecked = false;
            let first = oldest.unwrap_or(last + 1);
            if after.saturating_add(1) < first || after > last {
                self.after = first - 1;
                return Ok(Some(Step::Reset(self.after)));
            }
        }
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
