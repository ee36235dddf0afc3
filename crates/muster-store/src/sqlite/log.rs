//! Log lines and notes of executions, in a file of their own. Both are bounded per execution;
//! of log lines the oldest debug ones go first, and what went is counted.

use bytes::Bytes;
use muster_wire::{ExecutionId, RunId, Timestamp};
use rusqlite::{Connection, params};

use super::connection::failed;
use super::known::{all, first};
use super::rows::{Columns, json_opt, to_json};
use crate::StoreResult;
use crate::annex::{LogRow, Logs, NoteRow};
use crate::bound::{BYTES_MAX, LINES_MAX, log_size};

/// What is kept of an execution's lines.
#[derive(Default)]
struct Totals {
    next: i64,
    lines: i64,
    bytes: i64,
    dropped: i64,
}

/// Writes lines of any executions.
pub(super) fn add(conn: &Connection, lines: &[LogRow]) -> StoreResult<()> {
    let mut rest = lines;
    while let Some(line) = rest.first() {
        let same = rest.iter().take_while(|l| l.execution == line.execution);
        let (here, behind) = rest.split_at(same.count());
        add_to(conn, &line.execution, here)?;
        rest = behind;
    }
    Ok(())
}

fn add_to(conn: &Connection, execution: &ExecutionId, lines: &[LogRow]) -> StoreResult<()> {
    let mut totals = totals(conn, execution)?.unwrap_or_else(|| Totals {
        next: 1,
        ..Totals::default()
    });
    for line in lines {
        let size = i64::try_from(log_size(line)).unwrap_or(i64::MAX);
        conn.prepare_cached(
            "INSERT INTO logs (execution, seq, at, level, source, event_type, message,
                attributes, debug, size) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
        )
        .and_then(|mut s| {
            s.execute(params![
                execution.as_str(),
                totals.next,
                line.at.0,
                line.level.as_bytes(),
                line.source.as_bytes(),
                line.event_type.as_bytes(),
                line.message.as_bytes(),
                &line.attributes[..],
                line.level == "debug",
                size,
            ])
        })
        .map_err(failed("write a log line"))?;
        totals.next += 1;
        totals.lines += 1;
        totals.bytes += size;
        while totals.lines > LINES_MAX as i64 || totals.bytes > BYTES_MAX as i64 {
            if !drop_oldest(conn, execution, &mut totals)? {
                break;
            }
        }
    }
    conn.prepare_cached(
        "INSERT OR REPLACE INTO log_totals (execution, next, lines, bytes, dropped, written_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .and_then(|mut s| {
        s.execute(params![
            execution.as_str(),
            totals.next,
            totals.lines,
            totals.bytes,
            totals.dropped,
            Timestamp::wall_clock().0
        ])
    })
    .map_err(failed("count log lines"))?;
    Ok(())
}

fn drop_oldest(
    conn: &Connection,
    execution: &ExecutionId,
    totals: &mut Totals,
) -> StoreResult<bool> {
    let oldest = |sql: &str| {
        first(conn, sql, [execution.as_str()], |row| {
            let mut from = Columns::of(row);
            Ok((from.int()?, from.int()?))
        })
    };
    let debug = oldest(
        "SELECT seq, size FROM logs INDEXED BY logs_debug
         WHERE execution = ?1 AND debug = 1 ORDER BY seq LIMIT 1",
    )?;
    let victim = match debug {
        Some(victim) => Some(victim),
        None => oldest("SELECT seq, size FROM logs WHERE execution = ?1 ORDER BY seq LIMIT 1")?,
    };
    let Some((seq, size)) = victim else {
        return Ok(false);
    };
    conn.prepare_cached("DELETE FROM logs WHERE execution = ?1 AND seq = ?2")
        .and_then(|mut s| s.execute(params![execution.as_str(), seq]))
        .map_err(failed("drop a log line"))?;
    totals.lines -= 1;
    totals.bytes -= size;
    totals.dropped += 1;
    Ok(true)
}

