//! The memory: what the decisions wrote, and what people and agents read back.
//!
//! [`Store`] is a trait of use cases, not of SQL. It commits what an engine decided, restores
//! what a start needs, and answers the questions of lists, polls and decisions. [`Annex`] keeps
//! what the engine does not decide: agents' memory, notes, logs, keys, identities, audit.
//! Every method blocks; callers on an async runtime use a blocking thread. Decides nothing.

pub mod annex;
pub mod bound;
pub mod change;
mod check;
pub mod error;
mod fleet;
pub mod glance;
pub mod glob;
pub mod lease;
pub mod memory;
pub mod outbox;
pub mod question;
pub mod sqlite;
pub mod usage;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use annex::AuditRow;
use bytes::Bytes;
use muster_engine::event::{KnownTree, Submission};
use muster_engine::fleet::row::{FleetHistoryRow, WorkerRow};
use muster_engine::row::{
    ApprovalRow, AttemptRow, EventRow, ExecutionRow, Payload, PayloadKind, QueueKey, QueuedRow,
    RunRow, Snapshot,
};
use muster_engine::{Write, event::Known};
use muster_wire::{AgentId, ExecutionId, NodeId, RunId, Status, Timestamp, WorkerId};

pub use annex::Annex;
pub use error::{StoreError, StoreResult};
pub use glance::{AgentCount, FoundIds, Glance, Glanced, HeldCount, HeldKind, QueueCount};
pub use lease::{Lease, LeaseId};
pub use memory::{Fault, Faults, MemoryStore};
pub use outbox::Outbox;
pub use question::{
    Also, ApprovalFilter, ExecutionFilter, Life, Page, QuarantineItem, RunFilter, RunSummary,
    StepLine, StoreAbout, StoreSizes, StoredAgent, Window, WorkerFilter, run_status,
};
pub use sqlite::{Durability, Options, SqliteStore};
pub use usage::{UsageAnswer, UsageBy, UsageKey, UsageQuestion};

/// The format that this build writes, and the newest it reads.
pub const FORMAT: u32 = sqlite::FORMAT;

/// A payload of more bytes is stored by [`Store::put_large`], outside the commit.
pub const INLINE_MAX: usize = 64 << 10;

/// What one group commit writes, fenced by the lease and the expected last event.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// The lease under which the writes were decided.
    pub lease: Lease,
    /// The number of the last event in the store before this commit.
    pub after_seq: u64,
    /// The number of the last event after it; equals `after_seq` when it writes no event.
    pub last_seq: u64,
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// Lines of the audit log for the acts among them.
    pub audit: Vec<AuditRow>,
}

/// How a commit ended.
#[derive(Debug)]
pub enum CommitEnd {
    /// It is as durable as the store promises.
    Committed,
    /// Nothing was written.
    Refused {
        /// Trying the same again may help: busy, disk full.
        passing: bool,
        /// What the store said.
        cause: StoreError,
    },
    /// The connection was lost: it may be there or not. Ask for [`Store::last_seq`].
    Unknown(StoreError),
}

/// What a start reads, and what it could not read.
#[derive(Debug, Default)]
pub struct Restored {
    /// What the engine starts from.
    pub snapshot: Snapshot,
    /// Rows set aside because they could not be read.
    pub set_aside: Vec<QuarantineItem>,
}

