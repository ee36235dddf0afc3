//! The fleet in the decisions file: what its writes do, what a start reads, and what lists ask.
//! Knows nothing of verdicts.

use muster_engine::fleet::row::{FleetHistoryRow, FleetSnapshot, FleetWrite, NodeRow, WorkerRow};
use muster_wire::{AgentId, NodeId, Timestamp, WorkerId};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::connection::failed;
use super::fleet_rows::{
    self, HISTORY_COLUMNS, NODE_COLUMNS, NodeDetail, WORKER_COLUMNS, WorkerDetail,
};
use super::known::{first, readable};
use super::question::Where;
use super::restore::Aside;
use super::rows::Columns;
use crate::{Page, StoreError, StoreResult, WorkerFilter, fleet};

/// Applies one write.
pub(super) fn apply(conn: &Connection, write: &FleetWrite) -> StoreResult<()> {
    match write {
        FleetWrite::PutNode(row) => put_node(conn, row),
        FleetWrite::DeleteNode(id) => delete_node(conn, id),
        FleetWrite::PutWorker(row) => put_worker(conn, row),
        FleetWrite::InsertHistory(row) => insert_history(conn, row),
    }
}

fn put_node(conn: &Connection, row: &NodeRow) -> StoreResult<()> {
    let detail = detail(&NodeDetail::of(row))?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO nodes (id, name, kind, wish, state, state_at, enrolled_at,
            connected_at, heard_at, principal, detail)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            row.name.as_bytes(),
            row.kind.word(),
            row.wish.word(),
            row.told.0.word(),
            row.told.1.0,
            row.enrolled_at.0,
            row.connected_at.map(|t| t.0),
            row.heard_at.map(|t| t.0),
            row.principal.as_bytes(),
            detail,
        ])
    })
    .map_err(failed("write a node"))?;
    Ok(())
}

fn delete_node(conn: &Connection, id: &NodeId) -> StoreResult<()> {
    for sql in [
        "DELETE FROM fleet_history WHERE node = ?1",
        "DELETE FROM nodes WHERE id = ?1",
    ] {
        conn.prepare_cached(sql)
            .and_then(|mut s| s.execute([id.as_str()]))
            .map_err(failed("remove a node"))?;
    }
    Ok(())
}

fn put_worker(conn: &Connection, row: &WorkerRow) -> StoreResult<()> {
    let key = row.idempotency_key.as_deref().map(str::as_bytes);
    if let Some(key) = key {
        // One that has ended gives its key up to whom it was decided to belong.
        conn.prepare_cached(
            "UPDATE workers SET idempotency_key = NULL
             WHERE idempotency_key = ?1 AND id <> ?2 AND ended_at IS NOT NULL",
        )
        .and_then(|mut s| s.execute(params![key, row.id.as_str()]))
        .map_err(failed("free an idempotency key"))?;
    }
    let detail = detail(&WorkerDetail::of(row))?;
    conn.prepare_cached(
        "INSERT INTO workers (id, name, node, state, state_at, created_at, confirmed_at,
            ended_at, ended_how, agent, principal, idempotency_key, detail, spec)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)
         ON CONFLICT (id) DO UPDATE SET name = ?2, node = ?3, state = ?4, state_at = ?5,
            created_at = ?6, confirmed_at = ?7, ended_at = ?8, ended_how = ?9, agent = ?10,
            principal = ?11, idempotency_key = ?12, detail = ?13, spec = ?14",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            row.name.as_bytes(),
            row.node.as_ref().map(NodeId::as_str),
            row.state.word(),
            row.state_at.0,
            row.created_at.0,
            row.confirmed_at.map(|t| t.0),
            row.ended.map(|(at, _)| at.0),
            row.ended.map(|(_, how)| how.word()),
            row.agent.as_ref().map(AgentId::as_str),
            row.principal.as_bytes(),
            key,
            detail,
            &row.spec.0[..],
        ])
    })
    .map_err(failed("write a worker"))?;
    Ok(())
}

fn insert_history(conn: &Connection, row: &FleetHistoryRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO fleet_history (seq, at, node, worker, kind, before, after, evidence)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.seq.cast_signed(),
            row.at.0,
            row.node.as_ref().map(NodeId::as_str),
            row.worker.as_ref().map(WorkerId::as_str),
            &*row.kind,
            row.from.as_deref().map(str::as_bytes),
            row.to.as_deref().map(str::as_bytes),
            row.evidence.as_bytes(),
        ])
    })
    .map_err(failed("write a line of history"))?;
    Ok(())
}

fn detail<T: serde::Serialize>(value: &T) -> StoreResult<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Conflict(e.to_string()))
}

