//! Pauses: execution.md's rows about pause and resume, of one execution and of a run.

use std::time::Duration;

use muster_engine::Limits;
use muster_engine::effect::Reply;
use muster_wire::{Category, Lane, Status};

use crate::world::{SECOND, World};

fn capped(cap: u32) -> World {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        ..Limits::default()
    });
    world.register("a", "i0", "http://h:1");
    world
}

fn is_conflict(reply: &Reply) -> bool {
    matches!(reply, Reply::Conflict { .. })
}

#[test]
fn queued_pause_leaves_the_queue_and_resume_gives_the_old_place_back() {
    let mut world = capped(1);
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, second) = world.call(Lane::Async, "a.f");
    let (_, third) = world.call(Lane::Async, "a.f");
    assert!(matches!(
        world.pause(&second, true),
        Reply::Moved {
            status: Status::Paused,
            ..
        }
    ));
    let place = world.row(&second).queue;
    world.answer(&first, Status::Succeeded);
    assert_eq!(world.sent(&third), 1, "the next one goes");
    let (_, fourth) = world.call(Lane::Async, "a.f");
    assert!(matches!(
        world.pause(&second, false),
        Reply::Moved {
            status: Status::Queued,
            ..
        }
    ));
    assert_eq!(world.row(&second).queue, place);
    world.answer(&third, Status::Succeeded);
    assert_eq!((world.sent(&second), world.sent(&fourth)), (1, 0));
}

#[test]
fn paused_of_a_paused_is_the_same_again_and_resume_of_another_is_a_conflict() {
    let mut world = capped(0);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert!(is_conflict(&world.pause(&id, false)));
    world.pause(&id, true);
    let Reply::Moved { executions, status } = world.pause(&id, true) else {
        panic!("the same wish again");
    };
    assert_eq!((executions.len(), status), (0, Status::Paused));
    world.pause(&id, false);
    world.answer(&id, Status::Succeeded);
    assert!(matches!(world.pause(&id, true), Reply::AlreadyEnded { .. }));
    let unknown = muster_wire::ExecutionId::trusted("exec_none");
    assert!(matches!(
        world.pause(&unknown, true),
        Reply::UnknownExecution
    ));
}

#[test]
fn running_pause_keeps_the_slot_stops_the_clock_and_takes_the_outcome() {
    let mut world = capped(1);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.pass(10 * SECOND);
    world.pause(&id, true);
    assert_eq!(world.row(&id).active_us, 10_000_000);
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(
        world.sent(&next),
        0,
        "a paused dispatched one keeps its slot"
    );
    world.pass(Duration::from_secs(4 * 3600));
    assert_eq!(
        world.status(&id),
        Status::Paused,
        "its deadline does not come"
    );
    let proof = world.proof(&id);
    assert!(matches!(
        world.call_back(proof, Status::Failed),
        Reply::CallbackTaken
    ));
    assert_eq!(world.status(&id), Status::Failed);
    assert_eq!(world.row(&id).active_us, 10_000_000);
    assert_eq!(world.sent(&next), 1);
}

#[test]
fn running_pause_and_resume_count_active_time_only() {
    let mut world = capped(0);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.pass(Duration::from_secs(3 * 3600 - 5));
    world.pause(&id, true);
    world.pass(Duration::from_secs(3600));
    world.pause(&id, false);
    assert_eq!(world.status(&id), Status::Running);
    world.pass(4 * SECOND);
    assert_eq!(world.status(&id), Status::Running);
    world.pass(2 * SECOND);
    assert_eq!(world.status(&id), Status::Timeout);
}

#[test]
fn absorbed_pause_wins_over_the_return_of_the_agent_and_the_wait_begins_anew() {
    let mut world = capped(0);
    world.beat("a", "i0");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("awaiting_agent_restart")
    );
    world.pass(10 * SECOND);
    world.pause(&id, true);
    world.pass(Duration::from_secs(600));
    world.register("a", "i1", "http://h:2");
    world.beat("a", "i1");
    while world.dialled("a", true) {}
    assert_eq!((world.sent(&id), world.status(&id)), (1, Status::Paused));
    world.pause(&id, false);
    while world.dialled("a", true) {}
    assert_eq!((world.sent(&id), world.status(&id)), (2, Status::Running));
    world.answer(&id, Status::Succeeded);
}

