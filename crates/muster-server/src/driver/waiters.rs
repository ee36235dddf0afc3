//! Who waits for a reply. They outlive the engine: a restored one finds them here.

use std::sync::atomic::{AtomicU64, Ordering};

use muster_engine::Reply;
use muster_engine::event::Waiter;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

const SHARDS: usize = 16;

/// The parked callers.
#[derive(Debug, Default)]
pub struct Waiters {
    next: AtomicU64,
    shards: [Mutex<FxHashMap<u64, oneshot::Sender<Reply>>>; SHARDS],
}

impl Waiters {
    /// Parks somebody.
    pub fn park(&self) -> (Waiter, oneshot::Receiver<Reply>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        self.shard(id).lock().insert(id, sender);
        (Waiter(id), receiver)
    }

    /// Answers; nobody there is no error: they hung up.
    pub fn answer(&self, waiter: Waiter, reply: Reply) {
        let sender = self.shard(waiter.0).lock().remove(&waiter.0);
        if let Some(sender) = sender {
            let _ = sender.send(reply);
        }
    }

    /// Forgets somebody who hung up; false when there was nobody.
    pub fn leave(&self, waiter: Waiter) -> bool {
        self.shard(waiter.0).lock().remove(&waiter.0).is_some()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Drops every sender: whoever waits learns that nobody will answer.
    pub fn close(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
    }

    fn shard(&self, id: u64) -> &Mutex<FxHashMap<u64, oneshot::Sender<Reply>>> {
        &self.shards[(id % SHARDS as u64) as usize]
    }
}
