//! Placements that wait: durable, tried again whenever something changed that may make a place,
//! in the order in which they were asked for.

use std::collections::HashSet;
use std::sync::Arc;

use muster_wire::fleet::{RestartMode, WorkerIo};
use muster_wire::{Category, Timestamp, WorkerId};

use super::effect::FleetRefusal;
use super::row::Target;
use super::{FleetReply, reply};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;

/// Whether a refusal may pass while a placement waits.
pub(crate) fn may_pass(category: &Category) -> bool {
    matches!(
        category,
        Category::FleetCapacity
            | Category::NodeUnreachable
            | Category::NodeDraining
            | Category::NoEligibleNode
    )
}

/// Why it waits, in words that change only when the cause does: ages would change at each look.
pub(crate) fn cause(refusal: &FleetRefusal) -> Arc<str> {
    let mut words: Vec<String> = refusal
        .passed_over
        .iter()
        .take(5)
        .map(|over| format!("{} is {}", over.name, word_of(over.why)))
        .collect();
    if refusal.passed_over.len() > 5 {
        words.push(format!("and {} more", refusal.passed_over.len() - 5));
    }
    if words.is_empty() {
        words.push(refusal.message.clone());
    }
    format!("{}: {}", refusal.category, words.join(", ")).into()
}

fn word_of(why: &'static str) -> &'static str {
    match why {
        "labels" => "without the labels",
        "unsupported" => "not able to",
        other => other,
    }
}

impl Engine {
    /// Something changed that may make a place: those that wait are tried again.
    pub(crate) fn place_waiting(&mut self, now: Timestamp, out: &mut Effects) {
        if self.fleet.queue.is_empty() || self.fleet.doubt.is_some() || self.draining {
            return;
        }
        // Wishes that are alike fail alike: each kind is tried until the first that fails.
        let mut failed: HashSet<(Target, Option<WorkerIo>, RestartMode)> = HashSet::new();
        let waiting: Vec<WorkerId> = self.fleet.queue.iter().map(|(_, id)| id.clone()).collect();
        for id in waiting {
            let Some(worker) = self.fleet.workers.get(&id) else {
                continue;
            };
            let row = &worker.row;
            let kind = (row.target.clone(), row.io, row.restart.mode);
            if failed.contains(&kind) {
                continue;
            }
            match self.choose_node(now, row, None) {
                Ok((node, link)) => {
                    let at = row.created_at;
                    self.fleet.queue.remove(&(at, id.clone()));
                    self.start_at(now, &id, &node, link, out);
                }
                Err(refusal) => {
                    failed.insert(kind);
                    self.waits_because(&id, cause(&refusal), out);
                }
            }
        }
    }

    /// Notes why a placement waits, when that is news.
    fn waits_because(&mut self, id: &WorkerId, why: Arc<str>, out: &mut Effects) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.row.waits_for.as_ref() != Some(&why) {
            worker.row.waits_for = Some(why);
            self.put_worker(id, out);
        }
    }

    /// A wish found by its key, or just queued: how it stands.
    pub(crate) fn tell_queued(
        &self,
        now: Timestamp,
        id: &WorkerId,
        waiter: Waiter,
        repeated: bool,
        out: &mut Effects,
    ) {
        if let Some(view) = self.worker_view(now, id) {
            let worker = Box::new(view);
            reply(waiter, FleetReply::Queued { worker, repeated }, out);
        }
    }
}
