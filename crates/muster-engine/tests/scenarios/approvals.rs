//! Approvals: execution.md's rows about what is asked of a person, decided, and told.

use std::time::Duration;

use muster_engine::Limits;
use muster_engine::effect::Reply;
use muster_engine::row::EventKind;
use muster_wire::{Category, Decision, ExecutionId, Lane, Status};

use crate::world::{SECOND, World};

const HOUR: Duration = Duration::from_secs(3600);

fn world() -> World {
    let mut world = World::new(Limits::default());
    world.register("a", "i0", "http://h:1");
    world
}

/// An accepted execution that waits for `r`.
fn waiting() -> (World, ExecutionId) {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.accept(&id);
    assert!(matches!(world.ask_for(&id, "r"), Reply::ApprovalPending(_)));
    (world, id)
}

fn is_conflict(reply: &Reply) -> bool {
    matches!(reply, Reply::Conflict { .. })
}

#[test]
fn running_asked_waits_without_slot_and_clock_and_a_decision_lets_it_go_on() {
    for (decision, reason) in [
        (Decision::Approved, "approval_approved"),
        (Decision::Rejected, "approval_rejected"),
        (Decision::RequestChanges, "approval_request_changes"),
    ] {
        let (mut world, id) = waiting();
        assert_eq!(
            world.row(&id).status_reason.as_deref(),
            Some("waiting_for_approval")
        );
        world.pass(Duration::from_secs(1800));
        let Reply::Decided {
            status, repeated, ..
        } = world.decide(Some(&id), None, decision)
        else {
            panic!("it is pending");
        };
        assert_eq!((status, repeated), (Some(Status::Running), false));
        assert_eq!(world.row(&id).status_reason.as_deref(), Some(reason));
        assert_eq!(world.row(&id).active_us, 0, "waiting is not active time");
        assert_eq!(world.told_approvals.len(), 1, "told after the commit");
        assert_eq!(world.told_approvals[0].approval.decision, Some(decision));
        world.tell_told(&id, "r", true);
        let proof = world.proof(&id);
        world.call_back(proof, Status::Succeeded);
        assert_eq!(world.status(&id), Status::Succeeded);
    }
}

#[test]
fn the_decision_is_written_before_the_agent_is_told() {
    let (mut world, id) = waiting();
    world.decide(Some(&id), Some("r"), Decision::Approved);
    let stored = world.rows.approvals.values().next().unwrap();
    assert_eq!(stored.decision, Some(Decision::Approved));
    assert_eq!(world.status(&id), Status::Running);
    let kinds: Vec<EventKind> = world.rows.events.iter().map(|e| e.kind).collect();
    let at = |kind| kinds.iter().position(|k| *k == kind).unwrap();
    assert!(at(EventKind::ApprovalRequested) < at(EventKind::ApprovalDecided));
    assert!(at(EventKind::ApprovalDecided) < at(EventKind::ExecutionContinued));
}

