//! What this node asked of the plane over the present connection and was not answered yet.
//! Ids are of one connection, except those of exits, which are the outbox's own.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Register,
    Beat(u64),
    Inventory,
    Worker,
    Exited,
    Goodbye,
}

/// Requests that wait for their answer.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_id: HashMap<String, (Asked, Instant)>,
    minted: u64,
    exits: usize,
    workers: usize,
}

impl Waiting {
    /// An id that no other request of this connection has.
    pub(crate) fn mint(&mut self, noun: &str) -> String {
        self.minted += 1;
        format!("{noun}_{}", self.minted)
    }

    /// A request goes out.
    pub(crate) fn ask(&mut self, id: String, asked: Asked, now: Instant) {
        match asked {
            Asked::Exited => self.exits += 1,
            Asked::Worker => self.workers += 1,
            _ => {}
        }
        if let Some((old, _)) = self.by_id.insert(id, (asked, now)) {
            self.forget(&old);
        }
    }

    /// An answer came in: what it is an answer to.
    pub(crate) fn answered(&mut self, id: &str) -> Option<Asked> {
        let (asked, _) = self.by_id.remove(id)?;
        self.forget(&asked);
        Some(asked)
    }

    /// Beats up to this one are acknowledged by it.
    pub(crate) fn drop_beats_to(&mut self, seq: u64) {
        self.by_id
            .retain(|_, (asked, _)| !matches!(asked, Asked::Beat(n) if *n <= seq));
    }

    /// Takes back an inventory that has waited for so long; whether there was one.
    pub(crate) fn drop_inventory_after(&mut self, patience: Duration, now: Instant) -> bool {
        let before = self.by_id.len();
        self.by_id.retain(|_, (asked, at)| {
            *asked != Asked::Inventory || now.saturating_duration_since(*at) < patience
        });
        self.by_id.len() < before
    }

    /// Ids of exits that have waited for so long.
    pub(crate) fn exits_after(&self, patience: Duration, now: Instant) -> Vec<String> {
        self.by_id
            .iter()
            .filter(|(_, (asked, at))| {
                *asked == Asked::Exited && now.saturating_duration_since(*at) >= patience
            })
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Whether this request waits.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Exits that wait.
    pub(crate) fn exits(&self) -> usize {
        self.exits
    }

    /// Changes of workers that wait.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    fn forget(&mut self, asked: &Asked) {
        match asked {
            Asked::Exited => self.exits -= 1,
            Asked::Worker => self.workers -= 1,
            _ => {}
        }
    }
}
