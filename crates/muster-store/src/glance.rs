//! What an overview asks of the store, and the shapes of the answers. No SQL is here.

use std::time::Duration;

use muster_wire::{AgentId, Category, ExecutionId, RunId, Timestamp};

/// What an overview asks.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    /// When the first bucket begins.
    pub from: Timestamp,
    /// The length of a bucket.
    pub bucket: Duration,
    /// How many buckets; failures are counted over as much time before them, too.
    pub buckets: usize,
}

impl Glance {
    /// The length of all buckets.
    pub fn span(&self) -> Duration {
        let times = u32::try_from(self.buckets).unwrap_or(u32::MAX);
        self.bucket.saturating_mul(times)
    }

    /// The bucket of a moment; `None` when it lies in none.
    pub fn bucket_of(&self, at: Timestamp) -> Option<usize> {
        let width = i64::try_from(self.bucket.as_micros()).ok()?.max(1);
        let n = at.0.checked_sub(self.from.0)?.div_euclid(width);
        usize::try_from(n).ok().filter(|n| *n < self.buckets)
    }
}

/// The whole at a glance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Glanced {
    /// The last event number that the read saw.
    pub last_seq: u64,
    /// How many run.
    pub running: u64,
    /// What is queued, by agent.
    pub queued: Vec<QueueCount>,
    /// What else is held up.
    pub held: Vec<HeldCount>,
    /// Accepted, by bucket.
    pub started: Vec<u64>,
    /// Ended, by bucket.
    pub ended: Vec<u64>,
    /// Failed or timed out since `from`, by category, the most frequent first.
    pub failed: Vec<(Category, u64)>,
    /// The same over as much time before.
    pub failed_before: Vec<(Category, u64)>,
}

/// What is queued for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    /// The agent.
    pub agent: AgentId,
    /// How many.
    pub count: u64,
    /// When the oldest was accepted.
    pub oldest_at: Timestamp,
}

/// Why something that is not queued does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeldKind {
    /// It waits for a person.
    Approval,
    /// It waits for a child.
    Child,
    /// A person paused it.
    Paused,
    /// Its agent restarts.
    Absorbed,
}

/// What is held up in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCount {
    /// How.
    pub kind: HeldKind,
    /// How many.
    pub count: u64,
    /// When the oldest was accepted.
    pub oldest_at: Timestamp,
}

/// What ended of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCount {
    /// The agent.
    pub agent: AgentId,
    /// How many ended.
    pub ended: u64,
    /// Of them, those that failed or timed out.
    pub failed: u64,
}

/// Ids that begin or end with a part, the latest minted first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundIds {
    /// Of runs.
    pub runs: Vec<RunId>,
    /// Of executions.
    pub executions: Vec<ExecutionId>,
}
