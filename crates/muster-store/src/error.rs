//! What can go wrong in a store, as the shell reacts to it.

/// The result of every store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said so.
    #[error("{doing}: {source}")]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: rusqlite::Error,
    },
    /// The file system said so.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What it said.
        source: std::io::Error,
    },
    /// Another process has the data directory open.
    #[error("{0} is in use by another muster process; stop it, or use another --data directory")]
    InUse(String),
    /// The store was written by a newer build.
    #[error(
        "the store has format {found}, and this build reads up to {known}; use the newer muster, or another data directory"
    )]
    Newer {
        /// Its format.
        found: u32,
        /// What this build reads.
        known: u32,
    },
    /// The lease was taken by somebody with a higher epoch.
    #[error("the deciding lease was taken over: epoch {held} is no longer the newest")]
    Fenced {
        /// The epoch that was presented.
        held: u64,
    },
    /// The event sequence is not where the decider believes.
    #[error("the last event is {found}, not {expected}")]
    Sequence {
        /// What the decider believes.
        expected: u64,
        /// What the store holds.
        found: u64,
    },
    /// A write contradicts what is stored: a row is there already, or is not there.
    #[error("{0}")]
    Conflict(String),
    /// The SQLite that was linked has a bug that can lose committed writes.
    #[error("SQLite {0} can lose committed writes; 3.51.3 or later is needed")]
    OldSqlite(String),
    /// A row cannot be understood.
    #[error("unreadable row: {0}")]
    Unreadable(String),
    /// The disk is full.
    #[error("the disk is full; free some space, nothing that was answered is lost")]
    Full,
    /// The files cannot be written.
    #[error("{0} cannot be written; check its owner and mode, and whether its disk is read-only")]
    ReadOnly(String),
    /// Too many rows could not be read.
    #[error(
        "{0} rows cannot be read; nothing was changed. See docs/operations.md, 'A store that does not start'"
    )]
    TooManyUnreadable(usize),
    /// The store's own thread is gone.
    #[error("the store has stopped")]
    Stopped,
}

impl StoreError {
    /// Whether trying the same again may help: busy or full, not broken or refused.
    pub fn is_passing(&self) -> bool {
        match self {
            // Whoever mounts it for writing again, or makes room, saves what waits.
            StoreError::Full | StoreError::ReadOnly(_) => true,
            StoreError::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(
                    rusqlite::ErrorCode::DatabaseBusy
                        | rusqlite::ErrorCode::DatabaseLocked
                        | rusqlite::ErrorCode::OutOfMemory
                        | rusqlite::ErrorCode::SystemIoFailure
                        | rusqlite::ErrorCode::OperationInterrupted
                )
            ),
            StoreError::Io { .. }
            | StoreError::InUse(_)
            | StoreError::Newer { .. }
            | StoreError::Fenced { .. }
            | StoreError::Sequence { .. }
            | StoreError::Conflict(_)
            | StoreError::OldSqlite(_)
            | StoreError::Unreadable(_)
            | StoreError::TooManyUnreadable(_)
            | StoreError::Stopped => false,
        }
    }
}
