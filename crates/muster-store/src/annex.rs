//! What the engine does not decide: agents' memory and its change feed, notes, logs, keys,
//! identities, credentials, audit. One transaction each, on any replica.

use std::sync::Arc;

use bytes::Bytes;
use muster_wire::{AgentId, ExecutionId, RunId, Timestamp};

use crate::error::StoreResult;

/// One of the four scopes, with its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MemoryScope {
    /// `global`, `session`, `actor` or `workflow`.
    pub scope: Arc<str>,
    /// The session's, actor's or run's id; `global` for the global one.
    pub id: Arc<str>,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Where.
    pub scope: MemoryScope,
    /// Its key.
    pub key: String,
    /// JSON text, as it came.
    pub data: Bytes,
    /// First set.
    pub created_at: Timestamp,
    /// Last set.
    pub updated_at: Timestamp,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAction {
    /// Set or overwritten.
    Set,
    /// Deleted.
    Delete,
}

/// One line of the memory change feed, with a sequence of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Its number; given by the store.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Where.
    pub scope: MemoryScope,
    /// Which key.
    pub key: String,
    /// What happened.
    pub action: MemoryAction,
    /// The new value.
    pub data: Option<Bytes>,
    /// The value before.
    pub previous: Option<Bytes>,
    /// The agent that did it.
    pub agent: Option<String>,
    /// The actor.
    pub actor: Option<String>,
    /// The run.
    pub workflow: Option<String>,
}

/// Which memory events.
#[derive(Debug, Clone, Default)]
pub struct MemoryEventFilter {
    /// Glob patterns over keys (`*` any run of characters, `?` one); empty is all.
    pub patterns: Vec<String>,
    /// Only this scope.
    pub scope: Option<String>,
    /// Only this scope id.
    pub scope_id: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Only after this number; then the oldest so many instead of the newest.
    pub after: Option<u64>,
    /// Newest so many.
    pub limit: usize,
}

/// Who changes memory, for the feed.
#[derive(Debug, Clone, Default)]
pub struct MemoryBy {
    /// The agent.
    pub agent: Option<String>,
    /// The actor.
    pub actor: Option<String>,
    /// The run.
    pub workflow: Option<String>,
}

/// A note on an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteRow {
    /// The execution.
    pub execution: ExecutionId,
    /// The run, when it was named.
    pub run: Option<RunId>,
    /// The agent that wrote it.
    pub agent: Option<String>,
    /// Its text.
    pub message: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When, by the agent's clock.
    pub at: Timestamp,
}

/// A structured log line of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRow {
    /// Its number within the execution; given by the store.
    pub seq: u64,
    /// The execution.
    pub execution: ExecutionId,
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// Lower-case level.
    pub level: String,
    /// Who logged.
    pub source: String,
    /// The kind of line (`log.info`, `reasoner.started`, …).
    pub event_type: String,
    /// Its text.
    pub message: String,
    /// Attributes as JSON text.
    pub attributes: Bytes,
}

/// The logs of an execution, with what was dropped by its bound.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logs {
    /// Lines in order.
    pub lines: Vec<LogRow>,
    /// How many lines were dropped (5,000 lines, 1 MiB an execution; oldest debug first).
    pub dropped: u64,
    /// How many are kept.
    pub total: u64,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its id.
    pub id: String,
    /// The start of its text, for people.
    pub prefix: String,
    /// BLAKE3 over the whole text.
    pub hash: [u8; 32],
    /// A name people gave.
    pub name: String,
    /// Scopes, as words (`admin`, `read`, `call`, `operate`, `agent`, `agent:ID`, `worker:ID`,
    /// `node:ID`, `enroll:NAME`, `relay`, `relay-agent:ID`).
    pub scopes: Vec<String>,
    /// Who it stands for; a rotated key keeps it.
    pub principal: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// After this it is no longer taken.
    pub expires_at: Option<Timestamp>,
    /// What else goes with it, as JSON: what an enrolment token enrols.
    pub detail: Option<String>,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub principal: String,
    /// What (`key.created`, `hold.set`, …).
    pub action: String,
    /// On what.
    pub object: String,
    /// Details for a person; no secret.
    pub detail: String,
}

/// Which lines of the audit log, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this principal.
    pub principal: Option<String>,
    /// This action, or every action that begins with this word and a dot.
    pub action: Option<String>,
    /// On this.
    pub object: Option<String>,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
    /// Only before the line of this number.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

