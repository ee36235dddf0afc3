//! Everything the store in memory holds of the decisions, and what each write does to it. A
//! commit that fails half way is undone step by step.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::KnownRun;
use muster_engine::row::{
    AgentRow, ApprovalRow, AttemptRow, EventRow, ExecutionRow, HeldBy, InstanceRow, KeyRow,
    Payload, PayloadKind, RunRow,
};
use muster_wire::{AgentId, ExecutionId, InstanceId, RunId, Timestamp};
use rustc_hash::FxHashMap;

use super::fleet::Fleet;
use super::outbox::Message;
use crate::{QuarantineItem, StoreError, StoreResult, change};

/// A step back.
pub(super) type Undo = Box<dyn FnOnce(&mut State)>;

/// A large payload and when it was stored.
pub(super) struct Large {
    pub(super) at: Timestamp,
    pub(super) bytes: Payload,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) leases: BTreeMap<u32, u64>,
    /// Executions in the order of their acceptance.
    pub(super) executions: BTreeMap<u64, ExecutionRow>,
    pub(super) number_of: FxHashMap<ExecutionId, u64>,
    pub(super) members: FxHashMap<RunId, Vec<u64>>,
    next: u64,
    pub(super) attempts: BTreeMap<(ExecutionId, u32), AttemptRow>,
    pub(super) payloads: FxHashMap<(ExecutionId, PayloadKind), Payload>,
    pub(super) large: BTreeMap<(ExecutionId, PayloadKind), Large>,
    pub(super) events: BTreeMap<u64, Arc<EventRow>>,
    pub(super) keys: BTreeMap<Arc<str>, KeyRow>,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    pub(super) approvals: BTreeMap<(ExecutionId, Arc<str>), ApprovalRow>,
    pub(super) outbox: BTreeMap<u64, Message>,
    pub(super) agents: BTreeMap<AgentId, AgentRow>,
    pub(super) instances: BTreeMap<(AgentId, InstanceId), InstanceRow>,
    pub(super) fleet: Fleet,
    pub(super) hold: Option<Arc<str>>,
    pub(super) held_by: BTreeMap<Option<AgentId>, HeldBy>,
    pub(super) quarantine: BTreeMap<String, QuarantineItem>,
}

impl State {
    pub(super) fn last_seq(&self) -> u64 {
        self.events.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    pub(super) fn execution(&self, id: &ExecutionId) -> Option<&ExecutionRow> {
        self.executions.get(self.number_of.get(id)?)
    }

    /// The members of a run, earliest first.
    pub(super) fn run_members(&self, run: &RunId) -> impl Iterator<Item = &ExecutionRow> {
        let numbers = self.members.get(run).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|n| self.executions.get(n))
    }

    pub(super) fn known_run(&self, run: &RunId) -> Option<KnownRun> {
        let first = self.run_members(run).next();
        let mark = self.runs.get(run);
        let root = first.map(|row| &row.root).or(mark.map(|mark| &mark.root))?;
        Some(KnownRun {
            root: root.clone(),
            cancelled: mark.is_some_and(|mark| mark.cancelled_at.is_some()),
            paused: mark.is_some_and(|mark| mark.paused_at.is_some()),
            size: self.run_members(run).count() as u64,
        })
    }

