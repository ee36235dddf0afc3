//! Agents that restart: the contract's table, sequence by sequence.

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
fn after_a_goodbye_without_a_supervisor_calls_are_refused_and_waits_end() {
    let mut world = world();
    let waiting: Vec<_> = (0..50).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.goodbye("a");
    for id in &waiting {
        assert_eq!(
            (world.status(id), world.category(id)),
            (Status::Failed, Some(Category::AgentUnreachable))
        );
    }
    let (waiter, _) = world.call(Lane::Async, "a.f");
    let Reply::Refused(refusal) = world.reply(waiter) else {
        panic!()
    };
    assert_eq!(
        (refusal.category(), refusal.retry_after()),
        (Category::NodeUnavailable, Some(1))
    );
    assert!(
        refusal.message().contains("goodbye"),
        "{}",
        refusal.message()
    );
}

#[test]
fn beats_and_registrations_of_a_drain_do_not_undo_a_goodbye() {
    let mut world = world();
    world.goodbye("a");
    world.beat("a", "i1");
    world.register_as("a", "i1", "http://h:1", |r| r.starting = false);
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
    world.register("a", "i1", "http://h:1");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1, "starting does");
}

#[test]
fn a_goodbye_under_a_supervisor_is_absorbed_and_its_exit_ends_what_it_had() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    let (_, taken) = world.call(Lane::Async, "a.f");
    world.accept(&taken);
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: WorkerChange::WillRestart,
    });
    world.goodbye("a");
    let (_, waits) = world.call(Lane::Async, "a.f");
    assert_eq!(
        (world.status(&waits), world.sent(&waits)),
        (Status::Running, 0)
    );
    assert_eq!(world.status(&taken), Status::Running, "it drains");
    let exited = WorkerChange::ExitedWillRestart("exit 0".into());
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: exited,
    });
    assert_eq!(world.category(&taken), Some(Category::AgentRestartOrphaned));
    world.step(Event::WorkerChanged {
        worker: "w".into(),
        change: WorkerChange::Started,
    });
    world.pass(SECOND);
    world.register_as("a", "i2", "http://h:1", |r| r.worker = Some("w".into()));
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&waits), 1);
    assert_eq!(
        world.dispatch_of(&waits).unwrap().to.instance.as_str(),
        "i2"
    );
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
fn after_a_return_work_goes_out_on_a_ramp() {
    let mut world = world();
    let waiting: Vec<_> = (0..20).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.beat("a", "i1");
    let before = world.dispatched.len();
    assert!(world.dialled("a", true));
    assert_eq!(world.dispatched.len() - before, 1);
    let mut out = vec![world.dispatched.last().unwrap().attempt.execution.clone()];
    let mut sizes = vec![1];
    while !out.is_empty() {
        let before = world.dispatched.len();
        for id in std::mem::take(&mut out) {
            world.accept(&id);
        }
        out = world.dispatched[before..]
            .iter()
            .map(|d| d.attempt.execution.clone())
            .collect();
        sizes.push(out.len());
    }
    assert!(sizes[1] >= 2 && sizes[1] <= 4, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 20, "{sizes:?}");
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
fn a_goodbye_belongs_to_the_only_one_that_still_beats() {
    let mut world = world();
    beating(&mut world, "a", "i1", Duration::from_secs(6));
    // It dies without a word and comes back elsewhere.
    world.pass(Duration::from_secs(4));
    world.register("a", "i2", "http://h:2");
    world.beat("a", "i2");
    let waiting: Vec<_> = (0..5).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
        if world.status(id) == Status::Running && world.row(id).status_reason.is_none() {
            world.refuse_dial(id);
        }
    }
    world.goodbye("a");
    let probe = world.sends.iter().rev().find_map(|send| match send {
        Send::Probe { key, .. } => Some(key.clone()),
        _ => None,
    });
    let key = probe.expect("the silent one is asked at once");
    assert_eq!(key.instance.as_str(), "i1");
    let seen = muster_engine::event::Probe::Refused("connection refused".into());
    world.step(Event::Probed { key, seen });
    for id in &waiting {
        assert_eq!(world.category(id), Some(Category::AgentUnreachable));
    }
    let (waiter, _) = world.call(Lane::Async, "a.f");
    assert_eq!(world.refused(waiter), Category::NodeUnavailable);
}

