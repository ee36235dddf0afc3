//! The engine: what it holds, and which file handles which event. Decides nothing itself.

use std::sync::Arc;

use muster_wire::{AgentId, AttemptSecret, Category, ExecutionId, RunId, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::agent::Agent;
use crate::approvals::Approvals;
use crate::circuits::Circuit;
use crate::effect::{Count, Effects, ExecutionView, Notice, Reply, Write};
use crate::event::{AttemptKey, Event, InstanceKey, Submission, Waiter};
use crate::execution::{Execution, Phase};
use crate::fleet::Fleet;
use crate::joins::Unheard;
use crate::limits::Limits;
use crate::liveness::LivenessLimits;
use crate::recent::Recent;
use crate::recovery::Outage;
use crate::row::{EventKind, EventRow, HeldBy, Payload};
use crate::timers::{TimerKey, Timers};

/// A run with open members in memory.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) root: ExecutionId,
    pub(crate) cancelled: bool,
    /// Number of the event that marked it cancelled in this process.
    pub(crate) marked_at: Option<u64>,
    /// Number of the event that marked it paused, until its members are.
    pub(crate) paused_at: Option<u64>,
    /// Executions it has had, open and ended.
    pub(crate) size: u64,
    /// Open members in memory.
    pub(crate) open: u32,
}

/// The state machine. One at a time decides.
#[derive(Debug)]
pub struct Engine {
    pub(crate) limits: Limits,
    pub(crate) secret_key: [u8; 32],
    pub(crate) now: Timestamp,
    pub(crate) seq: u64,
    pub(crate) agents: FxHashMap<AgentId, Agent>,
    pub(crate) executions: FxHashMap<ExecutionId, Box<Execution>>,
    pub(crate) runs: FxHashMap<RunId, Run>,
    /// Runs whose new members are admitted as paused.
    pub(crate) paused_runs: FxHashSet<RunId>,
    /// Open executions in memory, by the one that called them.
    pub(crate) children: FxHashMap<ExecutionId, FxHashSet<ExecutionId>>,
    /// Approvals that are pending, and those whose agent has not been told.
    pub(crate) approvals: Approvals,
    /// Number of the latest end after which queued children of it may be in the store alone.
    pub(crate) bereaved_at: Option<u64>,
    /// They are being read now: one read at a time.
    pub(crate) reading_bereaved: bool,
    /// Nothing was read yet of what ended before the last crash and left children in queues.
    pub(crate) unread_bereaved: bool,
    /// Who is called at which address.
    pub(crate) addresses: FxHashMap<Arc<str>, Vec<InstanceKey>>,
    /// Supervised processes: whether theirs will start them again.
    pub(crate) workers: FxHashMap<Arc<str>, bool>,
    pub(crate) recent: Recent,
    /// At which agent a sync caller waits for its turn.
    pub(crate) places: FxHashMap<Waiter, AgentId>,
    pub(crate) unheard: FxHashMap<u64, Unheard>,
    pub(crate) timers: Timers,
    /// The circuits of LLM endpoints, in the order of the configuration.
    pub(crate) circuits: Vec<Circuit>,
    /// Open observed executions.
    pub(crate) observed: u32,
    /// Queued and waiting over all agents.
    pub(crate) waiting_total: u64,
    pub(crate) hold: Option<Arc<str>>,
    /// Who holds all, as far as that is known.
    pub(crate) hold_by: Option<HeldBy>,
    pub(crate) draining: bool,
    pub(crate) drain_ended: bool,
    pub(crate) store_full: bool,
    /// The last time in which nobody decided.
    pub(crate) outage: Outage,
    /// Nodes, workers, placements.
    pub(crate) fleet: Fleet,
}

