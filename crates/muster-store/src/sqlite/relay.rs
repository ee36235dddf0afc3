//! Records of the Relay registry: agents, channels and invocations as the broker knows them. In
//! the decisions file, each change in a transaction of its own. What is in them is the shell's.

use bytes::Bytes;
use rusqlite::{Connection, Row, params};

use super::connection::failed;
use super::known::{first, readable};
use super::rows::Columns;
use crate::StoreResult;
use crate::annex::RelayRow;

/// Writes a record.
pub(super) fn put(conn: &Connection, row: &RelayRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO relay (kind, name, node, value, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.kind,
            row.name.as_bytes(),
            row.node.as_deref().map(str::as_bytes),
            &row.value[..],
            row.updated_at.0
        ])
    })
    .map_err(failed("write a record of the Relay registry"))?;
    Ok(())
}

const SELECT: &str = "SELECT kind, name, node, value, updated_at FROM relay";

fn record(row: &Row<'_>) -> StoreResult<RelayRow> {
    let mut from = Columns::of(row);
    Ok(RelayRow {
        kind: from.text()?.to_owned(),
        name: from.text()?.to_owned(),
        node: from.text_opt()?.map(str::to_owned),
        value: Bytes::copy_from_slice(from.bytes()?),
        updated_at: from.time()?,
    })
}

/// One record.
pub(super) fn get(conn: &Connection, kind: &str, name: &str) -> StoreResult<Option<RelayRow>> {
    let sql = format!("{SELECT} WHERE kind = ?1 AND name = ?2");
    first(conn, &sql, params![kind, name.as_bytes()], record)
}

/// Records of a kind by name.
pub(super) fn list(
    conn: &Connection,
    kind: &str,
    after: &str,
    limit: usize,
) -> StoreResult<Vec<RelayRow>> {
    let sql = format!("{SELECT} WHERE kind = ?1 AND name > ?2 ORDER BY name LIMIT ?3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    readable(conn, &sql, params![kind, after.as_bytes(), limit], record)
}

/// Removes a record; whether there was one.
pub(super) fn delete(conn: &Connection, kind: &str, name: &str) -> StoreResult<bool> {
    conn.prepare_cached("DELETE FROM relay WHERE kind = ?1 AND name = ?2")
        .and_then(|mut s| s.execute(params![kind, name.as_bytes()]))
        .map(|rows| rows > 0)
        .map_err(failed("remove a record of the Relay registry"))
}
