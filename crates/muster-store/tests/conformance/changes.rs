//! Every write, every change and every kind of event reads back as it was written.

use std::sync::Arc;

use muster_engine::Write;
use muster_engine::effect::{Ending, ExecutionChange};
use muster_engine::event::AttemptKey;
use muster_engine::row::{AttemptOutcome, EventKind, EventRow, ExecutionRow, PayloadKind, RunRow};
use muster_store::change;
use muster_wire::{
    Category, ExecutionKind, FunctionKind, FunctionName, InstanceId, Lane, Origin, Status,
    Timestamp,
};

use crate::support::*;

/// A row with something in every field.
fn full(id: &str) -> ExecutionRow {
    ExecutionRow {
        root: execution_id("somewhere"),
        parent: Some(execution_id("above")),
        depth: 63,
        kind: ExecutionKind::Observed,
        lane: Lane::Mcp,
        function_kind: FunctionKind::Skill,
        status: Status::Waiting,
        status_reason: Some(Arc::from("approval: text behind a colon")),
        error_category: Some(Category::Other("a_word_of_tomorrow".into())),
        error_text: Some(payload(b"text")),
        error_status: Some(418),
        attempt: u32::MAX,
        holds: vec![agent_id("a"), agent_id("b.c:d-e_f")],
        over_cap: true,
        started_at: Some(Timestamp(11)),
        ended_at: Some(Timestamp(12)),
        active_us: i64::MAX,
        clock_from: Some(Timestamp(13)),
        deadline_us: i64::MAX,
        absorb_until: Some(Timestamp(14)),
        input_size: i64::MAX as u64,
        input_hash: [255; 16],
        result_size: Some(0),
        key_hash: Some(Arc::from("hash")),
        principal: Arc::from(""),
        session: Some(Arc::from("session")),
        actor: Some(Arc::from("actor")),
        traceparent: Some(Arc::from("00-ab-cd-01")),
        usage: Some(payload(b"{\"tokens\":1}")),
        origin: Origin::Ci,
        late_outcome: Some(Status::Timeout),
        ..row(id, 10)
    }
}

fn change_of(id: &str, change: ExecutionChange) -> Write {
    Write::UpdateExecution {
        id: execution_id(id),
        change,
    }
}

