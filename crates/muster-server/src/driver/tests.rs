//! The driver with an engine that panics on demand, against the store in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::event::{InstanceKey, Question};
use muster_engine::row::Snapshot;
use muster_engine::{Effects, Engine, Event, Limits, Notice, Refusal, Reply, Send};
use muster_store::{MemoryStore, Store};
use muster_wire::{AgentId, Timestamp};

use super::DriverHandle;
use super::decider::Decider;
use super::turn::{Driver, Parts};
use super::world::World;
use crate::clock::Clock;

/// An engine that panics when it is asked about the agent `panic`.
struct Fragile(Engine);

impl Decider for Fragile {
    fn restore(
        limits: Limits,
        key: [u8; 32],
        now: Timestamp,
        snapshot: Snapshot,
        out: &mut Effects,
    ) -> Self {
        Self(Engine::restore(limits, key, now, snapshot, out))
    }
    fn step(&mut self, now: Timestamp, event: Event, out: &mut Effects) {
        if let Event::Asked {
            question: Question::Agent(agent),
            ..
        } = &event
        {
            assert_ne!(agent.as_str(), "panic", "asked to");
        }
        self.0.step(now, event, out);
    }
    fn next_deadline(&self) -> Option<Timestamp> {
        self.0.next_deadline()
    }
    fn last_seq(&self) -> u64 {
        self.0.last_seq()
    }
    fn due_beats(&mut self, now: Timestamp, due: &mut Vec<InstanceKey>) {
        self.0.due_beats(now, due);
    }
}

struct Nowhere;

impl World for Nowhere {
    fn receipt(&self, _: &InstanceKey) -> Option<(Timestamp, Option<Duration>)> {
        None
    }
    fn publish(&self, _: &[Notice]) {}
    fn send(&self, _: Vec<Send>) {}
    fn spawn(&self, work: Box<dyn FnOnce() + std::marker::Send>) {
        work();
    }
    fn announce(&self, _: Vec<Notice>) {}
    fn committed(&self, _: usize, _: usize, _: Duration) {}
    fn waited(&self, _: Duration) {}
}

fn driver(store: &Arc<MemoryStore>) -> (DriverHandle, Driver<Fragile>) {
    let handle = DriverHandle::default();
    let driver = Driver::start(Parts {
        shared: handle.shared.clone(),
        store: store.clone(),
        world: Arc::new(Nowhere),
        clock: Clock::start(),
        limits: Limits::default(),
        key: [7; 32],
        owner: "test".into(),
        caution: None,
    });
    (handle, driver.unwrap())
}

fn ask(agent: &str) -> impl FnOnce(muster_engine::event::Waiter) -> Event + use<> {
    let question = Question::Agent(AgentId::trusted(agent));
    move |waiter| Event::Asked { question, waiter }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_panics_harms_one_event_and_the_rest_of_its_batch_is_answered() {
    let store = Arc::new(MemoryStore::new());
    let (handle, driver) = driver(&store);
    // Parked before the driver turns, so that they are one batch.
    let mut asked = VecDeque::new();
    for n in 0..9 {
        let handle = handle.clone();
        let agent = if n == 4 { "panic" } else { "nobody" };
        asked.push_back(tokio::spawn(async move { handle.ask(ask(agent)).await }));
    }
    let shared = handle.shared.clone();
    while shared.waiters.len() < 9 {
        tokio::task::yield_now().await;
    }
    let thread = std::thread::spawn(move || driver.run());
    for (n, asked) in asked.into_iter().enumerate() {
        let reply = asked.await.unwrap().unwrap();
        if n == 4 {
            assert!(
                matches!(reply, Reply::Refused(Refusal::Quarantined { .. })),
                "{reply:?}"
            );
        } else {
            assert!(matches!(reply, Reply::Agent(None)), "{reply:?}");
        }
    }
    assert_eq!(store.quarantine(10).unwrap().len(), 1);
    let vitals = handle.vitals();
    assert_eq!(vitals.quarantined, 1);
    handle.close();
    thread.join().unwrap();
    assert_eq!(
        handle.ask(ask("nobody")).await.unwrap_err(),
        super::DriverGone
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_taken_over_by_another_ends_the_driver() {
    let store = Arc::new(MemoryStore::new());
    let (handle, driver) = driver(&store);
    let thread = std::thread::spawn(move || driver.run());
    assert!(handle.ask(ask("nobody")).await.is_ok());
    store.take_lease(Default::default(), "another").unwrap();
    // The first commit under the old lease is refused.
    let hold = |waiter| Event::Held {
        agent: None,
        reason: Some("test".into()),
        by: "ada".into(),
        waiter,
    };
    assert!(handle.ask(hold).await.is_err());
    thread.join().unwrap();
    assert!(handle.vitals().gone);
}
