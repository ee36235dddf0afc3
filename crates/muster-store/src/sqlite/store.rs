//! The trait [`Store`], each method on the file it belongs to.

use std::path::Path;

use bytes::Bytes;
use muster_engine::event::{Known, KnownTree, Submission};
use muster_engine::fleet::row::{FleetHistoryRow, WorkerRow};
use muster_engine::row::{
    ApprovalRow, AttemptRow, EventRow, ExecutionRow, Payload, PayloadKind, QueueKey, RunRow,
};
use muster_wire::{AgentId, ExecutionId, NodeId, RunId, Status, Timestamp, WorkerId};
use rusqlite::{Connection, params};

use super::connection::failed;
use super::known::{all, first};
use super::rows::Columns;
use super::{SqliteStore, counts, fleet, glance, known, question, restore, steps, usage};
use crate::{
    AgentCount, ApprovalFilter, Commit, CommitEnd, ExecutionFilter, FoundIds, Glance, Glanced,
    Lease, LeaseId, Life, Page, QuarantineItem, Restored, Retention, RunFilter, RunSummary,
    StepLine, Store, StoreAbout, StoreError, StoreResult, StoreSizes, StoredAgent, UsageAnswer,
    UsageQuestion, Window, WorkerFilter,
};

/// Events of one execution that are read to tell its life.
const EVENTS_OF_MAX: usize = 1_000;

impl Store for SqliteStore {
    fn about(&self) -> StoreAbout {
        self.about.lock().clone()
    }

    fn accept_place(&self) -> StoreResult<()> {
        self.stamp_place()
    }

    fn take_lease(&self, id: LeaseId, owner: &str) -> StoreResult<Lease> {
        let now = Timestamp::wall_clock();
        self.decisions.lock().transact("take the lease", |conn| {
            let epoch: i64 = conn
                .query_row(
                    "INSERT INTO leases (id, epoch, owner, taken_at) VALUES (?1, 1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1, owner = ?2, taken_at = ?3
                     RETURNING epoch",
                    params![id.0, owner, now.0],
                    |row| row.get(0),
                )
                .map_err(failed("take the lease"))?;
            Ok(Lease {
                id,
                epoch: epoch.cast_unsigned(),
            })
        })
    }

    fn commit(&self, commit: &Commit) -> CommitEnd {
        let mut decisions = self.decisions.lock();
        let end = decisions.commit(commit);
        self.upkeep.committed(&decisions.conn);
        end
    }

    fn last_seq(&self) -> StoreResult<u64> {
        self.decision_readers.with(known::last_seq)
    }

    fn restore(&self) -> StoreResult<Restored> {
        let now = Timestamp::wall_clock();
        let restored = self
            .decision_readers
            .read(|conn| restore::restore(conn, now))?;
        if !restored.set_aside.is_empty() {
            self.decisions.lock().transact("set rows aside", |conn| {
                restored
                    .set_aside
                    .iter()
                    .try_for_each(|item| restore::set_aside(conn, item))
            })?;
        }
        Ok(restored)
    }

    fn known(&self, submission: &Submission) -> StoreResult<Known> {
        let mut known = self
            .decision_readers
            .read(|conn| known::known(conn, submission))?;
        if let Some(hit) = known.hit.as_deref_mut().filter(|hit| hit.usable) {
            hit.usable = hit.row.result_size.is_none() || self.has_result(&hit.row.id)?;
        }
        Ok(known)
    }

    fn execution(&self, id: &ExecutionId) -> StoreResult<(u64, Option<ExecutionRow>)> {
        let read = |conn: &Connection| Ok((known::last_seq(conn)?, known::execution(conn, id)?));
        self.decision_readers.read(read).inspect_err(|error| {
            if let StoreError::Unreadable(why) = error {
                self.set_aside_row(id, why);
            }
        })
    }

    fn tree(&self, run: &RunId) -> StoreResult<KnownTree> {
        self.decision_readers.read(|conn| known::tree(conn, run))
    }

    fn window(
        &self,
        agent: &AgentId,
        after: Option<QueueKey>,
        limit: usize,
    ) -> StoreResult<Window> {
        self.decision_readers
            .read(|conn| known::window(conn, agent, after, limit))
    }

    fn put_large(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        bytes: Bytes,
    ) -> StoreResult<()> {
        self.write_large(execution, kind, &bytes)
    }

