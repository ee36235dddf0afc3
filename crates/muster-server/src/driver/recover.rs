//! What the driver does when a step panics or a commit does not end well. One bad event harms
//! itself and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use muster_engine::event::Waiter;
use muster_engine::{Effects, Event, Notice, Refusal, Reply};
use muster_store::{Commit, LeaseId, QuarantineItem, Restored, StoreError};
use muster_wire::mint;

use super::decider::Decider;
use super::turn::{Driver, Fault, Parts, text_of};

/// How much of a thing set aside is kept as text.
const WHAT_MAX: usize = 4096;
/// How long a caller may take from its seat to the inbox.
const DOUBT: Duration = Duration::from_secs(1);
/// How often the store is asked for a restore before giving up.
const RESTORES_MAX: u32 = 60;

impl<E: Decider> Driver<E> {
    /// Reads the store and rebuilds an engine; rows that cannot be read are set aside. With a
    /// `caution` everything is held for that reason, unless it is held already.
    pub(super) fn restored(
        parts: &Parts,
        caution: Option<Arc<str>>,
    ) -> Result<(E, Effects), StoreError> {
        let Restored {
            mut snapshot,
            set_aside,
        } = parts.store.restore()?;
        for item in &set_aside {
            tracing::error!(quarantine.id = %item.id, about = %item.about, error = %item.error, "a row could not be read and was set aside");
            parts.store.set_aside(item)?;
        }
        // Held from the first look on, so that nothing restored goes out; and decided like any
        // other hold, so that it is stored and told.
        let caution = caution.filter(|_| snapshot.hold.is_none());
        snapshot.hold = snapshot.hold.or_else(|| caution.clone());
        let mut out = Effects::default();
        let now = parts.clock.now();
        let restore = AssertUnwindSafe(|| {
            let mut engine = E::restore(parts.limits.clone(), parts.key, now, snapshot, &mut out);
            if caution.is_some() {
                let held = Event::Held {
                    agent: None,
                    reason: caution,
                    by: "plane".into(),
                    waiter: Waiter(0),
                };
                engine.step(now, held, &mut out);
            }
            engine
        });
        let engine = catch_unwind(restore).map_err(|panic| {
            StoreError::Unreadable(format!("the restore panicked: {}", text_of(&*panic)))
        })?;
        Ok((engine, out))
    }

    /// The last event in the store.
    pub(super) fn committed_seq(&self) -> Result<u64, StoreError> {
        self.parts.store.last_seq()
    }

    /// Takes the lease again and looks whether a commit is there: `true` when it is. When it is
    /// not, `commit` carries the new epoch and may be tried again.
    pub(super) fn look_after(
        &mut self,
        commit: &mut Commit,
        wait: &mut Duration,
    ) -> Result<bool, Fault> {
        loop {
            let looked = self
                .parts
                .store
                .take_lease(LeaseId::default(), &self.parts.owner)
                .and_then(|lease| Ok((lease, self.parts.store.last_seq()?)));
            match looked {
                Ok((lease, found)) => {
                    self.lease = lease.clone();
                    commit.lease = lease;
                    if found == commit.last_seq && commit.last_seq != commit.after_seq {
                        return Ok(true);
                    }
                    if found == commit.after_seq {
                        return Ok(false);
                    }
                    return Err(Fault::Over(format!(
                        "somebody else decided: the last event is {found}, not {} or {}",
                        commit.after_seq, commit.last_seq
                    )));
                }
                Err(error) => {
                    tracing::warn!(error = %error, "the store cannot be asked about the last commit; trying again");
                    self.breathe(wait);
                }
            }
        }
    }

