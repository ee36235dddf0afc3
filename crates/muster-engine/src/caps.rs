//! How many executions an agent runs at once: what the configuration says, or what a person
//! decided since. More room is used at once; less ends nothing, and what runs beyond it is said
//! to be over the cap.

use std::sync::Arc;

use muster_wire::{AgentId, ExecutionId, Timestamp};

use crate::effect::{Effects, Reply, Write};
use crate::engine::Engine;
use crate::event::Waiter;
use crate::row::{EventKind, EventRow};
use crate::waits::moved;

impl Engine {
    /// The cap of an agent; `None` when it has none.
    pub(crate) fn cap(&self, id: &AgentId) -> Option<u32> {
        match self.agents.get(id).and_then(|agent| agent.cap) {
            Some(cap) => (cap > 0).then_some(cap),
            None => self.limits.cap(id),
        }
    }

    pub(crate) fn cap_set(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        wanted: Option<u32>,
        waiter: Waiter,
        out: &mut Effects,
    ) {
        let was = self.cap(id);
        let Some(agent) = self.agents.get_mut(id) else {
            out.replies.push((waiter, Reply::UnknownAgent));
            return;
        };
        let changed = agent.cap != wanted;
        let was_set = agent.cap.is_some();
        agent.cap = wanted;
        let cap = self.cap(id);
        out.replies
            .push((waiter, Reply::CapSet { was, was_set, cap }));
        if !changed {
            return;
        }
        out.writes.push(Write::SetAgentCap {
            agent: id.clone(),
            cap: wanted,
        });
        let text = |cap: Option<u32>| cap.map_or_else(|| "no cap".to_owned(), |n| n.to_string());
        let mut line = EventRow::line(EventKind::AgentCapChanged, now);
        line.agent = Some(id.clone());
        line.reason = Some(if wanted.is_some() { "set" } else { "config" }.into());
        line.text = Some(format!("{}, was {}", text(cap), text(was)).into());
        self.tell(line, out);
        self.mark_over_cap(id, out);
        self.pump(now, id, out);
        self.break_deadlocks(now, [Some(id.clone()), None], out);
    }

    /// What counts within the cap: without those that started over it, and without calls that
    /// would otherwise wait for their own callers.
    pub(crate) fn within_cap(&self, id: &AgentId) -> Vec<ExecutionId> {
        let Some(agent) = self.agents.get(id) else {
            return Vec::new();
        };
        let counts = |execution: &&ExecutionId| {
            self.executions.get(*execution).is_some_and(|e| {
                !e.row.over_cap
                    && e.row.holds.iter().filter(|held| *held == id).count() <= 1
                    && !self.called_by_a_holder(e)
            })
        };
        agent.holders.iter().filter(counts).cloned().collect()
    }

    /// Marks the newest of those that hold a slot beyond the cap.
    fn mark_over_cap(&mut self, id: &AgentId, out: &mut Effects) {
        let Some(cap) = self.cap(id) else { return };
        let mut within: Vec<(u64, ExecutionId)> = self
            .within_cap(id)
            .into_iter()
            .filter_map(|id| Some((self.executions.get(&id)?.row.queue.seq, id)))
            .collect();
        within.sort_unstable();
        for (_, id) in within.into_iter().skip(cap as usize) {
            let Some(execution) = self.executions.get_mut(&id) else {
                continue;
            };
            Arc::make_mut(&mut execution.row).over_cap = true;
            let change = moved(&execution.row);
            out.writes.push(Write::UpdateExecution { id, change });
        }
    }
}
