//! Whatever is written in whatever order: both stores refuse the same and answer the same.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::AttemptKey;
use muster_engine::row::{AttemptOutcome, EventKind, HeldBy, KeyRow, PayloadKind, RunRow};
use muster_store::{
    CommitEnd, Durability, ExecutionFilter, MemoryStore, Options, Page, RunFilter, SqliteStore,
};
use muster_wire::{AttemptRef, Status, Timestamp};
use proptest::prelude::*;

use crate::support::*;

/// Few ids, so that writes meet each other.
const IDS: u8 = 8;

fn id(n: u8) -> String {
    format!("e{n}")
}

fn write() -> impl Strategy<Value = Write> {
    let n = || 0..IDS;
    let at = || 1..100_i64;
    let status = || prop::sample::select(Status::ALL);
    let terminal = || status().prop_filter("terminal", |s| s.is_terminal());
    let kind = prop::sample::select(&[
        PayloadKind::Input,
        PayloadKind::Result,
        PayloadKind::ErrorDetails,
        PayloadKind::Late,
    ]);
    prop_oneof![
            6 => (n(), prop::option::of(n()), at(), status(), 0..3_u8, 0..3_u64).prop_map(
                |(n, parent, at, status, class, turn)| {
                    let mut new = match parent {
                        Some(parent) if parent != n => child(&id(n), &row(&id(parent), 1), at),
                        _ => row(&id(n), at),
                    };
                    new.status = status;
                    new.ended_at = status.is_terminal().then_some(Timestamp(at));
                    (new.queue.class, new.queue.turn) = (class, turn);
                    Write::InsertExecution(Arc::new(new))
                }
            ),
            3 => (n(), 1..4_u32, at()).prop_map(|(n, attempt, at)| started(&id(n), attempt, at)),
            3 => (n(), terminal(), at()).prop_map(|(n, status, at)| ended(&id(n), status, at)),
            1 => (n(), at()).prop_map(|(n, at)| Write::UpdateExecution {
                id: execution_id(&id(n)),
                change: ExecutionChange::Absorbed {
                    until: Timestamp(at),
                    started_at: Timestamp(at),
                    clock_from: Timestamp(at),
                    over_cap: at % 2 == 0,
                },
            }),
            1 => (n(), status()).prop_map(|(n, status)| Write::UpdateExecution {
                id: execution_id(&id(n)),
                change: ExecutionChange::Late { status },
            }),
            2 => (n(), 1..3_u32, at()).prop_map(|(n, attempt_n, at)| {
                Write::InsertAttempt(Box::new(attempt(&id(n), attempt_n, at)))
            }),
            1 => (n(), 1..3_u32, at()).prop_map(|(n, attempt, at)| Write::AcceptAttempt {
                attempt: AttemptKey { execution: execution_id(&id(n)), n: attempt },
                at: Timestamp(at),
            }),
            1 => (n(), 1..3_u32, at()).prop_map(|(n, attempt, at)| Write::EndAttempt {
                attempt: AttemptKey { execution: execution_id(&id(n)), n: attempt },
                at: Timestamp(at),
                outcome: AttemptOutcome::Broke,
                evidence: Some(payload(b"e")),
            }),
            2 => (n(), kind, prop::collection::vec(any::<u8>(), 0..20))
                .prop_map(|(n, kind, bytes)| put(&id(n), kind, &bytes)),
            1 => (n(), prop::option::of(at())).prop_map(|(n, at)| Write::PutRun(Box::new(RunRow {
                id: run_id(&format!("run-of-{}", id(n))),
                root: execution_id(&id(n)),
    paused_at: None,
    paused_by: None,
    source: None,
                cancelled_at: at.map(Timestamp),
                cancelled_by: Some(Arc::from("by")),
            }))),
            1 => (n(), n()).prop_map(|(key, n)| Write::InsertKey(Box::new(KeyRow {
                key: Arc::from(format!("owner\0{key}")),
                execution: execution_id(&id(n)),
                body_hash: [n; 16],
                at: Timestamp(1),
            }))),
            2 => (n(), at()).prop_map(|(n, at)| {
                let mut line = event(EventKind::ExecutionQueued, at);
                line.execution = Some(execution_id(&id(n)));
                say(line)
            }),
            1 => any::<bool>().prop_map(|held| Write::SetHold(held.then(|| Arc::from("held")))),
            1 => (any::<bool>(), any::<bool>()).prop_map(|(one, held)| Write::SetHeldBy {
                agent: one.then(|| agent_id("agent")),
                by: held.then(|| HeldBy {
                    by: Arc::from("ada"),
                    at: Timestamp(5),
                    reason: Arc::from("held"),
                }),
            }),
            1 => any::<bool>().prop_map(|held| Write::PutAgent(Box::new(agent("agent", held)))),
            1 => any::<bool>()
                .prop_map(|held| Write::SetAgentHold { agent: agent_id("agent"), held }),
            1 => proptest::option::of(0..3_u32)
                .prop_map(|cap| Write::SetAgentCap { agent: agent_id("agent"), cap }),
        ]
}

