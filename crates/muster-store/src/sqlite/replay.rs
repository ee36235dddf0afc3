//! Reads for replays: which execution of a source run a call has as its twin there, and whether
//! that one's end may be taken over. Each over an index, and of one row.

use muster_engine::event::{Known, ReplayHit, Submission};
use muster_engine::replay::{self, Before};
use muster_engine::row::{ExecutionRow, PayloadKind, Replay};
use muster_wire::{ExecutionId, RunId};
use rusqlite::{Connection, params};

use super::connection::failed;
use super::known::{execution, first};
use super::rows::{self, Columns, execution_columns};
use super::write::slot;
use crate::StoreResult;

/// Fills what a restart or a call of a restarted run needs.
pub(super) fn fill(
    conn: &Connection,
    submission: &Submission,
    known: &mut Known,
) -> StoreResult<()> {
    if let Some(restart) = &submission.restart {
        known.source_open = Some(is_open(conn, &restart.source)?);
        return Ok(());
    }
    let Some(replay) = &submission.replay else {
        return Ok(());
    };
    if let Some(parent) = &submission.parent {
        let count = equal_calls(conn, &parent.execution, &submission.body_hash)?;
        known.equal_calls = Some(count);
    }
    let Some(index) = submission.replay_index else {
        return Ok(());
    };
    if let Some(twin) = twin(conn, submission, known, replay, index)? {
        known.hit = Some(Box::new(hit(conn, replay, twin)?));
    }
    Ok(())
}

fn is_open(conn: &Connection, run: &RunId) -> StoreResult<bool> {
    let found = first(
        conn,
        "SELECT 1 FROM executions INDEXED BY executions_open
         WHERE status < 4 AND status IN (0, 1, 2, 3) AND run = ?1 LIMIT 1",
        [run.as_str()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

fn equal_calls(conn: &Connection, parent: &ExecutionId, hash: &[u8; 16]) -> StoreResult<u32> {
    conn.prepare_cached(
        "SELECT count(*) FROM executions INDEXED BY executions_equal
         WHERE parent IS NOT NULL AND parent = ?1 AND input_hash = ?2",
    )
    .and_then(|mut s| s.query_row(params![parent.as_str(), &hash[..]], |row| row.get(0)))
    .map_err(failed("count equal calls"))
}

/// The execution of the source run that is the same call.
fn twin(
    conn: &Connection,
    submission: &Submission,
    known: &Known,
    replay: &Replay,
    index: u32,
) -> StoreResult<Option<ExecutionRow>> {
    let hash = &submission.body_hash[..];
    let parent = known.parent.as_deref().and_then(|parent| {
        let links = parent.links.as_deref()?;
        let same = links.replay.as_ref()?.source == replay.source;
        links.replay_of.clone().filter(|_| same)
    });
    let read = |row: &rusqlite::Row<'_>| rows::execution(&mut Columns::of(row));
    match parent {
        Some(parent) => first(
            conn,
            concat!(
                "SELECT ",
                execution_columns!(),
                " FROM executions INDEXED BY executions_equal
                  WHERE parent IS NOT NULL AND parent = ?1 AND input_hash = ?2 AND run = ?3
                  ORDER BY n LIMIT 1 OFFSET ?4"
            ),
            params![parent.as_str(), hash, replay.source.as_str(), index],
            read,
        ),
        None => first(
            conn,
            concat!(
                "SELECT ",
                execution_columns!(),
                " FROM executions AS twin INDEXED BY executions_run
                  WHERE run = ?1 AND input_hash = ?2 AND parent IS NOT NULL AND NOT EXISTS (
                      SELECT 1 FROM executions AS other INDEXED BY executions_twin
                      WHERE other.replay_of IS NOT NULL AND other.replay_of = twin.id
                        AND other.run = ?3)
                  ORDER BY n LIMIT 1 OFFSET ?4"
            ),
            params![replay.source.as_str(), hash, submission.run.as_str(), index],
            read,
        ),
    }
}

fn hit(conn: &Connection, replay: &Replay, twin: ExecutionRow) -> StoreResult<ReplayHit> {
    let before = match &replay.before {
        Some(id) => execution(conn, id)?,
        None => None,
    };
    let before = before.map(Box::new).map(|row| Before {
        created_at: row.created_at,
        line: replay::line(row, |id| execution(conn, id).ok().flatten().map(Box::new)),
    });
    let takes_over = replay.takes_over(&twin, before.as_ref());
    let ended = match twin.replayed_from() {
        Some(id) => execution(conn, &ExecutionId::trusted(id))?,
        None => Some(twin.clone()),
    };
    Ok(ReplayHit {
        twin: twin.id.clone(),
        usable: takes_over && ended.is_some(),
        row: Box::new(ended.unwrap_or(twin)),
    })
}

/// Whether an execution's result is among the small payloads.
pub(super) fn has_small_result(conn: &Connection, id: &ExecutionId) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM executions e JOIN payloads p ON p.slot = (e.n << 2) | ?2
               WHERE e.id = ?1";
    let found = first(
        conn,
        sql,
        params![id.as_str(), slot(0, PayloadKind::Result)],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}
