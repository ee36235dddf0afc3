//! Restarts by hand: whatever the policy, under the same id, with the same variables, terminal
//! and viewers; once, however many ask at once.

use std::time::Duration;

use muster_node::fleet::frame::{RestartOutput, SpawnOutput};
use muster_node::fleet::{RestartMode, WorkerState};
use muster_node::{AttachmentNews, RestartError};
use rustix::process::Signal;

use crate::harness::tests;
use crate::support::{LONG, Node, again, id, proc, program, script, settings, until};

tests![
    one_that_is_never_started_again_is_by_hand_with_all_that_it_had,
    two_that_ask_at_once_get_one_restart,
    what_does_not_listen_is_killed_after_the_grace_with_all_it_started,
    one_whose_new_process_dies_is_answered_with_its_exit,
    one_that_waits_for_its_next_start_is_started_now,
    a_release_ends_what_is_being_restarted,
    what_has_ended_or_never_was_is_not_started,
    it_works_for_a_daemon_that_came_later,
];

async fn restart(node: &Node, worker: &str, grace_ms: u64) -> Result<RestartOutput, RestartError> {
    let (worker, grace) = (id(worker), Some(Duration::from_millis(grace_ms)));
    let reason = Some("restarted by ada: a new model".to_owned());
    let restarted = node.supervisor.restart(&worker, grace, reason);
    let restarted = tokio::time::timeout(LONG, restarted).await;
    restarted.expect("an answer")
}

fn pid_of(output: &RestartOutput) -> u32 {
    match output.output {
        SpawnOutput::Started { pid: Some(pid), .. } => pid,
        ref other => panic!("it was not started: {other:?}"),
    }
}

async fn one_that_is_never_started_again_is_by_hand_with_all_that_it_had() {
    let node = Node::new().await;
    let mut input = script("w", "echo $$ has $MODEL; exec sleep 1000");
    input.spec.env.insert("MODEL".into(), "small".into());
    let first = node.started(input).await;
    let holder = node.holder("w");
    node.prints("w", &format!("{first} has small")).await;
    let mut viewer = node.supervisor.attach(&id("w")).await.expect("attached");

    let output = restart(&node, "w", 1_000).await.expect("a restart");
    let second = pid_of(&output);
    assert_eq!(output.restarts, 1);
    assert_ne!(first, second);
    assert!(!proc::is_alive(first) && proc::is_alive(second));
    assert_eq!(node.holder("w"), holder);
    let report = node.report("w").expect("it is there");
    assert_eq!(
        (report.state, report.pid, report.restarts),
        (WorkerState::Running, Some(second), 1)
    );
    // It was told as a restart by a policy is: the exit, and that another start follows.
    let exits = node.exits("w");
    assert_eq!(exits.len(), 1);
    assert_eq!(exits[0].restarts, 0);
    assert!(exits[0].next_start_at.is_some());
    assert_eq!(exits[0].exit.signal, Some(15));
    let reason = exits[0].exit.reason.as_deref();
    assert_eq!(reason, Some("restarted by ada: a new model"));
    // Who watched goes on watching.
    let mut seen = Vec::new();
    let wanted = format!("{second} has small");
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(&wanted) {
            match viewer.output.next().await {
                AttachmentNews::Output { bytes, .. } => seen.extend(bytes),
                other => panic!("{other:?}"),
            }
        }
    };
    let read = tokio::time::timeout(LONG, read).await;
    assert!(read.is_ok(), "{}", String::from_utf8_lossy(&seen));
    // An end of its own is the end, as before.
    proc::signal(second, Signal::KILL);
    let exits = node.exits_of("w", 2).await;
    assert_eq!((exits[1].restarts, exits[1].next_start_at), (1, None));
    assert_eq!(exits[1].exit.reason, None);
}

async fn two_that_ask_at_once_get_one_restart() {
    let node = Node::new().await;
    node.started(program("w", "sleep", &["1000"])).await;
    let (one, other) = tokio::join!(restart(&node, "w", 1_000), restart(&node, "w", 1_000));
    let (one, other) = (one.expect("a restart"), other.expect("a restart"));
    assert_eq!(one, other);
    assert_eq!(node.exits("w").len(), 1);
    let later = restart(&node, "w", 1_000).await.expect("another");
    assert_eq!(later.restarts, 2);
    assert_ne!(pid_of(&later), pid_of(&one));
}

