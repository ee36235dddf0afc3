//! Workers outlive the daemon; what happened meanwhile is told once; what lost its holder is
//! ended and told honestly; a holder of another build is understood.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use muster_node::RestartError;
use muster_node::fleet::frame::SpawnOutput;
use muster_node::fleet::{RestartMode, WorkerState};
use rustix::process::Signal;

use crate::harness::tests;
use crate::support::{
    Node, again, daemon::Daemon, id, line_of, proc, script, settings, state_of, until,
};

tests![
    a_daemon_that_is_killed_loses_no_worker_and_no_exit,
    a_daemon_whose_program_was_replaced_starts_workers_all_the_same,
    a_restart_policy_holds_while_no_daemon_is_there,
    a_daemon_that_is_killed_during_a_start_starts_nothing_twice,
    an_acknowledged_exit_is_not_told_again_and_others_are,
    a_worker_whose_holder_is_killed_ends_with_it_and_is_told,
    a_holder_that_is_killed_with_its_daemon_is_found_later,
    a_holder_that_hangs_is_ended_with_its_worker,
    an_exit_that_cannot_be_written_is_told_and_written_later,
    exits_that_nobody_takes_are_bounded_and_counted,
    ended_workers_are_forgotten_in_time,
    a_holder_of_an_older_build_is_understood,
    a_process_that_only_has_the_number_of_a_worker_is_not_touched,
];

async fn a_daemon_that_is_killed_loses_no_worker_and_no_exit() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = state_of(&directory);
    let mut daemon = Daemon::start(&state, &[]);
    let lives = daemon.spawn(&script("lives", "echo hello; sleep 1000"));
    let SpawnOutput::Started { pid: Some(pid), .. } = lives else {
        panic!("{lives:?}");
    };
    let go = directory.path().join("go");
    for (worker, code) in [("ends", 7), ("ends-too", 0)] {
        let text = format!(
            "while [ ! -e {} ]; do sleep 0.05; done; exit {code}",
            go.display()
        );
        let started = daemon.spawn(&script(worker, &text));
        assert!(
            matches!(started, SpawnOutput::Started { .. }),
            "{started:?}"
        );
    }
    assert_ne!(proc::session(daemon.pid()), proc::session(pid));
    daemon.kill();
    std::fs::write(&go, "").expect("written");
    for worker in ["ends", "ends-too"] {
        let told = state.join("workers").join(worker).join("exit-0.json");
        until("the holder wrote the exit", || told.exists().then_some(())).await;
    }

    let node = Node::at(directory, settings()).await;
    let report = node.report("lives").expect("it lives");
    assert_eq!(
        (report.state, report.pid),
        (WorkerState::Running, Some(pid))
    );
    assert!(proc::is_alive(pid));
    assert_eq!(node.supervisor.roster().len(), 1);
    let codes: Vec<(String, Option<i32>)> = ["ends", "ends-too"]
        .iter()
        .flat_map(|worker| node.exits(worker))
        .map(|exit| (exit.worker, exit.exit.code))
        .collect();
    assert_eq!(
        codes,
        [("ends".into(), Some(7)), ("ends-too".into(), Some(0))]
    );
    assert_eq!(
        node.start(script("lives", "exit 1")).await,
        lives,
        "as the first time"
    );
    assert!(node.tail("lives").await.contains("hello"));

    let node = node.again().await;
    assert_eq!(
        node.exits("ends").len(),
        1,
        "again, until it is acknowledged"
    );
    assert_eq!(node.release("lives", 1_000).await.signal, Some(15));
    assert!(!proc::is_alive(pid));
}

