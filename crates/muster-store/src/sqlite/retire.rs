//! Retention: removes what is older than it allows, in small transactions, so that no commit
//! waits behind it. Payloads, logs and notes of a run go before its rows: a crash in between
//! leaves a run that the next pass finishes, and never a payload without a run.

use muster_wire::ExecutionId;
use parking_lot::Mutex;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::connection::failed;
use super::known::{all, first};
use super::rows::Columns;
use crate::{Retention, StoreResult};

/// Executions removed in one transaction.
const AT_ONCE: usize = 32;

/// Where the last pass over old runs stopped; runs that are still open stay behind it.
pub(super) type Cursor = Option<(i64, String)>;

struct OldRun {
    run: String,
    at: (i64, String),
}

impl SqliteStore {
    /// One bounded pass; how many rows went.
    pub(super) fn retire_pass(&self, cut: &Retention, limit: usize) -> StoreResult<u64> {
        let limit = limit.max(1);
        let mut gone = self.retire_some(&self.retired_to, cut.executions_before.0, limit)?;
        if cut.payloads_before > cut.executions_before {
            gone += self.retire_payloads(cut.payloads_before.0, limit)?;
        }
        let rows = i64::try_from(limit).unwrap_or(i64::MAX);
        gone += self.retire_rows(
            // The newest event stays: it is where the sequence goes on.
            "DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT ?2)
             AND at < ?1 AND seq < (SELECT max(seq) FROM events)",
            cut.events_before.0,
            rows,
        )?;
        gone += self.retire_rows(
            "DELETE FROM idempotency WHERE key IN
             (SELECT key FROM idempotency WHERE at < ?1 ORDER BY at LIMIT ?2)",
            cut.keys_before.0,
            rows,
        )?;
        gone += self.retire_rows(
            "DELETE FROM idempotency WHERE key IN
             (SELECT key FROM idempotency i WHERE at < ?1 AND NOT EXISTS
                (SELECT 1 FROM executions e WHERE e.id = i.execution) ORDER BY at LIMIT ?2)",
            cut.executions_before.0,
            rows,
        )?;
        gone += self.retire_rows(
            "DELETE FROM audit WHERE n IN (SELECT n FROM audit WHERE at < ?1 LIMIT ?2)",
            cut.audit_before.0,
            rows,
        )?;
        gone += self.retire_rows(
            "DELETE FROM quarantine WHERE id IN
             (SELECT id FROM quarantine WHERE at < ?1 AND kind <> 'row' LIMIT ?2)",
            cut.quarantine_before.0,
            rows,
        )?;
        gone += self.retire_rows(
            "DELETE FROM instances WHERE rowid IN
             (SELECT rowid FROM instances WHERE gone_at < ?1 LIMIT ?2)",
            cut.instances_before.0,
            rows,
        )?;
        for sql in [
            "DELETE FROM workers WHERE rowid IN
             (SELECT rowid FROM workers INDEXED BY workers_ended
              WHERE ended_at IS NOT NULL AND ended_at < ?1 LIMIT ?2)",
            "DELETE FROM fleet_history WHERE seq IN
             (SELECT seq FROM fleet_history ORDER BY seq LIMIT ?2) AND at < ?1",
            "DELETE FROM relay WHERE (kind, name) IN
             (SELECT kind, name FROM relay INDEXED BY relay_time
              WHERE kind = 'invocation' AND updated_at < ?1 LIMIT ?2)",
        ] {
            gone += self.retire_rows(sql, cut.workers_before.0, rows)?;
        }
        for sql in [
            "DELETE FROM webhook_outbox WHERE seq IN
             (SELECT seq FROM webhook_outbox WHERE delivered_at < ?1 LIMIT ?2)",
            "DELETE FROM webhook_outbox WHERE seq IN
             (SELECT seq FROM webhook_outbox WHERE dead_at < ?1 LIMIT ?2)",
        ] {
            gone += self.retire_rows(sql, cut.webhooks_before.0, rows)?;
        }
        gone += self.retire_memory_events(cut.memory_events_before.0, rows)?;
        gone += self.retire_logs(cut.logs_before.0, rows)?;
        Ok(gone)
    }

    fn retire_rows(&self, sql: &'static str, before: i64, limit: i64) -> StoreResult<u64> {
        self.decisions.lock().transact("remove old rows", |conn| {
            count(conn, sql, params![before, limit])
        })
    }