#[test]
fn resumed_absorbed_call_fails_at_once_when_its_agent_is_down_by_now() {
    let mut world = capped(0);
    world.beat("a", "i0");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    world.pause(&id, true);
    world.goodbye("a");
    assert_eq!(
        world.status(&id),
        Status::Paused,
        "nobody ends what is paused"
    );
    world.pause(&id, false);
    assert_eq!(world.category(&id), Some(Category::AgentUnreachable));
}

#[test]
fn a_dial_that_fails_while_paused_is_not_tried_again_before_the_resume() {
    let mut world = capped(0);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pause(&id, true);
    world.refuse_dial(&id);
    world.beat("a", "i0");
    while world.dialled("a", true) {}
    world.pass(60 * SECOND);
    assert_eq!((world.sent(&id), world.status(&id)), (1, Status::Paused));
    world.register("a", "i0", "http://h:1");
    world.pause(&id, false);
    while world.dialled("a", true) {}
    assert_eq!(world.sent(&id), 2);
}

#[test]
fn cancel_of_a_paused_one_is_final_whatever_it_was() {
    let mut world = capped(1);
    let (_, running) = world.call(Lane::Async, "a.f");
    let (_, queued) = world.call(Lane::Async, "a.f");
    for id in [&running, &queued] {
        world.pause(id, true);
    }
    for id in [&running, &queued] {
        assert!(matches!(world.cancel(id), Reply::Cancelled { .. }));
        assert_eq!(world.status(id), Status::Cancelled);
    }
    assert_eq!(world.sent(&queued), 0);
}

#[test]
fn an_instance_that_is_gone_ends_what_is_paused_there() {
    let mut world = capped(0);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.pause(&id, true);
    world.goodbye("a");
    world.pass(Duration::from_secs(120));
    assert_eq!(world.category(&id), Some(Category::AgentRestartOrphaned));
}

#[test]
fn observed_executions_are_paused_by_their_caller_alone() {
    let mut world = capped(0);
    let (_, caller) = world.call(Lane::Async, "a.f");
    world.accept(&caller);
    let inside = muster_wire::ExecutionId::trusted("exec_inside");
    let parent = world.proof(&caller);
    world.step(muster_engine::Event::Reported(Box::new(
        muster_engine::event::Report {
            about: muster_wire::AttemptRef {
                execution: inside.clone(),
                proof: None,
            },
            parent: Some(parent),
            run: None,
            agent: muster_wire::AgentId::trusted("a"),
            function: muster_wire::FunctionName::trusted("f"),
            outcome: Box::new(World::outcome(Status::Running)),
            input: None,
            session: None,
        },
    )));
    let Reply::Conflict { message, .. } = world.pause(&inside, true) else {
        panic!("it runs in its caller's process");
    };
    assert!(message.contains(caller.as_str()), "{message}");
}

#[test]
fn a_paused_run_admits_what_joins_it_as_paused_on_every_lane() {
    let mut world = capped(0);
    let (_, root) = world.call(Lane::Async, "a.f");
    let run = world.row(&root).run.clone();
    assert!(matches!(world.pause_tree(&run, true), Reply::Moved { .. }));
    let (_, child) = world.child(&root, "a.f");
    assert_eq!(
        (world.status(&child), world.sent(&child)),
        (Status::Paused, 0)
    );
    let mut held = world.submission(Lane::Sync, "a.f");
    held.run = run.clone();
    held.run_claimed = true;
    let (waiter, sync) = world.submit(held);
    assert_eq!(world.status(&sync), Status::Paused);
    assert!(!world.is_answered(waiter));
    world.pass(Duration::from_secs(91));
    assert!(matches!(world.reply(waiter), Reply::StillRunning { .. }));
    let Reply::Moved { executions, .. } = world.pause_tree(&run, false) else {
        panic!("it is paused");
    };
    assert_eq!(executions.len(), 3);
    assert_eq!((world.sent(&child), world.sent(&sync)), (1, 1));
    let (_, later) = world.child(&root, "a.f");
    assert_eq!(world.status(&later), Status::Running);
    assert!(is_conflict(&world.pause_tree(&run, false)));
}