async fn a_daemon_whose_program_was_replaced_starts_workers_all_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("muster");
    std::fs::copy(std::env::current_exe().expect("its path"), &program).expect("copied");
    let mut daemon = Daemon::start_as(&program, &state_of(&directory), &[]);
    // What an upgrade does: another file has the name.
    std::fs::remove_file(&program).expect("removed");
    std::fs::write(&program, "another build").expect("written");
    let input = again(
        script("w", "sleep 0.3; exit 1"),
        RestartMode::OnFailure,
        Some(1),
    );
    let started = daemon.spawn(&input);
    assert!(
        matches!(started, SpawnOutput::Started { .. }),
        "{started:?}"
    );
    daemon.kill();
    let node = Node::at(directory, settings()).await;
    // The holder, too, has launched twice from a file that is gone.
    let exits = node.exits_of("w", 2).await;
    assert!(
        exits.iter().all(|one| one.exit.code == Some(1)),
        "{exits:?}"
    );
}

async fn a_restart_policy_holds_while_no_daemon_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(&state_of(&directory), &[]);
    let input = again(
        script("w", "sleep 0.3; exit 2"),
        RestartMode::Always,
        Some(2),
    );
    daemon.spawn(&input);
    daemon.kill();
    let last = state_of(&directory).join("workers/w/exit-2.json");
    until("it was started twice again", || last.exists().then_some(())).await;
    let node = Node::at(directory, settings()).await;
    let exits = node.exits("w");
    let told: Vec<_> = exits
        .iter()
        .map(|one| (one.restarts, one.exit.code))
        .collect();
    assert_eq!(told, [(0, Some(2)), (1, Some(2)), (2, Some(2))]);
    assert_eq!(exits[2].next_start_at, None);
    assert!(node.report("w").is_none());
}

async fn a_daemon_that_is_killed_during_a_start_starts_nothing_twice() {
    for wait in [0, 5, 20, 60, 120, 250] {
        let directory = tempfile::tempdir().expect("a directory");
        let marker = directory.path().join("marker");
        let input = script("w", &format!("echo x >> {}; sleep 1000", marker.display()));
        let mut daemon = Daemon::start(&state_of(&directory), &[]);
        daemon.ask(&input);
        tokio::time::sleep(Duration::from_millis(wait)).await;
        daemon.kill();
        let node = Node::at(directory, settings()).await;
        node.started(input).await;
        let ran = line_of(&marker).await;
        assert_eq!(ran, "x", "killed after {wait} ms");
        assert_eq!(node.supervisor.roster().len(), 1);
        node.release("w", 1_000).await;
    }
}

async fn an_acknowledged_exit_is_not_told_again_and_others_are() {
    let node = Node::new().await;
    let input = again(script("w", "exit 2"), RestartMode::OnFailure, Some(1));
    node.start(input.clone()).await;
    let exits = node.exits_of("w", 2).await;
    node.supervisor.acknowledged(&exits[0].frame);
    assert_eq!(node.exits("w").len(), 1);
    node.supervisor.acknowledged("exit:nobody:0");
    node.supervisor.acknowledged("nonsense");
    let node = node.again().await;
    let left = node.exits("w");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].frame, exits[1].frame, "the same id as before");
    node.supervisor.acknowledged(&left[0].frame);
    let node = node.again().await;
    assert!(node.supervisor.outbox().is_empty());
    let answer = node.start(input).await;
    assert!(
        matches!(answer, SpawnOutput::Exited { .. }),
        "remembered after its end"
    );
}

async fn a_worker_whose_holder_is_killed_ends_with_it_and_is_told() {
    let node = Node::new().await;
    let stray = node.state_path().join("stray");
    let text = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 1000' & sleep 1000",
        stray.display()
    );
    let pid = node.started(script("w", &text)).await;
    let stray: u32 = line_of(&stray).await.parse().expect("a process id");
    proc::signal(node.holder("w"), Signal::KILL);
    let exits = node.exits_of("w", 1).await;
    let exit = &exits[0].exit;
    assert_eq!(
        (exit.code, exit.signal, exit.at),
        (None, None, None),
        "nobody saw it"
    );
    let reason = exit.reason.clone().unwrap_or_default();
    assert!(
        reason.contains("holder") && reason.contains("killed"),
        "{reason}"
    );
    assert_eq!(exits[0].next_start_at, None);
    for pid in [pid, stray] {
        until("it is gone", || (!proc::is_alive(pid)).then_some(())).await;
    }
    assert!(node.report("w").is_none());
    let node = node.again().await;
    assert_eq!(node.exits("w").len(), 1, "once");
}

