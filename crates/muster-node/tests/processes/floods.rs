//! Workers that print without end: memory stays, control answers, nobody's slowness reaches the
//! worker, and what a viewer missed is counted.

use std::time::{Duration, Instant};

use muster_node::AttachmentNews;

use crate::harness::tests;
use crate::support::{Node, id, piped, proc, script};

tests![
    a_flood_on_a_terminal_grows_no_memory_and_delays_no_control,
    a_flood_on_pipes_grows_no_memory_and_delays_no_control,
    a_slow_viewer_misses_output_which_is_counted_and_holds_up_nobody,
    a_flood_that_ends_is_read_to_its_end,
];

/// What a holder may have, in a build for tests.
const RSS_KIB_MAX: u64 = 48 * 1024;

async fn flood(node: &Node, worker: &str) {
    let holder = node.holder(worker);
    let begun = Instant::now();
    let mut slowest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        assert!(!node.tail(worker).await.is_empty());
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let peak = proc::rss_peak_kib(holder);

    assert!(peak < RSS_KIB_MAX, "{peak} KiB");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let asked = Instant::now();
    node.release(worker, 5_000).await;
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
}

async fn a_flood_on_a_terminal_grows_no_memory_and_delays_no_control() {
    let node = Node::new().await;
    node.started(script("w", "exec yes 'the same line again and again'"))
        .await;
    flood(&node, "w").await;
}

async fn a_flood_on_pipes_grows_no_memory_and_delays_no_control() {
    let node = Node::new().await;
    node.started(piped("w", "exec yes 'the same line again and again'"))
        .await;
    flood(&node, "w").await;
}

async fn a_slow_viewer_misses_output_which_is_counted_and_holds_up_nobody() {
    let node = Node::new().await;
    node.started(script("w", "exec yes 'the same line again and again'"))
        .await;
    let mut slow = node.supervisor.attach(&id("w")).await.expect("attached");
    let mut fast = node.supervisor.attach(&id("w")).await.expect("attached");
    let mut fast_place = fast.offset;
    // Meanwhile the slow one reads nothing: far more than is kept for it is printed.
    let begun = Instant::now();
    while fast_place < slow.offset + 8 * 1024 * 1024 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the worker is held up"
        );
        match fast.output.next().await {
            AttachmentNews::Output { offset, bytes } => fast_place = offset + bytes.len() as u64,
            AttachmentNews::Gap { offset, .. } => fast_place = offset,
            AttachmentNews::Closed { reason } => panic!("{reason}"),
        }
    }
    let (mut place, mut missed) = (slow.offset, 0);
    while missed == 0 {
        match slow.output.next().await {
            AttachmentNews::Output { offset, bytes } => {
                assert_eq!(offset, place);
                place += bytes.len() as u64;
            }
            AttachmentNews::Gap {
                dropped,
                offset,
                screen,
                rows,
                cols,
            } => {
                assert_eq!(offset, place + dropped, "what was dropped is counted");
                assert_eq!((rows, cols), (24, 80));
                assert!(String::from_utf8_lossy(&screen).contains("again and again"));
                missed = dropped;
            }
            AttachmentNews::Closed { reason } => panic!("{reason}"),
        }
    }
    assert!(missed > 1024 * 1024, "{missed}");
    let peak = proc::rss_peak_kib(node.holder("w"));
    assert!(peak < RSS_KIB_MAX, "{peak} KiB");
    node.release("w", 5_000).await;
}

async fn a_flood_that_ends_is_read_to_its_end() {
    let node = Node::new().await;
    node.start(piped(
        "w",
        "yes 0123456789 | head -c 20000000; echo; echo the end; exit 3",
    ))
    .await;
    let exits = node.exits_of("w", 1).await;
    assert_eq!(exits[0].exit.code, Some(3));
    assert!(exits[0].exit.output.ends_with("the end\n"));
    assert_eq!(node.tail("w").await.len(), 256 * 1024);
}