#[test]
fn a_goodbye_in_a_rolling_update_takes_down_nobody_else() {
    let mut world = world();
    world.register("a", "i2", "http://h:2");
    world.beat("a", "i2");
    world.beat("a", "i1");
    world.goodbye("a");
    let (_, id) = world.call(Lane::Async, "a.f");
    assert_eq!(world.sent(&id), 1);
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

/// Twenty calls wait, and the gate's dial gets through: the first one goes out alone.
fn on_the_ramp() -> (World, Vec<muster_wire::ExecutionId>) {
    let mut world = world();
    let waiting: Vec<_> = (0..20).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in &waiting {
        world.refuse_dial(id);
    }
    world.beat("a", "i1");
    world.dispatched.clear();
    assert!(world.dialled("a", true));
    assert_eq!(world.dispatched.len(), 1);
    (world, waiting)
}

#[test]
fn the_ramp_is_one_two_four_eight() {
    let (mut world, _) = on_the_ramp();
    let mut sizes = vec![1];
    let mut from = 0;
    while from < world.dispatched.len() {
        let wave: Vec<_> = world.dispatched[from..]
            .iter()
            .map(|d| d.attempt.execution.clone())
            .collect();
        from = world.dispatched.len();
        for id in &wave {
            world.accept(id);
        }
        sizes.push(world.dispatched.len() - from);
    }
    assert_eq!(sizes, [1, 2, 4, 8, 5, 0]);
}

#[test]
fn whoever_never_gets_through_does_not_close_the_ramp_behind_it() {
    let broke: fn(&mut World) = |world| {
        let attempt = world.dispatched[0].attempt.clone();
        world.step(Event::BrokeAfterSend {
            attempt,
            error: "reset".into(),
        });
    };
    let cancelled: fn(&mut World) = |world| {
        let id = world.dispatched[0].attempt.execution.clone();
        world.cancel(&id);
    };
    let timed_out: fn(&mut World) = |world| {
        let attempt = world.dispatched[0].attempt.clone();
        world.step(Event::TimedOut { attempt });
    };
    for end in [broke, cancelled, timed_out] {
        let (mut world, _) = on_the_ramp();
        end(&mut world);
        assert!(world.dispatched.len() > 1, "the next one goes out");
    }
}

#[test]
fn one_that_takes_its_time_to_answer_keeps_nobody_waiting_for_the_return() {
    let (mut world, waiting) = on_the_ramp();
    let mut from = 0;
    while world.dispatched.len() < waiting.len() {
        let wave: Vec<_> = world.dispatched[from..]
            .iter()
            .map(|d| d.attempt.clone())
            .collect();
        from = world.dispatched.len();
        assert!(!wave.is_empty());
        for attempt in wave {
            world.step(Event::Taken { attempt });
        }
    }
    beating(&mut world, "a", "i1", Duration::from_secs(30));
    for id in &waiting {
        assert_eq!((world.status(id), world.sent(id)), (Status::Running, 1));
    }
}

#[test]
fn a_drain_under_a_supervisor_is_not_taken_from_the_grace_of_the_return() {
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    let change = |world: &mut World, change| {
        world.step(Event::WorkerChanged {
            worker: "w".into(),
            change,
        });
    };
    change(&mut world, WorkerChange::WillRestart);
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pass(Duration::from_secs(15));
    change(&mut world, WorkerChange::ExitedWillRestart("exit 0".into()));
    change(&mut world, WorkerChange::Started);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.status(&id), Status::Running);
    world.register_as("a", "i2", "http://h:1", |r| r.worker = Some("w".into()));
    assert!(world.dialled("a", true));
    assert_eq!(world.sent(&id), 1);
    // A process that never registers is waited for no longer than that.
    let mut world = World::new(Limits::default());
    world.register_as("a", "i1", "http://h:1", |r| r.worker = Some("w".into()));
    world.beat("a", "i1");
    change(&mut world, WorkerChange::WillRestart);
    let (_, id) = world.call(Lane::Async, "a.f");
    for _ in 0..20 {
        world.pass(Duration::from_secs(2));
        change(&mut world, WorkerChange::ExitedWillRestart("exit 1".into()));
    }
    assert_eq!(world.category(&id), Some(Category::AgentUnreachable));
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
