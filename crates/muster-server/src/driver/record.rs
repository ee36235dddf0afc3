//! What an act leaves in the audit log. Its line is kept here while the act waits for the engine,
//! and is written in the commit that carries the act out: neither is ever there alone, whenever
//! the process dies. An act that changes nothing leaves none.

use std::sync::Arc;

use muster_engine::Reply;
use muster_engine::event::Waiter;
use muster_store::annex::AuditRow;
use muster_wire::Timestamp;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// On what an act was, and details for a person.
pub(crate) type About = (String, String);

type Read = dyn Fn(Option<&Reply>) -> Option<About> + Send + Sync;

/// The line of an act that is not yet decided.
pub(crate) struct Line {
    principal: Arc<str>,
    action: &'static str,
    /// Reads the reply, when the commit has one already; `None` when it says that the act was
    /// not carried out.
    read: Box<Read>,
}

impl Line {
    /// The line of somebody's act.
    pub(crate) fn new(
        principal: &Arc<str>,
        action: &'static str,
        read: impl Fn(Option<&Reply>) -> Option<About> + Send + Sync + 'static,
    ) -> Self {
        Self {
            principal: principal.clone(),
            action,
            read: Box::new(read),
        }
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

/// The lines of acts that wait, by who waits for their reply.
#[derive(Debug, Default)]
pub(crate) struct Record {
    lines: Mutex<FxHashMap<u64, Line>>,
}

impl Record {
    /// Keeps a line. It outlives its caller: an act that is under way is carried out all the same.
    pub(crate) fn keep(&self, waiter: Waiter, line: Line) {
        self.lines.lock().insert(waiter.0, line);
    }

    /// Forgets lines that are written, or never will be.
    pub(crate) fn forget(&self, waiters: impl Iterator<Item = Waiter>) {
        let mut lines = self.lines.lock();
        if !lines.is_empty() {
            waiters.for_each(|waiter| drop(lines.remove(&waiter.0)));
        }
    }

    /// The row for an act that is about to be committed. The line stays: the commit may fail, and
    /// the act be taken again.
    pub(crate) fn row(
        &self,
        waiter: Waiter,
        reply: Option<&Reply>,
        at: Timestamp,
    ) -> Option<AuditRow> {
        let lines = self.lines.lock();
        let line = lines.get(&waiter.0)?;
        let (object, detail) = (line.read)(reply)?;
        Some(AuditRow {
            at,
            principal: line.principal.to_string(),
            action: line.action.to_owned(),
            object,
            detail,
        })
    }
}

/// Says in the log what was written into the audit log.
pub(crate) fn say(row: &AuditRow) {
    tracing::info!(
        audit.action = row.action,
        audit.object = row.object,
        audit.principal = row.principal,
        "audited"
    );
}