#[test]
fn same_request_again_is_the_same_answer_until_it_is_decided_and_another_pending_one_a_conflict() {
    let (mut world, id) = waiting();
    let Reply::ApprovalPending(again) = world.ask_for(&id, "r") else {
        panic!("the same again");
    };
    assert_eq!(again.decision, None);
    assert!(is_conflict(&world.ask_for(&id, "other")));
    world.decide(Some(&id), None, Decision::Approved);
    world.tell_told(&id, "r", true);
    let Reply::ApprovalPending(anew) = world.ask_for(&id, "r") else {
        panic!("a new round");
    };
    assert_eq!(anew.decision, None);
    assert_eq!(world.status(&id), Status::Waiting, "it waits once more");
    world.decide(Some(&id), None, Decision::Rejected);
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn asked_again_before_the_old_decision_was_told_it_is_a_new_round_that_the_old_one_cannot_end() {
    let (mut world, id) = waiting();
    world.decide(Some(&id), None, Decision::Rejected);
    let Reply::ApprovalPending(anew) = world.ask_for(&id, "r") else {
        panic!("a new round");
    };
    assert_eq!(anew.decision, None);
    // The word about the old round comes late, and it is a bad one.
    world.tell_told(&id, "r", false);
    assert_eq!(world.status(&id), Status::Waiting);
    world.crash(SECOND);
    world.decide(Some(&id), None, Decision::Approved);
    assert_eq!(world.status(&id), Status::Running);
}

#[test]
fn only_the_live_attempt_of_that_agent_may_ask() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let mut forged = world.wish(&id, "r");
    forged.from.proof = None;
    assert!(matches!(world.ask_approval(forged), Reply::WrongAttempt));
    let mut elsewhere = world.wish(&id, "r");
    elsewhere.agent = muster_wire::AgentId::trusted("b");
    assert!(matches!(world.ask_approval(elsewhere), Reply::WrongAttempt));
    let mut by_key = world.wish(&id, "r");
    by_key.from.proof = None;
    by_key.key_agent = Some(muster_wire::AgentId::trusted("a"));
    assert!(matches!(
        world.ask_approval(by_key),
        Reply::ApprovalPending(_)
    ));
    world.answer(&id, Status::Succeeded);
    let late = world.wish(&id, "r2");
    assert!(matches!(
        world.ask_approval(late),
        Reply::AlreadyEnded { .. }
    ));
}

#[test]
fn the_same_decision_again_is_fine_another_is_a_conflict_and_so_is_one_after_the_end() {
    let (mut world, id) = waiting();
    world.decide(Some(&id), Some("r"), Decision::Approved);
    let Reply::Decided { repeated, .. } = world.decide(Some(&id), Some("r"), Decision::Approved)
    else {
        panic!("the same again");
    };
    assert!(repeated);
    assert!(is_conflict(&world.decide(
        Some(&id),
        Some("r"),
        Decision::Rejected
    )));
    world.tell_told(&id, "r", true);
    world.ask_for(&id, "s");
    world.answer(&id, Status::Succeeded);
    assert!(is_conflict(&world.decide(
        Some(&id),
        Some("s"),
        Decision::Approved
    )));
    let unknown = world.decide(None, Some("nobody"), Decision::Approved);
    assert!(matches!(unknown, Reply::UnknownApproval));
}

#[test]
fn a_request_id_that_fits_several_is_ambiguous_and_names_them() {
    let (mut world, first) = waiting();
    let (_, second) = world.call(Lane::Async, "a.f");
    world.ask_for(&second, "r");
    let Reply::Ambiguous(fitting) = world.decide(None, Some("r"), Decision::Approved) else {
        panic!("two fit");
    };
    assert_eq!(fitting.len(), 2);
    world.decide(Some(&first), Some("r"), Decision::Approved);
    let one = world.decide(None, Some("r"), Decision::Rejected);
    assert!(matches!(one, Reply::Decided { .. }), "one is left: {one:?}");
    assert_eq!(
        world.row(&second).status_reason.as_deref(),
        Some("approval_rejected")
    );
}

#[test]
fn waiting_outcome_is_always_taken_and_closes_the_approval() {
    let (mut world, id) = waiting();
    let proof = world.proof(&id);
    assert!(matches!(
        world.call_back(proof, Status::Succeeded),
        Reply::CallbackTaken
    ));
    assert_eq!(world.status(&id), Status::Succeeded);
    let closed = world.rows.approvals.values().next().unwrap();
    assert!(closed.decided_at.is_some() && closed.decision.is_none());
}

#[test]
fn waiting_cancel_and_a_gone_instance_end_it_as_if_it_ran() {
    let (mut world, id) = waiting();
    world.cancel(&id);
    assert_eq!(world.status(&id), Status::Cancelled);
    assert_eq!(world.told.len(), 1, "its agent is told of the cancel");
    let (mut world, id) = waiting();
    world.goodbye("a");
    world.pass(Duration::from_secs(120));
    assert_eq!(world.category(&id), Some(Category::AgentRestartOrphaned));
}

