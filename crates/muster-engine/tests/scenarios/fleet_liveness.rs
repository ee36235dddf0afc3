//! Whether a node is there: facts, verdicts, grace, flapping, pins, and what nobody can know.

use std::time::Duration;

use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits};
use muster_wire::Category;
use muster_wire::fleet::*;

use crate::machine::{BEAT, Machine};
use crate::world::{SECOND, World};

fn world() -> World {
    World::new(Limits::default())
}

fn minutes(n: u32) -> Duration {
    Duration::from_secs(60) * n
}

#[test]
fn a_node_is_connecting_until_its_first_beat_and_online_from_then_on() {
    let mut world = world();
    let mut machine = Machine::enrolled(&mut world, "a");
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Connecting);
    assert_eq!(view.workers.value, None, "never heard is not 0");
    assert!(
        view.evidence.contains("never connected"),
        "{}",
        view.evidence
    );
    machine.connect(&mut world);
    assert_eq!(world.node("a").state, NodeState::Connecting);
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Online);
    machine.inventory(&mut world);
    assert_eq!(
        world.node("a").workers.value,
        Some(0),
        "a reachable one without workers says 0"
    );
}

#[test]
fn beats_of_a_healthy_node_write_nothing() {
    let mut world = world();
    let machine = Machine::with_workers(&mut world, "a", 3);
    let (events, nodes) = (world.rows.events.len(), world.rows.nodes.clone());
    world.pass_beating(&[&machine], minutes(30));
    assert_eq!(world.rows.events.len(), events);
    assert_eq!(world.rows.nodes, nodes);
    let view = world.worker(machine.runs.first().unwrap());
    let confirmed = view.row.confirmed_at.unwrap();
    assert!(
        world.now.since(confirmed) <= BEAT,
        "a beat confirms what it names"
    );
}

#[test]
fn one_missed_beat_is_nothing_but_a_counter() {
    let mut world = world();
    let machine = Machine::with_workers(&mut world, "a", 11);
    let events = world.rows.events.len();
    world.pass(BEAT * 2 + SECOND);
    let view = world.node("a");
    assert_eq!((view.state, view.beats_missed), (NodeState::Online, 2));
    assert_eq!(world.rows.events.len(), events);
    machine.beat(&mut world);
    assert_eq!(world.node("a").beats_missed, 0);
    assert_eq!(world.rows.events.len(), events);
}

/// The first incident: sockets open, nothing flows, and the registry said offline with 0 agents.
#[test]
fn a_link_alive_only_as_a_socket_is_noticed_asked_and_never_shown_as_zero() {
    let mut world = world();
    let machine = Machine::with_workers(&mut world, "finn", 5);
    let worker = machine.runs.first().unwrap().clone();
    world.fleet_sends();
    world.pass(BEAT * 3 + SECOND);
    let view = world.node("finn");
    assert_eq!(view.state, NodeState::Suspect);
    assert!(
        view.evidence
            .contains("its socket is open, but no beat for 16 s"),
        "{}",
        view.evidence
    );
    assert_eq!(view.workers.value, Some(5), "suspect changes nothing else");
    let asked = world.fleet_sends();
    assert!(
        matches!(asked.as_slice(), [FleetSend::Ask { .. }]),
        "one application request over the open link: {asked:?}"
    );
    assert_eq!(world.worker(&worker).state, WorkerState::Running);
    let refusal = world.spawn_refused(|ask| ask.target.node = Some("finn".into()));
    assert_eq!(refusal.category, Category::NodeUnreachable);
    assert_eq!(refusal.retry_after, Some(5));
    assert!(refusal.message.contains("suspect"), "{}", refusal.message);

    world.pass(minutes(1));
    let view = world.node("finn");
    assert_eq!(view.state, NodeState::Unreachable);
    assert_eq!(view.workers.value, None, "0 would be a claim");
    assert!(view.workers.reason.is_some());
    assert_eq!(view.workers.last.map(|(n, _)| n), Some(5));
    assert_eq!(view.worker_names.len(), 5, "names as last known");
    let shown = world.worker(&worker);
    assert_eq!(shown.state, WorkerState::Unknown);
    assert_eq!(shown.unknown_because, Some("node_unreachable"));
    assert!(
        shown.evidence.contains("last confirmed"),
        "{}",
        shown.evidence
    );
    let refusal = world.spawn_refused(|ask| ask.target.node = Some("finn".into()));
    assert_eq!(refusal.category, Category::NodeUnreachable);
    assert_eq!(refusal.passed_over[0].why, "unreachable");
    assert!(refusal.passed_over[0].evidence.contains("no beat for"));
    world.pass(minutes(600));
    assert_eq!(
        world.node("finn").state,
        NodeState::Unreachable,
        "never lost by itself"
    );
    assert!(world.told(EventKind::WorkerExited).is_empty());
    assert_eq!(
        world.node_states(&machine.id),
        ["online", "suspect", "unreachable"]
    );
}

