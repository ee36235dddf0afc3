//! Agents that restart: the contract's table, sequence by sequence.

mod address;
mod goodbye;
mod ramp;

use std::time::Duration;

use muster_engine::event::WorkerChange;
use muster_engine::row::EventKind;
use muster_engine::{Event, Limits, Reply, Send};
use muster_wire::{Category, Lane, Status};

use crate::world::{SECOND, World};

fn world() -> World {
    let mut world = World::new(Limits::default());
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

/// Lets time pass while an instance beats every two seconds.
fn beating(world: &mut World, agent: &str, instance: &str, wait: Duration) {
    let until = world.now + wait;
    while world.now < until {
        world.beat(agent, instance);
        world.pass(Duration::from_secs(2).min(until.since(world.now)));
    }
}

#[test]
fn a_call_while_the_process_is_away_waits_for_the_new_one_and_succeeds() {
    for (away, url) in [(4, "http://h:1"), (10, "http://h:1"), (10, "http://h:2")] {
        let mut world = world();
        let (waiter, id) = world.call(Lane::Sync, "a.f");
        world.refuse_dial(&id);
        assert_eq!(world.status(&id), Status::Running);
        assert_eq!(
            world.row(&id).status_reason.as_deref(),
            Some("awaiting_agent_restart")
        );
        world.pass(Duration::from_secs(away));
        assert_eq!(world.sent(&id), 1, "nothing goes out without evidence");
        world.register("a", "i2", url);
        // It registers before it listens.
        assert!(world.dialled("a", false));
        world.pass(Duration::from_millis(100));
        assert!(world.dialled("a", true));
        assert_eq!(world.sent(&id), 2);
        let again = world.dispatch_of(&id).unwrap();
        assert_eq!(
            (
                &*again.base_url,
                again.to.instance.as_str(),
                again.attempt.n
            ),
            (url, "i2", 2)
        );
        world.accept(&id);
        let proof = world.proof(&id);
        world.call_back(proof, Status::Succeeded);
        assert!(
            matches!(world.reply(waiter), Reply::Ended(view) if view.row.status == Status::Succeeded)
        );
    }
}

#[test]
fn a_beat_newer_than_the_failure_is_evidence_too() {
    let mut world = world();
    beating(&mut world, "a", "i1", Duration::from_secs(20));
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    world.pass(SECOND);
    assert!(!world.dialled("a", true), "no dial before a sign");
    world.beat("a", "i1");
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&id), 2);
}

#[test]
fn a_failed_dial_moves_to_another_instance_at_once() {
    let mut world = world();
    world.register("a", "i2", "http://h:2");
    world.beat("a", "i2");
    let (_, id) = world.call(Lane::Async, "a.f");
    let first = world.dispatch_of(&id).unwrap().to.instance.clone();
    world.refuse_dial(&id);
    let second = world.dispatch_of(&id).unwrap();
    assert_ne!(second.to.instance, first);
    assert_eq!(second.attempt.n, 2);
}

#[test]
fn one_that_never_comes_back_ends_the_wait_and_the_next_call_fails_at_once() {
    let mut world = world();
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    world.pass(SECOND);
    world.refuse_dial(&id);
    world.pass(Duration::from_secs(16));
    assert!(matches!(world.reply(waiter), Reply::Ended(_)));
    assert_eq!(
        (world.status(&id), world.category(&id)),
        (Status::Failed, Some(Category::AgentUnreachable))
    );
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    assert!(!world.rows.executions.contains_key(&id));
    world.beat("a", "i1");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&id), Status::Running, "a beat undoes it");
}

#[test]
fn an_exit_for_good_ends_executions_and_waits_at_once() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    let (_, taken) = world.call(Lane::Async, "a.f");
    let (_, again) = world.call(Lane::Async, "a.i");
    world.accept(&taken);
    world.accept(&again);
    let exited = WorkerChange::Exited("signal 9".into());
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: exited,
    });
    assert_eq!(world.category(&taken), Some(Category::AgentRestartOrphaned));
    // An idempotent one is to run again; with nobody to run it, its wait ends at once too.
    assert_eq!(world.category(&again), Some(Category::AgentUnreachable));
}

#[test]
fn bytes_that_were_sent_are_never_sent_twice_unless_the_function_is_idempotent() {
    let mut world = world();
    let (_, once) = world.call(Lane::Async, "a.f");
    let attempt = world.attempt(&once);
    world.step(Event::BrokeAfterSend {
        attempt,
        error: "reset".into(),
    });
    assert_eq!(
        (world.status(&once), world.category(&once)),
        (Status::Failed, Some(Category::OutcomeUnknown))
    );
    assert_eq!(world.sent(&once), 1);
    let (_, again) = world.call(Lane::Async, "a.i");
    for n in 1..=4 {
        assert_eq!(world.sent(&again), n);
        let attempt = world.attempt(&again);
        world.step(Event::BrokeAfterSend {
            attempt,
            error: "reset".into(),
        });
    }
    assert_eq!(
        world.category(&again),
        Some(Category::OutcomeUnknown),
        "run again at most three times"
    );
    assert_eq!(world.sent(&again), 4);
}

