//! Usage: what is summed up of reports, by what, and in which time.

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_store::usage::Sums;
use muster_store::{UsageAnswer, UsageBy, UsageKey, UsageQuestion};
use muster_wire::{FunctionName, Status, Timestamp};

use crate::support::*;

const DAY: i64 = 86_400_000_000;

fn question(by: UsageBy) -> UsageQuestion {
    UsageQuestion {
        by,
        from: Timestamp(0),
        to: Timestamp(i64::MAX),
        skip: 0,
        limit: 100,
    }
}

fn ended_with(id: &str, at: i64, usage: Option<&[u8]>) -> Write {
    let mut ending = ending(Status::Succeeded, at);
    ending.usage = usage.map(payload);
    Write::UpdateExecution {
        id: execution_id(id),
        change: ExecutionChange::Ended(Box::new(ending)),
    }
}

/// Two runs, two agents, two days; one that is open, one without a report, one that lies.
fn some(hand: &Hand<'_>) {
    let root = row("root", 1);
    let mut other = child("other", &root, 2);
    other.agent = agent_id("other");
    let mut second = row("second", 3);
    second.function = FunctionName::trusted("second");
    let open = row("open", 4);
    let liar = child("liar", &root, 5);
    hand.insert_all(&[root, other, second, open, liar]);
    hand.commit(vec![
        ended_with(
            "root",
            10,
            Some(br#"{"total_tokens":5,"total_cost_usd":0.1}"#),
        ),
        ended_with("other", DAY - 1, None),
        ended_with(
            "second",
            DAY,
            Some(br#"{"total_tokens":7,"total_cost_usd":0.2,"x":1}"#),
        ),
        ended_with(
            "liar",
            DAY + 5,
            Some(br#"{"total_tokens":-7,"total_input_tokens":"9"}"#),
        ),
    ]);
}

fn of(answer: &UsageAnswer, key: &UsageKey) -> Sums {
    let found = answer.groups.iter().find(|(of, _)| of == key);
    found.unwrap_or_else(|| panic!("{key:?} in {answer:?}")).1
}

crate::on_each_store! {
    fn sums_are_exact_whatever_they_are_grouped_by(store) {
        some(&Hand::on(store));
        let total = Sums {
            ended: 4,
            unreported: 1,
            unreadable: 1,
            other: 1,
            priced: 2,
            total: Some(12),
            cost: Some(300_000_000),
            ..Sums::default()
        };
        for by in [UsageBy::Run, UsageBy::Agent, UsageBy::Function, UsageBy::Day] {
            let answer = store.usage(&question(by)).unwrap();
            assert_eq!(answer.total, total, "{by:?}");
            assert_eq!(answer.groups_total, answer.groups.len());
            let ended: u64 = answer.groups.iter().map(|(_, sums)| sums.ended).sum();
            assert_eq!(ended, 4, "{by:?}");
        }
        let runs = store.usage(&question(UsageBy::Run)).unwrap();
        assert_eq!(runs.groups[0].0, UsageKey::Run(row("second", 0).run), "what cost most is first");
        let run = row("root", 0).run;
        let sums = of(&runs, &UsageKey::Run(run.clone()));
        assert_eq!((sums.ended, sums.unreported, sums.unreadable, sums.total), (3, 1, 1, Some(5)));
        assert_eq!(store.usage_of_run(&run).unwrap(), sums);
        assert_eq!(store.usage_of_run(&row("open", 0).run).unwrap(), Sums::default());
        let agents = store.usage(&question(UsageBy::Agent)).unwrap();
        let silent = of(&agents, &UsageKey::Agent(agent_id("other")));
        assert_eq!((silent.ended, silent.unreported, silent.total), (1, 1, None));
        let functions = store.usage(&question(UsageBy::Function)).unwrap();
        let second = UsageKey::Function(agent_id("agent"), FunctionName::trusted("second"));
        assert_eq!(of(&functions, &second).cost, Some(200_000_000));
        let days = store.usage(&question(UsageBy::Day)).unwrap();
        let keys: Vec<_> = days.groups.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, [UsageKey::Day(1), UsageKey::Day(0)]);
    }

    fn a_time_ends_before_its_end_and_pages_follow_each_other(store) {
        some(&Hand::on(store));
        let ask = |from, to| {
            let asked = UsageQuestion { from: Timestamp(from), to: Timestamp(to), ..question(UsageBy::Run) };
            store.usage(&asked).unwrap().total.ended
        };
        assert_eq!([ask(10, DAY), ask(11, DAY), ask(DAY, DAY + 5), ask(DAY + 6, i64::MAX)], [2, 1, 1, 0]);
        assert_eq!(ask(DAY, 10), 0);
        let all = store.usage(&question(UsageBy::Function)).unwrap();
        let mut walked = Vec::new();
        for skip in 0..all.groups_total + 1 {
            let asked = UsageQuestion { skip, limit: 1, ..question(UsageBy::Function) };
            walked.extend(store.usage(&asked).unwrap().groups);
        }
        assert_eq!(walked, all.groups);
    }
}
