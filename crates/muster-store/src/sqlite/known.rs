//! Reads for decisions: what a submission, a callback, a cancel or a queue's window needs,
//! each over one state of the file together with that state's last event number.

use muster_engine::event::{Known, KnownRun, KnownTree, Submission};
use muster_engine::row::{ApprovalRow, AttemptRow, ExecutionRow, QueueKey, QueuedRow};
use muster_wire::{AgentId, ExecutionId, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::connection::failed;
use super::rows::{self, Columns, execution_columns};
use crate::{StoreError, StoreResult, Window};

/// The number of the last event.
pub(super) fn last_seq(conn: &Connection) -> StoreResult<u64> {
    conn.prepare_cached("SELECT max(seq) FROM events")
        .and_then(|mut s| s.query_row([], |row| row.get::<_, Option<i64>>(0)))
        .map(|seq| seq.unwrap_or(0).cast_unsigned())
        .map_err(failed("read the last event"))
}

/// One execution.
pub(super) fn execution(conn: &Connection, id: &ExecutionId) -> StoreResult<Option<ExecutionRow>> {
    let sql = concat!(
        "SELECT ",
        execution_columns!(),
        " FROM executions WHERE id = ?1"
    );
    first(conn, sql, [id.as_str()], |row| {
        rows::execution(&mut Columns::of(row))
    })
}

/// Reads the first row, if there is one.
pub(super) fn first<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&rusqlite::Row<'_>) -> StoreResult<T>,
) -> StoreResult<Option<T>> {
    let doing = failed("read the store");
    let mut statement = conn.prepare_cached(sql).map_err(&doing)?;
    let mut found = statement.query(params).map_err(&doing)?;
    found.next().map_err(&doing)?.map(read).transpose()
}

/// Reads every row.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&rusqlite::Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    let doing = failed("read the store");
    let mut statement = conn.prepare_cached(sql).map_err(&doing)?;
    let mut found = statement.query(params).map_err(&doing)?;
    let mut out = Vec::new();
    while let Some(row) = found.next().map_err(&doing)? {
        out.push(read(row)?);
    }
    Ok(out)
}

/// Reads every row that can be read; the others are logged and left out of the answer.
pub(super) fn readable<T>(
    conn: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    mut read: impl FnMut(&rusqlite::Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    let rows = all(conn, sql, params, |row| match read(row) {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Unreadable(error)) => {
            tracing::warn!(%error, "a row of the store cannot be read and is left out");
            Ok(None)
        }
        Err(error) => Err(error),
    })?;
    Ok(rows.into_iter().flatten().collect())
}

/// What a submission needs.
pub(super) fn known(conn: &Connection, submission: &Submission) -> StoreResult<Known> {
    let mut known = Known {
        as_of: Some(last_seq(conn)?),
        ..Known::default()
    };
    if let Some(key) = &submission.idempotency_key {
        let sql = "SELECT execution, body_hash FROM idempotency WHERE key = ?1";
        let found = first(conn, sql, [key.as_bytes()], |row| {
            let mut from = Columns::of(row);
            Ok((ExecutionId::trusted(from.text()?), from.hash()?))
        })?;
        if let Some((id, hash)) = found {
            let row = execution(conn, &id)?.map(Box::new);
            known.key = Some((id, hash, row));
        }
    }
    if submission.run_claimed {
        known.run = run(conn, &submission.run)?;
        if known.run.is_some() {
            known.turn = turn(conn, &submission.run, &submission.agent)?;
        }
    }
    if let Some(parent) = &submission.parent {
        known.parent = execution(conn, &parent.execution)?.map(Box::new);
    }
    super::replay::fill(conn, submission, &mut known)?;
    Ok(known)
}

/// The last turn of a run among what is queued at an agent. What has started since cannot be
/// ahead of the agent's own turn, so it does not count.
fn turn(conn: &Connection, run: &RunId, agent: &AgentId) -> StoreResult<Option<u64>> {
    conn.prepare_cached(
        "SELECT max(turn) FROM executions INDEXED BY executions_open
         WHERE status < 4 AND status = 0 AND run = ?1 AND agent = ?2",
    )
    .and_then(|mut s| {
        s.query_row([run.as_str(), agent.as_str()], |row| {
            row.get::<_, Option<i64>>(0)
        })
    })
    .map(|turn| turn.map(i64::cast_unsigned))
    .map_err(failed("read a run's turn"))
}