/// The secret of an attempt: a keyed hash of its name, so that it needs no store to be known
/// again and cannot be guessed without the key.
pub fn attempt_secret(key: &[u8; 32], execution: &ExecutionId, n: u32) -> AttemptSecret {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(execution.as_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(&n.to_le_bytes());
    let mut secret = [0u8; 12];
    secret.copy_from_slice(&hasher.finalize().as_bytes()[..12]);
    AttemptSecret::from_bytes(secret)
}

impl Engine {
    /// Applies one event. Never blocks, never fails, never reads a clock. `now` never goes back:
    /// an earlier one counts as the last one.
    pub fn step(&mut self, now: Timestamp, event: Event, out: &mut Effects) {
        let now = now.max(self.now);
        self.now = now;
        match event {
            Event::Submitted(submission) => self.submitted(now, submission, out),
            Event::Answered { attempt, outcome } => self.answered(now, &attempt, *outcome, out),
            Event::Accepted { attempt } => self.accepted(now, &attempt, out),
            Event::Taken { attempt } => self.taken(now, &attempt, out),
            Event::DialFailed { attempt, error } => self.dial_failed(now, &attempt, error, out),
            Event::TakenBack { attempt } => self.taken_back(now, &attempt, out),
            Event::BrokeAfterSend { attempt, error } => self.broke(now, &attempt, &error, out),
            Event::TimedOut { attempt } => self.timed_out(now, &attempt, out),
            Event::CalledBack(callback) => self.called_back(now, callback, out),
            Event::Reported(report) => self.reported(now, *report, out),
            Event::Signed { from } => self.signed(now, &from, out),
            Event::Registered(registration) => self.registered(now, *registration, out),
            Event::Heard { key, at, interval } => self.heard(now, &key, at, interval, out),
            Event::Goodbye {
                agent,
                instance,
                drain,
                waiter,
            } => {
                self.goodbye(now, &agent, instance.as_ref(), drain, waiter, out);
            }
            Event::WorkerChanged { worker, change } => {
                self.worker_changed(now, worker, &change, out)
            }
            Event::Dialled {
                key,
                base_url,
                error,
            } => self.dialled(now, &key, &base_url, error, out),
            Event::Sought { key, found } => self.sought(now, &key, found, out),
            Event::Probed { key, seen } => self.probed(now, &key, seen, out),
            Event::CancelRequested(cancel) => self.cancel_requested(now, cancel, out),
            Event::TreeCancelRequested(cancel) => self.tree_cancel_requested(now, cancel, out),
            Event::PauseRequested(wish) => self.pause_requested(now, wish, out),
            Event::TreePauseRequested(wish) => self.tree_pause_requested(now, wish, out),
            Event::ApprovalAsked(ask) => self.approval_asked(now, ask, out),
            Event::ApprovalDecided(verdict) => self.approval_decided(now, verdict, out),
            Event::ApprovalTold {
                execution,
                request,
                told,
            } => self.approval_told(now, execution, request, told, out),
            Event::AwaiterReported(awaiter) => self.awaiter_reported(now, awaiter, out),
            Event::BereavedLoaded { rows, more, as_of } => {
                self.bereaved_loaded(now, rows, more, as_of, out);
            }
            Event::TagsDecided {
                agent,
                tags,
                approve,
                by,
                waiter,
            } => self.tags_decided(now, &agent, &tags, approve, &by, waiter, out),
            Event::LlmChecked { endpoint, error } => self.llm_checked(now, &endpoint, error, out),
            Event::CancelTold { attempt, receipt } => {
                self.cancel_told(now, &attempt, &receipt, out)
            }
            Event::Unheard { execution } => self.was_unheard(now, &execution),
            Event::PlaceLeft { waiter } => self.place_left(waiter),
            Event::WindowLoaded {
                agent,
                rows,
                exhausted,
                as_of,
            } => {
                self.window_loaded(now, &agent, rows, exhausted, as_of, out);
            }
            Event::Held {
                agent,
                reason,
                by,
                waiter,
            } => self.held(now, agent.as_ref(), (reason, by), waiter, out),
            Event::AgentRetired {
                agent,
                dry_run,
                waiter,
            } => self.agent_retired(now, &agent, dry_run, waiter, out),
            Event::CapSet { agent, cap, waiter } => self.cap_set(now, &agent, cap, waiter, out),
            Event::StoreRoom { full } => self.store_full = full,
            Event::Draining => self.drain(now, out),
            Event::DrainEnded => self.end_drain(now, out),
            Event::Fleet(event) => self.fleet_step(now, *event, out),
            Event::Asked { question, waiter } => {
                let answer = self.ask(now, question);
                out.replies.push((waiter, answer));
            }
            Event::Tick => {}
        }
        self.fire(now, out);
    }

    /// The next moment at which a [`Event::Tick`] could change anything.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// The number of the last event it has given.
    pub fn last_seq(&self) -> u64 {
        self.seq
    }

    /// Instances whose beats are due at `now`: hand in their newest receipts with
    /// [`Event::Heard`] before the next step, or they count as silent.
    pub fn due_beats(&self, now: Timestamp, into: &mut Vec<InstanceKey>) {
        self.timers.due_instances(now, into);
    }

    /// How many executions it holds.
    pub fn open_executions(&self) -> usize {
        self.executions.len()
    }

    fn fire(&mut self, now: Timestamp, out: &mut Effects) {
        while let Some(key) = self.timers.pop(now) {
            match key {
                TimerKey::Execution(id) => self.execution_due(now, &id, out),
                TimerKey::Instance(key) => self.instance_due(now, &key, out),
                TimerKey::Place(waiter) => self.place_due(now, waiter, out),
                TimerKey::Circuit(index) => self.circuit_due(now, index, out),
                TimerKey::Node(id) => self.node_due(now, &id, out),
                TimerKey::Worker(id) => self.worker_due(now, &id, out),
                TimerKey::Doubt => self.doubt_due(now, out),
            }
        }
    }

    pub(crate) fn liveness(&self, agent: &AgentId) -> LivenessLimits {
        LivenessLimits {
            restart_grace: self.restart_grace(agent).unwrap_or_default(),
        }
    }

    /// How long a failed dial of this agent is absorbed; `None` is not at all.
    pub(crate) fn restart_grace(&self, agent: &AgentId) -> Option<std::time::Duration> {
        self.limits
            .agents
            .get(agent)
            .and_then(|a| a.restart_grace)
            .or(self.limits.restart_grace)
    }

    /// Puts an execution back, with its timer set.
    pub(crate) fn keep(&mut self, mut execution: Box<Execution>) {
        let look = execution.next_look(self.limits.queue_timeout);
        let id = execution.row.id.clone();
        self.timers.arm(&mut execution.armed, look, || {
            TimerKey::Execution(id.clone())
        });
        self.executions.insert(id, execution);
    }

    /// Takes an execution out to change it; whoever takes it keeps or ends it.
    pub(crate) fn take(&mut self, id: &ExecutionId) -> Option<Box<Execution>> {
        self.executions.remove(id)
    }

    /// Takes an execution out for good: its timer goes.
    pub(crate) fn disarm(&mut self, execution: &mut Execution) {
        let id = execution.row.id.clone();
        self.timers.arm(&mut execution.armed, None, || {
            TimerKey::Execution(id.clone())
        });
    }

    /// Counts a new open member of a run.
    pub(crate) fn join_run(&mut self, run: &RunId, root: &ExecutionId, size: u64, cancelled: bool) {
        let run = self.runs.entry(run.clone()).or_insert_with(|| Run {
            root: root.clone(),
            cancelled,
            marked_at: None,
            paused_at: None,
            size,
            open: 0,
        });
        run.open += 1;
        run.size += 1;
    }

    /// A member left memory: it ended, or is only in the store now.
    pub(crate) fn leave_run(&mut self, run: &RunId) {
        if let Some(held) = self.runs.get_mut(run) {
            held.open -= 1;
            if held.open == 0 {
                self.runs.remove(run);
            }
        }
    }

    /// Writes and tells a line of the event sequence.
    pub(crate) fn tell(&mut self, mut line: EventRow, out: &mut Effects) -> u64 {
        self.seq += 1;
        line.seq = self.seq;
        let line = Arc::new(line);
        out.writes.push(Write::InsertEvent(line.clone()));
        out.notices.push(Notice::Event(line));
        self.seq
    }

    /// Tells the newest view of an execution.
    pub(crate) fn publish(
        execution: &Execution,
        result: Option<Payload>,
        details: Option<Payload>,
        out: &mut Effects,
    ) -> Arc<ExecutionView> {
        let view = Arc::new(ExecutionView {
            row: execution.row.clone(),
            result,
            details,
        });
        out.notices.push(Notice::Execution(view.clone()));
        view
    }

    pub(crate) fn count_refusal(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        category: Category,
        what: u64,
        out: &mut Effects,
    ) {
        if !self.recent.repeats_refusal(now, what) {
            out.notices.push(Notice::Count(Count::Refused {
                lane: submission.lane,
                agent: submission.agent.clone(),
                category,
            }));
        }
    }

    fn drain(&mut self, now: Timestamp, out: &mut Effects) {
        if !self.draining {
            self.draining = true;
            self.tell(EventRow::line(EventKind::PlaneDraining, now), out);
        }
    }

    fn held(
        &mut self,
        now: Timestamp,
        agent: Option<&AgentId>,
        (reason, by): (Option<Arc<str>>, Arc<str>),
        waiter: Waiter,
        out: &mut Effects,
    ) {
        let is_held = match agent {
            None => self.hold.is_some(),
            Some(id) => self.agents.get(id).is_some_and(|agent| agent.held),
        };
        let is_known = agent.is_none_or(|id| self.agents.contains_key(id));
        if is_known && !is_held && reason.is_none() {
            out.replies.push((waiter, Reply::Done));
            return;
        }
        let mut line = EventRow::line(EventKind::HoldChanged, now);
        let kept = reason.clone().map(|reason| HeldBy {
            by,
            at: now,
            reason,
        });
        line.text = Some(reason.clone().unwrap_or_else(|| "lifted".into()));
        match agent {
            None => {
                self.hold = reason.clone();
                self.hold_by.clone_from(&kept);
                out.writes.push(Write::SetHold(reason));
                self.tell(line, out);
            }
            Some(id) => {
                let Some(agent) = self.agents.get_mut(id) else {
                    out.replies.push((waiter, Reply::UnknownAgent));
                    return;
                };
                agent.held = reason.is_some();
                agent.held_by.clone_from(&kept);
                out.writes.push(Write::SetAgentHold {
                    agent: id.clone(),
                    held: agent.held,
                });
                line.agent = Some(id.clone());
                self.tell(line, out);
            }
        }
        out.writes.push(Write::SetHeldBy {
            agent: agent.cloned(),
            by: kept,
        });
        out.replies.push((waiter, Reply::Done));
        let freed: Vec<AgentId> = match agent {
            Some(id) => vec![id.clone()],
            None => self.agents.keys().cloned().collect(),
        };
        for id in freed {
            self.wait_anew(now, &id, out);
            self.release_absorbed(now, &id, out);
            self.pump(now, &id, out);
            self.break_deadlocks(now, [Some(id), None], out);
        }
    }

    fn end_drain(&mut self, now: Timestamp, out: &mut Effects) {
        self.drain_ended = true;
        let agents: Vec<AgentId> = self.agents.keys().cloned().collect();
        for id in agents {
            self.refuse_places(now, &id, &crate::Refusal::Draining, out);
        }
        let open: Vec<ExecutionId> = self.executions.keys().cloned().collect();
        for id in open {
            self.shut_down_one(now, &id, out);
        }
    }
}

impl EventRow {
    /// An empty line of a kind; its number comes when it is told.
    pub(crate) fn line(kind: EventKind, at: Timestamp) -> Self {
        Self {
            seq: 0,
            at,
            kind,
            execution: None,
            run: None,
            agent: None,
            function: None,
            instance: None,
            node: None,
            worker: None,
            attempt: None,
            status: None,
            reason: None,
            category: None,
            text: None,
        }
    }

    /// A line about an execution as it now is.
    pub(crate) fn of(kind: EventKind, at: Timestamp, execution: &Execution) -> Self {
        let row = &execution.row;
        Self {
            execution: Some(row.id.clone()),
            run: Some(row.run.clone()),
            agent: Some(row.agent.clone()),
            function: Some(row.function.clone()),
            instance: execution.attempt().map(|a| a.instance.clone()),
            attempt: (row.attempt > 0).then_some(row.attempt),
            status: Some(row.status),
            reason: row.status_reason.clone(),
            category: row.error_category.clone(),
            ..Self::line(kind, at)
        }
    }
}

/// The key of an execution's live attempt.
pub(crate) fn attempt_key(execution: &Execution) -> Option<AttemptKey> {
    let attempt = execution.attempt()?;
    Some(AttemptKey {
        execution: execution.row.id.clone(),
        n: attempt.n,
    })
}

/// Whether an execution is queued.
pub(crate) fn is_queued(execution: &Execution) -> bool {
    matches!(execution.phase, Phase::Queued)
}
