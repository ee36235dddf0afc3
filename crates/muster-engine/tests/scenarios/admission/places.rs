//! Queues at a cap: order, places of sync callers, trees that wait for each other, holds.

use muster_engine::limits::AtCapacity;
use muster_engine::{Limits, Reply};
use muster_wire::{Category, Lane, RunId, Status};

use super::{capped, world};
use crate::world::{SECOND, World};

#[test]
fn at_the_cap_async_calls_queue_in_order_and_start_when_a_slot_frees() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, first) = world.call(Lane::Async, "a.f");
    let queued: Vec<_> = (0..5).map(|_| world.call(Lane::Async, "a.f")).collect();
    for (n, (waiter, id)) in queued.iter().enumerate() {
        let Reply::Accepted(receipt) = world.reply(*waiter) else {
            panic!()
        };
        assert_eq!(
            (receipt.status, receipt.position.unwrap().ahead),
            (Status::Queued, n as u64)
        );
        assert_eq!(world.status(id), Status::Queued);
    }
    let mut running = first;
    for (_, next) in queued {
        assert_eq!(world.sent(&next), 0);
        world.answer(&running, Status::Succeeded);
        assert_eq!(world.sent(&next), 1);
        running = next;
    }
}

#[test]
fn a_slot_is_held_to_the_end_and_not_to_the_202() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, second) = world.call(Lane::Async, "a.f");
    world.accept(&first);
    assert_eq!(world.sent(&second), 0);
    let proof = world.proof(&first);
    world.call_back(proof, Status::Failed);
    assert_eq!(world.sent(&second), 1);
}

#[test]
fn reject_refuses_at_the_cap_on_every_lane() {
    let mut world = capped(1, AtCapacity::Reject);
    world.call(Lane::Async, "a.f");
    for lane in [Lane::Sync, Lane::Async, Lane::Mcp] {
        let (waiter, id) = world.call(lane, "a.f");
        let Reply::Refused(refusal) = world.reply(waiter) else {
            panic!()
        };
        assert_eq!(refusal.category(), Category::ConcurrencyLimit);
        assert_eq!(
            (refusal.http_status(), refusal.retry_after()),
            (429, Some(1))
        );
        assert!(!world.rows.executions.contains_key(&id));
    }
}

#[test]
fn a_sync_caller_takes_a_place_without_a_row_and_gets_its_turn() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, first) = world.call(Lane::Async, "a.f");
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    let (_, behind) = world.call(Lane::Async, "a.f");
    assert!(!world.rows.executions.contains_key(&id));
    world.answer(&first, Status::Succeeded);
    assert_eq!((world.sent(&id), world.sent(&behind)), (1, 0));
    world.answer(&id, Status::Succeeded);
    assert!(matches!(world.reply(waiter), Reply::Ended(_)));
    assert_eq!(world.sent(&behind), 1);
}

#[test]
fn a_place_ends_by_sync_wait_by_hanging_up_or_by_a_full_queue() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        queue_capacity: 2,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world.call(Lane::Async, "a.f");
    let (waits, id) = world.call(Lane::Sync, "a.f");
    let (leaves, _) = world.call(Lane::Sync, "a.f");
    let (full, _) = world.call(Lane::Sync, "a.f");
    assert_eq!(world.refused(full), Category::ConcurrencyLimit);
    world.step(muster_engine::Event::PlaceLeft { waiter: leaves });
    let (fits, _) = world.call(Lane::Async, "a.f");
    assert!(matches!(world.reply(fits), Reply::Accepted(_)));
    for _ in 0..100 {
        world.beat("a", "i1");
        world.pass(SECOND);
    }
    assert_eq!(world.refused(waits), Category::ConcurrencyLimit);
    assert!(!world.rows.executions.contains_key(&id));
}

#[test]
fn a_big_run_does_not_starve_a_small_one() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, root) = world.call(Lane::Async, "a.f");
    for _ in 0..1_000 {
        let mut more = world.submission(Lane::Async, "a.f");
        more.run = RunId::trusted("big");
        more.run_claimed = true;
        world.submit(more);
    }
    let (_, small) = world.call(Lane::Async, "a.f");
    world.answer(&root, Status::Succeeded);
    let first_of_big = world.dispatched.last().unwrap().attempt.execution.clone();
    world.answer(&first_of_big, Status::Succeeded);
    assert_eq!(world.sent(&small), 1, "the small run's turn came second");
}

#[test]
fn a_lower_class_number_goes_first() {
    let mut world = capped(1, AtCapacity::Queue);
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, normal) = world.call(Lane::Async, "a.f");
    let mut urgent = world.submission(Lane::Async, "a.f");
    urgent.class = Some(0);
    let (_, urgent) = world.submit(urgent);
    world.answer(&first, Status::Succeeded);
    assert_eq!((world.sent(&urgent), world.sent(&normal)), (1, 0));
}

