//! Whether a line comes from the execution it names.
//!
//! A line is kept when it carries the attempt's secret; or comes from a key bound to the
//! execution's agent; or is about an in-process call, which has no attempt, and carries the
//! secret of the attempt that made the call, or comes from somebody who may act as that agent
//! (a note of an in-process call carries nothing else). A bare id of an execution that the plane
//! dispatched is no proof, on loopback neither: every process of the machine could write into
//! it. An execution nobody knows yet is waited for.

use muster_engine::event::Event;
use muster_wire::{AgentId, AttemptRef, ExecutionId, ExecutionKind, SecretHash};
use rustc_hash::FxHashMap;

use super::Line;
use crate::app::App;

/// Verdicts that are remembered in each of two halves.
const REMEMBERED_MAX: usize = 16_384;

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Drop,
    /// Nobody knows its execution yet.
    Later,
}

/// What a line's execution is, as far as its origin matters.
#[derive(Debug, Clone)]
struct Known {
    agent: AgentId,
    kind: ExecutionKind,
    parent: Option<ExecutionId>,
}

type Proof = (ExecutionId, u32, SecretHash);

/// Judges lines, and remembers which secrets were right.
#[derive(Debug, Default)]
pub(super) struct Judge {
    young: FxHashMap<Proof, bool>,
    old: FxHashMap<Proof, bool>,
    /// Executions looked up for the present batch.
    looked_up: FxHashMap<ExecutionId, Option<Known>>,
}

impl Judge {
    /// Forgets what may have changed since the last batch.
    pub(super) fn begin(&mut self) {
        self.looked_up.clear();
    }

    pub(super) fn judge(&mut self, app: &App, line: &Line) -> Verdict {
        match self.proves(app, &line.about) {
            Ok(true) => return Verdict::Keep,
            Ok(false) => {}
            Err(NotRead) => return Verdict::Later,
        }
        let parent_proved = match &line.parent {
            Some(parent) if parent.execution != line.about.execution => {
                match self.proves(app, parent) {
                    Ok(proved) => proved,
                    Err(NotRead) => return Verdict::Later,
                }
            }
            _ => false,
        };
        let Ok(known) = self.look_up(app, &line.about.execution) else {
            return Verdict::Later;
        };
        match known {
            None if parent_proved => Verdict::Keep,
            None if line.about.proof.is_some() => Verdict::Drop,
            None => Verdict::Later,
            Some(known) if line.by.grants.bound_agent() == Some(&known.agent) => Verdict::Keep,
            Some(known) if known.kind == ExecutionKind::Observed => {
                let by_parent = parent_proved
                    && known.parent.as_ref() == line.parent.as_ref().map(|p| &p.execution);
                if by_parent || line.by.grants.act_as(known.agent.as_str()) {
                    Verdict::Keep
                } else {
                    Verdict::Drop
                }
            }
            Some(_) => Verdict::Drop,
        }
    }

    /// Whether an id carries the secret of its attempt. The first right one of an attempt is a
    /// sign of its life, which the engine is told.
    fn proves(&mut self, app: &App, from: &AttemptRef) -> Result<bool, NotRead> {
        let Some((n, hash)) = from.proof else {
            return Ok(false);
        };
        let proof = (from.execution.clone(), n, hash);
        if let Some(&proved) = self.young.get(&proof).or_else(|| self.old.get(&proof)) {
            return Ok(proved);
        }
        let attempts = app.stores.decisions.attempts(&from.execution);
        let proved = attempts
            .map_err(not_read)?
            .iter()
            .any(|row| row.n == n && row.secret_hash == hash);
        if proved {
            app.driver.tell(Event::Signed { from: from.clone() });
        }
        if self.young.len() >= REMEMBERED_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(proof, proved);
        Ok(proved)
    }

    fn look_up(&mut self, app: &App, id: &ExecutionId) -> Result<Option<Known>, NotRead> {
        if let Some(known) = self.looked_up.get(id) {
            return Ok(known.clone());
        }
        let known = match app.views.get(id.as_str()) {
            Some(view) => Some(Known {
                agent: view.row.agent.clone(),
                kind: view.row.kind,
                parent: view.row.parent.clone(),
            }),
            None => {
                let (_, row) = app.stores.decisions.execution(id).map_err(not_read)?;
                row.map(|row| Known {
                    agent: row.agent.clone(),
                    kind: row.kind,
                    parent: row.parent.clone(),
                })
            }
        };
        self.looked_up.insert(id.clone(), known.clone());
        Ok(known)
    }
}

/// The store could not be read.
struct NotRead;

fn not_read(error: muster_store::StoreError) -> NotRead {
    tracing::warn!(error = %error, "lines wait: the store could not be read");
    NotRead
}
