//! Who is at an address: others, the same again, two at once, or another principal.

use std::time::Duration;

use muster_engine::{Event, Limits, Reply, Send};
use muster_wire::{Category, Lane, Status};

use super::{beating, world};
use crate::world::{SECOND, World};

#[test]
fn two_processes_behind_one_address_share_it_when_both_beat() {
    let mut world = world();
    world.register("a", "i2", "http://h:1");
    world.pass(SECOND);
    world.beat("a", "i1");
    world.beat("a", "i2");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    assert_eq!(world.rows.attempts[&(id.clone(), 1)].candidates.len(), 2);
    // One of them falls silent: the other may have it.
    beating(&mut world, "a", "i2", Duration::from_secs(200));
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn a_process_replaced_at_its_address_is_gone_when_it_stays_silent() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.register("a", "i2", "http://h:1");
    beating(&mut world, "a", "i2", Duration::from_secs(50));
    assert_eq!(world.status(&id), Status::Running, "it has the drain grace");
    beating(&mut world, "a", "i2", Duration::from_secs(30));
    assert_eq!(world.category(&id), Some(Category::AgentRestartOrphaned));
}

#[test]
fn an_agent_that_takes_anothers_address_is_never_called_as_the_other() {
    let mut world = World::new(Limits::default());
    world.register("a", "a1", "http://h:1");
    world.register("b", "b1", "http://h:2");
    world.beat("a", "a1");
    world.beat("b", "b1");
    // Both restart; a comes back first, on b's port.
    world.register("a", "a2", "http://h:2");
    let (_, to_b) = world.call(Lane::Async, "b.f");
    assert_eq!(world.sent(&to_b), 0, "b's address belongs to a now");
    let (_, to_a) = world.call(Lane::Async, "a.f");
    assert_eq!(&*world.dispatch_of(&to_a).unwrap().base_url, "http://h:2");
    world.register("b", "b2", "http://h:1");
    while world.dialled("b", true) {}
    assert_eq!(&*world.dispatch_of(&to_b).unwrap().base_url, "http://h:1");
}

#[test]
fn another_principal_does_not_take_the_address_of_an_agent_that_lives() {
    let mut world = world();
    let register = |world: &mut World| {
        let mut waiter = None;
        world.register_as("thief", "t1", "http://h:1", |r| {
            r.principal = "somebody".into();
            waiter = Some(r.waiter);
        });
        waiter.unwrap()
    };
    let refused = register(&mut world);
    assert_eq!(world.refused(refused), Category::Conflict);
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1, "it is called where it lives");
    world.answer(&id, Status::Succeeded);
    // Whoever has left has no address to keep.
    world.goodbye("a");
    let taken = register(&mut world);
    assert!(matches!(world.reply(taken), Reply::Registered { .. }));
}

#[test]
fn another_principal_does_not_get_the_id() {
    let mut world = world();
    let mut waiter = None;
    world.register_as("a", "i9", "http://h:9", |r| {
        r.principal = "somebody".into();
        waiter = Some(r.waiter);
    });
    assert_eq!(world.refused(waiter.unwrap()), Category::AgentIdTaken);
}

/// One that beats, and gave an address at which nobody listens.
fn misplaced(candidates: &[&str]) -> World {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://wrong:1", |r| {
        r.candidates = candidates.iter().map(|url| (*url).into()).collect();
    });
    world
}

/// Where the plane asks for an agent that beats and cannot be dialled.
fn asked_for(world: &mut World) -> Option<(muster_engine::event::InstanceKey, Vec<String>)> {
    let found = world
        .sends
        .iter()
        .position(|s| matches!(s, Send::Seek { .. }))?;
    match world.sends.remove(found) {
        Send::Seek { key, at } => Some((key, at.iter().map(|url| url.to_string()).collect())),
        _ => None,
    }
}

#[test]
fn one_that_beats_and_cannot_be_dialled_is_looked_for_at_its_other_addresses() {
    let mut world = misplaced(&["http://other:1", "http://peer:1"]);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    assert!(asked_for(&mut world).is_none(), "it may not listen yet");
    let mut asked = None;
    for _ in 0..3 {
        world.pass(SECOND);
        world.beat("a", "i1");
        world.dialled("a", false);
        asked = asked.or_else(|| asked_for(&mut world));
    }
    let (key, at) = asked.expect("it is looked for");
    assert_eq!(at, ["http://other:1", "http://peer:1"]);
    assert!(asked_for(&mut world).is_none(), "once");
    world.step(Event::Sought {
        key,
        found: Some("http://peer:1".into()),
    });
    assert!(world.dialled("a", true));
    let sent = world.dispatch_of(&id).unwrap();
    assert_eq!((&*sent.base_url, sent.attempt.n), ("http://peer:1", 2));
    world.accept(&id);
    // It registers again as it did; it is still called where it was found, after a crash too.
    world.register_as("a", "i1", "http://wrong:1", |r| {
        r.candidates = vec!["http://other:1".into(), "http://peer:1".into()];
    });
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(
        &*world.dispatch_of(&next).unwrap().base_url,
        "http://peer:1"
    );
    world.crash(SECOND);
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(
        &*world.dispatch_of(&next).unwrap().base_url,
        "http://peer:1"
    );
}

