//! How long a start and a list take with a large history and a long queue.
//!
//! `cargo run --release -p muster-store --example scale [finished] [queued]`
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use muster_engine::Write;
use muster_engine::row::{ExecutionRow, QueueKey};
use muster_store::{
    Also, Commit, CommitEnd, Durability, ExecutionFilter, Glance, LeaseId, Options, Page,
    RunFilter, SqliteStore, Store,
};
use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionKind, FunctionName, Lane, Origin, RunId, Status,
    Timestamp,
};

const BATCH: u64 = 1_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default| args.next().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (finished, queued): (u64, u64) = (number(1_000_000), number(1_000_000));
    let place = std::env::temp_dir().join(format!("muster-scale-{}", std::process::id()));
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let store = SqliteStore::open(&place, options.clone()).expect("the store opens");
    let lease = store.take_lease(LeaseId(0), "scale").expect("a lease");
    let began = Instant::now();
    for from in (0..finished + queued).step_by(BATCH as usize) {
        let rows = (from..(finished + queued).min(from + BATCH)).map(|n| row(n, n < finished));
        let commit = Commit {
            audit: Vec::new(),
            lease: lease.clone(),
            after_seq: 0,
            last_seq: 0,
            writes: rows
                .map(|row| Write::InsertExecution(Arc::new(row)))
                .collect(),
        };
        let end = store.commit(&commit);
        assert!(matches!(end, CommitEnd::Committed), "{end:?}");
    }
    println!(
        "{finished} finished, {queued} queued: written in {:.1?}",
        began.elapsed()
    );
    drop(store);

    let began = Instant::now();
    let store = SqliteStore::open(&place, options).expect("the store opens again");
    println!("open            {:>10.2?}", began.elapsed());
    for _ in 0..3 {
        timed("restore", || {
            store.restore().map(|r| r.snapshot.queues.len())
        });
    }
    let page = Page {
        after: None,
        limit: 100,
    };
    timed("executions", || {
        Ok(store.executions(&ExecutionFilter::default(), &page)?.len())
    });
    let with = |statuses: &[Status]| ExecutionFilter {
        statuses: statuses.to_vec(),
        ..ExecutionFilter::default()
    };
    timed("queued ones", || {
        Ok(store.executions(&with(&[Status::Queued]), &page)?.len())
    });
    timed("failed ones", || {
        Ok(store.executions(&with(&[Status::Failed]), &page)?.len())
    });
    timed("by id part", || {
        let filter = ExecutionFilter {
            id_part: Some("nothing".into()),
            ..ExecutionFilter::default()
        };
        Ok(store.executions(&filter, &page)?.len())
    });
    timed("runs", || {
        Ok(store.runs(&RunFilter::default(), &page)?.len())
    });
    let with = |statuses: &[Status]| RunFilter {
        statuses: statuses.to_vec(),
        ..RunFilter::default()
    };
    timed("open runs", || {
        Ok(store.runs(&with(&[Status::Running]), &page)?.len())
    });
    timed("good runs", || {
        Ok(store.runs(&with(&[Status::Succeeded]), &page)?.len())
    });
    let ask = Glance {
        from: row(finished + queued, true).created_at - std::time::Duration::from_secs(3_600),
        bucket: std::time::Duration::from_secs(60),
        buckets: 60,
    };
    for _ in 0..2 {
        timed("glance", || Ok(store.glance(&ask)?.queued.len()));
    }
    timed("by agent", || {
        Ok(store.ended_by_agent(ask.from, None)?.len())
    });
    timed("ids", || Ok(store.find_ids("NOTHING", 9)?.executions.len()));
    timed("counts of runs", || {
        Ok(store.run_counts(&RunFilter::default())?.len())
    });
    timed("counts", || {
        Ok(store.execution_counts(&ExecutionFilter::default())?.len())
    });
    let text = Also {
        text: Some("agent-7".into()),
        ..Also::default()
    };
    timed("counts by text", || {
        let also = text.clone();
        let filter = ExecutionFilter {
            also,
            ..ExecutionFilter::default()
        };
        Ok(store.execution_counts(&filter)?.len())
    });
    timed("runs by text", || {
        let filter = RunFilter {
            also: text.clone(),
            ..RunFilter::default()
        };
        Ok(store.run_counts(&filter)?.len())
    });
    timed("lately", || {
        let ended_since = Some(Timestamp(
            1_700_000_000_000_000 + finished as i64 * 1_000 - 500_000,
        ));
        let also = Also {
            ended_since,
            ..Also::default()
        };
        let filter = ExecutionFilter {
            also,
            ..ExecutionFilter::default()
        };
        Ok(store.executions(&filter, &page)?.len())
    });
    timed("window", || {
        let agent = AgentId::trusted("agent-7");
        Ok(store.window(&agent, None, 128)?.rows.len())
    });
    println!("sizes           {:?}", store.sizes().expect("sizes").kinds);
    drop(store);
    std::fs::remove_dir_all(&place).expect("the directory goes");
}

fn timed(what: &str, ask: impl FnOnce() -> muster_store::StoreResult<usize>) {
    let began = Instant::now();
    let found = ask().expect(what);
    println!("{what:<15} {:>10.2?}  ({found})", began.elapsed());
}

fn row(n: u64, finished: bool) -> ExecutionRow {
    let at = Timestamp(1_700_000_000_000_000 + n as i64 * 1_000);
    let id = ExecutionId::mint();
    let status = match n % 1_000 {
        _ if !finished => Status::Queued,
        0 => Status::Failed,
        _ => Status::Succeeded,
    };
    ExecutionRow {
        root: id.clone(),
        id,
        run: RunId::mint(),
        parent: None,
        depth: 0,
        kind: ExecutionKind::Dispatched,
        lane: Lane::Async,
        agent: AgentId::trusted(format!("agent-{}", n % 100)),
        function: FunctionName::trusted("noop"),
        function_kind: FunctionKind::Reasoner,
        status,
        status_reason: None,
        error_category: None,
        error_text: None,
        error_status: None,
        queue: QueueKey {
            class: 5,
            turn: n / 100_000,
            seq: n,
        },
        attempt: 0,
        holds: Vec::new(),
        over_cap: false,
        created_at: at,
        started_at: None,
        ended_at: finished.then_some(at),
        active_us: 0,
        clock_from: None,
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
    }
}
