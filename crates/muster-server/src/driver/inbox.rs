//! What waits for the engine: three bounded lanes, taken 8 : 2 : 1, and what comes back from
//! reads. Outcomes and liveness wait at the edge when their lane is full and are never dropped;
//! control and submissions are refused.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use muster_engine::Event;
use muster_engine::event::Waiter;
use muster_engine::fleet::FleetEvent;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// Outcomes and liveness. When it is full, who brings one waits.
pub const OUTCOMES_MAX: usize = 65_536;
/// Cancels, questions, holds. When it is full, 503 `overloaded`.
pub const CONTROL_MAX: usize = 8_192;
/// Submissions. When it is full, 503 `overloaded`.
pub const SUBMISSIONS_MAX: usize = 4_096;
/// Events of one commit.
pub const BATCH_EVENTS_MAX: usize = 512;
/// Bytes of one commit.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// How many are taken in turn from each lane.
const SHARES: [usize; 3] = [8, 2, 1];

/// A lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOf {
    /// Outcomes and liveness.
    Outcome,
    /// Control.
    Control,
    /// Submissions.
    Submission,
}

impl LaneOf {
    /// Which lane an event takes.
    pub fn of(event: &Event) -> LaneOf {
        match event {
            Event::Submitted(_) => LaneOf::Submission,
            Event::Fleet(event) if event.is_wish() => LaneOf::Control,
            Event::Fleet(_) => LaneOf::Outcome,
            Event::CancelRequested(_)
            | Event::TreeCancelRequested(_)
            | Event::PauseRequested(_)
            | Event::TreePauseRequested(_)
            | Event::ApprovalDecided(_)
            | Event::TagsDecided { .. }
            | Event::PlaceLeft { .. }
            | Event::Held { .. }
            | Event::CapSet { .. }
            | Event::AgentRetired { .. }
            | Event::StoreRoom { .. }
            | Event::Draining
            | Event::DrainEnded
            | Event::Registered(_)
            | Event::Asked { .. } => LaneOf::Control,
            Event::Answered { .. }
            | Event::Accepted { .. }
            | Event::DialFailed { .. }
            | Event::TakenBack { .. }
            | Event::Taken { .. }
            | Event::Sought { .. }
            | Event::BrokeAfterSend { .. }
            | Event::TimedOut { .. }
            | Event::CalledBack(_)
            | Event::Reported(_)
            | Event::Signed { .. }
            | Event::Heard { .. }
            | Event::Goodbye { .. }
            | Event::WorkerChanged { .. }
            | Event::Dialled { .. }
            | Event::Probed { .. }
            | Event::CancelTold { .. }
            | Event::ApprovalAsked(_)
            | Event::ApprovalTold { .. }
            | Event::AwaiterReported(_)
            | Event::LlmChecked { .. }
            | Event::Unheard { .. }
            | Event::WindowLoaded { .. }
            | Event::BereavedLoaded { .. }
            | Event::Tick => LaneOf::Outcome,
        }
    }

    fn max(self) -> usize {
        match self {
            LaneOf::Outcome => OUTCOMES_MAX,
            LaneOf::Control => CONTROL_MAX,
            LaneOf::Submission => SUBMISSIONS_MAX,
        }
    }
}

/// An event with when it came and what it weighs.
#[derive(Debug)]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// When it came.
    pub since: Instant,
    weight: usize,
}

impl Entry {
    fn new(event: Event) -> Self {
        let weight = weight(&event);
        Self {
            event,
            since: Instant::now(),
            weight,
        }
    }
}

/// Bytes that an event brings into a commit, roughly.
fn weight(event: &Event) -> usize {
    use muster_engine::event::Outcome;
    fn of(outcome: &Outcome) -> usize {
        [
            &outcome.result,
            &outcome.error,
            &outcome.details,
            &outcome.usage,
        ]
        .into_iter()
        .flatten()
        .map(|payload| payload.len())
        .sum()
    }
    256 + match event {
        Event::Submitted(submission) => submission.input.len(),
        Event::Answered { outcome, .. } => of(outcome),
        Event::CalledBack(callback) => of(&callback.outcome),
        Event::Reported(report) => {
            of(&report.outcome) + report.input.as_ref().map_or(0, |input| input.len())
        }
        Event::Registered(registration) => registration.body.len(),
        Event::Fleet(event) => match &**event {
            FleetEvent::SpawnAsked(ask) => ask.spec.len(),
            _ => 0,
        },
        _ => 0,
    }
}

