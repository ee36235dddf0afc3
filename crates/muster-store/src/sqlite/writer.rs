//! The writer of a file that many callers write: one thread, one connection, a bounded inbox.
//! Takes what waits, runs each piece in a savepoint, commits once, then answers all. Knows
//! nothing of what is written.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::connection::failed;
use crate::{StoreError, StoreResult};

/// Pieces that may wait; further callers block until there is room.
const INBOX: usize = 1024;
/// Pieces in one commit.
const BATCH: usize = 512;
/// After so much silence the log is moved into the file.
const IDLE: Duration = Duration::from_millis(500);
/// Between two slices of free pages that are given back.
const BETWEEN: Duration = Duration::from_millis(2);

/// A running writer. Dropping it finishes what waits.
pub(crate) struct Writer {
    inbox: Option<SyncSender<Box<dyn Piece>>>,
    thread: Option<JoinHandle<()>>,
}

/// One caller's work and the way back to it.
trait Piece: Send {
    /// Does the work inside a savepoint; whether it is to be kept.
    fn run(&mut self, conn: &Connection) -> bool;
    /// Answers the caller after the commit; `Some` when that failed.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

struct Task<T, F> {
    work: Option<F>,
    done: Option<StoreResult<T>>,
    back: SyncSender<StoreResult<T>>,
}

impl<T: Send, F: Send + FnOnce(&Connection) -> StoreResult<T>> Piece for Task<T, F> {
    fn run(&mut self, conn: &Connection) -> bool {
        let done = match self.work.take() {
            Some(work) => work(conn),
            None => Err(StoreError::Stopped),
        };
        let keep = done.is_ok();
        self.done = Some(done);
        keep
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let done = match (self.done, failed) {
            (Some(Err(own)), _) => Err(own),
            (_, Some(error)) => Err(error),
            (Some(done), None) => done,
            (None, None) => Err(StoreError::Stopped),
        };
        // A caller that is gone wants no answer.
        let _ = self.back.send(done);
    }
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(name: &str, conn: Connection) -> StoreResult<Self> {
        let (inbox, waiting) = sync_channel(INBOX);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || turn(&conn, &waiting))
            .map_err(|source| StoreError::Io {
                doing: format!("start the thread {name}"),
                source,
            })?;
        Ok(Self {
            inbox: Some(inbox),
            thread: Some(thread),
        })
    }

    /// Has the writer do `work`, and waits until it is committed. An error of the work leaves
    /// nothing of it behind and harms nobody else in the same commit.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (back, answer) = sync_channel(1);
        let task = Box::new(Task {
            work: Some(work),
            done: None,
            back,
        });
        self.inbox
            .as_ref()
            .and_then(|inbox| inbox.send(task).ok())
            .ok_or(StoreError::Stopped)?;
        answer.recv().unwrap_or(Err(StoreError::Stopped))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a writer of the store ended by a panic");
        }
    }
}

fn turn(conn: &Connection, waiting: &Receiver<Box<dyn Piece>>) {
    let (mut dirty, mut wait) = (false, IDLE);
    loop {
        let first = if dirty {
            match waiting.recv_timeout(wait) {
                Ok(piece) => piece,
                Err(RecvTimeoutError::Timeout) => {
                    // A slice at a time: what comes meanwhile waits for one slice at most.
                    if super::upkeep::give_back(conn) {
                        wait = BETWEEN;
                        continue;
                    }
                    checkpoint(conn);
                    (dirty, wait) = (false, IDLE);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        } else {
            match waiting.recv() {
                Ok(piece) => piece,
                Err(_) => return,
            }
        };
        let mut batch = vec![first];
        batch.extend(waiting.try_iter().take(BATCH - 1));
        group(conn, batch);
        (dirty, wait) = (true, IDLE);
    }
}

fn group(conn: &Connection, mut batch: Vec<Box<dyn Piece>>) {
    let done = together(conn, &mut batch);
    if done.is_err() && !conn.is_autocommit() {
        // The cause is answered to everybody; a failed rollback shows at the next begin.
        let _ = conn.execute_batch("ROLLBACK");
    }
    let mut cause = done.err();
    for piece in batch {
        let again = cause.as_ref().map(copy);
        piece.answer(cause.take().map(failed("write")));
        cause = again;
    }
}

fn together(conn: &Connection, batch: &mut [Box<dyn Piece>]) -> rusqlite::Result<()> {
    let run = |sql: &str| conn.prepare_cached(sql)?.execute([]).map(|_| ());
    run("BEGIN IMMEDIATE")?;
    if let [only] = batch {
        // Alone, the transaction is the savepoint.
        let keep = guarded(only, conn);
        return run(if keep { "COMMIT" } else { "ROLLBACK" });
    }
    for piece in batch.iter_mut() {
        run("SAVEPOINT piece")?;
        if !guarded(piece, conn) {
            run("ROLLBACK TO piece")?;
        }
        run("RELEASE piece")?;
    }
    run("COMMIT")
}

/// A panic of one caller's work is that caller's error and nobody else's.
fn guarded(piece: &mut Box<dyn Piece>, conn: &Connection) -> bool {
    let run = std::panic::AssertUnwindSafe(|| piece.run(conn));
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        tracing::error!("a piece of work for the store panicked");
        false
    })
}

/// SQLite's errors cannot be cloned; each caller gets its own.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => {
            rusqlite::Error::SqliteFailure(*code, text.clone())
        }
        other => rusqlite::Error::ToSqlConversionFailure(other.to_string().into()),
    }
}

fn checkpoint(conn: &Connection) {
    let done = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = done {
        tracing::debug!(%error, "the store's log could not be moved into its file");
    }
}
