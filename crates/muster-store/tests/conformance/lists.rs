//! Lists: filters, stable paging, runs.

use muster_engine::Write;
use muster_engine::row::{ExecutionRow, RunRow};
use muster_store::{Also, ExecutionFilter, Page, RunFilter};
use muster_wire::{Category, FunctionName, Origin, Status, Timestamp};

use crate::support::*;

fn filter() -> ExecutionFilter {
    ExecutionFilter::default()
}

/// Twenty executions in pairs of the same moment: roots and members, two agents, all statuses.
fn twenty(hand: &Hand<'_>) -> Vec<ExecutionRow> {
    let mut rows: Vec<ExecutionRow> = Vec::new();
    for n in 0..20_usize {
        let id = format!("e{n:02}");
        let at = (n / 2) as i64;
        let mut new = match n % 4 {
            0 => row(&id, at),
            _ => child(&id, &rows[n - n % 4].clone(), at),
        };
        new.status = Status::ALL[n % 8];
        new.ended_at = new.status.is_terminal().then_some(Timestamp(100));
        new.agent = agent_id(if n % 3 == 0 { "three" } else { "agent" });
        new.function = FunctionName::trusted(if n % 5 == 0 { "five" } else { "function" });
        new.status_reason = (n % 6 == 1).then(|| "waits".into());
        new.error_category = (new.status == Status::Failed).then_some(Category::AgentError);
        rows.push(new);
    }
    hand.insert_all(&rows);
    rows
}

fn expected(rows: &[ExecutionRow], keep: impl Fn(&ExecutionRow) -> bool) -> Vec<String> {
    let mut kept: Vec<&ExecutionRow> = rows.iter().filter(|row| keep(row)).collect();
    kept.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    kept.iter().map(|row| row.id.to_string()).collect()
}

