//! Calls that were refused, by agent and minute. A refusal leaves no trace in the store, so the
//! last hour of them is kept here and is gone with the process. Decides nothing.

use std::time::Instant;

use dashmap::DashMap;
use muster_wire::AgentId;

/// Minutes that are kept.
pub(crate) const MINUTES: u64 = 60;
/// Agents that are counted. More are not: callers choose the names.
const AGENTS_MAX: usize = 10_000;

/// Refused calls of the last hour.
#[derive(Debug)]
pub(crate) struct Refusals {
    since: Instant,
    agents: DashMap<AgentId, Ring>,
}

/// One count for each minute, and the newest minute that is counted.
#[derive(Debug)]
struct Ring {
    counts: [u32; MINUTES as usize],
    newest: u64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            agents: DashMap::new(),
        }
    }
}

impl Refusals {
    fn minute(&self) -> u64 {
        self.since.elapsed().as_secs() / 60
    }

    /// One more.
    pub(crate) fn count(&self, agent: &AgentId) {
        let minute = self.minute();
        if let Some(mut ring) = self.agents.get_mut(agent.as_str()) {
            return ring.count(minute);
        }
        if self.agents.len() >= AGENTS_MAX {
            self.agents.retain(|_, ring| ring.sum(minute) > 0);
        }
        if self.agents.len() < AGENTS_MAX {
            let fresh = || Ring {
                counts: [0; MINUTES as usize],
                newest: minute,
            };
            let mut ring = self.agents.entry(agent.clone()).or_insert_with(fresh);
            ring.count(minute);
        }
    }

    /// How many in the last hour.
    pub(crate) fn of(&self, agent: &str) -> u64 {
        let ring = self.agents.get(agent);
        ring.map_or(0, |ring| ring.sum(self.minute()))
    }
}

impl Ring {
    fn count(&mut self, minute: u64) {
        for passed in (self.newest + 1..=minute).take(MINUTES as usize) {
            self.counts[(passed % MINUTES) as usize] = 0;
        }
        if minute >= self.newest + MINUTES {
            self.counts = [0; MINUTES as usize];
        }
        self.newest = self.newest.max(minute);
        let slot = &mut self.counts[(minute % MINUTES) as usize];
        *slot = slot.saturating_add(1);
    }

    fn sum(&self, now: u64) -> u64 {
        let oldest = (now + 1).saturating_sub(MINUTES);
        let kept = (self.newest + 1).saturating_sub(MINUTES);
        let minutes = oldest.max(kept)..=self.newest;
        minutes
            .map(|minute| u64::from(self.counts[(minute % MINUTES) as usize]))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_what_is_older_goes() {
        let mut ring = Ring {
            counts: [0; MINUTES as usize],
            newest: 0,
        };
        ring.count(0);
        ring.count(0);
        ring.count(59);
        assert_eq!(ring.sum(59), 3);
        assert_eq!(ring.sum(60), 1);
        ring.count(61);
        assert_eq!(ring.sum(61), 2);
        assert_eq!(ring.sum(119), 1);
        assert_eq!(ring.sum(121), 0);
        ring.count(10_000);
        assert_eq!(ring.sum(10_000), 1);
    }

    #[test]
    fn names_that_callers_make_up_are_bounded() {
        let refusals = Refusals::default();
        for n in 0..AGENTS_MAX + 5 {
            refusals.count(&AgentId::trusted(format!("a{n}")));
        }
        assert!(refusals.agents.len() <= AGENTS_MAX);
        assert_eq!(refusals.of("a0"), 1);
        assert_eq!(refusals.of("nobody"), 0);
    }
}
