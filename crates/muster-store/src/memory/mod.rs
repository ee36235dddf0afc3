//! A store in memory, for tests: the same answers as SQLite, and faults on demand. Keeps
//! nothing, and walks everything for a list.

mod annex;
mod fault;
mod fleet;
mod glance;
mod outbox;
mod question;
mod retire;
mod state;
mod usage;

use std::path::Path;

use bytes::Bytes;
use muster_engine::event::{Known, KnownTree, Submission};
use muster_engine::fleet::row::{FleetHistoryRow, WorkerRow};
use muster_engine::replay;
use muster_engine::row::{
    ApprovalRow, AttemptRow, EventRow, ExecutionRow, OpenExecution, Payload, PayloadKind,
    QueueCount, QueueKey, QueuedRow, RunRow, Snapshot,
};
use muster_wire::{AgentId, ExecutionId, NodeId, ParentEnd, RunId, Status, Timestamp, WorkerId};
use parking_lot::Mutex;

pub use self::fault::{Fault, Faults};

use self::annex::Beside;
use self::state::{Large, State};
use crate::{
    AgentCount, ApprovalFilter, Commit, CommitEnd, ExecutionFilter, FoundIds, Glance, Glanced,
    Lease, LeaseId, Life, Page, QuarantineItem, Restored, Retention, RunFilter, RunSummary,
    StepLine, Store, StoreAbout, StoreError, StoreResult, StoreSizes, StoredAgent, UsageAnswer,
    UsageQuestion, Window, WorkerFilter, check,
};

/// A store that is gone when it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    beside: Mutex<Beside>,
    faults: Faults,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// What tests ask to go wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// How many payloads it holds, small and large.
    pub fn payload_count(&self) -> usize {
        let state = self.state.lock();
        state.payloads.len() + state.large.len()
    }

    /// Lets the commit of a [`Fault::UnknownLate`] arrive; whether it was still taken.
    pub fn settle(&self) -> bool {
        self.faults
            .take_late()
            .is_some_and(|commit| self.write(&commit).is_ok())
    }

    fn write(&self, commit: &Commit) -> StoreResult<()> {
        let mut state = self.state.lock();
        let epoch = state.leases.get(&commit.lease.id.0).copied();
        if epoch != Some(commit.lease.epoch) {
            return Err(StoreError::Fenced {
                held: commit.lease.epoch,
            });
        }
        check::commit(commit, state.last_seq())?;
        state.apply_all(&commit.writes)?;
        let mut beside = self.beside.lock();
        commit.audit.iter().for_each(|row| beside.note(row));
        self.faults.count();
        Ok(())
    }
}

fn lost() -> StoreError {
    StoreError::Io {
        doing: "commit".into(),
        source: std::io::Error::from(std::io::ErrorKind::ConnectionReset),
    }
}

impl Store for MemoryStore {
    fn about(&self) -> StoreAbout {
        StoreAbout {
            kind: "memory",
            place: "memory".into(),
            durability: "none",
            format: crate::FORMAT,
            mark: "memory".into(),
            suspicious: None,
        }
    }

    fn accept_place(&self) -> StoreResult<()> {
        Ok(())
    }

    fn take_lease(&self, id: LeaseId, _owner: &str) -> StoreResult<Lease> {
        let mut state = self.state.lock();
        let epoch = state.leases.entry(id.0).or_default();
        *epoch += 1;
        Ok(Lease { id, epoch: *epoch })
    }

    fn commit(&self, commit: &Commit) -> CommitEnd {
        let fault = self.faults.take(commit);
        let refused = |cause: StoreError| CommitEnd::Refused {
            passing: cause.is_passing(),
            cause,
        };
        match fault {
            None => match self.write(commit) {
                Ok(()) => CommitEnd::Committed,
                Err(cause) => refused(cause),
            },
            Some(Fault::Full) => refused(StoreError::Full),
            Some(Fault::Broken) => refused(StoreError::Conflict("a test wants it so".into())),
            Some(Fault::UnknownLost) => CommitEnd::Unknown(lost()),
            Some(Fault::UnknownKept) => match self.write(commit) {
                Ok(()) => CommitEnd::Unknown(lost()),
                Err(cause) => refused(cause),
            },
            Some(Fault::UnknownLate) => {
                self.faults.keep_late(commit);
                CommitEnd::Unknown(lost())
            }
        }
    }

    fn last_seq(&self) -> StoreResult<u64> {
        Ok(self.state.lock().last_seq())
    }

    fn restore(&self) -> StoreResult<Restored> {
        Ok(Restored {
            snapshot: snapshot(&self.state.lock()),
            set_aside: Vec::new(),
        })
    }

