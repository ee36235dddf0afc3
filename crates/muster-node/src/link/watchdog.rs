//! Decides whether the plane still answers: beats are numbered, each must be acknowledged within
//! a deadline, and our own lateness is nobody's silence. Knows no socket and reads no clock.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Beats that are kept as unanswered.
const WAITING_MAX: usize = 64;

/// What is found when one looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing is overdue.
    Fine,
    /// This process, or this machine, stood still: nothing can be said about the plane.
    StoodStill(Duration),
    /// A beat was not acknowledged in time.
    Overdue {
        /// The oldest such beat.
        seq: u64,
        /// How long it has waited, our own lateness taken off.
        waited: Duration,
    },
}

/// Watches the beats of one session.
#[derive(Debug)]
pub(crate) struct Watchdog {
    deadline: Duration,
    look_every: Duration,
    still_after: Duration,
    waiting: VecDeque<(u64, Instant)>,
    looked_at: Instant,
    seq: u64,
}

impl Watchdog {
    /// A session began; `beat` is how often it beats, `beats` how many may go unanswered.
    pub(crate) fn new(beat: Duration, beats: u32, now: Instant) -> Self {
        let deadline = beat * beats;
        Self {
            deadline,
            look_every: (beat / 4).clamp(Duration::from_millis(5), Duration::from_secs(1)),
            still_after: deadline.max(Duration::from_millis(500)),
            waiting: VecDeque::new(),
            looked_at: now,
            seq: 0,
        }
    }

    /// How often somebody must look.
    pub(crate) fn look_every(&self) -> Duration {
        self.look_every
    }

    /// How long a beat may wait.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// A beat goes out: its number.
    pub(crate) fn beat(&mut self, now: Instant) -> u64 {
        self.seq += 1;
        // The oldest ones decide, so more than these need not be kept of a silent peer.
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((self.seq, now));
        }
        self.seq
    }

    /// A beat was acknowledged, and with it all before it. How long it took; `None` for one that
    /// does not wait.
    pub(crate) fn acknowledged(&mut self, seq: u64, now: Instant) -> Option<Duration> {
        let at = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == seq)?;
        let (_, sent) = self.waiting[at];
        self.waiting.drain(..=at);
        Some(now.saturating_duration_since(sent))
    }

    /// How many beats wait.
    pub(crate) fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// Looks. To be called at least every [`Self::look_every`]: what it is called later is our
    /// own lateness, and added to what the plane may take.
    pub(crate) fn look(&mut self, now: Instant) -> Finding {
        let since = now.saturating_duration_since(self.looked_at);
        self.looked_at = now;
        let late = since.saturating_sub(self.look_every);
        if late > self.still_after {
            return Finding::StoodStill(since);
        }
        if late > self.look_every {
            for (_, sent) in &mut self.waiting {
                *sent += late;
            }
        }
        match self.waiting.front() {
            Some((seq, sent)) if now.saturating_duration_since(*sent) > self.deadline => {
                Finding::Overdue {
                    seq: *seq,
                    waited: now.saturating_duration_since(*sent),
                }
            }
            _ => Finding::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_secs(5);

    /// Looks every second from `from` for `seconds`; the first finding that is not fine.
    fn look(dog: &mut Watchdog, from: Instant, seconds: u64) -> (u64, Finding) {
        for second in 1..=seconds {
            let found = dog.look(from + Duration::from_secs(second));
            if found != Finding::Fine {
                return (second, found);
            }
        }
        (seconds, Finding::Fine)
    }

    #[test]
    fn a_plane_that_answers_is_never_dropped() {
        let mut now = Instant::now();
        let mut dog = Watchdog::new(BEAT, 3, now);
        for _ in 0..10_000 {
            let seq = dog.beat(now);
            assert_eq!(look(&mut dog, now, 5).1, Finding::Fine);
            now += BEAT;
            assert_eq!(dog.acknowledged(seq, now), Some(BEAT));
            assert_eq!(dog.unanswered(), 0);
        }
    }

    #[test]
    fn a_beat_that_is_not_acknowledged_within_three_beats_is_overdue() {
        let start = Instant::now();
        let mut dog = Watchdog::new(BEAT, 3, start);
        dog.beat(start);
        let (second, found) = look(&mut dog, start, 60);
        assert_eq!(second, 16);
        assert!(
            matches!(found, Finding::Overdue { seq: 1, .. }),
            "{found:?}"
        );
    }

    #[test]
    fn a_late_acknowledgement_covers_the_beats_before_it_and_no_later_one() {
        let start = Instant::now();
        let mut dog = Watchdog::new(BEAT, 3, start);
        for _ in 0..3 {
            dog.beat(start);
        }
        assert!(dog.acknowledged(2, start).is_some());
        assert_eq!(dog.unanswered(), 1);
        assert_eq!(dog.acknowledged(2, start), None);
        assert_eq!(dog.acknowledged(99, start), None);
        assert!(matches!(
            look(&mut dog, start, 60).1,
            Finding::Overdue { seq: 3, .. }
        ));
    }

    #[test]
    fn our_own_lateness_is_not_the_planes_silence() {
        let start = Instant::now();
        let mut dog = Watchdog::new(BEAT, 3, start);
        dog.beat(start);
        assert_eq!(look(&mut dog, start, 10).1, Finding::Fine);
        // Nobody looked for 12 s: 22 s have passed, and the plane had 11 of them.
        let now = start + Duration::from_secs(22);
        assert_eq!(dog.look(now), Finding::Fine);
        assert_eq!(look(&mut dog, now, 10).0, 5);
    }

    #[test]
    fn a_machine_that_slept_says_nothing_about_the_plane() {
        let start = Instant::now();
        let mut dog = Watchdog::new(BEAT, 3, start);
        dog.beat(start);
        assert_eq!(dog.look(start + Duration::from_secs(1)), Finding::Fine);
        let found = dog.look(start + Duration::from_secs(3601));
        assert_eq!(found, Finding::StoodStill(Duration::from_secs(3600)));
    }
}
