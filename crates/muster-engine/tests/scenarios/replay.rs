//! Restart and replay: a run again, taking over what its source did; equal calls find their own
//! twins; a hit needs neither room nor a live agent.

use muster_engine::effect::{Receipt, Reply};
use muster_engine::row::{EventKind, PayloadKind, Replay};
use muster_engine::{Event, Limits};
use muster_wire::{Category, ExecutionId, Lane, ReplayMode, Status};

use crate::world::{SECOND, World};

fn world(cap: u32) -> World {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        queue_window: 4,
        ..Limits::default()
    });
    for (agent, port) in [("a", 1), ("b", 2), ("c", 3)] {
        world.register(agent, "i1", &format!("http://h:{port}"));
        world.beat(agent, "i1");
    }
    world
}

fn receipt(world: &World, waiter: muster_engine::event::Waiter) -> Box<Receipt> {
    match world.reply(waiter) {
        Reply::Accepted(receipt) => receipt,
        other => panic!("not accepted: {other:?}"),
    }
}

/// A root `a.f` that calls `b.f`, `b.f` and `c.f`, of which the last one fails.
struct Source {
    root: ExecutionId,
    steps: [ExecutionId; 3],
}

fn source(world: &mut World) -> Source {
    let (_, root) = world.call(Lane::Async, "a.f");
    world.accept(&root);
    let steps = ["b.f", "b.f", "c.f"].map(|target| {
        world.pass(SECOND);
        let (_, step) = world.child(&root, target);
        step
    });
    world.pass(SECOND);
    for (step, status) in steps
        .iter()
        .zip([Status::Succeeded, Status::Succeeded, Status::Failed])
    {
        world.answer(step, status);
    }
    let from = world.proof(&root);
    world.call_back(from, Status::Failed);
    Source { root, steps }
}

/// A restart of the whole run from its root.
fn again(world: &mut World, source: &Source, mode: ReplayMode) -> ExecutionId {
    let (waiter, new) = world.restart(&source.root, true, mode, |_| {});
    receipt(world, waiter);
    world.accept(&new);
    new
}

#[test]
fn a_restart_makes_a_new_run_with_lineage_both_ways() {
    let mut world = world(0);
    let source = source(&mut world);
    let (waiter, new) = world.restart(&source.root, true, ReplayMode::SucceededBefore, |r| {
        r.reason = Some("again".into());
    });
    let receipt = receipt(&world, waiter);
    assert_eq!(receipt.status, Status::Running);
    assert!(!receipt.replay_hit, "what is restarted runs");
    let (old, row) = (world.row(&source.root), world.row(&new));
    assert_ne!(row.run, old.run);
    assert_eq!((row.lane, row.root.clone()), (Lane::Restart, new.clone()));
    let links = row.links.as_deref().unwrap();
    assert_eq!(links.restart_of.as_ref(), Some(&source.root));
    assert_eq!(links.replay_of.as_ref(), Some(&source.root));
    let back = old.links.as_deref().unwrap();
    assert_eq!(back.restarted_as.as_ref(), Some(&new));
    assert_eq!(world.rows.runs[&row.run].source.as_ref(), Some(&old.run));
    let told = world
        .rows
        .events
        .iter()
        .find(|event| event.kind == EventKind::ExecutionRestarted)
        .unwrap();
    assert_eq!(told.execution.as_ref(), Some(&source.root));
    assert_eq!(told.text.as_deref(), Some(&*format!("{new}: again")));
    let sent = world.dispatch_of(&new).unwrap();
    assert_eq!(sent.replay.as_ref().unwrap().source, old.run, "its headers");
}

#[test]
fn a_hit_is_answered_at_once_and_never_dispatched() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let (waiter, hit) = world.child(&new, "b.f");
    let receipt = receipt(&world, waiter);
    assert_eq!(
        (receipt.status, receipt.replay_hit),
        (Status::Succeeded, true)
    );
    assert_eq!(world.sent(&hit), 0);
    let row = world.row(&hit);
    assert_eq!(row.status, Status::Succeeded);
    assert_eq!(row.replayed_from(), Some(source.steps[0].as_str()));
    assert_eq!(row.result_size, Some(2));
    assert_eq!(row.attempt, 0);
    assert_eq!(
        row.links.as_deref().unwrap().replay_of.as_ref(),
        Some(&source.steps[0])
    );
    assert!(row.ended_at.is_some());
    let copied = (hit.clone(), PayloadKind::Result);
    assert!(
        !world.rows.payloads.contains_key(&copied),
        "the result stays where it is"
    );
    let told = |kind| {
        let events = world.rows.events.iter();
        events
            .filter(|e| e.execution.as_ref() == Some(&hit) && e.kind == kind)
            .count()
    };
    assert_eq!(told(EventKind::ExecutionSucceeded), 1);
    assert_eq!(told(EventKind::ExecutionStarted), 0);
}

