//! The driver's thread: take, step, commit, release. What goes wrong is in `recover.rs`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muster_engine::event::Waiter;
use muster_engine::fleet::FleetEvent;
use muster_engine::{Effects, Event, Limits, Notice, Reply};
use muster_store::annex::AuditRow;
use muster_store::{Commit, CommitEnd, Lease, LeaseId, Store, StoreError};
use muster_wire::{ExecutionId, RunId, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

use super::decider::Decider;
use super::inbox::{Entry, LaneOf};
use super::readers::Readers;
use super::recover::waiter_of;
use super::world::World;
use super::{Shared, record};
use crate::clock::Clock;

/// How long a batch may be stepped before it is committed.
const STEPPING_MAX: Duration = Duration::from_millis(2);

/// How long the driver sleeps at most. It looks at its own clock that often, so that a process
/// that stood still knows for how long, and blames no peer for it.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// More time than this between two looks is our own lateness.
const LATE: Duration = Duration::from_secs(3);

/// So many callers are woken from the driver's own thread; more are woken from within the
/// runtime, where each wake is cheap.
const FEW: usize = 2;

/// What a driver is made of.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) key: [u8; 32],
    pub(crate) owner: String,
    /// Why nothing may be dispatched until a person says so: the store was copied or restored.
    pub(crate) caution: Option<Arc<str>>,
}

/// The driver.
pub(crate) struct Driver<E> {
    pub(super) parts: Parts,
    pub(super) engine: E,
    pub(super) lease: Lease,
    readers: Readers,
    batch: VecDeque<Entry>,
    /// Events of the batch at hand, for the meters.
    events: usize,
    /// Submissions whose read is under way.
    pub(super) loading: FxHashSet<u64>,
    /// Sync callers of whom, after a restore, neither the store nor the inbox knows. Some only
    /// had a place, which is gone; some are just about to hand their call in.
    pub(super) doubtful: FxHashMap<u64, Instant>,
    /// Sync callers whom a restored engine does not know, by their execution.
    pub(super) adopted: FxHashMap<ExecutionId, Vec<(Waiter, RunId)>>,
    /// When the wait of those is over.
    pub(super) adopted_until: Instant,
    /// What the acts of this commit leave in the audit log.
    pub(super) lines: Vec<(Waiter, AuditRow)>,
    /// When it last looked at its clock.
    awake_at: Instant,
}

/// Why a batch did not become durable.
#[derive(Debug)]
pub(super) enum Fault {
    /// The engine's state can no longer be trusted: restore, and take the events one by one.
    Poison(String),
    /// Nobody may decide here any more.
    Over(String),
}

