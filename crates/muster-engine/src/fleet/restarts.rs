//! Restarts that somebody wants: asked of the node, which ends the process and starts the next
//! one itself. What becomes of the worker is told by the node like a restart by its policy; here
//! is only who waits, and that the end in between is one that another start follows.

use std::sync::Arc;

use muster_wire::fleet::frame::{RestartOutput, SpawnOutput, WorkerReport};
use muster_wire::fleet::{NodeKind, NodeState, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::effect::{FleetRefusal, RestartCame};
use super::event::RestartAsk;
use super::releases::GRACE;
use super::worker::Worker;
use super::{FleetReply, FleetSend, reply, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;

/// The action that a daemon must offer.
const ACTION: &str = "restart";
/// By which first words our daemon says that it cannot do it at all.
const CANNOT: [&str; 2] = ["unsupported", "handler_unavailable"];

/// A restart that is under way.
#[derive(Debug)]
pub(crate) struct Restarting {
    /// Who waits for it.
    pub(crate) waiters: Vec<Waiter>,
    /// Until when it counts as under way.
    pub(crate) until: Timestamp,
}

fn refusal(category: Category, message: String, hint: &str) -> FleetRefusal {
    FleetRefusal {
        category,
        message,
        hint: Some(hint.to_owned()),
        retry_after: None,
        passed_over: Vec::new(),
    }
}

fn unsupported(message: String) -> FleetRefusal {
    let hint = "release it and place it anew: muster release WORKER, then muster spawn";
    refusal(Category::UnsupportedByNode, message, hint)
}

impl Engine {
    /// What stands in the way of a restart of this worker now.
    pub(crate) fn refuses_restart(&self, now: Timestamp, worker: &Worker) -> Option<FleetRefusal> {
        let row = &worker.row;
        let name = &row.name;
        let conflict =
            |message: String, hint: &str| Some(refusal(Category::Conflict, message, hint));
        if !worker.lives() {
            let text = format!("{name} has ended: there is nothing to start again");
            return conflict(text, "start it anew: muster spawn");
        }
        if row.state == WorkerState::Queued {
            let text = format!("{name} waits for a place and has no process yet");
            return conflict(text, "see what it waits for: muster why WORKER");
        }
        if let Some(wished) = &row.release {
            let text = format!("the end of {name} is under way: {} released it", wished.by);
            return conflict(text, "start it anew when it has ended: muster spawn");
        }
        let node = row.node.as_ref().and_then(|id| self.fleet.nodes.get(id))?;
        let its = &node.row.name;
        if node.row.kind == NodeKind::Relay {
            return Some(unsupported(format!(
                "{its} is an Agent Relay broker, which knows no restart"
            )));
        }
        if node.link.is_none() || node.state.0 != NodeState::Online {
            let text = format!(
                "its node {its} cannot be told now: it is {}, {}",
                node.state.0,
                node.evidence(now, &self.limits.fleet)
            );
            return conflict(
                text,
                "ask again when it is online; muster why NODE says how it is",
            );
        }
        if !node.row.capabilities.iter().any(|one| &**one == ACTION) {
            let mut refusal = unsupported(format!(
                "the daemon of {its} ({}) is too old to know a restart",
                node.row.version
            ));
            let hint = "bring its muster up to date (its workers go on), or release the worker and place it anew";
            refusal.hint = Some(hint.to_owned());
            return Some(refusal);
        }
        if worker.sent.is_some() {
            let text = format!("{name} is being started right now");
            return conflict(text, "ask again when it runs");
        }
        None
    }

    pub(crate) fn restart_asked(&mut self, now: Timestamp, ask: RestartAsk, out: &mut Effects) {
        let RestartAsk {
            waiter,
            worker: id,
            grace,
            by,
            reason,
        } = ask;
        let Some(worker) = self.fleet.workers.get(&id) else {
            return reply(waiter, FleetReply::UnknownWorker, out);
        };
        if let Some(refusal) = self.refuses_restart(now, worker) {
            return reply(waiter, FleetReply::Refused(refusal), out);
        }
        let answer = self.limits.fleet.release_answer + self.limits.fleet.start_answer;
        let Some(worker) = self.fleet.workers.get_mut(&id) else {
            return;
        };
        if let Some(restarting) = &mut worker.restarting {
            // Twice at once is one restart.
            restarting.waiters.push(waiter);
            return;
        }
        let why = reason.as_deref().map(|why| format!(": {why}"));
        let text = format!("restarted by {by}{}", why.unwrap_or_default());
        worker.restarting = Some(Restarting {
            waiters: vec![waiter],
            until: now + grace.unwrap_or(GRACE) + answer,
        });
        let node = worker.row.node.clone();
        let link = node
            .as_ref()
            .and_then(|node| self.fleet.nodes.get(node)?.link.as_ref());
        if let (Some(node), Some(link)) = (&node, link) {
            let restart = FleetSend::Restart {
                node: node.clone(),
                link: link.id,
                worker: id.clone(),
                grace,
                reason: text.into(),
            };
            send(restart, out);
        }
        self.rearm_worker(&id);
        // A goodbye of its agent is one until the next start.
        self.agent_is_wished(&id);
    }

    pub(crate) fn restart_answered(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        id: &WorkerId,
        outcome: Result<RestartOutput, Arc<str>>,
        out: &mut Effects,
    ) {
        if self.fleet.nodes.get(node).is_none_or(|n| n.link.is_none()) {
            return;
        }
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.row.node.as_ref() != Some(node) || !worker.lives() {
            return;
        }
        let waiters = worker
            .restarting
            .take()
            .map(|restarting| restarting.waiters);
        let waiters = waiters.unwrap_or_default();
        let came = match outcome {
            Ok(RestartOutput {
                restarts,
                output: SpawnOutput::Started { pid, started_at },
            }) => {
                let report = WorkerReport {
                    worker_id: id.as_str().to_owned(),
                    name: String::new(),
                    state: WorkerState::Running,
                    pid,
                    started_at,
                    restarts,
                    next_start_at: None,
                };
                self.confirm_worker(now, id, &report, out);
                Ok(RestartCame::Runs)
            }
            Ok(RestartOutput {
                output: SpawnOutput::Exited { .. },
                ..
            }) => Ok(RestartCame::Exited),
            Ok(RestartOutput {
                output: SpawnOutput::Refused { message, .. },
                ..
            }) => Err(message),
            Err(why) => Err(why.to_string()),
        };
        // What its policy says of a goodbye counts again.
        self.agent_is_wished(id);
        self.rearm_worker(id);
        for waiter in waiters {
            match &came {
                Ok(came) => self.tell_restarted(now, waiter, id, *came, out),
                Err(why) => {
                    let cannot = CANNOT.iter().any(|word| why.starts_with(word));
                    let text = format!("its node did not restart it: {why}");
                    let refused = if cannot {
                        unsupported(text)
                    } else {
                        refusal(Category::Conflict, text, "see how it is: muster why WORKER")
                    };
                    reply(waiter, FleetReply::Refused(refused), out);
                }
            }
        }
    }

    /// Nobody answered, or nobody can now: whoever waits is told that it is under way. What
    /// became of it is told by the node as it happens.
    pub(crate) fn restart_unanswered(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        let Some(restarting) = &mut worker.restarting else {
            return;
        };
        for waiter in std::mem::take(&mut restarting.waiters) {
            self.tell_restarted(now, waiter, id, RestartCame::Unconfirmed, out);
        }
    }

    /// The time in which a restart counts as under way is over.
    pub(crate) fn restart_expired(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        self.restart_unanswered(now, id, out);
        if let Some(worker) = self.fleet.workers.get_mut(id) {
            worker.restarting = None;
        }
        self.agent_is_wished(id);
    }

    /// The link over which restarts were asked is gone.
    pub(crate) fn restarts_broke(&mut self, now: Timestamp, node: &NodeId, out: &mut Effects) {
        let Some(held) = self.fleet.nodes.get(node) else {
            return;
        };
        let waits = |id: &&WorkerId| {
            let worker = self.fleet.workers.get(*id);
            worker.is_some_and(|worker| worker.restarting.is_some())
        };
        let waiting: Vec<WorkerId> = held.workers.iter().filter(waits).cloned().collect();
        for id in waiting {
            self.restart_unanswered(now, &id, out);
        }
    }

    pub(crate) fn tell_restarted(
        &self,
        now: Timestamp,
        waiter: Waiter,
        id: &WorkerId,
        came: RestartCame,
        out: &mut Effects,
    ) {
        if let Some(view) = self.worker_view(now, id) {
            let worker = Box::new(view);
            reply(waiter, FleetReply::Restarted { worker, came }, out);
        }
    }
}
