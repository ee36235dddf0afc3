//! The agents' memory: values in four scopes, and the feed of their changes with a dense
//! sequence of its own. Lives in the payload file.

use bytes::Bytes;
use muster_wire::{Timestamp, mint};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::connection::failed;
use super::known::{all, first};
use super::rows::Columns;
use crate::annex::{
    MemoryAction, MemoryBy, MemoryEvent, MemoryEventFilter, MemoryRow, MemoryScope,
};
use crate::{StoreResult, glob};

/// Sets a value.
pub(super) fn set(
    conn: &Connection,
    scope: &MemoryScope,
    key: &str,
    data: &Bytes,
    by: &MemoryBy,
    at: Timestamp,
) -> StoreResult<(MemoryRow, MemoryEvent)> {
    let before = get(conn, scope, key)?;
    let row = MemoryRow {
        scope: scope.clone(),
        key: key.to_owned(),
        data: data.clone(),
        created_at: before.as_ref().map_or(at, |row| row.created_at),
        updated_at: at,
    };
    conn.prepare_cached(
        "INSERT OR REPLACE INTO memory (scope, scope_id, key, data, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .and_then(|mut s| {
        s.execute(params![
            &*scope.scope,
            &*scope.id,
            key,
            &data[..],
            row.created_at.0,
            at.0
        ])
    })
    .map_err(failed("set a value"))?;
    let event = event_of(
        scope,
        key,
        MemoryAction::Set,
        Some(data.clone()),
        before,
        by,
        at,
    );
    Ok((row, append(conn, event)?))
}

/// Deletes a value.
pub(super) fn delete(
    conn: &Connection,
    scope: &MemoryScope,
    key: &str,
    by: &MemoryBy,
    at: Timestamp,
) -> StoreResult<Option<MemoryEvent>> {
    let Some(before) = get(conn, scope, key)? else {
        return Ok(None);
    };
    conn.prepare_cached("DELETE FROM memory WHERE scope = ?1 AND scope_id = ?2 AND key = ?3")
        .and_then(|mut s| s.execute([&*scope.scope, &*scope.id, key]))
        .map_err(failed("delete a value"))?;
    let event = event_of(scope, key, MemoryAction::Delete, None, Some(before), by, at);
    append(conn, event).map(Some)
}

fn event_of(
    scope: &MemoryScope,
    key: &str,
    action: MemoryAction,
    data: Option<Bytes>,
    before: Option<MemoryRow>,
    by: &MemoryBy,
    at: Timestamp,
) -> MemoryEvent {
    MemoryEvent {
        seq: 0,
        id: mint("mev"),
        at,
        scope: scope.clone(),
        key: key.to_owned(),
        action,
        data,
        previous: before.map(|row| row.data),
        agent: by.agent.clone(),
        actor: by.actor.clone(),
        workflow: by.workflow.clone(),
    }
}

