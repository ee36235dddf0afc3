//! Workers that are agents: linked by the key with which they register; their exits and restarts
//! are evidence, their node's silence is none.

use muster_engine::Limits;
use muster_engine::fleet::effect::*;
use muster_engine::fleet::event::FleetEvent;
use muster_engine::row::EventKind;
use muster_wire::fleet::*;
use muster_wire::{AgentId, Lane, Status, WorkerId};

use crate::machine::{Machine, code};
use crate::world::{SECOND, World};

/// A worker on a machine, registered as the agent `a`.
pub(crate) fn agent_on(world: &mut World, name: &str, mode: RestartMode) -> (Machine, WorkerId) {
    let mut machine = Machine::online(world, name);
    let (_, id) = world.spawn(|ask| {
        ask.target.node = Some(name.into());
        ask.restart.mode = mode;
    });
    machine.start(world, &id);
    register(world, &id, "i1");
    machine.inventory(world);
    (machine, id)
}

pub(crate) fn register(world: &mut World, id: &WorkerId, instance: &str) {
    world.register_as("a", instance, "http://localhost:8001", |r| {
        r.worker = Some(id.as_str().into());
    });
    world.beat("a", instance);
}

fn routes(world: &mut World) -> Vec<(String, Option<String>)> {
    let notices = std::mem::take(&mut world.fleet_notices).into_iter();
    notices
        .filter_map(|notice| match notice {
            FleetNotice::Route { worker, node } => {
                Some((worker.to_string(), node.map(|node| node.to_string())))
            }
            FleetNotice::Log { .. } | FleetNotice::Forget(_) => None,
        })
        .collect()
}

#[test]
fn a_registration_with_a_worker_s_key_links_the_two_and_routes_calls_through_its_node() {
    let mut world = World::new(Limits::default());
    let (machine, id) = agent_on(&mut world, "m", RestartMode::Never);
    assert_eq!(world.rows.workers[&id].agent, Some(AgentId::trusted("a")));
    let to_node = (id.to_string(), Some(machine.id.to_string()));
    assert_eq!(routes(&mut world), std::slice::from_ref(&to_node));
    let puts = world.rows.events.len();
    register(&mut world, &id, "i1");
    assert!(routes(&mut world).is_empty(), "once");
    assert!(world.rows.events.len() - puts <= 2);
    world.crash(SECOND);
    assert_eq!(routes(&mut world), [to_node], "and again after a start");
}

#[test]
fn its_exit_is_evidence_at_once() {
    let mut world = World::new(Limits::default());
    let (mut machine, id) = agent_on(&mut world, "m", RestartMode::Never);
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    routes(&mut world);
    machine.exits(&mut world, &id, 0, code(1), None);
    assert_eq!(world.status(&taken), Status::Failed);
    assert_eq!(
        world.category(&taken),
        Some(muster_wire::Category::AgentRestartOrphaned)
    );
    assert!(world.told(EventKind::InstanceGone)[0].contains("exit code 1"));
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(
        world.refused(waiter),
        muster_wire::Category::NodeUnavailable
    );
    assert_eq!(routes(&mut world), [(id.to_string(), None)]);
}

#[test]
fn while_its_node_starts_it_again_calls_wait_and_the_new_process_takes_them() {
    let mut world = World::new(Limits::default());
    let (mut machine, id) = agent_on(&mut world, "m", RestartMode::OnFailure);
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    // Longer than the grace for a restart: its node's back-off is believed.
    machine.exits(&mut world, &id, 0, code(1), Some(SECOND * 40));
    assert_eq!(
        world.status(&taken),
        Status::Failed,
        "what the process had is orphaned"
    );
    let (_, waits) = world.call(Lane::Async, "a.f");
    let last = world.dispatched.last();
    if last.is_some_and(|last| last.attempt.execution == waits) {
        world.refuse_dial(&waits);
    }
    world.pass(SECOND * 38);
    assert_eq!(world.status(&waits), Status::Running, "absorbed");
    world.fleet(FleetEvent::WorkerSeen {
        node: machine.id.clone(),
        link: machine.link.unwrap(),
        report: Box::new(muster_wire::fleet::frame::WorkerReport {
            restarts: 1,
            ..machine.report(&id)
        }),
        waiter: None,
    });
    register(&mut world, &id, "i2");
    world.dialled("a", true);
    let last = world.dispatched.last().expect("a dispatch");
    assert_eq!(
        (last.attempt.execution.clone(), last.to.instance.as_str()),
        (waits, "i2")
    );
}

