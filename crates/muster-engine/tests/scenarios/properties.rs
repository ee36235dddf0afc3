//! Any order of events, faults and crashes keeps the invariants; once faults stop, everything
//! that was accepted ends, exactly once.

use std::collections::HashMap;
use std::time::Duration;

use muster_engine::event::{CancelReceipt, WorkerChange};
use muster_engine::limits::AtCapacity;
use muster_engine::{Event, Limits, Reply, Send};
use muster_wire::ReplayMode;
use muster_wire::{AttemptRef, Decision, ExecutionId, Lane, Status};
use proptest::prelude::*;

use crate::world::World;

/// What may happen next. Numbers choose among what is there.
#[derive(Debug, Clone)]
enum Act {
    Call {
        lane: u8,
        agent: u8,
        function: u8,
        key: Option<u8>,
        run: Option<u8>,
    },
    Child {
        of: u16,
        agent: u8,
        with_parent: bool,
    },
    Answer {
        of: u16,
        status: u8,
    },
    Accept {
        of: u16,
    },
    TakeBack {
        of: u16,
    },
    RefuseDial {
        of: u16,
    },
    Break {
        of: u16,
    },
    TimeOut {
        of: u16,
    },
    CallBack {
        of: u16,
        status: u8,
        older: bool,
    },
    Register {
        agent: u8,
        instance: u8,
        port: u8,
        worker: bool,
    },
    Beat {
        agent: u8,
        instance: u8,
    },
    Goodbye {
        agent: u8,
    },
    Worker {
        change: u8,
    },
    Dialled {
        agent: u8,
        ok: bool,
    },
    Probed {
        seen: u8,
    },
    Taken {
        of: u16,
    },
    Sought {
        found: bool,
    },
    Pause {
        of: u16,
        on: bool,
    },
    PauseTree {
        of: u16,
        on: bool,
    },
    Ask {
        of: u16,
        request: u8,
        callback: bool,
        hours: u8,
    },
    Decide {
        of: u16,
        request: Option<u8>,
        by_request: bool,
        decision: u8,
    },
    ToldApproval {
        ok: bool,
    },
    Awaiter {
        of: u16,
        waiting: bool,
    },
    Cancel {
        of: u16,
    },
    CancelTree {
        of: u16,
    },
    Told {
        of: u16,
    },
    Unheard {
        of: u16,
    },
    Cap {
        agent: u8,
        cap: Option<u32>,
    },
    Hold {
        on: bool,
        agent: Option<u8>,
    },
    Pass {
        ms: u32,
    },
    Crash {
        ms: u16,
    },
    Restart {
        of: u16,
        whole: bool,
        mode: u8,
        fork: bool,
    },
    Llm {
        good: bool,
    },
    Tags {
        agent: u8,
        how: u8,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..3u8, 0..3u8, 0..3u8, proptest::option::of(0..4u8), proptest::option::of(0..3u8))
            .prop_map(|(lane, agent, function, key, run)| Act::Call { lane, agent, function, key, run }),
        6 => (any::<u16>(), 0..3u8, any::<bool>())
            .prop_map(|(of, agent, with_parent)| Act::Child { of, agent, with_parent }),
        3 => (any::<u16>(), any::<bool>()).prop_map(|(of, on)| Act::Pause { of, on }),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(of, on)| Act::PauseTree { of, on }),
        4 => (any::<u16>(), 0..3u8, any::<bool>(), 0..3u8)
            .prop_map(|(of, request, callback, hours)| Act::Ask { of, request, callback, hours }),
        4 => (any::<u16>(), proptest::option::of(0..3u8), any::<bool>(), 0..3u8)
            .prop_map(|(of, request, by_request, decision)| Act::Decide { of, request, by_request, decision }),
        3 => any::<bool>().prop_map(|ok| Act::ToldApproval { ok }),
        4 => (any::<u16>(), any::<bool>()).prop_map(|(of, waiting)| Act::Awaiter { of, waiting }),
        6 => (any::<u16>(), 0..3u8).prop_map(|(of, status)| Act::Answer { of, status }),
        5 => any::<u16>().prop_map(|of| Act::Accept { of }),
        2 => any::<u16>().prop_map(|of| Act::TakeBack { of }),
        4 => any::<u16>().prop_map(|of| Act::RefuseDial { of }),
        1 => any::<u16>().prop_map(|of| Act::Break { of }),
        1 => any::<u16>().prop_map(|of| Act::TimeOut { of }),
        5 => (any::<u16>(), 0..5u8, any::<bool>()).prop_map(|(of, status, older)| Act::CallBack { of, status, older }),
        4 => (0..3u8, 0..3u8, 0..4u8, any::<bool>())
            .prop_map(|(agent, instance, port, worker)| Act::Register { agent, instance, port, worker }),
        6 => (0..3u8, 0..3u8).prop_map(|(agent, instance)| Act::Beat { agent, instance }),
        1 => (0..3u8).prop_map(|agent| Act::Goodbye { agent }),
        2 => (0..4u8).prop_map(|change| Act::Worker { change }),
        4 => (0..3u8, any::<bool>()).prop_map(|(agent, ok)| Act::Dialled { agent, ok }),
        2 => (0..4u8).prop_map(|seen| Act::Probed { seen }),
        3 => any::<u16>().prop_map(|of| Act::Taken { of }),
        1 => any::<bool>().prop_map(|found| Act::Sought { found }),
        2 => any::<u16>().prop_map(|of| Act::Cancel { of }),
        1 => any::<u16>().prop_map(|of| Act::CancelTree { of }),
        1 => any::<u16>().prop_map(|of| Act::Told { of }),
        1 => any::<u16>().prop_map(|of| Act::Unheard { of }),
        1 => (any::<bool>(), proptest::option::of(0..3u8)).prop_map(|(on, agent)| Act::Hold { on, agent }),
        1 => (0..3u8, proptest::option::of(0..4u32)).prop_map(|(agent, cap)| Act::Cap { agent, cap }),
        5 => (0..30_000u32).prop_map(|ms| Act::Pass { ms }),
        1 => (0..5_000u16).prop_map(|ms| Act::Crash { ms }),
        3 => (any::<u16>(), any::<bool>(), 0..3u8, any::<bool>())
            .prop_map(|(of, whole, mode, fork)| Act::Restart { of, whole, mode, fork }),
        1 => any::<bool>().prop_map(|good| Act::Llm { good }),
        1 => (0..3u8, 0..3u8).prop_map(|(agent, how)| Act::Tags { agent, how }),
    ]
}

