//! What the store keeps for people in the loop: approvals in lists, pauses in queues, and what
//! parents left queued.

use muster_engine::Write;
use muster_engine::effect::{ExecutionChange, Move};
use muster_engine::row::{ApprovalRow, EventKind};
use muster_store::{ApprovalFilter, Page};
use muster_wire::{Decision, ParentEnd, Status, Timestamp};

use crate::support::*;

fn approval(execution: &str, request: &str, at: i64) -> ApprovalRow {
    ApprovalRow {
        execution: execution_id(execution),
        request: request.into(),
        run: run_id("run"),
        agent: agent_id("agent"),
        attempt: 1,
        request_url: None,
        callback_url: None,
        requested_at: Timestamp(at),
        expires_at: Timestamp(at + 100),
        decision: None,
        decided_at: None,
        decided_by: None,
        feedback: None,
        response: None,
        told: None,
    }
}

fn moved(id: &str, status: Status, resume_to: Option<Status>) -> Write {
    Write::UpdateExecution {
        id: execution_id(id),
        change: ExecutionChange::Moved(Box::new(Move {
            status,
            reason: None,
            wait: None,
            resume_to,
            absorb_until: None,
            clock_from: None,
            active_us: 0,
            over_cap: false,
        })),
    }
}

fn names(rows: &[ApprovalRow]) -> Vec<&str> {
    rows.iter().map(|row| &*row.request).collect()
}

crate::on_each_store! {
    fn approvals_are_listed_newest_first_by_filter_and_page(store) {
        let hand = Hand::on(store);
        hand.insert_all(&[row("one", 1), row("two", 2)]);
        let mut decided = approval("one", "b", 20);
        decided.decision = Some(Decision::Rejected);
        decided.decided_at = Some(Timestamp(25));
        let mut closed = approval("one", "c", 30);
        closed.decided_at = Some(Timestamp(35));
        closed.agent = agent_id("other");
        let all = [approval("one", "a", 10), decided, closed, approval("two", "a", 20)];
        let mut writes: Vec<Write> =
            all.iter().map(|row| Write::PutApproval(Box::new(row.clone()))).collect();
        writes.push(say(event(EventKind::ApprovalRequested, 30)));
        hand.commit(writes);
        let list = |filter: &ApprovalFilter, page: &Page| store.approvals(filter, page).unwrap();
        let every = ApprovalFilter::default();
        assert_eq!(names(&list(&every, &first_page(9))), ["c", "a", "b", "a"]);
        let pending = ApprovalFilter { pending: Some(true), ..every.clone() };
        assert_eq!(names(&list(&pending, &first_page(9))), ["a", "a"]);
        let rejected = ApprovalFilter { decision: Some(Decision::Rejected), ..every.clone() };
        assert_eq!(names(&list(&rejected, &first_page(9))), ["b"]);
        let closed = ApprovalFilter { closed: true, ..every.clone() };
        assert_eq!(names(&list(&closed, &first_page(9))), ["c"]);
        let other = ApprovalFilter { agent: Some(agent_id("other")), ..every.clone() };
        assert_eq!(names(&list(&other, &first_page(9))), ["c"]);
        let mut seen = Vec::new();
        let mut page = first_page(1);
        loop {
            let rows = list(&every, &page);
            let Some(last) = rows.last() else { break };
            page.after = Some((last.requested_at, format!("{} {}", last.execution, last.request)));
            seen.push(format!("{} {}", last.execution, last.request));
        }
        assert_eq!(seen, ["one c", "two a", "one b", "one a"]);
    }

    fn a_paused_queued_execution_is_in_no_queue_and_comes_back_to_its_place(store) {
        let hand = Hand::on(store);
        hand.insert_all(&[row("one", 1), row("two", 2)]);
        hand.commit(vec![
            moved("one", Status::Paused, Some(Status::Queued)),
            say(event(EventKind::ExecutionPaused, 3)),
        ]);
        let agent = agent_id("agent");
        let window = store.window(&agent, None, 9).unwrap();
        assert_eq!(window.rows.len(), 1);
        let restored = store.restore().unwrap().snapshot;
        assert_eq!(restored.queues.iter().map(|q| q.count).sum::<u64>(), 1);
        assert_eq!(restored.open.len(), 1, "a paused one is open");
        assert_eq!(restored.open[0].row.resume_to, Some(Status::Queued));
        hand.commit(vec![
            moved("one", Status::Queued, None),
            say(event(EventKind::ExecutionResumed, 4)),
        ]);
        let window = store.window(&agent, None, 9).unwrap();
        let ids: Vec<_> = window.rows.iter().map(|q| q.row.id.as_str()).collect();
        assert_eq!(ids, ["one", "two"]);
        let restored = store.restore().unwrap().snapshot;
        assert_eq!(restored.queues.iter().map(|q| q.count).sum::<u64>(), 2);
    }

    fn bereaved_are_queued_ones_that_end_with_a_parent_which_has_ended(store) {
        let hand = Hand::on(store);
        let (gone, open) = (row("gone", 1), row("open", 1));
        let with = |id: &str, parent, wish| {
            let mut child = child(id, parent, 2);
            child.on_parent_end = wish;
            child
        };
        hand.insert_all(&[
            gone.clone(),
            open.clone(),
            with("cancel_1", &gone, ParentEnd::Cancel),
            with("cancel_2", &gone, ParentEnd::Cancel),
            with("detach", &gone, ParentEnd::Detach),
            with("started", &gone, ParentEnd::Cancel),
            with("kept", &open, ParentEnd::Cancel),
        ]);
        hand.commit(vec![
            started("started", 1, 3),
            say(event(EventKind::ExecutionStarted, 3)),
        ]);
        hand.end("gone", Status::Succeeded, 4);
        let (as_of, found, more) = store.bereaved(9).unwrap();
        assert_eq!(as_of, store.last_seq().unwrap());
        let mut found: Vec<_> = found.iter().map(|row| row.id.to_string()).collect();
        found.sort();
        assert_eq!((found, more), (vec!["cancel_1".into(), "cancel_2".into()], false));
        let (_, found, more) = store.bereaved(1).unwrap();
        assert_eq!((found.len(), more), (1, true));
    }
}