#[test]
fn an_unreachable_node_is_no_exit_of_its_agents() {
    let mut world = World::new(Limits::default());
    let (mut machine, id) = agent_on(&mut world, "m", RestartMode::Never);
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    machine.disconnect(&mut world, "reset");
    for _ in 0..100 {
        world.pass(SECOND * 3);
        world.probe_refused();
    }
    assert_eq!(world.worker(&id).state, WorkerState::Unknown);
    assert_eq!(
        world.status(&taken),
        Status::Running,
        "nobody knows, so nothing ends"
    );
    let degraded = world.told(EventKind::InstanceDegraded);
    assert!(
        degraded
            .iter()
            .any(|text| text.contains("its node m is suspect")),
        "{degraded:?}"
    );
    let waiter = world.waiter();
    world.step(muster_engine::Event::Asked {
        question: muster_engine::event::Question::Agent(AgentId::trusted("a")),
        waiter,
    });
    let muster_engine::Reply::Agent(Some(agent)) = world.reply(waiter) else {
        panic!("no agent");
    };
    let limits = muster_engine::liveness::LivenessLimits {
        restart_grace: SECOND * 15,
    };
    let verdict = agent.instances[0].verdict(world.now, limits);
    assert!(
        verdict.evidence.contains("its node m is unreachable"),
        "{}",
        verdict.evidence
    );
    // Back: the same process answers, and is called again.
    machine.connect(&mut world);
    machine.inventory(&mut world);
    world.beat("a", "i1");
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&next), Status::Running);
    assert_eq!(world.dispatched.last().unwrap().attempt.execution, next);
}

#[test]
fn a_lost_node_takes_its_agents_with_it() {
    let mut world = World::new(Limits::default());
    let (mut machine, _) = agent_on(&mut world, "m", RestartMode::Always);
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    machine.disconnect(&mut world, "reset");
    world.declare_lost("m");
    assert_eq!(world.status(&taken), Status::Failed);
    assert!(world.told(EventKind::InstanceGone)[0].contains("its node is lost"));
}

#[test]
fn a_goodbye_under_a_policy_that_starts_it_again_is_waited_out() {
    for (mode, down) in [(RestartMode::Always, false), (RestartMode::Never, true)] {
        let mut world = World::new(Limits::default());
        let (_machine, _) = agent_on(&mut world, "m", mode);
        world.goodbye("a");
        let (waiter, id) = world.call(Lane::Async, "a.f");
        if down {
            assert_eq!(
                world.refused(waiter),
                muster_wire::Category::NodeUnavailable
            );
        } else {
            assert_eq!(world.status(&id), Status::Running);
        }
    }
}

#[test]
fn a_released_agent_is_not_waited_for() {
    let mut world = World::new(Limits::default());
    let (mut machine, id) = agent_on(&mut world, "m", RestartMode::Always);
    world.release(&id, false);
    world.goodbye("a");
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(
        world.refused(waiter),
        muster_wire::Category::NodeUnavailable
    );
    machine.exits(&mut world, &id, 0, code(0), None);
    assert_eq!(world.worker(&id).row.ended.unwrap().1, ExitHow::Released);
}

#[test]
fn a_process_that_muster_dev_supervises_needs_no_row() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| {
        r.worker = Some("wrk_dev".into())
    });
    world.beat("a", "i1");
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    world.step(muster_engine::Event::WorkerChanged {
        worker: "wrk_dev".into(),
        change: muster_engine::event::WorkerChange::Exited("exit 1".into()),
    });
    assert_eq!(world.status(&taken), Status::Failed);
    assert!(world.rows.workers.is_empty());
}
