//! Keys, audit, identities, credentials and settings: few rows, in the decisions file, each
//! change in a transaction of its own.

use bytes::Bytes;
use muster_wire::{AgentId, ExecutionId, Timestamp};
use rusqlite::{Connection, Row, params};

use super::connection::failed;
use super::known::{all, first};
use super::rows::{Columns, json_opt, to_json};
use crate::StoreResult;
use crate::annex::{AuditFilter, AuditRow, CredentialRow, IdentityRow, KeyRecord};

/// Every key.
pub(super) fn keys(conn: &Connection) -> StoreResult<Vec<KeyRecord>> {
    let sql = "SELECT id, prefix, hash, name, scopes, principal, created_at, used_at,
                  revoked_at, expires_at, detail FROM keys ORDER BY created_at, id";
    all(conn, sql, [], |row| {
        let mut from = Columns::of(row);
        Ok(KeyRecord {
            id: from.text()?.to_owned(),
            prefix: from.text()?.to_owned(),
            hash: from.hash()?,
            name: from.text()?.to_owned(),
            scopes: json_opt(Some(from.bytes()?))?.unwrap_or_default(),
            principal: from.text()?.to_owned(),
            created_at: from.time()?,
            used_at: from.time_opt()?,
            revoked_at: from.time_opt()?,
            expires_at: from.time_opt()?,
            detail: from.text_opt()?.map(str::to_owned),
        })
    })
}

/// Writes a new or changed key.
pub(super) fn put_key(conn: &Connection, key: &KeyRecord) -> StoreResult<()> {
    let scopes = to_json(&key.scopes)?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO keys (id, prefix, hash, name, scopes, principal, created_at,
            used_at, revoked_at, expires_at, detail) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    )
    .and_then(|mut s| {
        s.execute(params![
            key.id,
            key.prefix,
            &key.hash[..],
            key.name.as_bytes(),
            scopes,
            key.principal,
            key.created_at.0,
            key.used_at.map(|t| t.0),
            key.revoked_at.map(|t| t.0),
            key.expires_at.map(|t| t.0),
            key.detail.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("write a key"))?;
    Ok(())
}

/// Revokes a key that nobody has revoked; whether it was so.
pub(super) fn take_key(conn: &Connection, id: &str, at: Timestamp) -> StoreResult<bool> {
    conn.prepare_cached("UPDATE keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")
        .and_then(|mut s| s.execute(params![id, at.0]))
        .map(|rows| rows > 0)
        .map_err(failed("take a key"))
}

/// Removes a key; whether there was one.
pub(super) fn delete_key(conn: &Connection, id: &str) -> StoreResult<bool> {
    conn.prepare_cached("DELETE FROM keys WHERE id = ?1")
        .and_then(|mut s| s.execute([id]))
        .map(|rows| rows > 0)
        .map_err(failed("remove a key"))
}

/// Writes a line of the audit log.
pub(super) fn add_audit(conn: &Connection, row: &AuditRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO audit (at, principal, action, object, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.at.0,
            row.principal.as_bytes(),
            row.action.as_bytes(),
            row.object.as_bytes(),
            row.detail.as_bytes()
        ])
    })
    .map_err(failed("write the audit log"))?;
    Ok(())
}

/// Lines of the audit log with their numbers, newest first.
pub(super) fn audit(conn: &Connection, filter: &AuditFilter) -> StoreResult<Vec<(u64, AuditRow)>> {
    let sql = "SELECT n, at, principal, action, object, detail FROM audit
        WHERE (?1 IS NULL OR principal = ?1)
          AND (?2 IS NULL OR action = ?2 OR substr(action, 1, length(?3)) = ?3)
          AND (?4 IS NULL OR object = ?4)
          AND (?5 IS NULL OR at >= ?5) AND (?6 IS NULL OR at < ?6)
          AND (?7 IS NULL OR n < ?7)
        ORDER BY n DESC LIMIT ?8";
    let bytes = |text: &Option<String>| text.as_ref().map(|text| text.as_bytes().to_vec());
    let group = filter.action.as_ref();
    let wanted = params![
        bytes(&filter.principal),
        bytes(&filter.action),
        group.map(|word| format!("{word}.").into_bytes()),
        bytes(&filter.object),
        filter.since.map(|at| at.0),
        filter.until.map(|at| at.0),
        filter.before.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        i64::try_from(filter.limit).unwrap_or(i64::MAX),
    ];
    all(conn, sql, wanted, |row| {
        let mut from = Columns::of(row);
        let n = from.int()?;
        let line = AuditRow {
            at: from.time()?,
            principal: from.text()?.to_owned(),
            action: from.text()?.to_owned(),
            object: from.text()?.to_owned(),
            detail: from.text()?.to_owned(),
        };
        Ok((u64::try_from(n).unwrap_or_default(), line))
    })
}