    /// Restores the engine and takes the events again, one per commit. One that fails again is
    /// set aside and its caller told so.
    pub(super) fn take_one_by_one(&mut self, events: Vec<Event>, why: &str) -> Result<(), String> {
        tracing::error!(
            error = why,
            events = events.len(),
            "a batch failed; restoring and taking its events one by one"
        );
        self.restore_again(&events)?;
        let mut events = std::collections::VecDeque::from(events);
        while let Some(event) = events.pop_front() {
            let now = self.parts.clock.now();
            let after = self.engine.last_seq();
            let (mut out, mut taken) = (Effects::default(), Vec::new());
            let end = self
                .step(now, event.clone(), &mut taken, &mut out)
                .and_then(|()| self.finish(after, out));
            match end {
                Ok(()) => {}
                Err(Fault::Over(why)) => return Err(why),
                Err(Fault::Poison(why)) => {
                    self.quarantine(&event, &why);
                    self.restore_again(events.make_contiguous())?;
                }
            }
        }
        Ok(())
    }

    /// Restores until it works; `events` are about to be taken again.
    fn restore_again(&mut self, events: &[Event]) -> Result<(), String> {
        self.lines.clear();
        let mut wait = Duration::from_millis(20);
        for _ in 0..RESTORES_MAX {
            match Self::restored(&self.parts, None) {
                Ok((engine, out)) => {
                    self.engine = engine;
                    let after = self.committed_seq().map_err(|error| error.to_string())?;
                    self.finish(after, out)
                        .map_err(|fault| format!("a restore could not be committed: {fault:?}"))?;
                    self.parts
                        .shared
                        .pulse
                        .restored
                        .fetch_add(1, Ordering::Relaxed);
                    self.adopt(events);
                    return Ok(());
                }
                Err(error) => {
                    tracing::error!(error = %error, "the engine could not be restored; trying again");
                    self.breathe(&mut wait);
                }
            }
        }
        Err("the engine could not be restored".into())
    }

    fn quarantine(&mut self, event: &Event, why: &str) {
        let id = mint("quar");
        let mut what = format!("{event:?}");
        if what.len() > WHAT_MAX {
            let cut = (0..=WHAT_MAX)
                .rev()
                .find(|at| what.is_char_boundary(*at))
                .unwrap_or(0);
            what.truncate(cut);
        }
        let item = QuarantineItem {
            id: id.clone(),
            at: self.parts.clock.now(),
            kind: "event".into(),
            about: about(event),
            error: why.to_owned(),
            what,
        };
        tracing::error!(quarantine.id = %id, about = %item.about, error = why, "an event could not be handled and was set aside");
        if let Err(error) = self.parts.store.set_aside(&item) {
            tracing::error!(quarantine.id = %id, error = %error, "what was set aside could not be stored");
        }
        let pulse = &self.parts.shared.pulse;
        pulse.quarantined.fetch_add(1, Ordering::Relaxed);
        if let Some(waiter) = waiter_of(event) {
            let reply = Reply::Refused(Refusal::Quarantined { id });
            self.parts.shared.waiters.answer(waiter, reply);
        }
    }

    /// Finds the sync callers whom the restored engine does not know: their execution's end
    /// answers them from here; who had only a place is asked to come again.
    fn adopt(&mut self, events: &[Event]) {
        self.adopted.clear();
        self.adopted_until = Instant::now() + self.parts.limits.sync_wait;
        let again: std::collections::HashSet<u64> = events
            .iter()
            .filter_map(waiter_of)
            .map(|waiter| waiter.0)
            .collect();
        let waiting = self.parts.shared.waiters.with_execution();
        for (waiter, execution) in waiting {
            if again.contains(&waiter.0)
                || self.loading.contains(&waiter.0)
                || self.is_in_batch(waiter)
                || self.parts.shared.inbox.holds_submission_of(waiter)
            {
                continue;
            }
            match self.parts.store.execution(&execution) {
                Ok((_, Some(row))) if row.status.is_terminal() => {
                    let payload = |kind| self.parts.store.payload(&row.id, kind).ok().flatten();
                    let view = muster_engine::effect::ExecutionView {
                        result: payload(muster_engine::row::PayloadKind::Result),
                        details: payload(muster_engine::row::PayloadKind::ErrorDetails),
                        row: Arc::new(row),
                    };
                    let reply = Reply::Ended(Arc::new(view));
                    self.parts.shared.waiters.answer(waiter, reply);
                }
                Ok((_, Some(row))) => {
                    let waiting = self.adopted.entry(execution).or_default();
                    waiting.push((waiter, row.run));
                }
                Ok((_, None)) => {
                    self.doubtful.entry(waiter.0).or_insert_with(Instant::now);
                }
                // Dropping the caller answers 503: nobody knows, and nothing else is true.
                Err(_) => {
                    self.parts.shared.waiters.leave(waiter);
                }
            }
        }
    }