#[test]
fn a_call_to_an_agent_its_own_tree_holds_is_not_queued_by_that_cap() {
    let mut world = capped(1, AtCapacity::Queue);
    world.register("b", "i1", "http://h:2");
    let (_, a1) = world.call(Lane::Async, "a.f");
    let (_, b1) = world.child(&a1, "b.f");
    let (_, a2) = world.child(&b1, "a.f");
    assert_eq!(world.sent(&a2), 1, "A→B→A with caps of one");
    assert!(world.row(&a2).over_cap);
    let (_, stranger) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&stranger), Status::Queued);
}

#[test]
fn two_trees_that_wait_for_each_other_are_let_through() {
    let mut world = capped(1, AtCapacity::Queue);
    world.register("b", "i1", "http://h:2");
    let (_, a1) = world.call(Lane::Async, "a.f");
    let (_, b1) = world.call(Lane::Async, "b.f");
    let (_, to_b) = world.child(&a1, "b.f");
    assert_eq!(world.status(&to_b), Status::Queued, "b1 may still end");
    let (_, to_a) = world.child(&b1, "a.f");
    let started = [&to_a, &to_b]
        .iter()
        .filter(|id| world.status(id) == Status::Running)
        .count();
    assert!(
        started >= 1,
        "A↔B with caps of one: somebody must go over the cap"
    );
}

#[test]
fn a_queue_longer_than_the_window_keeps_its_order_over_a_crash() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        queue_window: 4,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    let ids: Vec<_> = (0..40).map(|_| world.call(Lane::Async, "a.f").1).collect();
    assert!(
        world.engine.open_executions() < 12,
        "only a window of the queue is in memory"
    );
    for (n, id) in ids.iter().enumerate() {
        if n == 20 {
            world.accept(id);
            world.crash(SECOND);
            world.beat("a", "i1");
        }
        assert_eq!(world.sent(id), 1, "{n}");
        assert_eq!(world.dispatched.len(), n + 1);
        let proof = world.proof(id);
        assert!(matches!(
            world.call_back(proof, Status::Succeeded),
            Reply::CallbackTaken
        ));
    }
}

#[test]
fn a_hold_queues_what_comes_and_lets_it_go_when_it_is_lifted() {
    let mut world = world();
    let waiter = world.waiter();
    world.step(muster_engine::Event::Held {
        agent: None,
        reason: Some("restored".into()),
        by: "ada".into(),
        waiter,
    });
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!((world.status(&id), world.sent(&id)), (Status::Queued, 0));
    world.crash(SECOND);
    world.beat("a", "i1");
    assert_eq!(world.sent(&id), 0, "a hold survives a restart");
    let waiter = world.waiter();
    world.step(muster_engine::Event::Held {
        agent: None,
        reason: None,
        by: "ada".into(),
        waiter,
    });
    assert_eq!(world.sent(&id), 1);
    // Once more: nothing is held, so nothing is lifted.
    let events = world.rows.events.len();
    for agent in [None, Some(muster_wire::AgentId::trusted("a"))] {
        let waiter = world.waiter();
        world.step(muster_engine::Event::Held {
            agent,
            reason: None,
            by: "ada".into(),
            waiter,
        });
        assert!(matches!(world.reply(waiter), muster_engine::Reply::Done));
    }
    assert_eq!(world.rows.events.len(), events);
}

#[test]
fn two_trees_that_wait_for_each_other_by_sync_calls_are_let_through() {
    let mut world = capped(1, AtCapacity::Queue);
    world.register("b", "i1", "http://h:2");
    let (_, a1) = world.call(Lane::Sync, "a.f");
    let (_, b1) = world.call(Lane::Sync, "b.f");
    let mut nested = Vec::new();
    for (parent, target) in [(&a1, "b.f"), (&b1, "a.f")] {
        let mut submission = world.submission(Lane::Sync, target);
        submission.parent = Some(world.proof(parent));
        nested.push(world.submit(submission).1);
    }
    let started: Vec<_> = nested
        .iter()
        .filter(|id| world.sent(id) == 1)
        .cloned()
        .collect();
    assert_eq!(
        started.len(),
        1,
        "one goes over the cap, and that is enough"
    );
    let first = &started[0];
    assert!(world.row(first).over_cap);
    world.answer(first, Status::Succeeded);
    let parent = world.row(first).parent.clone().unwrap();
    world.answer(&parent, Status::Succeeded);
    let other = nested.iter().find(|id| *id != first).unwrap();
    assert_eq!(
        world.sent(other),
        1,
        "the other one got the slot that became free"
    );
}

#[test]
fn who_joined_a_queued_call_is_answered_when_the_window_has_no_more_room_for_it() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        queue_window: 2,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.call(Lane::Async, "a.f");
    let mut keyed = world.submission(Lane::Async, "a.f");
    keyed.idempotency_key = Some("owner\0k".into());
    let (_, id) = world.submit(keyed.clone());
    keyed.lane = Lane::Sync;
    keyed.waiter = world.waiter();
    let (joined, _) = world.submit(keyed);
    assert_eq!(world.status(&id), Status::Queued);
    for _ in 0..2 {
        let mut first = world.submission(Lane::Async, "a.f");
        first.class = Some(0);
        world.submit(first);
    }
    assert!(
        matches!(world.reply(joined), Reply::StillRunning { execution, .. } if execution == id)
    );
}