#[test]
fn expiry_is_a_decision_and_untold_it_cancels() {
    let (mut world, id) = waiting();
    world.pass(HOUR - SECOND);
    assert_eq!(world.status(&id), Status::Waiting);
    world.pass(2 * SECOND);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("approval_expired")
    );
    assert_eq!(world.told_approvals.len(), 1);
    world.tell_told(&id, "r", false);
    assert_eq!(world.status(&id), Status::Cancelled);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("approval_expired")
    );
}

#[test]
fn untold_refusals_are_carried_out_and_untold_approvals_go_on() {
    for (decision, status) in [
        (Decision::Rejected, Status::Cancelled),
        (Decision::Approved, Status::Running),
        (Decision::RequestChanges, Status::Running),
    ] {
        let (mut world, id) = waiting();
        world.decide(Some(&id), None, decision);
        world.tell_told(&id, "r", false);
        assert_eq!(world.status(&id), status, "{decision}");
    }
}

#[test]
fn an_agent_that_polls_is_told_by_nobody_and_cancelled_by_nobody() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    let mut ask = world.wish(&id, "r");
    ask.callback_url = None;
    world.ask_approval(ask);
    world.decide(Some(&id), None, Decision::Rejected);
    assert!(world.told_approvals.is_empty());
    world.pass(Duration::from_secs(120));
    assert_eq!(world.status(&id), Status::Running);
    world.crash(SECOND);
    assert!(
        world.told_approvals.is_empty(),
        "not after a restart either"
    );
}

#[test]
fn expiry_survives_a_crash_and_time_without_a_decider_does_not_count() {
    let (mut world, id) = waiting();
    world.pass(Duration::from_secs(1800));
    // Something happens now, so that the store knows how far the plane came.
    world.call(Lane::Async, "a.f");
    world.crash(10 * HOUR);
    world.crash(10 * HOUR);
    world.pass(Duration::from_secs(1790));
    assert_eq!(world.status(&id), Status::Waiting);
    world.pass(20 * SECOND);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("approval_expired")
    );
}

#[test]
fn decided_and_untold_is_told_again_after_a_crash() {
    let (mut world, id) = waiting();
    world.decide(Some(&id), None, Decision::Rejected);
    world.told_approvals.clear();
    world.crash(SECOND);
    assert_eq!(world.told_approvals.len(), 1);
    world.tell_told(&id, "r", true);
    world.told_approvals.clear();
    world.crash(SECOND);
    assert!(world.told_approvals.is_empty());
}

#[test]
fn paused_while_waiting_a_decision_counts_and_the_agent_is_told_at_the_resume() {
    let (mut world, id) = waiting();
    world.pause(&id, true);
    world.decide(Some(&id), None, Decision::Approved);
    assert_eq!(world.status(&id), Status::Paused);
    assert!(world.told_approvals.is_empty());
    world.crash(SECOND);
    assert!(world.told_approvals.is_empty());
    world.pause(&id, false);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("approval_approved")
    );
    assert_eq!(world.told_approvals.len(), 1);
}

#[test]
fn paused_while_waiting_gives_the_waiting_back() {
    let (mut world, id) = waiting();
    world.pause(&id, true);
    world.pause(&id, false);
    assert_eq!(world.status(&id), Status::Waiting);
    assert_eq!(
        world.row(&id).status_reason.as_deref(),
        Some("waiting_for_approval")
    );
    assert!(world.row(&id).wait.is_some());
}

#[test]
fn asked_while_paused_it_waits_once_it_is_resumed() {
    let mut world = world();
    let (_, id) = world.call(Lane::Async, "a.f");
    world.pause(&id, true);
    assert!(matches!(world.ask_for(&id, "r"), Reply::ApprovalPending(_)));
    assert_eq!(world.status(&id), Status::Paused);
    world.pause(&id, false);
    assert_eq!(world.status(&id), Status::Waiting);
}