#[test]
fn equal_calls_get_their_own_results_and_one_too_many_is_dispatched() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    for twin in &source.steps[..2] {
        let (_, hit) = world.child(&new, "b.f");
        assert_eq!(world.row(&hit).replayed_from(), Some(twin.as_str()));
    }
    let (waiter, third) = world.child(&new, "b.f");
    assert!(!receipt(&world, waiter).replay_hit);
    assert_eq!(world.sent(&third), 1);
    assert_eq!(world.row(&third).links.as_deref().unwrap().replay_of, None);
}

#[test]
fn equal_calls_that_arrive_together_get_their_own_results() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    world.answer_loads = false;
    let (_, one) = world.child(&new, "b.f");
    let (_, other) = world.child(&new, "b.f");
    world.answer_loads = true;
    world.answer_loads();
    let from = |id| world.row(id).replayed_from().map(str::to_owned);
    let mut both = [from(&one).unwrap(), from(&other).unwrap()];
    both.sort();
    let mut steps = [source.steps[0].to_string(), source.steps[1].to_string()];
    steps.sort();
    assert_eq!(both, steps);
}

#[test]
fn a_refused_call_does_not_use_up_an_index() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::None);
    // Mode none: nothing is matched, so nothing is counted either.
    let (_, run_again) = world.child(&new, "b.f");
    assert_eq!(world.sent(&run_again), 1);
    let new = again(&mut world, &source, ReplayMode::AllSucceeded);
    world.step(Event::StoreRoom { full: true });
    for _ in 0..3 {
        let (waiter, _) = world.child(&new, "c.f");
        assert_eq!(world.refused(waiter), Category::StoreFull);
    }
    world.step(Event::StoreRoom { full: false });
    let (_, third) = world.child(&new, "c.f");
    assert_eq!(
        world
            .row(&third)
            .links
            .as_deref()
            .unwrap()
            .replay_of
            .as_ref(),
        Some(&source.steps[2]),
        "the failed one is its twin, and it runs again"
    );
    assert_eq!(world.sent(&third), 1);
}

#[test]
fn what_ended_after_the_restarted_one_was_accepted_is_not_taken_over() {
    let mut world = world(0);
    let (_, root) = world.call(Lane::Async, "a.f");
    world.accept(&root);
    let (_, early) = world.child(&root, "b.f");
    world.answer(&early, Status::Succeeded);
    let (_, late) = world.child(&root, "b.s");
    world.pass(SECOND);
    let (_, failed) = world.child(&root, "c.f");
    world.pass(SECOND);
    world.answer(&late, Status::Succeeded);
    world.answer(&failed, Status::Failed);
    let from = world.proof(&root);
    world.call_back(from, Status::Failed);
    for (mode, of_late) in [
        (ReplayMode::SucceededBefore, false),
        (ReplayMode::AllSucceeded, true),
    ] {
        let (_, new) = world.restart(&failed, true, mode, |_| {});
        world.accept(&new);
        let (_, one) = world.child(&new, "b.f");
        let (_, two) = world.child(&new, "b.s");
        let (_, three) = world.child(&new, "c.f");
        let hit = |id| world.row(id).replayed_from().is_some();
        assert_eq!(
            [hit(&one), hit(&two), hit(&three)],
            [true, of_late, false],
            "{mode}"
        );
    }
}

#[test]
fn all_succeeded_leaves_out_the_restarted_one_and_what_called_it() {
    let mut world = world(0);
    let (_, root) = world.call(Lane::Async, "a.f");
    world.accept(&root);
    let (_, middle) = world.child(&root, "b.f");
    world.accept(&middle);
    let (_, inner) = world.child(&middle, "c.f");
    let (_, beside) = world.child(&middle, "c.s");
    for id in [&inner, &beside] {
        world.answer(id, Status::Succeeded);
    }
    for id in [&middle, &root] {
        let from = world.proof(id);
        world.call_back(from, Status::Succeeded);
    }
    let (_, new) = world.restart(&inner, true, ReplayMode::AllSucceeded, |_| {});
    world.accept(&new);
    let (_, middle_again) = world.child(&new, "b.f");
    assert_eq!(world.sent(&middle_again), 1, "it called the restarted one");
    world.accept(&middle_again);
    let (_, inner_again) = world.child(&middle_again, "c.f");
    let (_, beside_again) = world.child(&middle_again, "c.s");
    assert_eq!(world.sent(&inner_again), 1);
    assert_eq!(
        world.row(&beside_again).replayed_from(),
        Some(beside.as_str())
    );
}

