//! Nodes, workers, their history and the Relay registry: written, read back, listed, retired.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::fleet::row::{FleetHistoryRow, FleetWrite, NodeRow, WorkerRow};
use muster_engine::row::{EventKind, EventRow};
use muster_store::annex::{KeyRecord, RelayRow};
use muster_store::{Page, Retention, WorkerFilter};
use muster_wire::Timestamp;
use muster_wire::fleet::{ExitHow, NodeKind, NodeState, NodeWish, WorkerState};

use crate::fleet_rows::*;
use crate::support::*;

fn all(store: &dyn Both, filter: &WorkerFilter) -> Vec<String> {
    let found = store.workers(filter, &first_page(1_000)).unwrap();
    found.iter().map(|row| row.id.to_string()).collect()
}

fn nothing() -> Retention {
    let start = Timestamp(i64::MIN);
    Retention {
        executions_before: start,
        payloads_before: start,
        events_before: start,
        memory_events_before: start,
        webhooks_before: start,
        keys_before: start,
        logs_before: start,
        audit_before: start,
        quarantine_before: start,
        instances_before: start,
        workers_before: start,
    }
}

fn key(id: &str) -> KeyRecord {
    KeyRecord {
        id: id.into(),
        prefix: "enr_abc".into(),
        hash: *b"0123456789abcdef0123456789abcdef",
        name: "n".into(),
        scopes: vec!["enroll:n".into()],
        principal: "owner".into(),
        created_at: Timestamp(1),
        used_at: None,
        revoked_at: None,
        expires_at: Some(Timestamp(9)),
        detail: Some(HOSTILE.into()),
    }
}

