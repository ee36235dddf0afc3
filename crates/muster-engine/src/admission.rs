//! The one admission: every lane's submissions, in the contract's order, before anything is
//! written. A refusal is a value and leaves no trace but a counter.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionName, Lane, RunId, Status, Timestamp,
};
use rustc_hash::FxHasher;

use crate::effect::{Count, Effects, ExecutionView, Load, Notice, Receipt, Reply, Write};
use crate::engine::Engine;
use crate::event::{Submission, Waiter};
use crate::execution::{Execution, Held, Phase};
use crate::limits::AtCapacity;
use crate::liveness::InstanceState;
use crate::queue::Place;
use crate::recent::UsedKey;
use crate::refusal::Refusal;
use crate::row::{EventKind, EventRow, ExecutionRow, KeyRow, PayloadKind, QueueKey};
use crate::start::Launch;
use crate::timers::TimerKey;

/// The class of a root that names none.
const CLASS: u8 = 5;
/// How many agents a row's `holds` names.
const HOLDS_MAX: usize = 32;

/// What a submission hangs from.
struct Lineage {
    run: RunId,
    root: ExecutionId,
    parent: Option<ExecutionId>,
    depth: u32,
    holds: Vec<AgentId>,
    class: u8,
    size: u64,
    /// The parent proved itself and is open.
    proved: bool,
    session: Option<Arc<str>>,
    actor: Option<Arc<str>>,
}

/// What is still missing for a decision, or the decision to refuse.
enum Pause {
    Load,
    Refuse(Refusal),
}

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

impl Engine {
    pub(crate) fn submitted(
        &mut self,
        now: Timestamp,
        submission: Box<Submission>,
        out: &mut Effects,
    ) {
        if now.since(submission.received_at) > self.limits.answer_within {
            return self.refuse(
                now,
                &submission,
                &Refusal::Overloaded { retry_after: 1 },
                out,
            );
        }
        match self.joins(now, &submission, out) {
            Ok(true) => return,
            Ok(false) => {}
            Err(Pause::Load) => return out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => return self.refuse(now, &submission, &refusal, out),
        }
        match self.admit(now, &submission) {
            Ok(lineage) => self.make_room(now, submission, lineage, out),
            Err(Pause::Load) => out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => self.refuse(now, &submission, &refusal, out),
        }
    }

