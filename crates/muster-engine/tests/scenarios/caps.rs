//! The cap of an agent, as a person decides it: more room is used at once, less ends nothing.

use muster_engine::event::Question;
use muster_engine::limits::AtCapacity;
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits, Reply};
use muster_wire::{AgentId, ExecutionId, Lane, Status};

use crate::world::{SECOND, World};

fn capped(cap: u32) -> World {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: cap,
        at_capacity: AtCapacity::Queue,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

fn set(world: &mut World, agent: &str, cap: Option<u32>) -> Reply {
    let waiter = world.waiter();
    world.step(Event::CapSet {
        agent: AgentId::trusted(agent),
        cap,
        waiter,
    });
    world.reply(waiter)
}

fn calls(world: &mut World, n: usize) -> Vec<ExecutionId> {
    (0..n).map(|_| world.call(Lane::Async, "a.f").1).collect()
}

fn running(world: &World, ids: &[ExecutionId]) -> usize {
    let runs = |id: &&ExecutionId| world.status(id) == Status::Running;
    ids.iter().filter(runs).count()
}

#[test]
fn a_higher_cap_starts_what_waits_at_once_and_a_lower_one_ends_nothing() {
    let mut world = capped(1);
    let ids = calls(&mut world, 5);
    assert_eq!(running(&world, &ids), 1);
    let Reply::CapSet { was, was_set, cap } = set(&mut world, "a", Some(3)) else {
        panic!("no cap")
    };
    assert_eq!((was, was_set, cap), (Some(1), false, Some(3)));
    assert_eq!(running(&world, &ids), 3);
    set(&mut world, "a", Some(2));
    assert_eq!(running(&world, &ids), 3, "nothing is ended");
    assert!(world.row(&ids[2]).over_cap && !world.row(&ids[1]).over_cap);
    world.answer(&ids[0], Status::Succeeded);
    assert_eq!(
        running(&world, &ids),
        2,
        "and nothing starts before there is room"
    );
    world.answer(&ids[1], Status::Succeeded);
    assert_eq!(running(&world, &ids), 2);
    let told = world.rows.events.iter();
    let told = told.filter(|event| event.kind == EventKind::AgentCapChanged);
    assert_eq!(told.count(), 2);
}

#[test]
fn a_cap_holds_over_a_restart_and_a_registration_until_the_configuration_s_is_wanted_again() {
    let mut world = capped(1);
    set(&mut world, "a", Some(2));
    world.crash(SECOND);
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    let ids = calls(&mut world, 4);
    assert_eq!(running(&world, &ids), 2);
    let Reply::CapSet { was, was_set, cap } = set(&mut world, "a", None) else {
        panic!("no cap")
    };
    assert_eq!((was, was_set, cap), (Some(2), true, Some(1)));
    set(&mut world, "a", Some(0));
    assert_eq!(running(&world, &ids), 4, "0 is no cap");
}

#[test]
fn a_lower_cap_holds_over_a_crash_with_what_runs_beyond_it() {
    let mut world = capped(0);
    let ids = calls(&mut world, 4);
    for id in &ids {
        world.accept(id);
    }
    set(&mut world, "a", Some(1));
    world.crash(SECOND);
    world.beat("a", "i1");
    assert_eq!(running(&world, &ids), 4);
    let more = calls(&mut world, 1);
    assert_eq!(world.status(&more[0]), Status::Queued);
}

#[test]
fn the_cap_of_nobody_cannot_be_set_and_the_same_again_changes_nothing() {
    let mut world = capped(1);
    assert!(matches!(
        set(&mut world, "nobody", Some(1)),
        Reply::UnknownAgent
    ));
    set(&mut world, "a", Some(2));
    let before = world.rows.events.len();
    let again = set(&mut world, "a", Some(2));
    assert!(matches!(
        again,
        Reply::CapSet {
            was: Some(2),
            was_set: true,
            cap: Some(2)
        }
    ));
    assert_eq!(world.rows.events.len(), before);
}

/// When a call starts is estimated from the last starts. While more run than may, the next start
/// waits for ends instead, and no estimate is better than a wrong one.
#[test]
fn no_start_is_estimated_while_more_run_than_the_cap_lets() {
    let mut world = capped(3);
    let ids = calls(&mut world, 12);
    for id in &ids[..6] {
        world.pass(SECOND);
        world.answer(id, Status::Succeeded);
    }
    let starts_in = |world: &mut World| {
        let waiter = world.waiter();
        let question = Question::Agent(AgentId::trusted("a"));
        world.step(Event::Asked { question, waiter });
        let Reply::Agent(Some(agent)) = world.reply(waiter) else {
            panic!("no agent");
        };
        let waiter = world.waiter();
        let question = Question::Why(ids[11].clone());
        world.step(Event::Asked { question, waiter });
        let Reply::Why(Some(why)) = world.reply(waiter) else {
            panic!("no why");
        };
        let estimated = why.next.iter().any(|(_, text)| text.contains("estimated"));
        assert_eq!(agent.starts_in_ms.is_some(), estimated, "they say the same");
        agent.starts_in_ms
    };
    assert!(starts_in(&mut world).is_some(), "there is a rate");
    set(&mut world, "a", Some(1));
    assert_eq!(running(&world, &ids), 3, "three of one");
    assert_eq!(starts_in(&mut world), None);
    for id in &ids[6..8] {
        world.answer(id, Status::Succeeded);
    }
    assert_eq!(running(&world, &ids), 1);
    assert!(starts_in(&mut world).is_some(), "the next end is a start");
}
