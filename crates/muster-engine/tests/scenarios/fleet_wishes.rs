//! What operators want: cordon, drain, retire, delete, declare lost; names, and who may be who.

use muster_engine::Limits;
use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::*;
use muster_engine::row::EventKind;
use muster_wire::fleet::*;
use muster_wire::{NodeId, WorkerId};

use crate::machine::{Machine, code, minted};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

fn releases(world: &mut World) -> Vec<WorkerId> {
    let sends = world.fleet_sends().into_iter();
    sends
        .filter_map(|send| match send {
            FleetSend::Release { worker, .. } => Some(worker),
            _ => None,
        })
        .collect()
}

fn delete(world: &mut World, node: &str) -> FleetReply {
    let waiter = world.waiter();
    world.fleet(FleetEvent::NodeDeleted {
        waiter,
        node: node.into(),
        by: "ada".into(),
    });
    world.fleet_reply(waiter)
}

fn enrol(world: &mut World, id: &str, name: &str) -> FleetReply {
    let waiter = world.waiter();
    world.fleet(FleetEvent::Enrolled(Box::new(Enrolment {
        waiter,
        id: NodeId::trusted(id),
        name: name.into(),
        kind: NodeKind::Daemon,
        labels: Vec::new(),
        max_workers: 0,
        principal: "owner".into(),
    })));
    world.fleet_reply(waiter)
}

#[test]
fn a_drain_releases_one_worker_after_another_and_survives_a_start() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 3);
    world.fleet_sends();
    assert!(matches!(
        world.want("a", NodeWish::Draining),
        FleetReply::Node(_)
    ));
    let first = releases(&mut world);
    assert_eq!(first.len(), 1, "one after another");
    machine.exits(&mut world, &first[0], 0, code(0), None);
    let second = releases(&mut world);
    assert_eq!(second.len(), 1);
    world.crash(SECOND);
    machine.connect(&mut world);
    let answer = machine.inventory(&mut world);
    let out: Vec<_> = answer
        .verdicts
        .iter()
        .filter(|v| v.verdict == "release")
        .collect();
    assert_eq!(
        out.len(),
        1,
        "the wish about the second one stands: {answer:?}"
    );
    machine.exits(&mut world, &second[0], 0, code(0), None);
    machine.beat(&mut world);
    let third = releases(&mut world);
    assert_eq!(third.len(), 1);
    machine.exits(&mut world, &third[0], 0, code(0), None);
    assert!(machine.runs.is_empty());
    assert_eq!(world.node("a").row.wish, NodeWish::Draining);
    assert_eq!(
        world
            .rows
            .workers
            .values()
            .filter(|w| w.ended.is_none())
            .count(),
        0
    );
}

#[test]
fn a_worker_that_cannot_be_stopped_does_not_hold_up_a_drain() {
    let mut world = world();
    let machine = Machine::with_workers(&mut world, "a", 2);
    world.fleet_sends();
    world.want("a", NodeWish::Draining);
    assert_eq!(releases(&mut world).len(), 1);
    world.pass_beating(&[&machine], SECOND * 30);
    assert_eq!(releases(&mut world).len(), 1);
}

#[test]
fn restarts_on_the_node_go_on_while_it_is_cordoned() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    world.want("a", NodeWish::Cordoned);
    machine.exits(&mut world, &id, 0, code(1), Some(SECOND));
    assert_eq!(world.worker(&id).state, WorkerState::Restarting);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&id).state, WorkerState::Running);
}

