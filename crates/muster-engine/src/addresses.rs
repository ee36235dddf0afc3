//! Other addresses of an instance that beats and cannot be dialled at the one it gave: asked one
//! after another whether they answer as it. Decides when; who is asked how is the shell's.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::Timestamp;

use crate::agent::Gate;
use crate::effect::{Effects, Send, Write};
use crate::engine::Engine;
use crate::event::InstanceKey;
use crate::row::{EventKind, EventRow};

/// How long dials must fail beside fresh beats before others are asked: an agent registers
/// before it listens.
const SEEK_AFTER: Duration = Duration::from_secs(1);
/// How long not to ask again.
const SEEK_AGAIN: Duration = Duration::from_secs(15);

impl Engine {
    /// Asks for an instance at its other addresses, when it lives and its own is of no use.
    pub(crate) fn seek(&mut self, now: Timestamp, key: &InstanceKey, out: &mut Effects) {
        let Some(agent) = self.agents.get(&key.agent) else {
            return;
        };
        let Some(instance) = agent.instance(&key.instance) else {
            return;
        };
        let facts = &instance.facts;
        let Some((failed_at, since)) = facts
            .dial_failed
            .as_ref()
            .map(|(at, _)| *at)
            .zip(facts.dial_failing_since)
        else {
            return;
        };
        let lives = facts.beat_at.is_some_and(|beat| beat > since);
        let early = failed_at.since(since) < SEEK_AFTER;
        let again = instance
            .sought_at
            .is_some_and(|at| now.since(at) < SEEK_AGAIN);
        if !lives || early || again || facts.base_url.is_empty() {
            return;
        }
        // Where another process of this agent is called, it would be that one which answers.
        let taken = |url: &Arc<str>| {
            agent
                .instances
                .iter()
                .any(|i| i.id() != instance.id() && i.is_present() && i.facts.base_url == *url)
        };
        let at: Vec<Arc<str>> = facts
            .candidates
            .iter()
            .filter(|url| **url != facts.base_url && !taken(url))
            .cloned()
            .collect();
        if at.is_empty() {
            return;
        }
        out.sends.push(Send::Seek {
            key: key.clone(),
            at,
        });
        if let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        {
            instance.sought_at = Some(now);
        }
    }

    /// An instance was asked for at its other addresses.
    pub(crate) fn sought(
        &mut self,
        now: Timestamp,
        key: &InstanceKey,
        found: Option<Arc<str>>,
        out: &mut Effects,
    ) {
        let Some(found) = found else { return };
        let Some(instance) = self
            .agents
            .get_mut(&key.agent)
            .and_then(|a| a.instance_mut(&key.instance))
        else {
            return;
        };
        // It may have registered elsewhere, or been reached, while it was asked for.
        let wanted = instance.is_present()
            && instance.facts.goodbye_at.is_none()
            && instance.facts.dial_failed.is_some()
            && instance.facts.candidates.contains(&found);
        if !wanted {
            return;
        }
        let given = std::mem::replace(&mut instance.facts.base_url, found.clone());
        instance.facts.dial_failed = None;
        instance.facts.dial_failing_since = None;
        instance.facts.wait_ran_out_at = None;
        instance.gate = Gate::Closed {
            wait: Duration::ZERO,
            dialling: false,
        };
        out.writes
            .push(Write::PutInstance(Box::new(instance.row())));
        out.sends.push(Send::CloseIdle(key.clone()));
        self.forget_address(&given, key);
        self.addresses
            .entry(found.clone())
            .or_default()
            .push(key.clone());
        let mut line = EventRow::line(EventKind::InstanceMoved, now);
        line.agent = Some(key.agent.clone());
        line.instance = Some(key.instance.clone());
        line.text = Some(
            format!("called at {found}, which answers as it; {given} could not be dialled").into(),
        );
        self.tell(line, out);
        self.after_sign_of_life(now, &key.agent, out);
    }
}
