//! What a commit promises: all or nothing, in order, under the newest lease.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::AttemptKey;
use muster_engine::row::{AttemptOutcome, EventKind, EventRow, KeyRow, PayloadKind, RunRow};
use muster_store::annex::{AuditFilter, AuditRow};
use muster_store::{Commit, CommitEnd, LeaseId, StoreError};
use muster_wire::{Status, Timestamp};

use crate::support::*;

crate::on_each_store! {
    fn what_was_committed_reads_back(store) {
        let hand = Hand::on(store);
        let queued = row("e1", 10);
        hand.commit(vec![
            Write::InsertExecution(Arc::new(queued.clone())),
            put("e1", PayloadKind::Input, b"{}"),
            say(event(EventKind::ExecutionQueued, 10)),
        ]);
        assert_eq!(store.last_seq().unwrap(), 1);
        let (seen, back) = store.execution(&execution_id("e1")).unwrap();
        assert_eq!((seen, back), (1, Some(queued)));
        let input = store.payload(&execution_id("e1"), PayloadKind::Input).unwrap();
        assert_eq!(input, Some(payload(b"{}")));
        assert_eq!(store.execution(&execution_id("e2")).unwrap(), (1, None));
    }

    fn a_refused_commit_leaves_nothing(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 10));
        hand.refused(vec![
            Write::InsertExecution(Arc::new(row("e2", 11))),
            say(event(EventKind::ExecutionQueued, 11)),
            Write::InsertExecution(Arc::new(row("e1", 12))),
        ]);
        assert_eq!(store.execution(&execution_id("e2")).unwrap(), (0, None));
        // The store goes on.
        hand.insert(&row("e2", 11));
        hand.end("e2", Status::Succeeded, 20);
    }

    fn an_older_lease_cannot_commit(store) {
        let old = Hand::on(store);
        let new = Hand::on(store);
        assert!(new.lease.epoch > old.lease.epoch);
        let commit = old.prepared(vec![Write::InsertExecution(Arc::new(row("e1", 1)))]);
        let end = store.commit(&commit);
        assert!(matches!(
            end,
            CommitEnd::Refused { passing: false, cause: StoreError::Fenced { .. } }
        ), "{end:?}");
        new.insert(&row("e1", 1));
        let other = store.take_lease(LeaseId(1), "other").unwrap();
        assert_eq!(other.id, LeaseId(1));
        new.insert(&row("e2", 1));
    }

    /// An act and its line: both, or neither.
    fn a_line_of_the_audit_log_is_there_with_its_commit_alone(store) {
        let hand = Hand::on(store);
        let line = AuditRow {
            at: Timestamp(1),
            principal: "ada".into(),
            action: "hold.set".into(),
            object: "everything".into(),
            detail: "a reason".into(),
        };
        let writes = vec![say(event(EventKind::HoldChanged, 1))];
        let good = Commit { audit: vec![line.clone()], ..hand.prepared(writes) };
        let lines = || store.audit(&AuditFilter::newest(10)).unwrap();
        let bad = Commit { last_seq: 3, ..good.clone() };
        assert!(matches!(store.commit(&bad), CommitEnd::Refused { .. }));
        assert_eq!(lines(), []);
        assert!(matches!(store.commit(&good), CommitEnd::Committed));
        assert_eq!(lines(), [(1, line)]);
    }

    fn the_sequence_has_no_holes(store) {
        let hand = Hand::on(store);
        hand.commit(vec![say(event(EventKind::PlaneStarted, 1))]);
        let good = hand.prepared(vec![say(event(EventKind::ExecutionQueued, 2))]);
        for bad in [
            Commit { after_seq: 0, ..good.clone() },
            Commit { after_seq: 2, last_seq: 3, ..good.clone() },
            Commit { last_seq: 3, ..good.clone() },
            Commit { last_seq: 1, ..good.clone() },
            Commit { writes: vec![say(EventRow { seq: 7, ..event(EventKind::HoldChanged, 1) })], ..good.clone() },
        ] {
            let end = store.commit(&bad);
            assert!(
                matches!(end, CommitEnd::Refused { passing: false, cause: StoreError::Sequence { .. } }),
                "{end:?}"
            );
            assert_eq!(store.last_seq().unwrap(), 1);
        }
        assert!(matches!(store.commit(&good), CommitEnd::Committed));
        // The same again is told from the first by its number.
        assert!(matches!(store.commit(&good), CommitEnd::Refused { passing: false, .. }));
        assert_eq!(store.last_seq().unwrap(), 2);
    }

    fn finished_stays_finished(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        hand.end("e1", Status::Failed, 5);
        let (_, before) = store.execution(&execution_id("e1")).unwrap();
        for write in [
            started("e1", 1, 9),
            ended("e1", Status::Succeeded, 9),
            Write::UpdateExecution {
                id: execution_id("e1"),
                change: ExecutionChange::Absorbed {
                    until: Timestamp(9),
                    started_at: Timestamp(9),
                    clock_from: Timestamp(9),
                    over_cap: false,
                },
            },
        ] {
            hand.refused(vec![write]);
        }
        assert_eq!(store.execution(&execution_id("e1")).unwrap().1, before);
    }

    fn a_write_about_what_is_not_there_is_refused(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        let key = |n| AttemptKey { execution: execution_id("e1"), n };
        for write in [
            ended("e2", Status::Succeeded, 9),
            put("e2", PayloadKind::Input, b"1"),
            Write::InsertAttempt(Box::new(attempt("e2", 1, 1))),
            Write::AcceptAttempt { attempt: key(1), at: Timestamp(1) },
            Write::EndAttempt {
                attempt: key(1),
                at: Timestamp(1),
                outcome: AttemptOutcome::Broke,
                evidence: None,
            },
            Write::SetAgentHold { agent: agent_id("nobody"), held: true },
        ] {
            hand.refused(vec![write]);
        }
    }

    fn what_must_be_unique_is(store) {
        let hand = Hand::on(store);
        let key = KeyRow {
            key: Arc::from("owner\0key"),
            execution: execution_id("e1"),
            body_hash: [1; 16],
            at: Timestamp(1),
        };
        hand.commit(vec![
            Write::InsertExecution(Arc::new(row("e1", 1))),
            Write::InsertAttempt(Box::new(attempt("e1", 1, 1))),
            Write::InsertKey(Box::new(key.clone())),
        ]);
        hand.refused(vec![Write::InsertExecution(Arc::new(row("e1", 1)))]);
        hand.refused(vec![Write::InsertAttempt(Box::new(attempt("e1", 1, 1)))]);
        hand.refused(vec![Write::InsertKey(Box::new(key))]);
        let mut huge = row("e2", 1);
        huge.queue.turn = u64::MAX;
        assert!(hand.refused(vec![Write::InsertExecution(Arc::new(huge))]).contains("turn"));
    }

    fn a_refused_commit_undoes_every_kind_of_write(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        hand.commit(vec![
            Write::InsertAttempt(Box::new(attempt("e1", 1, 1))),
            put("e1", PayloadKind::Input, b"before"),
            Write::PutAgent(Box::new(agent("agent", false))),
            Write::PutInstance(Box::new(instance("agent", "one", 1))),
            Write::SetHold(Some(Arc::from("before"))),
            say(event(EventKind::PlaneStarted, 1)),
        ]);
        let before = everything(store);
        let mut moved = instance("agent", "one", 1);
        moved.gone_at = Some(Timestamp::wall_clock());
        hand.refused(vec![
            started("e1", 2, 9),
            Write::InsertAttempt(Box::new(attempt("e1", 2, 9))),
            Write::AcceptAttempt {
                attempt: AttemptKey { execution: execution_id("e1"), n: 1 },
                at: Timestamp(9),
            },
            put("e1", PayloadKind::Input, b"after"),
            put("e1", PayloadKind::Result, b"after"),
            Write::PutAgent(Box::new(agent("other", true))),
            Write::SetAgentHold { agent: agent_id("agent"), held: true },
            Write::PutInstance(Box::new(moved)),
            Write::PutInstance(Box::new(instance("other", "two", 1))),
            Write::PutRun(Box::new(RunRow {
                id: run_id("run-of-e1"),
                root: execution_id("e1"),
paused_at: None,
paused_by: None,
source: None,
                cancelled_at: Some(Timestamp(9)),
                cancelled_by: None,
            })),
            Write::SetHold(None),
            say(event(EventKind::HoldChanged, 9)),
            ended("e1", Status::Failed, 9),
            ended("e1", Status::Failed, 9),
        ]);
        assert_eq!(everything(store), before);
    }
}

/// All that can be seen of the decisions, as text.
fn everything(store: &dyn Both) -> String {
    let snapshot = store.restore().unwrap().snapshot;
    let attempts = store.attempts(&execution_id("e1")).unwrap();
    let payloads = [PayloadKind::Input, PayloadKind::Result].map(|kind| {
        store
            .payload(&execution_id("e1"), kind)
            .unwrap()
            .map(|p| p.0)
    });
    let run = store.run(&run_id("run-of-e1")).unwrap();
    let events = store.events(0, 100).unwrap();
    let row = store.execution(&execution_id("e1")).unwrap();
    format!("{snapshot:?} {attempts:?} {payloads:?} {run:?} {events:?} {row:?}")
}
