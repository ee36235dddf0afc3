//! Callbacks and workflow events: early, late, twice, forged, and what they prove.

use bytes::Bytes;
use muster_engine::event::Report;
use muster_engine::row::Payload;
use muster_engine::{Event, Limits, Reply};
use muster_wire::{
    AgentId, AttemptRef, Category, ExecutionId, ExecutionKind, FunctionName, Lane, SecretHash,
    Status,
};

use crate::world::{SECOND, World};

fn world() -> World {
    let mut world = World::new(Limits::default());
    world.register("a", "i1", "http://h:1");
    world.beat("a", "i1");
    world
}

fn report(about: AttemptRef, parent: Option<AttemptRef>, status: Status) -> Event {
    Event::Reported(Box::new(Report {
        about,
        parent,
        run: None,
        agent: AgentId::trusted("a"),
        function: FunctionName::trusted("f"),
        outcome: Box::new(World::outcome(status)),
        input: None,
        session: None,
    }))
}

#[test]
fn a_callback_before_the_202_counts_and_the_202_changes_nothing() {
    let mut world = world();
    let (waiter, id) = world.call(Lane::Sync, "a.f");
    let attempt = world.attempt(&id);
    let proof = world.proof(&id);
    assert!(matches!(
        world.call_back(proof, Status::Succeeded),
        Reply::CallbackTaken
    ));
    world.step(Event::Accepted { attempt });
    assert!(matches!(world.reply(waiter), Reply::Ended(_)));
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn the_same_again_is_fine_and_another_outcome_is_kept_but_not_applied() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    let proof = world.proof(&id);
    world.call_back(proof.clone(), Status::Succeeded);
    assert!(matches!(
        world.call_back(proof.clone(), Status::Succeeded),
        Reply::CallbackRepeated
    ));
    assert!(matches!(
        world.call_back(proof.clone(), Status::Running),
        Reply::CallbackRepeated
    ));
    assert!(matches!(
        world.call_back(proof.clone(), Status::Failed),
        Reply::CallbackLate {
            status: Status::Succeeded
        }
    ));
    assert_eq!(
        (world.status(&id), world.row(&id).late_outcome),
        (Status::Succeeded, Some(Status::Failed))
    );
    world.crash(SECOND);
    assert!(matches!(
        world.call_back(proof.clone(), Status::Succeeded),
        Reply::CallbackRepeated
    ));
    assert!(matches!(
        world.call_back(proof, Status::Failed),
        Reply::CallbackLate { .. }
    ));
}

#[test]
fn forged_older_and_unknown_callbacks_change_nothing() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let good = world.proof(&id);
    let bare = AttemptRef {
        execution: id.clone(),
        proof: None,
    };
    let forged = AttemptRef {
        execution: id.clone(),
        proof: Some((1, SecretHash::of("guess"))),
    };
    let other = AttemptRef {
        execution: id.clone(),
        proof: good.proof.map(|(_, hash)| (2, hash)),
    };
    for bad in [bare, forged, other] {
        assert!(matches!(
            world.call_back(bad, Status::Succeeded),
            Reply::WrongAttempt
        ));
    }
    let unknown = AttemptRef {
        execution: ExecutionId::trusted("nobody"),
        proof: good.proof,
    };
    assert!(matches!(
        world.call_back(unknown, Status::Succeeded),
        Reply::UnknownExecution
    ));
    assert_eq!(world.status(&id), Status::Running);
    world.refuse_dial(&id);
    world.beat("a", "i1");
    world.dialled("a", true);
    assert!(
        matches!(
            world.call_back(good, Status::Succeeded),
            Reply::WrongAttempt
        ),
        "an older attempt"
    );
}

#[test]
fn a_key_bound_to_the_agent_proves_without_an_attempt() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let waiter = world.waiter();
    world.step(Event::CalledBack(Box::new(
        muster_engine::event::Callback {
            waiter,
            from: AttemptRef {
                execution: id.clone(),
                proof: None,
            },
            key_agent: Some(AgentId::trusted("a")),
            outcome: Box::new(World::outcome(Status::Succeeded)),
            known: None,
        },
    )));
    assert!(matches!(world.reply(waiter), Reply::CallbackTaken));
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn a_callback_for_something_that_still_waits_in_the_queue_is_refused() {
    let mut world = World::new(Limits {
        max_concurrent_per_agent: 1,
        queue_window: 2,
        ..Limits::default()
    });
    world.register("a", "i1", "http://h:1");
    let ids: Vec<_> = (0..9).map(|_| world.call(Lane::Async, "a.f").1).collect();
    for id in [&ids[1], &ids[8]] {
        let claim = AttemptRef {
            execution: id.clone(),
            proof: Some((1, SecretHash::of("x"))),
        };
        assert!(matches!(
            world.call_back(claim, Status::Succeeded),
            Reply::WrongAttempt
        ));
    }
}

#[test]
fn workflow_events_never_change_a_dispatched_status_and_running_may_come_after_the_end() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    let proof = world.proof(&id);
    world.step(report(proof.clone(), None, Status::Failed));
    assert_eq!(world.status(&id), Status::Running);
    world.call_back(proof.clone(), Status::Succeeded);
    world.step(report(proof, None, Status::Running));
    assert_eq!(world.status(&id), Status::Succeeded);
}