    fn drop_large(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<()> {
        self.delete_large(vec![(execution.clone(), Some(kind))])
            .map(|_| ())
    }

    fn collect_leftovers(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.collect(before, limit)
    }

    fn payload(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<Option<Payload>> {
        self.payload_of(execution, kind)
    }

    fn payload_size(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
    ) -> StoreResult<Option<usize>> {
        self.size_of(execution, kind)
    }

    fn payload_part(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        part: std::ops::Range<usize>,
    ) -> StoreResult<Option<Payload>> {
        self.part_of(execution, kind, part)
    }

    fn approvals_named(
        &self,
        execution: Option<&ExecutionId>,
        request: Option<&str>,
    ) -> StoreResult<(u64, Vec<ApprovalRow>)> {
        self.decision_readers.read(|conn| {
            let found = known::approvals_named(conn, execution, request)?;
            Ok((known::last_seq(conn)?, found))
        })
    }

    fn approvals(&self, filter: &ApprovalFilter, page: &Page) -> StoreResult<Vec<ApprovalRow>> {
        self.decision_readers
            .read(|conn| question::approvals(conn, filter, page))
    }

    fn bereaved(&self, limit: usize) -> StoreResult<(u64, Vec<ExecutionRow>, bool)> {
        self.decision_readers
            .read(|conn| known::bereaved(conn, limit))
    }

    fn attempts(&self, execution: &ExecutionId) -> StoreResult<Vec<AttemptRow>> {
        self.decision_readers
            .with(|conn| known::attempts(conn, execution))
    }

    fn executions(&self, filter: &ExecutionFilter, page: &Page) -> StoreResult<Vec<ExecutionRow>> {
        self.decision_readers
            .read(|conn| question::executions(conn, filter, page))
    }

    fn runs(&self, filter: &RunFilter, page: &Page) -> StoreResult<Vec<RunSummary>> {
        self.decision_readers
            .read(|conn| question::runs(conn, filter, page))
    }

    fn run(&self, run: &RunId) -> StoreResult<Option<RunSummary>> {
        self.decision_readers.read(|conn| question::run(conn, run))
    }

    fn usage(&self, question: &UsageQuestion) -> StoreResult<UsageAnswer> {
        self.decision_readers
            .read(|conn| usage::sums(conn, question))
    }

    fn usage_of_run(&self, run: &RunId) -> StoreResult<crate::usage::Sums> {
        self.decision_readers.read(|conn| usage::of_run(conn, run))
    }

    fn execution_counts(&self, filter: &ExecutionFilter) -> StoreResult<Vec<(Status, u64)>> {
        self.decision_readers
            .read(|conn| counts::execution_counts(conn, filter))
    }

    fn run_counts(&self, filter: &RunFilter) -> StoreResult<Vec<(Status, u64)>> {
        self.decision_readers
            .read(|conn| counts::run_counts(conn, filter))
    }

    fn run_marks(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        self.decision_readers
            .with(|conn| steps::run_marks(conn, run))
    }

    fn step_lines(&self, run: &RunId, parent: Option<&ExecutionId>) -> StoreResult<Vec<StepLine>> {
        self.decision_readers
            .with(|conn| steps::step_lines(conn, run, parent))
    }

    fn step_ids(&self, run: &RunId) -> StoreResult<Vec<ExecutionId>> {
        self.decision_readers
            .with(|conn| steps::step_ids(conn, run))
    }

    fn lives(&self, executions: &[ExecutionId]) -> StoreResult<Vec<Life>> {
        self.decision_readers.read(|conn| {
            executions
                .iter()
                .map(|id| {
                    Ok(Life {
                        attempts: known::attempts(conn, id)?,
                        events: question::events_of(conn, id, EVENTS_OF_MAX)?,
                    })
                })
                .collect()
        })
    }

    fn agents(&self, only: Option<&AgentId>) -> StoreResult<Vec<StoredAgent>> {
        self.decision_readers
            .read(|conn| question::agents(conn, only))
    }

    fn events(&self, after: u64, limit: usize) -> StoreResult<Vec<EventRow>> {
        self.decision_readers
            .with(|conn| question::events(conn, after, limit))
    }

    fn events_of(&self, execution: &ExecutionId, limit: usize) -> StoreResult<Vec<EventRow>> {
        self.decision_readers
            .with(|conn| question::events_of(conn, execution, limit))
    }

    fn oldest_event(&self) -> StoreResult<Option<u64>> {
        self.decision_readers.with(question::oldest_event)
    }

    fn set_aside(&self, item: &QuarantineItem) -> StoreResult<()> {
        self.decisions
            .lock()
            .transact("set something aside", |conn| restore::set_aside(conn, item))
    }

    fn quarantine(&self, limit: usize) -> StoreResult<Vec<QuarantineItem>> {
        let sql = "SELECT id, at, kind, about, error, what FROM quarantine
                   ORDER BY at DESC, id DESC LIMIT ?1";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.decision_readers.with(|conn| {
            all(conn, sql, [limit], |row| {
                let mut from = Columns::of(row);
                Ok(QuarantineItem {
                    id: from.text()?.to_owned(),
                    at: from.time()?,
                    kind: from.text()?.to_owned(),
                    about: from.text()?.to_owned(),
                    error: from.text()?.to_owned(),
                    what: from.text()?.to_owned(),
                })
            })
        })
    }

    fn drop_quarantined(&self, id: &str) -> StoreResult<bool> {
        self.decisions.lock().drop_quarantined(id)
    }

