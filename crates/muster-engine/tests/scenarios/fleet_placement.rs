//! Placement: every answer of the contract's table, the order of nodes, keys, the durable queue,
//! and starts that nobody answers.

use muster_engine::Limits;
use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_engine::row::EventKind;
use muster_wire::fleet::frame::SpawnOutput;
use muster_wire::fleet::*;
use muster_wire::{Category, WorkerId};

use crate::machine::{BEAT, Machine, code};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

fn sent_to(world: &mut World) -> Vec<(String, WorkerId)> {
    let starts = world.fleet_sends().into_iter();
    starts
        .filter_map(|send| match send {
            FleetSend::Start { node, worker, .. } => Some((node.to_string(), worker.id)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_worker_is_placed_on_the_node_that_is_named_and_answered_when_it_started() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let (waiter, id) = world.spawn(|ask| ask.target.node = Some("a".into()));
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), id.clone())]);
    assert!(
        !world.is_answered(waiter),
        "verified started, not merely sent"
    );
    assert_eq!(world.worker(&id).state, WorkerState::Starting);
    assert_eq!(
        world.rows.workers[&id].state,
        WorkerState::Starting,
        "durable before sent"
    );
    machine.start(&mut world, &id);
    let FleetReply::Placed { worker, repeated } = world.fleet_reply(waiter) else {
        panic!("not placed");
    };
    assert_eq!(
        (worker.state, worker.row.pid, repeated),
        (WorkerState::Running, Some(4000), false)
    );
    assert_eq!(worker.node_name.as_deref(), Some("a"));
    // By its id, too.
    let (_, id) = world.spawn(|ask| ask.target.node = Some("node_a".into()));
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), id)]);
}

#[test]
fn one_that_exits_within_its_start_window_is_answered_with_code_and_last_output() {
    let mut world = world();
    let machine = Machine::online(&mut world, "a");
    let (waiter, id) = world.spawn(|_| {});
    world.fleet(FleetEvent::StartAnswered {
        node: machine.id.clone(),
        worker: id.clone(),
        outcome: Ok(Box::new(SpawnOutput::Exited { exit: code(3) })),
    });
    let FleetReply::StartFailed(worker) = world.fleet_reply(waiter) else {
        panic!("not failed");
    };
    assert_eq!(worker.row.exit.unwrap().code, Some(3));
    assert_eq!(worker.row.ended.unwrap().1, ExitHow::StartFailed);
    assert_eq!(
        world.rows.workers[&id].exit.as_ref().unwrap().output,
        "the last line"
    );
    assert!(
        world.rows.workers[&id].spec.is_empty(),
        "its variables are forgotten"
    );
}

#[test]
fn a_node_that_is_suspect_or_unreachable_is_said_at_once_with_the_evidence() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    machine.disconnect(&mut world, "reset by peer");
    let refusal = world.spawn_refused(|ask| ask.target.node = Some("a".into()));
    assert_eq!(refusal.category, Category::NodeUnreachable);
    assert_eq!(refusal.retry_after, Some(5));
    assert!(
        refusal.message.contains("reset by peer"),
        "{}",
        refusal.message
    );
    assert!(
        refusal.message.contains("last heard"),
        "{}",
        refusal.message
    );
    assert_eq!(refusal.passed_over[0].why, "suspect");
}

#[test]
fn cordoned_and_draining_nodes_take_no_new_work() {
    let mut world = world();
    let _machine = Machine::online(&mut world, "a");
    for (wish, word) in [
        (NodeWish::Cordoned, "cordoned"),
        (NodeWish::Draining, "draining"),
    ] {
        world.want("a", wish);
        for target in [Some("a".into()), None] {
            let refusal = world.spawn_refused(|ask| ask.target.node = target);
            assert_eq!(refusal.category, Category::NodeDraining);
            assert_eq!(refusal.passed_over[0].why, word);
            assert!(refusal.passed_over[0].evidence.contains("by ada"));
            assert!(refusal.passed_over[0].evidence.contains("new disk"));
        }
    }
}

