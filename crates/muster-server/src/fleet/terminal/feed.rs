//! What is on its way to one viewer. Output has a bound in bytes, beyond which it is dropped and
//! counted; whatever else a node says has its place in any case.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Output that may wait for one viewer.
pub(super) const OUTPUT_MAX: usize = 256 * 1024;
/// Other frames that may wait: acknowledgements of a viewer that does not read.
const OTHERS_MAX: usize = 1_024;

/// Something for a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// The screen.
    Ready {
        /// Bytes that repaint it.
        screen: Vec<u8>,
        /// Rows.
        rows: u16,
        /// Columns.
        cols: u16,
        /// How much output came before.
        offset: u64,
    },
    /// Output.
    Output {
        /// Text.
        chunk: String,
        /// Where it begins.
        offset: u64,
        /// Bytes before it that were dropped.
        dropped: u64,
    },
    /// Bytes were written.
    InputAck(u64),
    /// Something could not be done.
    Error {
        /// A word.
        code: String,
        /// A sentence.
        message: String,
    },
    /// The session at the node is over.
    Closed {
        /// A word.
        code: String,
        /// A sentence.
        message: String,
    },
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    others: usize,
    /// Bytes that were dropped and not yet told.
    dropped: u64,
    /// Where the next output begins when none is missing.
    expected: Option<u64>,
}

/// The queue of one viewer.
#[derive(Debug, Default)]
pub(super) struct Feed {
    queue: Mutex<Queue>,
    more: Notify,
}

impl Feed {
    /// The screen, painted anew: what waits before it is of no use any more.
    pub(super) fn ready(&self, screen: Vec<u8>, rows: u16, cols: u16, offset: u64) {
        let mut queue = self.queue.lock();
        queue.drop_output();
        if let Some(expected) = queue.expected {
            queue.dropped += offset.saturating_sub(expected);
        }
        queue.expected = Some(offset);
        queue
            .items
            .retain(|item| !matches!(item, Item::Ready { .. }));
        queue.items.push_back(Item::Ready {
            screen,
            rows,
            cols,
            offset,
        });
        self.more.notify_one();
    }

    /// Output. Dropped when too much waits.
    pub(super) fn output(&self, chunk: String, offset: u64) {
        let mut queue = self.queue.lock();
        let length = chunk.len() as u64;
        if let Some(expected) = queue.expected {
            queue.dropped += offset.saturating_sub(expected);
        }
        queue.expected = Some(offset + length);
        if queue.bytes + chunk.len() > OUTPUT_MAX {
            queue.dropped += length;
            return;
        }
        queue.bytes += chunk.len();
        let dropped = std::mem::take(&mut queue.dropped);
        queue.items.push_back(Item::Output {
            chunk,
            offset,
            dropped,
        });
        self.more.notify_one();
    }

    /// Anything else.
    pub(super) fn other(&self, item: Item) {
        let mut queue = self.queue.lock();
        let last = matches!(item, Item::Closed { .. });
        if queue.others >= OTHERS_MAX && !last {
            return;
        }
        if last && queue.dropped > 0 {
            // No output follows that could tell of it.
            let dropped = std::mem::take(&mut queue.dropped);
            let offset = queue.expected.unwrap_or_default();
            queue.items.push_back(Item::Output {
                chunk: String::new(),
                offset,
                dropped,
            });
        }
        queue.others += 1;
        queue.items.push_back(item);
        self.more.notify_one();
    }

    /// The next item. For one reader.
    pub(super) async fn next(&self) -> Item {
        loop {
            if let Some(item) = self.queue.lock().take() {
                return item;
            }
            self.more.notified().await;
        }
    }
}

impl Queue {
    fn take(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        match &item {
            Item::Output { chunk, .. } => self.bytes -= chunk.len(),
            Item::Ready { .. } => {}
            Item::InputAck(_) | Item::Error { .. } | Item::Closed { .. } => self.others -= 1,
        }
        Some(item)
    }

    /// Drops what waits of the output, and counts it.
    fn drop_output(&mut self) {
        let mut lost = 0;
        self.items.retain(|item| match item {
            Item::Output { chunk, dropped, .. } => {
                lost += chunk.len() as u64 + dropped;
                false
            }
            _ => true,
        });
        self.bytes = 0;
        self.dropped += lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_beyond_the_bound_is_dropped_and_counted_and_the_rest_has_its_place() {
        let feed = Feed::default();
        feed.ready(b"s".to_vec(), 24, 80, 10);
        let piece = "x".repeat(1024);
        for n in 0..300u64 {
            feed.output(piece.clone(), 10 + n * 1024);
        }
        feed.other(Item::InputAck(3));
        assert!(matches!(feed.next().await, Item::Ready { offset: 10, .. }));
        for _ in 0..256 {
            let item = feed.next().await;
            assert!(matches!(item, Item::Output { dropped: 0, .. }), "{item:?}");
        }
        assert_eq!(feed.next().await, Item::InputAck(3));
        feed.output("y".into(), 10 + 300 * 1024);
        let Item::Output { dropped, .. } = feed.next().await else {
            panic!("no output");
        };
        assert_eq!(dropped, 44 * 1024);
    }

    #[tokio::test]
    async fn what_the_node_dropped_is_counted_too_and_a_new_screen_replaces_what_waits() {
        let feed = Feed::default();
        feed.ready(Vec::new(), 24, 80, 0);
        feed.output("abc".into(), 0);
        feed.output("def".into(), 100);
        feed.ready(b"new".to_vec(), 24, 80, 200);
        let Item::Ready { screen, .. } = feed.next().await else {
            panic!("no screen");
        };
        assert_eq!(screen, b"new");
        feed.output("ghi".into(), 200);
        let Item::Output { dropped, .. } = feed.next().await else {
            panic!("no output");
        };
        assert_eq!(dropped, 200);
    }
}
