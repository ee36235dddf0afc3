//! The newest view of each execution that is at work, and of those that ended lately, so that
//! polls read no store. A view that is not here is in the store.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_engine::effect::ExecutionView;
use muster_wire::{ExecutionId, Status, Timestamp};
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
    map: FxHashMap<ExecutionId, Kept>,
    /// What may go, oldest first: id, stamp and size. A view that is newer than its stamp stays.
    old: VecDeque<(ExecutionId, u64, usize)>,
    bytes: usize,
    stamps: u64,
}

#[derive(Debug)]
struct Kept {
    view: Arc<ExecutionView>,
    stamp: u64,
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
        let shard = self.shard(id).lock();
        shard.map.get(id).map(|kept| kept.view.clone())
    }

    /// Takes the newest view.
    pub(crate) fn put(&self, view: Arc<ExecutionView>) {
        let id = view.row.id.clone();
        let pinned = pinned(&view);
        let size = view.result.as_ref().map_or(0, |r| r.len())
            + view.details.as_ref().map_or(0, |d| d.len());
        let mut shard = self.shard(id.as_str()).lock();
        shard.stamps += 1;
        let stamp = shard.stamps;
        shard.map.insert(id.clone(), Kept { view, stamp });
        if pinned {
            return;
        }
        shard.bytes += size;
        shard.old.push_back((id, stamp, size));
        while shard.old.len() > KEPT_PER_SHARD || shard.bytes > KEPT_BYTES_PER_SHARD {
            let Some((id, stamp, size)) = shard.old.pop_front() else {
                break;
            };
            shard.bytes -= size;
            if shard.map.get(&id).is_some_and(|kept| kept.stamp == stamp) {
                shard.map.remove(&id);
            }
        }
    }

    /// An outcome came after the end.
    pub(crate) fn late(&self, id: &ExecutionId, status: Status) {
        let mut shard = self.shard(id.as_str()).lock();
        if let Some(kept) = shard.map.get_mut(id) {
            let mut view = (*kept.view).clone();
            Arc::make_mut(&mut view.row).late_outcome = Some(status);
            kept.view = Arc::new(view);
        }
    }

    /// Notes that an execution was restarted.
    pub(crate) fn restarted(&self, id: &ExecutionId, restarted_as: &ExecutionId) {
        let mut shard = self.shard(id.as_str()).lock();
        if let Some(kept) = shard.map.get_mut(id) {
            let mut view = (*kept.view).clone();
            Arc::make_mut(&mut view.row).links_mut().restarted_as = Some(restarted_as.clone());
            kept.view = Arc::new(view);
        }
    }

    /// What ended before is in the store, or was removed from it: it is read there.
    pub(crate) fn forget_ended_before(&self, moment: Timestamp) {
        for shard in &self.shards {
            let ended = |kept: &Kept| kept.view.row.ended_at.is_some_and(|at| at < moment);
            shard.lock().map.retain(|_, kept| !ended(kept));
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_engine::row::{ExecutionRow, Payload, QueueKey};
    use muster_wire::{ExecutionKind, FunctionKind, Lane, Origin};

    fn view(id: &str, status: Status, result: usize) -> Arc<ExecutionView> {
        let id = ExecutionId::trusted(id);
        let row = ExecutionRow {
            run: muster_wire::RunId::trusted("run"),
            root: id.clone(),
            parent: None,
            depth: 0,
            kind: ExecutionKind::Dispatched,
            lane: Lane::Async,
            agent: muster_wire::AgentId::trusted("a"),
            function: muster_wire::FunctionName::trusted("f"),
            function_kind: FunctionKind::Reasoner,
            status,
            status_reason: None,
            error_category: None,
            error_text: None,
            error_status: None,
            queue: QueueKey {
                class: 5,
                turn: 0,
                seq: 0,
            },
            attempt: 0,
            holds: Vec::new(),
            over_cap: false,
            created_at: Timestamp(0),
            started_at: None,
            ended_at: None,
            active_us: 0,
            clock_from: None,
            deadline_us: 0,
            absorb_until: None,
            input_size: 0,
            input_hash: [0; 16],
            result_size: None,
            key_hash: None,
            principal: "owner".into(),
            session: None,
            actor: None,
            traceparent: None,
            usage: None,
            origin: Origin::Server,
            late_outcome: None,
            wait: None,
            resume_to: None,
            on_parent_end: muster_wire::ParentEnd::Detach,
            links: None,
            id,
        };
        Arc::new(ExecutionView {
            row: Arc::new(row),
            result: Some(Payload(vec![b'x'; result].into())),
            details: None,
        })
    }

    #[test]
    fn ended_views_go_when_newer_ones_come_and_open_ones_stay() {
        let views = Views::default();
        views.put(view("open", Status::Queued, 0));
        views.put(view("open", Status::Running, 0));
        for n in 0..3 * SHARDS * KEPT_PER_SHARD {
            views.put(view(&format!("e{n}"), Status::Succeeded, 0));
        }
        assert!(views.get("open").is_some());
        let kept: usize = views
            .shards
            .iter()
            .map(|shard| shard.lock().map.len())
            .sum();
        assert!(kept <= SHARDS * KEPT_PER_SHARD + 1, "{kept}");
    }

    #[test]
    fn large_results_are_bounded_by_their_bytes() {
        let views = Views::default();
        for n in 0..200 {
            views.put(view(
                &format!("e{n}"),
                Status::Succeeded,
                KEPT_BYTES_PER_SHARD / 2,
            ));
        }
        for shard in &views.shards {
            assert!(shard.lock().bytes <= KEPT_BYTES_PER_SHARD);
        }
    }
}
