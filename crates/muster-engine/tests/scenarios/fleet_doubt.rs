//! Doubt about ourselves: many silent at once raise it and nothing acts, few do not; and the
//! alarm about capacity that cannot be reached.

use std::time::Duration;

use muster_engine::Limits;
use muster_engine::fleet::FleetLimits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_engine::row::EventKind;
use muster_wire::Lane;
use muster_wire::fleet::*;

use crate::machine::Machine;
use crate::world::{SECOND, World};

fn minutes(n: u32) -> Duration {
    Duration::from_secs(60) * n
}

/// Nodes count as lost soon here, so that it shows what acts.
fn world() -> World {
    World::new(Limits {
        fleet: FleetLimits {
            node_lost_after: Some(minutes(2)),
            ..FleetLimits::default()
        },
        ..Limits::default()
    })
}

fn machines(world: &mut World, count: usize) -> Vec<Machine> {
    (0..count)
        .map(|n| Machine::with_workers(world, &format!("n{n}"), 2))
        .collect()
}

fn in_state(world: &mut World, state: NodeState) -> u32 {
    let nodes = world.summary().nodes;
    nodes
        .iter()
        .find(|(s, _)| *s == state)
        .map_or(0, |(_, n)| *n)
}

/// Fault row: 40 % of 10 nodes silent at once.
#[test]
fn four_of_ten_silent_at_once_have_verdicts_and_no_actions_and_raise_an_alarm() {
    let mut world = world();
    let all = machines(&mut world, 10);
    let (silent, speaking) = all.split_at(4);
    let speaking: Vec<&Machine> = speaking.iter().collect();
    world.pass_beating(&speaking, minutes(6));
    assert_eq!(
        in_state(&mut world, NodeState::Unreachable),
        4,
        "verdicts go on"
    );
    assert_eq!(
        in_state(&mut world, NodeState::Lost),
        0,
        "and nothing acts on them"
    );
    assert!(world.told(EventKind::WorkerLost).is_empty());
    let alarms = world.told(EventKind::FleetAlarm);
    assert!(alarms[0].contains("4 of 10 nodes"), "{}", alarms[0]);
    let (_, doubt) = world.summary().doubt.expect("a doubt");
    assert!(doubt.contains("it may be us"), "{doubt}");
    let refusal = world.spawn_refused(|ask| ask.target.node = Some("n0".into()));
    assert_eq!(
        refusal.category,
        muster_wire::Category::NodeUnreachable,
        "admission goes by the verdicts"
    );
    // They speak again: it was us.
    for machine in silent {
        machine.beat(&mut world);
    }
    world.pass_beating(&all.iter().collect::<Vec<_>>(), SECOND * 10);
    assert_eq!(in_state(&mut world, NodeState::Online), 10);
    assert_eq!(world.summary().doubt, None);
}

/// Fault row: the same for 1 of 2; and for 2 of 3, and for 3 of 10.
#[test]
fn few_are_handled_one_by_one() {
    for (silent, all) in [(1, 2), (2, 3), (3, 10)] {
        let mut world = world();
        let machines = machines(&mut world, all);
        let speaking: Vec<&Machine> = machines.iter().skip(silent).collect();
        world.pass_beating(&speaking, minutes(6));
        assert_eq!(in_state(&mut world, NodeState::Lost) as usize, silent);
        assert_eq!(world.told(EventKind::WorkerLost).len(), silent * 2);
        assert_eq!(world.summary().doubt, None);
    }
}

#[test]
fn those_that_fall_silent_one_by_one_over_a_long_time_raise_no_doubt() {
    let mut world = world();
    let machines = machines(&mut world, 10);
    for n in 0..=5 {
        let speaking: Vec<&Machine> = machines.iter().skip(n).collect();
        world.pass_beating(&speaking, minutes(5));
        assert_eq!(world.summary().doubt, None, "{n}");
    }
    assert_eq!(in_state(&mut world, NodeState::Lost), 5);
}

#[test]
fn a_doubt_ends_after_a_quarter_of_an_hour_and_then_they_are_taken_at_their_word() {
    let mut world = world();
    let machines = machines(&mut world, 10);
    let speaking: Vec<&Machine> = machines.iter().skip(5).collect();
    world.pass_beating(&speaking, minutes(15));
    assert_eq!(in_state(&mut world, NodeState::Lost), 0);
    world.pass_beating(&speaking, minutes(1));
    assert_eq!(world.summary().doubt, None);
    assert_eq!(in_state(&mut world, NodeState::Lost), 5);
    assert_eq!(world.told(EventKind::WorkerLost).len(), 10);
}

