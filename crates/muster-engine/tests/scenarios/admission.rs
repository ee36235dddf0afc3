//! The admission's rows, each as a test from the caller's side: what is answered, and that a
//! refusal leaves nothing behind.

mod places;

use std::time::Duration;

use muster_engine::limits::AtCapacity;
use muster_engine::{Limits, Reply};
use muster_wire::{Category, Lane, RunId, Status};

use crate::world::{SECOND, World};

fn capped(cap: u32, at_capacity: AtCapacity) -> World {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        at_capacity,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

fn world() -> World {
    capped(0, AtCapacity::Queue)
}

#[test]
fn a_refusal_leaves_no_trace_in_the_store() {
    for lane in [Lane::Sync, Lane::Async, Lane::Mcp, Lane::Restart] {
        let mut world = world();
        let before = world.rows.events.len();
        let (waiter, id) = world.call(lane, "nobody.f");
        assert_eq!(world.refused(waiter), Category::TargetNotFound);
        let (waiter, _) = world.call(lane, "a.nothing");
        assert_eq!(world.refused(waiter), Category::TargetNotFound);
        assert!(!world.rows.executions.contains_key(&id));
        assert_eq!(world.rows.events.len(), before);
        assert!(world.dispatched.is_empty());
    }
}

#[test]
fn an_input_fault_is_refused_after_the_target_was_found() {
    let mut world = world();
    let fault = muster_engine::event::InputFault {
        field: "city".into(),
        message: "is required".into(),
    };
    let mut submission = world.submission(Lane::Sync, "a.f");
    submission.input_fault = Some(fault.clone());
    let (waiter, _) = world.submit(submission);
    assert_eq!(world.refused(waiter), Category::Validation);
    let mut submission = world.submission(Lane::Sync, "nobody.f");
    submission.input_fault = Some(fault);
    let (waiter, _) = world.submit(submission);
    assert_eq!(world.refused(waiter), Category::TargetNotFound);
}

#[test]
fn a_sync_call_is_two_steps_and_answers_with_the_result() {
    let mut world = world();
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    assert!(!world.is_answered(waiter));
    assert_eq!(world.status(&id), Status::Running);
    world.answer(&id, Status::Succeeded);
    let Reply::Ended(view) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!(view.row.status, Status::Succeeded);
    assert_eq!(view.result.as_ref().unwrap().0, "42");
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn the_same_key_joins_and_another_body_conflicts() {
    let mut world = world();
    let key: std::sync::Arc<str> = "owner\0k1".into();
    let mut first = world.submission(Lane::Async, "a.f");
    first.idempotency_key = Some(key.clone());
    let (waiter, id) = world.submit(first);
    let Reply::Accepted(receipt) = world.reply(waiter) else {
        panic!()
    };
    assert!(!receipt.replayed);

    let mut again = world.submission(Lane::Async, "a.f");
    again.idempotency_key = Some(key.clone());
    let (waiter, other) = world.submit(again);
    let Reply::Accepted(receipt) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!((receipt.execution, receipt.replayed), (id.clone(), true));
    assert!(!world.rows.executions.contains_key(&other));

    let mut sync = world.submission(Lane::Sync, "a.f");
    sync.idempotency_key = Some(key.clone());
    let (waiter, _) = world.submit(sync);
    assert!(!world.is_answered(waiter), "it waits with the first");
    world.answer(&id, Status::Succeeded);
    assert!(matches!(world.reply(waiter), Reply::Ended(view) if view.row.id == id));

    let mut late = world.submission(Lane::Sync, "a.f");
    late.idempotency_key = Some(key.clone());
    let (waiter, _) = world.submit(late);
    assert!(
        matches!(world.reply(waiter), Reply::Ended(view) if view.row.status == Status::Succeeded)
    );

    let mut conflict = world.submission(Lane::Async, "a.f");
    conflict.idempotency_key = Some(key);
    conflict.body_hash = [1; 16];
    let (waiter, _) = world.submit(conflict);
    assert_eq!(world.refused(waiter), Category::IdempotencyConflict);
    assert_eq!(world.rows.executions.len(), 1);
}

#[test]
fn a_refusal_is_not_remembered_under_its_key() {
    let mut world = World::new(Limits::default());
    let key: std::sync::Arc<str> = "owner\0k1".into();
    let mut first = world.submission(Lane::Async, "a.f");
    first.idempotency_key = Some(key.clone());
    let (waiter, _) = world.submit(first);
    assert_eq!(world.refused(waiter), Category::TargetNotFound);
    world.register("a", "i1", "http://h:1");
    let mut again = world.submission(Lane::Async, "a.f");
    again.idempotency_key = Some(key);
    let (waiter, id) = world.submit(again);
    assert!(matches!(world.reply(waiter), Reply::Accepted(receipt) if receipt.execution == id));
}

#[test]
fn a_key_survives_a_crash_of_the_plane() {
    let mut world = world();
    let mut first = world.submission(Lane::Async, "a.f");
    first.idempotency_key = Some("owner\0k".into());
    let (_, id) = world.submit(first);
    world.answer(&id, Status::Succeeded);
    world.crash(SECOND);
    let mut again = world.submission(Lane::Async, "a.f");
    again.idempotency_key = Some("owner\0k".into());
    let (waiter, _) = world.submit(again);
    let Reply::Accepted(receipt) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!((receipt.execution, receipt.status), (id, Status::Succeeded));
}

#[test]
fn a_cancelled_run_takes_no_more_calls_on_any_lane() {
    let mut world = world();
    let mut first = world.submission(Lane::Async, "a.f");
    first.run = RunId::trusted("mine");
    first.run_claimed = true;
    world.submit(first);
    assert!(
        matches!(world.cancel_tree(&RunId::trusted("mine")), Reply::Cancelled { ended, .. } if ended.len() == 1)
    );
    for lane in [Lane::Sync, Lane::Async] {
        let mut more = world.submission(lane, "a.f");
        more.run = RunId::trusted("mine");
        more.run_claimed = true;
        let (waiter, _) = world.submit(more);
        assert_eq!(world.refused(waiter), Category::RunCancelled);
    }
    world.crash(SECOND);
    let mut more = world.submission(Lane::Async, "a.f");
    more.run = RunId::trusted("mine");
    more.run_claimed = true;
    let (waiter, _) = world.submit(more);
    assert_eq!(world.refused(waiter), Category::RunCancelled);
}

#[test]
fn a_child_of_a_cancelled_ancestor_is_refused() {
    let mut world = world();
    let (_, root) = world.call(Lane::Async, "a.f");
    let (_, child) = world.child(&root, "a.f");
    world.cancel(&root);
    assert_eq!(
        world.status(&child),
        Status::Running,
        "detached children go on"
    );
    let (waiter, _) = world.child(&child, "a.f");
    assert_eq!(world.refused(waiter), Category::RunCancelled);
}

#[test]
fn the_plane_refuses_while_it_drains_or_its_disk_is_full() {
    let mut world = world();
    world.step(muster_engine::Event::StoreRoom { full: true });
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::StoreFull);
    world.step(muster_engine::Event::StoreRoom { full: false });
    world.step(muster_engine::Event::Draining);
    let (waiter, _) = world.call(Lane::Sync, "a.f");
    let Reply::Refused(refusal) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!(
        (refusal.category(), refusal.retry_after()),
        (Category::ControlPlaneShutdown, Some(1))
    );
}

#[test]
fn a_recursion_without_end_and_a_run_without_end_are_refused() {
    let mut world = World::new(Limits {
        depth_max: 3,
        run_size_max: 5,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    let (_, mut last) = world.call(Lane::Async, "a.f");
    for _ in 0..3 {
        last = world.child(&last, "a.f").1;
    }
    let (waiter, _) = world.child(&last, "a.f");
    let Reply::Refused(refusal) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!(
        (
            refusal.category(),
            refusal.http_status(),
            refusal.retry_after()
        ),
        (Category::ConcurrencyLimit, 429, None)
    );
    let root = world.row(&last).root.clone();
    world.child(&root, "a.f");
    let (waiter, _) = world.child(&root, "a.f");
    assert!(matches!(
        world.reply(waiter),
        Reply::Refused(muster_engine::Refusal::RunTooLarge { max: 5 })
    ));
}

#[test]
fn a_claimed_parent_without_proof_is_display_only() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, parent) = world.call(Lane::Async, "a.f");
    let mut claims = world.submission(Lane::Async, "a.f");
    claims.parent = Some(muster_wire::AttemptRef {
        execution: parent.clone(),
        proof: None,
    });
    let (_, child) = world.submit(claims);
    assert_eq!(
        world.status(&child),
        Status::Queued,
        "no holds come from a claim"
    );
    assert_eq!(world.row(&child).parent.as_ref(), Some(&parent));
}

#[test]
fn a_submission_that_waited_too_long_is_dropped_before_its_commit() {
    let mut world = world();
    let submission = world.submission(Lane::Async, "a.f");
    world.pass(Duration::from_secs(9));
    let (waiter, id) = world.submit(submission);
    assert_eq!(world.refused(waiter), Category::Overloaded);
    assert!(!world.rows.executions.contains_key(&id));
}

#[test]
fn a_call_whose_202_was_lost_is_joined_once_when_it_comes_again() {
    let mut world = world();
    let mut first = world.submission(Lane::Async, "a.f");
    first.run = RunId::trusted("mine");
    first.run_claimed = true;
    let again = (first.clone(), first.clone());
    let (_, id) = world.submit(first);
    world.step(muster_engine::Event::Unheard {
        execution: id.clone(),
    });
    for (n, mut repeat) in [again.0, again.1].into_iter().enumerate() {
        repeat.waiter = world.waiter();
        repeat.execution = muster_wire::ExecutionId::trusted(format!("again_{n}"));
        let (waiter, _) = world.submit(repeat);
        let Reply::Accepted(receipt) = world.reply(waiter) else {
            panic!()
        };
        assert_eq!(
            receipt.execution == id,
            n == 0,
            "joined once, then a call of its own"
        );
    }
}
