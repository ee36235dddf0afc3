//! What is kept beside the decisions, in memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use muster_wire::{AgentId, ExecutionId, RunId, Timestamp, mint};

use super::MemoryStore;
use crate::annex::{
    Annex, AuditFilter, AuditRow, CredentialRow, IdentityRow, KeyRecord, LogRow, Logs,
    MemoryAction, MemoryBy, MemoryEvent, MemoryEventFilter, MemoryRow, MemoryScope, NoteRow,
    RelayRow,
};
use crate::bound::{BYTES_MAX, LINES_MAX, log_size};
use crate::{Retention, StoreError, StoreResult, glob};

/// Lines of one execution.
#[derive(Default)]
struct Lines {
    logs: Logs,
    bytes: usize,
    next: u64,
    written_at: Timestamp,
}

#[derive(Default)]
pub(super) struct Beside {
    values: BTreeMap<(String, String, String), MemoryRow>,
    changes: Vec<MemoryEvent>,
    notes: Vec<NoteRow>,
    lines: BTreeMap<ExecutionId, Lines>,
    keys: BTreeMap<String, KeyRecord>,
    audit: Vec<(u64, AuditRow)>,
    audit_n: u64,
    identities: Vec<IdentityRow>,
    credentials: Vec<CredentialRow>,
    settings: BTreeMap<String, Bytes>,
    relay: BTreeMap<(String, String), RelayRow>,
    keys_version: u64,
}

impl Beside {
    /// Adds a line to the audit log.
    pub(super) fn note(&mut self, row: &AuditRow) {
        self.audit_n += 1;
        self.audit.push((self.audit_n, row.clone()));
    }

    pub(super) fn forget(&mut self, id: &ExecutionId) {
        self.lines.remove(id);
        self.notes.retain(|note| note.execution != *id);
    }

    pub(super) fn forget_run(&mut self, run: &RunId) {
        self.credentials.retain(|row| row.run != run.as_str());
    }

    pub(super) fn retire(&mut self, cut: &Retention, limit: usize) -> u64 {
        let mut gone = 0;
        let old = self
            .audit
            .iter()
            .filter(|(_, row)| row.at < cut.audit_before);
        let old = old.count().min(limit);
        let mut room = old;
        self.audit.retain(|(_, row)| {
            let goes = room > 0 && row.at < cut.audit_before;
            room -= usize::from(goes);
            !goes
        });
        gone += old;
        let newest = self.changes.last().map_or(0, |change| change.seq);
        let old =
            |change: &&MemoryEvent| change.at < cut.memory_events_before && change.seq < newest;
        let old = self.changes.iter().take(limit).take_while(old).count();
        self.changes.drain(..old);
        gone += old;
        let invocation =
            |row: &RelayRow| row.kind == "invocation" && row.updated_at < cut.workers_before;
        gone += usize::try_from(super::retire::removed(&mut self.relay, limit, invocation))
            .unwrap_or(usize::MAX);
        self.lines.retain(|_, lines| {
            let goes = lines.written_at < cut.logs_before;
            gone += if goes { lines.logs.lines.len() } else { 0 };
            !goes
        });
        gone as u64
    }

    fn change(
        &mut self,
        scope: &MemoryScope,
        key: &str,
        data: Option<Bytes>,
        by: &MemoryBy,
        at: Timestamp,
        before: Option<MemoryRow>,
    ) -> MemoryEvent {
        let event = MemoryEvent {
            seq: self.changes.last().map_or(0, |change| change.seq) + 1,
            id: mint("mev"),
            at,
            scope: scope.clone(),
            key: key.to_owned(),
            action: match data {
                Some(_) => MemoryAction::Set,
                None => MemoryAction::Delete,
            },
            data,
            previous: before.map(|row| row.data),
            agent: by.agent.clone(),
            actor: by.actor.clone(),
            workflow: by.workflow.clone(),
        };
        self.changes.push(event.clone());
        event
    }

    fn add_line(&mut self, mut line: LogRow) {
        let lines = self.lines.entry(line.execution.clone()).or_default();
        lines.next += 1;
        line.seq = lines.next;
        lines.bytes += log_size(&line);
        lines.logs.lines.push(line);
        while lines.logs.lines.len() > LINES_MAX || lines.bytes > BYTES_MAX {
            let debug = lines.logs.lines.iter().position(|l| l.level == "debug");
            let gone = lines.logs.lines.remove(debug.unwrap_or(0));
            lines.bytes -= log_size(&gone);
            lines.logs.dropped += 1;
        }
        lines.logs.total = lines.logs.lines.len() as u64;
        lines.written_at = Timestamp::wall_clock();
    }
}

fn place(scope: &MemoryScope, key: &str) -> (String, String, String) {
    (
        scope.scope.to_string(),
        scope.id.to_string(),
        key.to_owned(),
    )
}