#[test]
fn the_answer_to_our_question_keeps_a_node_suspect_and_not_unreachable() {
    let mut world = world();
    let machine = Machine::online(&mut world, "a");
    for _ in 0..10 {
        world.pass(BEAT * 3 + SECOND);
        let asked = world.fleet_sends();
        assert!(
            asked
                .iter()
                .any(|send| matches!(send, FleetSend::Ask { .. }))
        );
        world.fleet(FleetEvent::AskAnswered {
            node: machine.id.clone(),
            link: machine.link.unwrap(),
        });
        assert_eq!(world.node("a").state, NodeState::Suspect);
    }
    machine.beat(&mut world);
    assert_eq!(
        world.node("a").state,
        NodeState::Suspect,
        "recovery needs two beats"
    );
    world.pass(BEAT);
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Online);
}

#[test]
fn a_closed_socket_is_suspect_at_once_and_no_last_seen() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    world.pass(SECOND * 2);
    machine.disconnect(&mut world, "connection reset");
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Suspect);
    assert!(view.evidence.contains("connection reset"));
    let heard = view.row.heard_at.unwrap();
    assert_eq!(
        world.now.since(heard),
        SECOND * 2,
        "the close is not a frame of it"
    );
    let (at, next) = view.next.unwrap();
    assert_eq!(at, world.now + minutes(1));
    assert!(next.contains("unknown"));
}

/// Fault row: dropped silently both ways, then a new connection.
#[test]
fn everything_is_reconciled_with_the_first_inventory_of_the_new_connection() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 4);
    let worker = machine.runs.first().unwrap().clone();
    machine.disconnect(&mut world, "timed out");
    world.pass(minutes(5));
    assert_eq!(world.worker(&worker).state, WorkerState::Unknown);
    machine.connect(&mut world);
    assert_eq!(
        world.node("a").state,
        NodeState::Unreachable,
        "a socket proves nothing"
    );
    world.pass(SECOND);
    let answer = machine.inventory(&mut world);
    assert!(
        answer
            .verdicts
            .iter()
            .all(|item| item.verdict == "confirmed")
    );
    assert_eq!(world.worker(&worker).state, WorkerState::Running);
    assert_eq!(world.node("a").state, NodeState::Connecting);
    assert_eq!(world.node("a").workers.value, Some(4));
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Connecting);
    world.pass(BEAT);
    machine.beat(&mut world);
    assert_eq!(
        world.node("a").state,
        NodeState::Online,
        "usable after two beats"
    );
    assert_eq!(world.told(EventKind::WorkerExited).len(), 0);

    assert_eq!(
        world.told(EventKind::WorkerRunning).len(),
        4,
        "nothing was restarted"
    );
}

#[test]
fn repeated_flips_are_damped_and_shown_and_end() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    world.pass_beating(&[&machine], minutes(3));
    // The first blip: back after two beats.
    machine.disconnect(&mut world, "reset");
    world.pass(SECOND);
    machine.connect(&mut world);
    machine.beat(&mut world);
    world.pass(BEAT);
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Online);
    assert!(!world.node("a").flapping);
    // The second one within the grace: held for the rest of it.
    machine.disconnect(&mut world, "reset");
    world.pass(SECOND);
    machine.connect(&mut world);
    world.pass_beating(&[&machine], SECOND * 15);
    let view = world.node("a");
    assert_eq!((view.state, view.flapping), (NodeState::Suspect, true));
    assert!(
        view.evidence.contains("changes too often"),
        "{}",
        view.evidence
    );
    world.pass_beating(&[&machine], SECOND * 50);
    let view = world.node("a");
    assert_eq!((view.state, view.flapping), (NodeState::Online, false));
    let flips = world.node_states(&machine.id).len();
    for _ in 0..20 {
        machine.disconnect(&mut world, "reset");
        world.pass(SECOND);
        machine.connect(&mut world);
        world.pass_beating(&[&machine], SECOND * 14);
    }
    let flips = world.node_states(&machine.id).len() - flips;
    assert!(flips <= 12, "{flips} changes within five minutes");
}

