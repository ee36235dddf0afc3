//! What one synchronous execution costs the store: CPU and fsyncs, at batches of 1, 16 and 64.
//!
//! `cargo run --release -p muster-store --example commit_rate [executions] [power|process]`
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::effect::{Ending, ExecutionChange};
use muster_engine::event::AttemptKey;
use muster_engine::row::{
    AttemptOutcome, AttemptRow, EventKind, EventRow, ExecutionRow, Payload, PayloadKind, QueueKey,
};
use muster_store::{Commit, CommitEnd, Durability, Lease, LeaseId, Options, SqliteStore, Store};
use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionKind, FunctionName, InstanceId, Lane, Origin,
    RunId, SecretHash, Status, Timestamp,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let count = args.next().and_then(|n| n.parse().ok()).unwrap_or(50_000);
    let durability = args
        .next()
        .and_then(|word| Durability::from_word(&word))
        .unwrap_or_default();
    println!("{count} executions each, durability {}", durability.word());
    println!(
        "{:>6} {:>12} {:>14} {:>12} {:>16} {:>14} {:>10}",
        "batch", "per second", "µs CPU each", "commits", "p50/p99 ms", "KiB written", "fsyncs"
    );
    for batch in [1, 16, 64] {
        let count = if batch == 1 { count / 5 } else { count };
        measure(count, batch, durability);
    }
}

fn measure(count: usize, batch: usize, durability: Durability) {
    let place = std::env::temp_dir().join(format!("muster-commit-rate-{}", std::process::id()));
    let options = Options {
        durability,
        ..Options::default()
    };
    let store = SqliteStore::open(&place, options).expect("the store opens");
    let lease = store.take_lease(LeaseId(0), "bench").expect("a lease");
    let mut seq = 0;
    let mut took = Vec::with_capacity(2 * count / batch);
    // Decide everything first: only the store is measured.
    let ids: Vec<Ids> = (0..count).map(|_| Ids::fresh()).collect();
    let mut first: Vec<Commit> = Vec::new();
    let mut second: Vec<Commit> = Vec::new();
    for ids in ids.chunks(batch) {
        first.push(commit(&lease, &mut seq, ids, begun));
        second.push(commit(&lease, &mut seq, ids, ended));
    }
    let before = Usage::now();
    let start = Instant::now();
    for (first, second) in first.iter().zip(&second) {
        for commit in [first, second] {
            let began = Instant::now();
            let end = store.commit(commit);
            assert!(matches!(end, CommitEnd::Committed), "{end:?}");
            took.push(began.elapsed());
        }
    }
    let wall = start.elapsed();
    let used = Usage::now();
    took.sort();
    let at = |share: f64| took[(took.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{:>6} {:>12.0} {:>14.1} {:>12} {:>16} {:>14.1} {:>10}",
        batch,
        count as f64 / wall.as_secs_f64(),
        (used.cpu_us - before.cpu_us) as f64 / count as f64,
        took.len(),
        format!("{:.2}/{:.2}", at(0.5), at(0.99)),
        (used.written - before.written) as f64 / 1024.0 / count as f64,
        took.len(),
    );
    let began = Instant::now();
    let restored = store.restore().expect("restores");
    assert_eq!(restored.snapshot.open.len(), 0);
    println!(
        "       restore took {:.2} ms",
        began.elapsed().as_secs_f64() * 1e3
    );
    drop(store);
    std::fs::remove_dir_all(&place).expect("the directory goes");
}

struct Usage {
    cpu_us: u64,
    written: u64,
}

impl Usage {
    /// CPU time of this process in user and kernel, and bytes it handed to the disk.
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let main: u64 = stat
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        let others: u64 = std::fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .flatten()
            .filter(|task| task.file_name() != *std::process::id().to_string())
            .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
            .filter_map(|stat| stat.split(' ').next()?.parse::<u64>().ok())
            .sum();
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let written = io
            .lines()
            .find_map(|line| line.strip_prefix("wchar: ")?.parse().ok())
            .unwrap_or(0);
        Self {
            cpu_us: (main + others) / 1000,
            written,
        }
    }
}

struct Ids {
    execution: ExecutionId,
    run: RunId,
}

impl Ids {
    fn fresh() -> Self {
        Self {
            execution: ExecutionId::mint(),
            run: RunId::mint(),
        }
    }
}

