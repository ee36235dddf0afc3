//! SQLite: three files, each with one writer, so that a large payload or a flood of log lines
//! never stands in front of a decision. No transaction spans two files.
//!
//! `decisions.db` is written under a lock by whoever commits (`commit.rs`); `payloads.db` and
//! `logs.db` each have a thread that groups what waits (`writer.rs`). Reads use a few
//! connections of their own. Durable as [`Options::durability`] says.

mod annex;
mod backup;
mod codes;
mod commit;
mod connection;
mod counts;
mod fleet;
mod fleet_rows;
mod glance;
mod holds;
mod key;
mod known;
mod kv;
mod log;
mod numbers;
mod open;
mod outbox;
mod payload;
mod question;
mod relay;
mod replay;
mod restore;
mod retire;
mod rows;
mod schema;
mod steps;
mod store;
#[cfg(test)]
mod tests;
mod upkeep;
mod usage;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use muster_wire::Timestamp;
use parking_lot::Mutex;

use self::commit::Decisions;
use self::connection::Readers;
use self::upkeep::Upkeep;
use self::writer::Writer;
use crate::{StoreAbout, StoreResult};

pub(crate) use self::schema::FORMAT;

/// What an answer survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Power loss: every commit waits for the disk.
    #[default]
    Power,
    /// The end of this process, kill -9 included, but not power loss.
    Process,
}

impl Durability {
    /// The word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Durability::Power => "power",
            Durability::Process => "process",
        }
    }
    /// Reads the configuration's word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "power" => Some(Durability::Power),
            "process" => Some(Durability::Process),
            _ => None,
        }
    }
}

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What an answer survives.
    pub durability: Durability,
    /// Connections that read the decisions file at once; further reads wait.
    pub readers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Power,
            readers: 4,
        }
    }
}

/// The store in a data directory.
pub struct SqliteStore {
    dir: PathBuf,
    about: Mutex<StoreAbout>,
    decisions: Arc<Mutex<Decisions>>,
    decision_readers: Readers,
    payloads: Writer,
    payload_readers: Readers,
    logs: Writer,
    log_readers: Readers,
    retired_to: Mutex<retire::Cursor>,
    /// The same for runs that go for want of room.
    oldest_to: Mutex<retire::Cursor>,
    /// Grows with each change of a key.
    keys_version: AtomicU64,
    /// Where the last pass over old payloads stopped.
    payloads_to: Mutex<i64>,
    /// The wall clock when it was opened, and the moment of that: a later step of the wall clock
    /// must not make a payload old before the event that names it.
    opened: (Timestamp, Instant),
    /// Last, because it holds the lock of the directory.
    upkeep: Upkeep,
}

impl SqliteStore {
    /// Opens the store in `dir`, and makes it when it is not there.
    ///
    /// # Errors
    /// When another process has it open, when a newer build wrote it, or when the directory
    /// cannot be read or written.
    pub fn open(dir: &Path, options: Options) -> StoreResult<Self> {
        open::open(dir, &options)
    }

    /// The present moment, whatever became of the wall clock.
    fn now(&self) -> Timestamp {
        self.opened.0 + self.opened.1.elapsed()
    }
}
