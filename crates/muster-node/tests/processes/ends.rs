//! How workers end: whole trees, honest reports, nothing left.

use std::path::Path;
use std::time::{Duration, Instant};

use muster_node::ReleaseError;
use muster_node::fleet::{RestartMode, WorkerState};
use rustix::process::Signal;

use crate::harness::tests;
use crate::support::{Node, again, id, line_of, piped, proc, program, script, until};

tests![
    a_release_ends_children_that_took_a_session_of_their_own_or_lost_their_parent,
    a_worker_that_ignores_sigterm_is_killed_after_its_grace,
    a_worker_that_cleans_up_is_given_its_grace_and_its_code_is_told,
    an_interactive_shell_need_not_be_waited_for,
    a_stopped_worker_hears_the_release,
    a_signal_from_elsewhere_is_told_as_a_signal,
    what_a_worker_leaves_behind_ends_after_it_and_holds_up_nothing,
    orphans_of_a_worker_are_collected,
    a_release_ends_a_worker_that_waits_for_its_next_start,
    a_release_ends_a_worker_that_is_just_starting,
    output_that_is_no_text_is_told_as_text,
    a_holder_that_is_told_to_stop_says_so,
    an_unknown_worker_cannot_be_released,
];

fn is_gone(pid: u32) -> Option<()> {
    (!proc::is_alive(pid)).then_some(())
}

async fn pid_in(path: &Path) -> u32 {
    line_of(path).await.parse().expect("a process id")
}

async fn a_release_ends_children_that_took_a_session_of_their_own_or_lost_their_parent() {
    let node = Node::new().await;
    let at = |name: &str| node.state_path().join(name);
    // One in a session of its own; one whose parent is gone, in a session of its own, without
    // the variables by which it could be recognised, that ignores what can be ignored; one plain.
    let text = format!(
        "setsid sh -c 'echo $$ > {session}; exec sleep 1000' & \
         (setsid env -i /bin/sh -c 'trap \"\" TERM HUP INT; echo $$ > {orphan}; \
            while :; do /bin/sleep 1; done' &) ; \
         sleep 1000 & echo $! > {plain}; wait",
        session = at("session").display(),
        orphan = at("orphan").display(),
        plain = at("plain").display(),
    );
    let leader = node.started(script("w", &text)).await;
    let mut all = vec![leader];
    for name in ["session", "orphan", "plain"] {
        all.push(pid_in(&at(name)).await);
    }
    assert!(all.iter().all(|pid| proc::is_alive(*pid)));
    let holder = node.holder("w");
    assert_eq!(
        proc::parent(all[2]),
        Some(holder),
        "orphans come to the holder"
    );
    let exit = node.release("w", 500).await;
    assert_eq!((exit.code, exit.signal), (None, Some(15)));
    for pid in all {
        assert!(!proc::is_alive(pid), "{pid} is left");
    }
    until("the holder ends after its worker", || is_gone(holder)).await;
}

async fn a_worker_that_ignores_sigterm_is_killed_after_its_grace() {
    let node = Node::new().await;
    let text = "trap '' TERM HUP; echo ready; while :; do sleep 0.1; done";
    let pid = node.started(script("w", text)).await;
    node.prints("w", "ready").await;
    let begun = Instant::now();
    let exit = node.release("w", 400).await;
    assert!(begun.elapsed() >= Duration::from_millis(400));
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    assert!(!proc::is_alive(pid));
}

async fn a_worker_that_cleans_up_is_given_its_grace_and_its_code_is_told() {
    let node = Node::new().await;
    let text =
        "trap 'sleep 0.3; echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    node.started(piped("w", text)).await;
    node.prints("w", "ready").await;
    let exit = node.release("w", 30_000).await;
    assert_eq!((exit.code, exit.signal), (Some(5), None));
    assert!(exit.output.ends_with("cleaned\n"), "{:?}", exit.output);
    let exits = node.exits_of("w", 1).await;
    assert_eq!(
        (exits[0].exit.clone(), exits[0].next_start_at),
        (exit, None)
    );
}

