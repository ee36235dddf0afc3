//! A world for the engine in tests: a store made of maps, a clock that only the test moves, and
//! a list of what was sent. Commits at once unless told to crash between commit and release.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use muster_engine::effect::{Dispatch, Effects, ExecutionChange, Load, Reply, TellCancel};
use muster_engine::event::*;
use muster_engine::row::*;
use muster_engine::{Engine, Event, Limits, Send, Write};
use muster_wire::*;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What the writes made of the rows.
#[derive(Default, Clone)]
pub(crate) struct Rows {
    pub(crate) executions: BTreeMap<ExecutionId, ExecutionRow>,
    pub(crate) attempts: BTreeMap<(ExecutionId, u32), AttemptRow>,
    pub(crate) agents: BTreeMap<AgentId, AgentRow>,
    pub(crate) instances: BTreeMap<(AgentId, InstanceId), InstanceRow>,
    pub(crate) runs: BTreeMap<RunId, RunRow>,
    pub(crate) keys: HashMap<Arc<str>, KeyRow>,
    pub(crate) payloads: BTreeMap<(ExecutionId, PayloadKind), Payload>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) hold: Option<Arc<str>>,
}

impl Rows {
    fn apply(&mut self, write: Write) {
        match write {
            Write::InsertExecution(row) => {
                let old = self.executions.insert(row.id.clone(), (*row).clone());
                assert!(old.is_none(), "{} was inserted twice", row.id);
            }
            Write::UpdateExecution { id, change } => {
                let row = self
                    .executions
                    .get_mut(&id)
                    .expect("an update of a row that is there");
                if !matches!(change, ExecutionChange::Late { .. }) {
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
                    } => {
                        row.status = Status::Running;
                        row.status_reason = Some("awaiting_agent_restart".into());
                        row.absorb_until = Some(until);
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
            Write::PutInstance(row) => {
                self.instances
                    .insert((row.agent.clone(), row.id.clone()), *row);
            }
            Write::PutRun(row) => {
                self.runs.insert(row.id.clone(), *row);
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
        }
    }

    fn snapshot(&self) -> Snapshot {
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
            hold: self.hold.clone(),
        }
    }

    fn run(&self, run: &RunId) -> Option<KnownRun> {
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
            size: members.len() as u64,
        })
    }
}

