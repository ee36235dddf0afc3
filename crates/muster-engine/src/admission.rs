//! The one admission: every lane's submissions, in the contract's order, before anything is
//! written. A refusal is a value and leaves no trace but a counter.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, ExecutionId, ExecutionKind, FunctionKind, Lane, ParentEnd, Status, Timestamp,
};

use crate::effect::{Count, Effects, Load, Notice, Reply, Write};
use crate::engine::Engine;
use crate::event::Submission;
use crate::execution::{Execution, Held, Phase};
use crate::joins::same_call;
use crate::limits::AtCapacity;
use crate::lineage::Lineage;
use crate::recent::UsedKey;
use crate::refusal::Refusal;
use crate::row::{EventKind, EventRow, ExecutionRow, KeyRow, Links, PayloadKind, QueueKey};
use crate::start::Launch;

/// The class of a root that names none.
pub(crate) const CLASS: u8 = 5;
/// How many agents a row's `holds` names.
const HOLDS_MAX: usize = 32;

/// What is still missing for a decision, or the decision to refuse.
pub(crate) enum Pause {
    Load,
    Refuse(Refusal),
}

impl Engine {
    pub(crate) fn submitted(
        &mut self,
        now: Timestamp,
        mut submission: Box<Submission>,
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
        match self.admit(now, &mut submission) {
            Ok(mut lineage) => match lineage.hit.take() {
                Some(hit) => self.take_over(now, *submission, lineage, &hit, out),
                None => self.make_room(now, submission, lineage, out),
            },
            Err(Pause::Load) => out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => self.refuse(now, &submission, &refusal, out),
        }
    }

    /// Rows 4 to 12. Row 3 came before; a replay hit skips what comes after row 8.
    pub(crate) fn admit(
        &mut self,
        now: Timestamp,
        submission: &mut Submission,
    ) -> Result<Lineage, Pause> {
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
        let mut lineage = self.lineage(submission)?;
        if lineage.parent_ended && self.ends_with_parent(submission) {
            let parent = lineage.parent.unwrap_or(lineage.root);
            return refuse(Refusal::ParentEnded { parent });
        }
        self.source_ended(submission)?;
        self.tags_approved(&submission.agent)?;
        self.replayed(submission, &mut lineage)?;
        if lineage.hit.is_some() {
            return Ok(lineage);
        }
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
        self.llm_available(now, submission)?;
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

    /// Row 13: the cap, then the queue.
    fn make_room(
        &mut self,
        now: Timestamp,
        submission: Box<Submission>,
        lineage: Lineage,
        out: &mut Effects,
    ) {
        let cap = self.cap(&submission.agent);
        let held = self.hold.is_some();
        let Some(agent) = self.agents.get(&submission.agent) else {
            return;
        };
        let running = agent.running();
        let held = held || agent.stopped();
        // A call to an agent on which the caller's own tree holds a slot would wait for itself.
        let exempt = lineage.proved && lineage.holds.contains(&submission.agent);
        let room = cap.is_none_or(|cap| running < cap) && agent.queue.is_empty();
        if !held && !lineage.paused && (exempt || room) {
            let over_cap = cap.is_some_and(|cap| running >= cap);
            return self.start_new(now, *submission, lineage, over_cap, out);
        }
        if let (AtCapacity::Reject, false, Some(cap)) =
            (self.limits.at_capacity, held || lineage.paused, cap)
        {
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
        if lineage.paused {
            return self.admit_paused(now, *submission, lineage, key, out);
        }
        let parent = lineage.parent.clone().filter(|_| lineage.proved);
        let caller = parent.as_ref().and_then(|id| self.executions.get(id));
        let among = [
            Some(submission.agent.clone()),
            caller.map(|caller| caller.row.agent.clone()),
        ];
        if submission.lane == Lane::Sync {
            self.give_place(now, submission, key, parent);
        } else {
            self.enqueue(now, *submission, lineage, key, out);
        }
        self.break_deadlocks(now, among, out);
    }

    pub(crate) fn start_new(
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
        if lineage.paused {
            return self.admit_paused(now, submission, lineage, key, out);
        }
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
        self.waits_for_child(parent.as_ref(), true);
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
        let joined = (submission.run_claimed || execution.row.parent.is_some()).then_some(&run);
        let enqueued = owner.queue.enqueue(key, id, joined, window);
        let position = owner.queue.position(&key, now);
        let mut receipt = self.receipt(now, &execution, false);
        receipt.position = Some(position);
        out.replies
            .push((waiter, Reply::Accepted(Box::new(receipt))));
        if enqueued.keep {
            self.keep(execution);
        } else {
            self.lose_child(&execution.row);
            self.left_in_store(&execution.row);
            self.leave_run(&run);
        }
        if let Some(dropped) = enqueued.dropped {
            self.forget_queued(&dropped, out);
        }
        self.pump(now, &agent, out);
    }

    /// A queued execution is only in the store from now on. Nobody can be held on it there: who
    /// joined it by its key is told that it goes on.
    pub(crate) fn forget_queued(&mut self, id: &ExecutionId, out: &mut Effects) {
        if let Some(mut execution) = self.take(id) {
            for held in execution.held.drain(..) {
                let still = Reply::StillRunning {
                    execution: id.clone(),
                    run: execution.row.run.clone(),
                    shutdown: false,
                };
                out.replies.push((held.waiter, still));
            }
            self.disarm(&mut execution);
            self.lose_child(&execution.row);
            self.left_in_store(&execution.row);
            self.leave_run(&execution.row.run.clone());
        }
    }

    /// Makes the execution: its row, its run, its key. The caller writes the row.
    pub(crate) fn accept(
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
        let (kind, idempotent, by_function) = match function {
            Some(f) if f.cancel_with_parent => (f.kind, f.idempotent, ParentEnd::Cancel),
            Some(f) => (f.kind, f.idempotent, ParentEnd::Detach),
            None => (FunctionKind::Reasoner, false, ParentEnd::Detach),
        };
        let own = self
            .limits
            .agents
            .get(&submission.agent)
            .and_then(|a| a.deadline);
        let deadline = submission.deadline.or(own).unwrap_or(self.limits.deadline);
        // A parent that proved nothing is for display: nothing of it ends with it.
        let on_parent_end = match submission.on_parent_end.unwrap_or(by_function) {
            wish if lineage.proved => wish,
            ParentEnd::Cancel | ParentEnd::Detach => ParentEnd::Detach,
        };
        let links = Links {
            webhook: submission.webhook.clone(),
            ..lineage.links
        };
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
            wait: None,
            resume_to: None,
            on_parent_end,
            links: (links != Links::default()).then(|| Box::new(links)),
        };
        self.join_run(&row.run, &row.root, lineage.size, false);
        self.add_child(&row);
        if let Some(key) = &submission.idempotency_key {
            let used = UsedKey {
                execution: row.id.clone(),
                body_hash: submission.key_hash(),
            };
            self.recent.key(self.seq + 1, key.clone(), used);
            out.writes.push(Write::InsertKey(Box::new(KeyRow {
                key: key.clone(),
                execution: row.id.clone(),
                body_hash: submission.key_hash(),
                at: now,
            })));
        }
        out.notices
            .push(Notice::Count(Count::Started { lane: row.lane }));
        self.restarted(now, submission, &row, out);
        Box::new(Execution::new(Arc::new(row), Phase::Queued, idempotent))
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
        self.count_refusal(now, submission, refusal.category(), what, out);
        self.uncount(submission);
        out.replies
            .push((submission.waiter, Reply::Refused(refusal.clone())));
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
