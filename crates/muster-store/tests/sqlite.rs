//! What only the store on disk can show: its lock, its format, its place, rows that cannot be
//! read, and a backup.

#[path = "conformance/fleet_rows.rs"]
#[allow(dead_code)]
mod fleet;
#[path = "sqlite/fleet.rs"]
mod fleet_on_disk;
#[path = "sqlite/formats.rs"]
mod formats;
#[path = "conformance/support.rs"]
#[allow(dead_code)]
mod support;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::PayloadKind;
use muster_store::{
    Annex, Commit, CommitEnd, ExecutionFilter, LeaseId, Options, Page, SqliteStore, Store,
    StoreError,
};
use muster_wire::{ExecutionId, Status, Timestamp};
use support::{Hand, execution_id, put, row, started};

fn open(dir: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(dir, Options::default())
}

fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("decisions.db")).unwrap()
}

#[test]
fn a_second_opener_is_kept_out_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let error = open(dir.path()).err().unwrap();
    assert!(matches!(error, StoreError::InUse(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains(&dir.path().display().to_string())
    );
    drop(store);
    open(dir.path()).unwrap();
}

#[test]
fn a_store_of_a_newer_build_is_refused_with_a_sentence_and_left_alone() {
    for file in ["decisions.db", "payloads.db", "logs.db"] {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).unwrap());
        let conn = rusqlite::Connection::open(dir.path().join(file)).unwrap();
        conn.execute_batch("PRAGMA user_version = 99").unwrap();
        let error = open(dir.path()).err().unwrap();
        assert!(
            matches!(error, StoreError::Newer { found: 99, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("newer"));
        let version: u32 = conn
            .query_row("PRAGMA user_version", [], |r| r.get(0))
            .unwrap();
        assert_eq!(version, 99);
    }
}

#[test]
fn what_was_written_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let mark = store.about().mark;
    let hand = Hand::on(&store);
    let epoch = hand.lease.epoch;
    hand.insert(&row("e1", 1));
    hand.commit(vec![put("e1", PayloadKind::Input, b"in")]);
    store
        .put_large(
            &execution_id("e1"),
            PayloadKind::Result,
            Bytes::from_static(b"out"),
        )
        .unwrap();
    drop(store);
    let store = open(dir.path()).unwrap();
    assert_eq!(store.about().mark, mark);
    assert_eq!(store.about().suspicious, None);
    let hand = Hand::on(&store);
    assert_eq!(hand.lease.epoch, epoch + 1);
    hand.insert(&row("e2", 2));
    let input = store
        .payload(&execution_id("e1"), PayloadKind::Input)
        .unwrap()
        .unwrap();
    let result = store
        .payload(&execution_id("e1"), PayloadKind::Result)
        .unwrap()
        .unwrap();
    assert_eq!((&input.0[..], &result.0[..]), (&b"in"[..], &b"out"[..]));
    assert_eq!(
        store
            .payload(&execution_id("e2"), PayloadKind::Input)
            .unwrap(),
        None
    );
    assert_eq!(store.restore().unwrap().snapshot.queues[0].count, 2);
}

#[test]
fn a_copied_store_is_suspicious_until_its_place_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    for file in ["decisions.db", "payloads.db", "logs.db"] {
        std::fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    for _ in 0..2 {
        let store = open(copy.path()).unwrap();
        assert!(
            store
                .about()
                .suspicious
                .unwrap()
                .contains("copied or restored")
        );
    }
    let store = open(copy.path()).unwrap();
    store.accept_place().unwrap();
    assert_eq!(store.about().suspicious, None);
    drop(store);
    assert_eq!(open(copy.path()).unwrap().about().suspicious, None);
    assert_eq!(open(dir.path()).unwrap().about().suspicious, None);
}

#[test]
fn an_older_state_put_back_in_place_is_suspicious() {
    let dir = tempfile::tempdir().unwrap();
    let say = |n: usize| {
        let store = open(dir.path()).unwrap();
        assert_eq!(store.about().suspicious, None);
        let hand = Hand::on(&store);
        for _ in 0..n {
            let kind = muster_engine::row::EventKind::HoldChanged;
            hand.commit(vec![support::say(support::event(kind, 1))]);
        }
    };
    let file = dir.path().join("decisions.db");
    say(3);
    let older = std::fs::read(&file).unwrap();
    say(2);
    // Into the same file, as `cp` does it: the inode stays.
    std::fs::write(&file, older).unwrap();
    for _ in 0..2 {
        let why = open(dir.path()).unwrap().about().suspicious.unwrap();
        assert!(why.contains("last event is 3, but 5"), "{why}");
    }
    let store = open(dir.path()).unwrap();
    store.accept_place().unwrap();
    drop(store);
    assert_eq!(open(dir.path()).unwrap().about().suspicious, None);
}

