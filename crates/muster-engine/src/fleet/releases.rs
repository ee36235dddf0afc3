//! Ends that somebody wants: told to the node, answered when the process has ended on evidence,
//! kept as a wish while the node cannot be told.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::{ExitHow, ExitReport, NodeState, WorkerState};
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::effect::WorkerView;
use super::event::FleetEvent;
use super::row::Wished;
use super::{FleetReply, FleetSend, reply, send};
use crate::effect::{Effects, Load};
use crate::engine::Engine;

/// How long a process has between SIGTERM and SIGKILL when nobody says.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

impl Engine {
    pub(crate) fn release_asked(&mut self, now: Timestamp, event: FleetEvent, out: &mut Effects) {
        let FleetEvent::ReleaseAsked {
            waiter,
            worker: ref id,
            grace,
            force,
            ref by,
            ref reason,
            ref known,
        } = event
        else {
            return;
        };
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            match known {
                None => out.loads.push(Load::Fleet(Box::new(event))),
                Some(None) => reply(waiter, FleetReply::UnknownWorker, out),
                Some(Some(row)) => {
                    // Ended so long ago that it is only in the store.
                    let worker = Box::new(WorkerView {
                        node_name: None,
                        state: row.state,
                        state_at: row.state_at,
                        evidence: "it ended before".into(),
                        unknown_because: None,
                        row: (**row).clone(),
                    });
                    let ended = row.state == WorkerState::Exited;
                    reply(waiter, FleetReply::Released { worker, ended }, out);
                }
            }
            return;
        };
        let wished = Wished {
            by: by.clone(),
            at: now,
            reason: reason.clone(),
        };
        let why = reason
            .as_deref()
            .map(|r| format!(": {r}"))
            .unwrap_or_default();
        if worker.row.state == WorkerState::Queued {
            worker.row.release = Some(wished);
            worker.releasers.push(waiter);
            let text = format!("cancelled by {by}{why}");
            return self.end_worker(now, id, ExitHow::Cancelled, None, text, out);
        }
        if let Some((_, how)) = worker.row.ended {
            let ended = !matches!(how, ExitHow::Declared | ExitHow::BindingExpired);
            if let Some(view) = self.worker_view(now, id) {
                let worker = Box::new(view);
                reply(waiter, FleetReply::Released { worker, ended }, out);
            }
            return;
        }
        worker.releasers.push(waiter);
        let first = worker.row.release.is_none();
        worker.row.release = Some(wished);
        let node = worker.row.node.clone();
        let linked = node
            .as_ref()
            .and_then(|node| self.fleet.nodes.get(node))
            .is_some_and(|node| node.link.is_some());
        if !linked && force {
            let text = format!("its record was closed by {by}{why}; its node cannot be told");
            let exit = ExitReport {
                reason: Some("declared".into()),
                ..ExitReport::default()
            };
            return self.end_worker(now, id, ExitHow::Declared, Some(exit), text, out);
        }
        if first {
            self.put_worker(id, out);
            self.agent_is_wished(id);
        }
        if linked {
            self.release_now(id, now, grace, out);
            // A node that is not heard may never answer: the wish stands, and who asked knows it.
            let silent = node
                .as_ref()
                .and_then(|node| self.fleet.nodes.get(node))
                .is_some_and(|node| {
                    matches!(node.state.0, NodeState::Suspect | NodeState::Unreachable)
                });
            if silent {
                self.release_unanswered(now, id, out);
            }
        } else {
            // The wish is stored: it is done when the node is back.
            self.release_unanswered(now, id, out);
        }
    }

    /// Tells a worker's node to end it.
    fn release_now(
        &mut self,
        id: &WorkerId,
        now: Timestamp,
        grace: Option<Duration>,
        out: &mut Effects,
    ) {
        let answer = self.limits.fleet.release_answer;
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        let Some(node) = worker.row.node.clone() else {
            return;
        };
        let Some(link) = self.fleet.nodes.get(&node).and_then(|n| n.link.as_ref()) else {
            return;
        };
        worker.release_by = Some(now + grace.unwrap_or(GRACE) + answer);
        let release = FleetSend::Release {
            node,
            link: link.id,
            worker: id.clone(),
            name: worker.row.name.clone(),
            grace,
        };
        send(release, out);
        self.rearm_worker(id);
    }

    /// A worker's node is drained: it ends like one that somebody released.
    pub(crate) fn release_for_drain(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        by: Arc<str>,
        out: &mut Effects,
    ) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        worker.row.release = Some(Wished {
            by,
            at: now,
            reason: Some("its node is drained".into()),
        });
        self.put_worker(id, out);
        self.agent_is_wished(id);
        self.release_now(id, now, None, out);
    }

    /// No answer came, or none can come now: whoever waits is told that the wish stands.
    pub(crate) fn release_unanswered(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        let node = worker.row.node.clone();
        let releasers = std::mem::take(&mut worker.releasers);
        for waiter in releasers {
            if let Some(view) = self.worker_view(now, id) {
                let worker = Box::new(view);
                let ended = false;
                reply(waiter, FleetReply::Released { worker, ended }, out);
            }
        }
        if let Some(node) = node {
            self.drain_next(now, &node, out);
        }
    }

    pub(crate) fn release_answered(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        id: &WorkerId,
        outcome: Result<ExitReport, Arc<str>>,
        out: &mut Effects,
    ) {
        match self.fleet.nodes.get_mut(node).and_then(|n| n.link.as_mut()) {
            Some(link) => link.answered_at = Some(now),
            None => return,
        }
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.row.node.as_ref() != Some(node) || !worker.lives() {
            return;
        }
        worker.release_by = None;
        match outcome {
            Ok(exit) => {
                let text = format!("released: {}", super::exits::how(&exit));
                self.end_worker(now, id, ExitHow::Released, Some(exit), text, out);
            }
            Err(why) => {
                let releasers = std::mem::take(&mut worker.releasers);
                for waiter in releasers {
                    let text = format!("its node could not stop it: {why}");
                    reply(waiter, FleetReply::Conflict(text), out);
                }
                self.drain_next(now, &node.clone(), out);
            }
        }
    }
}
