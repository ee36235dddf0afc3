//! Reads for restarts and replays: whether a source run is open, which call of it is the twin of
//! another, whether its end may be taken over, and the result of what was taken over.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::{ReplayHit, Restart, Submission};
use muster_engine::row::{ExecutionRow, Links, PayloadKind, REPLAYED_FROM, Replay};
use muster_store::Store;
use muster_wire::{AttemptRef, ReplayMode, Status, Timestamp};

use crate::support::*;

/// An execution that succeeded with a small result.
fn done(mut row: ExecutionRow, at: i64) -> ExecutionRow {
    row.status = Status::Succeeded;
    row.ended_at = Some(Timestamp(at));
    row.result_size = Some(2);
    row
}

/// A source run: a root with three equal calls, of which the second failed, another one, and a
/// call of that one.
fn source(hand: &Hand<'_>) -> ExecutionRow {
    let mut root = row("root", 1);
    root.status = Status::Failed;
    root.ended_at = Some(Timestamp(90));
    let one = done(child("one", &root, 10), 12);
    let mut two = child("two", &root, 20);
    two.status = Status::Failed;
    two.ended_at = Some(Timestamp(22));
    let three = done(child("three", &root, 30), 60);
    let mut other = done(child("other", &root, 40), 55);
    other.input_hash = [8; 16];
    let mut inner = done(child("inner", &other, 41), 50);
    inner.input_hash = [9; 16];
    hand.insert_all(&[root.clone(), one, two, three, other, inner]);
    let results = ["one", "three", "other", "inner"];
    hand.commit(
        results
            .map(|id| put(id, PayloadKind::Result, b"42"))
            .to_vec(),
    );
    root
}

fn replay(mode: ReplayMode, before: Option<&str>) -> Replay {
    Replay {
        source: run_id("run-of-root"),
        mode,
        before: before.map(execution_id),
    }
}

/// The root of a run that restarts the source.
fn again(hand: &Hand<'_>, replay: &Replay) -> ExecutionRow {
    let mut root = row("again", 100);
    root.status = Status::Running;
    root.links = Some(Box::new(Links {
        replay: Some(replay.clone()),
        replay_of: Some(execution_id("root")),
        restart_of: Some(execution_id("root")),
        ..Links::default()
    }));
    hand.insert(&root);
    root
}

/// A call of it.
fn call(replay: &Replay, hash: u8, index: Option<u32>) -> Submission {
    let mut ask = submission(Some("run-of-again"), "agent");
    ask.parent = Some(AttemptRef::parse("again~1.secret").unwrap());
    ask.body_hash = [hash; 16];
    ask.replay = Some(Box::new(replay.clone()));
    ask.replay_index = index;
    ask
}

fn hit(store: &dyn Store, ask: &Submission) -> Option<(String, String, bool)> {
    let hit: ReplayHit = *store.known(ask).unwrap().hit?;
    Some((hit.twin.to_string(), hit.row.id.to_string(), hit.usable))
}

fn same(id: &str, usable: bool) -> Option<(String, String, bool)> {
    Some((id.to_owned(), id.to_owned(), usable))
}