    fn retire(&self, cut: &Retention, limit: usize) -> StoreResult<u64> {
        self.retire_pass(cut, limit)
    }

    fn retire_oldest(&self, limit: usize) -> StoreResult<u64> {
        self.retire_some(&self.oldest_to, i64::MAX, limit.max(1))
    }

    fn backup(&self, dir: &Path) -> StoreResult<()> {
        self.backup_to(dir)
    }

    fn workers(&self, filter: &WorkerFilter, page: &Page) -> StoreResult<Vec<WorkerRow>> {
        self.decision_readers
            .read(|conn| fleet::workers(conn, filter, page))
    }

    fn worker(&self, id: &WorkerId) -> StoreResult<Option<WorkerRow>> {
        self.decision_readers.with(|conn| fleet::worker(conn, id))
    }

    fn fleet_history(
        &self,
        node: Option<&NodeId>,
        worker: Option<&WorkerId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<FleetHistoryRow>> {
        self.decision_readers
            .with(|conn| fleet::history(conn, node, worker, before, limit))
    }

    fn open_counts(&self) -> StoreResult<Vec<(Status, u64)>> {
        self.decision_readers.read(|conn| {
            // What is queued may be a million, and is counted already.
            let sql = "SELECT 0, coalesce(sum(count), 0) FROM queue_counts
                       UNION ALL SELECT status, count(*) FROM executions INDEXED BY executions_open
                       WHERE status < 4 AND status > 0 GROUP BY status";
            all(conn, sql, [], |row| {
                let mut from = Columns::of(row);
                Ok((from.code()?, from.number()?))
            })
        })
    }

    fn glance(&self, ask: &Glance) -> StoreResult<Glanced> {
        self.decision_readers.read(|conn| glance::glance(conn, ask))
    }

    fn ended_by_agent(
        &self,
        since: Timestamp,
        only: Option<&AgentId>,
    ) -> StoreResult<Vec<AgentCount>> {
        self.decision_readers
            .with(|conn| glance::ended_by_agent(conn, since, only))
    }

    fn find_ids(&self, part: &str, limit: usize) -> StoreResult<FoundIds> {
        self.decision_readers
            .read(|conn| glance::find_ids(conn, part, limit))
    }

    fn events_of_instances(
        &self,
        agent: &AgentId,
        until: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<EventRow>> {
        self.decision_readers
            .with(|conn| glance::events_of_instances(conn, agent, until, limit))
    }

    fn sizes(&self) -> StoreResult<StoreSizes> {
        let files = [
            ("decisions", &self.decision_readers),
            ("payloads", &self.payload_readers),
            ("logs", &self.log_readers),
        ];
        let mut kinds = Vec::with_capacity(4);
        for (kind, readers) in files {
            kinds.push((kind, readers.with(used_bytes)?));
        }
        kinds.push(("wal", self.wal_bytes()));
        let disk = rustix::fs::statvfs(&self.dir).ok();
        Ok(StoreSizes {
            kinds,
            free: disk.as_ref().map(|d| d.f_bavail.saturating_mul(d.f_frsize)),
            disk: disk.as_ref().map(|d| d.f_blocks.saturating_mul(d.f_frsize)),
        })
    }
}

/// Bytes of a file that hold something.
fn used_bytes(conn: &Connection) -> StoreResult<u64> {
    let sql = "SELECT (SELECT page_count FROM pragma_page_count)
                    - (SELECT freelist_count FROM pragma_freelist_count),
                      (SELECT page_size FROM pragma_page_size)";
    let found = first(conn, sql, [], |row| {
        let mut from = Columns::of(row);
        Ok((from.number::<u64>()?, from.number::<u64>()?))
    })?;
    Ok(found.map_or(0, |(pages, size)| pages * size))
}

impl SqliteStore {
    /// A row that a reader came across and cannot understand is shown to people, once. It stays
    /// where it is.
    fn set_aside_row(&self, id: &ExecutionId, why: &str) {
        // Under the name by which a start sets rows aside.
        let name = self.decision_readers.with(|conn| {
            let sql = "SELECT n, EXISTS (SELECT 1 FROM quarantine q
                WHERE q.id = 'row:execution:' || e.n) FROM executions e WHERE id = ?1";
            known::first(conn, sql, [id.as_str()], |row| {
                let mut from = Columns::of(row);
                Ok((from.int()?, from.flag()?))
            })
        });
        let Ok(Some((n, false))) = name else {
            return;
        };
        let item = QuarantineItem {
            id: format!("row:execution:{n}"),
            at: Timestamp::wall_clock(),
            kind: "row".into(),
            about: format!("execution {n}"),
            error: why.to_owned(),
            what: format!("id={id}"),
        };
        tracing::error!(quarantine.id = %item.id, error = why, "a row cannot be read and was set aside");
        if let Err(error) = self.set_aside(&item) {
            tracing::error!(quarantine.id = %item.id, error = %error, "what was set aside could not be stored");
        }
    }
}
