//! A worker's life: its terminal, its environment, its start window, its restarts.

use std::time::Duration;

use muster_node::WorkerNews;
use muster_node::fleet::frame::SpawnOutput;
use muster_node::fleet::{RestartMode, WorkerState};

use crate::harness::tests;
use crate::support::{Node, again, piped, proc, program, script, until};

tests![
    a_terminal_has_the_size_that_was_asked_for_and_a_session_of_its_own,
    a_worker_has_no_files_but_its_three,
    an_exit_in_the_start_window_is_the_answer_with_code_and_output,
    a_worker_that_lives_through_its_window_is_running_and_reported,
    a_failing_worker_is_started_again_up_to_its_bound_and_every_exit_is_told,
    on_failure_does_not_start_a_success_again_and_always_does,
    a_restarted_worker_that_then_lives_is_answered_as_started,
    a_worker_that_never_lives_is_answered_in_time_and_tried_on,
    a_start_that_is_repeated_is_answered_as_the_first_and_runs_once,
    a_worker_may_ask_its_terminal,
    both_outputs_of_pipes_are_kept_in_their_order,
    fifty_workers_start_and_end_together,
];

async fn a_terminal_has_the_size_that_was_asked_for_and_a_session_of_its_own() {
    let node = Node::new().await;
    let pid = node
        .started(script("w", "stty size; tty; sleep 1000"))
        .await;
    let tail = node.prints("w", "/dev/pts/").await;
    assert!(tail.starts_with("24 80\r\n"), "{tail:?}");
    assert_eq!(proc::session(pid), Some(pid));
    assert_eq!(proc::parent(pid), Some(node.holder("w")));
    let mut other = script("x", "stty size; sleep 1000");
    other.spec.size = (50, 132);
    node.started(other).await;
    node.prints("x", "50 132\r\n").await;
    for worker in ["w", "x"] {
        node.release(worker, 1_000).await;
    }
}

async fn a_worker_has_no_files_but_its_three() {
    let node = Node::new().await;
    for input in [program("w", "sleep", &["1000"]), {
        let mut input = program("p", "sleep", &["1000"]);
        input.spec.io = muster_node::fleet::WorkerIo::Pipes;
        input
    }] {
        let pid = node.started(input).await;
        let files = proc::open_files(pid);
        assert_eq!(files.len(), 3, "{files:?}");
    }
    // Nor has its holder any of the daemon's: it would hold the node's lock for ever.
    let files = proc::open_files(node.holder("w"));
    let lock = node.state_path().join("lock").display().to_string();
    assert!(!files.contains(&lock), "{files:?}");
}

async fn an_exit_in_the_start_window_is_the_answer_with_code_and_output() {
    let node = Node::new().await;
    let SpawnOutput::Exited { exit } = node.start(script("w", "echo so it goes; exit 7")).await
    else {
        panic!("it did not exit");
    };
    assert_eq!((exit.code, exit.signal), (Some(7), None));
    assert_eq!(exit.output, "so it goes\r\n");
    assert!(exit.at.is_some());
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit, exit);
    assert_eq!((exits[0].restarts, exits[0].next_start_at), (0, None));
    assert!(node.report("w").is_none());
}

async fn a_worker_that_lives_through_its_window_is_running_and_reported() {
    let mut node = Node::new().await;
    let pid = node.started(script("w", "sleep 1000")).await;
    let report = node.report("w").expect("it is there");
    assert_eq!(
        (report.state, report.pid),
        (WorkerState::Running, Some(pid))
    );
    assert_eq!(report.name, "name-of-w");
    loop {
        match node.news.recv().await {
            Some(WorkerNews::Changed(told)) if told.state == WorkerState::Running => {
                assert_eq!(told, report);
                break;
            }
            Some(_) => {}
            None => panic!("no news"),
        }
    }
    node.release("w", 1_000).await;
    assert!(node.report("w").is_none());
}

async fn a_failing_worker_is_started_again_up_to_its_bound_and_every_exit_is_told() {
    let node = Node::new().await;
    let input = again(script("w", "exit 3"), RestartMode::OnFailure, Some(2));
    let answer = node.start(input).await;
    assert!(matches!(answer, SpawnOutput::Exited { .. }), "{answer:?}");
    let exits = node.exits_of("w", 3).await;
    let restarts: Vec<u32> = exits.iter().map(|one| one.restarts).collect();
    assert_eq!(restarts, [0, 1, 2]);
    assert!(exits.iter().all(|one| one.exit.code == Some(3)));
    let again: Vec<bool> = exits
        .iter()
        .map(|one| one.next_start_at.is_some())
        .collect();
    assert_eq!(again, [true, true, false]);
    assert!(node.report("w").is_none());
}

