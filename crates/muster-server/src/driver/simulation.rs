//! A seeded world around the real driver: agents that answer, fail, break, stay silent and call
//! back late; a store whose commits are refused or end unknown; planes that die between a commit
//! and its release. Proves that nothing leaves before its commit, that nothing reaches an agent
//! twice, and that all that was accepted ends, once, when the faults stop.
//!
//! A failing seed is named; `MUSTER_SEED=n` runs it alone. It runs in real time with small limits,
//! because it is the threads of the driver that are tried; the rules themselves are tried in the
//! engine's own tests, in virtual time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use muster_engine::event::{
    AttemptKey, Callback, Cancel, CancelReceipt, InstanceKey, Outcome, Probe, Registration,
    Submission, Waiter,
};
use muster_engine::row::{AttemptOutcome, EventKind, Function, Payload};
use muster_engine::{Engine, Event, Limits, Notice, Reply, Send};
use muster_store::{ExecutionFilter, Fault, MemoryStore, Page, Store};
use muster_wire::{
    AgentId, AttemptRef, Category, ExecutionId, FunctionKind, FunctionName, InstanceId, Lane,
    RunId, Status, Timestamp,
};
use parking_lot::Mutex;

use super::turn::{Driver, Parts};
use super::world::World;
use super::{DriverGone, DriverHandle};
use crate::clock::Clock;

const AGENTS: [&str; 2] = ["a", "b"];
const CALLS: usize = 120;

/// Random numbers that a seed fixes.
struct Dice(AtomicU64);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        // SplitMix64.
        let mut z = self
            .0
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// What outlives a plane: the store, the agents' side, and what was found broken.
struct Town {
    store: Arc<MemoryStore>,
    clock: Clock,
    dice: Dice,
    calm: AtomicBool,
    /// Attempts that reached an agent, by execution: their numbers.
    reached: Mutex<HashMap<ExecutionId, Vec<u32>>>,
    broken: Mutex<Vec<String>>,
    /// What agents say later, and when.
    later: Mutex<Vec<(Instant, Event)>>,
}

impl Town {
    fn must(&self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.broken.lock().push(text());
        }
    }

    fn say_later(&self, event: Event) {
        let wait = Duration::from_millis(self.dice.roll(60));
        self.later.lock().push((Instant::now() + wait, event));
    }

    /// Agents beat, and say what they have to say by now.
    fn move_on(&self, plane: &Plane) {
        for agent in AGENTS {
            plane.handle.tell(Event::Heard {
                key: InstanceKey {
                    agent: AgentId::trusted(agent),
                    instance: InstanceId::trusted(format!("{agent}1")),
                },
                at: self.clock.now(),
                interval: Some(Duration::from_millis(50)),
            });
        }
        for event in self.due() {
            plane.handle.tell(event);
        }
    }

    fn due(&self) -> Vec<Event> {
        let now = Instant::now();
        let mut later = self.later.lock();
        let (due, rest) = later.drain(..).partition(|(at, _)| *at <= now);
        *later = rest;
        due.into_iter().map(|(_, event)| event).collect()
    }
}

/// The outside of one plane. A dead one releases nothing any more.
struct Outside {
    town: Arc<Town>,
    dead: AtomicBool,
}

impl Outside {
    /// What the store must hold before a call may leave.
    fn dispatch(&self, dispatch: &muster_engine::effect::Dispatch) {
        let town = &self.town;
        let attempt = dispatch.attempt.clone();
        let id = attempt.execution.clone();
        let stored = town.store.attempts(&id).unwrap();
        let row = stored.iter().find(|row| row.n == attempt.n);
        town.must(row.is_some_and(|row| row.outcome.is_none()), || {
            format!("{id}~{} left without a commit before it", attempt.n)
        });
        let answer = town.dice.roll(if town.calm.load(Ordering::Relaxed) {
            4
        } else {
            10
        });
        if answer == 4 {
            let error = "refused".into();
            return town.say_later(Event::DialFailed { attempt, error });
        }
        let mut reached = town.reached.lock();
        let before = reached.entry(id.clone()).or_default();
        town.must(
            before.is_empty() || dispatch.function.as_str() == "again",
            || {
                format!(
                    "{id} reached its agent in attempts {before:?} and {}",
                    attempt.n
                )
            },
        );
        before.push(attempt.n);
        drop(reached);
        let from = AttemptRef {
            execution: id,
            proof: Some((attempt.n, dispatch.secret.hash())),
        };
        let callback = |status| {
            Event::CalledBack(Box::new(Callback {
                waiter: Waiter(u64::MAX),
                from: from.clone(),
                key_agent: None,
                outcome: Box::new(outcome(status)),
                known: None,
            }))
        };
        match answer {
            0 => town.say_later(Event::Answered {
                attempt,
                outcome: Box::new(outcome(Status::Succeeded)),
            }),
            1 => town.say_later(Event::Answered {
                attempt,
                outcome: Box::new(outcome(Status::Failed)),
            }),
            2 | 3 => {
                town.say_later(Event::Accepted { attempt });
                town.say_later(callback(Status::Succeeded));
            }
            5 => town.say_later(Event::BrokeAfterSend {
                attempt,
                error: "reset".into(),
            }),
            6 => town.say_later(Event::TimedOut { attempt }),
            7 => {
                // Twice, and then something else.
                town.say_later(callback(Status::Succeeded));
                town.say_later(callback(Status::Succeeded));
                town.say_later(callback(Status::Failed));
            }
            8 => town.say_later(Event::Accepted { attempt }),
            // Not a word.
            _ => {}
        }
    }
}

