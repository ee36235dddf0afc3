//! Runs the engine: takes what waits, steps it, commits once, then releases sends, replies and
//! notices. No handler commits, so no handler can get that wrong.

pub(crate) mod decider;
pub mod inbox;
mod readers;
pub(crate) mod record;
mod recover;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
pub(crate) mod turn;
pub mod waiters;
pub(crate) mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use muster_engine::event::Waiter;
use muster_engine::{Event, Refusal, Reply};
use muster_wire::{ExecutionId, Timestamp};

use inbox::{Inbox, LaneOf, NotTaken};
use record::{Line, Record};
use waiters::Waiters;

/// The driver has stopped: nobody will answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the driver has stopped")]
pub struct DriverGone;

/// The way to the engine. Cloning it is one reference count.
#[derive(Debug, Clone, Default)]
pub struct DriverHandle {
    pub(crate) shared: Arc<Shared>,
}

/// What handlers and the driver's thread share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    pub(crate) waiters: Waiters,
    pub(crate) record: Record,
    pub(crate) pulse: Pulse,
}

/// Signs of the driver's life, for health and readiness.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When it last turned, in microseconds.
    pub(crate) turned_at: AtomicI64,
    /// Whether it has something to do.
    pub(crate) busy: AtomicBool,
    /// Since when a commit waits; 0 when none does.
    pub(crate) committing_since: AtomicI64,
    /// The number of the last committed event.
    pub(crate) last_seq: AtomicU64,
    /// How often the engine was restored while running.
    pub(crate) restored: AtomicU64,
    /// How many events were set aside.
    pub(crate) quarantined: AtomicU64,
}

/// The driver as health and metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vitals {
    /// When it last turned.
    pub turned_at: Timestamp,
    /// Whether it has something to do.
    pub busy: bool,
    /// Since when a commit waits.
    pub committing_since: Option<Timestamp>,
    /// The number of the last committed event.
    pub last_seq: u64,
    /// How often the engine was restored while running.
    pub restored: u64,
    /// How many events were set aside.
    pub quarantined: u64,
    /// Events that wait: after reads, outcomes and liveness, control, submissions.
    pub depths: [usize; 4],
    /// Callers that wait for a reply.
    pub waiters: usize,
    /// Whether it has stopped.
    pub gone: bool,
}

impl DriverHandle {
    /// Tells the engine. For senders that are themselves bounded; nothing is dropped.
    pub fn tell(&self, event: Event) {
        self.shared.inbox.push(event);
    }

    /// Tells the engine if its lane has room; `false` when it does not.
    pub fn tell_if_room(&self, event: Event) -> bool {
        self.shared.inbox.offer(event).is_ok()
    }

    /// Asks the engine and waits for its reply. When the lane of a submission or a control
    /// event is full the reply is a refusal `overloaded`; outcomes wait for room instead.
    ///
    /// # Errors
    /// When the driver has stopped.
    pub async fn ask(&self, make: impl FnOnce(Waiter) -> Event) -> Result<Reply, DriverGone> {
        let (waiter, receiver) = self.shared.waiters.park(None);
        let _parked = Parked {
            shared: &self.shared,
            waiter,
            has_place: false,
        };
        self.put(make(waiter), receiver).await
    }

    /// Like [`DriverHandle::ask`], for an act that leaves a line in the audit log.
    ///
    /// # Errors
    /// When the driver has stopped.
    pub(crate) async fn ask_on_record(
        &self,
        line: Line,
        make: impl FnOnce(Waiter) -> Event,
    ) -> Result<Reply, DriverGone> {
        let (waiter, receiver) = self.shared.waiters.park(None);
        let _parked = Parked {
            shared: &self.shared,
            waiter,
            has_place: false,
        };
        self.shared.record.keep(waiter, line);
        let reply = self.put(make(waiter), receiver).await;
        self.shared.record.forget(std::iter::once(waiter));
        reply
    }

    /// Like [`DriverHandle::ask`], for callers who may hold a place without a row: when they
    /// hang up, the engine is told.
    ///
    /// # Errors
    /// When the driver has stopped.
    pub async fn ask_with_place(
        &self,
        execution: &ExecutionId,
        make: impl FnOnce(Waiter) -> Event,
    ) -> Result<Reply, DriverGone> {
        let (waiter, receiver) = self.shared.waiters.park(Some(execution.clone()));
        let _parked = Parked {
            shared: &self.shared,
            waiter,
            has_place: true,
        };
        self.put(make(waiter), receiver).await
    }

    /// Tells the engine when its lane has room, and waits until then.
    ///
    /// # Errors
    /// When the driver has stopped.
    pub async fn tell_in_turn(&self, event: Event) -> Result<(), DriverGone> {
        let mut event = event;
        loop {
            match self.shared.inbox.offer(event) {
                Ok(()) => return Ok(()),
                Err(NotTaken::Gone) => return Err(DriverGone),
                Err(NotTaken::Full(back, _)) => {
                    event = *back;
                    self.shared.inbox.room().await;
                }
            }
        }
    }

    /// How often the engine was rebuilt while running.
    pub(crate) fn restored(&self) -> u64 {
        self.shared.pulse.restored.load(Ordering::Acquire)
    }

    async fn put(
        &self,
        event: Event,
        receiver: tokio::sync::oneshot::Receiver<Reply>,
    ) -> Result<Reply, DriverGone> {
        let mut event = event;
        loop {
            match self.shared.inbox.offer(event) {
                Ok(()) => break,
                Err(NotTaken::Gone) => return Err(DriverGone),
                Err(NotTaken::Full(back, retry_after)) => {
                    if LaneOf::of(&back) != LaneOf::Outcome {
                        return Ok(Reply::Refused(Refusal::Overloaded { retry_after }));
                    }
                    event = *back;
                    self.shared.inbox.room().await;
                }
            }
        }
        receiver.await.map_err(|_| DriverGone)
    }

    /// How many callers hold a connection until the end of an execution.
    pub(crate) fn waiting_for_an_end(&self) -> usize {
        self.shared.waiters.with_execution().len()
    }

    /// Nothing more is taken; what waits is still committed.
    pub(crate) fn close(&self) {
        self.shared.inbox.close();
    }

    /// Signs of life.
    pub fn vitals(&self) -> Vitals {
        let pulse = &self.shared.pulse;
        let since = pulse.committing_since.load(Ordering::Acquire);
        Vitals {
            turned_at: Timestamp(pulse.turned_at.load(Ordering::Acquire)),
            busy: pulse.busy.load(Ordering::Acquire),
            committing_since: (since > 0).then_some(Timestamp(since)),
            last_seq: pulse.last_seq.load(Ordering::Acquire),
            restored: pulse.restored.load(Ordering::Acquire),
            quarantined: pulse.quarantined.load(Ordering::Acquire),
            depths: self.shared.inbox.depths(),
            waiters: self.shared.waiters.len(),
            gone: self.shared.inbox.is_closed(),
        }
    }
}

/// A parked caller; dropping it before the reply means that they hung up.
struct Parked<'a> {
    shared: &'a Shared,
    waiter: Waiter,
    has_place: bool,
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        if self.shared.waiters.leave(self.waiter) && self.has_place {
            self.shared.inbox.push(Event::PlaceLeft {
                waiter: self.waiter,
            });
        }
    }
}
