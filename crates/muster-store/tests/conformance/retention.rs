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
        events_before: start,
        keys_before: start,
        logs_before: start,
        audit_before: start,
        quarantine_before: start,
        instances_before: start,
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
        assert_eq!(store.audit(10).unwrap().len(), 2);
        retire_all(store, &Retention { audit_before: ten, ..nothing() }, 100);
        assert_eq!(store.audit(10).unwrap().len(), 1);
        retire_all(store, &Retention { quarantine_before: ten, ..nothing() }, 100);
        assert_eq!(store.quarantine(10).unwrap()[0].id, "q50");
        assert_eq!(store.quarantine(10).unwrap().len(), 1);
        retire_all(store, &Retention { instances_before: ten, ..nothing() }, 100);
        assert_eq!(store.agents(None).unwrap()[0].instances.len(), 1);
        retire_all(store, &Retention { events_before: ten, ..nothing() }, 100);
        let all = muster_store::annex::MemoryEventFilter { limit: 10, ..Default::default() };
        let seqs: Vec<u64> = store.memory_events(&all).unwrap().iter().map(|e| e.seq).collect();
        assert_eq!(seqs, [2]);
        assert_eq!(store.logs(&execution_id("e1"), 0, 10).unwrap().total, 1);
        retire_all(store, &Retention { logs_before: Timestamp::NEVER, ..nothing() }, 100);
        assert_eq!(store.logs(&execution_id("e1"), 0, 10).unwrap().total, 0);
    }
}
