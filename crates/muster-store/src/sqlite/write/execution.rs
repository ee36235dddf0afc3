//! The row of an execution: inserted once, changed until it has ended. One that has ended takes
//! only the mark of its restart and a late outcome.

use muster_engine::effect::{Ending, ExecutionChange, Move};
use muster_engine::row::ExecutionRow;
use muster_wire::{ExecutionId, Status};
use rusqlite::{Connection, params};

use super::super::codes::Code;
use super::super::connection::failed;
use super::super::numbers::Numbers;
use super::super::rows::{join_ids, to_json};
use super::blob;
use crate::{StoreError, StoreResult};

pub(super) fn insert_execution(
    conn: &Connection,
    numbers: &mut Numbers,
    row: &ExecutionRow,
) -> StoreResult<()> {
    let n = numbers.next();
    let root = (row.root != row.id).then_some(row.root.as_str());
    let wait = row.wait.as_deref();
    let links = row.links.as_deref();
    let replay = match links.and_then(|links| links.replay.as_ref()) {
        Some(replay) => Some(to_json(replay)?),
        None => None,
    };
    let statement = concat!(
        "INSERT INTO executions (n,",
        super::super::rows::execution_columns!(),
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,\
         ?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41,?42,?43,\
         ?44,?45,?46,?47,?48,?49,?50)"
    );
    conn.prepare_cached(statement)
        .and_then(|mut s| {
            s.execute(params![
                n,
                row.id.as_str(),
                row.run.as_str(),
                root,
                row.parent.as_ref().map(ExecutionId::as_str),
                row.depth,
                row.kind.code(),
                row.lane.code(),
                row.agent.as_str(),
                row.function.as_str(),
                row.function_kind.code(),
                row.status.code(),
                row.status_reason.as_deref().map(str::as_bytes),
                row.error_category.as_ref().map(|c| c.word()),
                blob(&row.error_text),
                row.error_status,
                row.queue.class,
                row.queue.turn.cast_signed(),
                row.queue.seq.cast_signed(),
                row.attempt,
                join_ids(row.holds.iter().map(|id| id.as_str())),
                row.over_cap,
                row.created_at.0,
                row.started_at.map(|t| t.0),
                row.ended_at.map(|t| t.0),
                row.active_us,
                row.clock_from.map(|t| t.0),
                row.deadline_us,
                row.absorb_until.map(|t| t.0),
                row.input_size.cast_signed(),
                &row.input_hash[..],
                row.result_size.map(u64::cast_signed),
                row.key_hash.as_deref(),
                &*row.principal,
                row.session.as_deref().map(str::as_bytes),
                row.actor.as_deref().map(str::as_bytes),
                row.traceparent.as_deref().map(str::as_bytes),
                blob(&row.usage),
                row.origin.code(),
                row.late_outcome.map(Code::code),
                wait.map(|wait| wait.cause.code()),
                wait.map(|wait| wait.reference.as_bytes()),
                wait.and_then(|wait| wait.until).map(|t| t.0),
                row.resume_to.map(Code::code),
                row.on_parent_end.code(),
                replay,
                links
                    .and_then(|links| links.replay_of.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.restart_of.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.restarted_as.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.webhook.as_deref())
                    .map(str::as_bytes),
            ])
        })
        .map_err(failed("insert an execution"))?;
    if let Some(report) = &row.usage {
        super::super::usage::write(conn, n, report).map_err(failed("insert an execution"))?;
    }
    numbers.inserted(row);
    Ok(())
}