fn outcome(status: Status) -> Outcome {
    Outcome {
        status,
        result: (status == Status::Succeeded).then(|| Payload(Bytes::from_static(b"1"))),
        result_stored: None,
        error: (status == Status::Failed).then(|| Payload(Bytes::from_static(b"no"))),
        details: None,
        category: (status == Status::Failed).then_some(Category::AgentError),
        reason: None,
        http_status: None,
        usage: None,
    }
}

impl World for Outside {
    fn receipt(&self, _: &InstanceKey) -> Option<(Timestamp, Option<Duration>)> {
        Some((self.town.clock.now(), None))
    }

    fn publish(&self, notices: &[Notice]) {
        let town = &self.town;
        if self.dead.load(Ordering::Acquire) {
            return;
        }
        let last = town.store.last_seq().unwrap();
        // Of several views of one execution in a batch the last is what the store holds.
        let mut newest = BTreeMap::new();
        for notice in notices {
            match notice {
                Notice::Event(row) => town.must(row.seq <= last, || {
                    format!("event {} was told, and the store ends at {last}", row.seq)
                }),
                Notice::Execution(view) => {
                    newest.insert(view.row.id.clone(), view.row.status);
                }
                _ => {}
            }
        }
        for (id, status) in newest {
            let stored = town.store.execution(&id).unwrap().1;
            town.must(stored.is_some_and(|row| row.status == status), || {
                format!("{id} was shown as {status} and is not stored so")
            });
        }
    }

    fn send(&self, sends: Vec<Send>) {
        if self.dead.load(Ordering::Acquire) {
            return;
        }
        let town = &self.town;
        for send in sends {
            match send {
                Send::Dispatch(dispatch) => self.dispatch(&dispatch),
                Send::TellCancel(tell) => {
                    let id = &tell.attempt.execution;
                    let row = town.store.execution(id).unwrap().1;
                    town.must(row.is_some_and(|row| row.status.is_terminal()), || {
                        format!("an agent was told that {id} ended before it was stored")
                    });
                    town.say_later(Event::CancelTold {
                        attempt: tell.attempt,
                        receipt: CancelReceipt::Stopped,
                    });
                }
                Send::Dial { key, base_url, .. } => {
                    let fails = !town.calm.load(Ordering::Relaxed) && town.dice.roll(3) == 0;
                    town.say_later(Event::Dialled {
                        key,
                        base_url,
                        error: fails.then(|| "refused".into()),
                    });
                }
                Send::Probe { key, .. } => town.say_later(Event::Probed {
                    key,
                    seen: Probe::Alive,
                }),
                _ => {}
            }
        }
    }

    fn spawn(&self, work: Box<dyn FnOnce() + std::marker::Send>) {
        work();
    }
    fn announce(&self, _: Vec<Notice>) {}
    fn committed(&self, _: usize, _: usize, _: Duration) {}
    fn waited(&self, _: Duration) {}
}

/// One plane: it lives until it is killed.
struct Plane {
    handle: DriverHandle,
    outside: Arc<Outside>,
    thread: JoinHandle<()>,
}

impl Plane {
    fn start(town: &Arc<Town>) -> Self {
        let handle = DriverHandle::default();
        let outside = Arc::new(Outside {
            town: town.clone(),
            dead: AtomicBool::new(false),
        });
        let driver = Driver::<Engine>::start(Parts {
            shared: handle.shared.clone(),
            store: town.store.clone(),
            world: outside.clone(),
            clock: town.clock,
            limits: limits(),
            key: [7; 32],
            owner: "simulation".into(),
            caution: None,
        })
        .unwrap();
        let thread = std::thread::spawn(move || driver.run());
        for agent in AGENTS {
            let waiter = Waiter(u64::MAX);
            handle.tell(registration(agent, waiter));
        }
        Self {
            handle,
            outside,
            thread,
        }
    }

