//! What is shown of the fleet is what somebody knows: a number that nobody knows is none, a name
//! that is told is of now, and what a node makes up has a bound.

use std::time::Duration;

use muster_engine::Limits;
use muster_engine::fleet::FleetNotice;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_engine::row::EventKind;
use muster_wire::fleet::frame::SpawnOutput;
use muster_wire::fleet::*;
use muster_wire::{Category, Timestamp, WorkerId};

use crate::machine::{BEAT, Machine, code, minted};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

fn beat_twice(world: &mut World, machine: &Machine) {
    for _ in 0..2 {
        world.pass(BEAT);
        machine.beat(world);
    }
}

#[test]
fn a_drift_names_nobody_who_came_after_the_inventory_and_nobody_whose_exit_was_told() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    let gone: Vec<WorkerId> = machine.runs.iter().cloned().collect();
    let fresh: Vec<WorkerId> = (0..6).map(|_| machine.place(&mut world)).collect();
    let ended = fresh[5].clone();
    machine.exits(&mut world, &ended, 0, code(0), None);
    machine.runs.retain(|id| !gone.contains(id));
    beat_twice(&mut world, &machine);
    let drift = world.drifts().remove(0);
    assert_eq!((drift.believed, drift.claimed), (7, 5));
    assert!(drift.missing.is_empty(), "{:?}", drift.missing);
    assert!(drift.surplus.is_empty(), "{:?}", drift.surplus);
    machine.inventory(&mut world);
    let told = world.told(EventKind::NodeDrift);
    let last = told.last().unwrap();
    for id in &gone {
        assert!(last.contains(id.as_str()), "{id} in {last}");
    }
    for id in &fresh {
        let named = format!("{id},");
        assert!(!format!("{last},").contains(&named), "{id} in {last}");
    }
    assert_eq!(world.drifts()[0].missing.len(), 2);
}

#[test]
fn the_names_of_a_brokers_beat_do_not_outlive_what_came_after_it() {
    let mut world = world();
    let mut broker = Machine::enrolled_as(&mut world, "b", NodeKind::Relay);
    broker.connect(&mut world);
    let first = WorkerId::trusted("agent_1");
    broker.runs.insert(first.clone());
    broker.inventory(&mut world);
    broker.beat(&mut world);
    broker.runs.clear();
    broker.beat(&mut world);
    broker.beat(&mut world);
    assert_eq!(world.drifts()[0].missing, ["agent_1".into()]);
    let fresh = broker.place(&mut world);
    let missing = world.drifts()[0].missing.clone();
    assert!(!missing.contains(&fresh.as_str().into()), "{missing:?}");
}

/// What a label's nodes hold is known of those that are online, and there must be one.
#[test]
fn of_a_label_without_a_node_online_nobody_knows_what_runs() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| m.labels = vec!["gpu".into()]);
    assert_eq!(world.summary().labels[0].used, Some(0));
    machine.place(&mut world);
    assert_eq!(world.summary().labels[0].used, Some(1));
    machine.disconnect(&mut world, "gone");
    world.pass(SECOND * 60);
    assert_ne!(world.node("a").state, NodeState::Online);
    assert_eq!(world.summary().labels[0].used, None);
}

/// Whoever starts a worker has answered.
#[test]
fn a_node_that_starts_a_worker_has_acknowledged_something() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let acknowledged = |world: &mut World| {
        let facts = world.node("a").facts;
        facts.iter().any(|fact| fact.what == "acknowledged")
    };
    assert!(!acknowledged(&mut world), "nothing was asked of it yet");
    machine.place(&mut world);
    assert!(acknowledged(&mut world));
    machine.disconnect(&mut world, "gone");
    machine.connect(&mut world);
    assert!(!acknowledged(&mut world), "over another link");
}