    fn retire_memory_events(&self, before: i64, limit: i64) -> StoreResult<u64> {
        self.payloads.write(move |conn| {
            count(
                conn,
                "DELETE FROM memory_events
                 WHERE seq IN (SELECT seq FROM memory_events ORDER BY seq LIMIT ?2)
                 AND at < ?1 AND seq < (SELECT max(seq) FROM memory_events)",
                params![before, limit],
            )
        })
    }

    fn retire_logs(&self, before: i64, limit: i64) -> StoreResult<u64> {
        let old = self.log_readers.with(|conn| {
            let sql = "SELECT execution FROM log_totals WHERE written_at < ?1
                       ORDER BY written_at LIMIT ?2";
            all(conn, sql, [before, limit.min(200)], |row| {
                Ok(ExecutionId::trusted(Columns::of(row).text()?))
            })
        })?;
        if old.is_empty() {
            return Ok(0);
        }
        self.logs.write(move |conn| {
            old.iter()
                .map(|id| forget_logs(conn, id))
                .sum::<StoreResult<u64>>()
        })
    }

    /// Removes payloads of executions that ended before; their rows stay. Payloads lie in the
    /// order of acceptance, so the walk ends at the first that is younger.
    fn retire_payloads(&self, before: i64, limit: usize) -> StoreResult<u64> {
        let mut to = self.payloads_to.lock();
        let from = *to;
        let (old, next) = self.decision_readers.read(|conn| {
            let sql = "SELECT p.slot, e.id, e.created_at, e.ended_at FROM payloads p
                       LEFT JOIN executions e ON e.n = p.owner
                       WHERE p.slot > ?1 ORDER BY p.slot LIMIT ?2";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let found = all(conn, sql, params![from, limit], |row| {
                let mut from = Columns::of(row);
                let slot = from.int()?;
                Ok((
                    slot,
                    from.text_opt()?.is_some(),
                    from.int_opt()?,
                    from.int_opt()?,
                ))
            })?;
            let whole = found.len() == usize::try_from(limit).unwrap_or(usize::MAX);
            let mut old = Vec::new();
            let mut next = 0;
            for (slot, known, created, ended) in found {
                if known && created.is_some_and(|at| at >= before) {
                    return Ok((old, 0));
                }
                if ended.is_some_and(|at| at < before) {
                    old.push(slot);
                }
                next = slot;
            }
            Ok((old, if whole { next } else { 0 }))
        })?;
        *to = next;
        drop(to);
        let mut gone = 0;
        for some in old.chunks(AT_ONCE) {
            gone += self.decisions.lock().transact("remove payloads", |conn| {
                some.iter()
                    .map(|slot| count(conn, "DELETE FROM payloads WHERE slot = ?1", [slot]))
                    .sum::<StoreResult<u64>>()
            })?;
        }
        Ok(gone + self.retire_large(before, limit)?)
    }

    fn retire_large(&self, before: i64, limit: usize) -> StoreResult<u64> {
        let owners = self.payload_readers.with(|conn| {
            let sql = "SELECT owner FROM payloads INDEXED BY payloads_settled
                       WHERE settled = 1 AND chunk = 0 AND at < ?1 ORDER BY at LIMIT ?2";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            all(conn, sql, params![before, limit], |row| {
                Ok(ExecutionId::trusted(Columns::of(row).text()?))
            })
        })?;
        let mut gone = 0;
        for owner in owners {
            let ended = self.decision_readers.with(|conn| {
                let sql = "SELECT ended_at FROM executions WHERE id = ?1";
                first(conn, sql, [owner.as_str()], |row| {
                    Columns::of(row).int_opt()
                })
            })?;
            if ended.flatten().is_some_and(|at| at < before) {
                gone += self.delete_large(vec![(owner, None)])? as u64;
            }
        }
        Ok(gone)
    }

    /// Removes runs in the order of their acceptance, from where the last pass stopped.
    pub(super) fn retire_some(
        &self,
        to: &Mutex<Cursor>,
        before: i64,
        limit: usize,
    ) -> StoreResult<u64> {
        let cursor = to.lock().clone();
        let (runs, examined) = self.decision_readers.read(|conn| {
            let old = old_runs(conn, before, cursor.as_ref(), limit)?;
            let examined = old.last().map(|run| run.at.clone());
            let mut ended = Vec::new();
            for run in old {
                if all_ended(conn, &run.run, before)? && !is_source(conn, &run.run)? {
                    ended.push(run.run);
                }
            }
            Ok((ended, examined))
        })?;
        let mut gone = 0;
        let mut room = limit;
        for run in runs {
            gone += self.retire_run(&run, &mut room)?;
            if room == 0 {
                // The next pass looks at these runs again.
                *to.lock() = cursor;
                return Ok(gone);
            }
        }
        *to.lock() = examined;
        Ok(gone)
    }

    /// Removes up to `room` members of a run, its root last.
    fn retire_run(&self, run: &str, room: &mut usize) -> StoreResult<u64> {
        let mut gone = 0;
        while *room > 0 {
            let some = (*room).min(AT_ONCE);
            let members = self.decision_readers.with(|conn| {
                let sql = "SELECT n, id FROM executions INDEXED BY executions_run WHERE run = ?1
                           ORDER BY root IS NULL, n DESC LIMIT ?2";
                let some = i64::try_from(some).unwrap_or(i64::MAX);
                all(conn, sql, params![run, some], |row| {
                    let mut from = Columns::of(row);
                    Ok((from.int()?, ExecutionId::trusted(from.text()?)))
                })
            })?;
            if members.is_empty() {
                break;
            }
            *room -= members.len();
            let ids: Vec<ExecutionId> = members.iter().map(|(_, id)| id.clone()).collect();
            self.delete_large(ids.iter().map(|id| (id.clone(), None)).collect())?;
            self.logs.write(move |conn| {
                for id in &ids {
                    forget_logs(conn, id)?;
                    count(
                        conn,
                        "DELETE FROM notes WHERE execution = ?1",
                        [id.as_str()],
                    )?;
                }
                Ok(())
            })?;
            let last = members.len() < some;
            gone += self.decisions.lock().remove_executions(&members)?;
            if last {
                break;
            }
        }
        self.decisions.lock().transact("remove a run", |conn| {
            if first(
                conn,
                "SELECT 1 FROM executions WHERE run = ?1 LIMIT 1",
                [run],
                |_| Ok(()),
            )?
            .is_none()
            {
                count(conn, "DELETE FROM runs WHERE id = ?1", [run])?;
                count(conn, "DELETE FROM credentials WHERE run = ?1", [run])?;
                count(conn, "DELETE FROM approvals WHERE run = ?1", [run])?;
            }
            Ok(())
        })?;
        Ok(gone)
    }
}