async fn what_does_not_listen_is_killed_after_the_grace_with_all_it_started() {
    let node = Node::new().await;
    let stubborn =
        "trap '' TERM HUP; setsid sleep 1001 & echo child $!; while :; do sleep 0.1; done";
    let first = node.started(script("w", stubborn)).await;
    let printed = node.prints("w", "child ").await;
    let child = printed
        .split_whitespace()
        .last()
        .and_then(|word| word.parse().ok());
    let child: u32 = child.expect("a process id");
    let output = restart(&node, "w", 200).await.expect("a restart");
    assert_ne!(pid_of(&output), first);
    assert_eq!(node.exits("w")[0].exit.signal, Some(9));
    assert!(!proc::is_alive(child), "what it left behind is gone, too");
}

async fn one_whose_new_process_dies_is_answered_with_its_exit() {
    let node = Node::new().await;
    let directory = tempfile::tempdir().expect("a directory");
    let mark = directory.path().join("mark").display().to_string();
    let once = format!("[ -e {mark} ] && exit 4; touch {mark}; exec sleep 1000");
    node.started(script("w", &once)).await;
    until("the first wrote its mark", || {
        std::path::Path::new(&mark).exists().then_some(())
    })
    .await;
    let output = restart(&node, "w", 1_000).await.expect("an answer");
    let SpawnOutput::Exited { exit } = output.output else {
        panic!("{output:?}");
    };
    assert_eq!(exit.code, Some(4));
    let exits = node.exits_of("w", 2).await;
    assert_eq!((exits[1].restarts, exits[1].next_start_at), (1, None));
    assert!(node.report("w").is_none(), "its policy is never");
}

async fn one_that_waits_for_its_next_start_is_started_now() {
    let mut slow = settings();
    slow.restart_wait = Duration::from_secs(600);
    slow.restart_wait_max = Duration::from_secs(600);
    let node = Node::with(slow).await;
    let input = again(
        script("w", "sleep 1; exec sleep 1000"),
        RestartMode::Always,
        None,
    );
    let first = node.started(input).await;
    proc::signal(first, Signal::KILL);
    node.exits_of("w", 1).await;
    let output = restart(&node, "w", 1_000).await.expect("a restart");
    assert_eq!(output.restarts, 1);
    assert!(proc::is_alive(pid_of(&output)));
    assert_eq!(node.exits("w").len(), 1, "nothing more has ended");
}

async fn a_release_ends_what_is_being_restarted() {
    let node = Node::new().await;
    let stubborn = "trap 'echo deaf' TERM; trap '' HUP; echo ready; while :; do sleep 0.1; done";
    node.started(script("w", stubborn)).await;
    node.prints("w", "ready").await;
    let (restarted, exit) = tokio::join!(restart(&node, "w", 600_000), async {
        // The restart is under way: it has asked, and is not obeyed.
        node.prints("w", "deaf").await;
        node.release("w", 100).await
    });
    assert!(
        !matches!(
            restarted,
            Ok(RestartOutput {
                output: SpawnOutput::Started { .. },
                ..
            })
        ),
        "{restarted:?}"
    );
    assert_eq!(exit.signal, Some(9));
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].next_start_at, None);
    assert!(node.report("w").is_none());
}

async fn what_has_ended_or_never_was_is_not_started() {
    let node = Node::new().await;
    node.started(program("w", "sleep", &["1000"])).await;
    node.release("w", 1_000).await;
    let ended = restart(&node, "w", 1_000).await;
    assert!(matches!(ended, Err(RestartError::Refused(_))), "{ended:?}");
    let nobody = restart(&node, "x", 1_000).await;
    assert_eq!(nobody, Err(RestartError::UnknownWorker));
}

async fn it_works_for_a_daemon_that_came_later() {
    let node = Node::new().await;
    let first = node.started(program("w", "sleep", &["1000"])).await;
    let node = node.again().await;
    let output = restart(&node, "w", 1_000).await.expect("a restart");
    assert_ne!(pid_of(&output), first);
}