    fn known(&self, submission: &Submission) -> StoreResult<Known> {
        let state = self.state.lock();
        let boxed = |id: &ExecutionId| state.execution(id).cloned().map(Box::new);
        let run = submission
            .run_claimed
            .then(|| state.known_run(&submission.run))
            .flatten();
        let waits =
            |row: &&ExecutionRow| row.status == Status::Queued && row.agent == submission.agent;
        let mut known = Known {
            as_of: Some(state.last_seq()),
            key: submission
                .idempotency_key
                .as_ref()
                .and_then(|key| state.keys.get(key))
                .map(|key| (key.execution.clone(), key.body_hash, boxed(&key.execution))),
            turn: run.as_ref().and_then(|_| {
                let members = state.run_members(&submission.run);
                members.filter(waits).map(|row| row.queue.turn).max()
            }),
            run,
            parent: submission
                .parent
                .as_ref()
                .and_then(|parent| boxed(&parent.execution)),
            ..Known::default()
        };
        let has_result = |id: &ExecutionId| {
            let key = (id.clone(), PayloadKind::Result);
            state.payloads.contains_key(&key) || state.large.contains_key(&key)
        };
        let rows = state.executions.values();
        replay::look_up(rows, submission, has_result, &mut known);
        Ok(known)
    }

    fn execution(&self, id: &ExecutionId) -> StoreResult<(u64, Option<ExecutionRow>)> {
        let state = self.state.lock();
        Ok((state.last_seq(), state.execution(id).cloned()))
    }

    fn tree(&self, run: &RunId) -> StoreResult<KnownTree> {
        let state = self.state.lock();
        let queued = |row: &&ExecutionRow| row.status == Status::Queued;
        Ok(KnownTree {
            as_of: state.last_seq(),
            run: state.known_run(run),
            queued: state.run_members(run).filter(queued).cloned().collect(),
        })
    }

    fn window(
        &self,
        agent: &AgentId,
        after: Option<QueueKey>,
        limit: usize,
    ) -> StoreResult<Window> {
        let state = self.state.lock();
        let mut rows: Vec<QueuedRow> = state
            .executions
            .values()
            .filter(|row| row.status == Status::Queued && row.agent == *agent)
            .filter(|row| after.is_none_or(|after| row.queue > after))
            .map(|row| QueuedRow { row: row.clone() })
            .collect();
        rows.sort_by_key(|queued| queued.row.queue);
        let exhausted = rows.len() <= limit;
        rows.truncate(limit);
        Ok(Window {
            rows,
            exhausted,
            as_of: state.last_seq(),
        })
    }

    fn put_large(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        bytes: Bytes,
    ) -> StoreResult<()> {
        let large = Large {
            at: Timestamp::wall_clock(),
            bytes: Payload(bytes),
        };
        let key = (execution.clone(), kind);
        self.state.lock().large.insert(key, large);
        Ok(())
    }

