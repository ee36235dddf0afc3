//! Watching and driving: the screen on joining, what follows, what is typed, the size.

use std::time::Duration;

use muster_node::{AttachError, Attachment, AttachmentNews};

use crate::harness::tests;
use crate::support::{LONG, Node, id, piped, program, script};

tests![
    what_is_typed_reaches_the_worker_and_is_counted,
    who_joins_late_sees_the_screen_and_then_what_follows,
    a_new_size_reaches_the_worker,
    the_end_of_a_worker_closes_with_a_reason,
    pipes_are_watched_and_not_driven,
    a_worker_that_does_not_read_holds_up_neither_typing_nor_the_daemon,
    one_who_has_gone_is_forgotten,
];

async fn attached(node: &Node, worker: &str) -> Attachment {
    node.supervisor.attach(&id(worker)).await.expect("attached")
}

/// Reads until something was printed; all of it, with the screen.
async fn reads(attachment: &mut Attachment, part: &str) -> String {
    let mut seen = attachment.screen.clone();
    let mut place = attachment.offset;
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(part) {
            match attachment.output.next().await {
                AttachmentNews::Output { offset, bytes } => {
                    assert_eq!(offset, place, "nothing is missing and nothing comes twice");
                    place += bytes.len() as u64;
                    seen.extend(bytes);
                }
                other => panic!("{other:?}"),
            }
        }
    };
    let ended = tokio::time::timeout(LONG, read).await;
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert!(ended.is_ok(), "{part:?} is not in {text:?}");
    text
}

async fn what_is_typed_reaches_the_worker_and_is_counted() {
    let node = Node::new().await;
    node.started(program("w", "cat", &[])).await;
    let mut attachment = attached(&node, "w").await;
    let typed = attachment.control.input(b"hello there\n").await;
    assert_eq!(typed, Ok(12));
    // Echoed by the terminal, then printed by cat.
    reads(&mut attachment, "hello there\r\nhello there\r\n").await;
    assert_eq!(attachment.control.input(b"").await, Ok(0));
    assert_eq!(attachment.control.input(&[4]).await, Ok(1));
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.code, Some(0), "the end of a file, typed");
}

async fn who_joins_late_sees_the_screen_and_then_what_follows() {
    let node = Node::new().await;
    let paint = r"printf '\033[2J\033[3;5Hpainted\033[1;1H'; read line; echo got $line; sleep 1000";
    node.started(script("w", paint)).await;
    node.prints("w", "painted").await;
    let mut first = attached(&node, "w").await;
    assert_eq!((first.rows, first.cols), (24, 80));
    let screen = String::from_utf8_lossy(&first.screen).into_owned();
    assert!(screen.contains("painted"), "{screen:?}");
    let mut second = attached(&node, "w").await;
    first.control.input(b"a line\n").await.expect("typed");
    for one in [&mut first, &mut second] {
        reads(one, "got a line").await;
    }
}

async fn a_new_size_reaches_the_worker() {
    let node = Node::new().await;
    let text = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done";
    node.started(script("w", text)).await;
    node.prints("w", "ready").await;
    let mut attachment = attached(&node, "w").await;
    attachment.control.resize(40, 100).await.expect("resized");
    reads(&mut attachment, "40 100").await;
    let later = attached(&node, "w").await;
    assert_eq!((later.rows, later.cols), (40, 100));
    attachment
        .control
        .resize(0, u16::MAX)
        .await
        .expect("taken as the nearest possible");
    let later = attached(&node, "w").await;
    assert_eq!((later.rows, later.cols), (1, 1000));
}

async fn the_end_of_a_worker_closes_with_a_reason() {
    let node = Node::new().await;
    node.started(script("w", "read line; echo bye; exit 3"))
        .await;
    let mut attachment = attached(&node, "w").await;
    attachment.control.input(b"\n").await.expect("typed");
    reads(&mut attachment, "bye").await;
    let closed = loop {
        match attachment.output.next().await {
            AttachmentNews::Closed { reason } => break reason,
            AttachmentNews::Output { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(closed, "the worker exited with code 3");
    assert!(attachment.control.input(b"x").await.is_err());
    node.exits_of("w", 1).await;
    let refused = node.supervisor.attach(&id("w")).await;
    assert_eq!(refused.err(), Some(AttachError::UnknownWorker));
}

async fn pipes_are_watched_and_not_driven() {
    let node = Node::new().await;
    node.started(piped("w", "echo before; sleep 0.5; echo after; sleep 1000"))
        .await;
    node.prints("w", "before").await;
    let mut attachment = attached(&node, "w").await;
    reads(&mut attachment, "before\nafter\n").await;
    let refused = attachment.control.input(b"x").await;
    assert_eq!(refused, Err(AttachError::NoTerminal));
    assert_eq!(
        attachment.control.resize(1, 1).await,
        Err(AttachError::NoTerminal)
    );
}

async fn a_worker_that_does_not_read_holds_up_neither_typing_nor_the_daemon() {
    let node = Node::new().await;
    node.started(script("w", "stty raw -echo; echo ready; sleep 1000"))
        .await;
    node.prints("w", "ready").await;
    let attachment = attached(&node, "w").await;
    let much = vec![b'x'; 200_000];
    let typed = attachment.control.input(&much).await.expect("an answer");
    assert!(
        typed < much.len(),
        "a terminal holds a few thousand bytes, not {typed}"
    );
    let tail = tokio::time::timeout(Duration::from_secs(5), node.tail("w")).await;
    assert!(tail.is_ok(), "meanwhile the holder answers");
    node.release("w", 1_000).await;
}

async fn one_who_has_gone_is_forgotten() {
    let node = Node::new().await;
    node.started(script("w", "while :; do echo line; sleep 0.01; done"))
        .await;
    // More than a holder serves at once.
    for _ in 0..100 {
        let attachment = node.supervisor.attach(&id("w")).await;
        if let Err(error) = attachment {
            // Those before may not have been seen to go yet.
            assert!(matches!(error, AttachError::Broken(_)), "{error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    attached(&node, "w").await;
}