/// The world.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) rows: Rows,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
    pub(crate) dispatched: Vec<Dispatch>,
    pub(crate) told: Vec<TellCancel>,
    pub(crate) sends: Vec<Send>,
    pub(crate) replies: HashMap<Waiter, Vec<Reply>>,
    pub(crate) waiters: u64,
    pub(crate) names: u64,
    /// Newest receipts of beats, as the shell keeps them.
    pub(crate) beats: HashMap<InstanceKey, Timestamp>,
    /// Loads that have not been answered yet, when they are answered by hand.
    pub(crate) loads: Vec<Load>,
    pub(crate) answer_loads: bool,
    /// Recount every invariant after each step.
    pub(crate) checked: bool,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        let now = Timestamp(1_000_000_000_000);
        let mut effects = Effects::default();
        let engine = Engine::restore(
            limits.clone(),
            [7; 32],
            now,
            Snapshot {
                last_at: now,
                ..Snapshot::default()
            },
            &mut effects,
        );
        let mut world = World {
            engine,
            rows: Rows::default(),
            now,
            limits,
            dispatched: Vec::new(),
            told: Vec::new(),
            sends: Vec::new(),
            replies: HashMap::new(),
            waiters: 0,
            names: 0,
            beats: HashMap::new(),
            loads: Vec::new(),
            answer_loads: true,
            checked: true,
        };
        world.carry_out(effects);
        world
    }

    /// The plane dies: what was not committed is gone, what was sent is sent.
    pub(crate) fn crash(&mut self, away: Duration) {
        self.now = self.now + away;
        let mut effects = Effects::default();
        self.loads.clear();
        self.engine = Engine::restore(
            self.limits.clone(),
            [7; 32],
            self.now,
            self.rows.snapshot(),
            &mut effects,
        );
        self.beats.clear();
        self.carry_out(effects);
    }

    pub(crate) fn step(&mut self, event: Event) {
        let mut effects = Effects::default();
        self.engine.step(self.now, event, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Effects) {
        for write in effects.writes {
            self.rows.apply(write);
        }
        if self.checked
            && let Err(broken) = self.engine.check()
        {
            panic!("invariant broken: {broken}");
        }
        for send in effects.sends {
            match &send {
                Send::Dispatch(dispatch) => self.dispatched.push((**dispatch).clone()),
                Send::TellCancel(tell) => self.told.push((**tell).clone()),
                Send::Dial { .. } | Send::Probe { .. } | Send::CloseIdle(_) => {}
            }
            self.sends.push(send);
        }
        for (waiter, reply) in effects.replies {
            self.replies.entry(waiter).or_default().push(reply);
        }
        self.loads.extend(effects.loads);
        if self.answer_loads {
            self.answer_loads();
        }
    }

    /// Answers what was asked from the rows.
    pub(crate) fn answer_loads(&mut self) {
        while let Some(load) = self.loads.pop() {
            let as_of = self.rows.events.len() as u64;
            let event = match load {
                Load::Submission(mut s) => {
                    s.known = Known {
                        as_of: Some(as_of),
                        key: s
                            .idempotency_key
                            .as_ref()
                            .and_then(|key| self.rows.keys.get(key))
                            .map(|key| {
                                (
                                    key.execution.clone(),
                                    key.body_hash,
                                    self.rows
                                        .executions
                                        .get(&key.execution)
                                        .cloned()
                                        .map(Box::new),
                                )
                            }),
                        run: self.rows.run(&s.run),
                        parent: s
                            .parent
                            .as_ref()
                            .and_then(|p| self.rows.executions.get(&p.execution))
                            .cloned()
                            .map(Box::new),
                        turn: self
                            .rows
                            .executions
                            .values()
                            .filter(|row| {
                                row.run == s.run
                                    && row.agent == s.agent
                                    && row.status == Status::Queued
                            })
                            .map(|row| row.queue.turn)
                            .max(),
                    };
                    Event::Submitted(s)
                }
                Load::Callback(mut c) => {
                    let row = self
                        .rows
                        .executions
                        .get(&c.from.execution)
                        .cloned()
                        .map(Box::new);
                    c.known = Some((as_of, row));
                    Event::CalledBack(c)
                }
                Load::Cancel(mut c) => {
                    c.known = Some((
                        as_of,
                        self.rows
                            .executions
                            .get(&c.execution)
                            .cloned()
                            .map(Box::new),
                    ));
                    Event::CancelRequested(c)
                }
                Load::Tree(mut t) => {
                    let queued = self
                        .rows
                        .executions
                        .values()
                        .filter(|row| row.run == t.run && row.status == Status::Queued)
                        .cloned()
                        .collect();
                    t.known = Some(KnownTree {
                        as_of,
                        run: self.rows.run(&t.run),
                        queued,
                    });
                    Event::TreeCancelRequested(t)
                }
                Load::Window {
                    agent,
                    after,
                    limit,
                } => {
                    let mut rows: Vec<_> = self
                        .rows
                        .executions
                        .values()
                        .filter(|row| row.agent == agent && row.status == Status::Queued)
                        .filter(|row| after.is_none_or(|after| row.queue > after))
                        .cloned()
                        .collect();
                    rows.sort_by_key(|row| row.queue);
                    let exhausted = rows.len() <= limit;
                    rows.truncate(limit);
                    let rows = rows.into_iter().map(|row| QueuedRow { row }).collect();
                    Event::WindowLoaded {
                        agent,
                        rows,
                        exhausted,
                        as_of,
                    }
                }
            };
            self.step(event);
        }
    }

    /// Moves the clock, stopping at every deadline on the way; receipts of beats are handed in
    /// as the driver does.
    pub(crate) fn pass(&mut self, wait: Duration) {
        let until = self.now + wait;
        while let Some(at) = self.engine.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tick();
        }
        self.now = until;
        self.tick();
    }

    pub(crate) fn tick(&mut self) {
        let mut due = Vec::new();
        self.engine.due_beats(self.now, &mut due);
        for key in due {
            if let Some(at) = self.beats.get(&key).copied() {
                self.step(Event::Heard {
                    key,
                    at,
                    interval: Some(Duration::from_secs(2)),
                });
            }
        }
        self.step(Event::Tick);
    }

    pub(crate) fn waiter(&mut self) -> Waiter {
        self.waiters += 1;
        Waiter(self.waiters)
    }

    pub(crate) fn register(&mut self, agent: &str, instance: &str, url: &str) {
        self.register_as(agent, instance, url, |_| {});
    }

    pub(crate) fn register_as(
        &mut self,
        agent: &str,
        instance: &str,
        url: &str,
        change: impl FnOnce(&mut Registration),
    ) {
        let function = |name: &str, kind, idempotent| Function {
            name: FunctionName::trusted(name),
            kind,
            required: Vec::new(),
            idempotent,
        };
        let mut registration = Registration {
            waiter: self.waiter(),
            agent: AgentId::trusted(agent),
            instance: InstanceId::trusted(instance),
            principal: "owner".into(),
            base_url: url.into(),
            version: "1".into(),
            functions: Arc::new(vec![
                function("f", FunctionKind::Reasoner, false),
                function("s", FunctionKind::Skill, false),
                function("i", FunctionKind::Reasoner, true),
            ]),
            starting: true,
            body: Payload::default(),
            worker: None,
        };
        change(&mut registration);
        self.step(Event::Registered(Box::new(registration)));
    }

    pub(crate) fn beat(&mut self, agent: &str, instance: &str) {
        let key = InstanceKey {
            agent: AgentId::trusted(agent),
            instance: InstanceId::trusted(instance),
        };
        self.beats.insert(key.clone(), self.now);
        self.step(Event::Heard {
            key,
            at: self.now,
            interval: Some(Duration::from_secs(2)),
        });
    }

    pub(crate) fn submission(&mut self, lane: Lane, target: &str) -> Submission {
        self.names += 1;
        let target = Target::parse(target).expect("a target");
        Submission {
            waiter: self.waiter(),
            lane,
            execution: ExecutionId::trusted(format!("exec_{}", self.names)),
            run: RunId::trusted(format!("run_{}", self.names)),
            run_claimed: false,
            parent: None,
            agent: target.agent,
            function: target.function,
            principal: "owner".into(),
            key_hash: None,
            idempotency_key: None,
            body_hash: [0; 16],
            input: Payload(bytes::Bytes::from_static(b"{}")),
            input_stored: None,
            input_fault: None,
            class: None,
            deadline: None,
            session: None,
            actor: None,
            traceparent: None,
            received_at: self.now,
            known: Known::default(),
        }
    }

    /// Submits and returns the waiter and the id it would get.
    pub(crate) fn submit(&mut self, submission: Submission) -> (Waiter, ExecutionId) {
        let (waiter, id) = (submission.waiter, submission.execution.clone());
        self.step(Event::Submitted(Box::new(submission)));
        (waiter, id)
    }

    pub(crate) fn call(&mut self, lane: Lane, target: &str) -> (Waiter, ExecutionId) {
        let submission = self.submission(lane, target);
        self.submit(submission)
    }

    /// A child of a running execution, proved by its live attempt.
    pub(crate) fn child(&mut self, parent: &ExecutionId, target: &str) -> (Waiter, ExecutionId) {
        let mut submission = self.submission(Lane::Async, target);
        submission.parent = Some(self.proof(parent));
        submission.run = self.rows.executions[parent].run.clone();
        submission.run_claimed = true;
        self.submit(submission)
    }

    /// The newest dispatch of an execution.
    pub(crate) fn dispatch_of(&self, id: &ExecutionId) -> Option<&Dispatch> {
        self.dispatched
            .iter()
            .rev()
            .find(|d| d.attempt.execution == *id)
    }

    pub(crate) fn sent(&self, id: &ExecutionId) -> usize {
        self.dispatched
            .iter()
            .filter(|d| d.attempt.execution == *id)
            .count()
    }

    pub(crate) fn attempt(&self, id: &ExecutionId) -> AttemptKey {
        self.dispatch_of(id)
            .expect("it was dispatched")
            .attempt
            .clone()
    }

    pub(crate) fn proof(&self, id: &ExecutionId) -> AttemptRef {
        let dispatch = self.dispatch_of(id).expect("it was dispatched");
        AttemptRef {
            execution: id.clone(),
            proof: Some((dispatch.attempt.n, dispatch.secret.hash())),
        }
    }

    pub(crate) fn outcome(status: Status) -> Outcome {
        Outcome {
            status,
            result: (status == Status::Succeeded)
                .then(|| Payload(bytes::Bytes::from_static(b"42"))),
            result_stored: None,
            error: (status == Status::Failed).then(|| Payload(bytes::Bytes::from_static(b"kaput"))),
            details: None,
            category: (status == Status::Failed).then_some(Category::AgentError),
            reason: None,
            http_status: None,
            usage: None,
        }
    }

    pub(crate) fn answer(&mut self, id: &ExecutionId, status: Status) {
        let attempt = self.attempt(id);
        self.step(Event::Answered {
            attempt,
            outcome: Box::new(Self::outcome(status)),
        });
    }

    pub(crate) fn accept(&mut self, id: &ExecutionId) {
        let attempt = self.attempt(id);
        self.step(Event::Accepted { attempt });
    }

    pub(crate) fn refuse_dial(&mut self, id: &ExecutionId) {
        let attempt = self.attempt(id);
        self.step(Event::DialFailed {
            attempt,
            error: "connection refused".into(),
        });
    }

    pub(crate) fn call_back(&mut self, from: AttemptRef, status: Status) -> Reply {
        let waiter = self.waiter();
        self.step(Event::CalledBack(Box::new(Callback {
            waiter,
            from,
            key_agent: None,
            outcome: Box::new(Self::outcome(status)),
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn goodbye(&mut self, agent: &str) {
        let waiter = self.waiter();
        self.step(Event::Goodbye {
            agent: AgentId::trusted(agent),
            instance: None,
            drain: Duration::from_secs(30),
            waiter,
        });
    }

    pub(crate) fn cancel(&mut self, id: &ExecutionId) -> Reply {
        let waiter = self.waiter();
        self.step(Event::CancelRequested(Box::new(Cancel {
            waiter,
            execution: id.clone(),
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn cancel_tree(&mut self, run: &RunId) -> Reply {
        let waiter = self.waiter();
        self.step(Event::TreeCancelRequested(Box::new(TreeCancel {
            waiter,
            run: run.clone(),
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    /// Answers the gate's outstanding dial of an instance.
    pub(crate) fn dialled(&mut self, agent: &str, ok: bool) -> bool {
        let found = self.sends.iter().rposition(
            |send| matches!(send, Send::Dial { key, .. } if key.agent.as_str() == agent),
        );
        let Some(found) = found else { return false };
        let Send::Dial { key, base_url, .. } = self.sends.remove(found) else {
            return false;
        };
        self.sends
            .retain(|send| !matches!(send, Send::Dial { key: other, .. } if *other == key));
        self.step(Event::Dialled {
            key,
            base_url,
            error: (!ok).then(|| "connection refused".into()),
        });
        true
    }

    /// The one reply of a waiter.
    pub(crate) fn reply(&self, waiter: Waiter) -> Reply {
        let replies = self
            .replies
            .get(&waiter)
            .map(Vec::as_slice)
            .unwrap_or_default();
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies[0].clone()
    }

    pub(crate) fn is_answered(&self, waiter: Waiter) -> bool {
        self.replies.contains_key(&waiter)
    }

    pub(crate) fn refused(&self, waiter: Waiter) -> Category {
        match self.reply(waiter) {
            Reply::Refused(refusal) => refusal.category(),
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn row(&self, id: &ExecutionId) -> &ExecutionRow {
        self.rows
            .executions
            .get(id)
            .unwrap_or_else(|| panic!("{id} has no row"))
    }

    pub(crate) fn status(&self, id: &ExecutionId) -> Status {
        self.row(id).status
    }

    pub(crate) fn category(&self, id: &ExecutionId) -> Option<Category> {
        self.row(id).error_category.clone()
    }
}