/// A run: the root of its first execution, its mark, its size.
fn run(conn: &Connection, id: &RunId) -> StoreResult<Option<KnownRun>> {
    let (size, first_n): (i64, Option<i64>) = conn
        .prepare_cached("SELECT count(*), min(n) FROM executions WHERE run = ?1")
        .and_then(|mut s| s.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failed("count a run"))?;
    let mark = first(
        conn,
        "SELECT root, cancelled_at, paused_at FROM runs WHERE id = ?1",
        [id.as_str()],
        |row| {
            let mut from = Columns::of(row);
            Ok((
                ExecutionId::trusted(from.text()?),
                from.int_opt()?.is_some(),
                from.int_opt()?.is_some(),
            ))
        },
    )?;
    let root = match first_n {
        None => None,
        Some(n) => conn
            .prepare_cached("SELECT coalesce(root, id) FROM executions WHERE n = ?1")
            .and_then(|mut s| s.query_row([n], |row| row.get::<_, String>(0)).optional())
            .map_err(failed("read a run's root"))?
            .map(ExecutionId::trusted),
    };
    let cancelled = mark.as_ref().is_some_and(|(_, cancelled, _)| *cancelled);
    let paused = mark.as_ref().is_some_and(|(_, _, paused)| *paused);
    Ok(root.or(mark.map(|(root, _, _)| root)).map(|root| KnownRun {
        root,
        cancelled,
        paused,
        size: size.cast_unsigned(),
    }))
}

/// A run and its queued members.
pub(super) fn tree(conn: &Connection, id: &RunId) -> StoreResult<KnownTree> {
    let sql = concat!(
        "SELECT ",
        execution_columns!(),
        " FROM executions INDEXED BY executions_open
          WHERE status < 4 AND status = 0 AND run = ?1 ORDER BY n"
    );
    Ok(KnownTree {
        as_of: last_seq(conn)?,
        run: run(conn, id)?,
        queued: readable(conn, sql, [id.as_str()], |row| {
            rows::execution(&mut Columns::of(row))
        })?,
    })
}

/// The next entries of a queue.
pub(super) fn window(
    conn: &Connection,
    agent: &AgentId,
    after: Option<QueueKey>,
    limit: usize,
) -> StoreResult<Window> {
    let sql = concat!(
        "SELECT ",
        execution_columns!(),
        " FROM executions INDEXED BY executions_queue WHERE status = 0 AND agent = ?1 AND (class, turn, seq) > (?2, ?3, ?4)
          ORDER BY class, turn, seq LIMIT ?5"
    );
    let (class, turn, seq) = after.map_or((-1, 0, 0), |key| {
        (i64::from(key.class), clamp(key.turn), clamp(key.seq))
    });
    let mut seen = 0;
    let limit_sql = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = readable(
        conn,
        sql,
        params![agent.as_str(), class, turn, seq, limit_sql],
        |row| {
            seen += 1;
            rows::execution(&mut Columns::of(row)).map(|row| QueuedRow { row })
        },
    )?;
    rows.truncate(limit);
    Ok(Window {
        rows,
        exhausted: seen <= limit,
        as_of: last_seq(conn)?,
    })
}

fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Queued executions that end with their parent and whose parent has ended.
pub(super) fn bereaved(
    conn: &Connection,
    limit: usize,
) -> StoreResult<(u64, Vec<ExecutionRow>, bool)> {
    let sql = concat!(
        "SELECT ",
        execution_columns!(),
        " FROM executions e INDEXED BY executions_bereaved
          WHERE status = 0 AND on_parent_end = 1
            AND EXISTS (SELECT 1 FROM executions p WHERE p.id = e.parent AND p.status > 3)
          LIMIT ?1"
    );
    let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut seen = 0;
    let mut found = readable(conn, sql, [wanted], |row| {
        seen += 1;
        rows::execution(&mut Columns::of(row))
    })?;
    found.truncate(limit);
    Ok((last_seq(conn)?, found, seen > limit))
}

/// Approvals of an execution, of a request id, or of both.
pub(super) fn approvals_named(
    conn: &Connection,
    id: Option<&ExecutionId>,
    request: Option<&str>,
) -> StoreResult<Vec<ApprovalRow>> {
    let columns = rows::APPROVAL_COLUMNS;
    let sql = match (id, request) {
        (Some(_), _) => format!(
            "SELECT {columns} FROM approvals WHERE execution = ?1 AND (?2 IS NULL OR request = ?2)
             ORDER BY requested_at LIMIT 1000"
        ),
        (None, Some(_)) => format!(
            "SELECT {columns} FROM approvals WHERE ?1 IS NULL AND request = ?2
             ORDER BY requested_at LIMIT 1000"
        ),
        (None, None) => return Ok(Vec::new()),
    };
    readable(
        conn,
        &sql,
        params![id.map(ExecutionId::as_str), request],
        |row| rows::approval(&mut Columns::of(row)),
    )
}

/// The attempts of an execution, first first.
pub(super) fn attempts(conn: &Connection, id: &ExecutionId) -> StoreResult<Vec<AttemptRow>> {
    let sql = concat!(
        "SELECT ",
        rows::attempt_columns!(),
        " FROM attempts WHERE execution = (SELECT n FROM executions WHERE id = ?1) ORDER BY n"
    );
    readable(conn, sql, [id.as_str()], |row| {
        rows::attempt(id, &mut Columns::of(row))
    })
}
