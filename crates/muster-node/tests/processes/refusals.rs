//! What a node refuses, with a sentence that says what to do, and of which nothing is left.

use muster_node::fleet::frame::{SpawnInput, SpawnOutput};
use muster_node::{OpenError, Settings, StateDir};

use crate::harness::tests;
use crate::support::{Node, daemon::Daemon, program, script, settings, state_of};

tests![
    what_cannot_be_run_is_refused_and_leaves_nothing,
    a_program_that_the_machine_cannot_run_is_refused,
    more_than_the_machine_takes_is_refused_and_long_arguments_are_passed,
    a_full_node_says_so,
    an_outbox_that_nobody_reads_takes_no_more_workers,
    a_directory_that_cannot_be_written_starts_nothing,
    a_second_daemon_is_refused,
    nothing_of_the_daemon_reaches_a_worker,
];

async fn refused(node: &Node, input: SpawnInput) -> (String, bool) {
    match node.start(input).await {
        SpawnOutput::Refused { message, full } => (message, full),
        other => panic!("it was not refused: {other:?}"),
    }
}

fn left(node: &Node) -> usize {
    let workers = node.state_path().join("workers");
    std::fs::read_dir(workers).expect("a directory").count()
}

async fn what_cannot_be_run_is_refused_and_leaves_nothing() {
    let node = Node::new().await;
    let lock = node.state_path().join("lock");
    let mut nowhere = script("w", "true");
    nowhere.spec.cwd = Some("/no/such/place".into());
    let mut nul = script("w", "true");
    nul.spec.args.push("a\0b".into());
    let mut dots = script("w", "true");
    dots.worker_id = "../w".into();
    for (input, part) in [
        (nowhere, "/no/such/place"),
        (program("w", "no-such-program", &[]), "no-such-program"),
        (
            program("w", lock.to_str().expect("a path"), &[]),
            "chmod +x",
        ),
        (nul, "NUL"),
        (dots, "id"),
    ] {
        let (sentence, full) = refused(&node, input).await;
        assert!(sentence.contains(part), "{sentence:?} lacks {part:?}");
        assert!(!full);
        assert_eq!(left(&node), 0);
        assert!(node.supervisor.roster().is_empty());
    }
    // None of these was the start of a worker: the id is free.
    node.started(script("w", "sleep 1000")).await;
}

async fn a_program_that_the_machine_cannot_run_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let node = Node::new().await;
    let file = node.state_path().join("program");
    std::fs::write(&file, "#!/no/interpreter\necho x\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("executable");
    let input = program("w", file.to_str().expect("a path"), &[]);
    let (sentence, _) = refused(&node, input).await;
    assert!(sentence.contains("#! line"), "{sentence}");
    assert!(
        node.supervisor.outbox().is_empty(),
        "nothing ran, so nothing exited"
    );
    assert_eq!(left(&node), 0);
}

async fn more_than_the_machine_takes_is_refused_and_long_arguments_are_passed() {
    let node = Node::new().await;
    let long = "x".repeat(100_000);
    let (sentence, _) = refused(&node, program("w", "echo", &[long.as_str(); 60])).await;
    assert!(
        sentence.contains("longer than this machine takes"),
        "{sentence}"
    );
    let mut fits = script("w", "echo ${#LONG} ${#1}; sleep 1000");
    fits.spec.args.extend(["sh".to_owned(), long.clone()]);
    fits.spec.env.insert("LONG".into(), long);
    node.started(fits).await;
    node.prints("w", "100000 100000").await;
}

async fn a_full_node_says_so() {
    let node = Node::with(Settings {
        workers_max: 2,
        ..settings()
    })
    .await;
    for worker in ["a", "b"] {
        node.started(script(worker, "sleep 1000")).await;
    }
    let (sentence, full) = refused(&node, script("c", "sleep 1000")).await;
    assert!(full && sentence.contains("takes 2"), "{sentence}");
    node.release("a", 1_000).await;
    node.started(script("c", "sleep 1000")).await;
}

async fn an_outbox_that_nobody_reads_takes_no_more_workers() {
    let node = Node::with(Settings {
        outbox_max: 2,
        ..settings()
    })
    .await;
    for worker in ["a", "b"] {
        node.start(script(worker, "exit 1")).await;
        node.exits_of(worker, 1).await;
    }
    let (sentence, full) = refused(&node, script("c", "sleep 1000")).await;
    assert!(full && sentence.contains("acknowledge"), "{sentence}");
    node.supervisor.acknowledged(&node.exits("a")[0].frame);
    node.started(script("c", "sleep 1000")).await;
}

async fn a_directory_that_cannot_be_written_starts_nothing() {
    let node = Node::new().await;
    // Rights do not stop root: a file where the worker's directory would be does.
    std::fs::write(node.worker_path("w"), "in the way").expect("written");
    let (sentence, full) = refused(&node, script("w", "sleep 1000")).await;
    assert!(
        sentence.contains("cannot be written") && !full,
        "{sentence}"
    );
    assert!(node.supervisor.roster().is_empty());
}

async fn a_second_daemon_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = Daemon::start(&state_of(&directory), &[]);
    let error = StateDir::open(&state_of(&directory)).expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    assert!(error.to_string().contains("another daemon"), "{error}");
    first.kill();
    Node::at(directory, settings()).await;
}

async fn nothing_of_the_daemon_reaches_a_worker() {
    const CANARY: &str = "canary-7f3a91";
    let directory = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(&state_of(&directory), &[("MUSTER_SECRET", CANARY)]);
    let mut input = script("w", "env; sleep 1000");
    input.spec.env.insert("MINE".into(), "spec-value".into());
    input
        .given_env
        .insert("AGENTFIELD_SERVER".into(), "given-value".into());
    daemon.spawn(&input);
    daemon.kill();
    let node = Node::at(directory, settings()).await;
    let tail = node.prints("w", "given-value").await;
    for part in [
        "MINE=spec-value",
        "MUSTER_WORKER_ID=w",
        "TERM=xterm-256color",
        "PATH=/",
    ] {
        assert!(tail.contains(part), "{part} is not in {tail}");
    }
    assert!(!tail.contains(CANARY));
    let holder = std::fs::read(format!("/proc/{}/environ", node.holder("w"))).expect("readable");
    assert!(!String::from_utf8_lossy(&holder).contains(CANARY));
    // Nor is what a worker was given in an argument list or on disk.
    for file in std::fs::read_dir(node.worker_path("w")).expect("a directory") {
        let bytes = std::fs::read(file.expect("a file").path()).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("given-value"));
    }
}
