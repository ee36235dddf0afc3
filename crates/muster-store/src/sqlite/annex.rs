//! The trait [`Annex`], each method on the file it belongs to.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use muster_wire::{AgentId, ExecutionId, Timestamp};
use rusqlite::Connection;

use super::{SqliteStore, key, kv, log, relay};
use crate::annex::{
    Annex, AuditFilter, AuditRow, CredentialRow, IdentityRow, KeyRecord, LogRow, Logs, MemoryBy,
    MemoryEvent, MemoryEventFilter, MemoryRow, MemoryScope, NoteRow, RelayRow,
};
use crate::{StoreError, StoreResult};

impl SqliteStore {
    /// One change in the decisions file, in a transaction of its own, by its one writer.
    fn change<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        self.decisions.lock().transact(doing, work)
    }
}

impl Annex for SqliteStore {
    fn memory_set(
        &self,
        scope: &MemoryScope,
        key: &str,
        data: Bytes,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<(MemoryRow, MemoryEvent)> {
        let (scope, key, by) = (scope.clone(), key.to_owned(), by.clone());
        self.payloads
            .write(move |conn| kv::set(conn, &scope, &key, &data, &by, at))
    }

    fn memory_get(&self, scopes: &[MemoryScope], key: &str) -> StoreResult<Option<MemoryRow>> {
        self.payload_readers.with(|conn| {
            for scope in scopes {
                if let Some(row) = kv::get(conn, scope, key)? {
                    return Ok(Some(row));
                }
            }
            Ok(None)
        })
    }

    fn memory_delete(
        &self,
        scope: &MemoryScope,
        key: &str,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<Option<MemoryEvent>> {
        let (scope, key, by) = (scope.clone(), key.to_owned(), by.clone());
        self.payloads
            .write(move |conn| kv::delete(conn, &scope, &key, &by, at))
    }

    fn memory_list(
        &self,
        scope: &MemoryScope,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<MemoryRow>> {
        self.payload_readers
            .with(|conn| kv::list(conn, scope, after, limit))
    }

    fn memory_keys(
        &self,
        scope: &MemoryScope,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<MemoryRow>> {
        self.payload_readers
            .with(|conn| kv::keys(conn, scope, after, limit))
    }

    fn memory_events(&self, filter: &MemoryEventFilter) -> StoreResult<Vec<MemoryEvent>> {
        self.payload_readers.with(|conn| kv::events(conn, filter))
    }

    fn notes_add(&self, notes: Vec<NoteRow>) -> StoreResult<()> {
        self.logs.write(move |conn| log::add_notes(conn, &notes))
    }

    fn notes(
        &self,
        execution: &ExecutionId,
        tags: &[String],
        limit: usize,
    ) -> StoreResult<Vec<NoteRow>> {
        self.log_readers
            .with(|conn| log::notes(conn, execution, tags, limit))
    }

    fn logs_add(&self, lines: Vec<LogRow>) -> StoreResult<()> {
        self.logs.write(move |conn| log::add(conn, &lines))
    }

    fn logs(&self, execution: &ExecutionId, after: u64, limit: usize) -> StoreResult<Logs> {
        self.log_readers
            .read(|conn| log::read(conn, execution, after, limit))
    }

    fn keys(&self) -> StoreResult<Vec<KeyRecord>> {
        self.decision_readers.with(key::keys)
    }

    fn key_put(&self, key: &KeyRecord) -> StoreResult<()> {
        self.change("write a key", |conn| key::put_key(conn, key))?;
        self.keys_version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn key_take(&self, id: &str, at: Timestamp) -> StoreResult<bool> {
        let taken = self.change("take a key", |conn| key::take_key(conn, id, at))?;
        self.keys_version
            .fetch_add(u64::from(taken), Ordering::Release);
        Ok(taken)
    }

    fn key_delete(&self, id: &str) -> StoreResult<bool> {
        let gone = self.change("remove a key", |conn| key::delete_key(conn, id))?;
        self.keys_version
            .fetch_add(u64::from(gone), Ordering::Release);
        Ok(gone)
    }

    fn keys_version(&self) -> StoreResult<u64> {
        Ok(self.keys_version.load(Ordering::Acquire))
    }

    fn relay_put(&self, row: &RelayRow) -> StoreResult<()> {
        self.change("write a record of the Relay registry", |conn| {
            relay::put(conn, row)
        })
    }

    fn relay_get(&self, kind: &str, name: &str) -> StoreResult<Option<RelayRow>> {
        self.decision_readers
            .with(|conn| relay::get(conn, kind, name))
    }

    fn relay_list(&self, kind: &str, after: &str, limit: usize) -> StoreResult<Vec<RelayRow>> {
        self.decision_readers
            .with(|conn| relay::list(conn, kind, after, limit))
    }

    fn relay_delete(&self, kind: &str, name: &str) -> StoreResult<bool> {
        self.change("remove a record of the Relay registry", |conn| {
            relay::delete(conn, kind, name)
        })
    }

    fn audit_add(&self, row: &AuditRow) -> StoreResult<()> {
        self.change("write the audit log", |conn| key::add_audit(conn, row))
    }

    fn audit(&self, filter: &AuditFilter) -> StoreResult<Vec<(u64, AuditRow)>> {
        self.decision_readers.with(|conn| key::audit(conn, filter))
    }

    fn identities(&self, agent: &AgentId) -> StoreResult<Vec<IdentityRow>> {
        self.decision_readers
            .with(|conn| key::identities(conn, agent))
    }

    fn identities_add(&self, rows: &[IdentityRow]) -> StoreResult<()> {
        self.change("write identities", |conn| key::add_identities(conn, rows))
    }

    fn identity(&self, did: &str) -> StoreResult<Option<IdentityRow>> {
        self.decision_readers.with(|conn| key::identity(conn, did))
    }

    fn credential_add(&self, row: &CredentialRow) -> StoreResult<()> {
        self.change("write a credential", |conn| key::add_credential(conn, row))
    }

    fn credentials_add(&self, rows: &[CredentialRow]) -> StoreResult<()> {
        self.change("write credentials", |conn| {
            rows.iter()
                .try_for_each(|row| key::add_credential(conn, row))
        })
    }

    fn credentials(&self, run: &str) -> StoreResult<Vec<CredentialRow>> {
        self.decision_readers
            .with(|conn| key::credentials(conn, run))
    }

    fn setting(&self, name: &str) -> StoreResult<Option<Bytes>> {
        self.decision_readers.with(|conn| key::setting(conn, name))
    }

    fn setting_put(&self, name: &str, value: Bytes) -> StoreResult<()> {
        if name.is_empty() {
            return Err(StoreError::Conflict("a setting has a name".into()));
        }
        self.change("write a setting", |conn| {
            key::put_setting(conn, name, &value)
        })
    }
}