#[test]
fn a_node_is_retired_and_deleted_only_without_living_workers() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    assert!(matches!(
        world.want("a", NodeWish::Retired),
        FleetReply::Conflict(_)
    ));
    assert!(matches!(delete(&mut world, "a"), FleetReply::Conflict(_)));
    assert!(
        matches!(world.declare_lost("a"), FleetReply::Conflict(_)),
        "it is online"
    );
    machine.disconnect(&mut world, "reset");
    assert!(matches!(world.declare_lost("a"), FleetReply::Node(_)));
    assert_eq!(world.node("a").state, NodeState::Lost);
    assert!(world.node("a").evidence.contains("by ada: it burnt"));
    let view = world.worker(&id);
    assert_eq!(view.state, WorkerState::Lost);
    assert_eq!(view.unknown_because, Some("node_lost"));
    assert_eq!(world.told(EventKind::WorkerLost).len(), 1);
    assert!(matches!(
        world.want("a", NodeWish::Retired),
        FleetReply::Node(_)
    ));
    assert!(matches!(
        machine.connect(&mut world),
        FleetReply::LinkRefused {
            code: "node_retired",
            ..
        }
    ));
    // Its name is free.
    assert!(matches!(
        enrol(&mut world, "node_b", "a"),
        FleetReply::Enrolled(_)
    ));
    assert!(matches!(delete(&mut world, "node_a"), FleetReply::Taken));
    assert!(!world.rows.nodes.contains_key(&machine.id));
    assert!(
        !world
            .rows
            .fleet_history
            .iter()
            .any(|l| l.node.as_ref() == Some(&machine.id))
    );
    assert!(matches!(
        machine.connect(&mut world),
        FleetReply::LinkRefused {
            code: "node_not_found",
            ..
        }
    ));
    assert!(matches!(
        delete(&mut world, "node_a"),
        FleetReply::UnknownNode
    ));
    world.crash(SECOND);
}

#[test]
fn names_are_of_one_node_and_ids_of_who_enrolled_them() {
    let mut world = world();
    let machine = Machine::online(&mut world, "a");
    assert!(matches!(
        enrol(&mut world, "node_other", "a"),
        FleetReply::LinkRefused {
            code: "node_name_conflict",
            ..
        }
    ));
    // The same node again, with another name and other labels.
    assert!(matches!(
        enrol(&mut world, "node_a", "c"),
        FleetReply::Enrolled(_)
    ));
    assert_eq!(world.node("c").row.id, machine.id);
    assert!(matches!(
        enrol(&mut world, "node_other", "a"),
        FleetReply::Enrolled(_)
    ));
    let waiter = world.waiter();
    world.fleet(FleetEvent::Enrolled(Box::new(Enrolment {
        waiter,
        id: machine.id.clone(),
        name: "d".into(),
        kind: NodeKind::Relay,
        labels: Vec::new(),
        max_workers: 0,
        principal: "somebody".into(),
    })));
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::LinkRefused {
            code: "node_id_mismatch",
            ..
        }
    ));
    assert!(matches!(
        world.want("ghost", NodeWish::Cordoned),
        FleetReply::UnknownNode
    ));
}

#[test]
fn there_is_a_bound_on_nodes_and_on_workers() {
    let limits = Limits {
        fleet: FleetLimits {
            nodes_max: 1,
            workers_max: 2,
            ..FleetLimits::default()
        },
        ..Limits::default()
    };
    let mut world = World::new(limits);
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    assert!(matches!(
        enrol(&mut world, "node_b", "b"),
        FleetReply::Refused(_)
    ));
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, muster_wire::Category::FleetCapacity);
    machine.runs.insert(minted(900));
    let answer = machine.inventory(&mut world);
    let refused = |v: &&muster_wire::fleet::frame::ItemVerdict| v.verdict == "refused";
    assert_eq!(answer.verdicts.len(), 3);
    assert_eq!(
        answer.verdicts.iter().filter(refused).count(),
        1,
        "one more"
    );
}

#[test]
fn wishes_are_told_with_who_and_why() {
    let mut world = world();
    let _machine = Machine::online(&mut world, "a");
    world.want("a", NodeWish::Cordoned);
    let told = world.told(EventKind::NodeWished);
    assert_eq!(told, ["ada wants a to be cordoned: new disk"]);
    let events = world.rows.events.len();
    world.want("a", NodeWish::Cordoned);
    assert_eq!(world.rows.events.len(), events, "the same again is no news");
}