#[test]
fn places_that_nobody_knows_are_none_with_a_reason() {
    let mut world = world();
    let summary = world.summary();
    assert_eq!(summary.reachable_share.value, None);
    assert!(summary.reachable_share.reason.is_some());
    let mut bounded = Machine::online_with(&mut world, "a", |m| m.max_workers = 4);
    bounded.place(&mut world);
    bounded.inventory(&mut world);
    world.crash(SECOND * 30);
    let summary = world.summary();
    for known in [&summary.capacity, &summary.used] {
        assert_eq!(known.value, None);
        let reason = known.reason.as_deref().unwrap();
        assert!(reason.contains("no node is online yet"), "{reason}");
    }
    assert_eq!(summary.used.last.unwrap().0, 1, "what was last known");
    assert_eq!(summary.capacity_unknown.value, Some(4));
    assert_eq!(summary.reachable_share.value, None);
    bounded.connect(&mut world);
    bounded.inventory(&mut world);
    bounded.beat(&mut world);
    let summary = world.summary();
    assert_eq!(
        (summary.capacity.value, summary.used.value),
        (Some(4), Some(1))
    );
    assert_eq!(summary.reachable_share.value, Some(1.0));
    // One without a bound: how much it takes nobody knows, whether it is there or not.
    let mut boundless = Machine::online(&mut world, "b");
    let summary = world.summary();
    assert_eq!(summary.capacity.value, None);
    assert!(summary.capacity.reason.unwrap().contains("no bound"));
    boundless.disconnect(&mut world, "reset");
    world.pass_beating(&[&bounded], SECOND * 80);
    let summary = world.summary();
    assert_eq!(summary.capacity.value, Some(4));
    assert_eq!(summary.capacity_unknown.value, None);
    assert!(summary.capacity_unknown.reason.is_some());
}

#[test]
fn a_share_of_nothing_reachable_is_0_and_not_below() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| m.max_workers = 4);
    machine.disconnect(&mut world, "reset");
    world.pass(SECOND * 70);
    let share = world.summary().reachable_share.value.unwrap();
    assert!(share == 0.0 && share.is_sign_positive(), "{share:?}");
    assert_eq!(world.summary().capacity.value, Some(0), "none is reachable");
}

#[test]
fn the_words_of_an_alarm_follow_what_it_is_about() {
    let mut world = world();
    let mut all: Vec<Machine> = (0..8)
        .map(|n| Machine::online_with(&mut world, &format!("n{n}"), |m| m.max_workers = 10))
        .collect();
    for machine in &mut all[..4] {
        machine.disconnect(&mut world, "reset");
    }
    let speaking: Vec<&Machine> = all[4..].iter().collect();
    world.pass_beating(&speaking, SECOND * 70);
    let summary = world.summary();
    let (alarm, doubt) = (summary.capacity_alarm.unwrap(), summary.doubt.unwrap().1);
    assert!(alarm.contains("50 %") && !alarm.contains("n4"), "{alarm}");
    assert!(doubt.contains("4 of 8 nodes"), "{doubt}");
    for machine in &mut all[4..6] {
        machine.disconnect(&mut world, "reset");
    }
    let speaking: Vec<&Machine> = all[6..].iter().collect();
    world.pass_beating(&speaking, SECOND * 70);
    let summary = world.summary();
    let (alarm, doubt) = (summary.capacity_alarm.unwrap(), summary.doubt.unwrap().1);
    assert!(
        alarm.contains("25 %") && alarm.contains("n0, n1, n2, n3, n4, n5"),
        "{alarm}"
    );
    assert!(doubt.contains("6 of 8 nodes"), "{doubt}");
}

#[test]
fn nothing_is_placed_on_a_node_from_its_goodbye_on() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    world.fleet(FleetEvent::Goodbye {
        node: machine.id.clone(),
        link: machine.link.unwrap(),
        reason: "it stops".into(),
        workers_stay: true,
    });
    machine.beat(&mut world);
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, Category::NodeUnreachable);
    assert_eq!(refusal.passed_over[0].why, "leaving");
    assert!(refusal.passed_over[0].evidence.contains("goodbye"));
    assert!(world.node("a").evidence.contains("it said goodbye"));
    machine.connect(&mut world);
    machine.beat(&mut world);
    machine.place(&mut world);
}

