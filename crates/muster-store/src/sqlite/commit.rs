//! Commits: all of the engine's writes or none, in one fenced transaction.
//!
//! The committing thread is the writer: it holds the one writing connection under a lock, so
//! that a commit costs no hop between threads. Statements stay prepared with the connection.
//! What each write does to the rows is in `write.rs` and `write/`.

use muster_engine::row::PayloadKind;
use muster_wire::ExecutionId;
use rusqlite::{Connection, ErrorCode};

use super::connection::failed;
use super::key::add_audit;
use super::numbers::Numbers;
use super::write::{apply, slot};
use crate::{Commit, CommitEnd, StoreError, StoreResult, check};

/// The writing connection of the decisions file, and what it knows by heart.
pub(crate) struct Decisions {
    pub(crate) conn: Connection,
    numbers: Numbers,
}

impl Decisions {
    /// Wraps a connection whose file has the schema.
    pub(crate) fn new(conn: Connection) -> StoreResult<Self> {
        let last: Option<i64> = conn
            .query_row("SELECT max(n) FROM executions", [], |row| row.get(0))
            .map_err(failed("read the last number"))?;
        Ok(Self {
            conn,
            numbers: Numbers::after(last.unwrap_or(0)),
        })
    }

    /// Runs `work` in a transaction of its own; an error leaves nothing behind.
    pub(crate) fn transact<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        begin(&self.conn).map_err(failed(doing))?;
        let open = Open(&self.conn);
        let out = work(&self.conn)?;
        end(&self.conn).map_err(failed(doing))?;
        drop(open);
        Ok(out)
    }

    /// Writes everything or nothing.
    pub(crate) fn commit(&mut self, commit: &Commit) -> CommitEnd {
        self.numbers.begin();
        let ended = self.try_commit(commit);
        if !matches!(ended, CommitEnd::Committed) {
            // Some of them may name rows that were rolled back.
            self.numbers.forget_all();
        }
        ended
    }

    /// Removes executions with what hangs on them in this file.
    pub(crate) fn remove_executions(&mut self, rows: &[(i64, ExecutionId)]) -> StoreResult<u64> {
        let gone = self.transact("remove executions", |conn| {
            let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute(values))
                    .map_err(failed("remove executions"))
            };
            let mut gone = 0;
            for (n, id) in rows {
                let (first, last) = (slot(*n, PayloadKind::Input), slot(*n, PayloadKind::Late));
                gone += run("DELETE FROM attempts WHERE execution = ?1", &[n])?;
                gone += run(
                    "DELETE FROM payloads WHERE slot BETWEEN ?1 AND ?2",
                    &[&first, &last],
                )?;
                // The newest event stays: it is where the sequence goes on.
                gone += run(
                    "DELETE FROM events WHERE execution = ?1
                     AND seq < (SELECT max(seq) FROM events)",
                    &[&id.as_str()],
                )?;
                gone += run("DELETE FROM executions WHERE n = ?1", &[n])?;
            }
            Ok(gone as u64)
        })?;
        for (_, id) in rows {
            self.numbers.forget(id);
        }
        Ok(gone)
    }

    /// Drops an item of the quarantine; with a row that could not be read goes the row.
    pub(crate) fn drop_quarantined(&mut self, id: &str) -> StoreResult<bool> {
        if let Some(n) = id
            .strip_prefix("row:execution:")
            .and_then(|n| n.parse().ok())
        {
            self.remove_executions(&[(n, ExecutionId::trusted(""))])?;
        }
        self.transact("drop something set aside", |conn| {
            let run = |sql: &str, key: &str| {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute([key]))
                    .map_err(failed("drop something set aside"))
            };
            if let Some(agent) = id.strip_prefix("row:agent:") {
                run("DELETE FROM agents WHERE id = ?1", agent)?;
            } else if let Some(rowid) = id.strip_prefix("row:instance:") {
                run(
                    "DELETE FROM instances WHERE rowid = CAST(?1 AS INTEGER)",
                    rowid,
                )?;
            } else if let Some(mark) = id.strip_prefix("row:run:") {
                run("DELETE FROM runs WHERE id = ?1", mark)?;
            } else if let Some(worker) = id.strip_prefix("row:worker:") {
                run("DELETE FROM workers WHERE id = ?1", worker)?;
            } else if let Some(node) = id.strip_prefix("row:node:") {
                run("DELETE FROM nodes WHERE id = ?1", node)?;
            } else if let Some(attempt) = id.strip_prefix("row:attempt:") {
                run(
                    "DELETE FROM attempts WHERE execution || '~' || n = ?1",
                    attempt,
                )?;
            }
            Ok(run("DELETE FROM quarantine WHERE id = ?1", id)? > 0)
        })
    }

    fn try_commit(&mut self, commit: &Commit) -> CommitEnd {
        if let Err(source) = begin(&self.conn) {
            return refused(failed("begin a commit")(source));
        }
        let open = Open(&self.conn);
        let done = fence(&self.conn, commit).and_then(|()| {
            commit
                .writes
                .iter()
                .try_for_each(|write| apply(&self.conn, &mut self.numbers, write))?;
            commit
                .audit
                .iter()
                .try_for_each(|row| add_audit(&self.conn, row))?;
            self.numbers.count_queues(&self.conn)
        });
        if let Err(cause) = done {
            return refused(cause);
        }
        let ended = match end(&self.conn) {
            Ok(()) => CommitEnd::Committed,
            // The frames may or may not have reached the disk before the error did.
            Err(source) if source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => {
                CommitEnd::Unknown(failed("commit")(source))
            }
            Err(source) => refused(failed("commit")(source)),
        };
        drop(open);
        ended
    }
}

fn refused(cause: StoreError) -> CommitEnd {
    CommitEnd::Refused {
        passing: cause.is_passing(),
        cause,
    }
}

fn begin(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn end(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// A transaction that is rolled back unless it was committed, also by a panic.
struct Open<'c>(&'c Connection);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

fn fence(conn: &Connection, commit: &Commit) -> StoreResult<()> {
    let (epoch, last): (Option<i64>, Option<i64>) = conn
        .prepare_cached(
            "SELECT (SELECT epoch FROM leases WHERE id = ?1), (SELECT max(seq) FROM events)",
        )
        .and_then(|mut s| s.query_row([commit.lease.id.0], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failed("check the lease"))?;
    if epoch != i64::try_from(commit.lease.epoch).ok() {
        return Err(StoreError::Fenced {
            held: commit.lease.epoch,
        });
    }
    check::commit(commit, last.unwrap_or(0).cast_unsigned())
}
