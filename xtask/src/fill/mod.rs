//! Fills a store through its own interface, in big commits: finished executions, runs of many
//! steps, machines with workers. For the benchmark, and for looking at large lists.

mod machines;
mod past;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use muster_engine::Write;
use muster_store::sqlite::{Options as StoreOptions, SqliteStore};
use muster_store::{Commit, CommitEnd, Lease, LeaseId, Store};

pub(crate) use past::plain_history;

use crate::say;

/// Changes of one commit, about.
const PER_COMMIT: usize = 60_000;

/// What to fill a store with.
#[derive(Args)]
pub(crate) struct Options {
    /// The data folder; it is made.
    #[arg(long)]
    data: PathBuf,
    /// Finished executions, in runs of one to eight, some failed.
    #[arg(long, default_value_t = 0)]
    executions: u64,
    /// One more run with so many steps (may be repeated). Its id is `run-of-STEPS`.
    #[arg(long)]
    run_of: Vec<u64>,
    /// Machines with five workers each, none of which is connected.
    #[arg(long, default_value_t = 0)]
    nodes: u64,
}

/// Fills it.
///
/// # Errors
/// When the store cannot be opened or written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut filler = Filler::open(&options.data)?;
    past::mixed_history(&mut filler, options.executions)?;
    for steps in &options.run_of {
        past::run_of(&mut filler, *steps)?;
    }
    machines::machines(&mut filler, options.nodes)?;
    filler.commit()?;
    say::note(&format!("filled in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// A store that is being filled.
pub(crate) struct Filler {
    store: SqliteStore,
    lease: Lease,
    committed: u64,
    seq: u64,
    writes: Vec<Write>,
}

impl Filler {
    /// Opens, or makes, the store of a data folder.
    ///
    /// # Errors
    /// When it cannot be opened, or another process has it.
    pub(crate) fn open(data: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data)?;
        let store = SqliteStore::open(data, StoreOptions::default())?;
        let lease = store.take_lease(LeaseId::default(), "fill")?;
        let seq = store.last_seq()?;
        Ok(Self {
            store,
            lease,
            committed: seq,
            seq,
            writes: Vec::new(),
        })
    }

    /// The next event's number.
    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// One more change; commits when there are many.
    fn write(&mut self, write: Write) {
        self.writes.push(write);
    }

    /// Commits when there are many changes. Only between two things that belong together.
    fn pause(&mut self) -> anyhow::Result<()> {
        if self.writes.len() >= PER_COMMIT {
            self.commit()?;
        }
        Ok(())
    }

    /// Commits what was written.
    ///
    /// # Errors
    /// When the store refuses.
    pub(crate) fn commit(&mut self) -> anyhow::Result<()> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let commit = Commit {
            audit: Vec::new(),
            lease: self.lease.clone(),
            after_seq: self.committed,
            last_seq: self.seq,
            writes: std::mem::take(&mut self.writes),
        };
        match self.store.commit(&commit) {
            CommitEnd::Committed => self.committed = self.seq,
            CommitEnd::Refused { cause, .. } | CommitEnd::Unknown(cause) => bail!(cause),
        }
        Ok(())
    }
}
