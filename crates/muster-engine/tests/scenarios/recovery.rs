//! Crashes and shutdowns of the plane: what was acknowledged is there, and ends once.

use std::time::Duration;

use muster_engine::row::AttemptOutcome;
use muster_engine::{Event, Limits, Reply};
use muster_wire::{Category, Lane, Status};

use crate::world::{SECOND, World};

fn world() -> World {
    let mut world = World::new(Limits::default());
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

#[test]
fn an_accepted_one_goes_on_over_a_crash_and_its_callback_is_taken() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    let proof = world.proof(&id);
    world.crash(SECOND * 600);
    for _ in 0..100 {
        world.beat("a", "i1");
        world.pass(SECOND * 2);
    }
    assert_eq!(world.status(&id), Status::Running);
    assert!(matches!(
        world.call_back(proof, Status::Succeeded),
        Reply::CallbackTaken
    ));
}

#[test]
fn one_sent_without_a_sign_is_given_a_grace_and_is_never_sent_twice() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let (_, signs) = world.call(Lane::Async, "a.f");
    let (_, again) = world.call(Lane::Async, "a.i");
    world.crash(SECOND);
    let from = world.proof(&signs);
    world.step(Event::Signed { from });
    for _ in 0..31 {
        world.beat("a", "i1");
        world.pass(SECOND * 2);
    }
    assert_eq!(
        (world.status(&id), world.category(&id)),
        (Status::Failed, Some(Category::OutcomeUnknown))
    );
    assert_eq!(
        world.rows.attempts[&(id.clone(), 1)].outcome,
        Some(AttemptOutcome::Unknown)
    );
    assert_eq!(world.sent(&id), 1);
    assert_eq!(
        world.status(&signs),
        Status::Running,
        "a later sign is as good as a 202"
    );
    assert_eq!(world.sent(&again), 2, "an idempotent one runs again");
}

#[test]
fn a_skills_answer_died_with_the_connection_and_its_event_settles_it() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.s");
    let about = world.proof(&id);
    world.crash(SECOND);
    world.step(Event::Reported(Box::new(muster_engine::event::Report {
        about,
        parent: None,
        run: None,
        agent: muster_wire::AgentId::trusted("a"),
        function: muster_wire::FunctionName::trusted("s"),
        outcome: Box::new(World::outcome(Status::Succeeded)),
        input: None,
        session: None,
    })));
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn one_that_was_never_sent_waits_on_after_a_crash() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    world.crash(SECOND * 30);
    assert_eq!(world.status(&id), Status::Running);
    world.register("a", "i2", "http://h:1");
    while world.dialled("a", true) {}
    assert_eq!(world.sent(&id), 2);
    assert_eq!(world.attempt(&id).n, 2);
}

#[test]
fn queued_work_goes_on_after_a_crash() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 2,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    let ids: Vec<_> = (0..10).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &ids[..2] {
        world.accept(id);
    }
    world.crash(SECOND);
    world.beat("a", "i1");
    for id in &ids {
        assert_eq!(world.sent(id), 1);
        let proof = world.proof(id);
        world.call_back(proof, Status::Succeeded);
    }
}

#[test]
fn an_outage_of_ours_times_nobody_out() {
    let mut world = world();
    let mut submission = world.submission(Lane::Async, "a.f");
    submission.deadline = Some(SECOND * 100);
    let (_, id) = world.submit(submission);
    world.accept(&id);
    world.crash(SECOND * 1_000);
    assert_eq!(world.status(&id), Status::Running);
    for _ in 0..60 {
        world.beat("a", "i1");
        world.pass(SECOND * 2);
    }
    assert_eq!(world.status(&id), Status::Timeout);
}

#[test]
fn after_a_start_only_silence_is_forgiven() {
    let mut world = world();
    world.register("b", "i1", "http://h:2");
    world.beat("b", "i1");
    world.goodbye("b");
    world.crash(SECOND * 600);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1);
    let (waiter, _) = world.call(Lane::Async, "b.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
}