#[test]
fn a_load_is_of_now_or_none_with_what_was_last_told() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| m.load = Some(0.5));
    assert_eq!(world.node("a").load, Some(0.5));
    machine.disconnect(&mut world, "reset");
    world.pass(SECOND * 70);
    let view = world.node("a");
    assert_eq!((view.load, view.load_last.unwrap().0), (None, 0.5));
    assert!(view.load_reason.unwrap().contains("unreachable"));
    machine.connect(&mut world);
    assert_eq!(world.node("a").load, None, "not told on this link");
    for (told, shown) in [
        (-5.0, None),
        (f64::NAN, None),
        (1e308, Some(100.0)),
        (0.2, Some(0.2)),
    ] {
        machine.load = Some(told);
        machine.beat(&mut world);
        assert_eq!(world.node("a").load, shown, "{told}");
    }
    machine.load = None;
    machine.beat(&mut world);
    let reason = world.node("a").load_reason;
    assert!(reason.is_some(), "{reason:?}");
}

#[test]
fn what_a_node_makes_up_has_a_bound_and_costs_one_line() {
    let mut world = world();
    let machine = Machine::online_with(&mut world, "a", |m| m.max_workers = 4);
    let mut named = 0..;
    let mut refused_all = 0;
    for _ in 0..8 {
        world.fleet_notices.clear();
        let reports = named.by_ref().take(3_000);
        let reports = reports.map(|n| machine.report(&minted(n))).collect();
        let answer = machine.inventory_of(&mut world, reports);
        let of = |word: &str| answer.verdicts.iter().filter(|v| v.verdict == word).count();
        assert!(of("adopted") <= 1_000, "{}", of("adopted"));
        assert_eq!(of("adopted") + of("refused"), 3_000);
        refused_all += of("refused");
        let is_adoption = |notice: &&FleetNotice| matches!(notice, FleetNotice::Log { text, .. } if text.contains("adopted") || text.contains("not taken over"));
        let lines = world.fleet_notices.iter().filter(is_adoption).count();
        assert!(lines <= 2, "{lines} lines");
    }
    assert!(refused_all >= 8 * 3_000 - 2_000, "{refused_all}");
    assert!(world.rows.workers.len() <= 2_000);
    let told = world.told(EventKind::NodeDrift);
    let of_refusals = told.iter().filter(|text| text.contains("not taken over"));
    assert_eq!(of_refusals.count(), 1, "once an hour");
    // A worker that was placed here is taken all the same.
    let (_, placed) = world.spawn(|_| {});
    assert!(world.rows.workers.contains_key(&placed));
}

#[test]
fn exits_of_those_that_nobody_knew_do_not_pile_up() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    for n in 0..2_500 {
        let reply = machine.exits(&mut world, &minted(n), 0, code(0), None);
        assert!(matches!(reply, FleetReply::Taken), "it leaves its outbox");
    }
    let held = FleetQuestion::Workers {
        node: None,
        ended: true,
    };
    match world.ask_fleet(held) {
        FleetReply::Workers(views) => assert_eq!(views.len(), 1_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.rows.workers.len(), 2_000, "within one hour");
}

fn start_refused(machine: &Machine, id: &WorkerId, said: &str) -> FleetEvent {
    FleetEvent::StartAnswered {
        node: machine.id.clone(),
        worker: id.clone(),
        outcome: Err(said.into()),
    }
}

#[test]
fn a_node_that_says_it_is_full_is_quoted_with_the_moment() {
    let mut world = world();
    let machine = Machine::online_with(&mut world, "a", |m| m.max_workers = 3);
    let (_, id) = world.spawn(|_| {});
    world.fleet(FleetEvent::StartAnswered {
        node: machine.id.clone(),
        worker: id,
        outcome: Ok(Box::new(SpawnOutput::Refused {
            message: "no process slots".into(),
            full: true,
        })),
    });
    world.pass(SECOND * 3);
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, Category::FleetCapacity);
    let evidence = &refusal.passed_over[0].evidence;
    assert!(
        evidence.contains("it said itself 3.0 s ago") && evidence.contains("no process slots"),
        "{evidence}"
    );
    assert!(!evidence.contains("0 of its 3"), "{evidence}");
    machine.beat(&mut world);
    world.spawn(|_| {});
}

