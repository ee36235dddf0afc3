//! What a start reads back.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::row::{EventKind, QueueCount, RunRow};
use muster_wire::{Status, Timestamp};

use crate::support::*;

crate::on_each_store! {
    fn an_empty_store_restores_to_nothing(store) {
        let restored = store.restore().unwrap();
        assert_eq!(restored.snapshot.last_seq, 0);
        assert_eq!(restored.snapshot.last_at, Timestamp::ZERO);
        assert!(restored.snapshot.open.is_empty());
        assert!(restored.snapshot.queues.is_empty());
        assert!(restored.set_aside.is_empty());
    }

    fn open_work_comes_back_and_finished_work_does_not(store) {
        let hand = Hand::on(store);
        let done = row("done", 1);
        let open = row("open", 2);
        let waits = row("waits", 3);
        let also = child("also", &waits, 4);
        let mut other = row("other", 5);
        other.queue.class = 0;
        hand.insert_all(&[done, open.clone(), waits.clone(), also, other]);
        let mut first = attempt("open", 1, 10);
        let second = attempt("open", 2, 11);
        hand.commit(vec![
            started("done", 1, 10),
            started("open", 2, 11),
            Write::InsertAttempt(Box::new(first.clone())),
            Write::InsertAttempt(Box::new(second.clone())),
            ended("done", Status::Succeeded, 12),
            say(event(EventKind::ExecutionSucceeded, 12)),
            Write::SetHold(Some(Arc::from("by hand"))),
            Write::PutRun(Box::new(RunRow {
                id: waits.run.clone(),
                root: waits.id.clone(),
                cancelled_at: Some(Timestamp(12)),
                cancelled_by: Some(Arc::from("somebody")),
            })),
            Write::PutRun(Box::new(RunRow {
                id: run_id("run-of-done"),
                root: execution_id("done"),
                cancelled_at: Some(Timestamp(12)),
                cancelled_by: None,
            })),
        ]);
        let snapshot = store.restore().unwrap().snapshot;
        assert_eq!((snapshot.last_seq, snapshot.last_at), (1, Timestamp(12)));
        let [found] = &snapshot.open[..] else {
            panic!("{:?}", snapshot.open)
        };
        assert_eq!(found.row.id, open.id);
        assert_eq!(found.row.status, Status::Running);
        assert_eq!(found.attempt.as_ref(), Some(&second));
        let count = |class, count| QueueCount {
            agent: agent_id("agent"),
            class,
            turn: 1,
            count,
        };
        assert_eq!(snapshot.queues, vec![count(0, 1), count(5, 2)]);
        let runs: Vec<_> = snapshot.runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(runs, ["run-of-waits"]);
        assert_eq!(snapshot.hold.as_deref(), Some("by hand"));

        hand.commit(vec![Write::SetHold(None)]);
        assert_eq!(store.restore().unwrap().snapshot.hold, None);
        first.ended_at = Some(Timestamp(11));
        assert_ne!(store.attempts(&open.id).unwrap(), vec![first, second]);
    }
}