/// Commits in the same way, and says whether it was taken.
fn commit(hand: &Hand<'_>, writes: &[Write]) -> bool {
    let commit = hand.prepared(writes.to_vec());
    match hand.store.commit(&commit) {
        CommitEnd::Committed => {
            hand.seq.set(commit.last_seq);
            true
        }
        CommitEnd::Refused { passing: false, .. } => false,
        other => panic!("{other:?}"),
    }
}

/// Everything that can be asked, as text.
fn answers(store: &dyn Both) -> Vec<String> {
    let mut out = vec![
        format!("{:?}", store.restore().unwrap().snapshot),
        format!("{:?}", store.events(0, 1_000).unwrap()),
        format!("{:?}", store.agents(None).unwrap()),
    ];
    let mut filters = vec![ExecutionFilter::default()];
    for status in Status::ALL {
        filters.push(ExecutionFilter {
            statuses: vec![*status],
            ..ExecutionFilter::default()
        });
        let runs = RunFilter {
            statuses: vec![*status],
            ..RunFilter::default()
        };
        out.push(format!(
            "{:?}",
            store.runs(&runs, &first_page(100)).unwrap()
        ));
    }
    for n in 0..IDS {
        let execution = execution_id(&id(n));
        let run = run_id(&format!("run-of-{}", id(n)));
        filters.push(ExecutionFilter {
            run: Some(run.clone()),
            oldest_first: n % 2 == 0,
            ..ExecutionFilter::default()
        });
        filters.push(ExecutionFilter {
            parent: Some(execution.clone()),
            ..ExecutionFilter::default()
        });
        let mut ask = submission(Some(run.as_str()), "agent");
        ask.parent = AttemptRef::parse(execution.as_str()).ok();
        ask.idempotency_key = Some(Arc::from(format!("owner\0{n}")));
        out.push(format!("{:?}", store.known(&ask).unwrap()));
        out.push(format!("{:?}", store.tree(&run).unwrap()));
        out.push(format!("{:?}", store.run(&run).unwrap()));
        out.push(format!("{:?}", store.execution(&execution).unwrap()));
        out.push(format!("{:?}", store.attempts(&execution).unwrap()));
        out.push(format!("{:?}", store.events_of(&execution, 100).unwrap()));
        for kind in [
            PayloadKind::Input,
            PayloadKind::Result,
            PayloadKind::ErrorDetails,
            PayloadKind::Late,
        ] {
            out.push(format!(
                "{:?}",
                store.payload(&execution, kind).unwrap().map(|p| p.0)
            ));
        }
    }
    for filter in filters {
        for page in [
            first_page(3),
            first_page(100),
            Page {
                after: Some((Timestamp(50), "e3".into())),
                limit: 100,
            },
        ] {
            out.push(format!("{:?}", store.executions(&filter, &page).unwrap()));
        }
    }
    // Two entries of one place are not ordered, so only how many there are is told.
    let window = store.window(&agent_id("agent"), None, 100).unwrap();
    out.push(format!(
        "{} {} {}",
        window.rows.len(),
        window.exhausted,
        window.as_of
    ));
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn both_stores_answer_alike(
        story in prop::collection::vec(prop::collection::vec(write(), 1..4), 1..60)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::Process, ..Options::default() };
        let sqlite = SqliteStore::open(dir.path(), options).unwrap();
        let memory = MemoryStore::new();
        let (one, two) = (Hand::on(&sqlite), Hand::on(&memory));
        for writes in &story {
            prop_assert_eq!(commit(&one, writes), commit(&two, writes), "{:?}", writes);
        }
        for (sqlite, memory) in answers(&sqlite).iter().zip(&answers(&memory)) {
            prop_assert_eq!(sqlite, memory);
        }
    }
}