const AGENTS: [&str; 3] = ["a", "b", "c"];
const FUNCTIONS: [&str; 3] = ["f", "s", "i"];
const STATUSES: [Status; 5] = [
    Status::Succeeded,
    Status::Failed,
    Status::Cancelled,
    Status::Running,
    Status::Timeout,
];

struct Play {
    world: World,
    /// Everything that was ever dispatched, newest last.
    old_proofs: Vec<AttemptRef>,
    accepted: Vec<ExecutionId>,
    held: HashMap<muster_engine::event::Waiter, bool>,
}

impl Play {
    fn pick(&self, of: u16) -> Option<ExecutionId> {
        let all = &self.world.dispatched;
        (!all.is_empty()).then(|| all[of as usize % all.len()].attempt.execution.clone())
    }

    fn act(&mut self, act: Act) {
        let world = &mut self.world;
        match act {
            Act::Call {
                lane,
                agent,
                function,
                key,
                run,
            } => {
                let lane = [Lane::Sync, Lane::Async, Lane::Mcp][lane as usize];
                let target = format!(
                    "{}.{}",
                    AGENTS[agent as usize], FUNCTIONS[function as usize]
                );
                let mut submission = world.submission(lane, &target);
                submission.idempotency_key = key.map(|key| format!("owner\0{key}").into());
                submission.class = key;
                submission.llm_endpoint = (key == Some(0)).then(|| "main".into());
                if let Some(run) = run {
                    submission.run = muster_wire::RunId::trusted(format!("shared_{run}"));
                    submission.run_claimed = true;
                }
                let (waiter, id) = world.submit(submission);
                self.held.insert(waiter, lane == Lane::Sync);
                if world.rows.executions.contains_key(&id) {
                    self.accepted.push(id);
                }
            }
            Act::Child {
                of,
                agent,
                with_parent,
            } => {
                if let Some(parent) = self.pick(of) {
                    let function = if with_parent { "p" } else { "f" };
                    let (waiter, id) = self
                        .world
                        .child(&parent, &format!("{}.{function}", AGENTS[agent as usize]));
                    self.held.insert(waiter, false);
                    if self.world.rows.executions.contains_key(&id) {
                        self.accepted.push(id);
                    }
                }
            }
            Act::Answer { of, status } => {
                if let Some(id) = self.pick(of) {
                    self.world.answer(&id, STATUSES[status as usize]);
                }
            }
            Act::Accept { of } => {
                if let Some(id) = self.pick(of) {
                    self.world.accept(&id);
                }
            }
            Act::TakeBack { of } => {
                if let Some(id) = self.pick(of)
                    && self.world.wanted_back.contains(&self.world.attempt(&id))
                {
                    self.old_proofs.push(self.world.proof(&id));
                    self.world.taken_back(&id);
                }
            }
            Act::RefuseDial { of } => {
                if let Some(id) = self.pick(of) {
                    self.old_proofs.push(self.world.proof(&id));
                    self.world.refuse_dial(&id);
                }
            }
            Act::Break { of } => {
                if let Some(id) = self.pick(of) {
                    let attempt = self.world.attempt(&id);
                    self.world.step(Event::BrokeAfterSend {
                        attempt,
                        error: "reset".into(),
                    });
                }
            }
            Act::TimeOut { of } => {
                if let Some(id) = self.pick(of) {
                    let attempt = self.world.attempt(&id);
                    self.world.step(Event::TimedOut { attempt });
                }
            }
            Act::CallBack { of, status, older } => {
                let from = if older {
                    self.old_proofs.last().cloned()
                } else {
                    self.pick(of).map(|id| self.world.proof(&id))
                };
                if let Some(from) = from {
                    self.world.call_back(from, STATUSES[status as usize]);
                }
            }
            Act::Register {
                agent,
                instance,
                port,
                worker,
            } => {
                world.register_as(
                    AGENTS[agent as usize],
                    &format!("i{instance}"),
                    &format!("http://h:{port}"),
                    |r| {
                        r.worker = worker.then(|| "w".into());
                        r.candidates = vec!["http://h:0".into(), "http://h:9".into()];
                    },
                );
            }
            Act::Beat { agent, instance } => {
                world.beat(AGENTS[agent as usize], &format!("i{instance}"))
            }
            Act::Goodbye { agent } => world.goodbye(AGENTS[agent as usize]),
            Act::Worker { change } => {
                let change = match change {
                    0 => WorkerChange::WillRestart,
                    1 => WorkerChange::ExitedWillRestart("exit 1".into()),
                    2 => WorkerChange::Exited("signal 9".into()),
                    _ => WorkerChange::Started,
                };
                world.step(Event::WorkerChanged {
                    worker: "w".into(),
                    change,
                });
            }
            Act::Dialled { agent, ok } => {
                world.dialled(AGENTS[agent as usize], ok);
            }
            Act::Probed { seen } => {
                use muster_engine::event::Probe;
                let probe = world
                    .sends
                    .iter()
                    .rposition(|send| matches!(send, Send::Probe { .. }));
                if let Some(probe) = probe
                    && let Send::Probe { key, .. } = world.sends.remove(probe)
                {
                    let seen = match seen {
                        0 => Probe::Alive,
                        1 => Probe::SomebodyElse("b".into()),
                        2 => Probe::Refused("refused".into()),
                        _ => Probe::Silent("timed out".into()),
                    };
                    world.step(Event::Probed { key, seen });
                }
            }
            Act::Taken { of } => {
                if let Some(id) = self.pick(of) {
                    let attempt = self.world.attempt(&id);
                    self.world.step(Event::Taken { attempt });
                }
            }
            Act::Sought { found } => {
                let asked = world
                    .sends
                    .iter()
                    .rposition(|send| matches!(send, Send::Seek { .. }));
                if let Some(asked) = asked
                    && let Send::Seek { key, at } = world.sends.remove(asked)
                {
                    let found = found.then(|| at[0].clone());
                    world.step(Event::Sought { key, found });
                }
            }
            Act::Pause { of, on } => {
                let all = &self.accepted;
                if !all.is_empty() {
                    let id = all[of as usize % all.len()].clone();
                    self.world.pause(&id, on);
                }
            }
            Act::PauseTree { of, on } => {
                if let Some(id) = self.pick(of) {
                    let run = self.world.row(&id).run.clone();
                    let reply = self.world.pause_tree(&run, on);
                    if on && matches!(reply, Reply::Moved { .. }) {
                        let going = self.world.rows.executions.values().filter(|r| {
                            r.run == run && !r.status.is_terminal() && r.status != Status::Paused
                        });
                        assert_eq!(going.count(), 0, "a paused run has no member that goes on");
                    }
                }
            }
            Act::Ask {
                of,
                request,
                callback,
                hours,
            } => {
                if let Some(id) = self.pick(of) {
                    let mut ask = self.world.wish(&id, &format!("req{request}"));
                    ask.expires_in = Duration::from_secs(10 + 3600 * u64::from(hours));
                    if !callback {
                        ask.callback_url = None;
                    }
                    self.world.ask_approval(ask);
                }
            }
            Act::Decide {
                of,
                request,
                by_request,
                decision,
            } => {
                if let Some(id) = self.pick(of) {
                    let id = (!by_request || request.is_none()).then_some(&id);
                    let request = request.map(|n| format!("req{n}"));
                    let decision = [
                        Decision::Approved,
                        Decision::Rejected,
                        Decision::RequestChanges,
                    ][decision as usize];
                    self.world.decide(id, request.as_deref(), decision);
                }
            }
            Act::ToldApproval { ok } => {
                if let Some(tell) = self.world.told_approvals.pop() {
                    let (id, request) = (tell.approval.execution, tell.approval.request);
                    self.world.tell_told(&id, &request, ok);
                }
            }
            Act::Awaiter { of, waiting } => {
                if let Some(id) = self.pick(of) {
                    self.world.awaiter(&id, waiting);
                }
            }
            Act::Cancel { of } => {
                let all = &self.accepted;
                if !all.is_empty() {
                    let id = all[of as usize % all.len()].clone();
                    self.world.cancel(&id);
                }
            }
            Act::CancelTree { of } => {
                if let Some(id) = self.pick(of) {
                    let run = self.world.row(&id).run.clone();
                    let Reply::Cancelled { .. } = self.world.cancel_tree(&run) else {
                        panic!("a known run")
                    };
                    let open = self
                        .world
                        .rows
                        .executions
                        .values()
                        .filter(|r| r.run == run && !r.status.is_terminal());
                    assert_eq!(open.count(), 0, "a cancelled tree has no open member");
                }
            }
            Act::Told { of } => {
                if let Some(id) = self.pick(of) {
                    let attempt = self.world.attempt(&id);
                    self.world.step(Event::CancelTold {
                        attempt,
                        receipt: CancelReceipt::Stopped,
                    });
                }
            }
            Act::Unheard { of } => {
                if let Some(id) = self.pick(of) {
                    self.world.step(Event::Unheard { execution: id });
                }
            }
            Act::Cap { agent, cap } => {
                let waiter = world.waiter();
                world.step(Event::CapSet {
                    agent: muster_wire::AgentId::trusted(AGENTS[agent as usize]),
                    cap,
                    waiter,
                });
            }
            Act::Hold { on, agent } => {
                let waiter = world.waiter();
                world.step(Event::Held {
                    agent: agent.map(|a| muster_wire::AgentId::trusted(AGENTS[a as usize])),
                    reason: on.then(|| "test".into()),
                    by: "ada".into(),
                    waiter,
                });
            }
            Act::Restart {
                of,
                whole,
                mode,
                fork,
            } => {
                let of = self.accepted.get(of as usize % self.accepted.len().max(1));
                if let Some(of) = of.cloned() {
                    let mode = ReplayMode::ALL[mode as usize];
                    let (waiter, id) = world.restart(&of, whole, mode, |r| r.fork = fork);
                    self.held.insert(waiter, false);
                    if world.rows.executions.contains_key(&id) {
                        self.accepted.push(id);
                    }
                }
            }
            Act::Llm { good } => world.step(Event::LlmChecked {
                endpoint: "main".into(),
                error: (!good).then(|| "refused".into()),
            }),
            Act::Tags { agent, how } => {
                let agent = AGENTS[agent as usize];
                if how == 2 {
                    let port = agent.as_bytes()[0] - b'a';
                    world.register_as(agent, "i0", &format!("http://h:{port}"), |r| {
                        r.tags = vec!["finance".into()];
                    });
                } else {
                    let waiter = world.waiter();
                    world.step(Event::TagsDecided {
                        agent: muster_wire::AgentId::trusted(agent),
                        tags: Vec::new(),
                        approve: how == 1,
                        by: "owner".into(),
                        waiter,
                    });
                }
            }
            Act::Pass { ms } => world.pass(Duration::from_millis(u64::from(ms))),
            Act::Crash { ms } => {
                world.crash(Duration::from_millis(u64::from(ms)));
                // Whoever was held lost its connection.
                self.held.clear();
            }
        }
    }

