//! What a commit promises: all or nothing, in order, under the newest lease.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::row::{EventKind, PayloadKind};
use muster_store::{CommitEnd, LeaseId, StoreError};
use muster_wire::Status;

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
}
