//! How long to wait before the plane is dialled again: random within bounds that widen, so that
//! a fleet does not come back in one instant. Knows no socket.

use std::time::Duration;

/// Waits between attempts.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// Between `min` and a bound that doubles up to `max`.
    pub(crate) fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max: max.max(min),
            failures: 0,
        }
    }

    /// A session did real work: the next wait is a first one.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.at(random());
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// The wait at a place of the range, 0..1.
    fn at(&self, place: f64) -> Duration {
        let quarter = self.max / 4;
        let bound = quarter
            .saturating_mul(1 << self.failures.min(2))
            .clamp(self.min, self.max);
        self.min + (bound - self.min).mul_f64(place)
    }
}

/// 0..1. Without a source of randomness the middle: waiting matters more than its spread.
pub(crate) fn random() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_lie_between_one_and_ten_seconds_widen_and_start_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));
        let mut widest = Vec::new();
        for _ in 0..4 {
            assert_eq!(backoff.at(0.0), Duration::from_secs(1));
            widest.push(backoff.at(1.0).as_millis());
            let wait = backoff.next();
            assert!((1.0..=10.0).contains(&wait.as_secs_f64()), "{wait:?}");
        }
        assert_eq!(widest, [2500, 5000, 10_000, 10_000]);
        backoff.reset();
        assert_eq!(backoff.at(1.0), Duration::from_millis(2500));
    }

    #[test]
    fn two_nodes_do_not_wait_alike() {
        let mut first = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));
        let mut second = first.clone();
        let alike = (0..16).filter(|_| first.next() == second.next()).count();
        assert!(alike < 16);
    }
}