/// What was decided, durably.
pub trait Store: Outbox + Send + Sync + 'static {
    /// What and where it is.
    fn about(&self) -> StoreAbout;

    /// Accepts that the store was copied or restored to where it is: from then on
    /// [`StoreAbout::suspicious`] is `None`.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn accept_place(&self) -> StoreResult<()>;

    /// Takes a deciding lease; a later taker's epoch is higher.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn take_lease(&self, id: LeaseId, owner: &str) -> StoreResult<Lease>;

    /// Writes everything or nothing.
    fn commit(&self, commit: &Commit) -> CommitEnd;

    /// The number of the last event.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn last_seq(&self) -> StoreResult<u64>;

    /// Reads what a start needs. Sets aside rows it cannot read, and goes on.
    ///
    /// # Errors
    /// When the store cannot be read, or over 100 rows cannot.
    fn restore(&self) -> StoreResult<Restored>;

    /// Fills what a submission needs, in one read.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn known(&self, submission: &Submission) -> StoreResult<Known>;

    /// One row, and the last event number that the read saw.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn execution(&self, id: &ExecutionId) -> StoreResult<(u64, Option<ExecutionRow>)>;

    /// A run and its queued members.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn tree(&self, run: &RunId) -> StoreResult<KnownTree>;

    /// The next entries of a queue after a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn window(&self, agent: &AgentId, after: Option<QueueKey>, limit: usize)
    -> StoreResult<Window>;

    /// Stores a large payload, durably, before the event that names it. Chunked.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn put_large(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        bytes: Bytes,
    ) -> StoreResult<()>;

    /// Removes large payloads of a submission that was refused after all.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn drop_large(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<()>;

    /// Removes large payloads older than `before` that no execution names. Bounded per call.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn collect_leftovers(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;

    /// One payload, wherever it is.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn payload(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<Option<Payload>>;

    /// How many bytes a payload has, wherever it is.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn payload_size(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
    ) -> StoreResult<Option<usize>> {
        Ok(self.payload(execution, kind)?.map(|payload| payload.len()))
    }

    /// Some of the bytes of a payload, cut to what it has. Of a large one no more is read than
    /// that.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn payload_part(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        part: Range<usize>,
    ) -> StoreResult<Option<Payload>> {
        let whole = self.payload(execution, kind)?;
        Ok(whole.map(|whole| cut(&whole, part)))
    }

    /// Approvals of an execution, of a request id, or of both, and the last event number that
    /// the read saw.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn approvals_named(
        &self,
        execution: Option<&ExecutionId>,
        request: Option<&str>,
    ) -> StoreResult<(u64, Vec<ApprovalRow>)>;

    /// Approvals, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn approvals(&self, filter: &ApprovalFilter, page: &Page) -> StoreResult<Vec<ApprovalRow>>;

    /// Queued executions that end with their parent and whose parent has ended: some of them,
    /// whether there are more, and the last event number that the read saw.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn bereaved(&self, limit: usize) -> StoreResult<(u64, Vec<ExecutionRow>, bool)>;

    /// The attempts of an execution, first first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn attempts(&self, execution: &ExecutionId) -> StoreResult<Vec<AttemptRow>>;

    /// Executions, newest first, or as the filter says.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn executions(&self, filter: &ExecutionFilter, page: &Page) -> StoreResult<Vec<ExecutionRow>>;

    /// Runs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn runs(&self, filter: &RunFilter, page: &Page) -> StoreResult<Vec<RunSummary>>;

    /// One run.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn run(&self, run: &RunId) -> StoreResult<Option<RunSummary>>;

    /// How many executions there are of each status, under a filter without its statuses.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn execution_counts(&self, filter: &ExecutionFilter) -> StoreResult<Vec<(Status, u64)>>;

    /// How many runs there are of each state, under a filter without its statuses and states.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn run_counts(&self, filter: &RunFilter) -> StoreResult<Vec<(Status, u64)>>;

    /// The marks of a run; `None` when it has none.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn run_marks(&self, run: &RunId) -> StoreResult<Option<RunRow>>;

    /// The executions of a run in the order of their acceptance, as far as groups need them;
    /// only the calls of one of them, if it is named.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn step_lines(&self, run: &RunId, parent: Option<&ExecutionId>) -> StoreResult<Vec<StepLine>>;

    /// The ids of a run's executions, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn step_ids(&self, run: &RunId) -> StoreResult<Vec<ExecutionId>>;

    /// Attempts and events of each of some executions.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn lives(&self, executions: &[ExecutionId]) -> StoreResult<Vec<Life>>;

    /// Every agent, or one.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn agents(&self, only: Option<&AgentId>) -> StoreResult<Vec<StoredAgent>>;

    /// Events after a number, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn events(&self, after: u64, limit: usize) -> StoreResult<Vec<EventRow>>;

    /// Events of one execution, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn events_of(&self, execution: &ExecutionId, limit: usize) -> StoreResult<Vec<EventRow>>;

    /// The number of the oldest event that is still there; `None` when there is none.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn oldest_event(&self) -> StoreResult<Option<u64>>;

    /// Sets one event or row aside.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn set_aside(&self, item: &QuarantineItem) -> StoreResult<()>;

    /// What was set aside, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn quarantine(&self, limit: usize) -> StoreResult<Vec<QuarantineItem>>;

    /// Drops one item of the quarantine; `false` when there is none of that id.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn drop_quarantined(&self, id: &str) -> StoreResult<bool>;

    /// Removes what is older than retention allows. Bounded per call; returns how many rows.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn retire(&self, cut: &Retention, limit: usize) -> StoreResult<u64>;

    /// Removes the oldest runs that ended, whatever their age: at most so many executions.
    /// Returns how many rows went; 0 when nothing can go.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn retire_oldest(&self, limit: usize) -> StoreResult<u64>;

    /// Copies the store into a directory that has none yet, while it is in use. The copy knows
    /// that it is one: a plane that is started on it begins in hold.
    ///
    /// # Errors
    /// When there is a store already, or it cannot be written.
    fn backup(&self, dir: &Path) -> StoreResult<()>;

    /// How many executions are open, by status.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn open_counts(&self) -> StoreResult<Vec<(Status, u64)>>;

    /// The whole at a glance, over one state of the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn glance(&self, ask: &Glance) -> StoreResult<Glanced>;

    /// How many executions of each agent, or of one, ended since a moment.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn ended_by_agent(
        &self,
        since: Timestamp,
        only: Option<&AgentId>,
    ) -> StoreResult<Vec<AgentCount>>;

    /// Ids of runs and executions that begin or end with a part, whatever its case in the end.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn find_ids(&self, part: &str, limit: usize) -> StoreResult<FoundIds>;

    /// Events about an agent's instances before a moment, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn events_of_instances(
        &self,
        agent: &AgentId,
        until: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<EventRow>>;

    /// Workers, newest first, without their specs: ended ones too, as long as they are kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn workers(&self, filter: &WorkerFilter, page: &Page) -> StoreResult<Vec<WorkerRow>>;

    /// One worker, with its spec.
    ///
    /// # Errors
    /// When the store or the row cannot be read.
    fn worker(&self, id: &WorkerId) -> StoreResult<Option<WorkerRow>>;

    /// The history of a node, of a worker, or of all, newest first, before a number.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn fleet_history(
        &self,
        node: Option<&NodeId>,
        worker: Option<&WorkerId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<FleetHistoryRow>>;

    /// Sums of what agents reported as usage.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn usage(&self, question: &UsageQuestion) -> StoreResult<UsageAnswer>;

    /// The same of one run.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn usage_of_run(&self, run: &RunId) -> StoreResult<usage::Sums>;

    /// Sizes in bytes by kind, and the room left on the disk.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn sizes(&self) -> StoreResult<StoreSizes>;
}