#[test]
fn a_pin_goes_before_what_is_computed_and_is_shown() {
    let mut world = world();
    let machine = Machine::online(&mut world, "a");
    let pin = |world: &mut World, state| {
        let waiter = world.waiter();
        world.fleet(FleetEvent::NodePinned {
            waiter,
            node: "a".into(),
            state,
            by: "ada".into(),
            reason: Some("it is being moved".into()),
        });
        world.fleet_reply(waiter)
    };
    pin(&mut world, Some(NodeState::Suspect));
    world.pass_beating(&[&machine], minutes(2));
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Suspect);
    assert!(view.evidence.contains("pinned by ada"), "{}", view.evidence);
    assert!(matches!(
        pin(&mut world, Some(NodeState::Lost)),
        FleetReply::Conflict(_)
    ));
    pin(&mut world, None);
    assert_eq!(world.node("a").state, NodeState::Online);
}

#[test]
fn a_broker_is_online_by_its_inventory_and_beats_alone_prove_nothing() {
    let mut world = world();
    let mut machine = Machine::enrolled_as(&mut world, "broker", NodeKind::Relay);
    machine.connect(&mut world);
    machine.inventory(&mut world);
    machine.beat(&mut world);
    assert_eq!(world.node("broker").state, NodeState::Online);
    // Two beats missed, the third comes in time.
    world.pass(SECOND * 36);
    assert_eq!(world.node("broker").state, NodeState::Online);
    machine.beat(&mut world);
    for _ in 0..9 {
        world.pass(SECOND * 12);
        machine.beat(&mut world);
    }
    // 144 s after its inventory.
    let view = world.node("broker");
    assert_eq!(view.state, NodeState::Suspect, "{}", view.evidence);
    machine.inventory(&mut world);
    machine.beat(&mut world);
    world.pass(SECOND * 12);
    machine.beat(&mut world);
    assert_eq!(world.node("broker").state, NodeState::Online);
    // 11.x: no proof is asked for, and none is claimed.
    machine.proves = false;
    machine.connect(&mut world);
    for _ in 0..20 {
        machine.beat(&mut world);
        world.pass(SECOND * 12);
    }
    let view = world.node("broker");
    assert_eq!(view.state, NodeState::Online);
    assert!(
        view.evidence.contains("prove no application"),
        "{}",
        view.evidence
    );
}

#[test]
fn late_frames_of_a_fenced_link_are_counted_and_dropped() {
    let mut world = world();
    let mut machine = Machine::online(&mut world, "a");
    let old = machine.link.unwrap();
    world.fleet_sends();
    machine.connect(&mut world);
    let closed = world.fleet_sends();
    assert!(
        matches!(closed.as_slice(), [FleetSend::Close { link, .. }] if *link == old),
        "{closed:?}"
    );
    assert_eq!(
        world.node("a").state,
        NodeState::Online,
        "no flap by a newer connection"
    );
    let beat = world.node("a").row.beat;
    world.pass(SECOND);
    machine.beat_over(&mut world, old);
    let view = world.node("a");
    assert_eq!((view.late_frames, view.row.beat), (1, beat));
    world.fleet(FleetEvent::LinkClosed {
        node: machine.id.clone(),
        link: old,
        why: "fenced".into(),
    });
    assert_eq!(
        world.node("a").state,
        NodeState::Online,
        "the end of the old one is no news"
    );
}

