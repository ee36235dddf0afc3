//! LLM circuits: closed, open after failed checks, half open after the recovery time.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::effect::{CircuitState, Reply};
use muster_engine::event::Question;
use muster_engine::limits::LlmLimits;
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits};
use muster_wire::{Category, Lane};

use crate::world::{SECOND, World};

fn world() -> World {
    let mut world = World::new(Limits {
        llm: LlmLimits {
            endpoints: vec!["main".into(), "spare".into()],
            failure_threshold: 2,
            half_open_probes: 2,
            ..LlmLimits::default()
        },
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

fn checked(world: &mut World, endpoint: &str, good: bool) {
    world.step(Event::LlmChecked {
        endpoint: endpoint.into(),
        error: (!good).then(|| "connection refused".into()),
    });
}

fn call(world: &mut World, endpoint: &str) -> muster_engine::event::Waiter {
    let mut submission = world.submission(Lane::Async, "a.f");
    submission.llm_endpoint = Some(endpoint.into());
    world.submit(submission).0
}

fn state(world: &mut World, endpoint: &str) -> CircuitState {
    let waiter = world.waiter();
    world.step(Event::Asked {
        question: Question::Circuits,
        waiter,
    });
    match world.reply(waiter) {
        Reply::Circuits(all) => all.into_iter().find(|c| *c.endpoint == *endpoint).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn checks(world: &World, endpoint: &str) -> usize {
    let sent = world.llm_checks.iter();
    sent.filter(|name: &&Arc<str>| ***name == *endpoint).count()
}

#[test]
fn the_first_checks_go_out_at_the_start_and_then_each_interval() {
    let mut world = world();
    world.tick();
    assert_eq!((checks(&world, "main"), checks(&world, "spare")), (1, 1));
    world.pass(10 * SECOND);
    assert_eq!(checks(&world, "main"), 1, "one is under way");
    checked(&mut world, "main", true);
    world.pass(15 * SECOND);
    assert_eq!((checks(&world, "main"), checks(&world, "spare")), (2, 1));
    let state = state(&mut world, "main");
    assert_eq!((state.state, state.failures), ("closed", 0));
}

#[test]
fn it_opens_after_failures_in_a_row_and_refuses_with_the_window_that_is_left() {
    let mut world = world();
    world.tick();
    checked(&mut world, "main", false);
    let passes = call(&mut world, "main");
    assert!(
        matches!(world.reply(passes), Reply::Accepted(_)),
        "one is not enough"
    );
    world.pass(15 * SECOND);
    checked(&mut world, "main", false);
    world.pass(Duration::from_millis(10_500));
    let refused = call(&mut world, "main");
    match world.reply(refused) {
        Reply::Refused(refusal) => {
            assert_eq!(refusal.category(), Category::LlmUnavailable);
            assert_eq!(refusal.retry_after(), Some(20), "19.5 s are left");
        }
        other => panic!("{other:?}"),
    }
    assert!(world.rows.executions.len() == 1, "a refusal has no row");
    for endpoint in ["spare", "nobody's"] {
        let passes = call(&mut world, endpoint);
        assert!(
            matches!(world.reply(passes), Reply::Accepted(_)),
            "{endpoint}"
        );
    }
    let told = world.rows.events.iter();
    let told: Vec<_> = told
        .filter(|e| e.kind == EventKind::LlmCircuitChanged)
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].reason.as_deref(), Some("open"));
}

#[test]
fn half_open_passes_and_good_probes_close_it() {
    let mut world = world();
    world.tick();
    checked(&mut world, "main", false);
    checked(&mut world, "main", false);
    let before = checks(&world, "main");
    world.pass(30 * SECOND);
    assert_eq!(checks(&world, "main"), before + 1);
    assert_eq!(state(&mut world, "main").state, "half_open");
    let passes = call(&mut world, "main");
    assert!(matches!(world.reply(passes), Reply::Accepted(_)));
    checked(&mut world, "main", true);
    assert_eq!(state(&mut world, "main").state, "half_open");
    world.pass(15 * SECOND);
    checked(&mut world, "main", true);
    assert_eq!(state(&mut world, "main").state, "closed");
}

#[test]
fn a_bad_probe_opens_it_again_for_a_whole_window() {
    let mut world = world();
    world.tick();
    checked(&mut world, "main", false);
    checked(&mut world, "main", false);
    world.pass(30 * SECOND);
    checked(&mut world, "main", false);
    let refused = call(&mut world, "main");
    match world.reply(refused) {
        Reply::Refused(refusal) => assert_eq!(refusal.retry_after(), Some(30)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_knows_nothing_and_lets_calls_pass() {
    let mut world = world();
    world.tick();
    checked(&mut world, "main", false);
    checked(&mut world, "main", false);
    world.crash(SECOND);
    assert_eq!(state(&mut world, "main").state, "closed");
    world.tick();
    let passes = call(&mut world, "main");
    assert!(matches!(world.reply(passes), Reply::Accepted(_)));
}

#[test]
fn a_check_that_never_ends_is_made_again() {
    let mut world = world();
    world.tick();
    let before = checks(&world, "main");
    world.pass(150 * SECOND);
    assert_eq!(checks(&world, "main"), before + 1);
}

#[test]
fn without_endpoints_nothing_is_checked() {
    let mut world = World::new(Limits::default());
    world.pass(100 * SECOND);
    assert!(world.llm_checks.is_empty());
}