fn commit(
    lease: &Lease,
    seq: &mut u64,
    ids: &[Ids],
    each: impl Fn(&Ids, u64, &mut Vec<Write>),
) -> Commit {
    let after_seq = *seq;
    let mut writes = Vec::with_capacity(ids.len() * 5);
    for ids in ids {
        *seq += 1;
        each(ids, *seq, &mut writes);
    }
    Commit {
        audit: Vec::new(),
        lease: lease.clone(),
        after_seq,
        last_seq: *seq,
        writes,
    }
}

/// A synchronous call is accepted and dispatched.
fn begun(ids: &Ids, seq: u64, writes: &mut Vec<Write>) {
    let now = Timestamp::wall_clock();
    let agent = AgentId::trusted("noop-agent");
    let instance = InstanceId::trusted("url:http://127.0.0.1:9001");
    let function = FunctionName::trusted("noop");
    writes.push(Write::InsertExecution(Arc::new(ExecutionRow {
        id: ids.execution.clone(),
        run: ids.run.clone(),
        root: ids.execution.clone(),
        parent: None,
        depth: 0,
        kind: ExecutionKind::Dispatched,
        lane: Lane::Sync,
        agent: agent.clone(),
        function: function.clone(),
        function_kind: FunctionKind::Reasoner,
        status: Status::Running,
        status_reason: None,
        error_category: None,
        error_text: None,
        error_status: None,
        queue: QueueKey {
            class: 5,
            turn: 0,
            seq,
        },
        attempt: 1,
        holds: vec![agent.clone()],
        over_cap: false,
        created_at: now,
        started_at: Some(now),
        ended_at: None,
        active_us: 0,
        clock_from: Some(now),
        deadline_us: 10_800_000_000,
        absorb_until: None,
        input_size: 64,
        input_hash: [3; 16],
        result_size: None,
        key_hash: None,
        principal: Arc::from("owner"),
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
    })));
    writes.push(Write::PutPayload {
        execution: ids.execution.clone(),
        kind: PayloadKind::Input,
        bytes: Payload(Bytes::from_static(&[b'x'; 64])),
    });
    writes.push(Write::InsertAttempt(Box::new(AttemptRow {
        execution: ids.execution.clone(),
        n: 1,
        instance: instance.clone(),
        candidates: Vec::new(),
        secret_hash: SecretHash([5; 16]),
        sent_at: now,
        accepted_at: None,
        ended_at: None,
        outcome: None,
        evidence: None,
    })));
    writes.push(line(ids, seq, EventKind::ExecutionStarted, Status::Running));
}

/// Its agent answered.
fn ended(ids: &Ids, seq: u64, writes: &mut Vec<Write>) {
    let now = Timestamp::wall_clock();
    writes.push(Write::UpdateExecution {
        id: ids.execution.clone(),
        change: ExecutionChange::Ended(Box::new(Ending {
            status: Status::Succeeded,
            reason: None,
            category: None,
            error: None,
            http_status: None,
            at: now,
            active_us: 1_234,
            result_size: Some(64),
            usage: None,
        })),
    });
    writes.push(Write::EndAttempt {
        attempt: AttemptKey {
            execution: ids.execution.clone(),
            n: 1,
        },
        at: now,
        outcome: AttemptOutcome::Answered,
        evidence: None,
    });
    writes.push(Write::PutPayload {
        execution: ids.execution.clone(),
        kind: PayloadKind::Result,
        bytes: Payload(Bytes::from_static(&[b'y'; 64])),
    });
    writes.push(line(
        ids,
        seq,
        EventKind::ExecutionSucceeded,
        Status::Succeeded,
    ));
}

fn line(ids: &Ids, seq: u64, kind: EventKind, status: Status) -> Write {
    Write::InsertEvent(Arc::new(EventRow {
        seq,
        at: Timestamp::wall_clock(),
        kind,
        execution: Some(ids.execution.clone()),
        run: Some(ids.run.clone()),
        agent: Some(AgentId::trusted("noop-agent")),
        function: Some(FunctionName::trusted("noop")),
        instance: Some(InstanceId::trusted("url:http://127.0.0.1:9001")),
        node: None,
        worker: None,
        attempt: Some(1),
        status: Some(status),
        reason: None,
        category: None,
        text: None,
    }))
}