#[test]
fn one_that_is_found_nowhere_says_where_it_was_looked_for() {
    let mut world = misplaced(&["http://peer:1"]);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    for _ in 0..20 {
        world.pass(SECOND);
        world.beat("a", "i1");
        world.dialled("a", false);
        if let Some((key, _)) = asked_for(&mut world) {
            world.step(Event::Sought { key, found: None });
        }
    }
    let text = world.row(&id).error_text.clone().unwrap();
    let text = String::from_utf8_lossy(&text.0).into_owned();
    for part in [
        "http://wrong:1",
        "http://peer:1",
        "refused",
        "AGENT_CALLBACK_URL",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn an_address_at_which_another_process_of_the_agent_is_called_is_no_other_address() {
    let mut world = misplaced(&["http://peer:1"]);
    world.register("a", "i2", "http://peer:1");
    world.goodbye("a");
    let (_, id) = world.call(Lane::Async, "a.f");
    if world.dispatch_of(&id).unwrap().to.instance.as_str() == "i1" {
        world.refuse_dial(&id);
    }
    for _ in 0..5 {
        world.pass(SECOND);
        world.beat("a", "i1");
        world.dialled("a", false);
    }
    assert!(asked_for(&mut world).is_none());
}

#[test]
fn one_that_was_replaced_at_its_address_is_doubted_again_after_a_crash_of_the_plane() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.register("a", "i2", "http://h:1");
    // Before three beats have passed; the address answers as the agent.
    world.crash(SECOND);
    world.sends.clear();
    beating(&mut world, "a", "i2", Duration::from_secs(90));
    assert_eq!(world.category(&id), Some(Category::AgentRestartOrphaned));
    // One that beats again shares the address, and keeps what it has.
    let mut world = world_with_two_at_one_address();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.crash(SECOND);
    for _ in 0..45 {
        world.beat("a", "i1");
        world.beat("a", "i2");
        world.pass(Duration::from_secs(2));
    }
    assert_eq!(world.status(&id), Status::Running);
}

fn world_with_two_at_one_address() -> World {
    let mut world = world();
    world.register("a", "i2", "http://h:1");
    world.pass(SECOND);
    world.beat("a", "i1");
    world.beat("a", "i2");
    world
}

#[test]
fn a_process_that_listens_late_takes_calls_beside_another_that_serves() {
    let mut world = world();
    world.register("a", "i2", "http://h:2");
    let (_, first) = world.call(Lane::Async, "a.f");
    assert_eq!(
        world.dispatch_of(&first).unwrap().to.instance.as_str(),
        "i2"
    );
    world.refuse_dial(&first);
    assert_eq!(
        world.dispatch_of(&first).unwrap().to.instance.as_str(),
        "i1"
    );
    assert!(!world.dialled("a", true), "nobody waits for it");
    world.pass(SECOND);
    world.beat("a", "i2");
    assert!(world.dialled("a", false));
    assert!(!world.dialled("a", true), "once for a beat");
    world.pass(SECOND);
    world.beat("a", "i2");
    assert!(world.dialled("a", true));
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(world.dispatch_of(&next).unwrap().to.instance.as_str(), "i2");
}

#[test]
fn what_goes_to_an_address_counts_for_the_process_that_registered_there_last() {
    let mut world = world();
    let waiting: Vec<_> = (0..9).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.register("a", "i2", "http://h:1");
    world.dispatched.clear();
    while world.dialled("a", true) {}
    assert_eq!(world.dispatched.len(), 1, "one gate, one ramp");
    let mut from = 0;
    while from < world.dispatched.len() {
        let wave: Vec<_> = world.dispatched[from..].to_vec();
        from = world.dispatched.len();
        for sent in wave {
            assert_eq!(sent.to.instance.as_str(), "i2");
            world.accept(&sent.attempt.execution);
        }
    }
    // The old process is found gone, and its drain passes: nothing of this was with it.
    beating(&mut world, "a", "i2", Duration::from_secs(120));
    for id in &waiting {
        assert_eq!(world.status(id), Status::Running);
    }
}

#[test]
fn a_goodbye_right_after_a_restart_at_the_same_address_is_the_new_processs() {
    let mut world = world();
    world.register("a", "i2", "http://h:1");
    world.goodbye("a");
    let probe = world.sends.iter().find_map(|send| match send {
        Send::Probe { key, .. } => Some(key.clone()),
        _ => None,
    });
    let key = probe.expect("the old one is asked for at once");
    assert_eq!(key.instance.as_str(), "i1");
    let seen = muster_engine::event::Probe::Refused("connection refused".into());
    world.step(Event::Probed { key, seen });
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
}
