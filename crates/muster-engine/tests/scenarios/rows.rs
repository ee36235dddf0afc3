//! A store made of maps: what the writes made of the rows, checked while they are applied, and
//! what a start would read back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::KnownRun;
use muster_engine::fleet::row::{FleetHistoryRow, FleetSnapshot, FleetWrite, NodeRow, WorkerRow};
use muster_engine::row::*;
use muster_wire::*;

/// What the writes made of the rows.
#[derive(Default, Clone)]
pub(crate) struct Rows {
    pub(crate) executions: BTreeMap<ExecutionId, ExecutionRow>,
    pub(crate) attempts: BTreeMap<(ExecutionId, u32), AttemptRow>,
    pub(crate) agents: BTreeMap<AgentId, AgentRow>,
    pub(crate) instances: BTreeMap<(AgentId, InstanceId), InstanceRow>,
    pub(crate) runs: BTreeMap<RunId, RunRow>,
    pub(crate) approvals: BTreeMap<(ExecutionId, Arc<str>), ApprovalRow>,
    pub(crate) outbox: Vec<DeliveryRow>,
    pub(crate) keys: HashMap<Arc<str>, KeyRow>,
    pub(crate) payloads: BTreeMap<(ExecutionId, PayloadKind), Payload>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) hold: Option<Arc<str>>,
    pub(crate) held_by: Vec<(Option<AgentId>, muster_engine::row::HeldBy)>,
    pub(crate) nodes: BTreeMap<NodeId, NodeRow>,
    pub(crate) workers: BTreeMap<WorkerId, WorkerRow>,
    pub(crate) fleet_history: Vec<FleetHistoryRow>,
}

impl Rows {
    pub(crate) fn apply(&mut self, write: Write) {
        match write {
            Write::Fleet(FleetWrite::PutNode(row)) => {
                self.nodes.insert(row.id.clone(), *row);
            }
            Write::Fleet(FleetWrite::DeleteNode(id)) => {
                self.nodes.remove(&id);
                self.fleet_history
                    .retain(|line| line.node.as_ref() != Some(&id));
            }
            Write::Fleet(FleetWrite::PutWorker(row)) => {
                self.workers.insert(row.id.clone(), *row);
            }
            Write::Fleet(FleetWrite::InsertHistory(row)) => self.fleet_history.push(*row),
            Write::InsertExecution(row) => {
                let old = self.executions.insert(row.id.clone(), (*row).clone());
                assert!(old.is_none(), "{} was inserted twice", row.id);
            }
            Write::UpdateExecution { id, change } => {
                let row = self
                    .executions
                    .get_mut(&id)
                    .expect("an update of a row that is there");
                let always = matches!(
                    change,
                    ExecutionChange::Late { .. } | ExecutionChange::RestartedAs { .. }
                );
                if !always {
                    assert!(
                        !row.status.is_terminal(),
                        "{id} was changed after its end: {change:?}"
                    );
                }
                match change {
                    ExecutionChange::Started {
                        attempt,
                        started_at,
                        clock_from,
                        active_us,
                        over_cap,
                        holds,
                    } => {
                        row.status = Status::Running;
                        row.status_reason = None;
                        row.absorb_until = None;
                        row.wait = None;
                        row.resume_to = None;
                        assert!(attempt > row.attempt, "attempts only grow");
                        row.attempt = attempt;
                        row.started_at = Some(started_at);
                        row.clock_from = Some(clock_from);
                        row.active_us = active_us;
                        row.over_cap = over_cap;
                        row.holds = holds;
                    }
                    ExecutionChange::Absorbed {
                        until,
                        started_at,
                        clock_from,
                        over_cap,
                    } => {
                        row.over_cap = over_cap;
                        row.status = Status::Running;
                        row.status_reason = Some("awaiting_agent_restart".into());
                        row.absorb_until = Some(until);
                        row.wait = None;
                        row.resume_to = None;
                        row.started_at = Some(started_at);
                        row.clock_from = Some(clock_from);
                    }
                    ExecutionChange::Ended(end) => {
                        assert!(end.status.is_terminal());
                        row.status = end.status;
                        row.status_reason = end.reason;
                        row.error_category = end.category;
                        row.error_text = end.error;
                        row.error_status = end.http_status;
                        row.ended_at = Some(end.at);
                        row.absorb_until = None;
                        row.clock_from = None;
                        row.result_size = end.result_size;
                        row.wait = None;
                        row.resume_to = None;
                    }
                    ExecutionChange::Moved(moved) => {
                        assert!(!moved.status.is_terminal());
                        row.status = moved.status;
                        row.status_reason = moved.reason;
                        row.wait = moved.wait;
                        row.resume_to = moved.resume_to;
                        row.absorb_until = moved.absorb_until;
                        row.clock_from = moved.clock_from;
                        row.active_us = moved.active_us;
                        row.over_cap = moved.over_cap;
                    }
                    ExecutionChange::RestartedAs { id } => {
                        row.links_mut().restarted_as = Some(id);
                    }
                    ExecutionChange::Late { status } => row.late_outcome = Some(status),
                }
            }
            Write::InsertAttempt(row) => {
                let old = self.attempts.insert((row.execution.clone(), row.n), *row);
                assert!(old.is_none(), "an attempt was inserted twice");
            }
            Write::AcceptAttempt { attempt, at } => {
                self.attempts
                    .get_mut(&(attempt.execution, attempt.n))
                    .expect("attempt")
                    .accepted_at = Some(at);
            }
            Write::EndAttempt {
                attempt,
                at,
                outcome,
                ..
            } => {
                let row = self
                    .attempts
                    .get_mut(&(attempt.execution, attempt.n))
                    .expect("attempt");
                assert!(row.ended_at.is_none(), "an attempt ended twice");
                row.ended_at = Some(at);
                row.outcome = Some(outcome);
            }
            Write::PutPayload {
                execution,
                kind,
                bytes,
            } => {
                self.payloads.insert((execution, kind), bytes);
            }
            Write::PutAgent(row) => {
                self.agents.insert(row.id.clone(), *row);
            }
            Write::SetAgentHold { agent, held } => {
                self.agents.get_mut(&agent).expect("agent").held = held
            }
            Write::DropAgent(agent) => {
                self.agents.remove(&agent);
                self.instances.retain(|(of, _), _| *of != agent);
            }
            Write::SetAgentCap { agent, cap } => {
                self.agents.get_mut(&agent).expect("agent").cap = cap
            }
            Write::PutInstance(row) => {
                self.instances
                    .insert((row.agent.clone(), row.id.clone()), *row);
            }
            Write::PutRun(row) => {
                let mut run = *row;
                if let Some(old) = self.runs.get(&run.id) {
                    run.cancelled_at = run.cancelled_at.or(old.cancelled_at);
                    run.cancelled_by = run.cancelled_by.or_else(|| old.cancelled_by.clone());
                    run.paused_at = run.paused_at.or(old.paused_at);
                    run.paused_by = run.paused_by.or_else(|| old.paused_by.clone());
                    run.source = run.source.or_else(|| old.source.clone());
                }
                self.runs.insert(run.id.clone(), run);
            }
            Write::ResumeRun(id) => {
                let run = self.runs.get_mut(&id).expect("run");
                run.paused_at = None;
                run.paused_by = None;
            }
            Write::PutApproval(row) => {
                self.approvals
                    .insert((row.execution.clone(), row.request.clone()), *row);
            }
            Write::InsertDelivery(row) => {
                let told = self.outbox.iter().any(|old| old.execution == row.execution);
                assert!(!told, "an end is told once");
                self.outbox.push(*row);
            }
            Write::SetAgentTags { agent, tags } => {
                self.agents.get_mut(&agent).expect("agent").tags = tags;
            }
            Write::InsertKey(row) => {
                let old = self.keys.insert(row.key.clone(), *row);
                assert!(old.is_none(), "a key was inserted twice");
            }
            Write::InsertEvent(row) => {
                assert_eq!(
                    row.seq,
                    self.events.len() as u64 + 1,
                    "the event sequence is dense"
                );
                self.events.push((*row).clone());
            }
            Write::SetHold(reason) => self.hold = reason,
            Write::SetHeldBy { agent, by } => {
                self.held_by.retain(|(of, _)| *of != agent);
                self.held_by.extend(by.map(|by| (agent, by)));
            }
        }
    }