#[test]
fn a_restart_of_a_restart_names_what_really_ran() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let (_, hit) = world.child(&new, "b.f");
    let from = world.proof(&new);
    world.call_back(from, Status::Failed);
    let (_, third) = world.restart(&new, true, ReplayMode::SucceededBefore, |_| {});
    world.accept(&third);
    let (_, hit_again) = world.child(&third, "b.f");
    let row = world.row(&hit_again);
    assert_eq!(row.replayed_from(), Some(source.steps[0].as_str()));
    assert_eq!(row.links.as_deref().unwrap().replay_of.as_ref(), Some(&hit));
}

#[test]
fn one_execution_alone_is_a_new_root_with_its_own_calls_taken_over() {
    let mut world = world(0);
    let (_, root) = world.call(Lane::Async, "a.f");
    world.accept(&root);
    let (_, middle) = world.child(&root, "b.f");
    world.accept(&middle);
    let (_, inner) = world.child(&middle, "c.f");
    world.answer(&inner, Status::Succeeded);
    for id in [&middle, &root] {
        let from = world.proof(id);
        world.call_back(from, Status::Failed);
    }
    let (_, new) = world.restart(&middle, false, ReplayMode::SucceededBefore, |_| {});
    assert_eq!(world.row(&new).parent, None);
    world.accept(&new);
    let (_, hit) = world.child(&new, "c.f");
    assert_eq!(world.row(&hit).replayed_from(), Some(inner.as_str()));
}

#[test]
fn an_open_run_is_restarted_only_as_a_fork() {
    let mut world = world(0);
    let (_, root) = world.call(Lane::Async, "a.f");
    world.accept(&root);
    let (waiter, new) = world.restart(&root, true, ReplayMode::SucceededBefore, |_| {});
    assert_eq!(world.refused(waiter), Category::Conflict);
    assert!(!world.rows.executions.contains_key(&new));
    let (_, fork) = world.restart(&root, true, ReplayMode::SucceededBefore, |r| r.fork = true);
    assert_eq!(world.status(&fork), Status::Running);
    // Its end keeps the link that was made while it was open.
    let from = world.proof(&root);
    world.call_back(from, Status::Succeeded);
    let links = world.row(&root).links.as_deref().unwrap();
    assert_eq!(links.restarted_as.as_ref(), Some(&fork));
}

#[test]
fn a_run_that_only_waits_in_the_store_is_open_too() {
    let mut world = world(1);
    let (_, first) = world.call(Lane::Async, "a.f");
    let mut last = None;
    for _ in 0..8 {
        last = Some(world.call(Lane::Async, "a.f").1);
    }
    let last = last.unwrap();
    assert_eq!(world.status(&first), Status::Running);
    assert_eq!(world.status(&last), Status::Queued);
    let (waiter, _) = world.restart(&last, true, ReplayMode::SucceededBefore, |_| {});
    assert_eq!(world.refused(waiter), Category::Conflict);
}

#[test]
fn a_hit_needs_no_room_no_live_agent_and_no_plane_that_takes_new_work() {
    let mut world = world(1);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let (_, holder) = world.call(Lane::Async, "b.s");
    assert_eq!(world.status(&holder), Status::Running);
    let (_, hit) = world.child(&new, "b.f");
    assert_eq!(
        world.status(&hit),
        Status::Succeeded,
        "at a saturated agent"
    );
    world.goodbye("b");
    let (waiter, _) = world.call(Lane::Async, "b.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    world.step(Event::StoreRoom { full: true });
    let (_, hit) = world.child(&new, "b.f");
    assert_eq!(
        world.status(&hit),
        Status::Succeeded,
        "at a dead agent, on a full disk"
    );
}

#[test]
fn a_cancelled_run_takes_no_hits() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let run = world.row(&new).run.clone();
    world.cancel_tree(&run);
    let (waiter, _) = world.child(&new, "b.f");
    assert_eq!(world.refused(waiter), Category::RunCancelled);
}

