//! What was decided lately, so that a read that is a little stale cannot decide: ends and
//! idempotency keys since a few thousand events. Bounded; what is older is only in the store.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_wire::{ExecutionId, RunId, SecretHash, Status, Timestamp};
use rustc_hash::FxHashMap;

/// How many of each kind are remembered. When full the oldest goes, and reads older than it are
/// asked again.
const REMEMBERED: usize = 8_192;

/// How long a repeated refusal counts as the same one: the published SDK sends a refused call
/// three times within about 12 ms.
const SAME_REFUSAL_US: i64 = 50_000;

/// An end.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) proof: Option<(u32, SecretHash)>,
    pub(crate) run: RunId,
    pub(crate) late: bool,
    /// A hash of the result, when it was at hand: tells the same word from another one.
    pub(crate) result: Option<u64>,
}

/// A key that was used.
#[derive(Debug, Clone)]
pub(crate) struct UsedKey {
    pub(crate) execution: ExecutionId,
    pub(crate) body_hash: [u8; 16],
}

/// The memory.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    ends: FxHashMap<ExecutionId, Ended>,
    end_order: VecDeque<(u64, ExecutionId)>,
    ends_since: u64,
    keys: FxHashMap<Arc<str>, UsedKey>,
    key_order: VecDeque<(u64, Arc<str>)>,
    keys_since: u64,
    refusals: VecDeque<(Timestamp, u64)>,
}

impl Recent {
    /// Everything before `seq` is only in the store.
    pub(crate) fn starting_at(seq: u64) -> Self {
        Self {
            ends_since: seq,
            keys_since: seq,
            ..Self::default()
        }
    }

    pub(crate) fn end(&mut self, seq: u64, id: ExecutionId, ended: Ended) {
        if self.end_order.len() == REMEMBERED
            && let Some((seq, old)) = self.end_order.pop_front()
        {
            self.ends.remove(&old);
            self.ends_since = seq;
        }
        self.end_order.push_back((seq, id.clone()));
        self.ends.insert(id, ended);
    }

    pub(crate) fn ended(&self, id: &ExecutionId) -> Option<&Ended> {
        self.ends.get(id)
    }

    pub(crate) fn ended_mut(&mut self, id: &ExecutionId) -> Option<&mut Ended> {
        self.ends.get_mut(id)
    }

    /// Whether a read that saw `as_of`, together with what is remembered, misses no end.
    pub(crate) fn ends_cover(&self, as_of: u64) -> bool {
        as_of >= self.ends_since
    }

    pub(crate) fn key(&mut self, seq: u64, key: Arc<str>, used: UsedKey) {
        if self.key_order.len() == REMEMBERED
            && let Some((seq, old)) = self.key_order.pop_front()
        {
            self.keys.remove(&old);
            self.keys_since = seq;
        }
        self.key_order.push_back((seq, key.clone()));
        self.keys.insert(key, used);
    }

    pub(crate) fn used_key(&self, key: &str) -> Option<&UsedKey> {
        self.keys.get(key)
    }

    pub(crate) fn keys_cover(&self, as_of: u64) -> bool {
        as_of >= self.keys_since
    }

    /// Whether this refusal repeats one that was counted a moment ago.
    pub(crate) fn repeats_refusal(&mut self, now: Timestamp, what: u64) -> bool {
        while let Some((at, _)) = self.refusals.front() {
            if now.0 - at.0 <= SAME_REFUSAL_US && self.refusals.len() < 64 {
                break;
            }
            self.refusals.pop_front();
        }
        if self.refusals.iter().any(|(_, seen)| *seen == what) {
            return true;
        }
        self.refusals.push_back((now, what));
        false
    }
}
