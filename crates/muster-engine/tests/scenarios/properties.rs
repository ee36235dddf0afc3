//! Any order of events, faults and crashes keeps the invariants; once faults stop, everything
//! that was accepted ends, exactly once.

mod act;
mod end;

use std::collections::HashMap;
use std::time::Duration;

use muster_engine::event::{CancelReceipt, WorkerChange};
use muster_engine::limits::AtCapacity;
use muster_engine::{Event, Limits, Reply, Send};
use muster_wire::{AttemptRef, Decision, ExecutionId, Lane, ReplayMode, Status};
use proptest::prelude::*;

use crate::world::World;

use self::act::{Act, STATUSES, act};

const AGENTS: [&str; 3] = ["a", "b", "c"];

const FUNCTIONS: [&str; 3] = ["f", "s", "i"];

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