#[derive(Debug, Default)]
struct Lanes {
    /// What reads filled in: goes first.
    returned: VecDeque<Entry>,
    lanes: [VecDeque<Entry>; 3],
    asleep: bool,
    closed: bool,
    /// Submissions taken since `rate_since`, for the drain rate.
    taken: u64,
    rate_since: Option<Instant>,
    rate_per_second: f64,
}

/// The inbox.
#[derive(Debug, Default)]
pub struct Inbox {
    lanes: Mutex<Lanes>,
    wake: Condvar,
    room: Notify,
}

/// Why an event was not taken; it comes back.
#[derive(Debug)]
pub enum NotTaken {
    /// Its lane is full; seconds until there should be room.
    Full(Box<Event>, u32),
    /// The driver is gone.
    Gone,
}

impl Inbox {
    /// Puts an event in when its lane has room.
    pub fn offer(&self, event: Event) -> Result<(), NotTaken> {
        let lane = LaneOf::of(&event);
        let mut lanes = self.lanes.lock();
        if lanes.closed {
            return Err(NotTaken::Gone);
        }
        if lanes.lanes[lane as usize].len() >= lane.max() {
            let rate = lanes.rate_per_second.max(1.0);
            let seconds = (lane.max() as f64 / rate).ceil().clamp(1.0, 60.0) as u32;
            return Err(NotTaken::Full(Box::new(event), seconds));
        }
        lanes.lanes[lane as usize].push_back(Entry::new(event));
        self.wake(&mut lanes);
        Ok(())
    }

    /// Puts an event in, whatever waits: for senders that are themselves bounded.
    pub fn push(&self, event: Event) {
        let lane = LaneOf::of(&event);
        let mut lanes = self.lanes.lock();
        lanes.lanes[lane as usize].push_back(Entry::new(event));
        self.wake(&mut lanes);
    }

    /// Hands an event in again after a read.
    pub fn push_back(&self, event: Event) {
        let mut lanes = self.lanes.lock();
        lanes.returned.push_back(Entry::new(event));
        self.wake(&mut lanes);
    }

    /// Waits until a full lane may have room again.
    pub async fn room(&self) {
        // A notification may be missed between the look and the wait: look again soon.
        let _ = tokio::time::timeout(Duration::from_millis(50), self.room.notified()).await;
    }

    /// Nothing more is taken; who waits is woken.
    pub fn close(&self) {
        let mut lanes = self.lanes.lock();
        lanes.closed = true;
        self.wake.notify_all();
        self.room.notify_waiters();
    }

    /// Whether a submission of this caller still waits here.
    pub fn holds_submission_of(&self, waiter: Waiter) -> bool {
        let lanes = self.lanes.lock();
        let mut waiting = lanes
            .returned
            .iter()
            .chain(&lanes.lanes[LaneOf::Submission as usize]);
        waiting.any(|entry| matches!(&entry.event, Event::Submitted(s) if s.waiter == waiter))
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lanes.lock().closed
    }

    /// How many wait: returned, outcomes, control, submissions.
    pub fn depths(&self) -> [usize; 4] {
        let lanes = self.lanes.lock();
        [
            lanes.returned.len(),
            lanes.lanes[0].len(),
            lanes.lanes[1].len(),
            lanes.lanes[2].len(),
        ]
    }