impl AuditFilter {
    /// The newest so many.
    pub fn newest(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// A decentralised identity, sealed private key included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityRow {
    /// `did:key:z…`.
    pub did: String,
    /// The agent.
    pub agent: AgentId,
    /// `agent`, `reasoner` or `skill`.
    pub component: String,
    /// The function; empty for the agent itself.
    pub function: String,
    /// The 32-byte seed, sealed by the shell.
    pub sealed_seed: Bytes,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An execution credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRow {
    /// Its id.
    pub id: String,
    /// The execution.
    pub execution: ExecutionId,
    /// The run.
    pub run: String,
    /// When it was issued.
    pub created_at: Timestamp,
    /// The whole answer as JSON text.
    pub body: Bytes,
}

/// A record of the Relay registry: agents, channels and invocations as the broker knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayRow {
    /// `agent`, `channel`, `invocation` or `workspace`.
    pub kind: String,
    /// Its key within the kind: a name, or an id.
    pub name: String,
    /// The node it belongs to.
    pub node: Option<String>,
    /// JSON text; tokens in it are hashes.
    pub value: Bytes,
    /// Last written.
    pub updated_at: Timestamp,
}

/// What is kept beside the decisions.
pub trait Annex: Send + Sync + 'static {
    /// Sets a value and records the change in the same transaction.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn memory_set(
        &self,
        scope: &MemoryScope,
        key: &str,
        data: Bytes,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<(MemoryRow, MemoryEvent)>;

    /// Reads a value from the first of the scopes that has it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn memory_get(&self, scopes: &[MemoryScope], key: &str) -> StoreResult<Option<MemoryRow>>;

    /// Deletes a value; `None` when there was none.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn memory_delete(
        &self,
        scope: &MemoryScope,
        key: &str,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<Option<MemoryEvent>>;

    /// The values of a scope by key, after a key, at most so many.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn memory_list(
        &self,
        scope: &MemoryScope,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<MemoryRow>>;

    /// The keys of a scope, after a key, at most so many: rows without their data.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn memory_keys(
        &self,
        scope: &MemoryScope,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<MemoryRow>> {
        let mut rows = self.memory_list(scope, after, limit)?;
        for row in &mut rows {
            row.data = Bytes::new();
        }
        Ok(rows)
    }

    /// Changes, newest last.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn memory_events(&self, filter: &MemoryEventFilter) -> StoreResult<Vec<MemoryEvent>>;

    /// Writes notes.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn notes_add(&self, notes: Vec<NoteRow>) -> StoreResult<()>;

    /// Notes of an execution, oldest first; any of the tags, or all when there are none.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn notes(
        &self,
        execution: &ExecutionId,
        tags: &[String],
        limit: usize,
    ) -> StoreResult<Vec<NoteRow>>;

    /// Writes log lines of any executions in one transaction; `seq` is given here. Applies the
    /// bound of each execution.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn logs_add(&self, lines: Vec<LogRow>) -> StoreResult<()>;

    /// Log lines of an execution after a number.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn logs(&self, execution: &ExecutionId, after: u64, limit: usize) -> StoreResult<Logs>;

    /// Every key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn keys(&self) -> StoreResult<Vec<KeyRecord>>;

    /// Writes a new or changed key.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn key_put(&self, key: &KeyRecord) -> StoreResult<()>;

    /// Writes a line of the audit log.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn audit_add(&self, row: &AuditRow) -> StoreResult<()>;

    /// The audit log, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn audit(&self, filter: &AuditFilter) -> StoreResult<Vec<(u64, AuditRow)>>;

    /// The identities of an agent.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn identities(&self, agent: &AgentId) -> StoreResult<Vec<IdentityRow>>;

    /// Writes identities that are not there yet; those that are stay as they are.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn identities_add(&self, rows: &[IdentityRow]) -> StoreResult<()>;

    /// One identity by its DID.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn identity(&self, did: &str) -> StoreResult<Option<IdentityRow>>;

    /// Writes a credential.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn credential_add(&self, row: &CredentialRow) -> StoreResult<()>;

    /// Writes credentials in one transaction where the store can.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn credentials_add(&self, rows: &[CredentialRow]) -> StoreResult<()> {
        rows.iter().try_for_each(|row| self.credential_add(row))
    }

    /// Credentials of a run, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn credentials(&self, run: &str) -> StoreResult<Vec<CredentialRow>>;

    /// Revokes a key if nobody has yet; `false` when somebody had, or when there is none of that
    /// id. The one use of a key that is good once.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn key_take(&self, id: &str, at: Timestamp) -> StoreResult<bool>;

    /// Removes a key altogether; `false` when there was none.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn key_delete(&self, id: &str) -> StoreResult<bool>;

    /// A number that grows by one with each change of a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn keys_version(&self) -> StoreResult<u64>;

    /// Writes a record of the Relay registry.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn relay_put(&self, row: &RelayRow) -> StoreResult<()>;

    /// One record of the Relay registry.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn relay_get(&self, kind: &str, name: &str) -> StoreResult<Option<RelayRow>>;

    /// Records of a kind by name, after a name, at most so many.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn relay_list(&self, kind: &str, after: &str, limit: usize) -> StoreResult<Vec<RelayRow>>;

    /// Removes a record; `false` when there was none.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn relay_delete(&self, kind: &str, name: &str) -> StoreResult<bool>;

    /// A setting by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn setting(&self, name: &str) -> StoreResult<Option<Bytes>>;

    /// Sets a setting.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn setting_put(&self, name: &str, value: Bytes) -> StoreResult<()>;
}