    /// Dies wherever it is: what is committed from now on is never released.
    fn kill(self) {
        self.outside.dead.store(true, Ordering::Release);
        self.handle.close();
        self.thread.join().unwrap();
    }
}

fn limits() -> Limits {
    Limits {
        max_concurrent_per_agent: 8,
        queue_window: 4,
        deadline: Duration::from_millis(600),
        sync_wait: Duration::from_millis(400),
        recovery_grace: Duration::from_millis(200),
        restart_grace: Some(Duration::from_millis(150)),
        drain_grace: Duration::from_millis(200),
        call_timeout: Duration::from_millis(200),
        ..Limits::default()
    }
}

fn registration(agent: &str, waiter: Waiter) -> Event {
    let function = |name: &str, idempotent| Function {
        name: FunctionName::trusted(name),
        kind: FunctionKind::Reasoner,
        required: Vec::new(),
        idempotent,
        cancel_with_parent: false,
    };
    Event::Registered(Box::new(Registration {
        waiter,
        agent: AgentId::trusted(agent),
        instance: InstanceId::trusted(format!("{agent}1")),
        principal: "owner".into(),
        base_url: format!("http://{agent}:1").into(),
        version: "1".into(),
        functions: Arc::new(vec![function("once", false), function("again", true)]),
        starting: false,
        body: Payload::default(),
        worker: None,
        tags: Vec::new(),
        candidates: Vec::new(),
    }))
}

fn submission(town: &Town, n: usize) -> Submission {
    let target = town.dice.roll(8);
    Submission {
        waiter: Waiter(0),
        lane: [Lane::Sync, Lane::Async][(target % 2) as usize],
        execution: ExecutionId::trusted(format!("e{n}")),
        run: RunId::trusted(format!("r{}", n / 3)),
        run_claimed: true,
        parent: None,
        agent: AgentId::trusted(AGENTS[(target / 2 % 2) as usize]),
        function: FunctionName::trusted(["once", "again"][(target / 4) as usize]),
        principal: "owner".into(),
        key_hash: None,
        idempotency_key: None,
        body_hash: [n as u8; 16],
        input: Payload(Bytes::from_static(b"{}")),
        input_stored: None,
        input_fault: None,
        class: None,
        deadline: None,
        session: None,
        actor: None,
        traceparent: None,
        on_parent_end: None,
        webhook: None,
        llm_endpoint: None,
        replay: None,
        replay_index: None,
        restart: None,
        received_at: town.clock.now(),
        known: Default::default(),
    }
}

/// Calls, and holds the reply against the store.
async fn call(town: Arc<Town>, handle: DriverHandle, n: usize) {
    let mut submission = submission(&town, n);
    let id = submission.execution.clone();
    let sync = submission.lane == Lane::Sync;
    let make = |waiter| {
        submission.waiter = waiter;
        Event::Submitted(Box::new(submission))
    };
    let reply = if sync {
        handle.ask_with_place(&id, make).await
    } else {
        handle.ask(make).await
    };
    let stored = || town.store.execution(&id).unwrap().1;
    match reply {
        Ok(Reply::Accepted(receipt)) => {
            let id = receipt.execution;
            let row = town.store.execution(&id).unwrap().1;
            town.must(row.is_some(), || {
                format!("{id} was acknowledged and is not stored")
            });
        }
        Ok(Reply::Ended(view)) => town.must(
            stored().is_some_and(|row| row.status == view.row.status),
            || {
                format!(
                    "{id} was answered as {} and is not stored so",
                    view.row.status
                )
            },
        ),
        Ok(Reply::StillRunning { .. }) => {
            town.must(stored().is_some(), || {
                format!("{id} runs and is not stored")
            });
        }
        Ok(Reply::Refused(_)) => {
            town.must(stored().is_none(), || {
                format!("{id} was refused and is stored")
            });
        }
        Ok(other) => town.must(false, || format!("{id} was answered {other:?}")),
        Err(DriverGone) => {}
    }
}