    /// Faults stop: agents are there and answer. Everything must end.
    fn heal(&mut self) {
        for agent in [None, Some("a"), Some("b"), Some("c")] {
            let waiter = self.world.waiter();
            self.world.step(Event::Held {
                agent: agent.map(muster_wire::AgentId::trusted),
                reason: None,
                by: "ada".into(),
                waiter,
            });
        }
        for (n, agent) in AGENTS.iter().enumerate() {
            self.world
                .register(agent, "healthy", &format!("http://healthy:{n}"));
        }
        self.world.checked = false;
        for _ in 0..400 {
            while let Some(tell) = self.world.told_approvals.pop() {
                let (id, request) = (tell.approval.execution, tell.approval.request);
                self.world.tell_told(&id, &request, true);
            }
            let open: Vec<ExecutionId> = self
                .world
                .rows
                .executions
                .values()
                .filter(|row| !row.status.is_terminal())
                .map(|row| row.id.clone())
                .collect();
            if open.is_empty() {
                return;
            }
            for agent in AGENTS {
                self.world.beat(agent, "healthy");
                while self.world.dialled(agent, true) {}
            }
            for id in &open {
                match self.world.status(id) {
                    Status::Paused => drop(self.world.pause(id, false)),
                    Status::Waiting => {
                        self.world.decide(Some(id), None, Decision::Approved);
                    }
                    _ => {}
                }
            }
            for id in open {
                if self.world.sent(&id) > 0 && !self.world.status(&id).is_terminal() {
                    self.world.answer(&id, Status::Succeeded);
                }
            }
            self.world.checked = true;
            self.world.pass(Duration::from_secs(1));
            self.world.checked = false;
        }
        let open: Vec<_> = self
            .world
            .rows
            .executions
            .values()
            .filter(|row| !row.status.is_terminal())
            .collect();
        panic!("still open: {open:#?}");
    }

