//! What an overview asks: counts by bucket, by cause, by category and by agent, and ids by a part
//! of them. All stores count alike.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::Write;
use muster_engine::row::{EventKind, ExecutionRow, QueueKey, Wait};
use muster_store::{AgentCount, Glance, HeldKind, QueueCount};
use muster_wire::{Category, InstanceId, Status, Timestamp, WaitCause};

use crate::support::*;

const ASK: Glance = Glance {
    from: Timestamp(100),
    bucket: Duration::from_micros(10),
    buckets: 3,
};

fn at(id: &str, created: i64, status: Status) -> ExecutionRow {
    let mut new = row(id, created);
    new.status = status;
    new
}

fn over(id: &str, ended: i64, status: Status, category: Option<Category>) -> ExecutionRow {
    let mut new = at(id, 1, status);
    new.ended_at = Some(Timestamp(ended));
    new.error_category = category;
    new
}

fn queued(id: &str, created: i64, class: u8, seq: u64) -> ExecutionRow {
    let mut new = at(id, created, Status::Queued);
    new.queue = QueueKey {
        class,
        turn: 1,
        seq,
    };
    new
}

fn waits(id: &str, created: i64, cause: WaitCause) -> ExecutionRow {
    let mut new = at(id, created, Status::Waiting);
    new.wait = Some(Box::new(Wait {
        cause,
        reference: "r".into(),
        until: None,
    }));
    new
}

