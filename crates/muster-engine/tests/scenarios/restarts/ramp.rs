//! After a return work goes out one, two, four, eight.

use std::time::Duration;

use muster_engine::Event;
use muster_wire::{Lane, Status};

use super::{beating, world};
use crate::world::World;

#[test]
fn after_a_return_work_goes_out_on_a_ramp() {
    let mut world = world();
    let waiting: Vec<_> = (0..20).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.beat("a", "i1");
    let before = world.dispatched.len();
    assert!(world.dialled("a", true));
    assert_eq!(world.dispatched.len() - before, 1);
    let mut out = vec![world.dispatched.last().unwrap().attempt.execution.clone()];
    let mut sizes = vec![1];
    while !out.is_empty() {
        let before = world.dispatched.len();
        for id in std::mem::take(&mut out) {
            world.accept(&id);
        }
        out = world.dispatched[before..]
            .iter()
            .map(|d| d.attempt.execution.clone())
            .collect();
        sizes.push(out.len());
    }
    assert!(sizes[1] >= 2 && sizes[1] <= 4, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 20, "{sizes:?}");
}

/// Twenty calls wait, and the gate's dial gets through: the first one goes out alone.
fn on_the_ramp() -> (World, Vec<muster_wire::ExecutionId>) {
    let mut world = world();
    let waiting: Vec<_> = (0..20).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.beat("a", "i1");
    world.dispatched.clear();
    assert!(world.dialled("a", true));
    assert_eq!(world.dispatched.len(), 1);
    (world, waiting)
}

#[test]
fn the_ramp_is_one_two_four_eight() {
    let (mut world, _) = on_the_ramp();
    let mut sizes = vec![1];
    let mut from = 0;
    while from < world.dispatched.len() {
        let wave: Vec<_> = world.dispatched[from..]
            .iter()
            .map(|d| d.attempt.execution.clone())
            .collect();
        from = world.dispatched.len();
        for id in &wave {
            world.accept(id);
        }
        sizes.push(world.dispatched.len() - from);
    }
    assert_eq!(sizes, [1, 2, 4, 8, 5, 0]);
}

#[test]
fn whoever_never_gets_through_does_not_close_the_ramp_behind_it() {
    let broke: fn(&mut World) = |world| {
        let attempt = world.dispatched[0].attempt.clone();
        world.step(Event::BrokeAfterSend {
            attempt,
            error: "reset".into(),
        });
    };
    let cancelled: fn(&mut World) = |world| {
        let id = world.dispatched[0].attempt.execution.clone();
        world.cancel(&id);
    };
    let timed_out: fn(&mut World) = |world| {
        let attempt = world.dispatched[0].attempt.clone();
        world.step(Event::TimedOut { attempt });
    };
    for end in [broke, cancelled, timed_out] {
        let (mut world, _) = on_the_ramp();
        end(&mut world);
        assert!(world.dispatched.len() > 1, "the next one goes out");
    }
}

#[test]
fn one_that_takes_its_time_to_answer_keeps_nobody_waiting_for_the_return() {
    let (mut world, waiting) = on_the_ramp();
    let mut from = 0;
    while world.dispatched.len() < waiting.len() {
        let wave: Vec<_> = world.dispatched[from..]
            .iter()
            .map(|d| d.attempt.clone())
            .collect();
        from = world.dispatched.len();
        assert!(!wave.is_empty());
        for attempt in wave {
            world.step(Event::Taken { attempt });
        }
    }
    beating(&mut world, "a", "i1", Duration::from_secs(30));
    for id in &waiting {
        assert_eq!((world.status(id), world.sent(id)), (Status::Running, 1));
    }
}
