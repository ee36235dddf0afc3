//! What a node may bring in by itself: workers that nobody here had placed are taken over, and a
//! node that makes them up must not fill the plane with them. Counts; decides about no process.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use muster_wire::{NodeId, Timestamp, WorkerId, plain};

use super::worker::Worker;
use super::{FleetNotice, notice};
use crate::effect::{Effects, Notice};
use crate::engine::Engine;

/// Living ones that any node may bring in.
const LIVING_LEAST: usize = 1_000;
/// A node with a bound of its own may bring in so many times that.
const TIMES_ITS_BOUND: usize = 4;
/// So many times as many may come within one [`WINDOW`], living and ended ones together.
const TIMES_WITHIN: usize = 2;
const WINDOW: Duration = Duration::from_secs(3600);

/// What a node brought in.
#[derive(Debug, Default)]
pub(crate) struct Adoptions {
    /// Adopted workers that live.
    pub(crate) living: BTreeSet<WorkerId>,
    /// Adopted ones that ended and are still held, the oldest first.
    ended: VecDeque<WorkerId>,
    /// When the present window began, and how many came since.
    within: (Timestamp, usize),
    /// When it was last told that something is not taken over.
    told_at: Option<Timestamp>,
}

fn most(max_workers: u32) -> usize {
    (max_workers as usize * TIMES_ITS_BOUND).max(LIVING_LEAST)
}

impl Adoptions {
    /// Whether one more may be taken over now; then it is counted.
    pub(crate) fn takes(&mut self, now: Timestamp, max_workers: u32) -> bool {
        if self.within.1 == 0 || now.since(self.within.0) >= WINDOW {
            self.within = (now, 0);
        }
        let most = most(max_workers);
        if self.living.len() >= most || self.within.1 >= most * TIMES_WITHIN {
            return false;
        }
        self.within.1 += 1;
        true
    }
}

impl Engine {
    /// An adopted worker ended: it is held for late frames, and those that ended long before it
    /// make room.
    pub(crate) fn adopted_ended(&mut self, node: &NodeId, id: &WorkerId) {
        let Some(held) = self.fleet.nodes.get_mut(node) else {
            return;
        };
        let most = most(held.row.max_workers);
        let ended = &mut held.adoptions.ended;
        ended.push_back(id.clone());
        let oldest = (ended.len() > most).then(|| ended.pop_front()).flatten();
        let Some(oldest) = oldest.filter(|oldest| oldest != id) else {
            return;
        };
        let is_over = |worker: &Worker| !worker.lives();
        if self.fleet.workers.get(&oldest).is_some_and(|w| is_over(w)) {
            self.forget_worker(&oldest);
        }
    }

    /// One line of the log for all that an inventory brought in, and one an hour for what was
    /// not taken over. `from` is where the effects of this inventory begin.
    pub(crate) fn tell_adoptions(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        (adopted, refused): (&BTreeSet<WorkerId>, usize),
        from: usize,
        out: &mut Effects,
    ) {
        let Some(held) = self.fleet.nodes.get_mut(node) else {
            return;
        };
        let name: Arc<str> = held.row.name.clone();
        let due = held
            .adoptions
            .told_at
            .is_none_or(|at| now.since(at) >= WINDOW);
        let most = most(held.row.max_workers);
        if refused > 0 && due {
            held.adoptions.told_at = Some(now);
            let text = format!(
                "{name} tells {} not taken over: of another node, with an id that was not minted here, or more than the {most} that it may bring in",
                plain::they(refused as u64, "worker that is", "workers that are")
            );
            self.drift_line(now, node, Some("refused"), true, text, out);
        }
        if adopted.len() > 1 {
            let of_one = |notice: &Notice| match notice {
                Notice::Fleet(told) => matches!(
                    &**told,
                    FleetNotice::Log { worker: Some(worker), .. } if adopted.contains(worker)
                ),
                _ => false,
            };
            let mut place = 0;
            out.notices.retain(|notice| {
                place += 1;
                place <= from || !of_one(notice)
            });
            let log = FleetNotice::Log {
                warn: false,
                node: Some(node.clone()),
                worker: None,
                text: format!(
                    "{name} has {} workers that nobody here had placed: they are adopted",
                    adopted.len()
                )
                .into(),
            };
            notice(log, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_brought_in_is_bounded_at_once_and_within_an_hour() {
        let mut adoptions = Adoptions::default();
        let now = Timestamp(5);
        for n in 0..LIVING_LEAST {
            assert!(adoptions.takes(now, 4));
            adoptions
                .living
                .insert(WorkerId::trusted(format!("wrk_{n:026}")));
        }
        assert!(!adoptions.takes(now, 4), "so many live");
        assert!(adoptions.takes(now, 300), "a larger node may have more");
        adoptions.living.clear();
        let more = (0..5_000).filter(|_| adoptions.takes(now, 4)).count();
        assert_eq!(more, LIVING_LEAST - 1, "within one hour");
        assert!(adoptions.takes(now + WINDOW, 4));
    }
}
