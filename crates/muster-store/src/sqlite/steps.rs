//! The executions of one run, as far as its drawing needs them, and the marks of the run.

use muster_engine::row::RunRow;
use muster_wire::{AgentId, ExecutionId, FunctionName, RunId};
use rusqlite::Connection;

use super::known::{all, first, readable};
use super::rows::{self, Columns};
use crate::{StepLine, StoreResult};

/// The marks of a run.
pub(super) fn run_marks(conn: &Connection, run: &RunId) -> StoreResult<Option<RunRow>> {
    let sql = format!("SELECT {} FROM runs WHERE id = ?1", rows::RUN_COLUMNS);
    first(conn, &sql, [run.as_str()], |row| {
        rows::run(&mut Columns::of(row))
    })
}

/// The executions of a run as far as groups need them.
pub(super) fn step_lines(
    conn: &Connection,
    run: &RunId,
    parent: Option<&ExecutionId>,
) -> StoreResult<Vec<StepLine>> {
    let (index, term) = match parent {
        Some(_) => (
            "executions_parent",
            "parent IS NOT NULL AND run = ?1 AND parent = ?2",
        ),
        None => ("executions_run", "run = ?1 AND ?2 IS NULL"),
    };
    let sql = format!(
        "SELECT id, parent, agent, function, status, coalesce(started_at, created_at), ended_at
         FROM executions INDEXED BY {index} WHERE {term} ORDER BY created_at, id"
    );
    let values = rusqlite::params![run.as_str(), parent.map(ExecutionId::as_str)];
    readable(conn, &sql, values, |row| {
        let mut from = Columns::of(row);
        Ok(StepLine {
            id: ExecutionId::trusted(from.text()?),
            parent: from.text_opt()?.map(ExecutionId::trusted),
            agent: AgentId::trusted(from.text()?),
            function: FunctionName::trusted(from.text()?),
            status: from.code()?,
            from: from.time()?,
            ended_at: from.time_opt()?,
        })
    })
}

/// The ids of a run's executions, oldest first.
pub(super) fn step_ids(conn: &Connection, run: &RunId) -> StoreResult<Vec<ExecutionId>> {
    let sql = "SELECT id FROM executions INDEXED BY executions_run WHERE run = ?1
               ORDER BY created_at, id";
    all(conn, sql, [run.as_str()], |row| {
        Ok(ExecutionId::trusted(Columns::of(row).text()?))
    })
}