async fn a_holder_that_is_killed_with_its_daemon_is_found_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(&state_of(&directory), &[]);
    let stray = directory.path().join("stray");
    let text = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 1000' & sleep 1000",
        stray.display()
    );
    let SpawnOutput::Started { pid: Some(pid), .. } = daemon.spawn(&script("w", &text)) else {
        panic!("not started");
    };
    let stray: u32 = line_of(&stray).await.parse().expect("a process id");
    let holder = proc::parent(pid).expect("a parent");
    daemon.kill();
    proc::signal(holder, Signal::KILL);
    // The worker itself is tied to its holder; nobody is there for the other.
    until("the worker is gone", || {
        (!proc::is_alive(pid)).then_some(())
    })
    .await;
    assert!(proc::is_alive(stray));
    let node = Node::at(directory, settings()).await;
    assert_eq!(node.exits("w").len(), 1);
    assert!(!proc::is_alive(stray));
    assert!(node.supervisor.roster().is_empty());
}

async fn a_holder_that_hangs_is_ended_with_its_worker() {
    let node = Node::new().await;
    let pid = node.started(script("w", "sleep 1000")).await;
    let holder = node.holder("w");
    proc::signal(holder, Signal::STOP);
    let exit = node.release("w", 100).await;
    assert!(exit.reason.is_some_and(|reason| reason.contains("holder")));
    assert!(!proc::is_alive(pid));
    assert!(!proc::is_alive(holder));
}

async fn an_exit_that_cannot_be_written_is_told_and_written_later() {
    let node = Node::new().await;
    let go = node.state_path().join("go");
    let text = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; exit 9",
        go.display()
    );
    node.started(script("w", &text)).await;
    // As on a full disk: where the exit would be is something that is not replaced.
    let place = node.worker_path("w").join("exit-0.json");
    std::fs::create_dir_all(place.join("in-the-way")).expect("made");
    std::fs::write(&go, "").expect("written");
    let holder = node.holder("w");
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.code, Some(9), "told all the same");
    assert!(
        proc::is_alive(holder),
        "it has not let go of what it could not write"
    );
    std::fs::remove_dir_all(&place).expect("removed");
    until("it was written", || place.is_file().then_some(())).await;
    until("then its holder ends", || {
        (!proc::is_alive(holder)).then_some(())
    })
    .await;
    let node = node.again().await;
    assert_eq!(node.exits("w")[0].exit.code, Some(9));
}

async fn exits_that_nobody_takes_are_bounded_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut settings = settings();
    settings.restart_wait = Duration::from_millis(2);
    settings.restart_wait_max = Duration::from_millis(2);
    let node = Node::at(directory, settings).await;
    let input = again(script("w", "exit 1"), RestartMode::OnFailure, Some(80));
    node.start(input).await;
    let last = || {
        node.exits("w")
            .into_iter()
            .find(|one| one.next_start_at.is_none())
    };
    let last = until("it gave up", last).await;
    assert_eq!(last.restarts, 80);
    let reason = last.exit.reason.unwrap_or_default();
    assert!(
        reason.contains("17 earlier exits were not kept"),
        "{reason}"
    );
    assert_eq!(node.exits("w").len(), 64);
    let node = node.again().await;
    assert_eq!(node.exits("w").len(), 64);
}

