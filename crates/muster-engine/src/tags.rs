//! Tags that need an approval: what an agent asks for, what was decided, and that it is not
//! called before. Which tags need one is the shell's to know.

use std::sync::Arc;

use muster_wire::{AgentId, Timestamp};

use crate::admission::Pause;
use crate::effect::{Effects, Reply, Write};
use crate::engine::Engine;
use crate::event::Waiter;
use crate::refusal::Refusal;
use crate::row::{AgentTags, EventKind, EventRow};

/// Decided tags that are kept of an agent; the oldest go first.
const DECIDED_MAX: usize = 256;

impl AgentTags {
    /// A new registration asks for these; what was decided stays decided.
    fn ask(&mut self, asked: &[Box<str>]) {
        self.asked = asked.to_vec();
        self.asked.sort();
        self.asked.dedup();
        self.settle();
    }

    /// Approves or rejects some of them, or all that are pending.
    fn decide(&mut self, tags: &[Box<str>], approve: bool) {
        let decided = if tags.is_empty() {
            self.pending.clone()
        } else {
            tags.to_vec()
        };
        for tag in decided {
            self.approved.retain(|old| *old != tag);
            self.rejected.retain(|old| *old != tag);
            let list = if approve {
                &mut self.approved
            } else {
                &mut self.rejected
            };
            list.push(tag);
            if list.len() > DECIDED_MAX {
                list.remove(0);
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.pending = self.unapproved();
        self.pending.retain(|tag| !self.rejected.contains(tag));
    }

    /// Those it asks for that are not approved: while there are any it is not called.
    pub fn unapproved(&self) -> Vec<Box<str>> {
        let mut open = self.asked.clone();
        open.retain(|tag| !self.approved.contains(tag));
        open
    }
}

impl Engine {
    /// A registration asks for tags. Returns those that are not approved.
    pub(crate) fn ask_for_tags(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        asked: &[Box<str>],
        out: &mut Effects,
    ) -> Vec<Box<str>> {
        let Some(agent) = self.agents.get_mut(id) else {
            return Vec::new();
        };
        let before = agent.tags.pending.clone();
        agent.tags.ask(asked);
        let (pending, unapproved) = (agent.tags.pending.clone(), agent.tags.unapproved());
        agent.unapproved = !unapproved.is_empty();
        if pending != before && !pending.is_empty() {
            let text = format!("waiting for an approval: {}", pending.join(", "));
            self.tell_tags(now, id, "pending", text, out);
        }
        unapproved
    }

    /// A person decided.
    #[expect(clippy::too_many_arguments, reason = "the event's own fields")]
    pub(crate) fn tags_decided(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        tags: &[Box<str>],
        approve: bool,
        by: &Arc<str>,
        waiter: Waiter,
        out: &mut Effects,
    ) {
        let Some(agent) = self.agents.get_mut(id) else {
            return out.replies.push((waiter, Reply::UnknownAgent));
        };
        if tags.is_empty() && agent.tags.pending.is_empty() {
            let message = format!(
                "no tag of {id} waits for a decision; name the tags to change what was decided"
            );
            let status = None;
            return out
                .replies
                .push((waiter, Reply::Conflict { message, status }));
        }
        let before = agent.tags.clone();
        agent.tags.decide(tags, approve);
        agent.unapproved = !agent.tags.unapproved().is_empty();
        let after = agent.tags.clone();
        if after != before {
            out.writes.push(Write::SetAgentTags {
                agent: id.clone(),
                tags: after.clone(),
            });
            let word = if approve { "approved" } else { "rejected" };
            let list = if approve {
                &after.approved
            } else {
                &after.rejected
            };
            let text = format!("{word} by {by}; {word} are now: {}", list.join(", "));
            self.tell_tags(now, id, word, text, out);
        }
        self.tell_directory(id, out);
        out.replies.push((waiter, Reply::Tags(after)));
        self.wait_anew(now, id, out);
        self.release_absorbed(now, id, out);
        self.pump(now, id, out);
    }

    fn tell_tags(
        &mut self,
        now: Timestamp,
        id: &AgentId,
        word: &str,
        text: String,
        out: &mut Effects,
    ) {
        let mut line = EventRow::line(EventKind::AgentTagsChanged, now);
        line.agent = Some(id.clone());
        line.reason = Some(word.into());
        line.text = Some(text.into());
        self.tell(line, out);
    }

    /// Row 7: every tag that the agent asks for is approved.
    pub(crate) fn tags_approved(&self, id: &AgentId) -> Result<(), Pause> {
        match self.agents.get(id) {
            Some(agent) if agent.unapproved => Err(Pause::Refuse(Refusal::PendingApproval {
                agent: id.clone(),
                tags: agent.tags.unapproved(),
            })),
            _ => Ok(()),
        }
    }
}
