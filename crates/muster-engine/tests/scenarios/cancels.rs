//! Cancel of one and of a tree: final at once in the record, the agent told after.

use muster_engine::event::{Cancel, CancelReceipt};
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits, Reply};
use muster_wire::{ExecutionId, Lane, RunId, Status};

use crate::world::{SECOND, World};

fn world(cap: u32) -> World {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        queue_window: 4,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

#[test]
fn a_cancel_is_final_before_the_agent_is_told_and_its_late_word_is_kept() {
    let mut world = world(0);
    let (held, id) = world.call(Lane::Sync, "a.f");
    world.accept(&id);
    let proof = world.proof(&id);
    assert!(matches!(
        world.cancel(&id),
        Reply::Cancelled { told: 1, .. }
    ));
    assert!(
        matches!(world.reply(held), Reply::Ended(view) if view.row.status == Status::Cancelled)
    );
    assert_eq!(world.told.len(), 1);
    assert!(matches!(
        world.call_back(proof.clone(), Status::Cancelled),
        Reply::CallbackRepeated
    ));
    assert!(matches!(
        world.call_back(proof, Status::Succeeded),
        Reply::CallbackLate { .. }
    ));
    assert_eq!(world.status(&id), Status::Cancelled);
    let attempt = world.attempt(&id);
    world.step(Event::CancelTold {
        attempt,
        receipt: CancelReceipt::Stopped,
    });
    let receipt = world.rows.events.last().unwrap();
    assert_eq!(receipt.kind, EventKind::ExecutionCancelReceipt);
    assert_eq!(receipt.reason.as_deref(), Some("stopped"));
}

#[test]
fn a_cancel_of_what_ended_or_never_was_says_so() {
    let mut world = world(0);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.answer(&id, Status::Succeeded);
    assert!(matches!(
        world.cancel(&id),
        Reply::AlreadyEnded {
            status: Status::Succeeded
        }
    ));
    world.crash(SECOND);
    assert!(matches!(
        world.cancel(&id),
        Reply::AlreadyEnded {
            status: Status::Succeeded
        }
    ));
    assert!(matches!(
        world.cancel(&ExecutionId::trusted("nobody")),
        Reply::UnknownExecution
    ));
    assert!(matches!(
        world.cancel_tree(&RunId::trusted("nothing")),
        Reply::UnknownRun
    ));
}

#[test]
fn a_queued_one_is_cancelled_in_the_window_and_behind_it() {
    let mut world = world(1);
    let ids: Vec<_> = (0..12).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in [&ids[1], &ids[11]] {
        assert!(matches!(world.cancel(id), Reply::Cancelled { told: 0, .. }));
        assert_eq!(world.status(id), Status::Cancelled);
    }
    for id in &ids {
        if world.sent(id) == 1 {
            world.answer(id, Status::Succeeded);
        }
    }
    let ended = ids
        .iter()
        .filter(|id| world.status(id) == Status::Succeeded)
        .count();
    assert_eq!(ended, 10);
    assert_eq!(world.sent(&ids[11]), 0);
}

#[test]
fn a_tree_ends_whole_queued_members_too_and_nothing_joins_it_later() {
    let mut world = world(2);
    world.register("b", "i1", "http://h:2");
    let mut root = world.submission(Lane::Async, "b.f");
    root.run = RunId::trusted("tree");
    root.run_claimed = true;
    let (_, root) = world.submit(root);
    let children: Vec<_> = (0..40).map(|_| world.child(&root, "a.f").1).collect();
    let (_, stranger) = world.call(Lane::Async, "a.f");
    let Reply::Cancelled { ended, told } = world.cancel_tree(&RunId::trusted("tree")) else {
        panic!()
    };
    assert_eq!((ended.len(), told), (41, 3));
    for id in children.iter().chain([&root]) {
        assert_eq!(world.status(id), Status::Cancelled);
    }
    assert_eq!(world.sent(&stranger), 1, "the slots are free for others");
    assert!(
        matches!(world.cancel_tree(&RunId::trusted("tree")), Reply::Cancelled { ended, .. } if ended.is_empty())
    );
}

#[test]
fn a_tree_whose_members_are_being_queued_meanwhile_loses_none() {
    let mut world = world(1);
    let mut first = world.submission(Lane::Async, "a.f");
    first.run = RunId::trusted("tree");
    first.run_claimed = true;
    let (_, first) = world.submit(first);
    world.answer_loads = false;
    let waiter = world.waiter();
    world.step(Event::TreeCancelRequested(Box::new(
        muster_engine::event::TreeCancel {
            waiter,
            run: RunId::trusted("tree"),
            by: "ci".into(),
            reason: None,
            known: None,
        },
    )));
    // The read is still under way when more members are queued.
    let late: Vec<_> = (0..9).map(|_| world.child(&first, "a.f").1).collect();
    world.answer_loads = true;
    world.answer_loads();
    for id in late.iter().chain([&first]) {
        assert_eq!(world.status(id), Status::Cancelled, "{id}");
    }
}

#[test]
fn a_call_that_is_cancelled_in_the_batch_that_would_send_it_never_goes_out() {
    let mut world = world(0);
    let submission = world.submission(Lane::Async, "a.f");
    let id = submission.execution.clone();
    let waiter = world.waiter();
    world.step_together(vec![
        Event::Submitted(Box::new(submission)),
        Event::CancelRequested(Box::new(Cancel {
            waiter,
            execution: id.clone(),
            by: "somebody".into(),
            reason: None,
            known: None,
        })),
    ]);
    assert_eq!(world.status(&id), Status::Cancelled);
    assert_eq!(world.sent(&id), 0, "disowned work reaches nobody");
    assert!(world.told.is_empty(), "and nobody is told of its end");
    assert!(matches!(
        world.reply(waiter),
        Reply::Cancelled { told: 0, .. }
    ));
}
