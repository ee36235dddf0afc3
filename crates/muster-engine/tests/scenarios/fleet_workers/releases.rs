//! Releases, and records that are closed: by wish, by force, by time.

use muster_engine::Limits;
use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_wire::WorkerId;
use muster_wire::fleet::*;

use super::world;
use crate::machine::{Machine, code};
use crate::world::{SECOND, World};

#[test]
fn a_release_is_answered_when_the_process_has_ended() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    world.fleet_sends();
    let waiter = world.release(&id, false);
    assert!(!world.is_answered(waiter));
    let sends = world.fleet_sends();
    assert!(
        matches!(sends.as_slice(), [FleetSend::Release { .. }]),
        "{sends:?}"
    );
    machine.runs.remove(&id);
    world.fleet(FleetEvent::ReleaseAnswered {
        node: machine.id.clone(),
        worker: id.clone(),
        outcome: Ok(Box::new(code(143))),
    });
    let FleetReply::Released { worker, ended } = world.fleet_reply(waiter) else {
        panic!("not released");
    };
    assert_eq!(
        (worker.row.ended.unwrap().1, ended),
        (ExitHow::Released, true)
    );
    assert!(matches!(
        world.fleet_sends().as_slice(),
        [FleetSend::RevokeKey { .. }]
    ));
    let again = world.release(&id, false);
    assert!(matches!(
        world.fleet_reply(again),
        FleetReply::Released { ended: true, .. }
    ));
    let nobody = world.release(&WorkerId::trusted("wrk_nobody"), false);
    assert!(matches!(
        world.fleet_reply(nobody),
        FleetReply::UnknownWorker
    ));
}

#[test]
fn a_release_of_one_whose_node_is_away_is_a_wish_that_is_done_when_it_is_back() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    machine.disconnect(&mut world, "reset");
    let waiter = world.release(&id, false);
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::Released { ended: false, .. }
    ));
    assert_eq!(
        world.worker(&id).state,
        WorkerState::Running,
        "a wish is no evidence"
    );
    world.crash(SECOND);
    machine.connect(&mut world);
    let answer = machine.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "release");
    machine.exits(&mut world, &id, 0, code(143), None);
    assert_eq!(world.worker(&id).row.ended.unwrap().1, ExitHow::Released);
}

#[test]
fn a_record_is_closed_by_force_where_its_node_is_gone() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    machine.disconnect(&mut world, "reset");
    let waiter = world.release(&id, true);
    let FleetReply::Released { worker, ended } = world.fleet_reply(waiter) else {
        panic!("not released");
    };
    assert_eq!(worker.row.ended.unwrap().1, ExitHow::Declared);
    assert!(!ended, "nobody saw it end");
    // Should the node come back, the wish is still one.
    machine.connect(&mut world);
    let answer = machine.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "release");
    assert_eq!(
        world.worker(&id).state,
        WorkerState::Running,
        "it lives, and is shown so"
    );
}

#[test]
fn one_that_cannot_be_stopped_is_said_and_not_shown_as_ended() {
    let mut world = world();
    let machine = Machine::with_workers(&mut world, "a", 2);
    let ids: Vec<WorkerId> = machine.runs.iter().cloned().collect();
    let refused = world.release(&ids[0], false);
    let silent = world.release(&ids[1], false);
    world.fleet(FleetEvent::ReleaseAnswered {
        node: machine.id.clone(),
        worker: ids[0].clone(),
        outcome: Err("it does not die".into()),
    });
    assert!(matches!(
        world.fleet_reply(refused),
        FleetReply::Conflict(_)
    ));
    world.pass_beating(&[&machine], SECOND * 30);
    assert!(matches!(
        world.fleet_reply(silent),
        FleetReply::Released { ended: false, .. }
    ));
    assert_eq!(world.worker(&ids[0]).state, WorkerState::Running);
}

#[test]
fn bindings_that_nobody_confirms_expire_and_are_kept_as_history() {
    let limits = Limits {
        fleet: FleetLimits {
            binding_ttl: SECOND * 3600,
            ..FleetLimits::default()
        },
        ..Limits::default()
    };
    let mut world = World::new(limits);
    let living = Machine::with_workers(&mut world, "a", 1);
    let mut machine = Machine::with_workers(&mut world, "b", 1);
    let id = machine.runs.first().unwrap().clone();
    machine.disconnect(&mut world, "reset");
    world.pass_beating(&[&living], SECOND * 3599);
    assert_eq!(world.worker(&id).state, WorkerState::Unknown);
    world.pass_beating(&[&living], SECOND * 20);
    assert_eq!(
        world.worker(&id).row.ended.unwrap().1,
        ExitHow::BindingExpired
    );
    let confirmed = living.runs.first().unwrap();
    assert_eq!(
        world.worker(confirmed).state,
        WorkerState::Running,
        "each beat confirms"
    );
    assert!(
        world
            .rows
            .fleet_history
            .iter()
            .any(|line| line.worker.as_ref() == Some(&id)
                && line.evidence.contains("nobody confirmed it"))
    );
}

#[test]
fn an_ended_worker_is_held_for_a_day_and_then_only_stored() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    machine.exits(&mut world, &id, 0, code(0), None);
    world.pass(SECOND * 23 * 3600);
    assert_eq!(world.worker(&id).state, WorkerState::Exited);
    world.pass(SECOND * 2 * 3600);
    assert!(matches!(
        world.ask_fleet(FleetQuestion::Worker(id.as_str().into())),
        FleetReply::UnknownWorker
    ));
    let waiter = world.release(&id, false);
    assert!(
        matches!(
            world.fleet_reply(waiter),
            FleetReply::Released { ended: true, .. }
        ),
        "read from the store"
    );
}