crate::on_each_store! {
    fn a_source_is_open_while_a_member_is(store) {
        let hand = Hand::on(store);
        let root = row("root", 1);
        hand.insert(&root);
        let mut ask = submission(None, "agent");
        ask.restart = Some(Box::new(Restart {
            of: root.id.clone(),
            named: root.id.clone(),
            source: root.run.clone(),
            fork: false,
            reason: None,
        }));
        assert_eq!(store.known(&ask).unwrap().source_open, Some(true), "queued");
        hand.commit(vec![started("root", 1, 2)]);
        assert_eq!(store.known(&ask).unwrap().source_open, Some(true), "running");
        hand.end("root", Status::Cancelled, 3);
        assert_eq!(store.known(&ask).unwrap().source_open, Some(false));
    }

    fn the_twin_is_the_equal_call_of_that_index(store) {
        let hand = Hand::on(store);
        source(&hand);
        let replay = replay(ReplayMode::AllSucceeded, None);
        again(&hand, &replay);
        let ask = |hash, index| hit(store, &call(&replay, hash, Some(index)));
        assert_eq!(ask(7, 0), same("one", true));
        assert_eq!(ask(7, 1), same("two", false), "it failed: its calls may match, not it");
        assert_eq!(ask(7, 2), same("three", true));
        assert_eq!(ask(7, 3), None);
        assert_eq!(ask(8, 0), same("other", true));
        assert_eq!(ask(9, 0), None, "a call of another one");
        assert!(hit(store, &call(&replay, 7, None)).is_none(), "not asked for yet");
    }

    fn equal_calls_are_counted_by_their_parent(store) {
        let hand = Hand::on(store);
        source(&hand);
        let replay = replay(ReplayMode::SucceededBefore, None);
        let root = again(&hand, &replay);
        let count = |hash| store.known(&call(&replay, hash, None)).unwrap().equal_calls;
        assert_eq!(count(7), Some(0));
        hand.insert_all(&[child("a", &root, 101), child("b", &root, 102)]);
        assert_eq!((count(7), count(8)), (Some(2), Some(0)));
    }

    fn the_modes_choose_by_time_and_by_the_line_above(store) {
        let hand = Hand::on(store);
        source(&hand);
        let root = row("again", 100);
        hand.insert(&root);
        let ask = |mode, before, hash, index| {
            let replay = replay(mode, before);
            let mut ask = call(&replay, hash, Some(index));
            // As headers alone say it.
            ask.parent = None;
            hit(store, &ask).map(|(_, _, usable)| usable)
        };
        use ReplayMode::{AllSucceeded, None as Nothing, SucceededBefore};
        assert_eq!(ask(SucceededBefore, Some("two"), 7, 0), Some(true), "ended at 12, before 20");
        assert_eq!(ask(SucceededBefore, Some("two"), 8, 0), Some(false), "ended at 55");
        assert_eq!(ask(SucceededBefore, None, 8, 0), Some(true));
        assert_eq!(ask(AllSucceeded, Some("two"), 8, 0), Some(true));
        assert_eq!(ask(AllSucceeded, Some("inner"), 8, 0), Some(false), "it called inner");
        assert_eq!(ask(AllSucceeded, Some("inner"), 9, 0), Some(false), "inner itself");
        assert_eq!(ask(AllSucceeded, Some("gone"), 8, 0), Some(false), "nobody knows");
        assert_eq!(ask(Nothing, None, 8, 0), Some(false));
    }

    fn headers_alone_take_each_execution_once(store) {
        let hand = Hand::on(store);
        source(&hand);
        let replay = replay(ReplayMode::AllSucceeded, None);
        let root = row("again", 100);
        hand.insert(&root);
        let mut ask = call(&replay, 7, Some(0));
        assert_eq!(hit(store, &ask), same("one", true));
        let mut taken = child("taken", &root, 101);
        taken.links = Some(Box::new(Links {
            replay_of: Some(execution_id("one")),
            ..Links::default()
        }));
        hand.insert(&taken);
        assert_eq!(hit(store, &ask), same("two", false));
        ask.run = run_id("another");
        assert_eq!(hit(store, &ask), same("one", true), "by its run");
    }

    fn what_was_taken_over_leads_to_what_really_ran_and_its_result(store) {
        let hand = Hand::on(store);
        source(&hand);
        let mut second = row("second", 70);
        second.status = Status::Failed;
        second.ended_at = Some(Timestamp(80));
        let mut replayed = done(child("replayed", &second, 71), 71);
        replayed.status_reason = Some(Arc::from(format!("{REPLAYED_FROM}one")));
        hand.insert_all(&[second, replayed]);
        assert_eq!(
            store.payload(&execution_id("replayed"), PayloadKind::Result).unwrap(),
            Some(payload(b"42"))
        );
        assert_eq!(store.payload(&execution_id("replayed"), PayloadKind::Input).unwrap(), None);
        let replay = Replay { source: run_id("run-of-second"), ..replay(ReplayMode::AllSucceeded, None) };
        let ask = call(&replay, 7, Some(0));
        assert_eq!(hit(store, &ask), Some(("replayed".into(), "one".into(), true)));
    }

    fn a_result_that_is_gone_is_not_usable_and_a_large_one_is(store) {
        let hand = Hand::on(store);
        let root = source(&hand);
        let mut gone = done(child("gone", &root, 42), 43);
        gone.input_hash = [1; 16];
        let mut large = done(child("large", &root, 44), 45);
        large.input_hash = [2; 16];
        large.result_size = Some(100_000);
        let mut none = done(child("none", &root, 46), 47);
        none.input_hash = [3; 16];
        none.result_size = None;
        let bytes = Bytes::from(vec![b'x'; 100_000]);
        store.put_large(&large.id, PayloadKind::Result, bytes).unwrap();
        hand.insert_all(&[gone, large, none]);
        let replay = replay(ReplayMode::AllSucceeded, None);
        again(&hand, &replay);
        let ask = |hash| hit(store, &call(&replay, hash, Some(0)));
        assert_eq!(ask(1), same("gone", false));
        assert_eq!(ask(2), same("large", true));
        assert_eq!(ask(3), same("none", true));
    }

    fn a_restart_is_marked_on_what_ended_and_on_nothing_that_is_gone(store) {
        let hand = Hand::on(store);
        source(&hand);
        let mark = |id: &str| Write::UpdateExecution {
            id: execution_id(id),
            change: ExecutionChange::RestartedAs { id: execution_id("new") },
        };
        hand.commit(vec![mark("root"), mark("retired")]);
        let (_, row) = store.execution(&execution_id("root")).unwrap();
        let links = row.unwrap().links.unwrap();
        assert_eq!(links.restarted_as, Some(execution_id("new")));
        assert!(store.execution(&execution_id("retired")).unwrap().1.is_none());
    }
}