fn open(store: &MemoryStore) -> Vec<ExecutionId> {
    let filter = ExecutionFilter {
        statuses: vec![
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Paused,
        ],
        ..ExecutionFilter::default()
    };
    let page = Page {
        after: None,
        limit: 1_000,
    };
    let rows = store.executions(&filter, &page).unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

/// An execution as a failing seed tells of it.
fn shown(store: &MemoryStore, id: &ExecutionId) -> String {
    let row = store.execution(id).unwrap().1.unwrap();
    format!(
        "{id} of {} on {}: {} {:?}, attempts {:?}",
        row.agent,
        row.lane,
        row.status,
        row.status_reason,
        store.attempts(id).unwrap()
    )
}

/// Something bad, now and then.
fn trouble(town: &Town) {
    let fault = match town.dice.roll(24) {
        0 => Fault::Full,
        1 => Fault::UnknownLost,
        2 => Fault::UnknownKept,
        3 => Fault::UnknownLate,
        _ => return,
    };
    town.store.faults().next(fault, 1);
}

async fn live(seed: u64) {
    let town = Arc::new(Town {
        store: Arc::new(MemoryStore::new()),
        clock: Clock::start(),
        dice: Dice(AtomicU64::new(seed)),
        calm: AtomicBool::new(false),
        reached: Mutex::default(),
        broken: Mutex::default(),
        later: Mutex::default(),
    });
    let mut plane = Plane::start(&town);
    let mut calls = Vec::new();
    for n in 0..CALLS {
        calls.push(tokio::spawn(call(town.clone(), plane.handle.clone(), n)));
        trouble(&town);
        if n % 7 == 3 {
            let back = town.dice.roll(n as u64 + 1);
            plane.handle.tell(Event::CancelRequested(Box::new(Cancel {
                waiter: Waiter(u64::MAX),
                execution: ExecutionId::trusted(format!("e{back}")),
                by: "somebody".into(),
                reason: None,
                known: None,
            })));
        }
        town.move_on(&plane);
        if n % 40 == 39 {
            plane.kill();
            // A commit of the old one that was thought lost comes now, and must not be taken.
            let next = Plane::start(&town);
            town.must(!town.store.settle(), || "a fenced commit was taken".into());
            plane = next;
        }
        tokio::time::sleep(Duration::from_millis(town.dice.roll(8))).await;
    }

    // The faults stop.
    town.calm.store(true, Ordering::Relaxed);
    town.store.faults().clear();
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        town.move_on(&plane);
        let left = open(&town.store);
        if left.is_empty() || Instant::now() > until {
            let question = muster_engine::event::Question::Agents;
            let ask = |waiter| Event::Asked { question, waiter };
            let agents = plane.handle.ask(ask).await;
            let rows: Vec<String> = left.iter().map(|id| shown(&town.store, id)).collect();
            assert!(
                left.is_empty(),
                "seed {seed}: never ended: {rows:#?}; {:?}; {:?}; {agents:#?}",
                plane.handle.vitals(),
                town.broken.lock()
            );
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for one in calls {
        one.await.unwrap();
    }
    plane.kill();
    once_each(&town, seed);
    let broken = town.broken.lock();
    assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
}

/// Each execution has one terminal event; the sequence has no holes; attempts of what was never
/// sent say so.
fn once_each(town: &Town, seed: u64) {
    let events = town.store.events(0, usize::MAX).unwrap();
    let mut ends: BTreeMap<ExecutionId, u32> = BTreeMap::new();
    for (at, event) in (1..).zip(&events) {
        assert_eq!(event.seq, at, "seed {seed}: a hole in the sequence");
        let end = matches!(
            event.kind,
            EventKind::ExecutionSucceeded
                | EventKind::ExecutionFailed
                | EventKind::ExecutionCancelled
                | EventKind::ExecutionTimedOut
        );
        if let (true, Some(id)) = (end, &event.execution) {
            *ends.entry(id.clone()).or_default() += 1;
        }
    }
    let filter = ExecutionFilter::default();
    let page = Page {
        after: None,
        limit: 10_000,
    };
    let rows = town.store.executions(&filter, &page).unwrap();
    assert!(
        rows.len() > CALLS / 4,
        "seed {seed}: only {} rows",
        rows.len()
    );
    for row in rows {
        let times = ends.get(&row.id).copied().unwrap_or(0);
        assert_eq!(times, 1, "seed {seed}: {} ended {times} times", row.id);
        for attempt in town.store.attempts(&row.id).unwrap() {
            let key = AttemptKey {
                execution: row.id.clone(),
                n: attempt.n,
            };
            assert!(
                attempt.outcome.is_some(),
                "seed {seed}: {key:?} never ended"
            );
            let reached = town.reached.lock();
            let reached = reached.get(&row.id).is_some_and(|all| all.contains(&key.n));
            assert!(
                !(reached && attempt.outcome == Some(AttemptOutcome::DialFailed)),
                "seed {seed}: {key:?} reached its agent and is called unsent"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_before_its_commit_and_everything_ends_once() {
    let only = std::env::var("MUSTER_SEED").ok();
    let seeds: Vec<u64> = match only.map(|seed| seed.parse()) {
        Some(Ok(seed)) => vec![seed],
        Some(Err(error)) => panic!("MUSTER_SEED: {error}"),
        None => (1..=8).collect(),
    };
    for seed in seeds {
        live(seed).await;
    }
}