    fn check_the_end(&self) {
        let world = &self.world;
        // What was taken over was never sent, and names one that really ran and succeeded.
        for row in world.rows.executions.values() {
            let Some(source) = row.replayed_from() else {
                continue;
            };
            assert_eq!(world.sent(&row.id), 0, "{} was taken over and sent", row.id);
            let source = world.row(&ExecutionId::trusted(source));
            assert_eq!(source.status, Status::Succeeded);
            assert_eq!(source.replayed_from(), None);
            assert_eq!(source.input_hash, row.input_hash);
        }
        // No execution of a source is the twin of two calls of one parent.
        let mut twins = std::collections::HashSet::new();
        for row in world.rows.executions.values() {
            let links = row.links.as_deref();
            if let (Some(twin), Some(parent)) = (links.and_then(|l| l.replay_of.as_ref()), &row.parent)
                // A second attempt makes its calls from the first on.
                && world.rows.executions.get(parent).is_none_or(|row| row.attempt <= 1)
            {
                assert!(
                    twins.insert((twin, parent)),
                    "{twin} is the twin of two calls of {parent}"
                );
            }
        }
        for approval in world.rows.approvals.values() {
            let id = &approval.execution;
            assert!(approval.decided_at.is_some(), "{id} has a pending approval");
            let told = approval.told.is_some() || approval.decision.is_none();
            assert!(told, "{id}: nobody was told of a decision");
        }
        for row in world.rows.executions.values() {
            let ends = world
                .rows
                .events
                .iter()
                .filter(|e| e.execution.as_ref() == Some(&row.id))
                .filter(|e| {
                    use muster_engine::row::EventKind::*;
                    matches!(
                        e.kind,
                        ExecutionSucceeded
                            | ExecutionFailed
                            | ExecutionCancelled
                            | ExecutionTimedOut
                    )
                })
                .count();
            assert_eq!(ends, 1, "{} ended {ends} times", row.id);
            // Whatever ended it: who asked to be told has one message, and nobody else has.
            let told = world.rows.outbox.iter().filter(|m| m.execution == row.id);
            let asked = row.links.as_ref().is_some_and(|l| l.webhook.is_some());
            let statuses: Vec<Status> = told.map(|message| message.status).collect();
            assert_eq!(statuses, vec![row.status; usize::from(asked)], "{}", row.id);
        }
        for (waiter, sync) in &self.held {
            let replies = world.replies.get(waiter).map_or(0, Vec::len);
            assert_eq!(
                replies, 1,
                "{waiter:?} (sync: {sync}) was answered {replies} times"
            );
        }
        // At most once: what is not idempotent was sent again only after a dial that failed.
        for row in world
            .rows
            .executions
            .values()
            .filter(|row| row.function.as_str() != "i")
        {
            let attempts = world
                .rows
                .attempts
                .range((row.id.clone(), 0)..=(row.id.clone(), u32::MAX));
            let reached = attempts
                .filter(|(_, a)| a.outcome != Some(muster_engine::row::AttemptOutcome::DialFailed))
                .count();
            assert!(reached <= 1, "{} reached an agent {reached} times", row.id);
        }
    }
}