#[test]
fn a_cancel_wins_against_the_wait_and_the_agent_is_never_called() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    assert!(matches!(
        world.cancel(&id),
        Reply::Cancelled { told: 0, .. }
    ));
    world.register("a", "i2", "http://h:1");
    while world.dialled("a", true) {}
    assert_eq!((world.status(&id), world.sent(&id)), (Status::Cancelled, 1));
}

#[test]
fn two_processes_of_one_id_orphan_nothing() {
    let mut world = world();
    world.register("a", "i2", "http://h:2");
    let mut ids = Vec::new();
    for _ in 0..150 {
        world.beat("a", "i1");
        world.beat("a", "i2");
        let (_, id) = world.call(Lane::Async, "a.f");
        world.accept(&id);
        ids.push(id);
        world.pass(Duration::from_secs(2));
    }
    for id in ids {
        let proof = world.proof(&id);
        assert!(matches!(
            world.call_back(proof, Status::Succeeded),
            Reply::CallbackTaken
        ));
    }
}

#[test]
fn the_orphans_moment_survives_a_restart_of_the_plane() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    world.goodbye("a");
    world.crash(SECOND);
    world.pass(Duration::from_secs(50));
    assert_eq!(world.status(&id), Status::Running);
    let proof = world.proof(&id);
    let (_, late) = (0, proof.clone());
    world.pass(Duration::from_secs(20));
    assert_eq!(world.category(&id), Some(Category::AgentRestartOrphaned));
    assert!(matches!(
        world.call_back(late, Status::Succeeded),
        Reply::CallbackLate {
            status: Status::Failed
        }
    ));
    assert_eq!(world.row(&id).late_outcome, Some(Status::Succeeded));
}

#[test]
fn silence_and_a_refused_probe_make_it_down_and_a_beat_revives_it() {
    let mut world = world();
    world.pass(Duration::from_secs(10));
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1, "late beats change nothing for callers");
    world.pass(Duration::from_secs(10));
    let probe = world.sends.iter().rev().find_map(|send| match send {
        Send::Probe { key, .. } => Some(key.clone()),
        _ => None,
    });
    let key = probe.expect("the plane probes after the grace");
    let refused = muster_engine::event::Probe::Refused("connection refused".into());
    world.step(Event::Probed { key, seen: refused });
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    world.pass(Duration::from_secs(10));
    world.beat("a", "i1");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1);
}

#[test]
fn beats_with_failing_dials_are_called_by_their_name_and_fail_soon() {
    let mut world = world();
    beating(&mut world, "a", "i1", Duration::from_secs(20));
    let (_, first) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&first);
    for _ in 0..20 {
        world.beat("a", "i1");
        world.dialled("a", false);
        world.pass(SECOND);
    }
    assert_eq!(world.category(&first), Some(Category::AgentUnreachable));
    world.beat("a", "i1");
    let (_, next) = world.call(Lane::Async, "a.f");
    world.pass(Duration::from_secs(2));
    assert_eq!(world.category(&next), Some(Category::AgentUnreachable));
    let text = world.row(&next).error_text.clone().unwrap();
    assert!(
        String::from_utf8_lossy(&text.0).contains("AGENT_CALLBACK_URL"),
        "{text:?}"
    );
}

