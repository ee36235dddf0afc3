//! Workers against what their node says: confirmed, adopted, released, ended on evidence; drift;
//! exits that come twice, late, or for nobody; nothing touches another node's worker.

mod releases;

use muster_engine::Limits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::{FleetEvent, Inventory};
use muster_engine::row::EventKind;
use muster_wire::WorkerId;
use muster_wire::fleet::*;

use crate::machine::{BEAT, Machine, code, minted};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

/// The second incident: 20 believed, 11 there. One missed beat sweeps nobody; the difference is
/// told with nine names; they end on evidence, and never silently.
#[test]
fn twenty_believed_against_eleven_reported_names_the_nine_and_ends_them_on_evidence() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "finn", 20);
    let nine: Vec<WorkerId> = machine.runs.iter().take(9).cloned().collect();
    world.pass(BEAT * 2);
    machine.beat(&mut world);
    assert!(
        world.told(EventKind::WorkerExited).is_empty(),
        "one missed beat"
    );
    for id in &nine {
        machine.runs.remove(id);
    }
    machine.inventory(&mut world);
    assert!(world.told(EventKind::NodeDrift).is_empty());
    machine.beat(&mut world);
    assert!(
        world.told(EventKind::NodeDrift).is_empty(),
        "one beat is no drift yet"
    );
    world.pass(BEAT);
    machine.beat(&mut world);
    let told = world.told(EventKind::NodeDrift);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("20 workers are believed, 11 are claimed"),
        "{}",
        told[0]
    );
    for id in &nine {
        assert!(told[0].contains(id.as_str()), "{id} in {}", told[0]);
        assert_eq!(
            world.worker(id).state,
            WorkerState::Running,
            "a drift ends nobody"
        );
    }
    let drifts = world.drifts();
    assert_eq!((drifts[0].missing.len(), drifts[0].surplus.len()), (9, 0));
    assert!(world.node("finn").drift);
    assert_eq!(world.summary().drifting, 1);
    machine.inventory(&mut world);
    for id in &nine {
        let view = world.worker(id);
        assert_eq!(view.row.ended.unwrap().1, ExitHow::Unobserved);
        assert_eq!(
            view.row.exit.unwrap().code,
            None,
            "what nobody saw is not 0"
        );
        assert_eq!(view.unknown_because, Some("exit_not_observed"));
    }
    assert!(world.drifts().is_empty());
    assert!(world.told(EventKind::NodeDrift)[1].contains("what it says is what is believed: 11"));
    for id in machine.runs.iter() {
        assert_eq!(world.worker(id).state, WorkerState::Running);
    }
}

#[test]
fn inventories_alone_end_nobody_without_a_drift_that_names_them() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    let gone = machine.runs.pop_first().unwrap();
    machine.inventory(&mut world);
    assert_eq!(world.worker(&gone).state, WorkerState::Running);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&gone).state, WorkerState::Exited);
    assert!(world.told(EventKind::NodeDrift)[0].contains(gone.as_str()));
}

#[test]
fn two_omissions_count_only_in_a_row_and_within_one_epoch() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    let empty = |machine: &mut Machine, world: &mut World| {
        let runs = std::mem::take(&mut machine.runs);
        machine.inventory(world);
        machine.runs = runs;
    };
    empty(&mut machine, &mut world);
    machine.inventory(&mut world);
    empty(&mut machine, &mut world);
    assert_eq!(
        world.worker(&id).state,
        WorkerState::Running,
        "confirmed in between"
    );
    machine.epoch = Some("e2".into());
    machine.connect(&mut world);
    empty(&mut machine, &mut world);
    assert_eq!(
        world.worker(&id).state,
        WorkerState::Running,
        "another epoch is not compared"
    );
    empty(&mut machine, &mut world);
    assert_eq!(world.worker(&id).state, WorkerState::Exited);
    // It ran all the time: what was concluded is taken back.
    let answer = machine.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "confirmed");
    assert_eq!(world.worker(&id).state, WorkerState::Running);
}

#[test]
fn what_is_unknown_here_is_adopted_and_lists_like_any_other() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    machine.runs.insert(minted(900));
    let mut reports = vec![machine.report(&minted(900))];
    reports.push(muster_wire::fleet::frame::WorkerReport {
        worker_id: "no id at all".into(),
        ..reports[0].clone()
    });
    let answer = machine.inventory_of(&mut world, reports);
    assert_eq!(answer.verdicts[0].verdict, "adopted");
    assert_eq!(answer.verdicts[1].verdict, "refused");
    let view = world.worker(&minted(900));
    assert!(view.row.adopted);
    assert_eq!(view.state, WorkerState::Running);
    assert_eq!(world.node("a").workers.value, Some(1));
    let answer = machine.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "confirmed");
}