async fn on_failure_does_not_start_a_success_again_and_always_does() {
    let node = Node::new().await;
    let failing = again(
        script("f", "sleep 0.3; exit 0"),
        RestartMode::OnFailure,
        None,
    );
    node.started(failing).await;
    let exits = node.exits_of("f", 1).await;
    assert_eq!(exits[0].next_start_at, None);

    let always = again(script("a", "sleep 0.3; exit 0"), RestartMode::Always, None);
    let first = node.started(always).await;
    let report = until("it was started again", || {
        let report = node.report("a")?;
        (report.restarts >= 1 && report.state == WorkerState::Running).then_some(report)
    });
    let report = report.await;
    assert_ne!(report.pid, Some(first));
    assert!(node.exits("a")[0].next_start_at.is_some());
    node.release("a", 1_000).await;
}

async fn a_restarted_worker_that_then_lives_is_answered_as_started() {
    let node = Node::new().await;
    let marker = node.state_path().join("marker");
    let text = format!(
        "test -e {0} || {{ touch {0}; exit 1; }}; sleep 1000",
        marker.display()
    );
    let input = again(script("w", &text), RestartMode::OnFailure, None);
    let pid = node.started(input).await;
    assert!(proc::is_alive(pid));
    assert_eq!(node.report("w").map(|report| report.restarts), Some(1));
    assert_eq!(node.exits("w").len(), 1);
}

async fn a_worker_that_never_lives_is_answered_in_time_and_tried_on() {
    let node = Node::new().await;
    let input = again(script("w", "exit 1"), RestartMode::Always, None);
    let begun = std::time::Instant::now();
    let answer = node.start(input).await;
    assert!(
        begun.elapsed() >= Duration::from_secs(10),
        "it might have lived"
    );
    assert!(
        matches!(answer, SpawnOutput::Started { .. }),
        "it exists: {answer:?}"
    );
    let restarts = node.report("w").expect("it is there").restarts;
    assert!(restarts > 3, "{restarts}");
    node.release("w", 1_000).await;
    assert!(node.report("w").is_none());
}

async fn a_start_that_is_repeated_is_answered_as_the_first_and_runs_once() {
    let node = Node::new().await;
    let marker = node.state_path().join("marker");
    let text = format!("echo x >> {}; sleep 1000", marker.display());
    let (first, second) = tokio::join!(
        node.start(script("w", &text)),
        node.start(script("w", &text))
    );
    assert_eq!(first, second);
    assert_eq!(node.start(script("w", "exit 1")).await, first);
    node.release("w", 1_000).await;
    assert_eq!(
        node.start(script("w", &text)).await,
        first,
        "also after its end"
    );
    assert_eq!(std::fs::read_to_string(&marker).expect("it ran"), "x\n");
}

async fn a_worker_may_ask_its_terminal() {
    let node = Node::new().await;
    let ask = r#"stty -echo raw; printf 'ab\033[6n'; answer=$(dd bs=1 count=6 2>/dev/null); stty sane; printf %s "$answer" | tr '\033' E; sleep 1000"#;
    node.started(script("w", ask)).await;
    node.prints("w", "E[1;3R").await;
}

async fn both_outputs_of_pipes_are_kept_in_their_order() {
    let node = Node::new().await;
    let text = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; cat; sleep 1000";
    node.started(piped("w", text)).await;
    let tail = node.prints("w", "err3").await;
    assert_eq!(tail, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    node.release("w", 1_000).await;
    assert_eq!(node.tail("w").await, tail, "kept after its end");
}

async fn fifty_workers_start_and_end_together() {
    let node = Node::new().await;
    let names: Vec<String> = (0..50).map(|number| format!("w{number:02}")).collect();
    let mut starts = tokio::task::JoinSet::new();
    for name in &names {
        let (supervisor, input) = (node.supervisor.clone(), script(name, "sleep 1000"));
        starts.spawn(async move { supervisor.start(input).await });
    }
    let all = tokio::time::timeout(Duration::from_secs(120), starts.join_all());
    for answer in all.await.expect("within two minutes") {
        assert!(matches!(answer, SpawnOutput::Started { .. }), "{answer:?}");
    }
    let roster = node.supervisor.roster();
    assert_eq!(roster.len(), 50);
    let pids: Vec<u32> = roster.iter().filter_map(|report| report.pid).collect();
    let mut ends = tokio::task::JoinSet::new();
    for name in &names {
        let (supervisor, worker) = (node.supervisor.clone(), crate::support::id(name));
        ends.spawn(async move {
            supervisor
                .release(&worker, Some(Duration::from_secs(5)))
                .await
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(120), ends.join_all());
    for ended in all.await.expect("within two minutes") {
        assert_eq!(ended.expect("it ended").signal, Some(15));
    }
    assert!(pids.iter().all(|pid| !proc::is_alive(*pid)));
    assert_eq!(node.supervisor.outbox().len(), 50);
}