crate::on_each_store! {
    fn counts_of_executions_are_what_lists_would_show(store) {
        let hand = Hand::on(store);
        twenty(&hand);
        let also = |also: Also| ExecutionFilter { also, ..filter() };
        let filters = [
            filter(),
            ExecutionFilter { agents: vec![agent_id("three")], ..filter() },
            ExecutionFilter { function: Some(FunctionName::trusted("five")), ..filter() },
            ExecutionFilter { run: Some(run_id("run-of-e04")), ..filter() },
            ExecutionFilter { parent: Some(execution_id("e08")), ..filter() },
            ExecutionFilter { since: Some(Timestamp(3)), ..filter() },
            ExecutionFilter { id_part: Some("e1".into()), ..filter() },
            also(Also { text: Some("FIVE".into()), ..Also::default() }),
            also(Also { text: Some("e07".into()), ..Also::default() }),
            also(Also { ended_since: Some(Timestamp(100)), ..Also::default() }),
            also(Also { ended_since: Some(Timestamp(101)), ..Also::default() }),
            also(Also { ended_until: Some(Timestamp(100)), ..Also::default() }),
            also(Also { reason: Some("cause".into()), ..Also::default() }),
            also(Also { session: Some("s".into()), ..Also::default() }),
            also(Also { origin: Some(Origin::Dev), ..Also::default() }),
        ];
        for all in filters {
            let counts = store.execution_counts(&all).unwrap();
            for status in Status::ALL {
                let one = ExecutionFilter { statuses: vec![*status], ..all.clone() };
                let page = Page { after: None, limit: 50 };
                let shown = store.executions(&one, &page).unwrap().len() as u64;
                let counted: u64 = counts.iter().filter(|(s, _)| s == status).map(|(_, n)| n).sum();
                assert_eq!(counted, shown, "{status} of {all:?}");
            }
        }
    }

    fn what_is_open_is_listed_whatever_the_range(store) {
        let hand = Hand::on(store);
        twenty(&hand);
        let late = Also { ended_since: Some(Timestamp(101)), ..Also::default() };
        let page = Page { after: None, limit: 50 };
        let rows = store.executions(&ExecutionFilter { also: late.clone(), ..filter() }, &page).unwrap();
        assert!(rows.iter().all(|row| !row.status.is_terminal()), "{rows:?}");
        assert_eq!(rows.len(), 12);
        let mut sorted = rows.clone();
        sorted.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        assert_eq!(rows, sorted);
        let runs = store.runs(&RunFilter { also: late, ..RunFilter::default() }, &page).unwrap();
        assert!(!runs.is_empty() && runs.iter().all(|run| !run.status.is_terminal()), "{runs:?}");
    }

    fn counts_of_runs_are_what_lists_of_their_states_would_show(store) {
        let hand = Hand::on(store);
        twenty(&hand);
        let also = |also: Also| RunFilter { also, ..RunFilter::default() };
        let filters = [
            RunFilter::default(),
            RunFilter { agent: Some(agent_id("three")), ..RunFilter::default() },
            RunFilter { function: Some(FunctionName::trusted("five")), ..RunFilter::default() },
            also(Also { text: Some("run-of-e1".into()), ..Also::default() }),
            also(Also { ended_since: Some(Timestamp(101)), ..Also::default() }),
            also(Also { ended_until: Some(Timestamp(100)), ..Also::default() }),
        ];
        for all in filters {
            let counts = store.run_counts(&all).unwrap();
            let page = Page { after: None, limit: 50 };
            for state in Status::ALL {
                let one = RunFilter { states: vec![*state], ..all.clone() };
                let shown = store.runs(&one, &page).unwrap();
                assert!(shown.iter().all(|run| run.status == *state), "{shown:?}");
                let counted: u64 = counts.iter().filter(|(s, _)| s == state).map(|(_, n)| n).sum();
                assert_eq!(counted, shown.len() as u64, "{state} of {all:?}: {counts:?}");
            }
            let total: u64 = counts.iter().map(|(_, n)| n).sum();
            assert_eq!(total, store.runs(&all, &page).unwrap().len() as u64, "{all:?}");
        }
    }

    fn a_run_tells_its_end_its_steps_and_their_lives(store) {
        let hand = Hand::on(store);
        let rows = twenty(&hand);
        let run = run_id("run-of-e04");
        let ids = store.step_ids(&run).unwrap();
        let named: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
        assert_eq!(named, ["e04", "e05", "e06", "e07"]);
        // All of it has ended, all at once.
        assert_eq!(store.run(&run).unwrap().unwrap().ended_at, Some(Timestamp(100)));
        assert_eq!(store.run(&run_id("run-of-e00")).unwrap().unwrap().ended_at, None);
        let lines = store.step_lines(&run, None).unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1].parent.as_ref(), Some(&rows[4].id));
        assert_eq!(lines[1].ended_at, Some(Timestamp(100)));
        let below = store.step_lines(&run, Some(&rows[4].id)).unwrap();
        assert_eq!(below.len(), 3);
        let lives = store.lives(&ids).unwrap();
        assert_eq!(lives.len(), 4);
        assert!(lives.iter().all(|life| life.attempts.is_empty()));
        assert_eq!(store.run_marks(&run).unwrap(), None);
    }

    fn each_filter_keeps_what_fits_at_every_page_size(store) {
        let hand = Hand::on(store);
        let rows = twenty(&hand);
        type Keep = Box<dyn Fn(&ExecutionRow) -> bool>;
        let mut cases: Vec<(ExecutionFilter, Keep)> = vec![
            (filter(), Box::new(|_| true)),
            (ExecutionFilter { agents: vec![agent_id("three")], ..filter() }, Box::new(|r| r.agent.as_str() == "three")),
            (ExecutionFilter { function: Some(FunctionName::trusted("five")), ..filter() }, Box::new(|r| r.function.as_str() == "five")),
            (ExecutionFilter { run: Some(run_id("run-of-e04")), ..filter() }, Box::new(|r| r.run.as_str() == "run-of-e04")),
            (ExecutionFilter { parent: Some(execution_id("e08")), ..filter() }, Box::new(|r| r.parent.as_ref().is_some_and(|p| p.as_str() == "e08"))),
            (ExecutionFilter { category: Some(Category::AgentError), ..filter() }, Box::new(|r| r.error_category.is_some())),
            (ExecutionFilter { agents: vec![agent_id("three"), agent_id("agent")], ..filter() }, Box::new(|_| true)),
            (ExecutionFilter { agents: vec![agent_id("three"), agent_id("nobody")], ..filter() }, Box::new(|r| r.agent.as_str() == "three")),
            (ExecutionFilter { also: Also { reason: Some("waits".into()), ..Also::default() }, ..filter() }, Box::new(|r| r.status_reason.as_deref() == Some("waits"))),
            (ExecutionFilter { also: Also { ended_since: Some(Timestamp(101)), ..Also::default() }, ..filter() }, Box::new(|r| !r.status.is_terminal())),
            (ExecutionFilter { also: Also { ended_since: Some(Timestamp(100)), ..Also::default() }, ..filter() }, Box::new(|_| true)),
            (ExecutionFilter { also: Also { ended_until: Some(Timestamp(100)), ..Also::default() }, ..filter() }, Box::new(|r| !r.status.is_terminal())),
            (ExecutionFilter { since: Some(Timestamp(3)), ..filter() }, Box::new(|r| r.created_at.0 >= 3)),
            (ExecutionFilter { until: Some(Timestamp(3)), ..filter() }, Box::new(|r| r.created_at.0 < 3)),
            (ExecutionFilter { since: Some(Timestamp(2)), until: Some(Timestamp(7)), agents: vec![agent_id("agent")], ..filter() }, Box::new(|r| (2..7).contains(&r.created_at.0) && r.agent.as_str() == "agent")),
            (ExecutionFilter { id_part: Some("e1".into()), ..filter() }, Box::new(|r| r.id.as_str().starts_with("e1"))),
            (ExecutionFilter { id_part: Some("7".into()), ..filter() }, Box::new(|r| r.id.as_str().ends_with('7'))),
            (ExecutionFilter { run: Some(run_id("nothing")), ..filter() }, Box::new(|_| false)),
        ];
        for statuses in [
            vec![Status::Running],
            vec![Status::Queued, Status::Paused],
            vec![Status::Succeeded],
            vec![Status::Failed, Status::Timeout],
            vec![Status::Queued, Status::Cancelled],
            Status::ALL.to_vec(),
        ] {
            let wanted = statuses.clone();
            cases.push((
                ExecutionFilter { statuses: statuses.clone(), ..filter() },
                Box::new(move |r| wanted.contains(&r.status)),
            ));
            cases.push((
                ExecutionFilter { statuses: statuses.clone(), agents: vec![agent_id("agent")], ..filter() },
                Box::new(move |r| statuses.contains(&r.status) && r.agent.as_str() == "agent"),
            ));
        }
        for (filter, keep) in cases {
            let mut newest = expected(&rows, keep);
            for limit in [1, 3, 50] {
                assert_eq!(walk(store, &filter, limit), newest, "{filter:?}");
            }
            newest.reverse();
            let oldest = ExecutionFilter { oldest_first: true, ..filter };
            for limit in [1, 3, 50] {
                assert_eq!(walk(store, &oldest, limit), newest, "{oldest:?}");
            }
        }
    }

    fn a_page_is_stable_under_inserts(store) {
        let hand = Hand::on(store);
        twenty(&hand);
        let first = store.executions(&filter(), &first_page(5)).unwrap();
        let last = first.last().unwrap();
        let after = Page { after: Some((last.created_at, last.id.to_string())), limit: 5 };
        let before = store.executions(&filter(), &after).unwrap();
        hand.insert_all(&[row("newer", 50), row("e19x", 9)]);
        assert_eq!(store.executions(&filter(), &after).unwrap(), before);
        assert!(store.executions(&filter(), &first_page(0)).unwrap().is_empty());
        // A cursor whose row is gone still says where to go on.
        let gone = Page { after: Some((Timestamp(2), "e04a".into())), limit: 1 };
        assert_eq!(ids(&store.executions(&filter(), &gone).unwrap()), ["e04"]);
    }

    fn a_run_is_its_root_and_runs_while_a_member_is_open(store) {
        let hand = Hand::on(store);
        let root = row("root", 1);
        let (one, two) = (child("one", &root, 2), child("two", &root, 3));
        hand.insert_all(&[root.clone(), one.clone(), two]);
        let status = || store.run(&root.run).unwrap().unwrap().status;
        hand.commit(vec![started("root", 1, 5), started("one", 1, 6)]);
        assert_eq!(status(), Status::Running);
        hand.commit(vec![ended("root", Status::Failed, 7)]);
        assert_eq!(status(), Status::Running, "two are open");
        hand.commit(vec![ended("one", Status::Succeeded, 8)]);
        assert_eq!(status(), Status::Queued, "one is open, and in a queue");
        hand.commit(vec![ended("two", Status::Cancelled, 9)]);
        let run = store.run(&root.run).unwrap().unwrap();
        assert_eq!(run.status, Status::Failed);
        assert_eq!(run.id, root.run);
        assert_eq!(run.root.id, root.id);
        assert_eq!(run.cancelled_at, None);
        assert_eq!(
            run.counts,
            [(Status::Succeeded, 1), (Status::Failed, 1), (Status::Cancelled, 1)]
        );
        hand.commit(vec![Write::PutRun(Box::new(RunRow {
            id: root.run.clone(),
            root: root.id.clone(),
paused_at: None,
paused_by: None,
source: None,
            cancelled_at: Some(Timestamp(4)),
            cancelled_by: None,
        }))]);
        let run = store.run(&root.run).unwrap().unwrap();
        assert_eq!(run.cancelled_at, Some(Timestamp(4)));
        assert!(store.run(&run_id("nothing")).unwrap().is_none());
    }

    fn what_is_open_makes_the_state_of_a_run_in_lists_counts_and_filters(store) {
        use Status::{Failed, Paused, Queued, Running, Succeeded, Waiting};
        let hand = Hand::on(store);
        // The root, another member, and the run that they make.
        let table = [
            (Paused, Paused, Paused),
            (Paused, Running, Running),
            (Running, Paused, Running),
            (Paused, Queued, Queued),
            (Queued, Queued, Queued),
            (Waiting, Queued, Queued),
            (Running, Queued, Running),
            (Waiting, Paused, Waiting),
            (Paused, Waiting, Waiting),
            (Waiting, Waiting, Waiting),
            (Waiting, Running, Running),
            (Waiting, Succeeded, Waiting),
            (Paused, Failed, Paused),
            (Succeeded, Paused, Paused),
            (Failed, Waiting, Waiting),
            (Succeeded, Queued, Queued),
            (Failed, Running, Running),
            (Succeeded, Failed, Succeeded),
        ];
        let page = Page { after: None, limit: 50 };
        for (n, (root, member, _)) in table.iter().enumerate() {
            let mut first = row(&format!("r{n:02}"), n as i64);
            first.status = *root;
            let mut second = child(&format!("m{n:02}"), &first, n as i64);
            second.status = *member;
            for row in [&mut first, &mut second] {
                row.ended_at = row.status.is_terminal().then_some(Timestamp(100));
            }
            hand.insert_all(&[first, second]);
        }
        for (n, (root, member, state)) in table.iter().enumerate() {
            let run = store.run(&run_id(&format!("run-of-r{n:02}"))).unwrap().unwrap();
            assert_eq!(run.status, *state, "{root} and {member}");
            assert_eq!(run.ended_at.is_some(), state.is_terminal(), "{root} and {member}");
        }
        let counts = store.run_counts(&RunFilter::default()).unwrap();
        for state in Status::ALL {
            let wanted: Vec<String> = (0..table.len())
                .rev()
                .filter(|n| table[*n].2 == *state)
                .map(|n| format!("r{n:02}"))
                .collect();
            let listed = |filter: RunFilter| -> Vec<String> {
                let runs = store.runs(&filter, &page).unwrap();
                runs.iter().map(|run| run.root.id.to_string()).collect()
            };
            let states = vec![*state];
            assert_eq!(listed(RunFilter { states: states.clone(), ..RunFilter::default() }), wanted, "{state}");
            if *state != Running {
                assert_eq!(listed(RunFilter { statuses: states, ..RunFilter::default() }), wanted, "{state}");
            }
            let counted = counts.iter().find(|(one, _)| one == state).map_or(0, |(_, n)| *n);
            assert_eq!(counted, wanted.len() as u64, "{state}");
        }
    }

    fn a_lonely_root_shows_its_own_status(store) {
        let hand = Hand::on(store);
        hand.insert(&row("e1", 1));
        let status = || store.run(&run_id("run-of-e1")).unwrap().unwrap().status;
        assert_eq!(status(), Status::Queued);
        hand.commit(vec![started("e1", 1, 2)]);
        assert_eq!(status(), Status::Running);
        hand.commit(vec![ended("e1", Status::Timeout, 3)]);
        assert_eq!(status(), Status::Timeout);
    }

    fn runs_are_filtered_and_paged_by_their_roots(store) {
        let hand = Hand::on(store);
        let mut rows = Vec::new();
        for n in 0..12_usize {
            let mut root = row(&format!("e{n:02}"), n as i64);
            root.agent = agent_id(if n % 2 == 0 { "even" } else { "odd" });
            root.status = Status::ALL[n % 8];
            if n % 3 == 0 {
                let mut open = child(&format!("c{n:02}"), &root, 100);
                open.status = Status::Running;
                rows.push(open);
            }
            rows.push(root);
        }
        hand.insert_all(&rows);
        let walk = |filter: &RunFilter, limit| {
            let mut seen = Vec::new();
            let mut page = first_page(limit);
            loop {
                let runs = store.runs(filter, &page).unwrap();
                seen.extend(runs.iter().map(|run| run.root.id.to_string()));
                match runs.last() {
                    Some(run) => {
                        page.after = Some((run.root.created_at, run.root.id.to_string()));
                    }
                    None => return seen,
                }
            }
        };
        let of = |numbers: &[usize]| -> Vec<String> {
            numbers.iter().map(|n| format!("e{n:02}")).collect()
        };
        for limit in [1, 5, 50] {
            let all: Vec<usize> = (0..12).rev().collect();
            assert_eq!(walk(&RunFilter::default(), limit), of(&all));
            for (statuses, numbers) in [
                (vec![Status::Running], vec![11, 10, 9, 8, 6, 3, 2, 1, 0]),
                (vec![Status::Queued], vec![8]),
                (vec![Status::Succeeded], vec![4]),
                (vec![Status::Failed], vec![5]),
                (vec![Status::Cancelled], vec![]),
                (vec![Status::Timeout, Status::Failed], vec![7, 5]),
                (vec![Status::Queued, Status::Failed], vec![8, 5]),
            ] {
                let filter = RunFilter { statuses, ..RunFilter::default() };
                assert_eq!(walk(&filter, limit), of(&numbers), "{filter:?}");
            }
            let odd = RunFilter { agent: Some(agent_id("odd")), ..RunFilter::default() };
            assert_eq!(walk(&odd, limit), of(&[11, 9, 7, 5, 3, 1]));
            let some = RunFilter {
                since: Some(Timestamp(3)),
                until: Some(Timestamp(6)),
                ..RunFilter::default()
            };
            assert_eq!(walk(&some, limit), of(&[5, 4, 3]));
            let part = RunFilter { id_part: Some("e07".into()), ..RunFilter::default() };
            assert_eq!(walk(&part, limit), of(&[7]));
        }
    }
}