#[test]
fn an_operator_ends_a_doubt_and_it_is_not_raised_again_for_the_same_silence() {
    let mut world = world();
    let machines = machines(&mut world, 10);
    let speaking: Vec<&Machine> = machines.iter().skip(5).collect();
    world.pass_beating(&speaking, minutes(4));
    assert!(world.summary().doubt.is_some());
    let waiter = world.waiter();
    world.fleet(FleetEvent::DoubtEnded {
        waiter,
        by: "ada".into(),
    });
    assert!(matches!(world.fleet_reply(waiter), FleetReply::Taken));
    assert_eq!(in_state(&mut world, NodeState::Lost), 5);
    world.pass_beating(&speaking, minutes(1));
    assert_eq!(world.summary().doubt, None);
    let waiter = world.waiter();
    world.fleet(FleetEvent::DoubtEnded {
        waiter,
        by: "ada".into(),
    });
    assert!(matches!(world.fleet_reply(waiter), FleetReply::Conflict(_)));
}

#[test]
fn goodbyes_and_retirements_are_no_silence() {
    let mut world = world();
    let mut all = machines(&mut world, 10);
    for machine in all.iter_mut().take(6) {
        world.fleet(FleetEvent::Goodbye {
            node: machine.id.clone(),
            link: machine.link.unwrap(),
            reason: "upgrade".into(),
            workers_stay: true,
        });
        machine.disconnect(&mut world, "closed");
    }
    assert_eq!(world.summary().doubt, None);
}

#[test]
fn agents_that_fall_silent_at_once_are_not_orphaned() {
    let mut world = World::new(Limits::default());
    let name = |n: u32| format!("agent{n}");
    let url = |n: u32| format!("http://h:{n}");
    for n in 0..6 {
        world.register(&name(n), "i", &url(n));
        world.beat(&name(n), "i");
    }
    let (_, id) = world.call(Lane::Async, "agent0.f");
    world.accept(&id);
    let speak = |world: &mut World, wait: Duration| {
        let until = world.now + wait;
        while world.now < until {
            world.pass(SECOND * 2);
            for n in 4..6 {
                world.beat(&name(n), "i");
            }
            world.probe_refused();
        }
    };
    speak(&mut world, minutes(5));
    assert_eq!(
        world.status(&id),
        muster_wire::Status::Running,
        "no orphaning"
    );
    assert!(world.told(EventKind::FleetAlarm)[0].contains("4 of 6 agents"));
    assert!(
        !world.told(EventKind::InstanceGone).is_empty(),
        "verdicts go on"
    );
    let (waiter, _) = world.call(Lane::Async, "agent0.f");
    assert_eq!(
        world.refused(waiter),
        muster_wire::Category::NodeUnavailable,
        "admission goes by the verdicts"
    );
    speak(&mut world, minutes(12));
    assert_eq!(
        world.status(&id),
        muster_wire::Status::Failed,
        "taken at their word in the end"
    );
}

#[test]
fn one_silent_agent_is_orphaned_as_ever() {
    let mut world = World::new(Limits::default());
    world.register("a", "i", "http://h:1");
    world.beat("a", "i");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    for _ in 0..60 {
        world.pass(SECOND * 2);
        world.probe_refused();
    }
    assert_eq!(world.status(&id), muster_wire::Status::Failed);
}

#[test]
fn our_own_lateness_is_added_to_the_silence_of_agents_too() {
    let mut world = World::new(Limits::default());
    world.register("a", "i", "http://h:1");
    world.beat("a", "i");
    world.now = world.now + SECOND * 30;
    world.fleet(FleetEvent::WasLate { by: SECOND * 30 });
    assert!(!world.probing(), "the silence was ours");
    world.pass(SECOND * 16);
    assert!(world.probing());
}

/// Work that gathers silently on what is left was part of the incident.
#[test]
fn the_share_that_can_be_reached_is_shown_and_its_fall_alarmed() {
    let mut world = World::new(Limits::default());
    let mut all: Vec<Machine> = (0..3)
        .map(|n| Machine::online_with(&mut world, &format!("n{n}"), |m| m.max_workers = 10))
        .collect();
    let summary = world.summary();
    assert_eq!(
        (summary.capacity.value, summary.reachable_share.value),
        (Some(30), Some(1.0))
    );
    all[0].disconnect(&mut world, "reset");
    let speaking: Vec<&Machine> = all.iter().skip(1).collect();
    world.pass_beating(&speaking, SECOND * 50);
    assert_eq!(world.summary().capacity_alarm, None, "suspect is no alarm");
    assert_eq!(world.summary().capacity_unknown.value, Some(10));
    world.pass_beating(&speaking, SECOND * 20);
    let summary = world.summary();
    let unknown = summary.capacity_unknown.value;
    assert_eq!((summary.capacity.value, unknown), (Some(20), Some(10)));
    let alarm = summary.capacity_alarm.expect("an alarm");
    assert!(alarm.contains("n0") && alarm.contains("66 %"), "{alarm}");
    all[0].connect(&mut world);
    all[0].beat(&mut world);
    world.pass_beating(&all.iter().collect::<Vec<_>>(), SECOND * 10);
    assert_eq!(world.summary().capacity_alarm, None);
    assert_eq!(world.told(EventKind::FleetAlarm).len(), 2);
}
