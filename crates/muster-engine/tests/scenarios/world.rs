//! A world for the engine in tests: a store made of maps, a clock that only the test moves, and
//! a list of what was sent. Commits at once unless told to crash between commit and release.

mod shell;
mod wishes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::effect::{Dispatch, Effects, Load, Reply, TellApproval, TellCancel};
use muster_engine::event::*;
use muster_engine::fleet::FleetNotice;
use muster_engine::row::*;
use muster_engine::{Engine, Event, Limits, Send};
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
