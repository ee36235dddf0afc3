//! Wishes to end or to pause, of one or of a whole run, and what came of telling an agent.

use std::sync::Arc;

use muster_wire::{ExecutionId, RunId};

use super::{KnownRun, Waiter};
use crate::row::ExecutionRow;

/// A wish to cancel one execution.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub execution: ExecutionId,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A wish to cancel a run.
#[derive(Debug, Clone)]
pub struct TreeCancel {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub run: RunId,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The run and its queued members as the store has them.
    pub known: Option<KnownTree>,
}

/// A wish to pause or resume one execution.
#[derive(Debug, Clone)]
pub struct Pause {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub execution: ExecutionId,
    /// Pause, or resume.
    pub on: bool,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A wish to pause or resume a run.
#[derive(Debug, Clone)]
pub struct TreePause {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub run: RunId,
    /// Pause, or resume.
    pub on: bool,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The run and its queued members as the store has them.
    pub known: Option<KnownTree>,
}

/// A run and its queued members.
#[derive(Debug, Clone)]
pub struct KnownTree {
    /// The last event number the read saw.
    pub as_of: u64,
    /// The run; `None` when it does not exist.
    pub run: Option<KnownRun>,
    /// Its queued members.
    pub queued: Vec<ExecutionRow>,
}

/// What became of a cancel at the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelReceipt {
    /// It stopped the code.
    Stopped,
    /// It was told and says that the code was not running.
    NotActive,
    /// It cannot stop this; the code may still run.
    StillRunning(Arc<str>),
    /// It could not be told.
    NotTold(Arc<str>),
}

impl CancelReceipt {
    /// The word in events and rows.
    pub fn word(&self) -> &'static str {
        match self {
            CancelReceipt::Stopped => "stopped",
            CancelReceipt::NotActive => "not_active",
            CancelReceipt::StillRunning(_) => "still_running",
            CancelReceipt::NotTold(_) => "not_told",
        }
    }
}