#[test]
fn a_backup_is_taken_while_commits_go_on_and_is_suspicious() {
    let dir = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let place = copy.path().join("backup");
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    for n in 0..200 {
        hand.insert(&row(&format!("before-{n}"), 1));
    }
    store
        .put_large(
            &execution_id("before-1"),
            PayloadKind::Input,
            Bytes::from(vec![7; 300_000]),
        )
        .unwrap();
    store.setting_put("s", Bytes::from_static(b"v")).unwrap();
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| store.backup_to(&place));
        for n in 0..200 {
            hand.insert(&row(&format!("while-{n}"), 1));
        }
        backup.join().unwrap().unwrap();
    });
    let error = store.backup_to(&place).err().unwrap();
    assert!(error.to_string().contains("already"), "{error}");
    let copied = open(&place).unwrap();
    assert!(copied.about().suspicious.is_some());
    assert_eq!(copied.about().mark, store.about().mark);
    let filter = ExecutionFilter {
        id_part: Some("before-".into()),
        ..ExecutionFilter::default()
    };
    let page = Page {
        after: None,
        limit: 1_000,
    };
    assert_eq!(copied.executions(&filter, &page).unwrap().len(), 200);
    let large = copied
        .payload(&execution_id("before-1"), PayloadKind::Input)
        .unwrap();
    assert_eq!(large.unwrap().len(), 300_000);
    assert_eq!(copied.setting("s").unwrap(), Some(Bytes::from_static(b"v")));
}

#[test]
fn an_unreadable_row_harms_itself_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    hand.insert_all(&[row("good", 1), row("bad", 2), row("waits", 3)]);
    hand.commit(vec![started("good", 1, 5), started("bad", 1, 5)]);
    hand.commit(vec![Write::PutAgent(Box::new(support::agent(
        "agent", false,
    )))]);
    raw(dir.path())
        .execute_batch(
            "UPDATE executions SET lane = 99 WHERE id IN ('bad', 'waits');
             UPDATE agents SET registration = 5;",
        )
        .unwrap();
    let restored = store.restore().unwrap();
    let open_ids: Vec<_> = restored
        .snapshot
        .open
        .iter()
        .map(|o| o.row.id.as_str())
        .collect();
    assert_eq!(open_ids, ["good"]);
    assert!(restored.snapshot.agents.is_empty());
    let mut about: Vec<_> = restored
        .set_aside
        .iter()
        .map(|i| i.about.as_str())
        .collect();
    about.sort_unstable();
    assert_eq!(about, ["agent agent", "execution 2"]);
    let bad = restored
        .set_aside
        .iter()
        .find(|i| i.about == "execution 2")
        .unwrap();
    assert!(bad.error.contains("unknown lane 99"), "{bad:?}");
    assert!(bad.what.contains("id=bad"), "{bad:?}");
    assert_eq!(store.quarantine(10).unwrap().len(), 2);
    // The next start passes over them.
    let again = store.restore().unwrap();
    assert!(again.set_aside.is_empty());
    assert_eq!(again.snapshot.open.len(), 1);
    // Lists and windows leave it out; asked for by name, it is an error and no panic.
    let all = store.executions(
        &ExecutionFilter::default(),
        &Page {
            after: None,
            limit: 9,
        },
    );
    assert_eq!(all.unwrap().len(), 1);
    let window = store.window(&support::agent_id("agent"), None, 9).unwrap();
    assert!(window.rows.is_empty() && window.exhausted);
    let error = store.execution(&execution_id("bad")).err().unwrap();
    assert!(matches!(error, StoreError::Unreadable(_)), "{error}");
    assert_eq!(
        store.quarantine(10).unwrap().len(),
        2,
        "it is there already"
    );
    // One that no start looks at is set aside by whoever comes across it, once.
    for _ in 0..2 {
        assert!(store.execution(&execution_id("waits")).is_err());
    }
    let aside = store.quarantine(10).unwrap();
    assert_eq!(aside.len(), 3, "{aside:?}");
    assert!(aside.iter().any(|item| item.what.contains("id=waits")));
    // Dropped for good, the row goes with it.
    assert!(store.drop_quarantined("row:execution:2").unwrap());
    assert_eq!(store.execution(&execution_id("bad")).unwrap().1, None);
    assert!(store.restore().unwrap().set_aside.is_empty());
}

#[test]
fn too_many_unreadable_rows_stop_the_start_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    for n in 0..101 {
        hand.insert(&row(&format!("e{n}"), 1));
        hand.commit(vec![started(&format!("e{n}"), 1, 5)]);
    }
    raw(dir.path())
        .execute_batch("UPDATE executions SET lane = 99")
        .unwrap();
    let error = store.restore().err().unwrap();
    assert!(
        matches!(error, StoreError::TooManyUnreadable(101)),
        "{error}"
    );
    assert!(store.quarantine(10).unwrap().is_empty());
    raw(dir.path())
        .execute_batch("UPDATE executions SET lane = 0 WHERE n = 1")
        .unwrap();
    assert_eq!(store.restore().unwrap().set_aside.len(), 100);
}