    /// Rows 4 to 12. Row 3 came before; rows 7, 8 and 11 wait for their features.
    fn admit(&mut self, now: Timestamp, submission: &Submission) -> Result<Lineage, Pause> {
        let refuse = |refusal| Err(Pause::Refuse(refusal));
        let Some(agent) = self.agents.get(&submission.agent) else {
            return refuse(Refusal::NoAgent {
                agent: submission.agent.clone(),
            });
        };
        if agent.function(&submission.function).is_none() {
            return refuse(Refusal::NoFunction {
                agent: submission.agent.clone(),
                function: submission.function.clone(),
                has: agent.functions().iter().map(|f| f.name.clone()).collect(),
            });
        }
        if let Some(fault) = &submission.input_fault {
            return refuse(Refusal::Input {
                field: fault.field.clone(),
                message: fault.message.clone(),
            });
        }
        let lineage = self.lineage(submission)?;
        if self.draining {
            return refuse(Refusal::Draining);
        }
        if self.store_full {
            return refuse(Refusal::StoreFull);
        }
        if let Some(evidence) = self.down_evidence(now, &submission.agent, &submission.function) {
            return refuse(Refusal::AgentDown {
                agent: submission.agent.clone(),
                evidence,
            });
        }
        if lineage.depth > self.limits.depth_max {
            return refuse(Refusal::TooDeep {
                max: self.limits.depth_max,
            });
        }
        if lineage.size >= self.limits.run_size_max {
            return refuse(Refusal::RunTooLarge {
                max: self.limits.run_size_max,
            });
        }
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

    /// Row 6, and what the new execution hangs from.
    fn lineage(&self, submission: &Submission) -> Result<Lineage, Pause> {
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
            session: submission.session.clone(),
            actor: submission.actor.clone(),
        };
        let cancelled =
            |run: &RunId| Err(Pause::Refuse(Refusal::RunCancelled { run: run.clone() }));
        if let Some(claimed) = &submission.parent {
            if let Some(parent) = self.executions.get(&claimed.execution) {
                let row = &parent.row;
                lineage.depth = row.depth + 1;
                if self.proves(parent, claimed.proof) {
                    if parent.disowned {
                        return cancelled(&row.run);
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
                    return cancelled(&ended.run);
                }
            } else if !read {
                return Err(Pause::Load);
            } else if let Some(row) = &submission.known.parent {
                if row.status == Status::Cancelled {
                    return cancelled(&row.run);
                }
                lineage.depth = row.depth + 1;
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
            }
        }
        Ok(lineage)
    }

    /// Row 3, and calls whose 202 was lost: joins an execution that exists. `Ok(true)` when it did.
    fn joins(
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
            if used.body_hash != submission.body_hash {
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

    fn join(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        id: &ExecutionId,
        stored: Option<&ExecutionRow>,
        out: &mut Effects,
    ) -> Result<bool, Pause> {
        let sync = submission.lane == Lane::Sync;
        if self.executions.contains_key(id) {
            if sync {
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
            };
            out.replies
                .push((submission.waiter, Reply::Accepted(Box::new(receipt))));
        }
        Ok(true)
    }

    /// Row 13: the cap, then the queue.
    fn make_room(
        &mut self,
        now: Timestamp,
        submission: Box<Submission>,
        lineage: Lineage,
        out: &mut Effects,
    ) {
        let cap = self.limits.cap(&submission.agent);
        let held = self.hold.is_some();
        let Some(agent) = self.agents.get(&submission.agent) else {
            return;
        };
        let running = agent.running();
        let held = held || agent.held;
        // A call to an agent on which the caller's own tree holds a slot would wait for itself.
        let exempt = lineage.proved && lineage.holds.contains(&submission.agent);
        let room = cap.is_none_or(|cap| running < cap) && agent.queue.is_empty();
        if !held && (exempt || room) {
            let over_cap = cap.is_some_and(|cap| running >= cap);
            return self.start_new(now, *submission, lineage, over_cap, out);
        }
        if let (AtCapacity::Reject, false, Some(cap)) = (self.limits.at_capacity, held, cap) {
            let refusal = Refusal::AgentFull {
                agent: submission.agent.clone(),
                running,
                cap,
            };
            return self.refuse(now, &submission, &refusal, out);
        }
        if agent.queue.len() >= u64::from(self.limits.queue_capacity) {
            let capacity = u64::from(self.limits.queue_capacity);
            let refusal = Refusal::QueueFull {
                agent: submission.agent.clone(),
                capacity,
            };
            return self.refuse(now, &submission, &refusal, out);
        }
        if self.waiting_total >= self.limits.queue_capacity_total {
            let capacity = self.limits.queue_capacity_total;
            let refusal = Refusal::QueueFull {
                agent: submission.agent.clone(),
                capacity,
            };
            return self.refuse(now, &submission, &refusal, out);
        }
        let own_run = !submission.run_claimed && submission.parent.is_none();
        let last = match agent.queue.last_turn(&lineage.run) {
            Some(last) => last,
            None if own_run => None,
            None if submission.known.as_of.is_some() => submission.known.turn,
            None => return out.loads.push(Load::Submission(submission)),
        };
        let turn = last.unwrap_or(0).max(agent.turn) + 1;
        let key = QueueKey {
            class: lineage.class,
            turn,
            seq: self.seq + 1,
        };
        let parent = lineage
            .parent
            .as_ref()
            .filter(|_| lineage.proved)
            .and_then(|id| self.executions.get(id));
        let among = [
            Some(submission.agent.clone()),
            parent.map(|parent| parent.row.agent.clone()),
        ];
        if submission.lane == Lane::Sync {
            self.give_place(now, submission, key);
        } else {
            self.enqueue(now, *submission, lineage, key, out);
            self.break_deadlocks(now, among, out);
        }
    }

    fn start_new(
        &mut self,
        now: Timestamp,
        submission: Submission,
        lineage: Lineage,
        over_cap: bool,
        out: &mut Effects,
    ) {
        let turn = self
            .agents
            .get(&submission.agent)
            .map_or(0, |agent| agent.turn);
        let key = QueueKey {
            class: lineage.class,
            turn,
            seq: self.seq + 1,
        };
        let waiter = submission.waiter;
        let lane = submission.lane;
        let mut execution = self.accept(now, &submission, lineage, key, out);
        Arc::make_mut(&mut execution.row).over_cap = over_cap;
        if lane == Lane::Sync {
            let until = submission.received_at.max(now) + self.limits.sync_wait;
            execution.held.push(Held { waiter, until });
        }
        let id = execution.row.id.clone();
        self.launch(
            now,
            execution,
            Launch::New {
                input: submission.input,
            },
            out,
        );
        if lane != Lane::Sync
            && let Some(execution) = self.executions.get(&id)
        {
            let receipt = self.receipt(now, execution, false);
            out.replies
                .push((waiter, Reply::Accepted(Box::new(receipt))));
        }
    }

    fn enqueue(
        &mut self,
        now: Timestamp,
        submission: Submission,
        lineage: Lineage,
        key: QueueKey,
        out: &mut Effects,
    ) {
        let waiter = submission.waiter;
        let parent = lineage.proved.then(|| lineage.parent.clone()).flatten();
        let execution = self.accept(now, &submission, lineage, key, out);
        out.writes
            .push(Write::InsertExecution(execution.row.clone()));
        if submission.input_stored.is_none() {
            out.writes.push(Write::PutPayload {
                execution: execution.row.id.clone(),
                kind: PayloadKind::Input,
                bytes: submission.input,
            });
        }
        self.tell(
            EventRow::of(EventKind::ExecutionQueued, now, &execution),
            out,
        );
        Self::publish(&execution, None, None, out);
        if let Some(parent) = parent.and_then(|id| self.executions.get_mut(&id)) {
            parent.queued_children += 1;
        }
        let (agent, id, run) = (
            execution.row.agent.clone(),
            execution.row.id.clone(),
            execution.row.run.clone(),
        );
        self.waiting_total += 1;
        let window = self.limits.queue_window;
        let Some(owner) = self.agents.get_mut(&agent) else {
            return;
        };
        let enqueued = owner.queue.enqueue(key, id, &run, window);
        let position = owner.queue.position(&key, now);
        let mut receipt = self.receipt(now, &execution, false);
        receipt.position = Some(position);
        out.replies
            .push((waiter, Reply::Accepted(Box::new(receipt))));
        if enqueued.keep {
            self.keep(execution);
        } else {
            self.leave_run(&run);
        }
        if let Some(dropped) = enqueued.dropped {
            self.forget_queued(&dropped);
        }
        self.pump(now, &agent, out);
    }

    /// A queued execution is only in the store from now on.
    pub(crate) fn forget_queued(&mut self, id: &ExecutionId) {
        if let Some(mut execution) = self.take(id) {
            self.disarm(&mut execution);
            self.leave_run(&execution.row.run.clone());
        }
    }

    fn give_place(&mut self, now: Timestamp, submission: Box<Submission>, key: QueueKey) {
        let until = now + self.limits.sync_wait;
        let waiter = submission.waiter;
        let mut place = Place {
            submission,
            until,
            armed: None,
        };
        self.timers
            .arm(&mut place.armed, Some(until), || TimerKey::Place(waiter));
        self.waiting_total += 1;
        let agent = place.submission.agent.clone();
        self.places.insert(waiter, agent.clone());
        if let Some(agent) = self.agents.get_mut(&agent) {
            // Places write no event, so several may have been given under one number.
            let mut key = key;
            while agent.queue.place_mut(&key).is_some() {
                key.seq += 1;
            }
            agent.queue.take_place(key, place);
        }
    }

    /// A sync caller's turn has come: it is admitted now, with what is true now.
    pub(crate) fn admit_place(&mut self, now: Timestamp, place: Place, out: &mut Effects) {
        let submission = place.submission;
        // Another caller with the same idempotency key may have had its turn before.
        match self.joins(now, &submission, out) {
            Ok(true) => return,
            Ok(false) => {}
            Err(Pause::Load) => return out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => return self.refuse(now, &submission, &refusal, out),
        }
        match self.admit(now, &submission) {
            Ok(lineage) => {
                let mut submission = submission;
                // It is held for what it has left, not anew.
                let left = place.until.since(now);
                submission.received_at = now - (self.limits.sync_wait.saturating_sub(left));
                let until = place.until;
                let id = submission.execution.clone();
                self.start_new(now, *submission, lineage, false, out);
                if let Some(mut execution) = self.take(&id) {
                    for held in &mut execution.held {
                        held.until = until;
                    }
                    self.keep(execution);
                }
            }
            Err(Pause::Load) => out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => self.refuse(now, &submission, &refusal, out),
        }
    }

    /// Makes the execution: its row, its run, its key. The caller writes the row.
    fn accept(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        lineage: Lineage,
        key: QueueKey,
        out: &mut Effects,
    ) -> Box<Execution> {
        let function = self
            .agents
            .get(&submission.agent)
            .and_then(|agent| agent.function(&submission.function));
        let (kind, idempotent) = function
            .map_or((muster_wire::FunctionKind::Reasoner, false), |f| {
                (f.kind, f.idempotent)
            });
        let own = self
            .limits
            .agents
            .get(&submission.agent)
            .and_then(|a| a.deadline);
        let deadline = submission.deadline.or(own).unwrap_or(self.limits.deadline);
        let input_size = submission
            .input_stored
            .unwrap_or(submission.input.len() as u64);
        let row = ExecutionRow {
            id: submission.execution.clone(),
            run: lineage.run,
            root: lineage.root,
            parent: lineage.parent,
            depth: lineage.depth,
            kind: ExecutionKind::Dispatched,
            lane: submission.lane,
            agent: submission.agent.clone(),
            function: submission.function.clone(),
            function_kind: kind,
            status: Status::Queued,
            status_reason: None,
            error_category: None,
            error_text: None,
            error_status: None,
            queue: key,
            attempt: 0,
            holds: lineage.holds,
            over_cap: false,
            created_at: now,
            started_at: None,
            ended_at: None,
            active_us: 0,
            clock_from: None,
            deadline_us: micros(deadline),
            absorb_until: None,
            input_size,
            input_hash: submission.body_hash,
            result_size: None,
            key_hash: submission.key_hash.clone(),
            principal: submission.principal.clone(),
            session: lineage.session,
            actor: lineage.actor,
            traceparent: submission.traceparent.clone(),
            usage: None,
            origin: self.limits.origin,
            late_outcome: None,
        };
        self.join_run(&row.run, &row.root, lineage.size, false);
        if let Some(key) = &submission.idempotency_key {
            let used = UsedKey {
                execution: row.id.clone(),
                body_hash: submission.body_hash,
            };
            self.recent.key(self.seq + 1, key.clone(), used);
            out.writes.push(Write::InsertKey(Box::new(KeyRow {
                key: key.clone(),
                execution: row.id.clone(),
                body_hash: submission.body_hash,
                at: now,
            })));
        }
        out.notices
            .push(Notice::Count(Count::Started { lane: row.lane }));
        Box::new(Execution::new(Arc::new(row), Phase::Queued, idempotent))
    }

    fn receipt(&self, now: Timestamp, execution: &Execution, replayed: bool) -> Receipt {
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
        }
    }

    /// Answers a refusal and counts it.
    pub(crate) fn refuse(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        refusal: &Refusal,
        out: &mut Effects,
    ) {
        let what = same_call(
            &submission.principal,
            &submission.run,
            submission.parent.as_ref().map(|p| &p.execution),
            &submission.agent,
            &submission.function,
            &submission.body_hash,
        );
        self.count_refusal(now, submission.lane, refusal.category(), what, out);
        out.replies
            .push((submission.waiter, Reply::Refused(refusal.clone())));
    }

    /// Refuses every caller that waits for a turn at this agent.
    pub(crate) fn refuse_places(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        refusal: &Refusal,
        out: &mut Effects,
    ) {
        let keys = self
            .agents
            .get(id)
            .map(|agent| agent.queue.all_places())
            .unwrap_or_default();
        for key in keys {
            if let Some(place) = self.remove_place(id, &key) {
                self.refuse(now, &place.submission, refusal, out);
            }
        }
    }

    /// Takes a place away, with its timer.
    pub(crate) fn remove_place(&mut self, id: &AgentId, key: &QueueKey) -> Option<Place> {
        let mut place = self.agents.get_mut(id)?.queue.leave_place(key)?;
        let waiter = place.submission.waiter;
        self.timers
            .arm(&mut place.armed, None, || TimerKey::Place(waiter));
        self.waiting_total -= 1;
        self.places.remove(&waiter);
        Some(place)
    }

    pub(crate) fn place_left(&mut self, waiter: Waiter) {
        if let Some((id, key)) = self.find_place(waiter) {
            self.remove_place(&id, &key);
        }
    }

    pub(crate) fn place_due(&mut self, now: Timestamp, waiter: Waiter, out: &mut Effects) {
        let Some((id, key)) = self.find_place(waiter) else {
            return;
        };
        if let Some(place) = self
            .agents
            .get_mut(&id)
            .and_then(|agent| agent.queue.place_mut(&key))
        {
            place.armed = None;
        }
        if let Some(place) = self.remove_place(&id, &key) {
            let refusal = Refusal::NoTurn {
                agent: id,
                waited: self.limits.sync_wait.as_secs(),
            };
            self.refuse(now, &place.submission, &refusal, out);
        }
    }

    fn find_place(&self, waiter: Waiter) -> Option<(AgentId, QueueKey)> {
        let id = self.places.get(&waiter)?;
        Some((id.clone(), self.agents.get(id)?.queue.place_of(waiter)?))
    }

    /// The agents a started execution holds slots on: its parent's and its own.
    pub(crate) fn add_hold(holds: &mut Vec<AgentId>, agent: &AgentId) {
        if holds.len() < HOLDS_MAX && !holds.contains(agent) {
            holds.push(agent.clone());
        }
    }
}

/// A duration as the rows keep it.
pub(crate) fn micros(wait: Duration) -> i64 {
    i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)
}
