//! Who waits for a reply. They outlive the engine: a restored one finds them here.

use std::sync::atomic::{AtomicU64, Ordering};

use muster_engine::Reply;
use muster_engine::event::Waiter;
use muster_wire::ExecutionId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

const SHARDS: usize = 16;

type Shard = Mutex<FxHashMap<u64, Seat>>;

#[derive(Debug)]
struct Seat {
    sender: oneshot::Sender<Reply>,
    /// Whose end the caller waits for, where they hold the connection until then.
    execution: Option<ExecutionId>,
}

/// The parked callers.
#[derive(Debug, Default)]
pub struct Waiters {
    next: AtomicU64,
    shards: [Shard; SHARDS],
}

impl Waiters {
    /// Parks somebody, with the execution whose end they wait for.
    pub fn park(&self, execution: Option<ExecutionId>) -> (Waiter, oneshot::Receiver<Reply>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        let seat = Seat { sender, execution };
        self.shard(id).lock().insert(id, seat);
        (Waiter(id), receiver)
    }

    /// Answers; `false` when nobody is there any more: they hung up.
    pub fn answer(&self, waiter: Waiter, reply: Reply) -> bool {
        let seat = self.shard(waiter.0).lock().remove(&waiter.0);
        seat.is_some_and(|seat| seat.sender.send(reply).is_ok())
    }

    /// Forgets somebody who hung up; false when there was nobody.
    pub fn leave(&self, waiter: Waiter) -> bool {
        self.shard(waiter.0).lock().remove(&waiter.0).is_some()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whoever waits for the end of an execution.
    pub fn with_execution(&self) -> Vec<(Waiter, ExecutionId)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (id, seat) in shard.lock().iter() {
                if let Some(execution) = &seat.execution {
                    all.push((Waiter(*id), execution.clone()));
                }
            }
        }
        all
    }

    /// Drops every sender: whoever waits learns that nobody will answer.
    pub fn close(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
    }

    fn shard(&self, id: u64) -> &Shard {
        &self.shards[(id % SHARDS as u64) as usize]
    }
}