fn totals(conn: &Connection, execution: &ExecutionId) -> StoreResult<Option<Totals>> {
    let sql = "SELECT next, lines, bytes, dropped FROM log_totals WHERE execution = ?1";
    first(conn, sql, [execution.as_str()], |row| {
        let mut from = Columns::of(row);
        Ok(Totals {
            next: from.int()?,
            lines: from.int()?,
            bytes: from.int()?,
            dropped: from.int()?,
        })
    })
}

/// Lines of an execution after a number.
pub(super) fn read(
    conn: &Connection,
    execution: &ExecutionId,
    after: u64,
    limit: usize,
) -> StoreResult<Logs> {
    let totals = totals(conn, execution)?.unwrap_or_default();
    let sql = "SELECT seq, at, level, source, event_type, message, attributes FROM logs
               WHERE execution = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let lines = all(
        conn,
        sql,
        params![execution.as_str(), after, limit],
        |row| {
            let mut from = Columns::of(row);
            Ok(LogRow {
                seq: from.number()?,
                execution: execution.clone(),
                at: from.time()?,
                level: from.text()?.to_owned(),
                source: from.text()?.to_owned(),
                event_type: from.text()?.to_owned(),
                message: from.text()?.to_owned(),
                attributes: Bytes::copy_from_slice(from.bytes()?),
            })
        },
    )?;
    Ok(Logs {
        lines,
        dropped: totals.dropped.cast_unsigned(),
        total: totals.lines.cast_unsigned(),
    })
}

/// Writes notes; the oldest of an execution go when there are too many.
pub(super) fn add_notes(conn: &Connection, notes: &[NoteRow]) -> StoreResult<()> {
    for note in notes {
        conn.prepare_cached(
            "INSERT INTO notes (execution, run, agent, message, tags, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .and_then(|mut s| {
            s.execute(params![
                note.execution.as_str(),
                note.run.as_ref().map(RunId::as_str),
                note.agent.as_deref().map(str::as_bytes),
                note.message.as_bytes(),
                to_json(&note.tags).unwrap_or_default(),
                note.at.0
            ])
        })
        .map_err(failed("write a note"))?;
    }
    let mut executions: Vec<&ExecutionId> = notes.iter().map(|note| &note.execution).collect();
    executions.dedup();
    for execution in executions {
        let sql = "SELECT n FROM notes WHERE execution = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2";
        let past = first(
            conn,
            sql,
            params![execution.as_str(), LINES_MAX as i64],
            |row| Columns::of(row).int(),
        )?;
        if let Some(past) = past {
            conn.prepare_cached("DELETE FROM notes WHERE execution = ?1 AND n <= ?2")
                .and_then(|mut s| s.execute(params![execution.as_str(), past]))
                .map_err(failed("drop a note"))?;
        }
    }
    Ok(())
}

/// Notes of an execution with any of the tags.
pub(super) fn notes(
    conn: &Connection,
    execution: &ExecutionId,
    tags: &[String],
    limit: usize,
) -> StoreResult<Vec<NoteRow>> {
    let sql = "SELECT run, agent, message, tags, at FROM notes WHERE execution = ?1 ORDER BY n";
    let mut notes = all(conn, sql, [execution.as_str()], |row| {
        let mut from = Columns::of(row);
        let note = NoteRow {
            execution: execution.clone(),
            run: from.text_opt()?.map(RunId::trusted),
            agent: from.text_opt()?.map(str::to_owned),
            message: from.text()?.to_owned(),
            tags: json_opt(Some(from.bytes()?))?.unwrap_or_default(),
            at: from.time()?,
        };
        let wanted = tags.is_empty() || note.tags.iter().any(|tag| tags.contains(tag));
        Ok(wanted.then_some(note))
    })?
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    notes.truncate(limit);
    Ok(notes)
}
