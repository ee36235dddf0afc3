//! Wrong sign-ins, counted by where they come from. What is right is never counted against
//! anybody: who sits behind the same proxy as somebody who guesses can still sign in with a key.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use muster_wire::Timestamp;
use parking_lot::Mutex;

/// Wrong sign-ins from one place in [`WINDOW`].
const WRONG_MAX: u32 = 10;
/// Wrong sign-ins from everywhere in [`WINDOW`].
const WRONG_MAX_IN_ALL: u32 = 200;
/// For how long they count.
const WINDOW: Duration = Duration::from_secs(60);
/// Places that are told apart; beyond them only the sum counts.
const PLACES_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    from: Timestamp,
    wrong: u32,
}

impl Window {
    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.from + WINDOW
    }

    /// Counts one; how many there are.
    fn add(&mut self, now: Timestamp) -> u32 {
        if self.wrong == 0 || self.is_over(now) {
            *self = Self {
                from: now,
                wrong: 0,
            };
        }
        self.wrong += 1;
        self.wrong
    }

    /// How long it is full.
    fn full_for(&self, max: u32, now: Timestamp) -> Option<Duration> {
        let is_full = self.wrong >= max && !self.is_over(now);
        is_full.then(|| (self.from + WINDOW).since(now))
    }
}

#[derive(Debug, Default)]
struct Counts {
    places: HashMap<IpAddr, Window>,
    all: Window,
}

/// All counts.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<Counts>);

impl Attempts {
    /// How long nothing more is tried from a place.
    pub fn closed_for(&self, place: IpAddr, now: Timestamp) -> Option<Duration> {
        let counts = self.0.lock();
        let own = counts.places.get(&network(place));
        own.and_then(|window| window.full_for(WRONG_MAX, now))
            .or_else(|| counts.all.full_for(WRONG_MAX_IN_ALL, now))
    }

    /// One was wrong. Whether it was the one with which the place is closed.
    pub fn wrong(&self, place: IpAddr, now: Timestamp) -> bool {
        let mut counts = self.0.lock();
        counts.all.add(now);
        if counts.places.len() >= PLACES_MAX {
            counts.places.retain(|_, window| !window.is_over(now));
        }
        let place = network(place);
        if counts.places.len() >= PLACES_MAX && !counts.places.contains_key(&place) {
            return false;
        }
        counts.places.entry(place).or_default().add(now) == WRONG_MAX
    }
}

/// One household of addresses is one place.
fn network(place: IpAddr) -> IpAddr {
    match place.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits() & (u128::MAX << 64);
            Ipv6Addr::from_bits(bits).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ten_wrong_ones_close_a_place_for_the_rest_of_the_minute() {
        let attempts = Attempts::default();
        let (now, later) = (Timestamp(0), Timestamp(0) + Duration::from_secs(20));
        for n in 1..=WRONG_MAX {
            assert_eq!(attempts.closed_for(ip("10.0.0.1"), now), None);
            assert_eq!(attempts.wrong(ip("10.0.0.1"), now), n == WRONG_MAX);
        }
        let left = Duration::from_secs(40);
        assert_eq!(attempts.closed_for(ip("10.0.0.1"), later), Some(left));
        assert_eq!(
            attempts.closed_for(ip("::ffff:10.0.0.1"), later),
            Some(left)
        );
        assert_eq!(attempts.closed_for(ip("10.0.0.2"), later), None);
        assert_eq!(attempts.closed_for(ip("10.0.0.1"), now + WINDOW), None);
        assert!(
            !attempts.wrong(ip("10.0.0.1"), now + WINDOW),
            "it begins anew"
        );
    }

    #[test]
    fn a_network_is_one_place_and_all_places_have_a_sum() {
        let attempts = Attempts::default();
        for _ in 0..WRONG_MAX {
            attempts.wrong(ip("2001:db8::1"), Timestamp(0));
        }
        assert!(
            attempts
                .closed_for(ip("2001:db8::ffff"), Timestamp(0))
                .is_some()
        );
        assert!(
            attempts
                .closed_for(ip("2001:db8:0:1::1"), Timestamp(0))
                .is_none()
        );
        for n in 0..WRONG_MAX_IN_ALL {
            attempts.wrong(
                Ipv6Addr::from_bits(u128::from(n) << 64).into(),
                Timestamp(0),
            );
        }
        assert!(attempts.closed_for(ip("192.0.2.1"), Timestamp(0)).is_some());
    }
}