#[test]
fn a_pause_of_a_run_reaches_members_that_are_only_in_the_store() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        queue_window: 2,
        ..Limits::default()
    });
    world.register("a", "i0", "http://h:1");
    let (_, root) = world.call(Lane::Async, "a.f");
    let run = world.row(&root).run.clone();
    let mut members = vec![root.clone()];
    for _ in 0..12 {
        let mut call = world.submission(Lane::Async, "a.f");
        call.run = run.clone();
        call.run_claimed = true;
        members.push(world.submit(call).1);
    }
    world.pause_tree(&run, true);
    assert!(members.iter().all(|id| world.status(id) == Status::Paused));
    world.crash(SECOND);
    world.answer(&root, Status::Succeeded);
    world.pass(SECOND);
    assert!(members[1..].iter().all(|id| world.sent(id) == 0));
    world.pause_tree(&run, false);
    for id in &members[1..] {
        assert_eq!(world.sent(id), 1, "they start in their order");
        world.answer(id, Status::Succeeded);
    }
}

#[test]
fn every_paused_state_comes_back_after_a_crash() {
    let mut world = capped(1);
    world.register("b", "i0", "http://b:1");
    world.beat("b", "i0");
    let (_, running) = world.call(Lane::Async, "a.f");
    world.accept(&running);
    let (_, queued) = world.call(Lane::Async, "a.f");
    let (_, absorbed) = world.call(Lane::Async, "b.f");
    world.refuse_dial(&absorbed);
    for id in [&running, &queued, &absorbed] {
        world.pause(id, true);
    }
    world.crash(Duration::from_secs(3600));
    world.pass(Duration::from_secs(3600));
    for id in [&running, &queued, &absorbed] {
        assert_eq!(world.status(id), Status::Paused);
        world.pause(id, false);
    }
    assert_eq!(world.status(&running), Status::Running);
    assert_eq!(world.status(&queued), Status::Queued);
    world.register("b", "i1", "http://b:2");
    while world.dialled("b", true) {}
    assert_eq!(world.sent(&absorbed), 2);
    let proof = world.proof(&running);
    world.call_back(proof, Status::Succeeded);
    world.register("a", "i0", "http://h:1");
    assert_eq!(world.sent(&queued), 1);
}

#[test]
fn paused_before_a_byte_left_it_is_taken_back_and_sent_after_the_resume() {
    let mut world = capped(1);
    world.beat("a", "i0");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pause(&id, true);
    assert_eq!(world.wanted_back, [world.attempt(&id)]);
    world.taken_back(&id);
    assert_eq!(world.status(&id), Status::Paused);
    world.pass(600 * SECOND);
    world.beat("a", "i0");
    assert_eq!((world.status(&id), world.sent(&id)), (Status::Paused, 1));
    world.pause(&id, false);
    assert_eq!(
        world.sent(&id),
        2,
        "its instance is not blamed for a dial that nobody made"
    );
    world.answer(&id, Status::Succeeded);
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn resumed_before_it_was_taken_back_it_goes_out_again_at_once() {
    let mut world = capped(1);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pause(&id, true);
    world.pause(&id, false);
    world.taken_back(&id);
    assert_eq!((world.status(&id), world.sent(&id)), (Status::Running, 2));
    // What had been sent is never taken back.
    let (_, other) = world.call(Lane::Async, "a.f");
    world.answer(&id, Status::Succeeded);
    world.accept(&other);
    world.pause(&other, true);
    world.taken_back(&other);
    assert_eq!(
        (world.status(&other), world.sent(&other)),
        (Status::Paused, 1)
    );
}