#[test]
fn at_the_end_of_a_shutdown_everybody_who_is_held_is_answered() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 3,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    let (sent, sent_id) = world.call(Lane::Sync, "a.f");
    let (skill, skill_id) = world.call(Lane::Sync, "a.s");
    let (absorbed, absorbed_id) = world.call(Lane::Sync, "a.f");
    world.refuse_dial(&absorbed_id);
    let (placed, _) = world.call(Lane::Sync, "a.f");
    world.step(Event::Draining);
    let proof = world.proof(&sent_id);
    world.step(Event::DrainEnded);
    assert!(matches!(
        world.reply(sent),
        Reply::StillRunning { shutdown: true, .. }
    ));
    assert!(matches!(world.reply(skill), Reply::Ended(_)));
    assert_eq!(world.category(&skill_id), Some(Category::OutcomeUnknown));
    assert!(matches!(world.reply(absorbed), Reply::Ended(_)));
    assert_eq!(
        world.category(&absorbed_id),
        Some(Category::ControlPlaneShutdown)
    );
    assert_eq!(world.refused(placed), Category::ControlPlaneShutdown);
    assert!(
        matches!(
            world.call_back(proof, Status::Succeeded),
            Reply::CallbackTaken
        ),
        "callbacks to the end"
    );
}

#[test]
fn after_the_last_moment_of_a_shutdown_nothing_is_sent_and_nobody_is_held() {
    let mut world = world();
    let (_, waits) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&waits);
    let mut keyed = world.submission(Lane::Sync, "a.s");
    keyed.idempotency_key = Some("owner\0k".into());
    let (first, id) = world.submit(keyed.clone());
    world.step(Event::Draining);
    world.step(Event::DrainEnded);
    assert!(world.is_answered(first));
    // The agent comes back just now, and the same call is made once more.
    world.register("a", "i2", "http://h:1");
    while world.dialled("a", true) {}
    assert_eq!(world.sent(&waits), 1, "it would be sent into the end");
    keyed.waiter = world.waiter();
    let (again, _) = world.submit(keyed);
    assert!(world.is_answered(again), "{id}");
    world.crash(SECOND);
    world.beat("a", "i2");
    while world.dialled("a", true) {}
    assert_eq!(world.sent(&waits), 2, "it goes on after the start");
}

/// The wall clock is set back or forward while the plane is down: what was left is left.
#[test]
fn a_step_of_the_wall_clock_between_two_starts_decides_nothing() {
    for step in [-86_400, -3_600, 3_600, 86_400] {
        let limits = Limits {
            deadline: Duration::from_secs(1_000),
            queue_timeout: Some(Duration::from_secs(500)),
            max_concurrent_per_agent: 2,
            ..Limits::default()
        };
        let mut world = World::new(limits);
        world.register("a", "i1", "http://h:1");
        world.register("b", "b1", "http://h:2");
        world.beat("a", "i1");
        world.beat("b", "b1");
        let (_, active) = world.call(Lane::Async, "a.f");
        let (_, orphan) = world.call(Lane::Async, "b.f");
        let (_, other) = world.call(Lane::Async, "a.f");
        let (_, queued) = world.call(Lane::Async, "a.f");
        for id in [&active, &orphan, &other] {
            world.accept(id);
        }
        assert_eq!(world.status(&queued), Status::Queued);
        world.goodbye("b");
        world.pass(Duration::from_secs(30));
        // Something is told at this moment, so that the plane knows how late it was.
        world.register("a", "i1", "http://h:1");
        world.now = muster_wire::Timestamp(world.now.0 + step * 1_000_000);
        world.crash(Duration::ZERO);
        let steady = |world: &mut World, seconds: u64| {
            for _ in 0..seconds / 10 {
                world.beat("a", "i1");
                world.pass(Duration::from_secs(10));
            }
        };
        steady(&mut world, 20);
        assert_eq!(world.status(&orphan), Status::Running, "step {step}");
        steady(&mut world, 20);
        assert_eq!(
            world.category(&orphan),
            Some(Category::AgentRestartOrphaned),
            "step {step}"
        );
        steady(&mut world, 400);
        assert_eq!(world.status(&queued), Status::Queued, "step {step}");
        steady(&mut world, 60);
        assert_eq!(world.status(&queued), Status::Timeout, "step {step}");
        steady(&mut world, 440);
        assert_eq!(world.status(&active), Status::Running, "step {step}");
        steady(&mut world, 60);
        assert_eq!(world.status(&active), Status::Timeout, "step {step}");
    }
}