    /// Tells those whom a restored engine does not know when their time is over; when the next
    /// of them is due.
    pub(super) fn give_up_waiting(&mut self) -> Option<Instant> {
        if self.doubtful.is_empty() && self.adopted.is_empty() {
            return None;
        }
        if self.adopted_until <= Instant::now() {
            for (execution, waiters) in self.adopted.drain() {
                for (waiter, run) in waiters {
                    let reply = Reply::StillRunning {
                        execution: execution.clone(),
                        run,
                        shutdown: false,
                    };
                    self.parts.shared.waiters.answer(waiter, reply);
                }
            }
        }
        let adopted = (!self.adopted.is_empty()).then_some(self.adopted_until);
        let waiters = &self.parts.shared.waiters;
        self.doubtful.retain(|waiter, since| {
            let in_doubt = since.elapsed() < DOUBT;
            if !in_doubt {
                let reply = Reply::Refused(Refusal::Overloaded { retry_after: 1 });
                waiters.answer(Waiter(*waiter), reply);
            }
            in_doubt
        });
        let doubtful = self.doubtful.values().min().map(|since| *since + DOUBT);
        adopted.into_iter().chain(doubtful).min()
    }

    pub(super) fn answer_adopted(&mut self, notices: &[Notice]) {
        for notice in notices {
            if let Notice::Execution(view) = notice
                && view.row.status.is_terminal()
                && let Some(waiters) = self.adopted.remove(&view.row.id)
            {
                for (waiter, _) in waiters {
                    let reply = Reply::Ended(view.clone());
                    self.parts.shared.waiters.answer(waiter, reply);
                }
            }
        }
    }
}

/// Who waits for this event's reply.
pub(super) fn waiter_of(event: &Event) -> Option<Waiter> {
    match event {
        Event::Submitted(submission) => Some(submission.waiter),
        Event::Fleet(event) => event.waiter(),
        Event::CalledBack(callback) => Some(callback.waiter),
        Event::Registered(registration) => Some(registration.waiter),
        Event::Goodbye { waiter, .. }
        | Event::Held { waiter, .. }
        | Event::CapSet { waiter, .. }
        | Event::AgentRetired { waiter, .. }
        | Event::Asked { waiter, .. } => Some(*waiter),
        Event::CancelRequested(cancel) => Some(cancel.waiter),
        Event::TreeCancelRequested(cancel) => Some(cancel.waiter),
        Event::PauseRequested(pause) => Some(pause.waiter),
        Event::TreePauseRequested(pause) => Some(pause.waiter),
        Event::ApprovalAsked(ask) => Some(ask.waiter),
        Event::ApprovalDecided(verdict) => Some(verdict.waiter),
        Event::AwaiterReported(awaiter) => Some(awaiter.waiter),
        Event::TagsDecided { waiter, .. } => Some(*waiter),
        Event::Answered { .. }
        | Event::Accepted { .. }
        | Event::DialFailed { .. }
        | Event::TakenBack { .. }
        | Event::Taken { .. }
        | Event::Sought { .. }
        | Event::BrokeAfterSend { .. }
        | Event::TimedOut { .. }
        | Event::Reported(_)
        | Event::Signed { .. }
        | Event::Heard { .. }
        | Event::WorkerChanged { .. }
        | Event::Dialled { .. }
        | Event::Probed { .. }
        | Event::CancelTold { .. }
        | Event::ApprovalTold { .. }
        | Event::LlmChecked { .. }
        | Event::Unheard { .. }
        | Event::PlaceLeft { .. }
        | Event::WindowLoaded { .. }
        | Event::BereavedLoaded { .. }
        | Event::StoreRoom { .. }
        | Event::Draining
        | Event::DrainEnded
        | Event::Tick => None,
    }
}