#[test]
fn absorption_never_outlasts_what_the_caller_has_left_and_can_be_off() {
    let mut world = World::new(Limits {
        sync_wait: Duration::from_secs(3),
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    world.refuse_dial(&id);
    world.pass(Duration::from_secs(4));
    assert!(world.is_answered(waiter));
    assert_eq!(world.status(&id), Status::Failed);

    let mut world = World::new(Limits {
        restart_grace: None,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    assert_eq!(world.category(&id), Some(Category::AgentUnreachable));
}

#[test]
fn queued_work_stays_queued_while_its_agent_is_gone_and_starts_when_it_is_back() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    let (_, first) = world.call(Lane::Async, "a.f");
    let (_, queued) = world.call(Lane::Async, "a.f");
    world.goodbye("a");
    world.answer(&first, Status::Succeeded);
    world.pass(Duration::from_secs(3600));
    assert_eq!(
        (world.status(&queued), world.sent(&queued)),
        (Status::Queued, 0)
    );
    world.register("a", "i2", "http://h:1");
    assert_eq!(world.sent(&queued), 1);
}

#[test]
fn an_agent_that_answers_calls_is_alive_without_beats() {
    let mut world = World::new(Limits::default());
    world.register("a", "i1", "http://h:1");
    for _ in 0..30 {
        let (_, id) = world.call(Lane::Async, "a.f");
        world.answer(&id, Status::Succeeded);
        world.pass(Duration::from_secs(5));
    }
    assert!(
        !world
            .sends
            .iter()
            .any(|send| matches!(send, Send::Probe { .. })),
        "an exchange is a sign of life"
    );
}

/// What is shown of an instance is not older than what admission goes by.
#[test]
fn an_instance_that_never_beat_and_answers_is_told_as_active_at_once() {
    let mut world = World::new(Limits::default());
    world.register("a", "i1", "http://h:1");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert!(world.told(EventKind::InstanceActive).is_empty());
    world.answer(&id, Status::Succeeded);
    assert_eq!(world.told(EventKind::InstanceActive).len(), 1);
}

#[test]
fn under_a_hold_a_wait_does_not_run_out_and_after_it_it_begins_anew() {
    for crash in [false, true] {
        let mut world = world();
        let (_, id) = world.call(Lane::Async, "a.f");
        world.refuse_dial(&id);
        let waiter = world.waiter();
        let reason = Some("restored".into());
        world.step(Event::Held {
            agent: None,
            reason,
            by: "ada".into(),
            waiter,
        });
        if crash {
            world.crash(SECOND);
        }
        beating(&mut world, "a", "i1", Duration::from_secs(60));
        assert_eq!(world.status(&id), Status::Running);
        assert_eq!(world.sent(&id), 1, "nothing is sent under a hold");
        let waiter = world.waiter();
        world.step(Event::Held {
            agent: None,
            reason: None,
            by: "ada".into(),
            waiter,
        });
        while world.dialled("a", false) {
            world.pass(SECOND);
            world.beat("a", "i1");
            if world.status(&id).is_terminal() {
                break;
            }
        }
        assert_eq!(
            world.category(&id),
            Some(Category::AgentUnreachable),
            "crash: {crash}"
        );
    }
}

#[test]
fn one_that_answered_and_is_gone_is_not_dialled_before_it_shows_itself_again() {
    let mut world = world();
    let (_, answered) = world.call(Lane::Async, "a.f");
    world.pass(SECOND);
    world.answer(&answered, Status::Succeeded);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&id);
    world.pass(SECOND);
    assert!(
        !world.dialled("a", true),
        "another process may listen there, and not have registered yet"
    );
    world.register("a", "i2", "http://h:1");
    assert!(world.dialled("a", true));
    assert_eq!(world.dispatch_of(&id).unwrap().to.instance.as_str(), "i2");
}

#[test]
fn one_that_fell_silent_is_refused_to_new_callers_and_still_waited_for_by_the_others() {
    let mut world = world();
    world.pass(Duration::from_secs(8));
    let (waiter, waits) = world.call(Lane::Sync, "a.f");
    world.refuse_dial(&waits);
    world.pass(Duration::from_secs(8));
    let key = muster_engine::event::InstanceKey {
        agent: muster_wire::AgentId::trusted("a"),
        instance: muster_wire::InstanceId::trusted("i1"),
    };
    let seen = muster_engine::event::Probe::Refused("connection refused".into());
    world.step(Event::Probed { key, seen });
    let (refused, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(refused), Category::NodeUnavailable);
    assert_eq!(
        world.status(&waits),
        Status::Running,
        "7 s are left of its grace"
    );
    world.pass(Duration::from_secs(4));
    world.register("a", "i2", "http://h:1");
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&waits), 2);
    world.answer(&waits, Status::Succeeded);
    assert!(world.is_answered(waiter));
}

#[test]
fn who_waits_over_one_edit_waits_over_the_next_one_too() {
    let mut world = World::new(Limits::default());
    let will_restart = |world: &mut World| {
        world.step(Event::WorkerChanged {
            worker: "w".into(),
            change: WorkerChange::WillRestart,
        });
    };
    world.register_as("a", "i0", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i0");
    will_restart(&mut world);
    let (_, id) = world.call(Lane::Async, "a.f");
    for n in 1..6 {
        world.pass(Duration::from_secs(20));
        let instance = format!("i{n}");
        world.register_as("a", &instance, "http://h:1", |r| {
            r.worker = Some("w".into())
        });
        // It is edited again before it listens.
        will_restart(&mut world);
        assert_eq!(world.status(&id), Status::Running, "edit {n}");
    }
    world.register_as("a", "last", "http://h:1", |r| r.worker = Some("w".into()));
    while world.dialled("a", true) {}
    assert_eq!(world.sent(&id), 1);
}

#[test]
fn a_wait_that_runs_out_says_nothing_of_a_process_that_registered_only_now() {
    let mut world = world();
    let (_, waits) = world.call(Lane::Async, "a.f");
    world.refuse_dial(&waits);
    world.pass(Duration::from_secs(14));
    world.register("a", "i2", "http://h:1");
    assert!(world.dialled("a", false), "it does not listen yet");
    world.pass(Duration::from_secs(2));
    assert_eq!(world.category(&waits), Some(Category::AgentUnreachable));
    let (_, next) = world.call(Lane::Async, "a.f");
    assert_eq!(world.status(&next), Status::Running, "it is waited for");
}