async fn an_interactive_shell_need_not_be_waited_for() {
    let node = Node::new().await;
    let input = program("w", "bash", &["--norc", "--noprofile", "-i"]);
    node.started(input).await;
    node.prints("w", "bash-").await;
    let begun = Instant::now();
    node.release("w", 30_000).await;
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

async fn a_stopped_worker_hears_the_release() {
    let node = Node::new().await;
    let pid = node.started(program("w", "sleep", &["1000"])).await;
    proc::signal(pid, Signal::STOP);
    until("it is stopped", || {
        (proc::state(pid) == Some('T')).then_some(())
    })
    .await;
    let exit = node.release("w", 30_000).await;
    assert_eq!(exit.signal, Some(15));
}

async fn a_signal_from_elsewhere_is_told_as_a_signal() {
    let node = Node::new().await;
    let pid = node.started(script("w", "exec sleep 1000")).await;
    proc::signal(pid, Signal::KILL);
    let exits = node.exits_of("w", 1).await;
    assert_eq!((exits[0].exit.code, exits[0].exit.signal), (None, Some(9)));
    assert_eq!(exits[0].exit.reason, None);
}

async fn what_a_worker_leaves_behind_ends_after_it_and_holds_up_nothing() {
    let node = Node::new().await;
    let stray = node.state_path().join("stray");
    // It keeps the terminal open and ignores SIGTERM: reading to the end would take for ever.
    let text = format!(
        "(trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; echo $$ > {}; \
            while :; do sleep 1; done') & sleep 0.5; echo last words; exit 4",
        stray.display()
    );
    let mut input = script("w", &text);
    input.spec.stop_grace_ms = Some(500);
    node.started(input).await;
    let stray = pid_in(&stray).await;
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.code, Some(4));
    assert!(exits[0].exit.output.contains("last words"));
    until("the stray is gone", || is_gone(stray)).await;
}

async fn orphans_of_a_worker_are_collected() {
    let node = Node::new().await;
    let text = "for i in 1 2 3 4 5; do (sleep 0.2 & echo orphan $!); done; echo made; sleep 1000";
    let leader = node.started(script("w", text)).await;
    let tail = node.prints("w", "made").await;
    let orphans: Vec<u32> = tail
        .lines()
        .filter_map(|line| line.trim().strip_prefix("orphan ")?.parse().ok())
        .collect();
    assert_eq!(orphans.len(), 5);
    for pid in orphans {
        until("no zombie is left", || {
            proc::state(pid).is_none().then_some(())
        })
        .await;
    }
    assert_eq!(proc::children(node.holder("w")), [leader]);
}

async fn a_release_ends_a_worker_that_waits_for_its_next_start() {
    let mut settings = crate::support::settings();
    settings.restart_wait = Duration::from_secs(600);
    settings.restart_wait_max = Duration::from_secs(600);
    let node = Node::with(settings).await;
    let input = again(
        script("w", "sleep 0.3; exit 6"),
        RestartMode::OnFailure,
        None,
    );
    node.started(input).await;
    let report = until("it waits", || {
        node.report("w")
            .filter(|report| report.state == WorkerState::Restarting)
    });
    let report = report.await;
    assert_eq!(report.pid, None);
    assert!(report.next_start_at.is_some());
    let exit = node.release("w", 1_000).await;
    assert_eq!(exit.code, Some(6));
    assert!(
        exit.reason
            .is_some_and(|reason| reason.contains("waited for its next start"))
    );
    let exits = node.exits_of("w", 2).await;
    assert!(exits[0].next_start_at.is_some());
    assert_eq!(exits[1].next_start_at, None);
}

async fn a_release_ends_a_worker_that_is_just_starting() {
    let node = Node::new().await;
    let mut input = script("w", "sleep 1000");
    input.spec.start_window_ms = Some(60_000);
    let (started, released) = tokio::join!(node.start(input), async {
        until("it is known", || node.report("w")).await;
        node.release("w", 1_000).await
    });
    assert_eq!(released.code, None);
    let muster_node::fleet::frame::SpawnOutput::Exited { exit } = started else {
        panic!("it was answered with {started:?}");
    };
    assert_eq!(exit, released);
}

async fn output_that_is_no_text_is_told_as_text() {
    let node = Node::new().await;
    let text = r"printf 'a\377\376b'; exit 1";
    node.start(piped("w", text)).await;
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.output, "a\u{fffd}\u{fffd}b");
    let much = "i=0; while [ $i -lt 3000 ]; do echo 'line of output' $i; i=$((i+1)); done; exit 1";
    node.start(piped("m", much)).await;
    let exits = node.exits_of("m", 1).await;
    let output = &exits[0].exit.output;
    assert!(
        output.len() <= 8 * 1024 && output.len() > 8 * 1024 - 4,
        "{}",
        output.len()
    );
    assert!(output.ends_with("line of output 2999\n"));
}

async fn a_holder_that_is_told_to_stop_says_so() {
    let node = Node::new().await;
    let pid = node.started(script("w", "exec sleep 1000")).await;
    // What the daemon's own terminal sends changes nothing.
    for signal in [Signal::HUP, Signal::INT] {
        proc::signal(node.holder("w"), signal);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(proc::is_alive(pid));
    proc::signal(node.holder("w"), Signal::TERM);
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.signal, Some(15));
    let reason = exits[0].exit.reason.clone().unwrap_or_default();
    assert!(reason.contains("told to stop"), "{reason}");
}

async fn an_unknown_worker_cannot_be_released() {
    let node = Node::new().await;
    let refused = node.supervisor.release(&id("nobody"), None).await;
    assert_eq!(refused, Err(ReleaseError::UnknownWorker));
}