    /// Takes what waits, in fair shares, until the bounds of one commit. Sleeps until something
    /// comes or until `until`; an empty batch means that the time came, or that it was closed.
    pub fn take(&self, into: &mut VecDeque<Entry>, until: Option<Instant>) {
        let mut lanes = self.lanes.lock();
        while lanes.is_empty() && !lanes.closed {
            lanes.asleep = true;
            match until {
                Some(until) => {
                    if self.wake.wait_until(&mut lanes, until).timed_out() {
                        lanes.asleep = false;
                        break;
                    }
                }
                None => self.wake.wait(&mut lanes),
            }
            lanes.asleep = false;
        }
        let was_full = [LaneOf::Outcome, LaneOf::Control, LaneOf::Submission]
            .iter()
            .any(|lane| lanes.lanes[*lane as usize].len() >= lane.max());
        let mut bytes: usize = 0;
        while into.len() < BATCH_EVENTS_MAX && bytes < BATCH_BYTES_MAX {
            if let Some(entry) = lanes.returned.pop_front() {
                bytes += entry.weight;
                into.push_back(entry);
                continue;
            }
            let mut any = false;
            for (index, share) in SHARES.iter().enumerate() {
                for _ in 0..*share {
                    if into.len() >= BATCH_EVENTS_MAX || bytes >= BATCH_BYTES_MAX {
                        break;
                    }
                    let Some(entry) = lanes.lanes[index].pop_front() else {
                        break;
                    };
                    any = true;
                    bytes += entry.weight;
                    if index == LaneOf::Submission as usize {
                        lanes.taken += 1;
                    }
                    into.push_back(entry);
                }
            }
            if !any {
                break;
            }
        }
        lanes.measure();
        if was_full {
            self.room.notify_waiters();
        }
    }

    fn wake(&self, lanes: &mut Lanes) {
        if lanes.asleep {
            lanes.asleep = false;
            self.wake.notify_one();
        }
    }
}

impl Lanes {
    fn is_empty(&self) -> bool {
        self.returned.is_empty() && self.lanes.iter().all(VecDeque::is_empty)
    }

    /// Submissions taken per second, over windows of at least a quarter second.
    fn measure(&mut self) {
        let now = Instant::now();
        let since = *self.rate_since.get_or_insert(now);
        let passed = now.duration_since(since);
        if passed >= Duration::from_millis(250) {
            self.rate_per_second = self.taken as f64 / passed.as_secs_f64();
            self.taken = 0;
            self.rate_since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(inbox: &Inbox, event: &Event, n: usize) {
        for _ in 0..n {
            inbox.push(event.clone());
        }
    }

    #[test]
    fn lanes_are_taken_in_their_shares_and_nothing_is_lost() {
        let inbox = Inbox::default();
        fill(&inbox, &Event::Tick, 40);
        fill(&inbox, &Event::Draining, 40);
        let mut batch = VecDeque::new();
        inbox.take(&mut batch, None);
        assert_eq!(batch.len(), 80);
        let first: Vec<_> = batch
            .iter()
            .take(10)
            .map(|e| LaneOf::of(&e.event))
            .collect();
        assert_eq!(first.iter().filter(|l| **l == LaneOf::Outcome).count(), 8);
        assert_eq!(first.iter().filter(|l| **l == LaneOf::Control).count(), 2);
    }

    #[test]
    fn a_full_lane_gives_the_event_back_and_a_batch_is_bounded() {
        let inbox = Inbox::default();
        for _ in 0..CONTROL_MAX {
            inbox.offer(Event::Draining).unwrap();
        }
        assert!(matches!(
            inbox.offer(Event::Draining),
            Err(NotTaken::Full(_, seconds)) if seconds >= 1
        ));
        let mut batch = VecDeque::new();
        inbox.take(&mut batch, None);
        assert_eq!(batch.len(), BATCH_EVENTS_MAX);
        assert!(inbox.offer(Event::Draining).is_ok());
    }

    #[test]
    fn a_sleeping_take_ends_at_its_time() {
        let inbox = Inbox::default();
        let mut batch = VecDeque::new();
        let start = Instant::now();
        inbox.take(&mut batch, Some(start + Duration::from_millis(20)));
        assert!(batch.is_empty() && start.elapsed() >= Duration::from_millis(20));
    }
}
