//! Notices that the machine was suspended: two clocks, one of which stands still meanwhile.
//! Elsewhere than on Linux there is no second clock to compare, and nothing is noticed here.

use std::time::Duration;

/// A difference below this is the clocks' own.
const NOTICED: Duration = Duration::from_secs(2);

/// Compares a clock that counts suspension with one that does not.
#[derive(Debug)]
pub(crate) struct SleepWatch {
    ahead: Option<Duration>,
}

impl SleepWatch {
    /// Begins to watch.
    pub(crate) fn new() -> Self {
        Self { ahead: ahead() }
    }

    /// How long the machine slept since the last look, if it did.
    pub(crate) fn look(&mut self) -> Option<Duration> {
        self.compare(ahead())
    }

    fn compare(&mut self, now: Option<Duration>) -> Option<Duration> {
        let slept = now?.saturating_sub(self.ahead?);
        self.ahead = now;
        (slept >= NOTICED).then_some(slept)
    }
}

/// How far the clock that counts suspension is ahead of the one that does not.
#[cfg(target_os = "linux")]
fn ahead() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    // In this order, so that a pause in between makes the difference smaller and alarms nobody.
    let all = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    let awake = Duration::try_from(clock_gettime(ClockId::Monotonic)).ok()?;
    Some(all.saturating_sub(awake))
}

#[cfg(not(target_os = "linux"))]
fn ahead() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_noticed_once() {
        let mut watch = SleepWatch {
            ahead: Some(Duration::from_secs(10)),
        };
        assert_eq!(watch.compare(Some(Duration::from_millis(10_400))), None);
        assert_eq!(
            watch.compare(Some(Duration::from_millis(70_400))),
            Some(Duration::from_secs(60))
        );
        assert_eq!(watch.compare(Some(Duration::from_millis(70_400))), None);
        assert_eq!(SleepWatch::new().look(), None);
    }
}
