//! What can only be provoked from inside: a full disk, and a log that must stay short.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{EventKind, EventRow};
use muster_wire::Timestamp;

use super::{Durability, Options, SqliteStore};
use crate::annex::{Annex, MemoryBy, MemoryScope};
use crate::{Commit, CommitEnd, Lease, LeaseId, Store, StoreError};

fn open(dir: &std::path::Path) -> SqliteStore {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    SqliteStore::open(dir, options).unwrap()
}

fn event(lease: &Lease, seq: u64, text: &str) -> Commit {
    Commit {
        audit: Vec::new(),
        lease: lease.clone(),
        after_seq: seq - 1,
        last_seq: seq,
        writes: vec![Write::InsertEvent(Arc::new(EventRow {
            seq,
            at: Timestamp(1),
            kind: EventKind::PlaneStarted,
            execution: None,
            run: None,
            agent: None,
            function: None,
            instance: None,
            node: None,
            worker: None,
            attempt: None,
            status: None,
            reason: None,
            category: None,
            text: Some(Arc::from(text)),
        }))],
    }
}

#[test]
fn a_full_disk_refuses_for_now_and_the_store_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = store.take_lease(LeaseId(0), "test").unwrap();
    let pages = |store: &SqliteStore, sql: &str| {
        let decisions = store.decisions.lock();
        decisions
            .conn
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let now = pages(&store, "PRAGMA page_count");
    pages(&store, &format!("PRAGMA max_page_count = {now}"));
    let long = "x".repeat(100_000);
    let end = store.commit(&event(&lease, 1, &long));
    assert!(
        matches!(
            end,
            CommitEnd::Refused {
                passing: true,
                cause: StoreError::Full
            }
        ),
        "{end:?}"
    );
    assert_eq!(store.last_seq().unwrap(), 0);
    assert!(store.setting("s").unwrap().is_none());
    pages(&store, "PRAGMA max_page_count = 1000000");
    let end = store.commit(&event(&lease, 1, &long));
    assert!(matches!(end, CommitEnd::Committed), "{end:?}");
}

#[test]
fn one_piece_of_work_that_fails_harms_no_other_in_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    std::thread::scope(|scope| {
        for n in 0..32 {
            let store = &store;
            scope.spawn(move || {
                let done = store.payloads.write(move |conn| {
                    conn.execute(
                        "INSERT INTO memory VALUES ('s', 'i', ?1, x'', 1, 1)",
                        [n.to_string()],
                    )
                    .map_err(super::connection::failed("test"))?;
                    match n % 4 {
                        0 => Err(StoreError::Unreadable("a test wants it so".into())),
                        1 => panic!("a test wants it so"),
                        _ => Ok(n),
                    }
                });
                assert_eq!(done.is_ok(), n % 4 > 1);
            });
        }
    });
    let scope = MemoryScope {
        scope: Arc::from("s"),
        id: Arc::from("i"),
    };
    assert_eq!(store.memory_list(&scope, "", 100).unwrap().len(), 16);
    let by = MemoryBy::default();
    store
        .memory_set(&scope, "k", Bytes::new(), &by, Timestamp(1))
        .unwrap();
}

#[test]
fn the_log_stays_bounded_under_load_and_is_emptied_when_it_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = store.take_lease(LeaseId(0), "test").unwrap();
    let long = "x".repeat(60_000);
    let mut longest = 0;
    for seq in 1..=2_000 {
        let end = store.commit(&event(&lease, seq, &long));
        assert!(matches!(end, CommitEnd::Committed), "{end:?}");
        longest = longest.max(store.wal_bytes());
    }
    // 120 MB were written; 8,000 pages are 33 MB, and a pass in progress may let a few by.
    assert!(longest < 64 << 20, "{longest}");
    let began = std::time::Instant::now();
    while store.wal_bytes() > 1 << 20 {
        assert!(began.elapsed().as_secs() < 30, "{}", store.wal_bytes());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(store.last_seq().unwrap(), 2_000);
}