#[test]
fn a_busy_node_s_start_goes_to_another_one_and_to_nobody_else_than_the_wanted_one() {
    let mut world = world();
    let busy = Machine::online_with(&mut world, "a", |m| m.max_workers = 9);
    let mut other = Machine::online_with(&mut world, "b", |m| m.max_workers = 3);
    let said = "busy: 64 actions are under way on this node";
    let (waiter, id) = world.spawn(|_| {});
    world.fleet(start_refused(&busy, &id, said));
    assert_eq!(world.worker(&id).node_name.as_deref(), Some("b"));
    other.start(&mut world, &id);
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::Placed { .. }
    ));
    busy.beat(&mut world);
    let (waiter, id) = world.spawn(|ask| ask.target.node = Some("a".into()));
    world.fleet(start_refused(&busy, &id, said));
    let FleetReply::Refused(refusal) = world.fleet_reply(waiter) else {
        panic!("not refused");
    };
    assert_eq!(refusal.category, Category::FleetCapacity);
    assert!(refusal.retry_after.is_some());
    assert!(refusal.message.contains("busy"), "{}", refusal.message);
}

#[test]
fn an_answer_that_tells_nothing_ends_no_worker() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let (waiter, id) = world.spawn(|_| {});
    let said = "the node's answer to the start cannot be read";
    world.fleet(start_refused(&machine, &id, said));
    let FleetReply::StartUnconfirmed(view) = world.fleet_reply(waiter) else {
        panic!("{:?}", world.fleet_reply(waiter));
    };
    assert!(view.evidence.contains(said), "{}", view.evidence);
    assert_eq!(world.worker(&id).state, WorkerState::Starting);
    machine.runs.insert(id.clone());
    machine.inventory(&mut world);
    assert_eq!(world.worker(&id).state, WorkerState::Running);
    // And one that does not have it after all ends it on evidence.
    let (_, id) = world.spawn(|_| {});
    world.fleet(start_refused(&machine, &id, said));
    machine.inventory(&mut world);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&id).row.ended.unwrap().1, ExitHow::Unobserved);
    // What it says it did not try is ended at once.
    let (waiter, id) = world.spawn(|_| {});
    let said = "invalid_input: this node does not understand the action's input";
    world.fleet(start_refused(&machine, &id, said));
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::StartFailed(_)
    ));
}

#[test]
fn a_dead_node_that_is_pinned_as_online_shows_no_numbers_and_says_why_it_takes_nothing() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    machine.disconnect(&mut world, "reset");
    world.pass(SECOND * 100);
    let waiter = world.waiter();
    world.fleet(FleetEvent::NodePinned {
        waiter,
        node: "a".into(),
        state: Some(NodeState::Online),
        by: "ada".into(),
        reason: Some("I see it".into()),
    });
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Online);
    assert_eq!((view.workers.value, view.free.value), (None, None));
    assert_eq!(view.workers.last.unwrap().0, 1);
    assert!(view.workers.reason.unwrap().contains("no connection"));
    let refusal = world.spawn_refused(|_| {});
    let evidence = &refusal.passed_over[0].evidence;
    assert!(
        evidence.contains("no connection to send over"),
        "{evidence}"
    );
    assert!(!evidence.contains("unreachable for 0.0 s"), "{evidence}");
    assert_eq!(world.summary().capacity.value, Some(0));
}

#[test]
fn moments_and_names_that_no_machine_would_tell_are_not_shown() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| {
        m.labels = vec!["gpu\u{1b}[2J".into(), "\0".into()];
    });
    assert_eq!(world.node("a").row.labels, ["gpu[2J".into()]);
    for (told, shown) in [
        (i64::MIN, false),
        (-1, false),
        (i64::MAX, false),
        (world.now.0, true),
    ] {
        let mut report = machine.report(&minted(1));
        report.started_at = Some(Timestamp(told));
        report.name = "\u{1b}]52;c;x\u{7}coder\0".into();
        machine.inventory_of(&mut world, vec![report]);
        let row = world.worker(&minted(1)).row;
        assert_eq!(row.started_at.is_some(), shown, "{told}");
        assert_eq!(&*row.name, "]52;c;xcoder");
    }
    machine.runs.insert(minted(1));
    let mut exit = code(1);
    exit.at = Some(Timestamp(i64::MAX));
    let far = Some(Duration::from_secs(3600 * 24 * 365));
    machine.exits(&mut world, &minted(1), 0, exit, far);
    let row = world.worker(&minted(1)).row;
    assert_eq!(row.exit.unwrap().at, None);
    let most = world.now + Duration::from_secs(24 * 3600);
    assert_eq!(row.next_start_at, Some(most));
}