/// What an event is about, in a few words.
fn about(event: &Event) -> String {
    match event {
        Event::Fleet(event) => event.about(),
        Event::Submitted(s) => format!("call {} of {}.{}", s.execution, s.agent, s.function),
        Event::Answered { attempt, .. } => format!("answer for {}", attempt.execution),
        Event::Accepted { attempt } => format!("acceptance of {}", attempt.execution),
        Event::Taken { attempt } => format!("connection of {}", attempt.execution),
        Event::Sought { key, .. } => format!("search for {}", key.agent),
        Event::TakenBack { attempt } => format!("call of {} taken back", attempt.execution),
        Event::DialFailed { attempt, .. } => format!("failed dial for {}", attempt.execution),
        Event::BrokeAfterSend { attempt, .. } => {
            format!("broken connection for {}", attempt.execution)
        }
        Event::TimedOut { attempt } => format!("time-out of {}", attempt.execution),
        Event::CalledBack(c) => format!("callback for {}", c.from.execution),
        Event::Reported(r) => format!("report about {}", r.about.execution),
        Event::Signed { from } => format!("sign of {}", from.execution),
        Event::Registered(r) => format!("registration of {}", r.agent),
        Event::Heard { key, .. } => format!("beat of {}", key.agent),
        Event::Goodbye { agent, .. } => format!("goodbye of {agent}"),
        Event::WorkerChanged { worker, .. } => format!("worker {worker}"),
        Event::Dialled { key, .. } => format!("dial of {}", key.agent),
        Event::Probed { key, .. } => format!("probe of {}", key.agent),
        Event::CancelRequested(c) => format!("cancel of {}", c.execution),
        Event::TreeCancelRequested(c) => format!("cancel of run {}", c.run),
        Event::PauseRequested(p) => format!("pause of {}", p.execution),
        Event::TreePauseRequested(p) => format!("pause of run {}", p.run),
        Event::ApprovalAsked(a) => format!("approval asked by {}", a.from.execution),
        Event::ApprovalDecided(v) => match &v.execution {
            Some(execution) => format!("decision about {execution}"),
            None => "decision about an approval".into(),
        },
        Event::ApprovalTold { execution, .. } => format!("decision told to {execution}"),
        Event::AwaiterReported(a) => format!("wait of {}", a.from.execution),
        Event::TagsDecided { agent, .. } => format!("tags of {agent}"),
        Event::LlmChecked { endpoint, .. } => format!("check of {endpoint}"),
        Event::CancelTold { attempt, .. } => format!("cancel receipt of {}", attempt.execution),
        Event::Unheard { execution } => format!("unwritten answer for {execution}"),
        Event::PlaceLeft { .. } => "a caller that hung up".into(),
        Event::WindowLoaded { agent, .. } => format!("queue of {agent}"),
        Event::BereavedLoaded { .. } => "queued calls whose parents have ended".into(),
        Event::Held { .. } => "hold".into(),
        Event::AgentRetired { agent, .. } => format!("retirement of {agent}"),
        Event::CapSet { agent, .. } => format!("cap of {agent}"),
        Event::StoreRoom { .. } => "room on the disk".into(),
        Event::Draining | Event::DrainEnded => "shutdown".into(),
        Event::Asked { question, .. } => format!("question {question:?}"),
        Event::Tick => "passing of time".into(),
    }
}
