//! The live end of the event sequence. What a reader missed it reads from the store, by number.

use std::sync::Arc;

use muster_engine::row::EventRow;
use tokio::sync::broadcast;

/// How many events a slow reader may be behind before it is told of the gap.
pub const BEHIND_MAX: usize = 1024;

/// Events after their commit, in order.
#[derive(Debug, Clone)]
pub struct EventFeed {
    sender: broadcast::Sender<Arc<EventRow>>,
}

impl Default for EventFeed {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(BEHIND_MAX).0,
        }
    }
}

impl EventFeed {
    /// Everything from now on. A lagging receiver is told how much it missed.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<EventRow>> {
        self.sender.subscribe()
    }

    /// Tells all readers; nobody listening is no error.
    pub(crate) fn publish(&self, event: &Arc<EventRow>) {
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(event.clone());
        }
    }
}