#[test]
fn where_no_node_has_the_labels_each_is_named_with_what_it_lacks() {
    let mut world = world();
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(
        refusal.category,
        Category::NoEligibleNode,
        "no nodes at all"
    );
    let _a = Machine::online_with(&mut world, "a", |m| m.labels = vec!["gpu".into()]);
    let _b = Machine::online(&mut world, "b");
    let refusal = world.spawn_refused(|ask| ask.target.labels = vec!["zone=eu".into()]);
    assert_eq!(refusal.category, Category::NoEligibleNode);
    let whys: Vec<_> = refusal
        .passed_over
        .iter()
        .map(|p| (&*p.name, p.why))
        .collect();
    assert_eq!(whys, [("a", "labels"), ("b", "labels")]);
    assert!(refusal.passed_over[0].evidence.contains("zone=eu"));
    let (_, id) = world.spawn(|ask| ask.target.labels = vec!["gpu".into()]);
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), id)]);
}

#[test]
fn a_node_that_is_not_there_is_not_found() {
    let mut world = world();
    let refusal = world.spawn_refused(|ask| ask.target.node = Some("ghost".into()));
    assert_eq!(refusal.category, Category::NotFound);
}

#[test]
fn a_broker_can_neither_pipes_nor_restarts() {
    let mut world = world();
    let mut broker = Machine::enrolled_as(&mut world, "broker", NodeKind::Relay);
    broker.connect(&mut world);
    broker.inventory(&mut world);
    broker.beat(&mut world);
    let refusal = world.spawn_refused(|ask| ask.io = WorkerIo::Pipes);
    assert_eq!(refusal.category, Category::UnsupportedByNode);
    assert!(refusal.passed_over[0].evidence.contains("pipes"));
    let refusal = world.spawn_refused(|ask| ask.restart.mode = RestartMode::Always);
    assert_eq!(refusal.category, Category::UnsupportedByNode);
    let (_, id) = world.spawn(|_| {});
    assert_eq!(sent_to(&mut world), [("node_broker".to_owned(), id)]);
}

#[test]
fn a_full_fleet_is_said_and_starts_count_from_the_moment_they_are_sent() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| m.max_workers = 2);
    machine.place(&mut world);
    let (_, _second) = world.spawn(|_| {});
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, Category::FleetCapacity);
    assert!(refusal.retry_after.is_some());
    assert_eq!(refusal.passed_over[0].why, "full");
    assert_eq!(world.node("a").free.value, Some(0));
    let summary = world.summary();
    assert_eq!(
        (summary.capacity.value, summary.used.value),
        (Some(2), Some(2))
    );
}

#[test]
fn the_order_is_free_capacity_then_load_then_spread_then_id() {
    let mut world = world();
    let mut a = Machine::online_with(&mut world, "a", |m| m.max_workers = 4);
    let mut b = Machine::online_with(&mut world, "b", |m| m.max_workers = 8);
    let place = |world: &mut World| {
        let (_, id) = world.spawn(|ask| ask.labels = vec!["web".into()]);
        let sent = sent_to(world);
        (sent[0].0.clone(), id)
    };
    let (node, id) = place(&mut world);
    assert_eq!(node, "node_b", "8 free go before 4");
    b.start(&mut world, &id);
    // 7 and 4: until both have 4.
    for _ in 0..3 {
        let (node, id) = place(&mut world);
        assert_eq!(node, "node_b");
        b.start(&mut world, &id);
    }
    a.load = Some(0.9);
    b.load = Some(0.1);
    a.beat(&mut world);
    b.beat(&mut world);
    let (node, id) = place(&mut world);
    assert_eq!(node, "node_b", "the same room: the one with less load");
    b.start(&mut world, &id);
    let gone = b.runs.first().unwrap().clone();
    b.exits(&mut world, &gone, 0, code(0), None);
    b.load = Some(0.9);
    b.beat(&mut world);
    let (node, id) = place(&mut world);
    assert_eq!(
        node, "node_a",
        "the same load: the one with fewer of its label"
    );
    a.start(&mut world, &id);
}

#[test]
fn the_same_key_gives_the_same_worker_and_another_wish_a_conflict() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let key = || Some("owner\0k".into());
    let (first, id) = world.spawn(|ask| ask.idempotency_key = key());
    let (second, other) = world.spawn(|ask| ask.idempotency_key = key());
    assert!(!world.rows.workers.contains_key(&other));
    machine.start(&mut world, &id);
    assert!(matches!(
        world.fleet_reply(first),
        FleetReply::Placed {
            repeated: false,
            ..
        }
    ));
    let FleetReply::Placed { worker, repeated } = world.fleet_reply(second) else {
        panic!("the second waits for the same start");
    };
    assert_eq!((worker.row.id, repeated), (id.clone(), true));
    let refusal = world.spawn_refused(|ask| {
        ask.idempotency_key = key();
        ask.body_hash = [9; 16];
    });
    assert_eq!(refusal.category, Category::IdempotencyConflict);
    // Over a start of the plane, and after its end.
    world.crash(SECOND);
    let (third, _) = world.spawn(|ask| ask.idempotency_key = key());
    assert!(matches!(
        world.fleet_reply(third),
        FleetReply::Placed { repeated: true, .. }
    ));
}

