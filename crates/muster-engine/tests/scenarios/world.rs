//! A world for the engine in tests: a store made of maps, a clock that only the test moves, and
//! a list of what was sent. Commits at once unless told to crash between commit and release.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::effect::{Dispatch, Effects, Load, Reply, TellApproval, TellCancel};
use muster_engine::event::*;
use muster_engine::fleet::{FleetEvent, FleetNotice};
use muster_engine::replay;
use muster_engine::row::*;
use muster_engine::{Engine, Event, Limits, Notice, Send};
use muster_wire::*;

use crate::rows::Rows;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The world.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) rows: Rows,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
    pub(crate) dispatched: Vec<Dispatch>,
    pub(crate) told: Vec<TellCancel>,
    pub(crate) wanted_back: Vec<AttemptKey>,
    pub(crate) told_approvals: Vec<TellApproval>,
    pub(crate) llm_checks: Vec<Arc<str>>,
    pub(crate) sends: Vec<Send>,
    pub(crate) fleet_notices: Vec<FleetNotice>,
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
            wanted_back: Vec::new(),
            told_approvals: Vec::new(),
            llm_checks: Vec::new(),
            sends: Vec::new(),
            fleet_notices: Vec::new(),
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

    /// Several events, committed together.
    pub(crate) fn step_together(&mut self, events: Vec<Event>) {
        let mut effects = Effects::default();
        for event in events {
            self.engine.step(self.now, event, &mut effects);
        }
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
                Send::TellApproval(tell) => self.told_approvals.push((**tell).clone()),
                Send::CheckLlm { endpoint } => self.llm_checks.push(endpoint.clone()),
                Send::TakeBack(attempt) => self.wanted_back.push(attempt.clone()),
                Send::Fleet(_)
                | Send::Dial { .. }
                | Send::Probe { .. }
                | Send::Seek { .. }
                | Send::CloseIdle(_) => {}
            }
            self.sends.push(send);
        }
        for notice in effects.notices {
            if let Notice::Fleet(notice) = notice {
                self.fleet_notices.push(*notice);
            }
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
                    let mut known = Known {
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
                        ..Known::default()
                    };
                    let rows = self.rows.in_order();
                    let has_result = |id: &ExecutionId| {
                        let key = (id.clone(), PayloadKind::Result);
                        self.rows.payloads.contains_key(&key)
                    };
                    replay::look_up(rows.iter().copied(), &s, has_result, &mut known);
                    s.known = known;
                    Event::Submitted(s)
                }
                Load::Fleet(mut event) => {
                    if let FleetEvent::ReleaseAsked { worker, known, .. } = &mut *event {
                        let row = self.rows.workers.get(worker).cloned();
                        *known = Some(row.map(Box::new));
                    }
                    Event::Fleet(event)
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
                Load::Pause(mut p) => {
                    let row = self.rows.executions.get(&p.execution).cloned();
                    p.known = Some((as_of, row.map(Box::new)));
                    Event::PauseRequested(p)
                }
                Load::TreePause(mut t) => {
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
                    Event::TreePauseRequested(t)
                }
                Load::ApprovalAsk(mut a) => {
                    let row = self.rows.executions.get(&a.from.execution).cloned();
                    a.known = Some((as_of, row.map(Box::new)));
                    let name = (a.from.execution.clone(), a.request.clone());
                    a.earlier = self.rows.approvals.get(&name).cloned().map(Box::new);
                    Event::ApprovalAsked(a)
                }
                Load::Awaiter(mut a) => {
                    let row = self.rows.executions.get(&a.from.execution).cloned();
                    a.known = Some((as_of, row.map(Box::new)));
                    Event::AwaiterReported(a)
                }
                Load::Verdict(mut v) => {
                    let found = self
                        .rows
                        .approvals
                        .values()
                        .filter(|row| v.execution.as_ref().is_none_or(|id| row.execution == *id))
                        .filter(|row| v.request.as_ref().is_none_or(|r| row.request == *r))
                        .cloned()
                        .collect();
                    v.known = Some((as_of, found));
                    Event::ApprovalDecided(v)
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
                Load::Bereaved { limit } => {
                    let ended = |id: &ExecutionId| {
                        let parent = self.rows.executions.get(id);
                        parent.is_some_and(|parent| parent.status.is_terminal())
                    };
                    let all: Vec<_> = self
                        .rows
                        .executions
                        .values()
                        .filter(|row| row.status == Status::Queued)
                        .filter(|row| row.on_parent_end == ParentEnd::Cancel)
                        .filter(|row| row.parent.as_ref().is_some_and(ended))
                        .cloned()
                        .collect();
                    Event::BereavedLoaded {
                        more: all.len() > limit,
                        rows: all.into_iter().take(limit).collect(),
                        as_of,
                    }
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
            cancel_with_parent: name == "p",
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
                function("p", FunctionKind::Reasoner, false),
            ]),
            starting: true,
            body: Payload::default(),
            worker: None,
            tags: Vec::new(),
            candidates: Vec::new(),
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
        // Of the target alone: all inputs are the same here.
        let mut body_hash = [0; 16];
        body_hash[0] = target.agent.as_str().as_bytes()[0];
        body_hash[1] = target.function.as_str().as_bytes()[0];
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
            body_hash,
            input: Payload(bytes::Bytes::from_static(b"{}")),
            input_stored: None,
            input_fault: None,
            class: None,
            deadline: None,
            session: None,
            actor: None,
            traceparent: None,
            on_parent_end: None,
            // Every other one is to be told of.
            webhook: self
                .names
                .is_multiple_of(2)
                .then(|| Arc::from("{\"target\":\"t\"}")),
            llm_endpoint: None,
            replay: None,
            replay_index: None,
            restart: None,
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

    /// A restart of an execution, alone or with the whole run it is in.
    pub(crate) fn restart(
        &mut self,
        named: &ExecutionId,
        whole_run: bool,
        mode: ReplayMode,
        change: impl FnOnce(&mut Restart),
    ) -> (Waiter, ExecutionId) {
        let named_row = self.row(named).clone();
        let of = if whole_run {
            named_row.root.clone()
        } else {
            named.clone()
        };
        let of_row = self.row(&of).clone();
        let target = format!("{}.{}", of_row.agent, of_row.function);
        let mut submission = self.submission(Lane::Restart, &target);
        submission.replay = Some(Box::new(Replay {
            source: named_row.run.clone(),
            mode,
            before: (of != *named).then(|| named.clone()),
        }));
        let mut restart = Restart {
            of,
            named: named.clone(),
            source: named_row.run,
            fork: false,
            reason: None,
        };
        change(&mut restart);
        submission.restart = Some(Box::new(restart));
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

    /// The shell could take the call of an execution back.
    pub(crate) fn taken_back(&mut self, id: &ExecutionId) {
        let attempt = self.attempt(id);
        self.step(Event::TakenBack { attempt });
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

    pub(crate) fn pause(&mut self, id: &ExecutionId, on: bool) -> Reply {
        let waiter = self.waiter();
        self.step(Event::PauseRequested(Box::new(Pause {
            waiter,
            execution: id.clone(),
            on,
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn pause_tree(&mut self, run: &RunId, on: bool) -> Reply {
        let waiter = self.waiter();
        self.step(Event::TreePauseRequested(Box::new(TreePause {
            waiter,
            run: run.clone(),
            on,
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn wish(&mut self, id: &ExecutionId, request: &str) -> ApprovalAsk {
        ApprovalAsk {
            waiter: self.waiter(),
            from: self.proof(id),
            agent: self.row(id).agent.clone(),
            key_agent: None,
            request: request.into(),
            request_url: None,
            callback_url: Some("http://h:1/webhooks/approval".into()),
            expires_in: Duration::from_secs(3600),
            known: None,
            earlier: None,
        }
    }

    pub(crate) fn ask_approval(&mut self, ask: ApprovalAsk) -> Reply {
        let waiter = ask.waiter;
        self.step(Event::ApprovalAsked(Box::new(ask)));
        self.reply(waiter)
    }

    /// An agent asks for a person's decision, and is to be told of it.
    pub(crate) fn ask_for(&mut self, id: &ExecutionId, request: &str) -> Reply {
        let ask = self.wish(id, request);
        self.ask_approval(ask)
    }

    pub(crate) fn decide(
        &mut self,
        execution: Option<&ExecutionId>,
        request: Option<&str>,
        decision: Decision,
    ) -> Reply {
        let waiter = self.waiter();
        self.step(Event::ApprovalDecided(Box::new(Verdict {
            waiter,
            execution: execution.cloned(),
            request: request.map(Into::into),
            decision,
            by: "ada".into(),
            feedback: None,
            response: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn tell_told(&mut self, id: &ExecutionId, request: &str, ok: bool) {
        self.step(Event::ApprovalTold {
            execution: id.clone(),
            request: request.into(),
            told: if ok {
                Ok("received".into())
            } else {
                Err("refused".into())
            },
        });
    }

    pub(crate) fn awaiter(&mut self, id: &ExecutionId, waiting: bool) -> Reply {
        let waiter = self.waiter();
        let from = self.proof(id);
        self.step(Event::AwaiterReported(Box::new(Awaiter {
            waiter,
            from,
            key_agent: None,
            waiting,
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