#[test]
fn words_that_this_build_does_not_know_do_not_break_lists_of_events() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    for _ in 0..3 {
        let kind = muster_engine::row::EventKind::HoldChanged;
        hand.commit(vec![support::say(support::event(kind, 1))]);
    }
    raw(dir.path())
        .execute_batch("UPDATE events SET kind = 999 WHERE seq = 2")
        .unwrap();
    let seqs: Vec<u64> = store.events(0, 10).unwrap().iter().map(|e| e.seq).collect();
    assert_eq!(seqs, [1, 3]);
}

#[test]
fn the_views_show_words_to_people() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    let mut shown = row("e1", 1_000_000);
    shown.created_at = Timestamp(1_000_000);
    hand.insert(&shown);
    hand.commit(vec![
        put("e1", PayloadKind::ErrorDetails, b"x"),
        support::say(support::event(
            muster_engine::row::EventKind::PlaneStarted,
            0,
        )),
    ]);
    let ask = |sql: &str| -> String { raw(dir.path()).query_row(sql, [], |r| r.get(0)).unwrap() };
    assert_eq!(ask("SELECT status FROM executions_shown"), "queued");
    assert_eq!(ask("SELECT root FROM executions_shown"), "e1");
    assert_eq!(
        ask("SELECT created_at FROM executions_shown"),
        "1970-01-01T00:00:01.000Z"
    );
    assert_eq!(
        ask("SELECT owner || kind FROM payloads_shown"),
        "e1error_details"
    );
    assert_eq!(ask("SELECT kind FROM events_shown"), "plane.started");
}

#[test]
fn a_place_that_cannot_hold_a_store_gets_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let error = open(&file).err().unwrap();
    assert!(
        error.to_string().contains("make the data directory"),
        "{error}"
    );
    std::fs::create_dir(dir.path().join("d")).unwrap();
    std::fs::write(
        dir.path().join("d/decisions.db"),
        b"not a database, and long enough to see",
    )
    .unwrap();
    let error = open(&dir.path().join("d")).err().unwrap();
    assert!(error.to_string().contains("not a database"), "{error}");
}

#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("data");
    let store = open(&place).unwrap();
    Hand::on(&store).insert(&row("e1", 1));
    assert_eq!(
        std::fs::metadata(&place).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let mut seen = 0;
    for entry in std::fs::read_dir(&place).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
        seen += 1;
    }
    assert!(seen >= 4);
}

#[test]
fn sizes_are_told_by_kind() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    store
        .put_large(
            &execution_id("e1"),
            PayloadKind::Input,
            Bytes::from(vec![1; 1 << 20]),
        )
        .unwrap();
    let sizes = store.sizes().unwrap();
    let of = |kind| sizes.kinds.iter().find(|(k, _)| *k == kind).unwrap().1;
    assert!(of("payloads") > 1 << 20);
    assert!(of("decisions") > 0 && of("logs") > 0);
    assert!(sizes.free.unwrap() > 0 && sizes.disk.unwrap() >= sizes.free.unwrap());
}

#[test]
fn commits_and_changes_of_keys_from_many_threads_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let lease = store.take_lease(LeaseId(0), "test").unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for m in 0..50 {
                    let name = format!("{n}-{m}");
                    store.setting_put(&name, Bytes::from(name.clone())).unwrap();
                    assert!(store.setting(&name).unwrap().is_some());
                    store.execution(&ExecutionId::trusted("e5")).unwrap();
                }
            });
        }
        for n in 0..100 {
            let end = store.commit(&Commit {
                audit: Vec::new(),
                lease: lease.clone(),
                after_seq: 0,
                last_seq: 0,
                writes: vec![Write::InsertExecution(Arc::new(row(&format!("e{n}"), 1)))],
            });
            assert!(matches!(end, CommitEnd::Committed), "{end:?}");
        }
    });
    assert_eq!(store.restore().unwrap().snapshot.queues[0].count, 100);
}

#[test]
fn room_that_retention_makes_is_given_back_to_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let hand = Hand::on(&store);
    for n in 0..400 {
        let id = format!("e{n}");
        hand.commit(vec![
            Write::InsertExecution(Arc::new(support::row(&id, n + 1))),
            support::put(&id, PayloadKind::Input, &[b'x'; 20_000]),
            support::ended(&id, Status::Succeeded, n + 2),
        ]);
    }
    let size = || {
        std::fs::metadata(dir.path().join("decisions.db"))
            .unwrap()
            .len()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let wait_for = |what: &str, holds: &dyn Fn() -> bool| {
        while !holds() {
            assert!(std::time::Instant::now() < until, "{what}: {}", size());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait_for("the log is moved into the file", &|| size() > 7_000_000);
    let start = Timestamp(i64::MIN);
    let cut = muster_store::Retention {
        executions_before: Timestamp::NEVER,
        payloads_before: start,
        events_before: start,
        memory_events_before: start,
        webhooks_before: start,
        keys_before: start,
        logs_before: start,
        audit_before: start,
        quarantine_before: start,
        instances_before: start,
        workers_before: start,
    };
    while store.retire(&cut, 500).unwrap() > 0 {}
    hand.commit(vec![support::say(support::event(
        muster_engine::row::EventKind::PlaneStarted,
        1,
    ))]);
    wait_for("the file is small again", &|| size() < 1_000_000);
}