    /// Applies every write, or none.
    pub(super) fn apply_all(&mut self, writes: &[Write]) -> StoreResult<()> {
        let mut undo = Vec::with_capacity(writes.len());
        for write in writes {
            match self.apply(write) {
                Ok(step) => undo.push(step),
                Err(error) => {
                    undo.into_iter().rev().for_each(|step| step(self));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, write: &Write) -> StoreResult<Undo> {
        match write {
            Write::InsertExecution(row) => self.insert_execution(row),
            // What was restarted may have been retired since.
            Write::UpdateExecution {
                id,
                change: ExecutionChange::RestartedAs { .. },
            } if self.execution(id).is_none() => Ok(Box::new(|_| {})),
            Write::UpdateExecution { id, change } => {
                let row = self.execution_mut(id)?;
                let before = row.clone();
                if !change::apply(row, change) {
                    return Err(conflict(format!("execution {id} has ended or is gone")));
                }
                let id = id.clone();
                Ok(Box::new(move |state| {
                    if let Ok(row) = state.execution_mut(&id) {
                        *row = before;
                    }
                }))
            }
            Write::InsertAttempt(row) => {
                self.execution_mut(&row.execution)?;
                let key = (row.execution.clone(), row.n);
                if self.attempts.contains_key(&key) {
                    return Err(conflict(format!(
                        "execution {} has an attempt {} already",
                        row.execution, row.n
                    )));
                }
                self.attempts.insert(key.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    state.attempts.remove(&key);
                }))
            }
            Write::AcceptAttempt { attempt, at } => {
                self.change_attempt(&attempt.execution, attempt.n, |row| {
                    row.accepted_at = Some(*at);
                })
            }
            Write::EndAttempt {
                attempt,
                at,
                outcome,
                evidence,
            } => self.change_attempt(&attempt.execution, attempt.n, |row| {
                row.ended_at = Some(*at);
                row.outcome = Some(*outcome);
                row.evidence.clone_from(evidence);
            }),
            Write::PutPayload {
                execution,
                kind,
                bytes,
            } => {
                self.execution_mut(execution)?;
                let key = (execution.clone(), *kind);
                let before = self.payloads.insert(key.clone(), bytes.clone());
                Ok(Box::new(move |state| match before {
                    Some(bytes) => drop(state.payloads.insert(key, bytes)),
                    None => drop(state.payloads.remove(&key)),
                }))
            }
            Write::PutAgent(row) => {
                let id = row.id.clone();
                let before = self.agents.insert(id.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    put_back(&mut state.agents, id, before)
                }))
            }
            Write::SetAgentHold { agent, held } => {
                let row = self
                    .agents
                    .get_mut(agent)
                    .ok_or_else(|| conflict(format!("there is no agent {agent}")))?;
                let before = std::mem::replace(&mut row.held, *held);
                let id = agent.clone();
                Ok(Box::new(move |state| {
                    if let Some(row) = state.agents.get_mut(&id) {
                        row.held = before;
                    }
                }))
            }
            Write::DropAgent(agent) => {
                let row = self.agents.remove(agent);
                let held_by = self.held_by.remove_entry(&Some(agent.clone()));
                let gone: Vec<_> = self
                    .instances
                    .keys()
                    .filter(|(of, _)| of == agent)
                    .cloned()
                    .collect();
                let gone: Vec<_> = gone
                    .into_iter()
                    .filter_map(|key| self.instances.remove_entry(&key))
                    .collect();
                Ok(Box::new(move |state| {
                    state.agents.extend(row.map(|row| (row.id.clone(), row)));
                    state.instances.extend(gone);
                    state.held_by.extend(held_by);
                }))
            }
            Write::SetAgentCap { agent, cap } => {
                let row = self
                    .agents
                    .get_mut(agent)
                    .ok_or_else(|| conflict(format!("there is no agent {agent}")))?;
                let before = std::mem::replace(&mut row.cap, *cap);
                let id = agent.clone();
                Ok(Box::new(move |state| {
                    if let Some(row) = state.agents.get_mut(&id) {
                        row.cap = before;
                    }
                }))
            }
            Write::PutInstance(row) => {
                let key = (row.agent.clone(), row.id.clone());
                let before = self.instances.insert(key.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    put_back(&mut state.instances, key, before);
                }))
            }
            Write::PutRun(row) => {
                let id = row.id.clone();
                let before = self.runs.get(&id).cloned();
                let mut run = (**row).clone();
                if let Some(old) = &before {
                    run.cancelled_at = run.cancelled_at.or(old.cancelled_at);
                    run.cancelled_by = run.cancelled_by.or_else(|| old.cancelled_by.clone());
                    run.paused_at = run.paused_at.or(old.paused_at);
                    run.paused_by = run.paused_by.or_else(|| old.paused_by.clone());
                    run.source = run.source.or_else(|| old.source.clone());
                }
                self.runs.insert(id.clone(), run);
                Ok(Box::new(move |state| put_back(&mut state.runs, id, before)))
            }
            Write::ResumeRun(id) => {
                let before = self.runs.get(id).cloned();
                if let Some(run) = self.runs.get_mut(id) {
                    run.paused_at = None;
                    run.paused_by = None;
                }
                let id = id.clone();
                Ok(Box::new(move |state| put_back(&mut state.runs, id, before)))
            }
            Write::PutApproval(row) => {
                let key = (row.execution.clone(), row.request.clone());
                let before = self.approvals.insert(key.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    put_back(&mut state.approvals, key, before);
                }))
            }
            Write::InsertDelivery(row) => {
                let seq = row.seq;
                self.outbox.insert(seq, Message::new(row));
                Ok(Box::new(move |state| {
                    state.outbox.remove(&seq);
                }))
            }
            Write::SetAgentTags { agent, tags } => {
                let row = self
                    .agents
                    .get_mut(agent)
                    .ok_or_else(|| conflict(format!("there is no agent {agent}")))?;
                let before = std::mem::replace(&mut row.tags, tags.clone());
                let id = agent.clone();
                Ok(Box::new(move |state| {
                    if let Some(row) = state.agents.get_mut(&id) {
                        row.tags = before;
                    }
                }))
            }
            Write::InsertKey(row) => {
                if self.keys.contains_key(&row.key) {
                    return Err(conflict("the idempotency key is there already".into()));
                }
                let key = row.key.clone();
                self.keys.insert(key.clone(), (**row).clone());
                Ok(Box::new(move |state| {
                    state.keys.remove(&key);
                }))
            }
            Write::InsertEvent(row) => {
                let seq = row.seq;
                self.events.insert(seq, row.clone());
                Ok(Box::new(move |state| {
                    state.events.remove(&seq);
                }))
            }
            Write::Fleet(write) => self.fleet.apply(write),
            Write::SetHold(reason) => {
                let before = std::mem::replace(&mut self.hold, reason.clone());
                Ok(Box::new(move |state| state.hold = before))
            }
            Write::SetHeldBy { agent, by } => {
                let before = match by {
                    Some(by) => self.held_by.insert(agent.clone(), by.clone()),
                    None => self.held_by.remove(agent),
                };
                let agent = agent.clone();
                Ok(Box::new(move |state| {
                    put_back(&mut state.held_by, agent, before);
                }))
            }
        }
    }

    fn insert_execution(&mut self, row: &ExecutionRow) -> StoreResult<Undo> {
        if self.number_of.contains_key(&row.id) {
            return Err(conflict(format!("execution {} is there already", row.id)));
        }
        let n = self.next;
        self.next += 1;
        self.number_of.insert(row.id.clone(), n);
        self.members.entry(row.run.clone()).or_default().push(n);
        self.executions.insert(n, row.clone());
        Ok(Box::new(move |state| state.forget(n)))
    }

    /// Takes an execution's row out, and nothing that hangs on it.
    pub(super) fn forget(&mut self, n: u64) {
        let Some(row) = self.executions.remove(&n) else {
            return;
        };
        self.number_of.remove(&row.id);
        if let Some(members) = self.members.get_mut(&row.run) {
            members.retain(|member| *member != n);
            if members.is_empty() {
                self.members.remove(&row.run);
            }
        }
    }

    fn execution_mut(&mut self, id: &ExecutionId) -> StoreResult<&mut ExecutionRow> {
        self.number_of
            .get(id)
            .and_then(|n| self.executions.get_mut(n))
            .ok_or_else(|| conflict(format!("there is no execution {id}")))
    }

    fn change_attempt(
        &mut self,
        execution: &ExecutionId,
        n: u32,
        change: impl FnOnce(&mut AttemptRow),
    ) -> StoreResult<Undo> {
        let key = (execution.clone(), n);
        let row = self
            .attempts
            .get_mut(&key)
            .ok_or_else(|| conflict(format!("execution {execution} has no attempt {n}")))?;
        let before = row.clone();
        change(row);
        Ok(Box::new(move |state| {
            state.attempts.insert(key, before);
        }))
    }
}

/// Puts a value back where it was.
pub(super) fn put_back<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

/// A write that does not go with what is there.
pub(super) fn conflict(text: String) -> StoreError {
    StoreError::Conflict(text)
}