fn play(limits: Limits, acts: Vec<Act>) {
    let mut limits = limits;
    limits.tags_need_approval = true;
    limits.llm.endpoints = vec!["main".into()];
    limits.llm.failure_threshold = 1;
    let mut play = Play {
        world: World::new(limits),
        old_proofs: Vec::new(),
        accepted: Vec::new(),
        held: HashMap::new(),
    };
    for (n, agent) in AGENTS.iter().enumerate() {
        play.world.register(agent, "i0", &format!("http://h:{n}"));
    }
    for act in acts {
        play.act(act);
    }
    play.heal();
    play.check_the_end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn everything_ends_once_without_caps(acts in proptest::collection::vec(act(), 1..120)) {
        play(Limits::default(), acts);
    }

    #[test]
    fn everything_ends_once_with_caps_and_small_windows(
        cap in 1..3u32,
        window in 2..5usize,
        acts in proptest::collection::vec(act(), 1..120),
    ) {
        play(Limits { max_concurrent_per_agent: cap, queue_window: window, ..Limits::default() }, acts);
    }

    #[test]
    fn everything_ends_once_when_full_agents_refuse(acts in proptest::collection::vec(act(), 1..80)) {
        let limits = Limits { max_concurrent_per_agent: 1, at_capacity: AtCapacity::Reject, ..Limits::default() };
        play(limits, acts);
    }
}
