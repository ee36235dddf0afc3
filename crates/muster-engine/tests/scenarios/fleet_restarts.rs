//! Restarts by hand: asked of the node once, answered when the new process lives or has ended,
//! told as somebody's wish and not as a crash; and no goodbye of the agent in between is for good.

use std::time::Duration;

use muster_engine::Limits;
use muster_engine::event::Waiter;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::{FleetEvent, RestartAsk};
use muster_engine::row::EventKind;
use muster_wire::fleet::frame::{RestartOutput, SpawnOutput};
use muster_wire::fleet::*;
use muster_wire::{Category, Lane, Status, WorkerId};

use crate::fleet_agents::{agent_on, register};
use crate::machine::{BEAT, Machine, code};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

fn restart(world: &mut World, id: &WorkerId) -> Waiter {
    let waiter = world.waiter();
    world.fleet(FleetEvent::RestartAsked(Box::new(RestartAsk {
        waiter,
        worker: id.clone(),
        grace: None,
        by: "ada".into(),
        reason: Some("a new model".into()),
    })));
    waiter
}

fn asked(world: &mut World) -> Vec<String> {
    let sends = world.fleet_sends().into_iter();
    sends
        .filter_map(|send| match send {
            FleetSend::Restart { reason, .. } => Some(reason.to_string()),
            _ => None,
        })
        .collect()
}

fn answer(world: &mut World, machine: &Machine, id: &WorkerId, output: Result<SpawnOutput, &str>) {
    let outcome = output.map(|output| {
        Box::new(RestartOutput {
            restarts: 1,
            output,
        })
    });
    world.fleet(FleetEvent::RestartAnswered {
        node: machine.id.clone(),
        worker: id.clone(),
        outcome: outcome.map_err(Into::into),
    });
}

fn started() -> SpawnOutput {
    SpawnOutput::Started {
        pid: Some(77),
        started_at: None,
    }
}

fn ended_by_hand() -> ExitReport {
    ExitReport {
        signal: Some(15),
        reason: Some("restarted by ada: a new model".into()),
        ..ExitReport::default()
    }
}

fn came(world: &World, waiter: Waiter) -> (WorkerView, RestartCame) {
    match world.fleet_reply(waiter) {
        FleetReply::Restarted { worker, came } => (*worker, came),
        other => panic!("not restarted: {other:?}"),
    }
}

fn refused(world: &World, waiter: Waiter) -> FleetRefusal {
    match world.fleet_reply(waiter) {
        FleetReply::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn it_is_asked_once_and_answered_when_the_new_process_lives() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    world.fleet_sends();
    let (one, other) = (restart(&mut world, &id), restart(&mut world, &id));
    assert_eq!(asked(&mut world), ["restarted by ada: a new model"]);
    assert!(!world.is_answered(one));
    assert_eq!(world.worker(&id).state, WorkerState::Running, "on evidence");
    machine.exits(&mut world, &id, 0, ended_by_hand(), Some(Duration::ZERO));
    let told = world.told(EventKind::WorkerRestarting);
    assert_eq!(
        told,
        ["restarted by ada: a new model (signal 15); its node starts it again now"]
    );
    answer(&mut world, &machine, &id, Ok(started()));
    for waiter in [one, other] {
        let (worker, came) = came(&world, waiter);
        assert_eq!(
            (worker.state, came),
            (WorkerState::Running, RestartCame::Runs)
        );
        assert_eq!((worker.row.pid, worker.row.restarts), (Some(77), 1));
        assert!(worker.row.ended.is_none() && worker.row.release.is_none());
    }
    assert!(world.fleet_sends().is_empty(), "its key is not touched");
    restart(&mut world, &id);
    assert_eq!(asked(&mut world).len(), 1, "another one, later");
}

#[test]
fn a_new_process_that_dies_is_no_success() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    let waiter = restart(&mut world, &id);
    machine.exits(&mut world, &id, 0, ended_by_hand(), Some(Duration::ZERO));
    assert!(!world.is_answered(waiter));
    machine.exits(&mut world, &id, 1, code(4), None);
    let (worker, came) = came(&world, waiter);
    assert_eq!(
        (worker.state, came),
        (WorkerState::Exited, RestartCame::Exited)
    );
    assert_eq!(worker.row.ended.unwrap().1, ExitHow::Reported);
    let exit = SpawnOutput::Exited { exit: code(4) };
    answer(&mut world, &machine, &id, Ok(exit));
    let late = restart(&mut world, &id);
    assert_eq!(refused(&world, late).category, Category::Conflict);
}

