//! Reads for decisions: submissions, trees, windows.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::event::KnownRun;
use muster_engine::row::{EventKind, KeyRow, QueueKey, RunRow};
use muster_wire::{AttemptRef, Status, Timestamp};

use crate::support::*;

crate::on_each_store! {
    fn a_submission_learns_what_it_asks_for_and_no_more(store) {
        let hand = Hand::on(store);
        let root = row("root", 1);
        let mut one = child("one", &root, 2);
        one.queue.turn = 7;
        let mut two = child("two", &root, 3);
        two.queue.turn = 9;
        two.agent = agent_id("other");
        let mut three = child("three", &root, 4);
        three.queue.turn = 11;
        hand.insert_all(&[root.clone(), one, two, three]);
        hand.commit(vec![
            started("three", 1, 5),
            say(event(EventKind::ExecutionStarted, 5)),
            Write::InsertKey(Box::new(KeyRow {
                key: Arc::from("owner\0k"),
                execution: execution_id("one"),
                body_hash: [4; 16],
                at: Timestamp(2),
            })),
            Write::InsertKey(Box::new(KeyRow {
                key: Arc::from("owner\0gone"),
                execution: execution_id("gone"),
                body_hash: [5; 16],
                at: Timestamp(2),
            })),
        ]);
        let nothing = store.known(&submission(None, "agent")).unwrap();
        assert_eq!(nothing.as_of, Some(1));
        assert!(nothing.key.is_none() && nothing.run.is_none());
        assert!(nothing.parent.is_none() && nothing.turn.is_none());

        let mut ask = submission(Some(root.run.as_str()), "agent");
        ask.parent = Some(AttemptRef::parse("root~1.secret").unwrap());
        ask.idempotency_key = Some(Arc::from("owner\0k"));
        let known = store.known(&ask).unwrap();
        let run = KnownRun { root: root.id.clone(), cancelled: false, paused: false, size: 4 };
        assert_eq!(known.run.as_ref(), Some(&run));
        assert_eq!(known.turn, Some(7), "three has started, two waits elsewhere");
        assert_eq!(known.parent.as_deref(), Some(&root));
        let (execution, hash, row) = known.key.unwrap();
        assert_eq!((execution.as_str(), hash), ("one", [4; 16]));
        assert_eq!(row.unwrap().id.as_str(), "one");

        ask.idempotency_key = Some(Arc::from("owner\0gone"));
        ask.parent = Some(AttemptRef::parse("nobody").unwrap());
        ask.agent = agent_id("third");
        hand.commit(vec![Write::PutRun(Box::new(RunRow {
            id: root.run.clone(),
            root: root.id.clone(),
paused_at: None,
paused_by: None,
source: None,
            cancelled_at: Some(Timestamp(9)),
            cancelled_by: None,
        }))]);
        let known = store.known(&ask).unwrap();
        assert_eq!(known.run, Some(KnownRun { cancelled: true, ..run }));
        assert!(known.parent.is_none() && known.turn.is_none());
        assert!(known.key.unwrap().2.is_none());

        ask.idempotency_key = Some(Arc::from("owner\0other"));
        ask.run = run_id("nothing");
        let known = store.known(&ask).unwrap();
        assert!(known.key.is_none() && known.run.is_none());
    }

    fn a_tree_is_its_run_and_its_queued_members(store) {
        let hand = Hand::on(store);
        let root = row("root", 1);
        let (one, two) = (child("one", &root, 2), child("two", &root, 3));
        hand.insert_all(&[root.clone(), one, two.clone(), row("stranger", 3)]);
        hand.commit(vec![started("root", 1, 5), ended("one", Status::Failed, 6)]);
        let tree = store.tree(&root.run).unwrap();
        assert_eq!(tree.as_of, 0);
        assert_eq!(tree.run.unwrap().size, 3);
        assert_eq!(tree.queued, [two]);
        let nothing = store.tree(&run_id("nothing")).unwrap();
        assert!(nothing.run.is_none() && nothing.queued.is_empty());
    }

    fn a_window_walks_the_queue_in_its_order(store) {
        let hand = Hand::on(store);
        let key = |class, turn, seq| QueueKey { class, turn, seq };
        let places = [
            key(0, 9, 6),
            key(5, 1, 3),
            key(5, 1, 4),
            key(5, 2, 1),
            key(5, 2, 2),
            key(9, 0, 5),
        ];
        let mut rows: Vec<_> = places
            .iter()
            .map(|place| {
                let mut new = row(&format!("e{}", place.seq), 1);
                new.queue = *place;
                new
            })
            .collect();
        rows.reverse();
        let mut other = row("other", 1);
        other.agent = agent_id("other");
        rows.push(other);
        hand.insert_all(&rows);
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let window = store.window(&agent_id("agent"), after, 4).unwrap();
            seen.extend(window.rows.iter().map(|queued| queued.row.queue));
            assert_eq!(window.exhausted, seen.len() == places.len());
            if window.exhausted {
                break;
            }
            after = seen.last().copied();
        }
        assert_eq!(seen, places);
        let window = |after| store.window(&agent_id("agent"), after, 6).unwrap();
        assert!(window(None).exhausted, "exactly as many as asked for");
        assert!(window(Some(places[5])).rows.is_empty());
        let end = key(9, u64::MAX, u64::MAX);
        assert!(window(Some(end)).exhausted);
        hand.commit(vec![started("e3", 1, 5)]);
        assert_eq!(window(None).rows.len(), 5);
        assert!(store.window(&agent_id("nobody"), None, 4).unwrap().exhausted);
    }
}
