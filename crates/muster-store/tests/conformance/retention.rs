//! Retention: whole runs with everything that hangs on them, in bounded passes.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{EventKind, KeyRow, PayloadKind, RunRow};
use muster_store::annex::{CredentialRow, LogRow, MemoryBy, MemoryScope, NoteRow};
use muster_store::{ExecutionFilter, QuarantineItem, Retention};
use muster_wire::{Status, Timestamp};

use crate::support::*;

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

fn retire_all(store: &dyn Both, cut: &Retention, limit: usize) -> u64 {
    let mut gone = 0;
    for _ in 0..10_000 {
        let pass = store.retire(cut, limit).unwrap();
        gone += pass;
        // A pass over runs that all stay ends one round of the cursor.
        if pass == 0 && store.retire(cut, limit).unwrap() == 0 {
            return gone;
        }
    }
    panic!("retention does not end");
}

fn log(id: &str) -> LogRow {
    LogRow {
        seq: 0,
        execution: execution_id(id),
        at: Timestamp(1),
        level: "info".into(),
        source: "test".into(),
        event_type: "log.info".into(),
        message: "line".into(),
        attributes: Bytes::from_static(b"{}"),
    }
}

fn note(id: &str) -> NoteRow {
    NoteRow {
        execution: execution_id(id),
        run: None,
        agent: None,
        message: "note".into(),
        tags: Vec::new(),
        at: Timestamp(1),
    }
}