impl Annex for MemoryStore {
    fn memory_set(
        &self,
        scope: &MemoryScope,
        key: &str,
        data: Bytes,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<(MemoryRow, MemoryEvent)> {
        let mut beside = self.beside.lock();
        let before = beside.values.get(&place(scope, key)).cloned();
        let row = MemoryRow {
            scope: scope.clone(),
            key: key.to_owned(),
            data: data.clone(),
            created_at: before.as_ref().map_or(at, |row| row.created_at),
            updated_at: at,
        };
        beside.values.insert(place(scope, key), row.clone());
        let event = beside.change(scope, key, Some(data), by, at, before);
        Ok((row, event))
    }

    fn memory_get(&self, scopes: &[MemoryScope], key: &str) -> StoreResult<Option<MemoryRow>> {
        let beside = self.beside.lock();
        let found = scopes
            .iter()
            .find_map(|scope| beside.values.get(&place(scope, key)));
        Ok(found.cloned())
    }

    fn memory_delete(
        &self,
        scope: &MemoryScope,
        key: &str,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<Option<MemoryEvent>> {
        let mut beside = self.beside.lock();
        let before = beside.values.remove(&place(scope, key));
        Ok(before.map(|before| beside.change(scope, key, None, by, at, Some(before))))
    }

    fn memory_list(
        &self,
        scope: &MemoryScope,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<MemoryRow>> {
        let beside = self.beside.lock();
        let rows = beside.values.range(place(scope, after)..);
        Ok(rows
            .map(|(_, row)| row)
            .take_while(|row| row.scope == *scope)
            .filter(|row| after.is_empty() || row.key != after)
            .take(limit)
            .cloned()
            .collect())
    }

    fn memory_events(&self, filter: &MemoryEventFilter) -> StoreResult<Vec<MemoryEvent>> {
        let beside = self.beside.lock();
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let wanted = |change: &&MemoryEvent| {
            glob::fits_any(&filter.patterns, &change.key)
                && is(&filter.scope, &change.scope.scope)
                && is(&filter.scope_id, &change.scope.id)
                && filter.since.is_none_or(|since| change.at >= since)
                && filter.after.is_none_or(|after| change.seq > after)
        };
        let mut found: Vec<MemoryEvent> = beside.changes.iter().filter(wanted).cloned().collect();
        if filter.after.is_some() {
            found.truncate(filter.limit);
        } else {
            found.drain(..found.len().saturating_sub(filter.limit));
        }
        Ok(found)
    }

    fn notes_add(&self, notes: Vec<NoteRow>) -> StoreResult<()> {
        let mut beside = self.beside.lock();
        for note in notes {
            let execution = note.execution.clone();
            beside.notes.push(note);
            let mine = |note: &NoteRow| note.execution == execution;
            if beside.notes.iter().filter(|note| mine(note)).count() > LINES_MAX
                && let Some(oldest) = beside.notes.iter().position(mine)
            {
                beside.notes.remove(oldest);
            }
        }
        Ok(())
    }

    fn notes(
        &self,
        execution: &ExecutionId,
        tags: &[String],
        limit: usize,
    ) -> StoreResult<Vec<NoteRow>> {
        let beside = self.beside.lock();
        let wanted = |note: &&NoteRow| {
            note.execution == *execution
                && (tags.is_empty() || note.tags.iter().any(|tag| tags.contains(tag)))
        };
        let found = beside.notes.iter().filter(wanted).take(limit);
        Ok(found.cloned().collect())
    }

    fn logs_add(&self, lines: Vec<LogRow>) -> StoreResult<()> {
        let mut beside = self.beside.lock();
        lines.into_iter().for_each(|line| beside.add_line(line));
        Ok(())
    }

    fn logs(&self, execution: &ExecutionId, after: u64, limit: usize) -> StoreResult<Logs> {
        let beside = self.beside.lock();
        let Some(lines) = beside.lines.get(execution) else {
            return Ok(Logs::default());
        };
        let behind = lines.logs.lines.iter().filter(|line| line.seq > after);
        Ok(Logs {
            lines: behind.take(limit).cloned().collect(),
            dropped: lines.logs.dropped,
            total: lines.logs.total,
        })
    }

    fn keys(&self) -> StoreResult<Vec<KeyRecord>> {
        let beside = self.beside.lock();
        let mut keys: Vec<KeyRecord> = beside.keys.values().cloned().collect();
        keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(keys)
    }

    fn key_put(&self, key: &KeyRecord) -> StoreResult<()> {
        let mut beside = self.beside.lock();
        beside.keys.insert(key.id.clone(), key.clone());
        beside.keys_version += 1;
        Ok(())
    }

    fn key_take(&self, id: &str, at: Timestamp) -> StoreResult<bool> {
        let mut beside = self.beside.lock();
        let Some(key) = beside
            .keys
            .get_mut(id)
            .filter(|key| key.revoked_at.is_none())
        else {
            return Ok(false);
        };
        key.revoked_at = Some(at);
        beside.keys_version += 1;
        Ok(true)
    }

    fn key_delete(&self, id: &str) -> StoreResult<bool> {
        let mut beside = self.beside.lock();
        let gone = beside.keys.remove(id).is_some();
        beside.keys_version += u64::from(gone);
        Ok(gone)
    }

    fn keys_version(&self) -> StoreResult<u64> {
        Ok(self.beside.lock().keys_version)
    }

    fn relay_put(&self, row: &RelayRow) -> StoreResult<()> {
        let place = (row.kind.clone(), row.name.clone());
        self.beside.lock().relay.insert(place, row.clone());
        Ok(())
    }

    fn relay_get(&self, kind: &str, name: &str) -> StoreResult<Option<RelayRow>> {
        let place = (kind.to_owned(), name.to_owned());
        Ok(self.beside.lock().relay.get(&place).cloned())
    }

    fn relay_list(&self, kind: &str, after: &str, limit: usize) -> StoreResult<Vec<RelayRow>> {
        let beside = self.beside.lock();
        let behind = beside.relay.range((kind.to_owned(), after.to_owned())..);
        let found = behind
            .map(|(_, row)| row)
            .take_while(|row| row.kind == kind)
            .filter(|row| *row.name > *after)
            .take(limit);
        Ok(found.cloned().collect())
    }

    fn relay_delete(&self, kind: &str, name: &str) -> StoreResult<bool> {
        let place = (kind.to_owned(), name.to_owned());
        Ok(self.beside.lock().relay.remove(&place).is_some())
    }

    fn audit_add(&self, row: &AuditRow) -> StoreResult<()> {
        self.beside.lock().note(row);
        Ok(())
    }

    fn audit(&self, filter: &AuditFilter) -> StoreResult<Vec<(u64, AuditRow)>> {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        let acts = |found: &str| {
            filter.action.as_ref().is_none_or(|wanted| {
                let rest = found.strip_prefix(wanted.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let fits = |(n, row): &&(u64, AuditRow)| {
            is(&filter.principal, &row.principal)
                && acts(&row.action)
                && is(&filter.object, &row.object)
                && filter.since.is_none_or(|at| row.at >= at)
                && filter.until.is_none_or(|at| row.at < at)
                && filter.before.is_none_or(|before| *n < before)
        };
        let beside = self.beside.lock();
        let newest = beside.audit.iter().rev().filter(fits);
        Ok(newest.take(filter.limit).cloned().collect())
    }

    fn identities(&self, agent: &AgentId) -> StoreResult<Vec<IdentityRow>> {
        let beside = self.beside.lock();
        let mine = |row: &&IdentityRow| row.agent == *agent;
        let mut rows: Vec<IdentityRow> = beside.identities.iter().filter(mine).cloned().collect();
        rows.sort_by(|a, b| (&a.component, &a.function).cmp(&(&b.component, &b.function)));
        Ok(rows)
    }

    fn identities_add(&self, rows: &[IdentityRow]) -> StoreResult<()> {
        let mut beside = self.beside.lock();
        for row in rows {
            let there = |old: &IdentityRow| {
                old.did == row.did
                    || (old.agent == row.agent
                        && old.component == row.component
                        && old.function == row.function)
            };
            if !beside.identities.iter().any(there) {
                beside.identities.push(row.clone());
            }
        }
        Ok(())
    }

    fn identity(&self, did: &str) -> StoreResult<Option<IdentityRow>> {
        let beside = self.beside.lock();
        Ok(beside.identities.iter().find(|row| row.did == did).cloned())
    }

    fn credential_add(&self, row: &CredentialRow) -> StoreResult<()> {
        let mut beside = self.beside.lock();
        if beside.credentials.iter().any(|old| old.id == row.id) {
            return Err(StoreError::Conflict(format!(
                "credential {} is there already",
                row.id
            )));
        }
        beside.credentials.push(row.clone());
        Ok(())
    }

    fn credentials(&self, run: &str) -> StoreResult<Vec<CredentialRow>> {
        let beside = self.beside.lock();
        let mine = |row: &&CredentialRow| row.run == run;
        let mut rows: Vec<CredentialRow> =
            beside.credentials.iter().filter(mine).cloned().collect();
        rows.sort_by_key(|row| row.created_at);
        Ok(rows)
    }

    fn setting(&self, name: &str) -> StoreResult<Option<Bytes>> {
        Ok(self.beside.lock().settings.get(name).cloned())
    }

    fn setting_put(&self, name: &str, value: Bytes) -> StoreResult<()> {
        if name.is_empty() {
            return Err(StoreError::Conflict("a setting has a name".into()));
        }
        self.beside.lock().settings.insert(name.to_owned(), value);
        Ok(())
    }
}