#[test]
fn an_exit_is_taken_once_with_its_code_whatever_comes_twice_or_late() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    let id = machine.runs.first().unwrap().clone();
    for _ in 0..3 {
        let reply = machine.exits(&mut world, &id, 0, code(7), None);
        assert!(matches!(reply, FleetReply::Taken), "a repeat is taken, too");
    }
    assert_eq!(world.told(EventKind::WorkerExited), ["exit code 7"]);
    let view = world.worker(&id);
    assert_eq!(view.row.exit.as_ref().unwrap().code, Some(7));
    assert_eq!(view.row.exit.as_ref().unwrap().output, "the last line");
    // A roster from before the exit revives nothing.
    machine.runs.insert(id.clone());
    machine.inventory(&mut world);
    assert_eq!(world.worker(&id).state, WorkerState::Exited);
}

#[test]
fn the_number_of_restarts_tells_which_process_exited() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.first().unwrap().clone();
    machine.exits(&mut world, &id, 0, code(1), Some(SECOND * 2));
    let view = world.worker(&id);
    assert_eq!(view.state, WorkerState::Restarting);
    assert!(view.evidence.contains("exit code 1"), "{}", view.evidence);
    let seen = |machine: &Machine, restarts| FleetEvent::WorkerSeen {
        node: machine.id.clone(),
        link: machine.link.unwrap(),
        report: Box::new(muster_wire::fleet::frame::WorkerReport {
            restarts,
            ..machine.report(&id)
        }),
        waiter: None,
    };
    world.pass(SECOND * 2);
    let event = seen(&machine, 1);
    world.fleet(event);
    assert_eq!(world.worker(&id).state, WorkerState::Running);
    assert_eq!(world.worker(&id).row.restarts, 1);
    // The exit of the first process once more, and without a restart to come: old.
    machine.exits(&mut world, &id, 0, code(1), None);
    machine.runs.insert(id.clone());
    assert_eq!(world.worker(&id).state, WorkerState::Running);
    let event = seen(&machine, 0);
    world.fleet(event);
    assert_eq!(world.worker(&id).row.restarts, 1);
    machine.exits(&mut world, &id, 1, code(2), None);
    assert_eq!(world.worker(&id).state, WorkerState::Exited);
}

#[test]
fn an_exit_of_one_that_nobody_knows_is_kept_and_acknowledged() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let id = minted(901);
    let reply = machine.exits(&mut world, &id, 0, code(5), None);
    assert!(matches!(reply, FleetReply::Taken));
    let view = world.worker(&id);
    assert!(view.row.adopted);
    assert_eq!(view.row.exit.unwrap().code, Some(5));
}

#[test]
fn an_exit_that_was_concluded_becomes_known_when_it_is_reported_later() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let id = machine.runs.pop_first().unwrap();
    machine.inventory(&mut world);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&id).row.ended.unwrap().1, ExitHow::Unobserved);
    machine.exits(&mut world, &id, 0, code(9), None);
    let view = world.worker(&id);
    assert_eq!(view.row.ended.unwrap().1, ExitHow::Reported);
    assert_eq!(view.row.exit.unwrap().code, Some(9));
}

#[test]
fn a_node_can_touch_only_its_own_workers() {
    let mut world = world();
    let mine = Machine::with_workers(&mut world, "a", 1);
    let mut theirs = Machine::online(&mut world, "b");
    let id = mine.runs.first().unwrap().clone();
    let before = world.worker(&id).row;
    theirs.runs.insert(id.clone());
    let answer = theirs.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "refused");
    theirs.exits(&mut world, &id, 0, code(0), None);
    world.fleet(FleetEvent::StartAnswered {
        node: theirs.id.clone(),
        worker: id.clone(),
        outcome: Err("refused".into()),
    });
    world.fleet(FleetEvent::ReleaseAnswered {
        node: theirs.id.clone(),
        worker: id.clone(),
        outcome: Ok(Box::new(code(0))),
    });
    assert_eq!(world.worker(&id).row, before);
    assert_eq!(world.node("b").workers.value, Some(0));
}

#[test]
fn a_broker_s_names_are_compared_with_each_beat_and_what_is_surplus_is_named() {
    let mut world = world();
    let mut broker = Machine::enrolled_as(&mut world, "broker", NodeKind::Relay);
    broker.connect(&mut world);
    broker.inventory(&mut world);
    broker.beat(&mut world);
    broker.runs.insert(WorkerId::trusted("agent_x"));
    broker.beat(&mut world);
    world.pass(SECOND * 12);
    broker.beat(&mut world);
    let told = world.told(EventKind::NodeDrift);
    assert!(told[0].contains("unknown here: agent_x"), "{}", told[0]);
    broker.inventory(&mut world);
    assert!(world.drifts().is_empty());
    let view = world.worker(&WorkerId::trusted("agent_x"));
    assert_eq!(
        (view.row.pid, view.unknown_because),
        (None, Some("not_reported_by_node"))
    );
    // Its mute exit: two inventories of the one epoch it has.
    broker.runs.clear();
    broker.inventory(&mut world);
    broker.inventory(&mut world);
    let view = world.worker(&WorkerId::trusted("agent_x"));
    assert_eq!(view.state, WorkerState::Exited);
    assert_eq!(view.unknown_because, Some("not_reported_by_node"));
}

