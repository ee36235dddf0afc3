//! Rows to write, and a hand that commits them in order.

use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::effect::{Ending, ExecutionChange};
use muster_engine::event::{Submission, Waiter};
use muster_engine::row::{
    AgentRow, AttemptRow, EventKind, EventRow, ExecutionRow, Function, InstanceRow, Payload,
    PayloadKind, QueueKey,
};
use muster_store::{Annex, Commit, CommitEnd, Lease, LeaseId, Page, Store};
use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionKind, FunctionName, InstanceId, Lane, Origin,
    RunId, SecretHash, Status, Timestamp,
};

/// A store with its annex.
pub(crate) trait Both: Store + Annex {}
impl<T: Store + Annex> Both for T {}

/// Commits writes under a lease, one event number after the other.
pub(crate) struct Hand<'s> {
    pub(crate) store: &'s dyn Both,
    pub(crate) lease: Lease,
    pub(crate) seq: Cell<u64>,
}

impl<'s> Hand<'s> {
    pub(crate) fn on(store: &'s dyn Both) -> Self {
        let lease = store.take_lease(LeaseId(0), "test").unwrap();
        let seq = store.last_seq().unwrap();
        Self {
            store,
            lease,
            seq: Cell::new(seq),
        }
    }

    pub(crate) fn prepared(&self, mut writes: Vec<Write>) -> Commit {
        let after_seq = self.seq.get();
        let mut last_seq = after_seq;
        for write in &mut writes {
            if let Write::InsertEvent(event) = write {
                last_seq += 1;
                Arc::make_mut(event).seq = last_seq;
            }
        }
        Commit {
            audit: Vec::new(),
            lease: self.lease.clone(),
            after_seq,
            last_seq,
            writes,
        }
    }

    /// Commits; events get the next numbers.
    pub(crate) fn commit(&self, writes: Vec<Write>) {
        let commit = self.prepared(writes);
        match self.store.commit(&commit) {
            CommitEnd::Committed => self.seq.set(commit.last_seq),
            other => panic!("not committed: {other:?}"),
        }
    }

    /// Commits what must be refused for good, and leaves nothing behind.
    pub(crate) fn refused(&self, writes: Vec<Write>) -> String {
        let commit = self.prepared(writes);
        match self.store.commit(&commit) {
            CommitEnd::Refused {
                passing: false,
                cause,
            } => cause.to_string(),
            other => panic!("not refused for good: {other:?}"),
        }
    }

    pub(crate) fn insert(&self, row: &ExecutionRow) {
        self.commit(vec![Write::InsertExecution(Arc::new(row.clone()))]);
    }

    pub(crate) fn insert_all(&self, rows: &[ExecutionRow]) {
        let insert = |row: &ExecutionRow| Write::InsertExecution(Arc::new(row.clone()));
        self.commit(rows.iter().map(insert).collect());
    }

    pub(crate) fn end(&self, id: &str, status: Status, at: i64) {
        self.commit(vec![ended(id, status, at)]);
    }
}

pub(crate) fn execution_id(id: &str) -> ExecutionId {
    ExecutionId::trusted(id)
}

pub(crate) fn run_id(id: &str) -> RunId {
    RunId::trusted(id)
}

pub(crate) fn agent_id(id: &str) -> AgentId {
    AgentId::trusted(id)
}

pub(crate) fn payload(bytes: &[u8]) -> Payload {
    Payload(Bytes::copy_from_slice(bytes))
}

/// A queued root of its own run, as plain as can be.
pub(crate) fn row(id: &str, at: i64) -> ExecutionRow {
    ExecutionRow {
        id: execution_id(id),
        run: run_id(&format!("run-of-{id}")),
        root: execution_id(id),
        parent: None,
        depth: 0,
        kind: ExecutionKind::Dispatched,
        lane: Lane::Async,
        agent: agent_id("agent"),
        function: FunctionName::trusted("function"),
        function_kind: FunctionKind::Reasoner,
        status: Status::Queued,
        status_reason: None,
        error_category: None,
        error_text: None,
        error_status: None,
        queue: QueueKey {
            class: 5,
            turn: 1,
            seq: u64::try_from(at).unwrap(),
        },
        attempt: 0,
        holds: Vec::new(),
        over_cap: false,
        created_at: Timestamp(at),
        started_at: None,
        ended_at: None,
        active_us: 0,
        clock_from: None,
        deadline_us: 1_000_000,
        absorb_until: None,
        input_size: 2,
        input_hash: [7; 16],
        result_size: None,
        key_hash: None,
        principal: Arc::from("owner"),
        session: None,
        actor: None,
        traceparent: None,
        usage: None,
        origin: Origin::Dev,
        late_outcome: None,
        wait: None,
        resume_to: None,
        on_parent_end: muster_wire::ParentEnd::Detach,
        links: None,
    }
}

