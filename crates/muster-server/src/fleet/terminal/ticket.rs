//! One-use tickets for a terminal: a browser's WebSocket cannot set a header, and a key must not
//! be in an address. Kept in memory, by their hash, for a minute.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use muster_wire::{Timestamp, WorkerId};

/// How long a ticket is good.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(60);
/// Tickets that may be open at once.
const OPEN_MAX: usize = 10_000;

#[derive(Debug)]
struct Ticket {
    worker: WorkerId,
    principal: Arc<str>,
    /// The id of the key or session that asked for it: it is good only while that is.
    key: Arc<str>,
    until: Timestamp,
}

/// All open tickets.
#[derive(Debug, Default)]
pub(crate) struct Tickets(DashMap<[u8; 32], Ticket>);

impl Tickets {
    /// A ticket for somebody who may attach; `None` when too many are open, or the operating
    /// system has no randomness.
    pub(crate) fn issue(
        &self,
        worker: &WorkerId,
        principal: &Arc<str>,
        key: &Arc<str>,
        now: Timestamp,
    ) -> Option<(String, Timestamp)> {
        self.0.retain(|_, ticket| ticket.until > now);
        if self.0.len() >= OPEN_MAX {
            return None;
        }
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).ok()?;
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("att_{hex}");
        let until = now + GOOD_FOR;
        self.0.insert(
            hash(&text),
            Ticket {
                worker: worker.clone(),
                principal: principal.clone(),
                key: key.clone(),
                until,
            },
        );
        Some((text, until))
    }

    /// Uses a ticket up: whose it is and the id of their key, when it is good for this worker.
    pub(crate) fn redeem(
        &self,
        text: &str,
        worker: &WorkerId,
        now: Timestamp,
    ) -> Option<(Arc<str>, Arc<str>)> {
        let (_, ticket) = self.0.remove(&hash(text))?;
        let good = ticket.until > now && ticket.worker == *worker;
        good.then_some((ticket.principal, ticket.key))
    }
}

fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_for_one_worker_and_a_minute() {
        let tickets = Tickets::default();
        let (one, two) = (WorkerId::trusted("wrk_1"), WorkerId::trusted("wrk_2"));
        let now = Timestamp(0);
        let (text, until) = tickets
            .issue(&one, &"ada".into(), &"key_1".into(), now)
            .unwrap();
        assert_eq!(until, now + GOOD_FOR);
        let (who, key) = tickets.redeem(&text, &one, now).unwrap();
        assert_eq!((&*who, &*key), ("ada", "key_1"));
        assert_eq!(tickets.redeem(&text, &one, now), None);
        let (text, _) = tickets
            .issue(&one, &"ada".into(), &"key_1".into(), now)
            .unwrap();
        assert_eq!(tickets.redeem(&text, &two, now), None);
        let (text, until) = tickets
            .issue(&one, &"ada".into(), &"key_1".into(), now)
            .unwrap();
        assert_eq!(tickets.redeem(&text, &one, until), None);
        assert_eq!(tickets.redeem("att_00", &one, now), None);
    }
}
