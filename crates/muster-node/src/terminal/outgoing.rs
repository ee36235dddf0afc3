//! The way out of the terminal socket: one queue in which bulk output has a bounded share, so
//! that frames that open, acknowledge and close always find room.

use std::sync::Arc;

use muster_wire::fleet::terminal::TerminalNews;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Frames of output that wait to be written, all sessions together. Beyond, a session does not
/// take more from its worker, whose holder drops and counts it.
pub(crate) const BULK: usize = 64;
/// Room that output can never take.
const RESERVE: usize = 64;

/// A frame on its way; its place is given back when it is dropped, written or not.
pub(crate) struct Outgoing {
    pub(crate) news: TerminalNews,
    _place: Option<OwnedSemaphorePermit>,
}

/// Puts frames into the queue.
#[derive(Clone)]
pub(crate) struct Out {
    queue: mpsc::Sender<Outgoing>,
    bulk: Arc<Semaphore>,
}

/// A place for one frame of output.
pub(crate) struct Place(OwnedSemaphorePermit);

impl Out {
    /// A queue and its reading end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Outgoing>) {
        let (queue, read) = mpsc::channel(BULK + RESERVE);
        let bulk = Arc::new(Semaphore::new(BULK));
        (Self { queue, bulk }, read)
    }

    /// Waits for a place for output. Safe to cancel.
    pub(crate) async fn place(&self) -> Option<Place> {
        self.bulk.clone().acquire_owned().await.ok().map(Place)
    }

    /// Puts output into its place.
    pub(crate) async fn bulk(&self, place: Place, news: TerminalNews) {
        let _ = self
            .queue
            .send(Outgoing {
                news,
                _place: Some(place.0),
            })
            .await;
    }

    /// Puts a frame into the queue that must arrive.
    pub(crate) async fn tell(&self, news: TerminalNews) {
        // A closed queue is a socket that is gone, and its sessions with it.
        let _ = self.queue.send(Outgoing { news, _place: None }).await;
    }

    /// The same for one who must not wait; whether there was room.
    pub(crate) fn try_tell(&self, news: TerminalNews) -> bool {
        self.queue.try_send(Outgoing { news, _place: None }).is_ok()
    }
}