crate::on_each_store! {
    fn every_field_of_a_node_and_of_a_worker_reads_back(store) {
        let hand = Hand::on(store);
        let nodes = [full_node("n1"), node("n2")];
        let mut living = full_worker("w1", 2);
        (living.ended, living.state) = (None, WorkerState::Running);
        living.idempotency_key = Some(Arc::from("another"));
        let workers = [full_worker("w0", 1), living, worker("w2", i64::MAX)];
        hand.commit(nodes.iter().cloned().map(put_node).collect());
        hand.commit(workers.iter().cloned().map(put_worker).collect());
        for row in &workers {
            assert_eq!(store.worker(&row.id).unwrap().as_ref(), Some(row));
        }
        assert_eq!(store.worker(&worker_id("w9")).unwrap(), None);
        let restored = store.restore().unwrap();
        assert!(restored.set_aside.is_empty(), "{:?}", restored.set_aside);
        assert_eq!(restored.snapshot.fleet.nodes, nodes);
        assert_eq!(restored.snapshot.fleet.workers, workers);
        // A list has everything but the specs.
        let listed = store.workers(&WorkerFilter::default(), &first_page(10)).unwrap();
        let mut expected = workers.to_vec();
        expected.reverse();
        expected.iter_mut().for_each(|row| row.spec = payload(b""));
        assert_eq!(listed, expected);
        // A second write replaces the first whole.
        hand.commit(vec![put_node(node("n1")), put_worker(worker("w1", 5))]);
        assert_eq!(store.restore().unwrap().snapshot.fleet.nodes[0], node("n1"));
        assert_eq!(store.worker(&worker_id("w1")).unwrap(), Some(worker("w1", 5)));
    }

    fn every_word_reads_back(store) {
        let hand = Hand::on(store);
        let (mut nodes, mut workers) = (Vec::new(), Vec::new());
        for (kind, wish) in NodeKind::ALL.iter().flat_map(|kind| NodeWish::ALL.iter().map(move |wish| (kind, wish))) {
            for state in NodeState::ALL {
                let id = format!("n-{kind}-{wish}-{state}");
                nodes.push(NodeRow { kind: *kind, wish: *wish, told: (*state, Timestamp(2)), ..node(&id) });
            }
        }
        for state in WorkerState::ALL {
            for how in ExitHow::ALL {
                let id = format!("w-{state}-{how}");
                workers.push(WorkerRow { state: *state, ended: Some((Timestamp(now()), *how)), ..worker(&id, 1) });
            }
        }
        hand.commit(nodes.iter().cloned().map(put_node).collect());
        hand.commit(workers.iter().cloned().map(put_worker).collect());
        let fleet = store.restore().unwrap().snapshot.fleet;
        nodes.sort_by(|a, b| a.id.cmp(&b.id));
        workers.sort_by(|a, b| a.id.cmp(&b.id));
        assert_eq!((fleet.nodes, fleet.workers), (nodes, workers));
    }

    fn a_start_reads_who_lives_and_who_ended_lately(store) {
        let hand = Hand::on(store);
        let day = 24 * 3600 * 1_000_000;
        hand.commit(vec![
            put_worker(worker("lives", 1)),
            put_worker(exited(worker("lately", 2), now() - day + 60_000_000)),
            put_worker(exited(worker("long-ago", 3), now() - day - 60_000_000)),
        ]);
        let fleet = store.restore().unwrap().snapshot.fleet;
        let ids: Vec<&str> = fleet.workers.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["lives", "lately"]);
        assert_eq!(all(store, &WorkerFilter::default()), ["long-ago", "lately", "lives"]);
    }

    fn lists_are_narrowed_by_every_word_of_the_filter(store) {
        let hand = Hand::on(store);
        let on = |mut row: WorkerRow, node: &str, name: &str, state| {
            row.node = Some(node_id(node));
            row.name = Arc::from(name);
            row.state = state;
            row
        };
        hand.commit(vec![
            put_worker(on(worker("w1", 1), "n1", "a", WorkerState::Running)),
            put_worker(on(worker("w2", 2), "n1", HOSTILE, WorkerState::Starting)),
            put_worker(on(worker("w3", 3), "n2", "a", WorkerState::Running)),
            put_worker(exited(on(worker("x4", 4), "n1", "a", WorkerState::Running), 9)),
            put_worker(worker("x5", 5)),
        ]);
        let filter = |change: &dyn Fn(&mut WorkerFilter)| {
            let mut filter = WorkerFilter::default();
            change(&mut filter);
            all(store, &filter)
        };
        assert_eq!(filter(&|f| f.node = Some(node_id("n1"))), ["x4", "w2", "w1"]);
        assert_eq!(filter(&|f| f.name = Some("a".into())), ["x4", "w3", "w1"]);
        assert_eq!(filter(&|f| f.name = Some(HOSTILE.into())), ["w2"]);
        assert_eq!(filter(&|f| f.ended = Some(true)), ["x4"]);
        assert_eq!(filter(&|f| f.ended = Some(false)), ["x5", "w3", "w2", "w1"]);
        assert_eq!(filter(&|f| f.states = vec![WorkerState::Running]), ["w3", "w1"]);
        assert_eq!(filter(&|f| f.states = vec![WorkerState::Queued, WorkerState::Exited]), ["x5", "x4"]);
        assert_eq!(filter(&|f| f.id_part = Some("x".into())), ["x5", "x4"]);
        assert_eq!(filter(&|f| f.id_part = Some("2".into())), ["w2"]);
        assert_eq!(filter(&|f| f.id_part = Some("%".into())), [""; 0]);
        assert_eq!(filter(&|f| {
            f.node = Some(node_id("n1"));
            f.name = Some("a".into());
            f.ended = Some(false);
            f.states = vec![WorkerState::Running, WorkerState::Starting];
        }), ["w1"]);
    }

    fn pages_of_workers_are_stable_while_new_ones_come(store) {
        let hand = Hand::on(store);
        // Many have the same moment: the id decides.
        let id = |n: usize| format!("w{n:02}");
        hand.commit((0..20).map(|n| put_worker(worker(&id(n), (n / 5) as i64))).collect());
        let mut page = Page { after: None, limit: 3 };
        let mut seen = Vec::new();
        for turn in 0.. {
            let rows = store.workers(&WorkerFilter::default(), &page).unwrap();
            let Some(last) = rows.last() else { break };
            page.after = Some((last.created_at, last.id.to_string()));
            seen.extend(rows.iter().map(|row| row.id.to_string()));
            hand.commit(vec![put_worker(worker(&format!("new{turn}"), 1_000))]);
        }
        let expected: Vec<String> = (0..20).rev().map(id).collect();
        assert_eq!(seen, expected);
        assert!(store.workers(&WorkerFilter::default(), &first_page(0)).unwrap().is_empty());
    }

    fn history_is_paged_by_number_and_narrowed(store) {
        let hand = Hand::on(store);
        hand.commit(vec![
            put_line(line(1, Some("n1"), None)),
            put_line(line(2, Some("n1"), Some("w1"))),
            put_line(line(3, Some("n2"), Some("w2"))),
            put_line(line(5, None, None)),
            put_line(line(6, Some("n1"), Some("w1"))),
            put_line(line(i64::MAX as u64, Some("n1"), None)),
        ]);
        let ask = |node: Option<&str>, worker: Option<&str>, before, limit| -> Vec<u64> {
            let (node, worker) = (node.map(node_id), worker.map(worker_id));
            let found = store.fleet_history(node.as_ref(), worker.as_ref(), before, limit).unwrap();
            found.iter().map(|line| line.seq).collect()
        };
        let most = i64::MAX as u64;
        assert_eq!(ask(None, None, None, 10), [most, 6, 5, 3, 2, 1]);
        assert_eq!(ask(None, None, None, 2), [most, 6]);
        assert_eq!(ask(None, None, Some(6), 2), [5, 3]);
        assert_eq!(ask(Some("n1"), None, None, 2), [most, 6]);
        assert_eq!(ask(Some("n1"), None, Some(6), 9), [2, 1]);
        assert_eq!(ask(None, Some("w1"), None, 9), [6, 2]);
        assert_eq!(ask(Some("n2"), Some("w1"), None, 9), [0; 0]);
        assert_eq!(ask(Some("n1"), Some("w1"), Some(3), 9), [2]);
        assert_eq!(ask(None, None, Some(u64::MAX), 1), [most]);
        assert_eq!(ask(None, None, Some(0), 9), [0; 0]);
        let found = store.fleet_history(None, None, Some(3), 1).unwrap();
        assert_eq!(found, [line(2, Some("n1"), Some("w1"))]);
        hand.refused(vec![put_line(line(2, None, None))]);
        hand.refused(vec![put_line(FleetHistoryRow { seq: u64::MAX, ..line(7, None, None) })]);
    }

    fn a_deleted_node_takes_its_history_along_and_nothing_else(store) {
        let hand = Hand::on(store);
        let mut on = worker("w1", 1);
        on.node = Some(node_id("n1"));
        hand.commit(vec![
            put_node(node("n1")), put_node(node("n2")), put_worker(on.clone()),
            put_line(line(1, Some("n1"), None)), put_line(line(2, Some("n2"), None)), put_line(line(3, None, Some("w1"))),
        ]);
        let delete = |id: &str| Write::Fleet(FleetWrite::DeleteNode(node_id(id)));
        // What goes comes back when the commit fails behind it.
        hand.refused(vec![delete("n1"), put_node(full_node("n2")), put_line(line(9, None, None)), put_worker(worker("w9", 1)), put_line(line(2, None, None))]);
        let fleet = store.restore().unwrap().snapshot.fleet;
        assert_eq!(fleet.nodes, [node("n1"), node("n2")]);
        assert_eq!(fleet.workers, [on.clone()]);
        let seqs = || -> Vec<u64> {
            store.fleet_history(None, None, None, 9).unwrap().iter().map(|line| line.seq).collect()
        };
        assert_eq!(seqs(), [3, 2, 1]);
        hand.commit(vec![delete("n1"), delete("nobody")]);
        assert_eq!(store.restore().unwrap().snapshot.fleet.nodes, [node("n2")]);
        assert_eq!(seqs(), [3, 2]);
        assert_eq!(store.worker(&on.id).unwrap(), Some(on));
    }

    fn a_living_worker_keeps_its_idempotency_key_and_one_that_ended_gives_it_up(store) {
        let hand = Hand::on(store);
        let with_key = |id: &str| WorkerRow { idempotency_key: Some(Arc::from("p\0k")), ..worker(id, 1) };
        hand.commit(vec![put_worker(with_key("w1"))]);
        hand.commit(vec![put_worker(with_key("w1"))]);
        hand.refused(vec![put_worker(with_key("w2"))]);
        assert_eq!(store.worker(&worker_id("w2")).unwrap(), None);
        hand.commit(vec![put_worker(exited(with_key("w1"), 5))]);
        // Refused further on: the key is where it was.
        hand.refused(vec![put_worker(with_key("w2")), started("nobody", 1, 1)]);
        let key_of = |id: &str| store.worker(&worker_id(id)).unwrap().and_then(|row| row.idempotency_key);
        assert_eq!(key_of("w1").as_deref(), Some("p\0k"));
        hand.commit(vec![put_worker(with_key("w2"))]);
        assert_eq!((key_of("w1"), key_of("w2").as_deref()), (None, Some("p\0k")));
    }

    fn a_commit_that_fails_leaves_the_fleet_as_it_was(store) {
        let hand = Hand::on(store);
        hand.commit(vec![put_node(node("n1")), put_worker(worker("w1", 1))]);
        hand.refused(vec![
            put_node(full_node("n1")), put_node(node("n2")), put_worker(full_worker("w1", 1)),
            put_worker(worker("w2", 1)), put_line(line(1, None, None)), started("nobody", 1, 1),
        ]);
        let fleet = store.restore().unwrap().snapshot.fleet;
        assert_eq!((fleet.nodes, fleet.workers), (vec![node("n1")], vec![worker("w1", 1)]));
        assert!(store.fleet_history(None, None, None, 9).unwrap().is_empty());
    }

    fn retention_takes_who_ended_and_old_lines_in_bounded_passes(store) {
        let hand = Hand::on(store);
        hand.commit((0..7).map(|n| put_worker(exited(worker(&format!("old{n}"), 1), 5))).collect());
        hand.commit(vec![
            put_worker(exited(worker("young", 1), 50)),
            put_worker(worker("lives", 1)),
            put_node(node("n1")),
        ]);
        hand.commit((1..=9).map(|n| put_line(line(n, None, None))).collect());
        hand.commit(vec![put_line(line(50, None, None))]);
        store.relay_put(&record("invocation", "old", 5)).unwrap();
        store.relay_put(&record("invocation", "young", 50)).unwrap();
        store.relay_put(&record("agent", "old", 5)).unwrap();
        assert_eq!(store.retire(&nothing(), 100).unwrap(), 0);
        let cut = Retention { workers_before: Timestamp(10), ..nothing() };
        let first = store.retire(&cut, 3).unwrap();
        assert!((1..=9).contains(&first), "{first} rows in one pass of 3 of each kind");
        let mut gone = first;
        for _ in 0..20 {
            gone += store.retire(&cut, 3).unwrap();
        }
        assert_eq!(gone, 7 + 9 + 1);
        let mut left = all(store, &WorkerFilter::default());
        left.sort();
        assert_eq!(left, ["lives", "young"]);
        assert_eq!(store.fleet_history(None, None, None, 99).unwrap().len(), 1);
        let names = |kind: &str| -> Vec<String> {
            store.relay_list(kind, "", 9).unwrap().into_iter().map(|row| row.name).collect()
        };
        assert_eq!((names("invocation"), names("agent")), (vec!["young".into()], vec!["old".into()]));
        assert_eq!(store.restore().unwrap().snapshot.fleet.nodes.len(), 1);
    }

    fn events_keep_their_node_and_their_worker(store) {
        let hand = Hand::on(store);
        let full = EventRow {
            node: Some(node_id("n1")),
            worker: Some(worker_id("w1")),
            ..event(EventKind::WorkerRunning, 5)
        };
        hand.commit(vec![say(full.clone()), say(event(EventKind::FleetAlarm, 6))]);
        let found = store.events(0, 9).unwrap();
        assert_eq!(found[0], EventRow { seq: 1, ..full });
        assert_eq!((&found[1].node, &found[1].worker), (&None, &None));
    }

    fn records_of_the_relay_registry_are_by_kind_and_name(store) {
        assert_eq!(store.relay_get("agent", "a").unwrap(), None);
        for name in ["b", "a", "c", HOSTILE, ""] {
            store.relay_put(&record("agent", name, 1)).unwrap();
        }
        store.relay_put(&record("channel", "b", 2)).unwrap();
        store.relay_put(&RelayRow { node: None, value: Bytes::new(), ..record("agent", "b", i64::MAX) }).unwrap();
        assert_eq!(store.relay_get("agent", HOSTILE).unwrap(), Some(record("agent", HOSTILE, 1)));
        assert_eq!(
            store.relay_get("agent", "b").unwrap(),
            Some(RelayRow { node: None, value: Bytes::new(), ..record("agent", "b", i64::MAX) })
        );
        let names = |kind: &str, after: &str, limit| -> Vec<String> {
            store.relay_list(kind, after, limit).unwrap().into_iter().map(|row| row.name).collect()
        };
        // The empty name sorts before the first cursor.
        assert_eq!(names("agent", "", 9), ["a", HOSTILE, "b", "c"]);
        assert_eq!(names("agent", "a", 2), [HOSTILE, "b"]);
        assert_eq!(names("agent", HOSTILE, 9), ["b", "c"]);
        assert_eq!(names("channel", "", 9), ["b"]);
        assert_eq!(names("age", "", 9), [""; 0]);
        assert!(store.relay_delete("agent", "b").unwrap());
        assert!(!store.relay_delete("agent", "b").unwrap());
        assert!(store.relay_get("channel", "b").unwrap().is_some());
    }

    fn a_key_that_is_good_once_is_taken_once(store) {
        store.key_put(&key("k1")).unwrap();
        assert!(!store.key_take("nobody", Timestamp(1)).unwrap());
        let version = store.keys_version().unwrap();
        let taken = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|n| scope.spawn(move || store.key_take("k1", Timestamp(n)).unwrap()))
                .collect();
            tries.into_iter().map(|one| u32::from(one.join().unwrap())).sum::<u32>()
        });
        assert_eq!(taken, 1);
        assert_eq!(store.keys_version().unwrap(), version + 1, "one change, not eight");
        assert!(store.keys().unwrap()[0].revoked_at.is_some());
        assert!(store.key_delete("k1").unwrap());
        assert!(!store.key_delete("k1").unwrap());
        assert!(!store.key_take("k1", Timestamp(1)).unwrap());
        assert!(store.keys().unwrap().is_empty());
        assert_eq!(store.keys_version().unwrap(), version + 2);
    }
}