impl<E: Decider> Driver<E> {
    /// Restores from the store; commits and releases what the restore decided.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) fn start(parts: Parts) -> Result<Self, StoreError> {
        let lease = parts.store.take_lease(LeaseId::default(), &parts.owner)?;
        let readers =
            Readers::start(&parts.store, &parts.shared).map_err(|source| StoreError::Io {
                doing: "start of the reader threads".into(),
                source,
            })?;
        let caution = parts.caution.clone();
        let (engine, out) = Self::restored(&parts, caution)?;
        let mut driver = Self {
            parts,
            engine,
            lease,
            readers,
            batch: VecDeque::new(),
            events: 0,
            loading: FxHashSet::default(),
            doubtful: FxHashMap::default(),
            adopted: FxHashMap::default(),
            adopted_until: Instant::now(),
            lines: Vec::new(),
            awake_at: Instant::now(),
        };
        let after = driver.committed_seq()?;
        driver.finish(after, out).map_err(|fault| {
            StoreError::Unreadable(format!("the start could not be committed: {fault:?}"))
        })?;
        Ok(driver)
    }

    /// Runs until the inbox is closed or nobody may decide here any more.
    pub(crate) fn run(mut self) {
        while self.turn() {}
        let shared = &self.parts.shared;
        shared.inbox.close();
        shared.waiters.close();
    }

    /// One batch; `false` when it is over.
    fn turn(&mut self) -> bool {
        let shared = self.parts.shared.clone();
        let pulse = &shared.pulse;
        if self.batch.is_empty() {
            let until = self.engine.next_deadline();
            let mut until = until.map(|at| self.parts.clock.instant(at));
            if let Some(doubt) = self.give_up_waiting() {
                until = Some(until.map_or(doubt, |until| until.min(doubt)));
            }
            pulse.busy.store(false, Ordering::Release);
            let sleep_until = Instant::now() + SLEEP_MAX;
            let until = Some(until.map_or(sleep_until, |until| until.min(sleep_until)));
            self.parts.shared.inbox.take(&mut self.batch, until);
        }
        let late = self.awake_at.elapsed();
        self.awake_at = Instant::now();
        let now = self.parts.clock.now();
        // In this order: who sees it busy must not see when it turned before it slept.
        pulse.turned_at.store(now.0, Ordering::Release);
        pulse.busy.store(true, Ordering::Release);
        if self.batch.is_empty() && self.parts.shared.inbox.is_closed() {
            return false;
        }
        if let Some(oldest) = self.batch.front() {
            self.parts.world.waited(oldest.since.elapsed());
        }

        let after = self.engine.last_seq();
        let mut out = Effects::default();
        let mut taken = Vec::with_capacity(self.batch.len() + 2);
        let woken = self.own_up(now, late, &mut taken, &mut out);
        let stepped = woken.and_then(|()| self.step_batch(now, &mut taken, &mut out));
        self.events = taken.len();
        let end = match stepped {
            Ok(()) => self.finish(after, out),
            Err(fault) => Err(fault),
        };
        match end {
            Ok(()) => true,
            Err(Fault::Poison(why)) => match self.take_one_by_one(taken, &why) {
                Ok(()) => true,
                Err(why) => self.over(&why),
            },
            Err(Fault::Over(why)) => self.over(&why),
        }
    }

    /// First of all, what we were late ourselves: beats that came meanwhile still wait.
    fn own_up(
        &mut self,
        now: Timestamp,
        late: Duration,
        taken: &mut Vec<Event>,
        out: &mut Effects,
    ) -> Result<(), Fault> {
        if late <= LATE {
            return Ok(());
        }
        tracing::warn!(
            late_ms = late.as_millis(),
            "the plane itself stood still; nobody's silence counts for that time"
        );
        let event = FleetEvent::WasLate { by: late };
        self.step(now, Event::Fleet(Box::new(event)), taken, out)
    }

    fn over(&self, why: &str) -> bool {
        tracing::error!(
            reason = why,
            "the driver stops: nobody decides here any more"
        );
        false
    }

    /// Steps what was taken, then time. What a step wants read is read at once.
    fn step_batch(
        &mut self,
        now: Timestamp,
        taken: &mut Vec<Event>,
        out: &mut Effects,
    ) -> Result<(), Fault> {
        let began = Instant::now();
        while let Some(entry) = self.batch.pop_front() {
            self.step(now, entry.event, taken, out)?;
            if began.elapsed() > STEPPING_MAX {
                break;
            }
        }
        if self.engine.next_deadline().is_some_and(|at| at <= now) {
            let mut due = Vec::new();
            self.engine.due_beats(now, &mut due);
            for key in due {
                if let Some((at, interval)) = self.parts.world.receipt(&key) {
                    self.step(now, Event::Heard { key, at, interval }, taken, out)?;
                }
            }
            self.step(now, Event::Tick, taken, out)?;
        }
        Ok(())
    }

    /// One step. The event is kept in `taken` unless it went away to be read for.
    pub(super) fn step(
        &mut self,
        now: Timestamp,
        event: Event,
        taken: &mut Vec<Event>,
        out: &mut Effects,
    ) -> Result<(), Fault> {
        if (!self.loading.is_empty() || !self.doubtful.is_empty())
            && let Event::Submitted(submission) = &event
        {
            self.loading.remove(&submission.waiter.0);
            self.doubtful.remove(&submission.waiter.0);
        }
        taken.push(event.clone());
        let act = (LaneOf::of(&event) == LaneOf::Control).then(|| waiter_of(&event));
        let (writes, replies) = (out.writes.len(), out.replies.len());
        let engine = &mut self.engine;
        catch_unwind(AssertUnwindSafe(|| engine.step(now, event, out)))
            .map_err(|panic| Fault::Poison(format!("a step panicked: {}", text_of(&*panic))))?;
        if let Some(waiter) = act.flatten().filter(|_| out.writes.len() > writes) {
            let mut new = out.replies[replies..].iter();
            let reply = new.find(|(to, _)| *to == waiter).map(|(_, reply)| reply);
            let row = self.parts.shared.record.row(waiter, reply, now);
            self.lines.extend(row.map(|row| (waiter, row)));
        }
        if !out.loads.is_empty() {
            let mut own = false;
            for load in out.loads.drain(..) {
                own |= !matches!(load, muster_engine::Load::Window { .. });
                if let muster_engine::Load::Submission(submission) = &load {
                    self.loading.insert(submission.waiter.0);
                }
                self.readers.start_read(load);
            }
            if own {
                taken.pop();
            }
        }
        Ok(())
    }

    /// Commits, then releases.
    pub(super) fn finish(&mut self, after: u64, out: Effects) -> Result<(), Fault> {
        let Effects {
            writes,
            loads,
            sends,
            replies,
            notices,
        } = out;
        for load in loads {
            self.readers.start_read(load);
        }
        let last_seq = self.engine.last_seq();
        // Of a commit that fails the acts are taken again, and their lines with them.
        let lines = std::mem::take(&mut self.lines);
        if !writes.is_empty() {
            let commit = Commit {
                lease: self.lease.clone(),
                after_seq: after,
                last_seq,
                writes,
                audit: lines.iter().map(|(_, row)| row.clone()).collect(),
            };
            self.commit(commit)?;
            lines.iter().for_each(|(_, row)| record::say(row));
            let written = lines.iter().map(|(waiter, _)| *waiter);
            self.parts.shared.record.forget(written);
            self.parts
                .shared
                .pulse
                .last_seq
                .store(last_seq, Ordering::Release);
        }
        self.release(sends, replies, notices);
        Ok(())
    }

    fn release(
        &mut self,
        sends: Vec<muster_engine::Send>,
        replies: Vec<(Waiter, Reply)>,
        notices: Vec<Notice>,
    ) {
        self.parts.world.publish(&notices);
        if !sends.is_empty() {
            self.parts.world.send(sends);
        }
        if replies.len() > FEW {
            let shared = self.parts.shared.clone();
            let answer = move || answer_all(&shared, replies);
            self.parts.world.spawn(Box::new(answer));
        } else {
            answer_all(&self.parts.shared, replies);
        }
        if !self.adopted.is_empty() {
            self.answer_adopted(&notices);
        }
        self.parts.world.announce(notices);
    }

    /// Brings a commit to one of its ends. A passing refusal is tried again for as long as it
    /// takes, while waiters stay parked.
    fn commit(&mut self, mut commit: Commit) -> Result<(), Fault> {
        let began = Instant::now();
        let pulse = &self.parts.shared.pulse;
        pulse
            .committing_since
            .store(self.parts.clock.now().0, Ordering::Release);
        let mut wait = Duration::from_millis(5);
        let end = loop {
            match self.parts.store.commit(&commit) {
                CommitEnd::Committed => break Ok(()),
                CommitEnd::Refused {
                    passing: true,
                    cause,
                } => {
                    tracing::warn!(error = %cause, wait_ms = wait.as_millis(), "a commit was refused; trying again");
                    self.breathe(&mut wait);
                }
                CommitEnd::Refused {
                    passing: false,
                    cause: cause @ StoreError::Fenced { .. },
                } => break Err(Fault::Over(cause.to_string())),
                CommitEnd::Refused {
                    passing: false,
                    cause,
                } => break Err(Fault::Poison(format!("a commit was refused: {cause}"))),
                CommitEnd::Unknown(cause) => {
                    tracing::warn!(error = %cause, "the end of a commit is unknown; looking");
                    match self.look_after(&mut commit, &mut wait) {
                        Ok(true) => break Ok(()),
                        Ok(false) => {}
                        Err(fault) => break Err(fault),
                    }
                }
            }
        };
        let pulse = &self.parts.shared.pulse;
        pulse.committing_since.store(0, Ordering::Release);
        let writes = commit.writes.len();
        self.parts
            .world
            .committed(self.events, writes, began.elapsed());
        end
    }

    pub(super) fn is_in_batch(&self, waiter: Waiter) -> bool {
        self.batch
            .iter()
            .any(|entry| matches!(&entry.event, Event::Submitted(s) if s.waiter == waiter))
    }

    pub(super) fn breathe(&self, wait: &mut Duration) {
        std::thread::sleep(*wait);
        *wait = (*wait * 2).min(Duration::from_secs(1));
        let pulse = &self.parts.shared.pulse;
        pulse
            .turned_at
            .store(self.parts.clock.now().0, Ordering::Release);
    }
}

/// Answers callers. An accepted call whose caller is gone is told to the engine: the same call
/// may come again at once, and joins it then.
fn answer_all(shared: &Shared, replies: Vec<(Waiter, Reply)>) {
    for (waiter, reply) in replies {
        let accepted = match &reply {
            Reply::Accepted(receipt) => Some(receipt.execution.clone()),
            _ => None,
        };
        let heard = shared.waiters.answer(waiter, reply);
        if !heard {
            // Of an act that was refused while its caller hung up, nobody else forgets the line.
            shared.record.forget(std::iter::once(waiter));
        }
        if let (false, Some(execution)) = (heard, accepted) {
            shared.inbox.push(Event::Unheard { execution });
        }
    }
}

/// What a panic said.
pub(super) fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no text".to_owned())
}