async fn ended_workers_are_forgotten_in_time() {
    let mut settings = settings();
    settings.ended_max = 2;
    let node = Node::with(settings).await;
    for worker in ["a", "b", "c", "d"] {
        node.start(script(worker, "exit 1")).await;
        node.exits_of(worker, 1).await;
    }
    let kept = || ["a", "b", "c", "d"].map(|worker| node.worker_path(worker).exists());
    assert_eq!(kept(), [true; 4], "none before its end was acknowledged");
    for worker in ["a", "b", "c", "d"] {
        let frame = node.exits(worker)[0].frame.clone();
        node.supervisor.acknowledged(&frame);
    }
    until("the oldest are forgotten", || {
        node.supervisor.acknowledged("nothing");
        (kept() == [false, false, true, true]).then_some(())
    })
    .await;
    let gone = node.supervisor.release(&id("a"), None).await;
    assert!(gone.is_err());
}

/// The bytes of a message, as the protocol has had them from its first version on.
fn message(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32 + 1).to_le_bytes().to_vec();
    bytes.push(1);
    bytes.extend(text.as_bytes());
    bytes
}

async fn a_holder_of_an_older_build_is_understood() {
    let directory = tempfile::tempdir().expect("a directory");
    let worker = state_of(&directory).join("workers/old");
    std::fs::create_dir_all(&worker).expect("made");
    let lock = std::fs::File::create(worker.join("lock")).expect("made");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let state = r#"{"worker_id":"old","phase":"running"}"#;
    std::fs::write(worker.join("state.json"), state).expect("written");
    let listener = UnixListener::bind(worker.join("sock")).expect("bound");
    // It says little, and something that no build says any more.
    let old = std::thread::spawn(move || {
        let (mut daemon, _) = listener.accept().expect("a daemon");
        daemon
            .write_all(&message(r#"{"say":"hello"}"#))
            .expect("written");
        daemon
            .write_all(&message(r#"{"say":"once_upon_a_time","x":1}"#))
            .expect("written");
        daemon.write_all(&[2, 0, 0, 0, 77, 1]).expect("written");
        daemon
            .write_all(&message(&format!(r#"{{"say":"state","state":{state}}}"#)))
            .expect("written");
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).contains("release") {
            let mut some = [0; 1024];
            let read = daemon.read(&mut some).expect("readable");
            heard.extend(&some[..read]);
        }
        let exited =
            r#"{"say":"exited","record":{"worker_id":"old","number":0,"exit":{"signal":15}}}"#;
        daemon.write_all(&message(exited)).expect("written");
        drop(lock);
        String::from_utf8_lossy(&heard).into_owned()
    });
    let node = Node::at(directory, settings()).await;
    let report = node.report("old").expect("it is there");
    assert_eq!((report.state, report.pid), (WorkerState::Running, None));
    // What it does not know it is not asked.
    let again = node.supervisor.restart(&id("old"), None, None).await;
    assert!(matches!(again, Err(RestartError::OldHolder)), "{again:?}");
    assert_eq!(node.release("old", 1_000).await.signal, Some(15));
    let heard = old.join().expect("no panic");
    assert!(
        heard.contains(r#""say":"hello""#)
            && heard.contains(r#""version":2"#)
            && !heard.contains("restart"),
        "{heard}"
    );
    assert_eq!(node.exits("old").len(), 1);
}

async fn a_process_that_only_has_the_number_of_a_worker_is_not_touched() {
    // A record from before: its holder is gone, and its number is somebody else's by now.
    let mut other = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("spawned");
    let directory = tempfile::tempdir().expect("a directory");
    let worker = state_of(&directory).join("workers/w");
    std::fs::create_dir_all(&worker).expect("made");
    std::fs::write(worker.join("lock"), "").expect("made");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable");
    let state = serde_json::json!({
        "worker_id": "w", "phase": "running", "boot": boot.trim(),
        "holder": {"pid": other.id(), "start": 1},
        "process": {"pid": other.id(), "start": 1},
    });
    std::fs::write(worker.join("state.json"), state.to_string()).expect("written");
    let node = Node::at(directory, settings()).await;
    assert_eq!(node.exits("w").len(), 1);
    assert!(proc::is_alive(other.id()));
    other.kill().expect("killed");
    other.wait().expect("collected");
}
