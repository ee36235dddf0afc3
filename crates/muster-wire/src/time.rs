//! Instants as the plane stores and speaks them. Reads no clock but where the name says so.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01T00:00:00Z. On the wire RFC 3339, UTC, milliseconds, `Z`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The start of the epoch: before everything.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After everything.
    pub const NEVER: Timestamp = Timestamp(i64::MAX);

    /// The wall clock, now. The shell calls this once at start and counts on monotonically.
    pub fn wall_clock() -> Self {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Time since `earlier`; zero when `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds and `Z`.
    pub fn rfc3339(self) -> String {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(t) => format!("{t:.3}"),
            Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
        }
    }

    /// Reads RFC 3339; `None` when the text is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let t: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp(t.as_microsecond()))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, wait: Duration) -> Timestamp {
        Timestamp(
            self.0
                .saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, wait: Duration) -> Timestamp {
        Timestamp(
            self.0
                .saturating_sub(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_has_milliseconds_and_a_z() {
        assert_eq!(Timestamp(0).rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_500).rfc3339(), "1970-01-01T00:00:00.001Z");
        assert_eq!(
            Timestamp::parse("1970-01-01T00:00:01Z"),
            Some(Timestamp(1_000_000))
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Timestamp::NEVER + Duration::from_secs(1), Timestamp::NEVER);
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
