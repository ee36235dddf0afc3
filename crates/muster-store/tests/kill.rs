//! What was acknowledged survives kill -9 at any moment, and the sequence stays dense.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{EventKind, PayloadKind};
use muster_store::annex::{MemoryBy, MemoryScope};
use muster_store::{Annex, Durability, Options, SqliteStore, Store};
use muster_wire::{Status, Timestamp};

#[path = "conformance/support.rs"]
#[allow(dead_code)]
mod support;
use support::{Hand, ended, event, execution_id, put, row, say};

const PLACE: &str = "MUSTER_STORE_KILL_TEST";
const LARGE: usize = 300_000;

fn open(dir: &Path) -> SqliteStore {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    SqliteStore::open(dir, options).unwrap()
}

fn scope() -> MemoryScope {
    MemoryScope {
        scope: Arc::from("global"),
        id: Arc::from("global"),
    }
}

/// The other process of the test below: commits and acknowledges until it is killed. Without
/// its place in the environment it has nothing to do.
#[test]
fn child_commits_until_it_is_killed() {
    let Some(dir) = std::env::var_os(PLACE) else {
        return;
    };
    let store = open(Path::new(&dir));
    let hand = Hand::on(&store);
    let mut out = std::io::stdout();
    let mut acknowledge = |what: &str, n: u64| {
        writeln!(out, "ack {what} {n}").unwrap();
        out.flush().unwrap();
    };
    loop {
        let n = hand.seq.get() + 1;
        let id = format!("e{n}");
        if n.is_multiple_of(16) {
            let bytes = Bytes::from(vec![n as u8; LARGE]);
            store
                .put_large(&execution_id(&id), PayloadKind::Result, bytes)
                .unwrap();
            acknowledge("large", n);
            let data = Bytes::from(n.to_string());
            store
                .memory_set(&scope(), &id, data, &MemoryBy::default(), Timestamp(1))
                .unwrap();
            acknowledge("memory", n);
        }
        hand.commit(vec![
            Write::InsertExecution(Arc::new(row(&id, 1))),
            put(&id, PayloadKind::Input, id.as_bytes()),
            say(event(EventKind::ExecutionQueued, 1)),
        ]);
        acknowledge("insert", n);
        hand.commit(vec![ended(&id, Status::Succeeded, 2)]);
        acknowledge("end", n);
    }
}

#[test]
fn everything_acknowledged_is_there_after_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..6_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_commits_until_it_is_killed", "--nocapture"])
            .env(PLACE, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // How far it gets differs from round to round, and so does what it is doing.
        let enough = acknowledged.len() + 40 + round * 57;
        let mut killed = false;
        for line in lines {
            // What was said before the kill counts, also what is read after it.
            if let Some((what, n)) = line.unwrap().strip_prefix("ack ").and_then(parse) {
                acknowledged.push((what, n));
            }
            if acknowledged.len() >= enough && !killed {
                child.kill().unwrap();
                killed = true;
            }
        }
        child.wait().unwrap();
        assert!(killed, "the child ended by itself");
        check(&open(dir.path()), &acknowledged);
    }
    let conn = rusqlite::Connection::open(dir.path().join("decisions.db")).unwrap();
    let sound: String = conn
        .query_row("PRAGMA integrity_check", [], |r| r.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

fn parse(line: &str) -> Option<(String, u64)> {
    let (what, n) = line.split_once(' ')?;
    Some((what.to_owned(), n.parse().ok()?))
}

fn check(store: &SqliteStore, acknowledged: &[(String, u64)]) {
    let last = store.last_seq().unwrap();
    let seqs: Vec<u64> = store
        .events(0, usize::MAX >> 1)
        .unwrap()
        .iter()
        .map(|e| e.seq)
        .collect();
    assert_eq!(seqs, (1..=last).collect::<Vec<u64>>());
    for (what, n) in acknowledged {
        let id = execution_id(&format!("e{n}"));
        let row = || store.execution(&id).unwrap().1;
        match what.as_str() {
            "insert" => {
                assert!(*n <= last && row().is_some(), "{id}");
                let input = store.payload(&id, PayloadKind::Input).unwrap().unwrap();
                assert_eq!(input.0, id.as_str().as_bytes());
            }
            "end" => assert_eq!(row().unwrap().status, Status::Succeeded, "{id}"),
            "large" => {
                let large = store.payload(&id, PayloadKind::Result).unwrap().unwrap();
                assert!(large.0 == vec![*n as u8; LARGE], "{id}");
            }
            "memory" => {
                let row = store.memory_get(&[scope()], id.as_str()).unwrap().unwrap();
                assert_eq!(row.data, n.to_string());
            }
            other => panic!("{other}"),
        }
    }
    // Counts of queues are part of the same commits.
    let queued: u64 = store
        .restore()
        .unwrap()
        .snapshot
        .queues
        .iter()
        .map(|q| q.count)
        .sum();
    assert!(queued <= acknowledged.len() as u64);
}
