//! Whether and when a process that exited is started again. Reads no clock and throws no dice.

use std::time::Duration;

use muster_wire::fleet::{RestartMode, RestartPolicy};
use serde::{Deserialize, Serialize};

/// The waits between starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waits {
    /// The first.
    pub(crate) first: Duration,
    /// The longest.
    pub(crate) longest: Duration,
    /// A run of this length starts the count anew.
    pub(crate) reset: Duration,
}

/// How a run was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    /// How long.
    pub(crate) length: Duration,
    /// It ended other than with code 0.
    pub(crate) failed: bool,
}

/// How often a worker was started again in a row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    starts: u32,
}

impl Row {
    /// The wait before the next start; `None` when there is none. `dice` is from 0 to 1: half of
    /// each wait is up to it, so that many workers that died together do not start together.
    pub(crate) fn next(
        &mut self,
        policy: RestartPolicy,
        waits: Waits,
        ran: Ran,
        dice: f64,
    ) -> Option<Duration> {
        if ran.length >= waits.reset {
            self.starts = 0;
        }
        let again = match policy.mode {
            RestartMode::Never => false,
            RestartMode::OnFailure => ran.failed,
            RestartMode::Always => true,
        };
        if !again || policy.max.is_some_and(|max| self.starts >= max) {
            return None;
        }
        let doubled = waits.first.saturating_mul(1 << self.starts.min(16));
        self.starts += 1;
        let wait = doubled.min(waits.longest);
        Some(wait / 2 + (wait / 2).mul_f64(dice.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Waits = Waits {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(60),
        reset: Duration::from_secs(60),
    };

    fn ran(seconds: u64, failed: bool) -> Ran {
        Ran {
            length: Duration::from_secs(seconds),
            failed,
        }
    }

    fn policy(mode: RestartMode, max: Option<u32>) -> RestartPolicy {
        RestartPolicy { mode, max }
    }

    #[test]
    fn waits_double_to_the_longest_and_a_long_run_starts_anew() {
        let mut row = Row::default();
        let always = policy(RestartMode::Always, None);
        let seconds: Vec<u64> = (0..8)
            .map(|_| {
                row.next(always, WAITS, ran(0, false), 1.0)
                    .unwrap()
                    .as_secs()
            })
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        let after_long = row.next(always, WAITS, ran(60, true), 0.0);
        assert_eq!(after_long, Some(Duration::from_millis(500)));
        for _ in 0..100 {
            row.next(always, WAITS, ran(0, true), 0.5).unwrap();
        }
    }

    #[test]
    fn the_policy_and_its_bound_decide() {
        for (mode, failed, again) in [
            (RestartMode::Never, true, false),
            (RestartMode::OnFailure, true, true),
            (RestartMode::OnFailure, false, false),
            (RestartMode::Always, false, true),
        ] {
            let next = Row::default().next(policy(mode, None), WAITS, ran(1, failed), 0.5);
            assert_eq!(next.is_some(), again, "{mode:?} {failed}");
        }
        let mut row = Row::default();
        let twice = policy(RestartMode::OnFailure, Some(2));
        assert!(row.next(twice, WAITS, ran(1, true), 0.5).is_some());
        assert!(row.next(twice, WAITS, ran(1, true), 0.5).is_some());
        assert!(row.next(twice, WAITS, ran(1, true), 0.5).is_none());
        assert!(row.next(twice, WAITS, ran(61, true), 0.5).is_some());
        assert!(policy(RestartMode::Always, Some(0)).max == Some(0));
    }
}
