//! Connections: how one is opened, the pool of readers, and how SQLite's errors become ours.

use std::path::Path;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Durability;
use crate::{StoreError, StoreResult};

/// How a file is used, which decides its page size and caches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Bytes of a page, for a new file.
    pub(crate) page_size: u32,
    /// Page cache of a writer, in KiB.
    pub(crate) cache_kib: u32,
    /// Pages in the log after which the writer moves them into the file.
    pub(crate) checkpoint_pages: u32,
}

/// After a checkpoint the log is cut down to this.
const WAL_BYTES_KEPT: u32 = 16 << 20;

/// Turns SQLite's errors into ours.
pub(crate) fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly("the data directory".into()),
        Some(ErrorCode::ConstraintViolation) => StoreError::Conflict(format!("{doing}: {source}")),
        _ => StoreError::Sqlite { doing, source },
    }
}

/// Opens a file for writing and makes it when it is not there.
pub(crate) fn writer(
    path: &Path,
    durability: Durability,
    tuning: Tuning,
) -> StoreResult<Connection> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(|source| match source.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            StoreError::ReadOnly(path.display().to_string())
        }
        _ => failed("open the store")(source),
    })?;
    let synchronous = match durability {
        Durability::Power => "FULL",
        Durability::Process => "NORMAL",
    };
    // The page size and auto_vacuum are settled by the first write, so they come first; later
    // they would write a file that may be another build's.
    let pages: i64 = conn
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(failed("look at the store"))?;
    if pages == 0 {
        conn.execute_batch(&format!(
            "PRAGMA page_size = {}; PRAGMA auto_vacuum = INCREMENTAL;",
            tuning.page_size
        ))
        .map_err(failed("prepare the store"))?;
    }
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
         PRAGMA cache_size = -{}; PRAGMA wal_autocheckpoint = {};
         PRAGMA journal_size_limit = {WAL_BYTES_KEPT}; PRAGMA temp_store = MEMORY;
         PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF;",
        tuning.cache_kib, tuning.checkpoint_pages,
    ))
    .map_err(failed("prepare the store"))?;
    settle(&conn)?;
    Ok(conn)
}

fn settle(conn: &Connection) -> StoreResult<()> {
    conn.set_prepared_statement_cache_capacity(128);
    conn.busy_timeout(Duration::from_secs(5))
        .map_err(failed("prepare the store"))
}

/// A few connections that can only read. Who finds none free waits.
pub(crate) struct Readers {
    free: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl Readers {
    /// Opens so many.
    pub(crate) fn open(path: &Path, count: usize) -> StoreResult<Self> {
        let mut free = Vec::with_capacity(count);
        for _ in 0..count {
            let conn = Connection::open_with_flags(
                path,
                OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )
            .map_err(failed("open the store"))?;
            conn.execute_batch(
                "PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY;
                 PRAGMA trusted_schema = OFF;",
            )
            .map_err(failed("prepare a reader"))?;
            settle(&conn)?;
            free.push(conn);
        }
        Ok(Self {
            free: Mutex::new(free),
            returned: Condvar::new(),
        })
    }

    /// Runs several statements over one state of the file. The transaction lasts as long as
    /// `read`, which is bounded by the limits of the questions.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        self.with(|conn| {
            let begin = |sql| {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute([]))
                    .map_err(failed("read the store"))
            };
            begin("BEGIN")?;
            let out = read(conn);
            begin("COMMIT")?;
            out
        })
    }

    /// Runs one statement, which sees one state by itself.
    pub(crate) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let lent = Lent {
            conn: Some(self.take()),
            readers: self,
        };
        match &lent.conn {
            Some(conn) => read(conn),
            None => Err(StoreError::Stopped),
        }
    }

    fn take(&self) -> Connection {
        let mut free = self.free.lock();
        loop {
            if let Some(conn) = free.pop() {
                return conn;
            }
            self.returned.wait(&mut free);
        }
    }
}

/// A connection that goes back to the pool, whatever happens to its user.
struct Lent<'a> {
    conn: Option<Connection>,
    readers: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            if !conn.is_autocommit() {
                // A read that failed half way; a connection in a transaction would pin the log.
                let _ = conn.execute_batch("ROLLBACK");
            }
            self.readers.free.lock().push(conn);
            self.readers.returned.notify_one();
        }
    }
}