#[test]
fn a_skills_exception_has_the_text_of_its_event() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.s");
    let proof = world.proof(&id);
    let Event::Reported(mut event) = report(proof, None, Status::Failed) else {
        panic!()
    };
    event.outcome.error = Some(Payload(Bytes::from_static(b"division by zero")));
    world.step(Event::Reported(event));
    let mut outcome = World::outcome(Status::Failed);
    outcome.error = Some(Payload(Bytes::from_static(b"Internal Server Error")));
    let attempt = world.attempt(&id);
    world.step(Event::Answered {
        attempt,
        outcome: Box::new(outcome),
    });
    assert_eq!(
        world.row(&id).error_text.as_ref().unwrap().0,
        "division by zero"
    );
}

#[test]
fn a_call_inside_an_agents_process_is_recorded_when_its_parent_proves_it() {
    let mut world = world();
    let (_, parent) = world.call(Lane::Async, "a.f");
    world.accept(&parent);
    let inner = AttemptRef {
        execution: ExecutionId::trusted("exec_123_ab"),
        proof: None,
    };
    let proof = world.proof(&parent);
    world.step(report(inner.clone(), Some(proof), Status::Running));
    let row = world.row(&inner.execution);
    assert_eq!(
        (row.kind, row.status),
        (ExecutionKind::Observed, Status::Running)
    );
    assert_eq!(
        (row.parent.as_ref(), &row.run),
        (Some(&parent), &world.row(&parent).run)
    );
    world.step(report(inner.clone(), None, Status::Succeeded));
    assert_eq!(world.status(&inner.execution), Status::Succeeded);

    let unproved = AttemptRef {
        execution: ExecutionId::trusted("exec_9"),
        proof: None,
    };
    let claim = AttemptRef {
        execution: parent,
        proof: None,
    };
    world.step(report(unproved.clone(), Some(claim), Status::Running));
    world.step(report(unproved.clone(), None, Status::Running));
    assert!(!world.rows.executions.contains_key(&unproved.execution));
}

#[test]
fn an_observed_call_ends_a_minute_after_its_parent_or_with_its_process() {
    let mut world = world();
    let (_, parent) = world.call(Lane::Async, "a.f");
    let inner = AttemptRef {
        execution: ExecutionId::trusted("inner"),
        proof: None,
    };
    let proof = world.proof(&parent);
    world.step(report(inner.clone(), Some(proof), Status::Running));
    world.answer(&parent, Status::Succeeded);
    for _ in 0..29 {
        world.beat("a", "i1");
        world.pass(SECOND * 2);
    }
    assert_eq!(world.status(&inner.execution), Status::Running);
    world.pass(SECOND * 3);
    assert_eq!(
        world.category(&inner.execution),
        Some(Category::OutcomeUnknown)
    );
}

#[test]
fn the_agents_own_shutdown_is_not_a_persons_cancel() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let waiter = world.waiter();
    let mut outcome = World::outcome(Status::Cancelled);
    outcome.reason = Some("shutdown timeout exceeded".into());
    let from = world.proof(&id);
    world.step(Event::CalledBack(Box::new(
        muster_engine::event::Callback {
            waiter,
            from,
            key_agent: None,
            outcome: Box::new(outcome),
            known: None,
        },
    )));
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("agent_shutdown_cancelled")
    );
}

#[test]
fn the_three_clocks_end_in_their_own_words() {
    let mut world = world();
    let (held, id) = world.call(Lane::Sync, "a.f");
    world.accept(&id);
    for _ in 0..46 {
        world.beat("a", "i1");
        world.pass(SECOND * 2);
    }
    assert!(matches!(
        world.reply(held),
        Reply::StillRunning {
            shutdown: false,
            ..
        }
    ));
    assert_eq!(
        world.status(&id),
        Status::Running,
        "sync_wait ends the hold, not the execution"
    );

    let (_, slow) = world.call(Lane::Async, "a.f");
    let attempt = world.attempt(&slow);
    world.step(Event::TimedOut { attempt });
    assert_eq!(
        (world.status(&slow), world.category(&slow)),
        (Status::Timeout, Some(Category::AgentTimeout))
    );
    assert_eq!(
        world.row(&slow).status_reason.as_deref(),
        Some("call_timeout")
    );

    let mut short = world.submission(Lane::Async, "a.f");
    short.deadline = Some(SECOND * 5);
    let (_, short) = world.submit(short);
    world.accept(&short);
    world.beat("a", "i1");
    world.pass(SECOND * 6);
    assert_eq!(world.row(&short).status_reason.as_deref(), Some("deadline"));
    assert!(
        world
            .told
            .iter()
            .any(|tell| tell.attempt.execution == short),
        "the agent is told"
    );
}

#[test]
fn the_same_status_with_another_result_is_another_outcome() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let proof = world.proof(&id);
    world.call_back(proof.clone(), Status::Succeeded);
    assert!(matches!(
        world.call_back(proof.clone(), Status::Succeeded),
        Reply::CallbackRepeated
    ));
    let waiter = world.waiter();
    let mut outcome = World::outcome(Status::Succeeded);
    outcome.result = Some(Payload(Bytes::from_static(b"43")));
    world.step(Event::CalledBack(Box::new(
        muster_engine::event::Callback {
            waiter,
            from: proof,
            key_agent: None,
            outcome: Box::new(outcome),
            known: None,
        },
    )));
    assert!(matches!(world.reply(waiter), Reply::CallbackLate { .. }));
    assert_eq!(world.row(&id).late_outcome, Some(Status::Succeeded));
}
