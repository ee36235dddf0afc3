//! Waiting for a child, and the slot that comes back: execution.md's rows about `waiting`.

use muster_engine::Limits;
use muster_engine::effect::Reply;
use muster_wire::{Decision, ExecutionId, Lane, Status, WaitCause};

use crate::world::{SECOND, World};

fn family() -> (World, ExecutionId, ExecutionId) {
    let mut world = World::new(Limits::default());
    world.register("a", "i0", "http://h:1");
    let (_, parent) = world.call(Lane::Async, "a.f");
    world.accept(&parent);
    let (_, child) = world.child(&parent, "a.f");
    world.accept(&child);
    (world, parent, child)
}

fn applied(reply: &Reply) -> bool {
    match reply {
        Reply::Awaiter { applied, .. } => *applied,
        other => panic!("{other:?}"),
    }
}

#[test]
fn awaiting_child_names_the_child_and_needs_one_that_waits() {
    let (mut world, parent, child) = family();
    assert!(!applied(&world.awaiter(&parent, true)), "no child waits");
    world.ask_for(&child, "r");
    assert!(applied(&world.awaiter(&parent, true)));
    let row = world.row(&parent);
    assert_eq!(row.status_reason.as_deref(), Some("awaiting_child"));
    let wait = row.wait.as_deref().unwrap();
    assert_eq!(
        (wait.cause, &*wait.reference),
        (WaitCause::AwaitingChild, child.as_str())
    );
    assert!(!applied(&world.awaiter(&parent, true)), "it waits already");
}

#[test]
fn awaiting_child_ends_with_the_child_s_wait_whether_or_not_the_agent_says_so() {
    let (mut world, parent, child) = family();
    world.ask_for(&child, "r");
    world.awaiter(&parent, true);
    world.decide(Some(&child), None, Decision::Approved);
    assert_eq!(world.status(&parent), Status::Running);
    assert!(
        !applied(&world.awaiter(&parent, false)),
        "nothing is left to end"
    );

    let (mut world, parent, child) = family();
    world.ask_for(&child, "r");
    world.awaiter(&parent, true);
    world.answer(&child, Status::Failed);
    assert_eq!(world.status(&parent), Status::Running);

    let (mut world, parent, child) = family();
    world.ask_for(&child, "r");
    world.awaiter(&parent, true);
    assert!(
        applied(&world.awaiter(&parent, false)),
        "its agent goes on earlier"
    );
    assert_eq!(world.status(&parent), Status::Running);
}

#[test]
fn awaiting_child_goes_up_the_chain_and_over_several_children() {
    let (mut world, parent, child) = family();
    let (_, grandchild) = world.child(&child, "a.f");
    let (_, second) = world.child(&parent, "a.f");
    world.ask_for(&grandchild, "r");
    world.ask_for(&second, "s");
    assert!(applied(&world.awaiter(&child, true)));
    assert!(applied(&world.awaiter(&parent, true)));
    world.decide(Some(&grandchild), None, Decision::Approved);
    assert_eq!(world.status(&child), Status::Running);
    let wait = world.row(&parent).wait.clone().unwrap();
    assert_eq!(&*wait.reference, second.as_str(), "another one still waits");
    world.decide(Some(&second), None, Decision::Rejected);
    assert_eq!(world.status(&parent), Status::Running);
}

#[test]
fn awaiter_running_ends_only_a_wait_for_a_child() {
    let (mut world, parent, _) = family();
    world.ask_for(&parent, "r");
    assert!(!applied(&world.awaiter(&parent, false)));
    assert_eq!(world.status(&parent), Status::Waiting);
}

#[test]
fn a_paused_child_is_waited_for_too() {
    let (mut world, parent, child) = family();
    world.pause(&child, true);
    assert!(
        applied(&world.awaiter(&parent, true)),
        "its caller sees it as waiting"
    );
    world.pause(&child, false);
    assert_eq!(world.status(&parent), Status::Running);
}

#[test]
fn a_callback_from_awaiting_child_is_taken() {
    let (mut world, parent, child) = family();
    world.ask_for(&child, "r");
    world.awaiter(&parent, true);
    let proof = world.proof(&parent);
    assert!(matches!(
        world.call_back(proof, Status::Succeeded),
        Reply::CallbackTaken
    ));
    assert_eq!(world.status(&parent), Status::Succeeded);
}

#[test]
fn awaiting_child_comes_back_after_a_crash() {
    let (mut world, parent, child) = family();
    world.ask_for(&child, "r");
    world.awaiter(&parent, true);
    world.crash(SECOND);
    assert_eq!(world.status(&parent), Status::Waiting);
    world.decide(Some(&child), None, Decision::Approved);
    assert_eq!(world.status(&parent), Status::Running);
}

#[test]
fn a_slot_is_given_back_while_waiting_and_taken_again_over_the_cap() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        ..Limits::default()
    });
    world.register("a", "i0", "http://h:1");
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, second) = world.call(Lane::Async, "a.f");
    let (_, third) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&second), 0);
    world.ask_for(&first, "r");
    assert_eq!(world.sent(&second), 1, "the waiting one's slot is free");
    world.decide(Some(&first), None, Decision::Approved);
    assert_eq!(world.status(&first), Status::Running);
    assert!(
        world.row(&first).over_cap,
        "it returns over the cap, and that is shown"
    );
    world.answer(&second, Status::Succeeded);
    assert_eq!(
        world.sent(&third),
        0,
        "the one that returned holds the slot"
    );
    world.answer(&first, Status::Succeeded);
    assert_eq!(world.sent(&third), 1);
}
