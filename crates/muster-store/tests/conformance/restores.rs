//! What a start reads back.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::row::{EventKind, HeldBy, QueueCount, RunRow};
use muster_wire::{Status, Timestamp};

use crate::support::*;

fn held_by(who: &str) -> HeldBy {
    HeldBy {
        by: Arc::from(who),
        at: Timestamp(12),
        reason: Arc::from("by hand"),
    }
}

crate::on_each_store! {
    fn an_empty_store_restores_to_nothing(store) {
        let restored = store.restore().unwrap();
        assert_eq!(restored.snapshot.last_seq, 0);
        assert_eq!(restored.snapshot.last_at, Timestamp::ZERO);
        assert!(restored.snapshot.open.is_empty());
        assert!(restored.snapshot.queues.is_empty());
        assert!(restored.set_aside.is_empty());
    }

    fn open_work_comes_back_and_finished_work_does_not(store) {
        let hand = Hand::on(store);
        let done = row("done", 1);
        let open = row("open", 2);
        let waits = row("waits", 3);
        let also = child("also", &waits, 4);
        let mut other = row("other", 5);
        other.queue.class = 0;
        hand.insert_all(&[done, open.clone(), waits.clone(), also, other]);
        let mut first = attempt("open", 1, 10);
        let second = attempt("open", 2, 11);
        hand.commit(vec![
            started("done", 1, 10),
            started("open", 2, 11),
            Write::InsertAttempt(Box::new(first.clone())),
            Write::InsertAttempt(Box::new(second.clone())),
            ended("done", Status::Succeeded, 12),
            say(event(EventKind::ExecutionSucceeded, 12)),
            Write::SetHold(Some(Arc::from("by hand"))),
            Write::SetHeldBy { agent: None, by: Some(held_by("ada")) },
            Write::SetHeldBy { agent: Some(agent_id("agent")), by: Some(held_by("bob")) },
            Write::SetHeldBy { agent: Some(agent_id("other")), by: Some(held_by("eve")) },
            Write::SetHeldBy { agent: Some(agent_id("other")), by: None },
            Write::PutRun(Box::new(RunRow {
                id: waits.run.clone(),
                root: waits.id.clone(),
paused_at: None,
paused_by: None,
source: None,
                cancelled_at: Some(Timestamp(12)),
                cancelled_by: Some(Arc::from("somebody")),
            })),
            Write::PutRun(Box::new(RunRow {
                id: run_id("run-of-done"),
                root: execution_id("done"),
paused_at: None,
paused_by: None,
source: None,
                cancelled_at: Some(Timestamp(12)),
                cancelled_by: None,
            })),
        ]);
        let snapshot = store.restore().unwrap().snapshot;
        assert_eq!((snapshot.last_seq, snapshot.last_at), (1, Timestamp(12)));
        let [found] = &snapshot.open[..] else {
            panic!("{:?}", snapshot.open)
        };
        assert_eq!(found.row.id, open.id);
        assert_eq!(found.row.status, Status::Running);
        assert_eq!(found.attempt.as_ref(), Some(&second));
        let count = |class, count| QueueCount {
            agent: agent_id("agent"),
            class,
            turn: 1,
            count,
        };
        assert_eq!(snapshot.queues, vec![count(0, 1), count(5, 2)]);
        let runs: Vec<_> = snapshot.runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(runs, ["run-of-waits"]);
        assert_eq!(snapshot.hold.as_deref(), Some("by hand"));
        assert_eq!(
            snapshot.held_by,
            [(None, held_by("ada")), (Some(agent_id("agent")), held_by("bob"))]
        );

        hand.commit(vec![Write::SetHold(None)]);
        assert_eq!(store.restore().unwrap().snapshot.hold, None);
        first.ended_at = Some(Timestamp(11));
        assert_ne!(store.attempts(&open.id).unwrap(), vec![first, second]);
    }

    fn counts_of_queues_follow_every_way_in_and_out(store) {
        let hand = Hand::on(store);
        let mut waiting = std::collections::BTreeMap::new();
        // A small generator of our own: the story is the same on both stores.
        let mut dice = 1_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % sides
        };
        for n in 0..300_i64 {
            let mut new = row(&format!("e{n}"), n + 1);
            new.agent = agent_id(if roll(2) == 0 { "one" } else { "two" });
            new.queue.class = roll(3) as u8;
            new.queue.turn = roll(3);
            if roll(4) == 0 {
                new.status = Status::Running;
            } else {
                waiting.insert(new.id.to_string(), new.clone());
            }
            let mut writes = vec![Write::InsertExecution(Arc::new(new))];
            for id in waiting.keys().take(roll(2) as usize) {
                writes.push(match roll(2) {
                    0 => started(id, 1, n),
                    _ => ended(id, Status::Cancelled, n),
                });
            }
            for write in &writes[1..] {
                if let Write::UpdateExecution { id, .. } = write {
                    waiting.remove(id.as_str());
                }
            }
            if roll(5) == 0 {
                writes.push(ended("nobody", Status::Failed, n));
                hand.refused(writes.clone());
                writes.pop();
            }
            hand.commit(writes);
        }
        let mut expected: Vec<QueueCount> = Vec::new();
        let mut rows: Vec<_> = waiting.values().collect();
        rows.sort_by_key(|row| (row.agent.clone(), row.queue.class, row.queue.turn));
        for row in rows {
            let (class, turn) = (row.queue.class, row.queue.turn);
            match expected.last_mut() {
                Some(last) if (&last.agent, last.class, last.turn) == (&row.agent, class, turn) => {
                    last.count += 1;
                }
                _ => expected.push(QueueCount { agent: row.agent.clone(), class, turn, count: 1 }),
            }
        }
        assert!(expected.len() > 5, "the story has many queues");
        assert_eq!(store.restore().unwrap().snapshot.queues, expected);
    }
}
