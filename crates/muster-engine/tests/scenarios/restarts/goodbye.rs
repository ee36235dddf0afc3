//! Goodbyes: with and without a supervisor, in a drain, in a rolling update.

use std::time::Duration;

use muster_engine::event::WorkerChange;
use muster_engine::{Event, Limits, Reply, Send};
use muster_wire::{Category, Lane, Status};

use super::{beating, world};
use crate::world::{SECOND, World};

#[test]
fn after_a_goodbye_without_a_supervisor_calls_are_refused_and_waits_end() {
    let mut world = world();
    let waiting: Vec<_> = (0..50).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.goodbye("a");
    for id in &waiting {
        assert_eq!(
            (world.status(id), world.category(id)),
            (Status::Failed, Some(Category::AgentUnreachable))
        );
    }
    let (waiter, _) = world.call(Lane::Async, "a.f");
    let Reply::Refused(refusal) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!(
        (refusal.category(), refusal.retry_after()),
        (Category::NodeUnavailable, Some(1))
    );
    assert!(
        refusal.message().contains("goodbye"),
        "{}",
        refusal.message()
    );
}

#[test]
fn beats_and_registrations_of_a_drain_do_not_undo_a_goodbye() {
    let mut world = world();
    world.goodbye("a");
    world.beat("a", "i1");
    world.register_as("a", "i1", "http://h:1", |r| r.starting = false);
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    world.register("a", "i1", "http://h:1");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1, "starting does");
}

#[test]
fn a_goodbye_under_a_supervisor_is_absorbed_and_its_exit_ends_what_it_had() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: WorkerChange::WillRestart,
    });
    world.goodbye("a");
    let (_, waits) = world.call(Lane::Async, "a.f");
    assert_eq!(
        (world.status(&waits), world.sent(&waits)),
        (Status::Running, 0)
    );
    assert_eq!(world.status(&taken), Status::Running, "it drains");
    let exited = WorkerChange::ExitedWillRestart("exit 0".into());
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: exited,
    });
    assert_eq!(world.category(&taken), Some(Category::AgentRestartOrphaned));
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: WorkerChange::Started,
    });
    world.pass(SECOND);
    world.register_as("a", "i2", "http://h:1", |r| r.worker = Some("w".into()));
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&waits), 1);
    assert_eq!(
        world.dispatch_of(&waits).unwrap().to.instance.as_str(),
        "i2"
    );
}

#[test]
fn a_goodbye_belongs_to_the_only_one_that_still_beats() {
    let mut world = world();
    beating(&mut world, "a", "i1", Duration::from_secs(6));
    // It dies without a word and comes back elsewhere.
    world.pass(Duration::from_secs(4));
    world.register("a", "i2", "http://h:2");
    world.beat("a", "i2");
    let waiting: Vec<_> = (0..5).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
        if world.status(id) == Status::Running && world.row(id).status_reason.is_none() {
            world.refuse_dial(id);
        }
    }
    world.goodbye("a");
    let probe = world.sends.iter().rev().find_map(|send| match send {
        Send::Probe { key, .. } => Some(key.clone()),
        _ => None,
    });
    let key = probe.expect("the silent one is asked at once");
    assert_eq!(key.instance.as_str(), "i1");
    let seen = muster_engine::event::Probe::Refused("connection refused".into());
    world.step(Event::Probed { key, seen });
    for id in &waiting {
        assert_eq!(world.category(id), Some(Category::AgentUnreachable));
    }
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
}

#[test]
fn a_goodbye_in_a_rolling_update_takes_down_nobody_else() {
    let mut world = world();
    world.register("a", "i2", "http://h:2");
    world.beat("a", "i2");
    world.beat("a", "i1");
    world.goodbye("a");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1);
}

#[test]
fn a_drain_under_a_supervisor_is_not_taken_from_the_grace_of_the_return() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    let change = |world: &mut World, change| {
        world.step(Event::WorkerChanged {
            worker: "w".into(),
            change,
        });
    };
    change(&mut world, WorkerChange::WillRestart);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pass(Duration::from_secs(15));
    change(&mut world, WorkerChange::ExitedWillRestart("exit 0".into()));
    change(&mut world, WorkerChange::Started);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.status(&id), Status::Running);
    world.register_as("a", "i2", "http://h:1", |r| r.worker = Some("w".into()));
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&id), 1);
    // A process that never registers is waited for no longer than that.
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    change(&mut world, WorkerChange::WillRestart);
    let (_, id) = world.call(Lane::Async, "a.f");
    for _ in 0..20 {
        world.pass(Duration::from_secs(2));
        change(&mut world, WorkerChange::ExitedWillRestart("exit 1".into()));
    }
    assert_eq!(world.category(&id), Some(Category::AgentUnreachable));
}
