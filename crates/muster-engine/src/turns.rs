//! Turns: who starts next when a slot frees, what of a queue is read when, and the one rule that
//! lets a call over the cap so that nobody waits for himself.

use std::sync::Arc;

use muster_wire::{AgentId, ExecutionId, Timestamp};

use crate::effect::{Effects, Load};
use crate::engine::Engine;
use crate::execution::{Execution, Phase};
use crate::queue::Next;
use crate::row::{QueueKey, QueuedRow};
use crate::start::Launch;

/// What an engine asks for again after a start: the heads of all queues.
pub(crate) fn first_windows(engine: &mut Engine, out: &mut Effects) {
    let limit = engine.limits.queue_window;
    for agent in engine.agents.values_mut() {
        if let Some(after) = agent.queue.wants_more(limit) {
            out.loads.push(Load::Window {
                agent: agent.id.clone(),
                after,
                limit,
            });
        }
    }
}

impl Engine {
    /// Starts whoever is next while there is room.
    pub(crate) fn pump(&mut self, now: Timestamp, id: &AgentId, out: &mut Effects) {
        let cap = self.cap(id);
        let limits = self.liveness(id);
        if self.hold.is_some() || self.draining {
            return;
        }
        loop {
            let Some(agent) = self.agents.get(id) else {
                return;
            };
            if agent.queue.is_empty()
                || agent.stopped()
                || cap.is_some_and(|cap| agent.running() >= cap)
            {
                break;
            }
            if !agent.can_start(now, limits) {
                self.dial_gates(now, id, out);
                break;
            }
            match agent.queue.next() {
                Next::Nobody => break,
                Next::Unread => break,
                // Those that follow in the queue have waited as long, and the read is short.
                Next::Stored(_, execution) if self.may_be_bereaved(&execution) => break,
                Next::Stored(key, execution) => {
                    let Some(execution) = self.take(&execution) else {
                        debug_assert!(false, "the window names an execution that is not in memory");
                        if let Some(agent) = self.agents.get_mut(id) {
                            agent.queue.leave(&key);
                        }
                        continue;
                    };
                    self.start_queued(now, key, execution, false, out);
                }
                Next::Place(key) => {
                    if let Some(agent) = self.agents.get_mut(id) {
                        agent.turn = agent.turn.max(key.turn);
                        agent.queue.started(now);
                    }
                    if let Some(place) = self.remove_place(id, &key) {
                        self.admit_place(now, place, false, out);
                    }
                }
            }
        }
        self.refill(id, out);
    }

    /// A queued execution leaves the queue and starts.
    pub(crate) fn start_queued(
        &mut self,
        now: Timestamp,
        key: QueueKey,
        mut execution: Box<Execution>,
        over_cap: bool,
        out: &mut Effects,
    ) {
        if self.is_bereaved(&execution.row) {
            return self.end_bereaved(now, execution, out);
        }
        self.unqueue(&execution);
        if let Some(agent) = self.agents.get_mut(&execution.row.agent) {
            agent.turn = agent.turn.max(key.turn);
            agent.queue.started(now);
        }
        Arc::make_mut(&mut execution.row).over_cap = over_cap;
        self.launch(now, execution, Launch::Stored, out);
    }

    /// Takes an execution out of its queue's counts.
    pub(crate) fn unqueue(&mut self, execution: &Execution) {
        let row = &execution.row;
        if let Some(agent) = self.agents.get_mut(&row.agent) {
            agent.queue.leave(&row.queue);
        }
        self.waiting_total -= 1;
        // Only a proved parent passes on what it holds, and only such a one waits.
        let parent = row.parent.as_ref().filter(|_| !row.holds.is_empty());
        self.waits_for_child(parent, false);
    }

    /// Counts that an execution waits for one more queued child, or for one less.
    pub(crate) fn waits_for_child(&mut self, parent: Option<&ExecutionId>, more: bool) {
        if let Some(parent) = parent.and_then(|id| self.executions.get_mut(id)) {
            parent.queued_children = if more {
                parent.queued_children + 1
            } else {
                parent.queued_children.saturating_sub(1)
            };
        }
    }