crate::on_each_store! {
    fn every_field_of_an_execution_reads_back(store) {
        let hand = Hand::on(store);
        hand.insert(&full("full"));
        let mut plain = row("plain", 1);
        for status in Status::ALL {
            for lane in Lane::ALL {
                plain.id = execution_id(&format!("plain-{status}-{lane}"));
                plain.root = plain.id.clone();
                (plain.status, plain.lane) = (*status, *lane);
                hand.insert(&plain);
                assert_eq!(store.execution(&plain.id).unwrap().1.as_ref(), Some(&plain));
            }
        }
        for category in Category::ALL {
            let mut row = full(&format!("full-{category}"));
            row.error_category = Some(category.clone());
            hand.insert(&row);
            assert_eq!(store.execution(&row.id).unwrap().1, Some(row));
        }
        assert_eq!(store.execution(&execution_id("full")).unwrap().1, Some(full("full")));
    }

    fn every_change_does_what_it_says(store) {
        let hand = Hand::on(store);
        let ending = Ending {
            status: Status::Failed,
            reason: Some(Arc::from("reason")),
            category: Some(Category::AgentError),
            error: Some(payload(b"\xff\x00text")),
            http_status: Some(502),
            at: Timestamp(40),
            active_us: 77,
            result_size: Some(9),
            usage: Some(payload(b"{}")),
        };
        let changes = [
            ExecutionChange::Absorbed {
                until: Timestamp(30),
                started_at: Timestamp(20),
                clock_from: Timestamp(21),
                over_cap: true,
            },
            ExecutionChange::Started {
                attempt: 2,
                started_at: Timestamp(20),
                clock_from: Timestamp(22),
                active_us: 5,
                over_cap: true,
                holds: vec![agent_id("x"), agent_id("y")],
            },
            ExecutionChange::Started {
                attempt: 3,
                started_at: Timestamp(20),
                clock_from: Timestamp(23),
                active_us: 6,
                over_cap: false,
                holds: Vec::new(),
            },
            ExecutionChange::Ended(Box::new(ending)),
            ExecutionChange::Late { status: Status::Succeeded },
            ExecutionChange::Late { status: Status::Cancelled },
        ];
        let mut expected = row("e1", 10);
        hand.insert(&expected);
        for each in changes {
            assert!(change::apply(&mut expected, &each));
            hand.commit(vec![change_of("e1", each)]);
            assert_eq!(store.execution(&expected.id).unwrap().1.as_ref(), Some(&expected));
        }
        for status in [Status::Succeeded, Status::Cancelled, Status::Timeout] {
            let mut expected = full(&format!("e-{status}"));
            hand.insert(&expected);
            let end = ExecutionChange::Ended(Box::new(ending_without_usage(status)));
            assert!(change::apply(&mut expected, &end));
            hand.commit(vec![change_of(expected.id.as_str(), end)]);
            assert_eq!(expected.usage, Some(payload(b"{\"tokens\":1}")));
            assert_eq!(store.execution(&expected.id).unwrap().1, Some(expected));
        }
    }

    fn every_kind_of_event_reads_back(store) {
        let hand = Hand::on(store);
        let mut expected = Vec::new();
        for (at, kind) in (1..).zip(EventKind::ALL) {
            let plain = event(*kind, at);
            let full = EventRow {
                execution: Some(execution_id("e1")),
                run: Some(run_id("r1")),
                agent: Some(agent_id("a1")),
                function: Some(FunctionName::trusted("f1")),
                instance: Some(InstanceId::trusted("url:http://[::1]:1/a?b=c#d")),
                attempt: Some(u32::MAX),
                status: Some(Status::ALL[expected.len() % 8]),
                reason: Some(Arc::from("reason: \0 text")),
                category: Some(Category::Other("word".into())),
                text: Some(Arc::from("a sentence, 'quoted' \"twice\"")),
                ..event(*kind, i64::MAX)
            };
            hand.commit(vec![say(plain.clone()), say(full.clone())]);
            expected.extend([plain, full]);
        }
        for (seq, row) in (1..).zip(&mut expected) {
            row.seq = seq;
        }
        assert_eq!(store.events(0, 1_000).unwrap(), expected);
        assert_eq!(store.events(3, 2).unwrap(), expected[3..5]);
        assert_eq!(store.events(expected.len() as u64, 5).unwrap(), []);
        assert_eq!(store.events(u64::MAX, 5).unwrap(), []);
        let mine: Vec<_> = expected.iter().filter(|e| e.execution.is_some()).cloned().collect();
        assert_eq!(store.events_of(&execution_id("e1"), 1_000).unwrap(), mine);
        assert_eq!(store.events_of(&execution_id("e1"), 3).unwrap(), mine[..3]);
        assert_eq!(store.events_of(&execution_id("e2"), 3).unwrap(), []);
        assert_eq!(store.oldest_event().unwrap(), Some(1));
    }

    fn attempts_read_back_through_their_life(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        let mut first = attempt("e1", 1, 5);
        first.candidates = vec![InstanceId::trusted("a"), InstanceId::trusted("url:http://b")];
        let mut last = attempt("e1", u32::MAX, 6);
        hand.commit(vec![
            Write::InsertAttempt(Box::new(last.clone())),
            Write::InsertAttempt(Box::new(first.clone())),
        ]);
        let key = |n| AttemptKey { execution: execution_id("e1"), n };
        assert_eq!(store.attempts(&first.execution).unwrap(), [first.clone(), last.clone()]);
        hand.commit(vec![Write::AcceptAttempt { attempt: key(1), at: Timestamp(7) }]);
        first.accepted_at = Some(Timestamp(7));
        let outcomes = [
            AttemptOutcome::Answered,
            AttemptOutcome::DialFailed,
            AttemptOutcome::Broke,
            AttemptOutcome::TimedOut,
            AttemptOutcome::Disowned,
            AttemptOutcome::Orphaned,
            AttemptOutcome::Unknown,
        ];
        for (at, outcome) in (10..).zip(outcomes) {
            let evidence = (at % 2 == 0).then(|| payload(b"\x00\xfe"));
            hand.commit(vec![Write::EndAttempt {
                attempt: key(u32::MAX),
                at: Timestamp(at),
                outcome,
                evidence: evidence.clone(),
            }]);
            last.ended_at = Some(Timestamp(at));
            (last.outcome, last.evidence) = (Some(outcome), evidence);
            assert_eq!(store.attempts(&first.execution).unwrap(), [first.clone(), last.clone()]);
        }
        assert_eq!(store.attempts(&execution_id("e2")).unwrap(), []);
    }

    fn agents_instances_and_runs_are_replaced_whole(store) {
        let hand = Hand::on(store);
        let mut one = agent("one", false);
        hand.commit(vec![
            Write::PutAgent(Box::new(agent("two", true))),
            Write::PutAgent(Box::new(one.clone())),
        ]);
        one.principal = Arc::from("somebody");
        one.registration = payload(b"\x00\xff{");
        one.registered_at = Timestamp(9);
        let mut late = instance("one", "late", 9);
        let early = instance("one", "early", 3);
        hand.commit(vec![
            Write::PutAgent(Box::new(one.clone())),
            Write::PutInstance(Box::new(instance("one", "late", 1))),
            Write::PutInstance(Box::new(early.clone())),
            Write::PutInstance(Box::new(late.clone())),
            Write::SetAgentHold { agent: agent_id("one"), held: true },
            Write::SetAgentCap { agent: agent_id("one"), cap: Some(7) },
        ]);
        (one.held, one.cap) = (true, Some(7));
        late.goodbye_at = Some(Timestamp(20));
        late.gone_at = Some(Timestamp(21));
        late.gone_evidence = Some(Arc::from("exit code 0"));
        late.orphans_at = Some(Timestamp(22));
        late.worker = Some(Arc::from("wrk_1"));
        late.base_url = Arc::from("");
        late.functions = Arc::new(Vec::new());
        hand.commit(vec![Write::PutInstance(Box::new(late.clone()))]);
        let all = store.agents(None).unwrap();
        let names: Vec<_> = all.iter().map(|a| a.row.id.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(all[0].row, one);
        assert_eq!(all[0].instances, [early, late]);
        assert_eq!(all[1].instances, []);
        let only = store.agents(Some(&agent_id("two"))).unwrap();
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].row, agent("two", true));
        assert!(store.agents(Some(&agent_id("three"))).unwrap().is_empty());
        let restored = store.restore().unwrap().snapshot;
        assert_eq!(restored.agents.len(), 2);
        assert_eq!(restored.instances.len(), 2);

        hand.insert(&row("e1", 1));
        let mut mark = RunRow {
            id: run_id("run-of-e1"),
            root: execution_id("e1"),
paused_at: None,
paused_by: None,
source: None,
            cancelled_at: None,
            cancelled_by: None,
        };
        hand.commit(vec![Write::PutRun(Box::new(mark.clone()))]);
        assert_eq!(store.restore().unwrap().snapshot.runs, [mark.clone()]);
        mark.cancelled_at = Some(Timestamp(5));
        mark.cancelled_by = Some(Arc::from("who: why"));
        hand.commit(vec![Write::PutRun(Box::new(mark.clone()))]);
        assert_eq!(store.restore().unwrap().snapshot.runs, [mark]);
    }

    fn a_payload_is_the_last_one_put(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        let kinds = [
            PayloadKind::Input,
            PayloadKind::Result,
            PayloadKind::ErrorDetails,
            PayloadKind::Late,
        ];
        for kind in kinds {
            assert_eq!(store.payload(&execution_id("e1"), kind).unwrap(), None);
            hand.commit(vec![put("e1", kind, kind.word().as_bytes())]);
        }
        for kind in kinds {
            let found = store.payload(&execution_id("e1"), kind).unwrap();
            assert_eq!(found, Some(payload(kind.word().as_bytes())));
            hand.commit(vec![put("e1", kind, b"again")]);
            let found = store.payload(&execution_id("e1"), kind).unwrap();
            assert_eq!(found, Some(payload(b"again")));
        }
    }
}

fn ending_without_usage(status: Status) -> Ending {
    ending(status, 50)
}