#[test]
fn what_cannot_be_restarted_now_says_why_and_changes_nothing() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    let nobody = restart(&mut world, &WorkerId::trusted("wrk_nobody"));
    assert!(matches!(
        world.fleet_reply(nobody),
        FleetReply::UnknownWorker
    ));
    machine.disconnect(&mut world, "reset");
    world.fleet_sends();
    let away = restart(&mut world, &id);
    let refusal = refused(&world, away);
    assert_eq!(refusal.category, Category::Conflict);
    assert!(refusal.message.contains("suspect"), "{}", refusal.message);
    assert!(asked(&mut world).is_empty());
    machine.offers.clear();
    machine.connect(&mut world);
    machine.inventory(&mut world);
    for _ in 0..4 {
        world.pass(BEAT);
        machine.beat(&mut world);
    }
    let old = restart(&mut world, &id);
    let refusal = refused(&world, old);
    assert_eq!(refusal.category, Category::UnsupportedByNode);
    assert!(refusal.message.contains("too old"), "{}", refusal.message);
    let question = FleetQuestion::Restart(id.clone());
    let FleetReply::Refused(would) = world.ask_fleet(question) else {
        panic!("the look says something else");
    };
    assert_eq!(would, refusal);
    let mut relay = Machine::enrolled_as(&mut world, "r", NodeKind::Relay);
    relay.connect(&mut world);
    relay.inventory(&mut world);
    relay.beat(&mut world);
    let (_, theirs) = world.spawn(|ask| ask.target.node = Some("r".into()));
    relay.start(&mut world, &theirs);
    let waiter = restart(&mut world, &theirs);
    assert_eq!(
        refused(&world, waiter).category,
        Category::UnsupportedByNode
    );
    world.release(&id, false);
    let leaving = restart(&mut world, &id);
    let refusal = refused(&world, leaving);
    assert!(refusal.message.contains("ada released it"), "{refusal:?}");
}

#[test]
fn a_node_that_does_not_say_leaves_it_under_way_and_one_that_refuses_says_why() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    let ids: Vec<WorkerId> = machine.runs.iter().cloned().collect();
    let silent = restart(&mut world, &ids[0]);
    for _ in 0..30 {
        world.pass(SECOND * 3);
        machine.beat(&mut world);
    }
    assert_eq!(came(&world, silent).1, RestartCame::Unconfirmed);
    let waiter = restart(&mut world, &ids[1]);
    answer(&mut world, &machine, &ids[1], Err("busy: 256 actions"));
    let refusal = refused(&world, waiter);
    assert_eq!(refusal.category, Category::Conflict);
    assert!(refusal.message.contains("busy"));
    let waiter = restart(&mut world, &ids[1]);
    answer(
        &mut world,
        &machine,
        &ids[1],
        Err("unsupported: an older build"),
    );
    assert_eq!(
        refused(&world, waiter).category,
        Category::UnsupportedByNode
    );
    // The link breaks: whoever waits is told at once, and what is told over the next counts.
    let waiter = restart(&mut world, &ids[1]);
    machine.disconnect(&mut world, "reset");
    assert_eq!(came(&world, waiter).1, RestartCame::Unconfirmed);
    machine.connect(&mut world);
    machine.exits(
        &mut world,
        &ids[1],
        0,
        ended_by_hand(),
        Some(Duration::ZERO),
    );
    answer(&mut world, &machine, &ids[1], Ok(started()));
    assert_eq!(world.worker(&ids[1]).row.pid, Some(77));
}

/// An agent that is told to end says goodbye, and its policy is never: its calls wait all the
/// same, because another process follows; what the old one had ends on evidence.
#[test]
fn calls_to_an_agent_wait_over_its_restart_by_hand() {
    let mut world = world();
    let (mut machine, id) = agent_on(&mut world, "m", RestartMode::Never);
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    restart(&mut world, &id);
    world.goodbye("a");
    machine.exits(&mut world, &id, 0, ended_by_hand(), Some(Duration::ZERO));
    assert_eq!(world.status(&taken), Status::Failed);
    let (_, waits) = world.call(Lane::Async, "a.f");
    let last = world.dispatched.last();
    if last.is_some_and(|last| last.attempt.execution == waits) {
        world.refuse_dial(&waits);
    }
    assert_eq!(world.status(&waits), Status::Running, "absorbed");
    answer(&mut world, &machine, &id, Ok(started()));
    register(&mut world, &id, "i2");
    world.dialled("a", true);
    let last = world.dispatched.last().expect("a dispatch");
    assert_eq!(
        (last.attempt.execution.clone(), last.to.instance.as_str()),
        (waits, "i2")
    );
    // Afterwards its policy counts again.
    world.goodbye("a");
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
}