/// Fault row: plane kill -9 and back.
#[test]
fn after_a_start_only_silence_is_forgiven_and_all_are_confirmed_with_the_first_inventory() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 3);
    let mut gone = Machine::with_workers(&mut world, "b", 1);
    let worker = machine.runs.first().unwrap().clone();
    let ended = gone.place(&mut world);
    gone.exits(&mut world, &ended, 0, crate::machine::code(7), None);
    world.want("b", NodeWish::Cordoned);
    let events = world.rows.events.len();
    world.crash(SECOND * 30);
    machine.link = None;
    gone.link = None;
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Connecting);
    assert!(
        view.evidence.contains("the plane was away"),
        "{}",
        view.evidence
    );
    assert_eq!(view.workers.value, None);
    assert_eq!(world.worker(&worker).state, WorkerState::Unknown);
    assert_eq!(world.worker(&ended).state, WorkerState::Exited);
    assert_eq!(world.node("b").row.wish, NodeWish::Cordoned);
    world.pass(SECOND * 8);
    machine.connect(&mut world);
    machine.inventory(&mut world);
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Online);
    assert_eq!(world.worker(&worker).state, WorkerState::Running);
    // The other one does not come back: suspect after one whole grace, and nobody is swept.
    world.pass_beating(&[&machine], SECOND * 51);
    assert_eq!(world.node("b").state, NodeState::Connecting);
    world.pass_beating(&[&machine], SECOND * 2);
    assert_eq!(world.node("b").state, NodeState::Suspect);
    world.pass_beating(&[&machine], minutes(2));
    assert_eq!(world.node("b").state, NodeState::Unreachable);
    let exited = world.rows.events[events..]
        .iter()
        .filter(|line| line.kind == EventKind::WorkerExited);
    assert_eq!(exited.count(), 0);
}

#[test]
fn what_was_unreachable_before_a_start_still_is() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 1);
    machine.disconnect(&mut world, "reset");
    world.pass(minutes(10));
    let since = world.node("a").state_at;
    world.crash(minutes(1));
    let view = world.node("a");
    assert_eq!((view.state, view.state_at), (NodeState::Unreachable, since));
}

#[test]
fn our_own_lateness_is_added_to_every_silence() {
    let mut world = world();
    let machine = Machine::online(&mut world, "a");
    // The plane stood still for 40 s: beats wait in its sockets, and nobody was silent.
    world.now = world.now + SECOND * 40;
    world.fleet(FleetEvent::WasLate { by: SECOND * 40 });
    assert_eq!(world.node("a").state, NodeState::Online);
    world.pass(BEAT * 2);
    assert_eq!(world.node("a").state, NodeState::Online);
    world.pass(BEAT + SECOND);
    assert_eq!(world.node("a").state, NodeState::Suspect);
    machine.beat(&mut world);
    world.step(Event::Tick);
}

#[test]
fn a_node_is_lost_by_policy_only_where_one_is_set_and_comes_back_with_its_workers() {
    let limits = Limits {
        fleet: FleetLimits {
            node_lost_after: Some(minutes(10)),
            ..FleetLimits::default()
        },
        ..Limits::default()
    };
    let mut world = World::new(limits);
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    let worker = machine.runs.first().unwrap().clone();
    machine.disconnect(&mut world, "reset");
    world.pass(minutes(10));
    assert_eq!(world.node("a").state, NodeState::Unreachable);
    world.pass(minutes(2));
    assert_eq!(world.node("a").state, NodeState::Lost);
    let shown = world.worker(&worker);
    assert_eq!(shown.state, WorkerState::Lost);
    assert!(
        shown.evidence.contains("declared lost"),
        "{}",
        shown.evidence
    );
    // They ran all the time: what was concluded is taken back.
    machine.connect(&mut world);
    machine.inventory(&mut world);
    assert_eq!(world.worker(&worker).state, WorkerState::Running);
    machine.beat(&mut world);
    world.pass(BEAT);
    machine.beat(&mut world);
    assert_eq!(world.node("a").state, NodeState::Online);
}

#[test]
fn a_goodbye_is_a_fact_of_its_own() {
    let mut world = world();
    let mut machine = Machine::with_workers(&mut world, "a", 2);
    world.fleet(FleetEvent::Goodbye {
        node: machine.id.clone(),
        link: machine.link.unwrap(),
        reason: "SIGTERM".into(),
        workers_stay: true,
    });
    machine.disconnect(&mut world, "closed by the peer");
    let view = world.node("a");
    assert_eq!(view.state, NodeState::Suspect);
    assert!(
        view.evidence
            .contains("after it said goodbye (SIGTERM; its workers go on)"),
        "{}",
        view.evidence
    );
    assert!(view.facts.iter().any(|fact| fact.what == "goodbye"));
}
