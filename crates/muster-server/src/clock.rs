//! The plane's clock: the wall clock at start plus monotonic time. A step of the wall clock
//! decides nothing.

use std::time::Instant;

use muster_wire::Timestamp;

/// Gives `now`. Never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    /// Reads the wall clock once.
    pub fn start() -> Self {
        Self {
            wall: Timestamp::wall_clock(),
            start: Instant::now(),
        }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.wall + self.start.elapsed()
    }

    /// When the clock was started.
    pub fn started_at(&self) -> Timestamp {
        self.wall
    }

    /// The monotonic instant of a moment; now for moments before the start.
    pub fn instant(&self, at: Timestamp) -> Instant {
        self.start
            .checked_add(at.since(self.wall))
            .unwrap_or_else(|| self.start + std::time::Duration::from_secs(365 * 86_400))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The wall clock is read once. However it is set afterwards, time goes on as it did: a clock
    /// that started while the wall was an hour off stays an hour off, and never goes back.
    #[test]
    fn a_step_of_the_wall_clock_decides_nothing() {
        let hour = Duration::from_secs(3600);
        for wall in [
            Timestamp::wall_clock() + hour,
            Timestamp::wall_clock() - hour,
        ] {
            let clock = Clock {
                wall,
                start: Instant::now(),
            };
            let first = clock.now();
            let mut last = first;
            for _ in 0..1000 {
                let now = clock.now();
                assert!(now >= last);
                last = now;
            }
            assert!(first.since(wall) < Duration::from_secs(60));
            assert!(wall.since(first) < Duration::from_secs(60));
            // A deadline is an instant that no clock on the wall has a say in.
            let due = clock.instant(wall + Duration::from_secs(5));
            assert_eq!(due - clock.start, Duration::from_secs(5));
        }
    }
}
