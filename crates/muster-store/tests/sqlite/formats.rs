//! Stores of older formats open with everything in them.

use std::path::Path;

use muster_engine::Write;
use muster_engine::row::PayloadKind;
use muster_store::annex::MemoryScope;
use muster_store::{Annex, ExecutionFilter, Outbox, Page, Store};
use muster_wire::Status;

use super::support::Hand;
use super::{fleet, open, support};

/// A data directory as the first format had it: made by a build of that time, written down as
/// SQL. Decisions, payloads, logs.
const FORMAT_1: [&str; 3] = [
    include_str!("../golden/format-1/decisions.sql"),
    include_str!("../golden/format-1/payloads.sql"),
    include_str!("../golden/format-1/logs.sql"),
];

/// The same of the second format.
const FORMAT_2: [&str; 3] = [
    include_str!("../golden/format-2/decisions.sql"),
    include_str!("../golden/format-2/payloads.sql"),
    include_str!("../golden/format-2/logs.sql"),
];

/// The third, as its migration makes it of the second, with a report of usage that nobody read.
const FORMAT_3: [&str; 3] = [
    include_str!("../golden/format-3/decisions.sql"),
    include_str!("../golden/format-3/payloads.sql"),
    include_str!("../golden/format-3/logs.sql"),
];

fn golden(dir: &Path, files: [&str; 3]) {
    for (file, sql) in ["decisions.db", "payloads.db", "logs.db"].iter().zip(files) {
        let conn = rusqlite::Connection::open(dir.join(file)).unwrap();
        conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")
            .unwrap();
        conn.execute_batch(sql).unwrap();
    }
}

#[test]
fn a_store_of_the_first_format_opens_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path(), FORMAT_1);
    for pass in 0..2 {
        let store = open(dir.path()).unwrap();
        assert_eq!(store.about().format, muster_store::FORMAT);
        assert!(
            store.about().suspicious.is_some(),
            "its file is another one"
        );
        let restored = store.restore().unwrap();
        assert!(restored.set_aside.is_empty(), "{:?}", restored.set_aside);
        let snapshot = restored.snapshot;
        assert_eq!(snapshot.agents.len(), 1);
        assert!(snapshot.agents[0].held);
        assert_eq!(snapshot.instances.len(), 1);
        assert_eq!(snapshot.open.len(), 1);
        assert_eq!(snapshot.open[0].row.run.as_str(), "run_open");
        assert!(snapshot.open[0].attempt.is_some());
        assert_eq!(
            snapshot.queues.iter().map(|queue| queue.count).sum::<u64>(),
            1
        );
        let all = store
            .executions(
                &ExecutionFilter::default(),
                &Page {
                    after: None,
                    limit: 10,
                },
            )
            .unwrap();
        assert_eq!(all.len(), 5);
        assert!(
            all.iter()
                .all(|row| row.links.is_none() && row.wait.is_none())
        );
        let of = |run: &str| all.iter().find(|row| row.run.as_str() == run).unwrap();
        assert_eq!(of("run_gold").status, Status::Succeeded);
        assert_eq!(of("run_gold2").status, Status::Failed);
        let result = store
            .payload(&of("run_gold").id, PayloadKind::Result)
            .unwrap();
        assert_eq!(&result.unwrap().0[..], b"{\"n\":1}");
        let large = all
            .iter()
            .find(|row| row.result_size == Some(70_002))
            .unwrap();
        let result = store.payload(&large.id, PayloadKind::Result).unwrap();
        assert_eq!(result.unwrap().len(), 70_002);
        assert_eq!(
            store.events(0, 1_000).unwrap().len() as u64,
            store.last_seq().unwrap()
        );
        let scope = MemoryScope {
            scope: "global".into(),
            id: "global".into(),
        };
        let value = store.memory_get(&[scope], "k").unwrap().unwrap();
        assert_eq!(&value.data[..], b"{\"v\":1}");
        // What the first format had no place for has one now.
        assert_eq!(store.delivery_counts().unwrap().pending, 0);
        if pass == 0 {
            continue;
        }
        let hand = Hand::on(&store);
        hand.insert(&support::row(
            &format!("new-{}", store.last_seq().unwrap()),
            1,
        ));
        hand.commit(vec![support::say(support::event(
            muster_engine::row::EventKind::PlaneStarted,
            1,
        ))]);
    }
}

#[test]
fn a_store_of_the_second_format_opens_with_everything_in_it_and_takes_a_fleet() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path(), FORMAT_2);
    for pass in 0..2 {
        let store = open(dir.path()).unwrap();
        assert_eq!(store.about().format, muster_store::FORMAT);
        let restored = store.restore().unwrap();
        assert!(restored.set_aside.is_empty(), "{:?}", restored.set_aside);
        let snapshot = restored.snapshot;
        assert!(snapshot.agents[0].held);
        let status = |run: &str| {
            let open = snapshot.open.iter().find(|one| one.row.run.as_str() == run);
            open.map(|one| one.row.status)
        };
        assert_eq!(status("run_open"), Some(Status::Running));
        assert_eq!(status("run_wait"), Some(Status::Paused));
        assert_eq!(status("run_queued"), Some(Status::Paused));
        assert_eq!(&*snapshot.approvals[0].request, "req_1");
        let keys = store.keys().unwrap();
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| key.detail.is_none()));
        let events = store.events(0, 1_000).unwrap();
        assert_eq!(events.len() as u64, store.last_seq().unwrap());
        assert!(
            events
                .iter()
                .all(|event| event.node.is_none() && event.worker.is_none())
        );
        // What the second format had no place for has one now.
        assert_eq!(snapshot.fleet.nodes.len(), pass);
        assert_eq!(
            store.worker(&fleet::worker_id("w1")).unwrap().is_some(),
            pass == 1
        );
        let hand = Hand::on(&store);
        hand.commit(vec![
            fleet::put_node(fleet::node("n1")),
            fleet::put_worker(fleet::full_worker("w1", 1)),
        ]);
    }
}

#[test]
fn a_store_of_the_third_format_opens_and_its_usage_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    golden(dir.path(), FORMAT_3);
    for pass in 0..2 {
        let store = open(dir.path()).unwrap();
        assert_eq!(store.about().format, muster_store::FORMAT);
        let restored = store.restore().unwrap();
        assert!(restored.set_aside.is_empty(), "{:?}", restored.set_aside);
        let cap = (pass == 1).then_some(3);
        assert_eq!(restored.snapshot.agents[0].cap, cap);
        let sums = store.usage_of_run(&support::run_id("run_gold")).unwrap();
        assert_eq!((sums.ended, sums.unreported), (1, 0));
        assert_eq!((sums.total, sums.cost), (Some(15), Some(250_000_000)));
        let agent = restored.snapshot.agents[0].id.clone();
        Hand::on(&store).commit(vec![Write::SetAgentCap {
            agent,
            cap: Some(3),
        }]);
    }
}