#[test]
fn an_inventory_over_a_superseded_link_is_answered_and_changes_nothing() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    let old = machine.link.unwrap();
    machine.connect(&mut world);
    let waiter = world.waiter();
    for _ in 0..2 {
        world.fleet(FleetEvent::Inventory(Box::new(Inventory {
            node: machine.id.clone(),
            link: old,
            workers: Vec::new(),
            waiter: None,
        })));
    }
    world.fleet(FleetEvent::Inventory(Box::new(Inventory {
        node: machine.id.clone(),
        link: old,
        workers: Vec::new(),
        waiter: Some(waiter),
    })));
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::LinkRefused {
            code: "superseded",
            ..
        }
    ));
    assert_eq!(world.node("a").late_frames, 3);
    let id = machine.runs.first().unwrap();
    assert_eq!(world.worker(id).state, WorkerState::Running);
}

/// What a node makes up is not taken over, and stands before nobody's name.
#[test]
fn a_node_cannot_take_a_name_by_an_id_that_it_made_up() {
    let mut world = world();
    let mut good = Machine::online(&mut world, "good");
    let mut bad = Machine::online(&mut world, "bad");
    let (_, id) = world.spawn(|ask| {
        ask.worker = minted(1);
        ask.name = "coder-1".into();
        ask.target.node = Some("good".into());
    });
    good.start(&mut world, &minted(1));
    let _ = id;
    let coder = |world: &mut World| match world.ask_fleet(FleetQuestion::Worker("coder-1".into())) {
        FleetReply::Worker(view) => view.row.id.clone(),
        other => panic!("not found: {other:?}"),
    };
    assert_eq!(coder(&mut world), minted(1));
    for made_up in [
        "coder-1",
        "x",
        "node_good",
        "wrk_1",
        "agent_00000000000000000000000001",
    ] {
        let made_up = WorkerId::trusted(made_up);
        bad.runs = [made_up.clone()].into();
        let answer = bad.inventory(&mut world);
        assert_eq!(answer.verdicts[0].verdict, "refused", "{made_up}");
        bad.exits(&mut world, &made_up, 0, code(1), None);
        assert!(!world.rows.workers.contains_key(&made_up), "{made_up}");
        assert_eq!(coder(&mut world), minted(1), "after {made_up}");
    }
    // Not by the id of another node's worker either.
    bad.runs = [minted(1)].into();
    assert_eq!(bad.inventory(&mut world).verdicts[0].verdict, "refused");
    assert_eq!(world.worker(&minted(1)).row.node, Some(good.id.clone()));
    // What is no id at all has its verdict, too.
    let mut report = bad.report(&minted(1));
    report.worker_id = "a\u{1b}b".repeat(9_000);
    report.name = "\u{1b}]52;x".into();
    let answer = bad.inventory_of(&mut world, vec![report]);
    assert_eq!(answer.verdicts[0].verdict, "refused");
    assert!(answer.verdicts[0].worker_id.len() <= 128);
}

/// A broker's ids are of its own; an ended record or one of another shape hides no living name.
#[test]
fn an_adopted_or_ended_record_hides_no_living_workers_name() {
    let mut world = world();
    let mut good = Machine::online(&mut world, "good");
    let mut broker = Machine::enrolled_as(&mut world, "broker", NodeKind::Relay);
    broker.connect(&mut world);
    let taken = WorkerId::trusted("coder-1");
    broker.runs.insert(taken.clone());
    broker.inventory(&mut world);
    broker.exits(&mut world, &taken, 0, code(0), None);
    let (_, id) = world.spawn(|ask| {
        ask.worker = minted(1);
        ask.name = "coder-1".into();
        ask.target.node = Some("good".into());
    });
    good.start(&mut world, &id);
    let asked = FleetQuestion::Worker("coder-1".into());
    match world.ask_fleet(asked.clone()) {
        FleetReply::Worker(view) => assert_eq!(view.row.id, minted(1)),
        other => panic!("{other:?}"),
    }
    let mut report = good.report(&minted(2));
    report.name = "coder-1".into();
    good.inventory_of(&mut world, vec![good.report(&minted(1)), report]);
    match world.ask_fleet(asked.clone()) {
        FleetReply::AmbiguousWorker(ids) => assert_eq!(ids, [minted(1), minted(2)]),
        other => panic!("{other:?}"),
    }
    good.exits(&mut world, &minted(1), 0, code(0), None);
    good.exits(&mut world, &minted(2), 0, code(0), None);
    match world.ask_fleet(asked) {
        FleetReply::Worker(view) => assert!(view.row.ended.is_some()),
        other => panic!("{other:?}"),
    }
}
