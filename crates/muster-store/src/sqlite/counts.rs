//! How many executions and runs of each state fit a filter: from indices that hold what they are
//! narrowed by, so that a hundred thousand are counted in the time of a look. Reads no row where
//! it can help it.

use std::collections::BTreeMap;

use muster_wire::Status;
use rusqlite::{Connection, params_from_iter};

use super::codes::Code;
use super::known::all;
use super::question::{Where, of_executions, of_runs, state_of_run};
use super::rows::Columns;
use crate::{ExecutionFilter, RunFilter, StoreResult};

/// How many executions there are of each status.
pub(super) fn execution_counts(
    conn: &Connection,
    filter: &ExecutionFilter,
) -> StoreResult<Vec<(Status, u64)>> {
    let narrow = of_executions(filter);
    let also = &filter.also;
    if filter.run.is_some() || filter.parent.is_some() {
        let index = if filter.parent.is_some() {
            "INDEXED BY executions_parent WHERE parent IS NOT NULL AND "
        } else {
            "INDEXED BY executions_run WHERE "
        };
        let mut narrow = narrow;
        narrow.ended(also, "0");
        return counted(conn, index, &narrow);
    }
    let mut ended = of_executions(filter);
    ended.ended_between(also);
    let mut counts = counted(conn, ended_index(&ended), &ended)?;
    let open = "INDEXED BY executions_open WHERE status < 4 AND ";
    counts.extend(counted(conn, open, &narrow)?);
    Ok(counts)
}

/// How many runs there are of each state: those that have ended by when their root did, without
/// those of which a member is open; and the open ones.
pub(super) fn run_counts(conn: &Connection, filter: &RunFilter) -> StoreResult<Vec<(Status, u64)>> {
    let mut ended = of_runs(filter);
    ended.ended_between(&filter.also);
    let mut counts: BTreeMap<Status, u64> = counted(conn, ended_index(&ended), &ended)?
        .into_iter()
        .collect();
    let narrow = of_runs(filter);
    let since = filter.also.ended_since.map_or(i64::MIN, |at| at.0);
    let until = filter.also.ended_until.map_or(i64::MAX, |at| at.0);
    let sql = format!(
        "SELECT status, {},
         coalesce(ended_at >= {since} AND ended_at < {until}, 0), count(*)
         FROM executions INDEXED BY executions_run WHERE run IN
         (SELECT run FROM executions INDEXED BY executions_open WHERE status < 4) AND {}
         GROUP BY 1, 2, 3",
        state_of_run(),
        narrow.terms()
    );
    let open = all(conn, &sql, params_from_iter(narrow.values()), |row| {
        let mut from = Columns::of(row);
        Ok((
            from.int()?,
            from.int()?,
            from.int()? != 0,
            from.number::<u64>()?,
        ))
    })?;
    for (root, state, in_range, count) in open {
        let (Some(root), Some(state)) = (Status::from_code(root), Status::from_code(state)) else {
            continue;
        };
        if root.is_terminal() && in_range {
            let ended = counts.entry(root).or_default();
            *ended = ended.saturating_sub(count);
        }
        *counts.entry(state).or_default() += count;
    }
    Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// What is counted from the index of what ended, or by reading the table from its beginning to
/// its end where that lacks a column: sooner done than fetching row after row.
fn ended_index(narrow: &Where) -> &'static str {
    let lacking = ["created_at", "substr(", "session", "actor", "status_reason"];
    if lacking.iter().any(|column| narrow.terms().contains(column)) {
        "NOT INDEXED WHERE ended_at IS NOT NULL AND "
    } else {
        "INDEXED BY executions_ended WHERE ended_at IS NOT NULL AND "
    }
}

fn counted(conn: &Connection, from: &str, narrow: &Where) -> StoreResult<Vec<(Status, u64)>> {
    let sql = format!(
        "SELECT status, count(*) FROM executions {from}{} GROUP BY status",
        narrow.terms()
    );
    let counts = all(conn, &sql, params_from_iter(narrow.values()), |row| {
        let mut from = Columns::of(row);
        Ok((from.int()?, from.number()?))
    })?;
    let known = |(code, count)| Some((Status::from_code(code)?, count));
    Ok(counts.into_iter().filter_map(known).collect())
}
