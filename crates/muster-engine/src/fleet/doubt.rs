//! Doubt about ourselves: when many peers fall silent at once, it may be us. Verdicts go on, and
//! nothing acts on them: nothing is lost, nothing is orphaned, no binding expires.

use std::sync::Arc;

use muster_wire::Timestamp;

use super::{FleetReply, Line, reply};
use crate::agent::Instance;
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::{InstanceKey, Waiter};
use crate::row::EventKind;
use crate::timers::TimerKey;

/// A doubt that holds. Its words are made when somebody asks.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) since: Timestamp,
    /// When it ends by itself.
    pub(crate) until: Timestamp,
    pub(crate) armed: Option<Timestamp>,
}

/// Who is silent, of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Silence {
    silent: u32,
    all: u32,
}

impl Silence {
    fn is_much(self, least: u32) -> bool {
        self.silent >= least && self.silent * 3 > self.all
    }
}

impl Engine {
    fn silent_nodes(&self, from: Timestamp) -> Silence {
        let mut seen = Silence::default();
        for node in self.fleet.nodes.values() {
            if node.is_retired() || node.row.pin.is_some() {
                continue;
            }
            match node.silent_at {
                Some(at) if at >= from => {
                    seen.silent += 1;
                    seen.all += 1;
                }
                // Silent for long, and no news.
                Some(_) => {}
                None if node.link.is_some() => seen.all += 1,
                None => {}
            }
        }
        seen
    }

    /// Since when an instance is silent without having left, if it is.
    fn fell_silent(&self, now: Timestamp, instance: &Instance) -> Option<Timestamp> {
        let facts = &instance.facts;
        let worker = facts.worker.as_ref().and_then(|w| self.workers.get(w));
        let exited = facts.gone.is_some() && worker == Some(&false);
        if exited || facts.goodbye_at.is_some() || facts.restart_until.is_some() {
            return None;
        }
        let late = facts.silent_since() + facts.late_after();
        (now > late).then_some(late)
    }

    fn silent_agents(&self, now: Timestamp, from: Timestamp) -> Silence {
        let mut seen = Silence::default();
        for instance in self.agents.values().flat_map(|agent| &agent.instances) {
            match self.fell_silent(now, instance) {
                Some(at) if at >= from => {
                    seen.silent += 1;
                    seen.all += 1;
                }
                Some(_) => {}
                None if instance.is_present() && instance.facts.goodbye_at.is_none() => {
                    seen.all += 1;
                }
                None => {}
            }
        }
        seen
    }

    /// Who is silent, and what follows, as of now.
    pub(crate) fn doubt_text(&self, now: Timestamp) -> String {
        let limits = self.limits.fleet;
        let first = self.fleet.doubt.as_ref().map_or(now, |doubt| doubt.since);
        let from = first - limits.node_grace;
        let (nodes, agents) = (self.silent_nodes(from), self.silent_agents(now, from));
        format!(
            "{} of {} nodes and {} of {} agents fell silent within {}: it may be us, so nothing acts on it: nothing is lost, nothing is orphaned, for at most {}",
            nodes.silent,
            nodes.all,
            agents.silent,
            agents.all,
            crate::liveness::seconds(limits.node_grace),
            crate::liveness::seconds(limits.doubt_max),
        )
    }

    /// Somebody fell silent or speaks again: whether that is a doubt, or the end of one.
    pub(crate) fn weigh_doubt(&mut self, now: Timestamp, out: &mut Effects) {
        let limits = self.limits.fleet;
        let first = self.fleet.doubt.as_ref().map_or(now, |doubt| doubt.since);
        let from = first - limits.node_grace;
        let nodes = self.silent_nodes(from);
        let agents = self.silent_agents(now, from);
        let much = nodes.is_much(limits.doubt_least) || agents.is_much(limits.doubt_least);
        match (&self.fleet.doubt, much) {
            (None, true) => {
                let text = self.doubt_text(now);
                let until = now + limits.doubt_max;
                let mut doubt = Doubt {
                    since: now,
                    until,
                    armed: None,
                };
                self.timers
                    .arm(&mut doubt.armed, Some(until), || TimerKey::Doubt);
                self.fleet.doubt = Some(doubt);
                self.alarm_line(now, "doubt", true, text, out);
            }
            (Some(_), false) => {
                let text = format!(
                    "{} of {} nodes and {} of {} agents are silent: no doubt about ourselves any more",
                    nodes.silent, nodes.all, agents.silent, agents.all
                );
                self.end_doubt(now, text, out);
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    pub(crate) fn alarm_line(
        &mut self,
        now: Timestamp,
        to: &'static str,
        warn: bool,
        text: impl Into<Arc<str>>,
        out: &mut Effects,
    ) {
        let line = Line {
            kind: EventKind::FleetAlarm,
            history: "alarm",
            node: None,
            worker: None,
            from: None,
            to: Some(to),
            warn,
            text: text.into(),
        };
        self.fleet_line(now, line, out);
    }

    /// The doubt is over: what it held back is looked at now.
    fn end_doubt(&mut self, now: Timestamp, text: String, out: &mut Effects) {
        let Some(mut doubt) = self.fleet.doubt.take() else {
            return;
        };
        self.timers.arm(&mut doubt.armed, None, || TimerKey::Doubt);
        self.alarm_line(now, "doubt_over", false, text, out);
        let nodes: Vec<_> = self.fleet.nodes.keys().cloned().collect();
        for id in nodes {
            self.settle_node(now, &id, out);
        }
        let due = |instance: &&Instance| instance.orphans_at.is_some_and(|at| at <= now);
        let instances = self.agents.values().flat_map(|agent| &agent.instances);
        let held: Vec<InstanceKey> = instances
            .filter(due)
            .map(|instance| instance.facts.key.clone())
            .collect();
        for key in held {
            self.rearm(now, &key);
        }
    }

    /// It lasted for as long as it may: whoever is still silent is taken at its word.
    pub(crate) fn doubt_due(&mut self, now: Timestamp, out: &mut Effects) {
        let Some(doubt) = &mut self.fleet.doubt else {
            return;
        };
        doubt.armed = None;
        let lasted = crate::liveness::seconds(now.since(doubt.since));
        let text = format!("the doubt about ourselves ends after {lasted}, as it must");
        self.end_doubt(now, text, out);
    }

    pub(crate) fn doubt_ended(
        &mut self,
        now: Timestamp,
        waiter: Waiter,
        by: &str,
        out: &mut Effects,
    ) {
        if self.fleet.doubt.is_none() {
            let text = "there is no doubt to end".to_owned();
            return reply(waiter, FleetReply::Conflict(text), out);
        }
        // What is silent now is taken at its word: it raises no new one.
        for node in self.fleet.nodes.values_mut() {
            if node.silent_at.is_some() {
                node.silent_at = Some(Timestamp::ZERO);
            }
        }
        let text = format!("{by} ended the doubt about ourselves");
        self.end_doubt(now, text, out);
        reply(waiter, FleetReply::Taken, out);
    }
}
