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