    fn drop_large(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<()> {
        let key = (execution.clone(), kind);
        self.state.lock().large.remove(&key);
        Ok(())
    }

    fn collect_leftovers(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        Ok(retire::collect_leftovers(
            &mut self.state.lock(),
            before,
            limit,
        ))
    }

    fn payload(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<Option<Payload>> {
        let state = self.state.lock();
        let named = |id: &ExecutionId| {
            let key = (id.clone(), kind);
            let small = state.payloads.get(&key);
            let large = || state.large.get(&key).map(|large| &large.bytes);
            small.or_else(large).cloned()
        };
        let own = named(execution);
        if own.is_some() || kind != PayloadKind::Result {
            return Ok(own);
        }
        let source = state
            .execution(execution)
            .and_then(|row| row.replayed_from());
        Ok(source.and_then(|id| named(&ExecutionId::trusted(id))))
    }

    fn approvals_named(
        &self,
        execution: Option<&ExecutionId>,
        request: Option<&str>,
    ) -> StoreResult<(u64, Vec<ApprovalRow>)> {
        let state = self.state.lock();
        let mut found: Vec<ApprovalRow> = state
            .approvals
            .values()
            .filter(|row| execution.is_some() || request.is_some_and(|r| *row.request == *r))
            .filter(|row| execution.is_none_or(|id| row.execution == *id))
            .filter(|row| request.is_none_or(|r| *row.request == *r))
            .cloned()
            .collect();
        found.sort_by_key(|row| row.requested_at);
        Ok((state.last_seq(), found))
    }

    fn approvals(&self, filter: &ApprovalFilter, page: &Page) -> StoreResult<Vec<ApprovalRow>> {
        Ok(question::approvals(&self.state.lock(), filter, page))
    }

    fn bereaved(&self, limit: usize) -> StoreResult<(u64, Vec<ExecutionRow>, bool)> {
        let state = self.state.lock();
        let ended = |id: &ExecutionId| {
            let parent = state.execution(id);
            parent.is_some_and(|parent| parent.status.is_terminal())
        };
        let mut found: Vec<ExecutionRow> = state
            .executions
            .values()
            .filter(|row| row.status == Status::Queued && row.on_parent_end == ParentEnd::Cancel)
            .filter(|row| row.parent.as_ref().is_some_and(ended))
            .take(limit + 1)
            .cloned()
            .collect();
        let more = found.len() > limit;
        found.truncate(limit);
        Ok((state.last_seq(), found, more))
    }

    fn attempts(&self, execution: &ExecutionId) -> StoreResult<Vec<AttemptRow>> {
        let state = self.state.lock();
        let all = (execution.clone(), 0)..=(execution.clone(), u32::MAX);
        Ok(state
            .attempts
            .range(all)
            .map(|(_, row)| row.clone())
            .collect())
    }

    fn executions(&self, filter: &ExecutionFilter, page: &Page) -> StoreResult<Vec<ExecutionRow>> {
        Ok(question::executions(&self.state.lock(), filter, page))
    }

    fn runs(&self, filter: &RunFilter, page: &Page) -> StoreResult<Vec<RunSummary>> {
        Ok(question::runs(&self.state.lock(), filter, page))
    }

    fn run(&self, run: &RunId) -> StoreResult<Option<RunSummary>> {
        Ok(question::run(&self.state.lock(), run))
    }

    fn usage(&self, question: &UsageQuestion) -> StoreResult<UsageAnswer> {
        Ok(usage::sums(&self.state.lock(), question))
    }

    fn usage_of_run(&self, run: &RunId) -> StoreResult<crate::usage::Sums> {
        Ok(usage::of_run(&self.state.lock(), run))
    }

    fn execution_counts(&self, filter: &ExecutionFilter) -> StoreResult<Vec<(Status, u64)>> {
        Ok(question::execution_counts(&self.state.lock(), filter))
    }

    fn run_counts(&self, filter: &RunFilter) -> StoreResult<Vec<(Status, u64)>> {
        Ok(question::run_counts(&self.state.lock(), filter))
    }

    fn run_marks(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        Ok(self.state.lock().runs.get(run).cloned())
    }

    fn step_lines(&self, run: &RunId, parent: Option<&ExecutionId>) -> StoreResult<Vec<StepLine>> {
        Ok(question::step_lines(&self.state.lock(), run, parent))
    }

    fn step_ids(&self, run: &RunId) -> StoreResult<Vec<ExecutionId>> {
        let lines = question::step_lines(&self.state.lock(), run, None);
        Ok(lines.into_iter().map(|line| line.id).collect())
    }

    fn lives(&self, executions: &[ExecutionId]) -> StoreResult<Vec<Life>> {
        let life = |id: &ExecutionId| {
            Ok(Life {
                attempts: self.attempts(id)?,
                events: self.events_of(id, usize::MAX)?,
            })
        };
        executions.iter().map(life).collect()
    }

    fn agents(&self, only: Option<&AgentId>) -> StoreResult<Vec<StoredAgent>> {
        let state = self.state.lock();
        let wanted = |id: &AgentId| only.is_none_or(|only| only == id);
        Ok(state
            .agents
            .values()
            .filter(|row| wanted(&row.id))
            .map(|row| StoredAgent {
                instances: question::instances_of(&state, &row.id),
                row: row.clone(),
            })
            .collect())
    }

    fn events(&self, after: u64, limit: usize) -> StoreResult<Vec<EventRow>> {
        let state = self.state.lock();
        let behind = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let events = state.events.range(behind).take(limit);
        Ok(events.map(|(_, row)| (**row).clone()).collect())
    }

    fn events_of(&self, execution: &ExecutionId, limit: usize) -> StoreResult<Vec<EventRow>> {
        let state = self.state.lock();
        Ok(state
            .events
            .values()
            .filter(|row| row.execution.as_ref() == Some(execution))
            .take(limit)
            .map(|row| (**row).clone())
            .collect())
    }

    fn oldest_event(&self) -> StoreResult<Option<u64>> {
        let state = self.state.lock();
        Ok(state.events.first_key_value().map(|(seq, _)| *seq))
    }

    fn set_aside(&self, item: &QuarantineItem) -> StoreResult<()> {
        let mut state = self.state.lock();
        state
            .quarantine
            .entry(item.id.clone())
            .or_insert_with(|| item.clone());
        Ok(())
    }

    fn quarantine(&self, limit: usize) -> StoreResult<Vec<QuarantineItem>> {
        let state = self.state.lock();
        let mut items: Vec<QuarantineItem> = state.quarantine.values().cloned().collect();
        items.sort_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
        items.truncate(limit);
        Ok(items)
    }

    fn drop_quarantined(&self, id: &str) -> StoreResult<bool> {
        Ok(self.state.lock().quarantine.remove(id).is_some())
    }

    fn retire(&self, cut: &Retention, limit: usize) -> StoreResult<u64> {
        let mut state = self.state.lock();
        let mut beside = self.beside.lock();
        Ok(retire::retire(&mut state, &mut beside, cut, limit))
    }

    fn retire_oldest(&self, limit: usize) -> StoreResult<u64> {
        let mut state = self.state.lock();
        let mut beside = self.beside.lock();
        Ok(retire::oldest(&mut state, &mut beside, limit))
    }

    fn backup(&self, _dir: &Path) -> StoreResult<()> {
        let text = "a store in memory has nothing to copy".to_owned();
        Err(StoreError::Conflict(text))
    }

    fn workers(&self, filter: &WorkerFilter, page: &Page) -> StoreResult<Vec<WorkerRow>> {
        Ok(self.state.lock().fleet.workers(filter, page))
    }

    fn worker(&self, id: &WorkerId) -> StoreResult<Option<WorkerRow>> {
        Ok(self.state.lock().fleet.worker(id))
    }

    fn fleet_history(
        &self,
        node: Option<&NodeId>,
        worker: Option<&WorkerId>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreResult<Vec<FleetHistoryRow>> {
        let state = self.state.lock();
        Ok(state.fleet.history(node, worker, before, limit))
    }

    fn open_counts(&self) -> StoreResult<Vec<(Status, u64)>> {
        let state = self.state.lock();
        let mut counts: Vec<(Status, u64)> = Vec::new();
        for row in state
            .executions
            .values()
            .filter(|row| !row.status.is_terminal())
        {
            match counts.iter_mut().find(|(status, _)| *status == row.status) {
                Some((_, count)) => *count += 1,
                None => counts.push((row.status, 1)),
            }
        }
        Ok(counts)
    }

    fn glance(&self, ask: &Glance) -> StoreResult<Glanced> {
        Ok(glance::glance(&self.state.lock(), ask))
    }

    fn ended_by_agent(
        &self,
        since: Timestamp,
        only: Option<&AgentId>,
    ) -> StoreResult<Vec<AgentCount>> {
        Ok(glance::ended_by_agent(&self.state.lock(), since, only))
    }

    fn find_ids(&self, part: &str, limit: usize) -> StoreResult<FoundIds> {
        Ok(glance::find_ids(&self.state.lock(), part, limit))
    }

    fn events_of_instances(
        &self,
        agent: &AgentId,
        until: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<EventRow>> {
        let state = self.state.lock();
        Ok(glance::events_of_instances(&state, agent, until, limit))
    }

    fn sizes(&self) -> StoreResult<StoreSizes> {
        Ok(StoreSizes::default())
    }
}

fn snapshot(state: &State) -> Snapshot {
    let mut queues: std::collections::BTreeMap<(AgentId, u8, u64), u64> = Default::default();
    let mut open = Vec::new();
    for row in state.executions.values() {
        match row.status {
            Status::Queued => {
                let key = (row.agent.clone(), row.queue.class, row.queue.turn);
                *queues.entry(key).or_default() += 1;
            }
            Status::Running | Status::Waiting | Status::Paused => {
                let all = (row.id.clone(), 0)..=(row.id.clone(), u32::MAX);
                let latest = state.attempts.range(all).next_back();
                open.push(OpenExecution {
                    row: row.clone(),
                    attempt: latest.map(|(_, row)| row.clone()),
                });
            }
            Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout => {}
        }
    }
    let is_open = |run: &RunId| state.run_members(run).any(|row| !row.status.is_terminal());
    Snapshot {
        fleet: state.fleet.snapshot(Timestamp::wall_clock()),
        last_seq: state.last_seq(),
        last_at: state
            .events
            .last_key_value()
            .map_or(Timestamp::ZERO, |(_, row)| row.at),
        agents: state.agents.values().cloned().collect(),
        instances: question::instances(state),
        open,
        queues: queues
            .into_iter()
            .map(|((agent, class, turn), count)| QueueCount {
                agent,
                class,
                turn,
                count,
            })
            .collect(),
        runs: state
            .runs
            .values()
            .filter(|run| is_open(&run.id))
            .cloned()
            .collect(),
        approvals: state
            .approvals
            .values()
            .filter(|row| {
                row.decided_at.is_none() || (row.told.is_none() && row.decision.is_some())
            })
            .cloned()
            .collect(),
        hold: state.hold.clone(),
        held_by: state.held_by.clone().into_iter().collect(),
    }
}
