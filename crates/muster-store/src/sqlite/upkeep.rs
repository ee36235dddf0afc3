//! Moving the decisions' log into their file, beside the commits instead of in front of them.
//!
//! Under load a thread copies what it can while commits go on; only when the log is long
//! nevertheless does a committer do the small rest itself, which lets the log start anew. In
//! quiet moments the thread empties the log and gives free pages back. Knows no rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::commit::Decisions;
use super::connection::failed;
use super::known::last_seq;
use super::open::Seen;
use crate::{StoreError, StoreResult};

/// New pages in the log that wake the thread. The more there are, the more of them are the same
/// page again, which is copied once.
const PAGES_DUE: i32 = 2_000;
/// Pages in the log after which the committer helps.
const PAGES_MAX: i32 = 8_000;
/// After so long without a commit the log is emptied.
const QUIET: Duration = Duration::from_millis(500);

/// Pages in the log, as the last commit left them.
pub(super) type Pages = Arc<AtomicI32>;

/// Takes over from SQLite the question of when to checkpoint.
pub(super) fn take_over(conn: &mut Connection) -> StoreResult<Pages> {
    let pages = Pages::default();
    let noted = pages.clone();
    conn.wal_hook(Some(move |_: &mut Wal, now| {
        noted.store(now, Ordering::Relaxed);
        Ok(())
    }))
    .map_err(failed("watch the log"))?;
    Ok(pages)
}

/// The running thread, and what commits tell it.
pub(super) struct Upkeep {
    pages: Pages,
    told: Arc<Told>,
    /// Holds the lock against a second process for as long as the store is open.
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Told {
    commits: AtomicU64,
    /// The thread sleeps until something is committed.
    asleep: AtomicBool,
    due: AtomicBool,
    /// Pages in the log when the thread last began to copy them.
    copied: AtomicI32,
    stop: AtomicBool,
}

impl Upkeep {
    /// Starts the thread on a connection of its own.
    pub(super) fn start(
        conn: Connection,
        decisions: Arc<Mutex<Decisions>>,
        pages: Pages,
        seen: Seen,
    ) -> StoreResult<Self> {
        let seen = Arc::new(seen);
        let keeps = seen.clone();
        let told = Arc::new(Told::default());
        let (hears, read) = (told.clone(), pages.clone());
        let thread = std::thread::Builder::new()
            .name("muster-decisions".into())
            .spawn(move || turn(&conn, &decisions, &hears, &read, &keeps))
            .map_err(|source| StoreError::Io {
                doing: "start the thread muster-decisions".into(),
                source,
            })?;
        Ok(Self {
            pages,
            told,
            seen,
            thread: Some(thread),
        })
    }

    /// The place of the store was accepted, with its events as they are.
    pub(super) fn accept(&self, last: u64) {
        self.seen.doubt(false);
        self.seen.keep(last);
    }

    /// After a commit, by the thread that made it and still holds the writer.
    pub(super) fn committed(&self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        self.told.commits.fetch_add(1, Ordering::Relaxed);
        if pages < self.told.copied.load(Ordering::Relaxed) {
            // The log began anew.
            self.told.copied.store(0, Ordering::Relaxed);
        }
        let fresh = pages - self.told.copied.load(Ordering::Relaxed);
        let due = fresh >= PAGES_DUE && !self.told.due.swap(true, Ordering::AcqRel);
        if (due || self.told.asleep.swap(false, Ordering::AcqRel))
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        if pages >= PAGES_MAX {
            checkpoint(writer, "PASSIVE");
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.told.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the upkeep of the store ended by a panic");
            }
        }
    }
}

fn turn(
    conn: &Connection,
    decisions: &Mutex<Decisions>,
    told: &Told,
    pages: &Pages,
    seen_here: &Seen,
) {
    let mut seen = 0;
    while !told.stop.load(Ordering::Acquire) {
        if told.due.load(Ordering::Acquire) {
            let now = pages.load(Ordering::Relaxed);
            told.copied.store(now, Ordering::Relaxed);
            checkpoint(conn, "PASSIVE");
            keep_last(conn, seen_here);
            told.due.store(false, Ordering::Release);
        }
        let commits = told.commits.load(Ordering::Relaxed);
        if commits != seen {
            seen = commits;
            std::thread::park_timeout(QUIET);
            continue;
        }
        // A slice at a time, so that a commit that comes waits for one slice at most.
        while let Some(decisions) = decisions.try_lock()
            && give_back(&decisions.conn)
            && told.commits.load(Ordering::Relaxed) == seen
            && !told.stop.load(Ordering::Acquire)
        {}
        if let Some(decisions) = decisions.try_lock() {
            checkpoint(&decisions.conn, "TRUNCATE");
            keep_last(&decisions.conn, seen_here);
        }
        told.asleep.store(true, Ordering::Release);
        if told.commits.load(Ordering::Acquire) == seen && !told.stop.load(Ordering::Acquire) {
            std::thread::park();
        }
    }
    keep_last(conn, seen_here);
}

fn keep_last(conn: &Connection, seen: &Seen) {
    if let Ok(last) = last_seq(conn) {
        seen.keep(last);
    }
}

fn checkpoint(conn: &Connection, mode: &str) {
    let done = conn
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))
        .and_then(|mut s| s.query_row([], |_| Ok(())));
    if let Err(error) = done {
        tracing::debug!(%error, "the store's log could not be moved into its file");
    }
}

/// Gives some free pages back to the disk; whether there are more.
pub(super) fn give_back(conn: &Connection) -> bool {
    let left = conn
        .execute_batch("PRAGMA incremental_vacuum(256)")
        .and_then(|()| conn.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0)));
    match left {
        Ok(left) => left > 0,
        Err(error) => {
            tracing::debug!(%error, "free pages could not be given back");
            false
        }
    }
}
