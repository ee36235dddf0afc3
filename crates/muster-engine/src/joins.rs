//! Calls that are the same call again: idempotency keys, and submissions whose answer was lost.
//! They join the execution that exists instead of making one.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use muster_wire::{AgentId, ExecutionId, FunctionName, Lane, RunId, Status, Timestamp};
use rustc_hash::FxHasher;

use crate::admission::Pause;
use crate::effect::{Effects, ExecutionView, Receipt, Reply};
use crate::engine::Engine;
use crate::event::Submission;
use crate::execution::{Execution, Held};
use crate::recent::UsedKey;
use crate::refusal::Refusal;
use crate::row::ExecutionRow;

/// A name for "the same call again", from the same caller.
pub(crate) fn same_call(
    principal: &str,
    run: &RunId,
    parent: Option<&ExecutionId>,
    agent: &AgentId,
    function: &FunctionName,
    input_hash: &[u8; 16],
) -> u64 {
    let mut hasher = FxHasher::default();
    (principal, run, parent, agent, function, input_hash).hash(&mut hasher);
    hasher.finish()
}

/// An accepted submission whose 202 could not be written.
#[derive(Debug, Clone)]
pub(crate) struct Unheard {
    pub(crate) execution: ExecutionId,
    pub(crate) until: Timestamp,
}

impl Engine {
    /// Row 3, and calls whose 202 was lost: joins an execution that exists. `Ok(true)` when it did.
    pub(crate) fn joins(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        out: &mut Effects,
    ) -> Result<bool, Pause> {
        if let Some(key) = &submission.idempotency_key {
            let used = match self.recent.used_key(key) {
                Some(used) => Some(used.clone()),
                None => match submission.known.as_of {
                    Some(as_of) if self.recent.keys_cover(as_of) => submission
                        .known
                        .key
                        .as_ref()
                        .map(|(execution, body_hash, _)| UsedKey {
                            execution: execution.clone(),
                            body_hash: *body_hash,
                        }),
                    _ => return Err(Pause::Load),
                },
            };
            let Some(used) = used else { return Ok(false) };
            if used.body_hash != submission.key_hash() {
                let key = key.rsplit('\0').next().unwrap_or(key).to_owned();
                return Err(Pause::Refuse(Refusal::IdempotencyConflict { key }));
            }
            let row = match &submission.known.key {
                Some((id, _, row)) if *id == used.execution => row.as_deref(),
                _ => None,
            };
            return self.join(now, submission, &used.execution, row, out);
        }
        if self.unheard.is_empty() || submission.lane == Lane::Sync {
            return Ok(false);
        }
        let what = same_call(
            &submission.principal,
            &submission.run,
            submission.parent.as_ref().map(|p| &p.execution),
            &submission.agent,
            &submission.function,
            &submission.body_hash,
        );
        match self.unheard.remove(&what) {
            Some(unheard)
                if unheard.until > now && self.executions.contains_key(&unheard.execution) =>
            {
                self.join(now, submission, &unheard.execution, None, out)
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn join(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        id: &ExecutionId,
        stored: Option<&ExecutionRow>,
        out: &mut Effects,
    ) -> Result<bool, Pause> {
        let sync = submission.lane == Lane::Sync;
        if let Some(found) = self.executions.get(id) {
            if sync && self.drain_ended {
                let still = Reply::StillRunning {
                    execution: id.clone(),
                    run: found.row.run.clone(),
                    shutdown: true,
                };
                out.replies.push((submission.waiter, still));
            } else if sync {
                let until = now + self.limits.sync_wait;
                if let Some(mut execution) = self.take(id) {
                    execution.held.push(Held {
                        waiter: submission.waiter,
                        until,
                    });
                    self.keep(execution);
                }
            } else if let Some(execution) = self.executions.get(id) {
                let receipt = self.receipt(now, execution, true);
                out.replies
                    .push((submission.waiter, Reply::Accepted(Box::new(receipt))));
            }
            return Ok(true);
        }
        let Some(row) = stored else {
            return Err(Pause::Load);
        };
        if !row.status.is_terminal()
            && row.status != Status::Queued
            && self.recent.ended(id).is_some()
        {
            // The read came before the end; ask again.
            return Err(Pause::Load);
        }
        if sync && row.status.is_terminal() {
            let view = ExecutionView {
                row: Arc::new(row.clone()),
                result: None,
                details: None,
            };
            out.replies
                .push((submission.waiter, Reply::Ended(Arc::new(view))));
        } else if sync {
            // Queued behind the window: nobody can be held on it here.
            let still = Reply::StillRunning {
                execution: id.clone(),
                run: row.run.clone(),
                shutdown: false,
            };
            out.replies.push((submission.waiter, still));
        } else {
            let receipt = Receipt {
                execution: id.clone(),
                run: row.run.clone(),
                status: row.status,
                kind: row.function_kind,
                created_at: row.created_at,
                position: None,
                replayed: true,
                replay_hit: false,
            };
            out.replies
                .push((submission.waiter, Reply::Accepted(Box::new(receipt))));
        }
        Ok(true)
    }

    pub(crate) fn receipt(&self, now: Timestamp, execution: &Execution, replayed: bool) -> Receipt {
        let row = &execution.row;
        let queued = row.status == Status::Queued;
        let position = if queued && replayed {
            self.agents
                .get(&row.agent)
                .map(|agent| agent.queue.position(&row.queue, now))
        } else {
            None
        };
        Receipt {
            execution: row.id.clone(),
            run: row.run.clone(),
            status: row.status,
            kind: row.function_kind,
            created_at: row.created_at,
            position,
            replayed,
            replay_hit: false,
        }
    }

    pub(crate) fn was_unheard(&mut self, now: Timestamp, id: &ExecutionId) {
        const JOINED_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);
        const REMEMBERED: usize = 1_024;
        let Some(execution) = self.executions.get(id) else {
            return;
        };
        let row = &execution.row;
        let what = same_call(
            &row.principal,
            &row.run,
            row.parent.as_ref(),
            &row.agent,
            &row.function,
            &row.input_hash,
        );
        if self.unheard.len() >= REMEMBERED {
            self.unheard.retain(|_, unheard| unheard.until > now);
        }
        if self.unheard.len() < REMEMBERED {
            self.unheard.insert(
                what,
                Unheard {
                    execution: id.clone(),
                    until: now + JOINED_WITHIN,
                },
            );
        }
    }
}