crate::on_each_store! {
    fn a_run_goes_whole_when_it_is_old_and_ended(store) {
        let hand = Hand::on(store);
        let old = row("old", 1);
        let young = row("young", 2);
        let open = row("open", 3);
        let late = row("late", 4);
        let members = [child("old-c", &old, 5), child("open-c", &open, 5), child("late-c", &late, 5)];
        hand.insert_all(&[old.clone(), young, open, late]);
        hand.insert_all(&members);
        for (id, at) in [("old", 50), ("old-c", 60), ("young", 500), ("open-c", 50), ("late", 50), ("late-c", 500)] {
            let mut line = event(EventKind::ExecutionSucceeded, at);
            line.execution = Some(execution_id(id));
            hand.commit(vec![
                put(id, PayloadKind::Input, b"{}"),
                Write::InsertAttempt(Box::new(attempt(id, 1, 9))),
                ended(id, Status::Succeeded, at),
                say(line),
            ]);
            store.put_large(&execution_id(id), PayloadKind::Result, Bytes::from_static(b"large")).unwrap();
            store.logs_add(vec![log(id)]).unwrap();
            store.notes_add(vec![note(id)]).unwrap();
        }
        hand.commit(vec![Write::PutRun(Box::new(RunRow {
            id: old.run.clone(),
            root: old.id.clone(),
paused_at: None,
paused_by: None,
source: None,
            cancelled_at: Some(Timestamp(7)),
            cancelled_by: None,
        }))]);
        store.credential_add(&CredentialRow {
            id: "vc".into(),
            execution: old.id.clone(),
            run: old.run.to_string(),
            created_at: Timestamp(1),
            body: Bytes::from_static(b"{}"),
        }).unwrap();

        let cut = Retention { executions_before: Timestamp(100), ..nothing() };
        assert!(retire_all(store, &cut, 1) > 0);
        let mut left = walk(store, &ExecutionFilter::default(), 50);
        left.sort();
        assert_eq!(left, ["late", "late-c", "open", "open-c", "young"]);
        for (id, there) in [("old", false), ("old-c", false), ("open-c", true), ("late", true)] {
            let id = execution_id(id);
            assert_eq!(store.payload(&id, PayloadKind::Input).unwrap().is_some(), there);
            assert_eq!(store.payload(&id, PayloadKind::Result).unwrap().is_some(), there);
            assert_eq!(!store.attempts(&id).unwrap().is_empty(), there);
            assert_eq!(store.logs(&id, 0, 10).unwrap().total > 0, there);
            assert_eq!(!store.notes(&id, &[], 10).unwrap().is_empty(), there);
            assert_eq!(!store.events_of(&id, 10).unwrap().is_empty(), there);
        }
        assert!(store.run(&old.run).unwrap().is_none());
        assert!(store.tree(&old.run).unwrap().run.is_none());
        assert!(store.credentials(old.run.as_str()).unwrap().is_empty());
        // The store goes on after it, with numbers that nothing old hangs on.
        hand.insert(&row("new", 900));
        assert!(store.attempts(&execution_id("new")).unwrap().is_empty());
        assert_eq!(store.payload(&execution_id("new"), PayloadKind::Input).unwrap(), None);
    }

    fn a_pass_is_bounded_and_the_next_goes_on(store) {
        let hand = Hand::on(store);
        let root = row("root", 1);
        hand.insert(&root);
        for n in 0..100 {
            hand.insert(&child(&format!("c{n}"), &root, 2));
            hand.end(&format!("c{n}"), Status::Succeeded, 3);
        }
        hand.end("root", Status::Succeeded, 3);
        let cut = Retention { executions_before: Timestamp(100), ..nothing() };
        store.retire(&cut, 10).unwrap();
        let left = walk(store, &ExecutionFilter::default(), 50);
        assert_eq!(left.len(), 91);
        assert!(left.contains(&"root".to_owned()), "the root goes last");
        retire_all(store, &cut, 10);
        assert!(walk(store, &ExecutionFilter::default(), 50).is_empty());
    }

    fn the_newest_event_stays_so_that_the_sequence_goes_on(store) {
        let hand = Hand::on(store);
        for at in 1..=20 {
            hand.commit(vec![say(event(EventKind::HoldChanged, at))]);
        }
        let cut = Retention { events_before: Timestamp(11), ..nothing() };
        assert_eq!(retire_all(store, &cut, 3), 10);
        assert_eq!(store.oldest_event().unwrap(), Some(11));
        let cut = Retention { events_before: Timestamp::NEVER, ..nothing() };
        retire_all(store, &cut, 3);
        assert_eq!(store.oldest_event().unwrap(), Some(20));
        assert_eq!(store.last_seq().unwrap(), 20);
        hand.commit(vec![say(event(EventKind::HoldChanged, 21))]);
    }

    fn each_kind_goes_by_its_own_moment(store) {
        let hand = Hand::on(store);
        let mut gone = instance("agent", "gone", 1);
        gone.gone_at = Some(Timestamp(5));
        let key = |key: &str, execution: &str, at| {
            Write::InsertKey(Box::new(KeyRow {
                key: Arc::from(key),
                execution: execution_id(execution),
                body_hash: [0; 16],
                at: Timestamp(at),
            }))
        };
        hand.insert(&row("e1", 1));
        hand.commit(vec![
            Write::PutAgent(Box::new(agent("agent", false))),
            Write::PutInstance(Box::new(gone)),
            Write::PutInstance(Box::new(instance("agent", "here", 1))),
            key("old", "e1", 5),
            key("young", "e1", 50),
            key("orphan", "nobody", 5),
        ]);
        for at in [5, 50] {
            store.audit_add(&muster_store::annex::AuditRow {
                at: Timestamp(at),
                principal: "p".into(),
                action: "a".into(),
                object: "o".into(),
                detail: "d".into(),
            }).unwrap();
            store.set_aside(&QuarantineItem {
                id: format!("q{at}"),
                at: Timestamp(at),
                kind: "event".into(),
                about: "a".into(),
                error: "e".into(),
                what: "w".into(),
            }).unwrap();
            let scope = MemoryScope { scope: Arc::from("global"), id: Arc::from("global") };
            store.memory_set(&scope, "k", Bytes::new(), &MemoryBy::default(), Timestamp(at)).unwrap();
        }
        store.logs_add(vec![log("e1")]).unwrap();
        let has_key = |key: &str| {
            let mut ask = submission(None, "agent");
            ask.idempotency_key = Some(Arc::from(key));
            store.known(&ask).unwrap().key.is_some()
        };
        assert_eq!(retire_all(store, &nothing(), 100), 0);
        let ten = Timestamp(10);
        retire_all(store, &Retention { executions_before: ten, ..nothing() }, 100);
        assert!(has_key("old") && has_key("young") && !has_key("orphan"));
        retire_all(store, &Retention { keys_before: ten, ..nothing() }, 100);
        assert!(!has_key("old") && has_key("young"));
        assert_eq!(store.audit(&muster_store::annex::AuditFilter::newest(10)).unwrap().len(), 2);
        retire_all(store, &Retention { audit_before: ten, ..nothing() }, 100);
        assert_eq!(store.audit(&muster_store::annex::AuditFilter::newest(10)).unwrap().len(), 1);
        retire_all(store, &Retention { quarantine_before: ten, ..nothing() }, 100);
        assert_eq!(store.quarantine(10).unwrap()[0].id, "q50");
        assert_eq!(store.quarantine(10).unwrap().len(), 1);
        retire_all(store, &Retention { instances_before: ten, ..nothing() }, 100);
        assert_eq!(store.agents(None).unwrap()[0].instances.len(), 1);
        retire_all(store, &Retention { memory_events_before: ten, ..nothing() }, 100);
        let all = muster_store::annex::MemoryEventFilter { limit: 10, ..Default::default() };
        let seqs: Vec<u64> = store.memory_events(&all).unwrap().iter().map(|e| e.seq).collect();
        assert_eq!(seqs, [2]);
        assert_eq!(store.logs(&execution_id("e1"), 0, 10).unwrap().total, 1);
        retire_all(store, &Retention { logs_before: Timestamp::NEVER, ..nothing() }, 100);
        assert_eq!(store.logs(&execution_id("e1"), 0, 10).unwrap().total, 0);
    }

    fn payloads_go_alone_and_their_executions_stay(store) {
        let hand = Hand::on(store);
        for (id, at) in [("old", 1), ("open", 2), ("young", 3)] {
            hand.insert(&row(id, at));
            hand.commit(vec![put(id, PayloadKind::Input, b"{}"), put(id, PayloadKind::Result, b"1")]);
            store.put_large(&execution_id(id), PayloadKind::ErrorDetails, Bytes::from(vec![b'1'; 70_000])).unwrap();
        }
        hand.commit(vec![ended("old", Status::Failed, 5)]);
        hand.commit(vec![ended("young", Status::Failed, 50)]);
        store.collect_leftovers(Timestamp::NEVER, 100).unwrap();
        let cut = Retention { payloads_before: Timestamp(10), ..nothing() };
        let has = |id: &str, kind| store.payload(&execution_id(id), kind).unwrap().is_some();
        retire_all(store, &cut, 2);
        assert!(!has("old", PayloadKind::Input) && !has("old", PayloadKind::Result));
        for id in ["open", "young"] {
            assert!(has(id, PayloadKind::Input) && has(id, PayloadKind::Result), "{id}");
            assert!(has(id, PayloadKind::ErrorDetails), "{id}");
        }
        // The large ones go by when they were stored, and these were stored now.
        let cut = Retention { payloads_before: Timestamp(i64::MAX - 1), ..nothing() };
        retire_all(store, &cut, 100);
        assert!(!has("old", PayloadKind::ErrorDetails) && !has("young", PayloadKind::Result));
        assert!(has("open", PayloadKind::Input) && has("open", PayloadKind::ErrorDetails));
        assert_eq!(walk(store, &ExecutionFilter::default(), 50).len(), 3);
    }

    fn a_run_that_a_younger_one_takes_over_from_stays_as_long_as_that_one(store) {
        let hand = Hand::on(store);
        let mark = |id: &str, source: Option<&str>| Write::PutRun(Box::new(RunRow {
            id: run_id(&format!("run-of-{id}")),
            root: execution_id(id),
            cancelled_at: None,
            cancelled_by: None,
            paused_at: None,
            paused_by: None,
            source: source.map(|id| run_id(&format!("run-of-{id}"))),
        }));
        for (id, at) in [("source", 1), ("fork", 20)] {
            hand.insert(&row(id, at));
            hand.end(id, Status::Succeeded, at + 1);
        }
        hand.commit(vec![mark("fork", Some("source"))]);
        retire_all(store, &Retention { executions_before: Timestamp(10), ..nothing() }, 10);
        assert_eq!(walk(store, &ExecutionFilter::default(), 50).len(), 2);
        retire_all(store, &Retention { executions_before: Timestamp(100), ..nothing() }, 10);
        retire_all(store, &Retention { executions_before: Timestamp(100), ..nothing() }, 10);
        assert!(walk(store, &ExecutionFilter::default(), 50).is_empty());
    }

    fn for_want_of_room_the_oldest_finished_go_first(store) {
        let hand = Hand::on(store);
        for (id, at) in [("e1", 1), ("e2", 2), ("e3", 3), ("e4", 4)] {
            hand.insert(&row(id, at));
            if id != "e2" {
                hand.end(id, Status::Succeeded, 50);
            }
        }
        let left = || walk(store, &ExecutionFilter::default(), 50);
        assert!(store.retire_oldest(1).unwrap() > 0);
        assert_eq!(left(), ["e4", "e3", "e2"]);
        while left().len() > 2 {
            store.retire_oldest(1).unwrap();
        }
        assert_eq!(left(), ["e4", "e2"]);
        for _ in 0..5 {
            store.retire_oldest(10).unwrap();
        }
        assert_eq!(left(), ["e2"], "what is open stays");
        assert_eq!(store.retire_oldest(10).unwrap(), 0);
    }

    fn messages_and_approvals_go_in_their_time(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        let approval = muster_engine::row::ApprovalRow {
            execution: execution_id("e1"), request: Arc::from("r1"), run: run_id("run-of-e1"),
            agent: agent_id("agent"), attempt: 1, request_url: None, callback_url: None,
            requested_at: Timestamp(2), expires_at: Timestamp(9), decision: None,
            decided_at: Some(Timestamp(3)), decided_by: None, feedback: None, response: None, told: None,
        };
        hand.commit(vec![Write::PutApproval(Box::new(approval))]);
        for n in 1..=3 {
            let seq = hand.seq.get() + 1;
            hand.commit(vec![
                say(event(EventKind::ExecutionSucceeded, n)),
                Write::InsertDelivery(Box::new(muster_engine::row::DeliveryRow {
                    seq, execution: execution_id("e1"), run: run_id("run-of-e1"),
                    status: Status::Succeeded, at: Timestamp(n), webhook: Arc::from("{\"target\":\"t\"}"),
                })),
            ]);
        }
        let claim = muster_store::outbox::Claim { token: "t".into(), until: Timestamp(99) };
        let claimed = store.claim_deliveries("t", Timestamp(50), &claim, 2).unwrap();
        let seqs: Vec<u64> = claimed.iter().map(|message| message.seq).collect();
        use muster_store::outbox::Settled;
        store.settle_deliveries("t", &[
            (seqs[0], Settled::Delivered { at: Timestamp(5), status: 200 }),
            (seqs[1], Settled::Dead { at: Timestamp(50), error: "e".into(), status: None }),
        ]).unwrap();
        let count = || store.deliveries(&Default::default(), 10).unwrap().len();
        retire_all(store, &Retention { webhooks_before: Timestamp(10), ..nothing() }, 10);
        assert_eq!(count(), 2);
        retire_all(store, &Retention { webhooks_before: Timestamp::NEVER, ..nothing() }, 10);
        assert_eq!(count(), 1, "what is not delivered stays");
        hand.end("e1", Status::Succeeded, 5);
        assert_eq!(store.open_counts().unwrap().iter().map(|(_, n)| n).sum::<u64>(), 0);
        retire_all(store, &Retention { executions_before: Timestamp(10), ..nothing() }, 10);
        assert!(walk(store, &ExecutionFilter::default(), 50).is_empty());
        assert_eq!(count(), 1, "nor does it go with its run");
    }
}
