//! `on_parent_end`: what ends with the execution that called it, in memory, in the store, over a
//! crash, and what does not.

use muster_engine::Limits;
use muster_engine::effect::Load;
use muster_wire::{Category, ExecutionId, Lane, ParentEnd, Status};

use crate::world::{SECOND, World};

fn world(cap: u32, window: usize) -> (World, ExecutionId) {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        queue_window: window,
        ..Limits::default()
    });
    world.register("a", "i0", "http://h:1");
    world.register("b", "i0", "http://b:1");
    let (_, parent) = world.call(Lane::Async, "a.f");
    world.accept(&parent);
    (world, parent)
}

/// A child with a wish of the call's own.
fn child(world: &mut World, parent: &ExecutionId, target: &str, wish: ParentEnd) -> ExecutionId {
    let mut call = world.submission(Lane::Async, target);
    call.parent = Some(world.proof(parent));
    call.run = world.row(parent).run.clone();
    call.run_claimed = true;
    call.on_parent_end = Some(wish);
    world.submit(call).1
}

#[test]
fn on_parent_end_cancel_by_call_or_function_ends_children_however_the_parent_ends() {
    for status in [
        Status::Succeeded,
        Status::Failed,
        Status::Cancelled,
        Status::Timeout,
    ] {
        let (mut world, parent) = world(0, 128);
        let by_call = child(&mut world, &parent, "b.f", ParentEnd::Cancel);
        let (_, by_function) = world.child(&parent, "b.p");
        let kept = child(&mut world, &parent, "b.p", ParentEnd::Detach);
        let (_, plain) = world.child(&parent, "b.f");
        let proof = world.proof(&parent);
        world.call_back(proof, status);
        for id in [&by_call, &by_function] {
            assert_eq!(world.status(id), Status::Cancelled);
            assert_eq!(world.row(id).status_reason.as_deref(), Some("parent_ended"));
        }
        for id in [&kept, &plain] {
            assert_eq!(world.status(id), Status::Running);
        }
        assert_eq!(world.told.len(), 2, "their agents are told");
    }
}

#[test]
fn on_parent_end_cancel_goes_down_by_the_children_s_own_ends() {
    let (mut world, parent) = world(0, 128);
    let middle = child(&mut world, &parent, "b.f", ParentEnd::Cancel);
    let leaf = child(&mut world, &middle, "b.f", ParentEnd::Cancel);
    world.answer(&parent, Status::Succeeded);
    assert_eq!(world.status(&middle), Status::Cancelled);
    assert_eq!(world.status(&leaf), Status::Cancelled);
}

#[test]
fn on_parent_end_cancel_reaches_children_that_are_only_in_the_store() {
    let (mut world, parent) = world(1, 2);
    world.call(Lane::Async, "b.f");
    let children: Vec<_> = (0..20)
        .map(|_| child(&mut world, &parent, "b.f", ParentEnd::Cancel))
        .collect();
    world.answer(&parent, Status::Succeeded);
    for id in &children {
        assert_eq!((world.status(id), world.sent(id)), (Status::Cancelled, 0));
    }
}

#[test]
fn on_parent_end_cancel_is_carried_out_after_a_crash_in_between() {
    let (mut world, parent) = world(1, 2);
    let (_, blocker) = world.call(Lane::Async, "b.f");
    let children: Vec<_> = (0..20)
        .map(|_| child(&mut world, &parent, "b.f", ParentEnd::Cancel))
        .collect();
    // The plane dies before what is only in the store was read.
    world.answer_loads = false;
    world.answer(&parent, Status::Succeeded);
    assert!(
        world
            .loads
            .iter()
            .any(|load| matches!(load, Load::Bereaved { .. }))
    );
    assert!(children.iter().any(|id| world.status(id) == Status::Queued));
    world.answer_loads = true;
    world.crash(SECOND);
    assert!(
        children
            .iter()
            .all(|id| world.status(id) == Status::Cancelled)
    );
    world.answer(&blocker, Status::Succeeded);
    assert!(children.iter().all(|id| world.sent(id) == 0));
}

#[test]
fn on_parent_end_cancel_after_the_parent_s_end_is_refused() {
    let (mut world, parent) = world(0, 128);
    let mut late = world.submission(Lane::Async, "b.f");
    late.parent = Some(world.proof(&parent));
    late.on_parent_end = Some(ParentEnd::Cancel);
    let mut by_function = world.submission(Lane::Async, "b.p");
    by_function.parent = Some(world.proof(&parent));
    let mut detached = world.submission(Lane::Async, "b.f");
    detached.parent = Some(world.proof(&parent));
    world.answer(&parent, Status::Succeeded);
    for call in [late, by_function] {
        let (waiter, id) = world.submit(call);
        assert_eq!(world.refused(waiter), Category::RunCancelled);
        assert!(!world.rows.executions.contains_key(&id));
    }
    let (_, id) = world.submit(detached);
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn a_parent_that_proved_nothing_takes_nothing_with_it() {
    let (mut world, parent) = world(0, 128);
    let mut call = world.submission(Lane::Async, "b.f");
    call.parent = Some(muster_wire::AttemptRef {
        execution: parent.clone(),
        proof: None,
    });
    call.on_parent_end = Some(ParentEnd::Cancel);
    let (_, id) = world.submit(call);
    world.answer(&parent, Status::Succeeded);
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn a_sync_child_that_waits_for_its_turn_ends_with_its_parent_too() {
    let (mut world, parent) = world(1, 128);
    world.call(Lane::Async, "b.f");
    let mut call = world.submission(Lane::Sync, "b.f");
    call.parent = Some(world.proof(&parent));
    call.on_parent_end = Some(ParentEnd::Cancel);
    let (waiter, _) = world.submit(call);
    assert!(!world.is_answered(waiter));
    world.answer(&parent, Status::Succeeded);
    assert_eq!(world.refused(waiter), Category::RunCancelled);
}
