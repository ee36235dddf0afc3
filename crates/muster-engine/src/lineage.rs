//! What a submission hangs from: its run, root and parent, and what they pass on. Checks that
//! nothing above it was cancelled. Knows nothing of room.

use std::sync::Arc;

use muster_wire::{AgentId, ExecutionId, FunctionName, RunId, Status, Timestamp};

use crate::admission::{CLASS, Pause};
use crate::engine::Engine;
use crate::event::{ReplayHit, Submission};
use crate::liveness::InstanceState;
use crate::refusal::Refusal;
use crate::row::Links;

/// What a submission hangs from.
pub(crate) struct Lineage {
    pub(crate) run: RunId,
    pub(crate) root: ExecutionId,
    pub(crate) parent: Option<ExecutionId>,
    pub(crate) depth: u32,
    pub(crate) holds: Vec<AgentId>,
    pub(crate) class: u8,
    pub(crate) size: u64,
    /// The parent proved itself and is open.
    pub(crate) proved: bool,
    /// The parent that is named has ended.
    pub(crate) parent_ended: bool,
    /// The run is paused: its new members are, too.
    pub(crate) paused: bool,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) actor: Option<Arc<str>>,
    /// What is taken over or passed on of a source run.
    pub(crate) links: Links,
    /// The execution of the source run that answers it.
    pub(crate) hit: Option<Box<ReplayHit>>,
}

impl Engine {
    /// Row 6, and what the new execution hangs from.
    pub(crate) fn lineage(&self, submission: &Submission) -> Result<Lineage, Pause> {
        let read = submission.known.as_of.is_some();
        let mut lineage = Lineage {
            run: submission.run.clone(),
            root: submission.execution.clone(),
            parent: submission.parent.as_ref().map(|p| p.execution.clone()),
            depth: 0,
            holds: Vec::new(),
            class: submission.class.unwrap_or(CLASS).min(9),
            size: 0,
            proved: false,
            parent_ended: false,
            paused: false,
            session: submission.session.clone(),
            actor: submission.actor.clone(),
            links: Links::default(),
            hit: None,
        };
        let cancelled =
            |run: &RunId| Err(Pause::Refuse(Refusal::RunCancelled { run: run.clone() }));
        let caller_cancelled = |caller: &ExecutionId| {
            let caller = caller.clone();
            Err(Pause::Refuse(Refusal::CallerCancelled { caller }))
        };
        if let Some(claimed) = &submission.parent {
            if let Some(parent) = self.executions.get(&claimed.execution) {
                let row = &parent.row;
                lineage.depth = row.depth + 1;
                if self.proves(parent, claimed.proof) {
                    if parent.disowned {
                        return caller_cancelled(&row.id);
                    }
                    lineage.proved = true;
                    lineage.run = row.run.clone();
                    lineage.holds = row.holds.clone();
                    lineage.class = submission.class.unwrap_or(row.queue.class).min(9);
                    lineage.session = lineage.session.or_else(|| row.session.clone());
                    lineage.actor = lineage.actor.or_else(|| row.actor.clone());
                }
            } else if let Some(ended) = self.recent.ended(&claimed.execution) {
                if ended.status == Status::Cancelled {
                    return caller_cancelled(&claimed.execution);
                }
                lineage.parent_ended = true;
            } else if !read {
                return Err(Pause::Load);
            } else if let Some(row) = &submission.known.parent {
                if row.status == Status::Cancelled {
                    return caller_cancelled(&row.id);
                }
                lineage.depth = row.depth + 1;
                lineage.parent_ended = row.status.is_terminal();
            }
        }
        if let Some(run) = self.runs.get(&lineage.run) {
            if run.cancelled {
                return cancelled(&lineage.run);
            }
            lineage.root = run.root.clone();
            lineage.size = run.size;
        } else if submission.run_claimed {
            if !read {
                return Err(Pause::Load);
            }
            if let Some(run) = &submission.known.run {
                if run.cancelled {
                    return cancelled(&lineage.run);
                }
                lineage.root = run.root.clone();
                lineage.size = run.size;
                lineage.paused = run.paused;
            }
        }
        lineage.paused |= self.paused_runs.contains(&lineage.run);
        Ok(lineage)
    }

    /// Why no instance may be called, when all are down.
    pub(crate) fn down_evidence(
        &self,
        now: Timestamp,
        agent: &AgentId,
        function: &FunctionName,
    ) -> Option<String> {
        let limits = self.liveness(agent);
        let agent = self.agents.get(agent)?;
        let mut best: Option<String> = None;
        for instance in agent.instances.iter().rev() {
            let verdict = instance.facts.verdict(now, limits);
            if verdict.state != InstanceState::Down && instance.offers(function).is_some() {
                return None;
            }
            best.get_or_insert(verdict.evidence);
        }
        Some(best.unwrap_or_else(|| "it has no process".into()))
    }
}