#[test]
fn a_sync_caller_is_answered_with_the_hit() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let mut submission = world.submission(Lane::Sync, "b.f");
    submission.parent = Some(world.proof(&new));
    let (waiter, id) = world.submit(submission);
    match world.reply(waiter) {
        Reply::Ended(view) => {
            assert_eq!(view.row.id, id);
            assert_eq!(view.row.status, Status::Succeeded);
            assert!(view.result.is_none(), "it is read where it is");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_crash_the_equal_calls_are_counted_from_the_store() {
    let mut world = world(0);
    let source = source(&mut world);
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    world.child(&new, "b.f");
    world.crash(SECOND);
    let (_, second) = world.child(&new, "b.f");
    assert_eq!(
        world.row(&second).replayed_from(),
        Some(source.steps[1].as_str())
    );
    let (_, third) = world.child(&new, "b.f");
    assert_eq!(world.row(&third).replayed_from(), None);
}

#[test]
fn a_result_that_is_gone_is_made_again() {
    let mut world = world(0);
    let source = source(&mut world);
    world
        .rows
        .payloads
        .remove(&(source.steps[0].clone(), PayloadKind::Result));
    let new = again(&mut world, &source, ReplayMode::SucceededBefore);
    let (_, again) = world.child(&new, "b.f");
    assert_eq!(world.sent(&again), 1);
}

#[test]
fn headers_alone_find_calls_of_the_source_run_one_after_the_other() {
    let mut world = world(0);
    let source = source(&mut world);
    let replay = Replay {
        source: world.row(&source.root).run.clone(),
        mode: ReplayMode::AllSucceeded,
        before: None,
    };
    let run = world.submission(Lane::Async, "a.f").run;
    for twin in &source.steps[..2] {
        let mut submission = world.submission(Lane::Async, "b.f");
        submission.run = run.clone();
        submission.run_claimed = true;
        submission.replay = Some(Box::new(replay.clone()));
        let (_, id) = world.submit(submission);
        assert_eq!(world.row(&id).replayed_from(), Some(twin.as_str()));
    }
    let mut root = world.submission(Lane::Async, "a.f");
    root.replay = Some(Box::new(replay));
    let (_, root) = world.submit(root);
    assert_eq!(world.sent(&root), 1, "only calls are taken over, not roots");
}

#[test]
fn the_same_key_joins_the_same_restart_and_no_other() {
    let mut world = world(0);
    let source = source(&mut world);
    let keyed = |world: &mut World, mode| {
        let row = world.row(&source.root).clone();
        let mut submission = world.submission(Lane::Restart, "a.f");
        submission.idempotency_key = Some("owner\0k".into());
        submission.replay = Some(Box::new(Replay {
            source: row.run.clone(),
            mode,
            before: None,
        }));
        submission.restart = Some(Box::new(muster_engine::event::Restart {
            of: row.id.clone(),
            named: row.id,
            source: row.run,
            fork: true,
            reason: None,
        }));
        world.submit(submission)
    };
    let (first, id) = keyed(&mut world, ReplayMode::None);
    assert!(!receipt(&world, first).replayed);
    let (second, _) = keyed(&mut world, ReplayMode::None);
    let joined = receipt(&world, second);
    assert!(joined.replayed);
    assert_eq!(joined.execution, id);
    let (other, _) = keyed(&mut world, ReplayMode::AllSucceeded);
    assert_eq!(world.refused(other), Category::IdempotencyConflict);
    let mut call = world.submission(Lane::Async, "a.f");
    call.idempotency_key = Some("owner\0k".into());
    let (call, _) = world.submit(call);
    assert_eq!(
        world.refused(call),
        Category::IdempotencyConflict,
        "a call is no restart"
    );
}

#[test]
fn a_restart_queues_and_is_refused_like_any_call() {
    let mut world = world(1);
    let source = source(&mut world);
    let (_, holder) = world.call(Lane::Async, "a.s");
    let (waiter, new) = world.restart(&source.root, true, ReplayMode::SucceededBefore, |_| {});
    let queued = receipt(&world, waiter);
    assert_eq!(queued.status, Status::Queued);
    assert_eq!(queued.position.unwrap().ahead, 0);
    world.answer(&holder, Status::Succeeded);
    assert_eq!(world.sent(&new), 1);
    assert!(world.dispatch_of(&new).unwrap().replay.is_some());
    let from = world.proof(&new);
    world.call_back(from, Status::Failed);
    world.goodbye("a");
    let (waiter, refused) = world.restart(&source.root, true, ReplayMode::SucceededBefore, |_| {});
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    assert!(!world.rows.executions.contains_key(&refused));
    let back = world.row(&source.root).links.as_deref().unwrap();
    assert_eq!(
        back.restarted_as.as_ref(),
        Some(&new),
        "a refusal leaves no link"
    );
}