#[test]
fn a_placement_waits_durably_and_goes_when_a_place_is_free() {
    let mut world = world();
    let mut machine = Machine::online_with(&mut world, "a", |m| m.max_workers = 1);
    let running = machine.place(&mut world);
    world.fleet_sends();
    let (waiter, id) = world.spawn(|ask| ask.queue_for = Some(SECOND * 600));
    let FleetReply::Queued { worker, .. } = world.fleet_reply(waiter) else {
        panic!("not queued");
    };
    assert_eq!(worker.state, WorkerState::Queued);
    assert!(worker.evidence.contains("a is full"), "{}", worker.evidence);
    assert_eq!(world.rows.workers[&id].state, WorkerState::Queued);
    assert_eq!(world.summary().queued, 1);
    world.crash(SECOND * 5);
    assert_eq!(world.worker(&id).state, WorkerState::Queued);
    machine.connect(&mut world);
    machine.inventory(&mut world);
    machine.beat(&mut world);
    assert!(sent_to(&mut world).is_empty(), "still full");
    machine.exits(&mut world, &running, 0, code(0), None);
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), id.clone())]);
    machine.start(&mut world, &id);
    assert_eq!(world.worker(&id).state, WorkerState::Running);
}

#[test]
fn a_placement_waits_for_a_node_that_is_away_and_for_one_that_is_made_fit() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    world.want("a", NodeWish::Cordoned);
    let (_, cordoned) = world.spawn(|ask| ask.queue_for = Some(SECOND * 600));
    world.want("a", NodeWish::Active);
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), cordoned)]);
    machine.disconnect(&mut world, "reset");
    let (_, away) = world.spawn(|ask| ask.queue_for = Some(SECOND * 600));
    world.pass(SECOND * 2);
    machine.connect(&mut world);
    machine.beat(&mut world);
    world.pass(BEAT);
    machine.beat(&mut world);
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), away)]);
}

#[test]
fn a_placement_expires_with_the_last_reason_and_can_be_cancelled_before() {
    let mut world = world();
    let (_, id) = world.spawn(|ask| ask.queue_for = Some(SECOND * 60));
    let (_, other) = world.spawn(|ask| ask.queue_for = Some(SECOND * 600));
    let waiter = world.release(&other, false);
    let FleetReply::Released { worker, ended } = world.fleet_reply(waiter) else {
        panic!("not cancelled");
    };
    assert_eq!(
        (worker.row.ended.unwrap().1, ended),
        (ExitHow::Cancelled, true)
    );
    // The time without a decider is nobody's.
    world.crash(SECOND * 300);
    world.pass(SECOND * 59);
    assert_eq!(world.worker(&id).state, WorkerState::Queued);
    world.pass(SECOND * 2);
    let view = world.worker(&id);
    assert_eq!(view.row.ended.unwrap().1, ExitHow::PlacementExpired);
    let reason = view.row.exit.unwrap().reason.unwrap();
    assert!(
        reason.starts_with("placement_expired: no_eligible_node"),
        "{reason}"
    );
    assert_eq!(world.summary().queued, 0);
}

#[test]
fn the_queue_has_a_bound() {
    let limits = Limits {
        fleet: FleetLimits {
            queue_capacity: 2,
            ..FleetLimits::default()
        },
        ..Limits::default()
    };
    let mut world = World::new(limits);
    for _ in 0..2 {
        world.spawn(|ask| ask.queue_for = Some(SECOND * 60));
    }
    let refusal = world.spawn_refused(|ask| ask.queue_for = Some(SECOND * 60));
    assert_eq!(refusal.category, Category::FleetCapacity);
}