crate::on_each_store! {
    fn what_is_open_is_counted_by_what_holds_it_up(store) {
        let hand = Hand::on(store);
        let mut absorbed = at("absorbed", 7, Status::Running);
        absorbed.absorb_until = Some(Timestamp(900));
        let mut other = queued("q4", 3, 5, 4);
        other.agent = agent_id("other");
        hand.insert_all(&[
            // The oldest is not the first in line.
            queued("q1", 9, 0, 9),
            queued("q2", 4, 5, 2),
            queued("q3", 5, 5, 3),
            other,
            at("runs", 6, Status::Running),
            absorbed,
            waits("asks", 8, WaitCause::Approval),
            waits("asks2", 2, WaitCause::Approval),
            waits("child", 8, WaitCause::AwaitingChild),
            at("paused", 8, Status::Paused),
        ]);
        let seen = store.glance(&ASK).unwrap();
        let queue = |agent: &str, count, oldest| QueueCount {
            agent: agent_id(agent),
            count,
            oldest_at: Timestamp(oldest),
        };
        assert_eq!(seen.queued, [queue("agent", 3, 4), queue("other", 1, 3)]);
        assert_eq!(seen.running, 2);
        let held: Vec<_> = seen.held.iter().map(|h| (h.kind, h.count, h.oldest_at.0)).collect();
        assert_eq!(held, [
            (HeldKind::Approval, 2, 2),
            (HeldKind::Child, 1, 8),
            (HeldKind::Paused, 1, 8),
            (HeldKind::Absorbed, 1, 7),
        ]);
        assert_eq!(seen.last_seq, store.last_seq().unwrap());
    }

    fn buckets_begin_at_their_moment_and_end_before_the_next(store) {
        let hand = Hand::on(store);
        let mut rows: Vec<ExecutionRow> = Vec::new();
        for (n, created) in [99, 100, 109, 110, 129, 130].into_iter().enumerate() {
            rows.push(at(&format!("c{n}"), created, Status::Running));
        }
        let parent = rows[0].clone();
        rows.push(child("member", &parent, 111));
        for (n, ended) in [99, 100, 119, 120, 130].into_iter().enumerate() {
            rows.push(over(&format!("e{n}"), ended, Status::Succeeded, None));
        }
        hand.insert_all(&rows);
        let seen = store.glance(&ASK).unwrap();
        assert_eq!(seen.started, [2, 2, 1]);
        assert_eq!(seen.ended, [1, 1, 1]);
    }

    fn failures_are_counted_by_category_now_and_before(store) {
        let hand = Hand::on(store);
        let category = |category| Some(category);
        hand.insert_all(&[
            over("f1", 100, Status::Failed, category(Category::AgentError)),
            over("f2", 128, Status::Failed, category(Category::AgentError)),
            over("f3", 500, Status::Timeout, category(Category::AgentTimeout)),
            over("f4", 99, Status::Failed, category(Category::AgentError)),
            over("f5", 70, Status::Failed, category(Category::BadResponse)),
            over("f6", 69, Status::Failed, category(Category::AgentError)),
            over("c1", 120, Status::Cancelled, category(Category::Cancelled)),
            over("s1", 120, Status::Succeeded, None),
        ]);
        let seen = store.glance(&ASK).unwrap();
        assert_eq!(seen.failed, [(Category::AgentError, 2), (Category::AgentTimeout, 1)]);
        assert_eq!(seen.failed_before, [(Category::AgentError, 1), (Category::BadResponse, 1)]);
    }

    fn what_ended_is_counted_by_agent(store) {
        let hand = Hand::on(store);
        let mut other = over("o1", 100, Status::Succeeded, None);
        other.agent = agent_id("other");
        hand.insert_all(&[
            over("e1", 99, Status::Failed, Some(Category::AgentError)),
            over("e2", 100, Status::Failed, Some(Category::AgentError)),
            over("e3", 200, Status::Succeeded, None),
            over("e4", 200, Status::Timeout, Some(Category::AgentTimeout)),
            other,
        ]);
        let count = |agent: &str, ended, failed| AgentCount {
            agent: agent_id(agent),
            ended,
            failed,
        };
        let all = store.ended_by_agent(Timestamp(100), None).unwrap();
        assert_eq!(all, [count("agent", 3, 2), count("other", 1, 0)]);
        let one = store.ended_by_agent(Timestamp(100), Some(&agent_id("other"))).unwrap();
        assert_eq!(one, [count("other", 1, 0)]);
    }

    fn ids_are_found_by_their_beginning_and_by_their_end_in_any_case(store) {
        let hand = Hand::on(store);
        for id in ["exec_01AB7K2F9Q", "exec_02AB000000", "exec_03CD7K2F9Q", "7K2F9Q_foreign"] {
            hand.insert(&row(id, 1));
        }
        let find = |part: &str, limit| {
            let found = store.find_ids(part, limit).unwrap();
            let ids: Vec<String> = found.executions.iter().map(ToString::to_string).collect();
            ids
        };
        assert_eq!(find("exec_0", 10), ["exec_03CD7K2F9Q", "exec_02AB000000", "exec_01AB7K2F9Q"]);
        assert_eq!(find("exec_0", 2), ["exec_03CD7K2F9Q", "exec_02AB000000"]);
        assert_eq!(find("7K2F9Q", 10), ["7K2F9Q_foreign", "exec_03CD7K2F9Q", "exec_01AB7K2F9Q"]);
        assert_eq!(find("7k2f9q", 10), ["exec_03CD7K2F9Q", "exec_01AB7K2F9Q"]);
        assert_eq!(find("nothing", 10), [""; 0]);
        assert_eq!(find("exec_01AB7K2F9Q", 10), ["exec_01AB7K2F9Q"]);
        let runs = store.find_ids("run-of-exec_02", 10).unwrap().runs;
        assert_eq!(runs, [run_id("run-of-exec_02AB000000")]);
    }

    fn events_about_instances_are_found_and_those_of_calls_are_not(store) {
        let hand = Hand::on(store);
        let about = |kind, at, instance: Option<&str>, execution: Option<&str>| {
            let mut line = event(kind, at);
            line.agent = Some(agent_id("agent"));
            line.instance = instance.map(InstanceId::trusted);
            line.execution = execution.map(execution_id);
            Write::InsertEvent(Arc::new(line))
        };
        hand.commit(vec![
            about(EventKind::InstanceRegistered, 1, Some("i"), None),
            about(EventKind::ExecutionStarted, 2, Some("i"), Some("e")),
            about(EventKind::AgentTagsChanged, 3, None, None),
            about(EventKind::InstanceGone, 4, Some("i"), None),
            about(EventKind::InstanceRegistered, 5, Some("j"), None),
        ]);
        let kinds = |until, limit| -> Vec<i64> {
            let agent = agent_id("agent");
            let events = store.events_of_instances(&agent, Timestamp(until), limit).unwrap();
            events.iter().map(|event| event.at.0).collect()
        };
        assert_eq!(kinds(100, 10), [5, 4, 1]);
        assert_eq!(kinds(5, 10), [4, 1]);
        assert_eq!(kinds(100, 1), [5]);
        assert!(store.events_of_instances(&agent_id("nobody"), Timestamp(9), 9).unwrap().is_empty());
    }
}