    /// Executions in the order of their acceptance.
    pub(crate) fn in_order(&self) -> Vec<&ExecutionRow> {
        let mut rows: Vec<_> = self.executions.values().collect();
        rows.sort_by_key(|row| row.queue.seq);
        rows
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut queues: BTreeMap<(AgentId, u8, u64), u64> = BTreeMap::new();
        let mut open = Vec::new();
        for row in self.executions.values() {
            if row.status == Status::Queued {
                *queues
                    .entry((row.agent.clone(), row.queue.class, row.queue.turn))
                    .or_default() += 1;
            } else if !row.status.is_terminal() {
                let attempt = self.attempts.get(&(row.id.clone(), row.attempt)).cloned();
                open.push(OpenExecution {
                    row: row.clone(),
                    attempt,
                });
            }
        }
        Snapshot {
            fleet: FleetSnapshot {
                nodes: self.nodes.values().cloned().collect(),
                workers: self.workers.values().cloned().collect(),
            },
            last_seq: self.events.len() as u64,
            last_at: self.events.last().map_or(Timestamp::ZERO, |e| e.at),
            agents: self.agents.values().cloned().collect(),
            instances: self.instances.values().cloned().collect(),
            open,
            queues: queues
                .into_iter()
                .map(|((agent, class, turn), count)| QueueCount {
                    agent,
                    class,
                    turn,
                    count,
                })
                .collect(),
            runs: self.runs.values().cloned().collect(),
            approvals: self
                .approvals
                .values()
                .filter(|a| a.decided_at.is_none() || (a.told.is_none() && a.decision.is_some()))
                .cloned()
                .collect(),
            hold: self.hold.clone(),
            held_by: self.held_by.clone(),
        }
    }

    pub(crate) fn run(&self, run: &RunId) -> Option<KnownRun> {
        let members: Vec<_> = self
            .executions
            .values()
            .filter(|row| row.run == *run)
            .collect();
        let marked = self.runs.get(run);
        let root = members.first().map(|row| row.root.clone())?;
        Some(KnownRun {
            root,
            cancelled: marked.is_some_and(|m| m.cancelled_at.is_some()),
            paused: marked.is_some_and(|m| m.paused_at.is_some()),
            size: members.len() as u64,
        })
    }
}