/// Up to which moment each kind is kept; what is older goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Whole runs without an open member that ended before, and that no younger run names as the
    /// one it takes over from.
    pub executions_before: Timestamp,
    /// Payloads of executions that ended before; the executions stay.
    pub payloads_before: Timestamp,
    /// Events before.
    pub events_before: Timestamp,
    /// Changes of agents' memory before.
    pub memory_events_before: Timestamp,
    /// Messages for webhooks that were delivered or given up before.
    pub webhooks_before: Timestamp,
    /// Idempotency keys before.
    pub keys_before: Timestamp,
    /// Log lines before.
    pub logs_before: Timestamp,
    /// Audit lines before.
    pub audit_before: Timestamp,
    /// Set-aside items before.
    pub quarantine_before: Timestamp,
    /// Instances gone before.
    pub instances_before: Timestamp,
    /// Workers that ended, lines of fleet history, and invocations of the Relay registry, before.
    pub workers_before: Timestamp,
}

/// A store and its annex, as the shell holds them.
#[derive(Clone)]
pub struct Stores {
    /// What was decided.
    pub decisions: Arc<dyn Store>,
    /// What is not decided.
    pub annex: Arc<dyn Annex>,
}

impl Stores {
    /// One store that is both.
    pub fn of<S: Store + Annex>(store: Arc<S>) -> Self {
        Self {
            decisions: store.clone(),
            annex: store,
        }
    }
}

/// Some of the bytes of a payload.
fn cut(whole: &Payload, part: Range<usize>) -> Payload {
    let end = part.end.min(whole.len());
    Payload(whole.0.slice(part.start.min(end)..end))
}

/// The rows of a window and whether there are more.
pub type WindowRows = Vec<QueuedRow>;
