//! Taking an agent off the list: only one of which nothing lives and nothing is open. Its
//! executions stay what they are; its id may be registered by anybody again.

use muster_wire::{AgentId, Timestamp};

use crate::effect::{Effects, Notice, Reply, Write};
use crate::engine::Engine;
use crate::event::Waiter;
use crate::execution::Phase;
use crate::liveness::InstanceState;
use crate::row::{EventKind, EventRow};
use crate::timers::TimerKey;

impl Engine {
    pub(crate) fn agent_retired(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        dry_run: bool,
        waiter: Waiter,
        out: &mut Effects,
    ) {
        let limits = self.liveness(id);
        let Some(agent) = self.agents.get(id) else {
            out.replies.push((waiter, Reply::UnknownAgent));
            return;
        };
        let lives = |instance: &&crate::agent::Instance| {
            instance.is_present()
                && instance.facts.verdict(now, limits).state != InstanceState::Down
        };
        let alive = agent.instances.iter().filter(lives);
        let alive: Vec<_> = alive.map(|instance| instance.id().clone()).collect();
        // What is queued is counted by its queue, of which only a window is at hand.
        let at_hand = self.executions.values().filter(|execution| {
            execution.row.agent == *id && !matches!(execution.phase, Phase::Queued)
        });
        let open = at_hand.count() as u64 + agent.queue.len();
        if !alive.is_empty() || open > 0 {
            out.replies
                .push((waiter, Reply::AgentInUse { alive, open }));
            return;
        }
        let instances = agent.instances.iter();
        let instances = instances.map(|instance| instance.id().clone()).collect();
        out.replies
            .push((waiter, Reply::AgentRetired { instances }));
        if dry_run {
            return;
        }
        let Some(agent) = self.agents.remove(id) else {
            return;
        };
        for mut instance in agent.instances {
            let key = instance.facts.key.clone();
            self.timers.arm(&mut instance.armed, None, || {
                TimerKey::Instance(key.clone())
            });
            self.forget_address(&instance.facts.base_url, &key);
        }
        out.writes.push(Write::DropAgent(id.clone()));
        let mut line = EventRow::line(EventKind::AgentRetired, now);
        line.agent = Some(id.clone());
        self.tell(line, out);
        out.notices.push(Notice::AgentGone(id.clone()));
    }
}