const IDENTITY: &str =
    "SELECT did, agent, component, function, sealed_seed, created_at FROM identities";

fn identity_row(row: &Row<'_>) -> StoreResult<IdentityRow> {
    let mut from = Columns::of(row);
    Ok(IdentityRow {
        did: from.text()?.to_owned(),
        agent: AgentId::trusted(from.text()?),
        component: from.text()?.to_owned(),
        function: from.text()?.to_owned(),
        sealed_seed: Bytes::copy_from_slice(from.bytes()?),
        created_at: from.time()?,
    })
}

/// The identities of an agent.
pub(super) fn identities(conn: &Connection, agent: &AgentId) -> StoreResult<Vec<IdentityRow>> {
    let sql = format!("{IDENTITY} WHERE agent = ?1 ORDER BY component, function");
    all(conn, &sql, [agent.as_str()], identity_row)
}

/// One identity.
pub(super) fn identity(conn: &Connection, did: &str) -> StoreResult<Option<IdentityRow>> {
    let sql = format!("{IDENTITY} WHERE did = ?1");
    first(conn, &sql, [did], identity_row)
}

/// Writes identities that are not there yet.
pub(super) fn add_identities(conn: &Connection, rows: &[IdentityRow]) -> StoreResult<()> {
    for row in rows {
        conn.prepare_cached(
            "INSERT OR IGNORE INTO identities (did, agent, component, function, sealed_seed,
                created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .and_then(|mut s| {
            s.execute(params![
                row.did,
                row.agent.as_str(),
                row.component,
                row.function,
                &row.sealed_seed[..],
                row.created_at.0
            ])
        })
        .map_err(failed("write an identity"))?;
    }
    Ok(())
}

/// Writes a credential.
pub(super) fn add_credential(conn: &Connection, row: &CredentialRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO credentials (id, execution, run, created_at, body)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id,
            row.execution.as_str(),
            row.run,
            row.created_at.0,
            &row.body[..]
        ])
    })
    .map_err(failed("write a credential"))?;
    Ok(())
}

/// Credentials of a run, oldest first.
pub(super) fn credentials(conn: &Connection, run: &str) -> StoreResult<Vec<CredentialRow>> {
    let sql = "SELECT id, execution, run, created_at, body FROM credentials WHERE run = ?1
               ORDER BY created_at, n";
    all(conn, sql, [run], |row| {
        let mut from = Columns::of(row);
        Ok(CredentialRow {
            id: from.text()?.to_owned(),
            execution: ExecutionId::trusted(from.text()?),
            run: from.text()?.to_owned(),
            created_at: from.time()?,
            body: Bytes::copy_from_slice(from.bytes()?),
        })
    })
}

/// A setting.
pub(super) fn setting(conn: &Connection, name: &str) -> StoreResult<Option<Bytes>> {
    let sql = "SELECT value FROM settings WHERE name = ?1";
    first(conn, sql, [name], |row| {
        Ok(Bytes::copy_from_slice(Columns::of(row).bytes()?))
    })
}

/// Sets a setting.
pub(super) fn put_setting(conn: &Connection, name: &str, value: &[u8]) -> StoreResult<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)")
        .and_then(|mut s| s.execute(params![name, value]))
        .map_err(failed("write a setting"))?;
    Ok(())
}