fn old_runs(
    conn: &Connection,
    before: i64,
    after: Option<&(i64, String)>,
    limit: usize,
) -> StoreResult<Vec<OldRun>> {
    let (at, id) = after.map_or((i64::MIN, ""), |(at, id)| (*at, id.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(
        conn,
        "SELECT run, created_at, id FROM executions INDEXED BY executions_roots
         WHERE root IS NULL AND created_at < ?1 AND (created_at, id) > (?2, ?3)
         ORDER BY created_at, id LIMIT ?4",
        params![before, at, id, limit],
        |row| {
            let mut from = Columns::of(row);
            Ok(OldRun {
                run: from.text()?.to_owned(),
                at: (from.int()?, from.text()?.to_owned()),
            })
        },
    )
}

/// No member is open, and none ended at or after the moment.
fn all_ended(conn: &Connection, run: &str, before: i64) -> StoreResult<bool> {
    let kept = first(
        conn,
        "SELECT 1 FROM executions INDEXED BY executions_run
         WHERE run = ?1 AND (status < 4 OR ended_at IS NULL OR ended_at >= ?2) LIMIT 1",
        params![run, before],
        |_| Ok(()),
    )?;
    Ok(kept.is_none())
}

/// A younger run takes over from it.
fn is_source(conn: &Connection, run: &str) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM runs INDEXED BY runs_source
               WHERE source = ?1 AND source IS NOT NULL LIMIT 1";
    Ok(first(conn, sql, [run], |_| Ok(()))?.is_some())
}

fn forget_logs(conn: &Connection, id: &ExecutionId) -> StoreResult<u64> {
    let lines = count(conn, "DELETE FROM logs WHERE execution = ?1", [id.as_str()])?;
    count(
        conn,
        "DELETE FROM log_totals WHERE execution = ?1",
        [id.as_str()],
    )?;
    Ok(lines)
}

/// Runs a statement that removes rows; how many.
pub(super) fn count(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> StoreResult<u64> {
    conn.prepare_cached(sql)
        .and_then(|mut s| s.execute(params))
        .map(|rows| rows as u64)
        .map_err(failed("remove old rows"))
}
