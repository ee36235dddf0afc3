//! A start with a large history: a store is filled through its own interface, in big commits,
//! and a plane is started on it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{
    AttemptOutcome, AttemptRow, EventKind, EventRow, ExecutionRow, Payload, PayloadKind, QueueKey,
};
use muster_store::sqlite::{Options, SqliteStore};
use muster_store::{Commit, CommitEnd, LeaseId, Store};
use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionKind, FunctionName, InstanceId, Lane, Origin,
    RunId, SecretHash, Status, Timestamp, mint,
};

use super::bodies;
use super::gates::Gates;
use super::process::Process;
use super::site::Site;
use crate::say;

const PER_COMMIT: u64 = 10_000;

/// Measures it.
pub(crate) fn measure(site: &mut Site, gates: &mut Gates) -> anyhow::Result<()> {
    let count = site.scaled(1_000_000);
    let empty = site.new_store();
    let (plane, _) = site.plane(&empty, &[])?;
    site.register_bench()?;
    let without = after_a_few_calls(site, &plane)?;
    drop(plane);

    let data = site.new_store();
    let began = Instant::now();
    fill(&data, count)?;
    let took = began.elapsed().as_secs_f64();
    say::note(&format!(
        "{count} finished executions written in {took:.0} s"
    ));

    let mut times = Vec::new();
    for _ in 0..5 {
        let (plane, ready) = site.plane(&data, &[])?;
        times.push(ready.as_secs_f64());
        drop(plane);
    }
    times.sort_by(f64::total_cmp);
    let ready = times[times.len() / 2];
    let what = format!("ready with {count} finished executions");
    gates.at_most(&what, ready, "s", 1.0, 0.2);

    let (plane, _) = site.plane(&data, &[])?;
    site.register_bench()?;
    let with = after_a_few_calls(site, &plane)?;
    gates.at_most(
        "memory that the history costs",
        with - without,
        "MiB",
        8.0,
        2.0,
    );
    Ok(())
}

fn after_a_few_calls(site: &Site, plane: &Process) -> anyhow::Result<f64> {
    for _ in 0..20 {
        let path = "/api/v1/execute/bench.fast";
        let (status, text) = site.ask(site.plane_at, "POST", path, bodies::CALL)?;
        anyhow::ensure!(status == 200, "{status} {text}");
    }
    std::thread::sleep(Duration::from_secs(1));
    Ok(plane.memory())
}

/// Writes so many finished executions, each a run of its own with one attempt, both payloads
/// and three events, spread over the hours before now.
fn fill(data: &Path, count: u64) -> anyhow::Result<()> {
    let store = SqliteStore::open(data, Options::default())?;
    let lease = store.take_lease(LeaseId::default(), "bench")?;
    let start = Timestamp::wall_clock() - Duration::from_secs(6 * 3600);
    let mut seq = store.last_seq()?;
    let mut done = 0;
    while done < count {
        let mut writes = Vec::new();
        let after_seq = seq;
        for n in done..(done + PER_COMMIT).min(count) {
            let at = start + Duration::from_micros(n * 20_000);
            finished(n, at, &mut seq, &mut writes);
        }
        let commit = Commit {
            lease: lease.clone(),
            after_seq,
            last_seq: seq,
            writes,
        };
        match store.commit(&commit) {
            CommitEnd::Committed => done += PER_COMMIT,
            CommitEnd::Refused { cause, .. } | CommitEnd::Unknown(cause) => bail!(cause),
        }
    }
    Ok(())
}

fn finished(n: u64, at: Timestamp, seq: &mut u64, writes: &mut Vec<Write>) {
    let id = ExecutionId::trusted(mint("exec"));
    let run = RunId::trusted(mint("run"));
    let agent = AgentId::trusted(format!("past-{}", n % 50));
    let function = FunctionName::trusted("fast");
    let end = at + Duration::from_millis(5);
    let result = Payload(Bytes::from_static(br#"{"ok":true}"#));
    let input = Payload(Bytes::from_static(bodies::INPUT.as_bytes()));
    writes.push(Write::InsertExecution(Arc::new(ExecutionRow {
        id: id.clone(),
        run: run.clone(),
        root: id.clone(),
        parent: None,
        depth: 0,
        kind: ExecutionKind::Dispatched,
        lane: Lane::Sync,
        agent: agent.clone(),
        function: function.clone(),
        function_kind: FunctionKind::Skill,
        status: Status::Succeeded,
        status_reason: None,
        error_category: None,
        error_text: None,
        error_status: None,
        queue: QueueKey {
            class: 5,
            turn: 0,
            seq: n,
        },
        attempt: 1,
        holds: Vec::new(),
        over_cap: false,
        created_at: at,
        started_at: Some(at),
        ended_at: Some(end),
        active_us: 5_000,
        clock_from: None,
        deadline_us: 3 * 3600 * 1_000_000,
        absorb_until: None,
        input_size: input.len() as u64,
        input_hash: [7; 16],
        result_size: Some(result.len() as u64),
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
    writes.push(Write::InsertAttempt(Box::new(AttemptRow {
        execution: id.clone(),
        n: 1,
        instance: InstanceId::trusted("i-past"),
        candidates: Vec::new(),
        secret_hash: SecretHash([0; 16]),
        sent_at: at,
        accepted_at: None,
        ended_at: Some(end),
        outcome: Some(AttemptOutcome::Answered),
        evidence: None,
    })));
    for (kind, bytes) in [(PayloadKind::Input, input), (PayloadKind::Result, result)] {
        writes.push(Write::PutPayload {
            execution: id.clone(),
            kind,
            bytes,
        });
    }
    for (kind, status, at) in [
        (EventKind::ExecutionQueued, Status::Queued, at),
        (EventKind::ExecutionStarted, Status::Running, at),
        (EventKind::ExecutionSucceeded, Status::Succeeded, end),
    ] {
        *seq += 1;
        writes.push(Write::InsertEvent(Arc::new(EventRow {
            seq: *seq,
            at,
            kind,
            execution: Some(id.clone()),
            run: Some(run.clone()),
            agent: Some(agent.clone()),
            function: Some(function.clone()),
            instance: Some(InstanceId::trusted("i-past")),
            node: None,
            worker: None,
            attempt: Some(1),
            status: Some(status),
            reason: None,
            category: None,
            text: None,
        })));
    }
}