#[test]
fn a_start_whose_link_breaks_is_refused_with_the_evidence_and_released_should_it_turn_up() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let (waiter, id) = world.spawn(|ask| ask.idempotency_key = Some("owner\0k".into()));
    machine.runs.insert(id.clone());
    machine.disconnect(&mut world, "broken pipe");
    let FleetReply::Refused(refusal) = world.fleet_reply(waiter) else {
        panic!("not refused");
    };
    assert_eq!(refusal.category, Category::NodeUnreachable);
    assert!(
        refusal.message.contains("broken pipe"),
        "{}",
        refusal.message
    );
    world.pass(SECOND);
    machine.connect(&mut world);
    let answer = machine.inventory(&mut world);
    assert_eq!(answer.verdicts[0].verdict, "release");
    // The same key may place it anew.
    machine.beat(&mut world);
    world.pass(BEAT);
    machine.beat(&mut world);
    world.fleet_sends();
    let (_, again) = world.spawn(|ask| ask.idempotency_key = Some("owner\0k".into()));
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), again)]);
}

#[test]
fn a_start_without_an_answer_may_run_and_the_inventories_say_what_became_of_it() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let (one, ran) = world.spawn(|_| {});
    let (two, never) = world.spawn(|_| {});
    world.pass_beating(&[&machine], SECOND * 50);
    for waiter in [one, two] {
        assert!(matches!(
            world.fleet_reply(waiter),
            FleetReply::StartUnconfirmed(_)
        ));
    }
    machine.runs.insert(ran.clone());
    machine.inventory(&mut world);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&ran).state, WorkerState::Running);
    assert_eq!(
        world.worker(&never).row.ended.unwrap().1,
        ExitHow::Unobserved
    );
}

#[test]
fn a_start_that_was_stored_and_perhaps_not_sent_is_sent_again_after_a_crash() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let (_, id) = world.spawn(|_| {});
    world.fleet_sends();
    world.crash(SECOND * 2);
    machine.connect(&mut world);
    machine.inventory(&mut world);
    assert_eq!(sent_to(&mut world), [("node_a".to_owned(), id.clone())]);
    machine.start(&mut world, &id);
    assert_eq!(world.worker(&id).state, WorkerState::Running);
}

#[test]
fn a_node_that_says_it_is_full_makes_room_elsewhere() {
    let mut world = world();
    let a = Machine::online_with(&mut world, "a", |m| m.max_workers = 9);
    let mut b = Machine::online_with(&mut world, "b", |m| m.max_workers = 3);
    let full = |id: &WorkerId| FleetEvent::StartAnswered {
        node: a.id.clone(),
        worker: id.clone(),
        outcome: Ok(Box::new(SpawnOutput::Refused {
            message: "no process slots".into(),
            full: true,
        })),
    };
    let (waiter, id) = world.spawn(|_| {});
    world.fleet_sends();
    world.fleet(full(&id));
    assert_eq!(sent_to(&mut world), [("node_b".to_owned(), id.clone())]);
    b.start(&mut world, &id);
    assert!(matches!(
        world.fleet_reply(waiter),
        FleetReply::Placed { .. }
    ));
    a.beat(&mut world);
    let (waiter, id) = world.spawn(|ask| ask.target.node = Some("a".into()));
    world.fleet(full(&id));
    let FleetReply::Refused(refusal) = world.fleet_reply(waiter) else {
        panic!("not refused");
    };
    assert_eq!(refusal.category, Category::FleetCapacity);
}

#[test]
fn a_shutdown_and_a_full_disk_refuse_new_workers() {
    let mut world = world();
    let _machine = Machine::online(&mut world, "a");
    world.step(muster_engine::Event::StoreRoom { full: true });
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, Category::StoreFull);
    world.step(muster_engine::Event::StoreRoom { full: false });
    world.step(muster_engine::Event::Draining);
    let refusal = world.spawn_refused(|_| {});
    assert_eq!(refusal.category, Category::ControlPlaneShutdown);
}

#[test]
fn every_placement_is_told_and_kept() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let id = machine.place(&mut world);
    machine.exits(&mut world, &id, 0, code(1), None);
    let words: Vec<_> = world
        .rows
        .fleet_history
        .iter()
        .filter(|line| line.worker.as_ref() == Some(&id))
        .filter_map(|line| line.to.as_deref())
        .collect();
    assert_eq!(words, ["starting", "running", "exited"]);
    assert_eq!(world.told(EventKind::WorkerExited), ["exit code 1"]);
}
