//! The newest view of each execution that is at work, and of those that ended lately, so that
//! polls read no store. A view that is not here is in the store.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_engine::effect::ExecutionView;
use muster_wire::{ExecutionId, Status};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHasher};

/// Ended and queued views that are kept, per shard.
const KEPT_PER_SHARD: usize = 256;
/// Bytes of results that are kept, per shard.
const KEPT_BYTES_PER_SHARD: usize = 1024 * 1024;
const SHARDS: usize = 16;

/// Views by execution. Dispatched open ones stay; others go when newer ones come.
#[derive(Debug)]
pub struct Views {
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    map: FxHashMap<ExecutionId, Arc<ExecutionView>>,
    /// What may go, oldest first, with its size. An id that is open again meanwhile stays.
    old: VecDeque<(ExecutionId, usize)>,
    bytes: usize,
}

impl Default for Views {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }
}

impl Views {
    /// The newest view, if it is at hand.
    pub fn get(&self, id: &str) -> Option<Arc<ExecutionView>> {
        self.shard(id).lock().map.get(id).cloned()
    }

    /// Takes the newest view.
    pub(crate) fn put(&self, view: Arc<ExecutionView>) {
        let id = view.row.id.clone();
        let mut shard = self.shard(id.as_str()).lock();
        let pinned = pinned(&view);
        let size = view.result.as_ref().map_or(0, |r| r.len())
            + view.details.as_ref().map_or(0, |d| d.len());
        shard.map.insert(id.clone(), view);
        if pinned {
            return;
        }
        shard.bytes += size;
        shard.old.push_back((id, size));
        while shard.old.len() > KEPT_PER_SHARD || shard.bytes > KEPT_BYTES_PER_SHARD {
            let Some((id, size)) = shard.old.pop_front() else {
                break;
            };
            shard.bytes -= size;
            let goes = shard.map.get(&id).is_some_and(|view| !self::pinned(view))
                && shard.old.iter().all(|(other, _)| *other != id);
            if goes {
                shard.map.remove(&id);
            }
        }
    }

    fn shard(&self, id: &str) -> &Mutex<Shard> {
        use std::hash::{Hash, Hasher};
        let mut hasher = FxHasher::default();
        id.hash(&mut hasher);
        &self.shards[(hasher.finish() >> 60) as usize % SHARDS]
    }
}

/// Whether a view stays while it is open: dispatched, so bounded by what is in flight.
fn pinned(view: &ExecutionView) -> bool {
    !view.row.status.is_terminal() && view.row.status != Status::Queued
}