fn append(conn: &Connection, mut event: MemoryEvent) -> StoreResult<MemoryEvent> {
    let last = first(conn, "SELECT max(seq) FROM memory_events", [], |row| {
        Columns::of(row).int_opt()
    })?;
    let seq = last.flatten().unwrap_or(0) + 1;
    event.seq = seq.cast_unsigned();
    conn.prepare_cached(
        "INSERT INTO memory_events (seq, id, at, scope, scope_id, key, deleted, data, previous,
            agent, actor, workflow) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
    )
    .and_then(|mut s| {
        s.execute(params![
            seq,
            event.id,
            event.at.0,
            &*event.scope.scope,
            &*event.scope.id,
            event.key,
            event.action == MemoryAction::Delete,
            event.data.as_deref(),
            event.previous.as_deref(),
            event.agent.as_deref().map(str::as_bytes),
            event.actor.as_deref().map(str::as_bytes),
            event.workflow.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("record a change of memory"))?;
    Ok(event)
}

/// Reads a value.
pub(super) fn get(
    conn: &Connection,
    scope: &MemoryScope,
    key: &str,
) -> StoreResult<Option<MemoryRow>> {
    let sql = "SELECT key, data, created_at, updated_at FROM memory
               WHERE scope = ?1 AND scope_id = ?2 AND key = ?3";
    first(conn, sql, [&*scope.scope, &*scope.id, key], |row| {
        read(scope, &mut Columns::of(row))
    })
}

/// The values of a scope after a key.
pub(super) fn list(
    conn: &Connection,
    scope: &MemoryScope,
    after: &str,
    limit: usize,
) -> StoreResult<Vec<MemoryRow>> {
    select(conn, "data", scope, after, limit)
}

/// The same without the values, which are not read.
pub(super) fn keys(
    conn: &Connection,
    scope: &MemoryScope,
    after: &str,
    limit: usize,
) -> StoreResult<Vec<MemoryRow>> {
    select(conn, "x''", scope, after, limit)
}

fn select(
    conn: &Connection,
    data: &str,
    scope: &MemoryScope,
    after: &str,
    limit: usize,
) -> StoreResult<Vec<MemoryRow>> {
    // No key sorts before the empty one, and the empty one is a key too.
    let sign = if after.is_empty() { ">=" } else { ">" };
    let sql = format!(
        "SELECT key, {data}, created_at, updated_at FROM memory
         WHERE scope = ?1 AND scope_id = ?2 AND key {sign} ?3 ORDER BY key LIMIT ?4"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(
        conn,
        &sql,
        params![&*scope.scope, &*scope.id, after, limit],
        |row| read(scope, &mut Columns::of(row)),
    )
}

fn read(scope: &MemoryScope, from: &mut Columns<'_>) -> StoreResult<MemoryRow> {
    Ok(MemoryRow {
        scope: scope.clone(),
        key: from.text()?.to_owned(),
        data: Bytes::copy_from_slice(from.bytes()?),
        created_at: from.time()?,
        updated_at: from.time()?,
    })
}

/// Changes as the filter says, newest last.
pub(super) fn events(
    conn: &Connection,
    filter: &MemoryEventFilter,
) -> StoreResult<Vec<MemoryEvent>> {
    let mut sql = String::from(
        "SELECT seq, id, at, scope, scope_id, key, deleted, data, previous, agent, actor,
            workflow FROM memory_events WHERE 1",
    );
    let mut values = Vec::new();
    let mut and = |term: &str, value: Value| {
        sql.push_str(term);
        values.push(value);
    };
    if let Some(scope) = &filter.scope {
        and(" AND scope = ?", Value::Text(scope.clone()));
    }
    if let Some(id) = &filter.scope_id {
        and(" AND scope_id = ?", Value::Text(id.clone()));
    }
    if let Some(since) = filter.since {
        and(" AND at >= ?", Value::Integer(since.0));
    }
    if let Some(after) = filter.after {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        and(" AND seq > ?", Value::Integer(after));
    }
    sql.push_str(if filter.after.is_some() {
        " ORDER BY seq"
    } else {
        " ORDER BY seq DESC"
    });

    let doing = failed("read changes of memory");
    let mut statement = conn.prepare_cached(&sql).map_err(&doing)?;
    let mut found = statement.query(params_from_iter(&values)).map_err(&doing)?;
    let mut out = Vec::new();
    while out.len() < filter.limit {
        let Some(row) = found.next().map_err(&doing)? else {
            break;
        };
        let key = Columns::from(row, 5).text()?;
        if glob::fits_any(&filter.patterns, key) {
            out.push(read_event(&mut Columns::of(row))?);
        }
    }
    if filter.after.is_none() {
        out.reverse();
    }
    Ok(out)
}

fn read_event(from: &mut Columns<'_>) -> StoreResult<MemoryEvent> {
    let bytes = |found: Option<&[u8]>| found.map(Bytes::copy_from_slice);
    let text = |found: Option<&str>| found.map(str::to_owned);
    Ok(MemoryEvent {
        seq: from.number()?,
        id: from.text()?.to_owned(),
        at: from.time()?,
        scope: MemoryScope {
            scope: from.arc()?,
            id: from.arc()?,
        },
        key: from.text()?.to_owned(),
        action: if from.flag()? {
            MemoryAction::Delete
        } else {
            MemoryAction::Set
        },
        data: bytes(from.bytes_opt()?),
        previous: bytes(from.bytes_opt()?),
        agent: text(from.text_opt()?),
        actor: text(from.text_opt()?),
        workflow: text(from.text_opt()?),
    })
}