/// A member of a run, called by another.
pub(crate) fn child(id: &str, parent: &ExecutionRow, at: i64) -> ExecutionRow {
    ExecutionRow {
        run: parent.run.clone(),
        root: parent.root.clone(),
        parent: Some(parent.id.clone()),
        depth: parent.depth + 1,
        ..row(id, at)
    }
}

pub(crate) fn attempt(execution: &str, n: u32, at: i64) -> AttemptRow {
    AttemptRow {
        execution: execution_id(execution),
        n,
        instance: InstanceId::trusted("url:http://127.0.0.1:9000"),
        candidates: Vec::new(),
        secret_hash: SecretHash([9; 16]),
        sent_at: Timestamp(at),
        accepted_at: None,
        ended_at: None,
        outcome: None,
        evidence: None,
    }
}

pub(crate) fn started(id: &str, attempt: u32, at: i64) -> Write {
    Write::UpdateExecution {
        id: execution_id(id),
        change: ExecutionChange::Started {
            attempt,
            started_at: Timestamp(at),
            clock_from: Timestamp(at),
            active_us: 0,
            over_cap: false,
            holds: vec![agent_id("agent")],
        },
    }
}

pub(crate) fn ending(status: Status, at: i64) -> Ending {
    Ending {
        status,
        reason: None,
        category: None,
        error: None,
        http_status: None,
        at: Timestamp(at),
        active_us: 5,
        result_size: None,
        usage: None,
    }
}

pub(crate) fn ended(id: &str, status: Status, at: i64) -> Write {
    Write::UpdateExecution {
        id: execution_id(id),
        change: ExecutionChange::Ended(Box::new(ending(status, at))),
    }
}

pub(crate) fn put(id: &str, kind: PayloadKind, bytes: &[u8]) -> Write {
    Write::PutPayload {
        execution: execution_id(id),
        kind,
        bytes: payload(bytes),
    }
}

pub(crate) fn event(kind: EventKind, at: i64) -> EventRow {
    EventRow {
        seq: 0,
        at: Timestamp(at),
        kind,
        execution: None,
        run: None,
        agent: None,
        function: None,
        instance: None,
        node: None,
        worker: None,
        attempt: None,
        status: None,
        reason: None,
        category: None,
        text: None,
    }
}

pub(crate) fn say(row: EventRow) -> Write {
    Write::InsertEvent(Arc::new(row))
}

pub(crate) fn submission(run: Option<&str>, agent: &str) -> Submission {
    Submission {
        waiter: Waiter(1),
        lane: Lane::Async,
        execution: execution_id("new"),
        run: run_id(run.unwrap_or("run-new")),
        run_claimed: run.is_some(),
        parent: None,
        agent: agent_id(agent),
        function: FunctionName::trusted("function"),
        principal: Arc::from("owner"),
        key_hash: None,
        idempotency_key: None,
        body_hash: [0; 16],
        input: payload(b"{}"),
        input_stored: None,
        input_fault: None,
        class: None,
        deadline: None,
        session: None,
        actor: None,
        traceparent: None,
        on_parent_end: None,
        webhook: None,
        llm_endpoint: None,
        replay: None,
        replay_index: None,
        restart: None,
        received_at: Timestamp(1),
        known: muster_engine::event::Known::default(),
    }
}

pub(crate) fn first_page(limit: usize) -> Page {
    Page { after: None, limit }
}

pub(crate) fn ids(rows: &[ExecutionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

/// The ids of every page, walked with the cursor of the last row of each.
pub(crate) fn walk(
    store: &dyn Both,
    filter: &muster_store::ExecutionFilter,
    limit: usize,
) -> Vec<String> {
    let mut seen = Vec::new();
    let mut page = first_page(limit);
    loop {
        let rows = store.executions(filter, &page).unwrap();
        assert!(rows.len() <= limit);
        seen.extend(rows.iter().map(|row| row.id.to_string()));
        match rows.last() {
            Some(last) => page.after = Some((last.created_at, last.id.to_string())),
            None => return seen,
        }
    }
}

pub(crate) fn agent(id: &str, held: bool) -> AgentRow {
    AgentRow {
        id: agent_id(id),
        principal: Arc::from("owner"),
        created_at: Timestamp(1),
        registered_at: Timestamp(2),
        registration: payload(b"{}"),
        held,
        tags: Default::default(),
        cap: None,
    }
}

pub(crate) fn instance(agent: &str, id: &str, at: i64) -> InstanceRow {
    InstanceRow {
        agent: agent_id(agent),
        id: InstanceId::trusted(id),
        base_url: Arc::from("http://127.0.0.1:9000"),
        version: Arc::from("1.0"),
        functions: Arc::new(vec![Function {
            name: FunctionName::trusted("function"),
            kind: FunctionKind::Skill,
            required: vec!["field".into()],
            idempotent: true,
            cancel_with_parent: false,
        }]),
        registered_at: Timestamp(at),
        renewed_at: Timestamp(at),
        goodbye_at: None,
        gone_at: None,
        gone_evidence: None,
        orphans_at: None,
        worker: None,
    }
}
