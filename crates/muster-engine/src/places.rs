//! Sync callers that wait for their turn in memory, without a row or an id: given a place,
//! admitted when it comes, refused when it does not.

use muster_wire::{AgentId, ExecutionId, Timestamp};

use crate::admission::Pause;
use crate::effect::{Effects, Load};
use crate::engine::Engine;
use crate::event::{Submission, Waiter};
use crate::queue::Place;
use crate::refusal::Refusal;
use crate::row::QueueKey;
use crate::timers::TimerKey;

impl Engine {
    pub(crate) fn give_place(
        &mut self,
        now: Timestamp,
        submission: Box<Submission>,
        key: QueueKey,
        parent: Option<ExecutionId>,
    ) {
        let until = now + self.limits.sync_wait;
        let waiter = submission.waiter;
        let mut place = Place {
            submission,
            parent,
            until,
            armed: None,
        };
        self.timers
            .arm(&mut place.armed, Some(until), || TimerKey::Place(waiter));
        self.waiting_total += 1;
        self.waits_for_child(place.parent.as_ref(), true);
        let agent = place.submission.agent.clone();
        self.places.insert(waiter, agent.clone());
        if let Some(agent) = self.agents.get_mut(&agent) {
            // Places write no event, so several may have been given under one number.
            let mut key = key;
            while agent.queue.place_mut(&key).is_some() {
                key.seq += 1;
            }
            agent.queue.take_place(key, place);
        }
    }

    /// A sync caller's turn has come: it is admitted now, with what is true now.
    pub(crate) fn admit_place(
        &mut self,
        now: Timestamp,
        place: Place,
        over_cap: bool,
        out: &mut Effects,
    ) {
        let mut submission = place.submission;
        // Another caller with the same idempotency key may have had its turn before.
        match self.joins(now, &submission, out) {
            Ok(true) => return,
            Ok(false) => {}
            Err(Pause::Load) => return out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => return self.refuse(now, &submission, &refusal, out),
        }
        match self.admit(now, &mut submission) {
            Ok(mut lineage) if lineage.hit.is_some() => {
                if let Some(hit) = lineage.hit.take() {
                    self.take_over(now, *submission, lineage, &hit, out);
                }
            }
            Ok(lineage) => {
                // It is held for what it has left, not anew.
                let left = place.until.since(now);
                submission.received_at = now - (self.limits.sync_wait.saturating_sub(left));
                let until = place.until;
                let id = submission.execution.clone();
                self.start_new(now, *submission, lineage, over_cap, out);
                if let Some(mut execution) = self.take(&id) {
                    for held in &mut execution.held {
                        held.until = until;
                    }
                    self.keep(execution);
                }
            }
            Err(Pause::Load) => out.loads.push(Load::Submission(submission)),
            Err(Pause::Refuse(refusal)) => self.refuse(now, &submission, &refusal, out),
        }
    }

    /// Refuses every caller that waits for a turn at this agent.
    pub(crate) fn refuse_places(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        refusal: &Refusal,
        out: &mut Effects,
    ) {
        let keys = self
            .agents
            .get(id)
            .map(|agent| agent.queue.all_places())
            .unwrap_or_default();
        for key in keys {
            if let Some(place) = self.remove_place(id, &key) {
                self.refuse(now, &place.submission, refusal, out);
            }
        }
    }

    /// Takes a place away, with its timer.
    pub(crate) fn remove_place(&mut self, id: &AgentId, key: &QueueKey) -> Option<Place> {
        let mut place = self.agents.get_mut(id)?.queue.leave_place(key)?;
        let waiter = place.submission.waiter;
        self.timers
            .arm(&mut place.armed, None, || TimerKey::Place(waiter));
        self.waiting_total -= 1;
        self.waits_for_child(place.parent.as_ref(), false);
        self.places.remove(&waiter);
        Some(place)
    }

    pub(crate) fn place_left(&mut self, waiter: Waiter) {
        if let Some((id, key)) = self.find_place(waiter)
            && let Some(place) = self.remove_place(&id, &key)
        {
            self.uncount(&place.submission);
        }
    }

    pub(crate) fn place_due(&mut self, now: Timestamp, waiter: Waiter, out: &mut Effects) {
        let Some((id, key)) = self.find_place(waiter) else {
            return;
        };
        if let Some(place) = self
            .agents
            .get_mut(&id)
            .and_then(|agent| agent.queue.place_mut(&key))
        {
            place.armed = None;
        }
        if let Some(place) = self.remove_place(&id, &key) {
            let refusal = Refusal::NoTurn {
                agent: id,
                waited: self.limits.sync_wait.as_secs(),
            };
            self.refuse(now, &place.submission, &refusal, out);
        }
    }

    pub(crate) fn find_place(&self, waiter: Waiter) -> Option<(AgentId, QueueKey)> {
        let id = self.places.get(&waiter)?;
        Some((id.clone(), self.agents.get(id)?.queue.place_of(waiter)?))
    }
}