/// What a start reads: every node, and the workers that live or ended lately.
pub(super) fn snapshot(
    conn: &Connection,
    now: Timestamp,
    aside: &mut Aside,
) -> StoreResult<FleetSnapshot> {
    let nodes = aside.rows(
        conn,
        "node",
        &format!("SELECT id, {NODE_COLUMNS} FROM nodes ORDER BY id"),
        [],
        |row| fleet_rows::node(&mut Columns::from(row, 1)),
    )?;
    let mut workers = aside.rows(
        conn,
        "worker",
        &format!(
            "SELECT id, {WORKER_COLUMNS}, spec FROM workers INDEXED BY workers_living
             WHERE ended_at IS NULL"
        ),
        [],
        |row| fleet_rows::worker_with_spec(&mut Columns::from(row, 1)),
    )?;
    workers.extend(aside.rows(
        conn,
        "worker",
        &format!(
            "SELECT id, {WORKER_COLUMNS}, spec FROM workers INDEXED BY workers_ended
             WHERE ended_at IS NOT NULL AND ended_at > ?1"
        ),
        [fleet::ended_lately(now).0],
        |row| fleet_rows::worker_with_spec(&mut Columns::from(row, 1)),
    )?);
    workers.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(FleetSnapshot { nodes, workers })
}

/// Workers as the filter says, newest first, without their specs.
pub(super) fn workers(
    conn: &Connection,
    filter: &WorkerFilter,
    page: &Page,
) -> StoreResult<Vec<WorkerRow>> {
    let mut narrow = Where::default();
    let index = if filter.node.is_some() {
        "workers_node"
    } else if filter.name.is_some() {
        "workers_name"
    } else if filter.ended == Some(false) {
        "workers_living"
    } else {
        "workers_time"
    };
    if let Some(node) = &filter.node {
        narrow.text("node = ?", node.as_str());
    }
    if let Some(name) = &filter.name {
        narrow.and("name = ?", [Value::Blob(name.clone().into_bytes())]);
    }
    match filter.ended {
        Some(true) => narrow.and("ended_at IS NOT NULL", []),
        Some(false) => narrow.and("ended_at IS NULL", []),
        None => {}
    }
    if !filter.states.is_empty() {
        let places = vec!["?"; filter.states.len()].join(",");
        let words = filter.states.iter().map(|s| Value::Text(s.word().into()));
        narrow.and(&format!("state IN ({places})"), words);
    }
    if let Some(part) = &filter.id_part {
        narrow.part("id", part);
    }
    narrow.page(page, false);
    let sql = format!(
        "SELECT {WORKER_COLUMNS} FROM workers INDEXED BY {index} WHERE {}
         ORDER BY created_at DESC, id DESC LIMIT {}",
        narrow.terms(),
        page.limit
    );
    readable(conn, &sql, params_from_iter(narrow.values()), |row| {
        fleet_rows::worker(&mut Columns::of(row))
    })
}

/// One worker, with its spec.
pub(super) fn worker(conn: &Connection, id: &WorkerId) -> StoreResult<Option<WorkerRow>> {
    let sql = format!("SELECT {WORKER_COLUMNS}, spec FROM workers WHERE id = ?1");
    first(conn, &sql, [id.as_str()], |row| {
        fleet_rows::worker_with_spec(&mut Columns::of(row))
    })
}

/// Lines of history, newest first.
pub(super) fn history(
    conn: &Connection,
    node: Option<&NodeId>,
    worker: Option<&WorkerId>,
    before: Option<u64>,
    limit: usize,
) -> StoreResult<Vec<FleetHistoryRow>> {
    let mut narrow = Where::default();
    let index = match (worker, node) {
        (Some(_), _) => "INDEXED BY fleet_history_worker",
        (None, Some(_)) => "INDEXED BY fleet_history_node",
        (None, None) => "NOT INDEXED",
    };
    if let Some(worker) = worker {
        narrow.text("worker = ?", worker.as_str());
        narrow.and("worker IS NOT NULL", []);
    }
    if let Some(node) = node {
        narrow.text("node = ?", node.as_str());
        narrow.and("node IS NOT NULL", []);
    }
    // No line has a number that does not fit.
    if let Some(before) = before.and_then(|before| i64::try_from(before).ok()) {
        narrow.and("seq < ?", [Value::Integer(before)]);
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {HISTORY_COLUMNS} FROM fleet_history {index} WHERE {}
         ORDER BY seq DESC LIMIT {limit}",
        narrow.terms()
    );
    readable(conn, &sql, params_from_iter(narrow.values()), |row| {
        fleet_rows::history(&mut Columns::of(row))
    })
}