    /// When all holders of an agent wait for queued children of theirs, its oldest nested call,
    /// stored or held by its caller, starts over the cap: nobody else could ever free a slot.
    pub(crate) fn break_deadlocks(
        &mut self,
        now: Timestamp,
        among: [Option<AgentId>; 2],
        out: &mut Effects,
    ) {
        for id in among.into_iter().flatten() {
            if !self.is_deadlocked(&id) {
                continue;
            }
            let Some(agent) = self.agents.get(&id) else {
                continue;
            };
            let stored = agent
                .queue
                .window()
                .filter(|(_, id)| {
                    self.executions
                        .get(*id)
                        .is_some_and(|e| !e.row.holds.is_empty())
                })
                .min_by_key(|(key, _)| key.seq)
                .map(|(key, id)| (*key, id.clone()));
            let place = agent.queue.oldest_nested_place();
            match (stored, place) {
                (stored, Some(place))
                    if stored.as_ref().is_none_or(|(key, _)| place.seq < key.seq) =>
                {
                    if let Some(place) = self.remove_place(&id, &place) {
                        self.admit_place(now, place, true, out);
                    }
                }
                (Some((key, execution)), _) => {
                    if let Some(execution) = self.take(&execution) {
                        self.start_queued(now, key, execution, true, out);
                    }
                }
                (None, _) => {}
            }
        }
    }

    /// Whether nobody who holds a slot of an agent can end before one of its queued calls starts.
    fn is_deadlocked(&self, id: &AgentId) -> bool {
        let (Some(agent), Some(cap)) = (self.agents.get(id), self.cap(id)) else {
            return false;
        };
        // Under a hold nothing starts.
        let held = self.hold.is_some() || agent.stopped();
        !held
            && !agent.queue.is_empty()
            && agent.running() >= cap
            && agent.holders.iter().all(|holder| {
                self.executions
                    .get(holder)
                    .is_some_and(|holder| holder.queued_children > 0)
            })
    }

    pub(crate) fn window_loaded(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        rows: Vec<QueuedRow>,
        exhausted: bool,
        as_of: u64,
        out: &mut Effects,
    ) {
        let window = self.limits.queue_window;
        if !self.recent.ends_cover(as_of) {
            if let Some(agent) = self.agents.get_mut(id) {
                agent.queue.load_again();
            }
            return self.refill(id, out);
        }
        let mut read = Vec::with_capacity(rows.len());
        for QueuedRow { row } in rows {
            // What started or ended since the read is not queued any more.
            let known = self
                .executions
                .get(&row.id)
                .is_some_and(|e| !matches!(e.phase, Phase::Queued));
            if known || self.recent.ended(&row.id).is_some() {
                continue;
            }
            read.push((row.queue, row.id.clone()));
            if self.executions.contains_key(&row.id) {
                continue;
            }
            let idempotent = self
                .agents
                .get(id)
                .and_then(|agent| agent.function(&row.function))
                .is_some_and(|function| function.idempotent);
            self.join_run(&row.run, &row.root, 0, false);
            self.add_child(&row);
            let mut execution = Box::new(Execution::new(Arc::new(row), Phase::Queued, idempotent));
            execution.queued_from = self.outage.not_counted_if_before(execution.queued_from);
            self.keep(execution);
        }
        let leaving = match self.agents.get_mut(id) {
            Some(agent) => agent.queue.loaded(read, exhausted, window),
            None => return,
        };
        for left in leaving {
            self.forget_queued(&left, out);
        }
        self.pump(now, id, out);
    }

    /// Asks for more of a queue when its window runs low.
    pub(crate) fn refill(&mut self, id: &AgentId, out: &mut Effects) {
        let limit = self.limits.queue_window;
        if let Some(agent) = self.agents.get_mut(id)
            && let Some(after) = agent.queue.wants_more(limit)
        {
            out.loads.push(Load::Window {
                agent: id.clone(),
                after,
                limit,
            });
        }
    }
}