pub(super) fn update_execution(
    conn: &Connection,
    n: i64,
    id: &ExecutionId,
    change: &ExecutionChange,
) -> StoreResult<()> {
    let changed = match change {
        ExecutionChange::Started {
            attempt,
            started_at,
            clock_from,
            active_us,
            over_cap,
            holds,
        } => conn
            .prepare_cached(
                "UPDATE executions SET status = 1, status_reason = NULL, absorb_until = NULL,
                    wait_cause = NULL, wait_reference = NULL, wait_until = NULL, resume_to = NULL,
                    attempt = ?2, started_at = ?3, clock_from = ?4, active_us = ?5,
                    over_cap = ?6, holds = ?7 WHERE n = ?1 AND status < 4",
            )
            .and_then(|mut s| {
                s.execute(params![
                    n,
                    attempt,
                    started_at.0,
                    clock_from.0,
                    active_us,
                    over_cap,
                    join_ids(holds.iter().map(|id| id.as_str())),
                ])
            }),
        ExecutionChange::Absorbed {
            until,
            started_at,
            clock_from,
            over_cap,
        } => conn
            .prepare_cached(
                "UPDATE executions SET status = 1, status_reason = ?2, absorb_until = ?3,
                    started_at = ?4, clock_from = ?5, over_cap = ?6, wait_cause = NULL,
                    wait_reference = NULL, wait_until = NULL, resume_to = NULL
                 WHERE n = ?1 AND status < 4",
            )
            .and_then(|mut s| {
                s.execute(params![
                    n,
                    crate::change::AWAITING_RESTART.as_bytes(),
                    until.0,
                    started_at.0,
                    clock_from.0,
                    over_cap,
                ])
            }),
        ExecutionChange::Ended(ending) => end_execution(conn, n, ending),
        ExecutionChange::Moved(moved) => move_execution(conn, n, moved),
        ExecutionChange::RestartedAs { id: new } => return restarted_as(conn, id, new),
        ExecutionChange::Late { status } => conn
            .prepare_cached("UPDATE executions SET late_outcome = ?2 WHERE n = ?1")
            .and_then(|mut s| s.execute(params![n, status.code()])),
    }
    .map_err(failed("change an execution"))?;
    if changed != 1 {
        return Err(StoreError::Conflict(format!(
            "execution {id} has ended or is gone"
        )));
    }
    Ok(())
}

/// What was restarted may have been retired since: then there is nothing to mark.
pub(super) fn restarted_as(
    conn: &Connection,
    id: &ExecutionId,
    new: &ExecutionId,
) -> StoreResult<()> {
    conn.prepare_cached("UPDATE executions SET restarted_as = ?2 WHERE id = ?1")
        .and_then(|mut s| s.execute(params![id.as_str(), new.as_str()]))
        .map_err(failed("mark a restart"))?;
    Ok(())
}

fn end_execution(conn: &Connection, n: i64, ending: &Ending) -> rusqlite::Result<usize> {
    debug_assert!(Status::is_terminal(ending.status));
    let changed = conn
        .prepare_cached(
            "UPDATE executions SET status = ?2, status_reason = ?3, error_category = ?4,
            error_text = ?5, error_status = ?6, ended_at = ?7, active_us = ?8, result_size = ?9,
            usage = coalesce(?10, usage), clock_from = NULL, absorb_until = NULL,
            wait_cause = NULL, wait_reference = NULL, wait_until = NULL, resume_to = NULL
         WHERE n = ?1 AND status < 4",
        )?
        .execute(params![
            n,
            ending.status.code(),
            ending.reason.as_deref().map(str::as_bytes),
            ending.category.as_ref().map(|c| c.word()),
            blob(&ending.error),
            ending.http_status,
            ending.at.0,
            ending.active_us,
            ending.result_size.map(u64::cast_signed),
            blob(&ending.usage),
        ])?;
    if let Some(report) = ending.usage.as_ref().filter(|_| changed == 1) {
        super::super::usage::write(conn, n, report)?;
    }
    Ok(changed)
}

fn move_execution(conn: &Connection, n: i64, moved: &Move) -> rusqlite::Result<usize> {
    let wait = moved.wait.as_deref();
    conn.prepare_cached(
        "UPDATE executions SET status = ?2, status_reason = ?3, wait_cause = ?4,
            wait_reference = ?5, wait_until = ?6, resume_to = ?7, absorb_until = ?8,
            clock_from = ?9, active_us = ?10, over_cap = ?11
         WHERE n = ?1 AND status < 4",
    )?
    .execute(params![
        n,
        moved.status.code(),
        moved.reason.as_deref().map(str::as_bytes),
        wait.map(|wait| wait.cause.code()),
        wait.map(|wait| wait.reference.as_bytes()),
        wait.and_then(|wait| wait.until).map(|t| t.0),
        moved.resume_to.map(Code::code),
        moved.absorb_until.map(|t| t.0),
        moved.clock_from.map(|t| t.0),
        moved.active_us,
        moved.over_cap,
    ])
}
