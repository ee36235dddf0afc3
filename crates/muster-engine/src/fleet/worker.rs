//! A worker as the engine holds it, and the changes of its state: each is written, told and
//! answered in one place. Dead only on evidence.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::{ExitHow, ExitReport, WorkerState};
use muster_wire::{Category, NodeId, Timestamp, WorkerId};

use super::effect::RestartCame;
use super::event::LinkId;
use super::limits::FleetLimits;
use super::restarts::Restarting;
use super::row::WorkerRow;
use super::{FleetNotice, FleetReply, FleetSend, Line, notice, reply, send};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;
use crate::row::{EventKind, Payload};
use crate::timers::TimerKey;

/// How long an ended worker is held: late frames, idempotency keys and duplicates are about it.
pub(crate) const ENDED_KEPT: Duration = Duration::from_secs(24 * 3600);

/// A worker as the engine holds it.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) row: WorkerRow,
    /// Inventories in a row that omitted it, and of which epoch.
    pub(crate) omitted: Option<(Option<Arc<str>>, u32)>,
    /// Its start was sent over this link and has not been answered.
    pub(crate) sent: Option<(LinkId, Timestamp)>,
    /// The last link over which its start was sent.
    pub(crate) tried: Option<LinkId>,
    /// What its node answered to its start, where that tells nothing of it.
    pub(crate) answer: Option<Arc<str>>,
    /// Who waits for its start, and whether by a repeated wish.
    pub(crate) starters: Vec<(Waiter, bool)>,
    /// Who waits for its end.
    pub(crate) releasers: Vec<Waiter>,
    /// Until when they wait.
    pub(crate) release_by: Option<Timestamp>,
    /// A restart that somebody wants is under way.
    pub(crate) restarting: Option<Restarting>,
    /// It was taken for ended and lives: it may be one more than there should be.
    pub(crate) revived: bool,
    /// Since when nobody confirmed it counts, at the earliest: the plane's start.
    pub(crate) held_from: Timestamp,
    pub(crate) armed: Option<Timestamp>,
}

impl Worker {
    pub(crate) fn new(row: WorkerRow, now: Timestamp) -> Self {
        Self {
            row,
            omitted: None,
            sent: None,
            tried: None,
            answer: None,
            starters: Vec::new(),
            releasers: Vec::new(),
            release_by: None,
            restarting: None,
            revived: false,
            held_from: now,
            armed: None,
        }
    }

    /// Whether it has not ended.
    pub(crate) fn lives(&self) -> bool {
        self.row.ended.is_none()
    }

    /// When it must be looked at again.
    pub(crate) fn next_look(
        &self,
        limits: &FleetLimits,
        matched_at: Option<Timestamp>,
    ) -> Timestamp {
        if let Some((at, _)) = self.row.ended {
            return at + ENDED_KEPT;
        }
        if self.row.state == WorkerState::Queued {
            return self.row.place_by.unwrap_or(Timestamp::NEVER);
        }
        let mut look = self.confirmed(matched_at).max(self.held_from) + limits.binding_ttl;
        if let Some((_, at)) = self.sent {
            look = look.min(at + limits.start_answer);
        }
        if let Some(by) = self.release_by {
            look = look.min(by);
        }
        if let Some(restarting) = &self.restarting {
            look = look.min(restarting.until);
        }
        look
    }

    /// When it was last confirmed.
    pub(crate) fn confirmed(&self, matched_at: Option<Timestamp>) -> Timestamp {
        let own = self.row.confirmed_at.unwrap_or(self.row.created_at);
        own.max(matched_at.unwrap_or(Timestamp::ZERO))
    }
}

impl Engine {
    /// When the workers of this one's node were confirmed by a beat.
    pub(crate) fn matched_at(&self, worker: &Worker) -> Option<Timestamp> {
        let node = self.fleet.nodes.get(worker.row.node.as_ref()?)?;
        node.matched_at
    }

    /// Sets a worker's timer. An entry that fires early is set again then, so that a
    /// confirmation costs nothing.
    pub(crate) fn rearm_worker(&mut self, id: &WorkerId) {
        let limits = self.limits.fleet;
        let Some(worker) = self.fleet.workers.get(id) else {
            return;
        };
        let look = worker.next_look(&limits, self.matched_at(worker));
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.armed.is_none_or(|armed| armed > look) {
            self.timers.arm(&mut worker.armed, Some(look), || {
                TimerKey::Worker(id.clone())
            });
        }
    }

    /// Tells that a worker's state is another one, and writes it.
    pub(crate) fn worker_is(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        state: WorkerState,
        text: impl Into<Arc<str>>,
        out: &mut Effects,
    ) {
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        let from = worker.row.state;
        worker.row.state = state;
        worker.row.state_at = now;
        let node = worker.row.node.clone();
        let kind = match state {
            WorkerState::Queued => EventKind::WorkerQueued,
            WorkerState::Starting => EventKind::WorkerStarting,
            WorkerState::Running => EventKind::WorkerRunning,
            WorkerState::Restarting => EventKind::WorkerRestarting,
            WorkerState::Exited => EventKind::WorkerExited,
            WorkerState::Lost => EventKind::WorkerLost,
            WorkerState::Unknown => EventKind::WorkerUnknown,
        };
        self.put_worker(id, out);
        let line = Line {
            kind,
            history: "worker.state",
            node,
            worker: Some(id.clone()),
            from: Some(from.word()),
            to: Some(state.word()),
            warn: matches!(state, WorkerState::Lost),
            text: text.into(),
        };
        self.fleet_line(now, line, out);
        self.rearm_worker(id);
    }

    /// A worker is at a node now: a new one, or one whose end was an error.
    pub(crate) fn bind(&mut self, id: &WorkerId, node: &NodeId) {
        let worker = self.fleet.workers.get(id);
        let adopted = worker.is_some_and(|worker| worker.row.adopted);
        if let Some(node) = self.fleet.nodes.get_mut(node) {
            node.has(id.clone());
            if adopted {
                node.adoptions.living.insert(id.clone());
            }
        }
    }

    /// A worker ended, or counts as lost: the one way out.
    pub(crate) fn end_worker(
        &mut self,
        now: Timestamp,
        id: &WorkerId,
        how: ExitHow,
        exit: Option<ExitReport>,
        text: impl Into<Arc<str>>,
        out: &mut Effects,
    ) {
        let text: Arc<str> = text.into();
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if !worker.lives() {
            return;
        }
        let lost = how == ExitHow::Declared && exit.is_none() && worker.row.release.is_none();
        let was_queued = worker.row.state == WorkerState::Queued;
        self.fleet
            .queue
            .remove(&(worker.row.created_at, id.clone()));
        worker.row.ended = Some((now, how));
        worker.row.exit = exit.or_else(|| worker.row.exit.take().filter(|_| !was_queued));
        worker.row.pid = None;
        worker.row.next_start_at = None;
        worker.row.waits_for = None;
        // Its variables may hold secrets, and nothing starts it any more.
        worker.row.spec = Payload::default();
        worker.omitted = None;
        worker.sent = None;
        worker.release_by = None;
        let starters = std::mem::take(&mut worker.starters);
        let releasers = std::mem::take(&mut worker.releasers);
        let restarting = worker.restarting.take();
        let node = worker.row.node.clone();
        let agent = worker.row.agent.clone();
        let (name, adopted) = (worker.row.name.clone(), worker.row.adopted);
        if let Some(node) = node.as_ref().and_then(|id| self.fleet.nodes.get_mut(id)) {
            node.has_not(id);
            if matches!(
                how,
                ExitHow::Reported | ExitHow::Released | ExitHow::StartFailed
            ) {
                node.names_no_more(id, &name);
            }
        }
        let state = if lost {
            WorkerState::Lost
        } else {
            WorkerState::Exited
        };
        self.worker_is(now, id, state, text.clone(), out);
        if let Some(view) = self.worker_view(now, id) {
            for (waiter, _) in starters {
                let with = FleetReply::StartFailed(Box::new(view.clone()));
                reply(waiter, with, out);
            }
            // Whether the process has ended, on evidence.
            let ended = !matches!(how, ExitHow::Declared | ExitHow::BindingExpired);
            for waiter in releasers {
                let worker = Box::new(view.clone());
                reply(waiter, FleetReply::Released { worker, ended }, out);
            }
        }
        for waiter in restarting.into_iter().flat_map(|one| one.waiters) {
            self.tell_restarted(now, waiter, id, RestartCame::Exited, out);
        }
        send(FleetSend::RevokeKey { worker: id.clone() }, out);
        notice(FleetNotice::Forget(id.clone()), out);
        if agent.is_some() {
            let route = FleetNotice::Route {
                worker: id.clone(),
                node: None,
            };
            notice(route, out);
        }
        self.agent_process_ended(now, id, text, out);
        if let (true, Some(node)) = (adopted, &node) {
            self.adopted_ended(node, id);
        }
        if let Some(node) = node {
            self.drain_next(now, &node, out);
            self.place_waiting(now, out);
        }
    }

    /// A worker's timer: a start or a release without an answer, a placement's deadline, a
    /// binding that nobody confirmed, an ended one that is forgotten.
    pub(crate) fn worker_due(&mut self, now: Timestamp, id: &WorkerId, out: &mut Effects) {
        let limits = self.limits.fleet;
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        worker.armed = None;
        if let Some((at, _)) = worker.row.ended {
            if now >= at + ENDED_KEPT {
                return self.forget_worker(id);
            }
            return self.rearm_worker(id);
        }
        if worker.row.state == WorkerState::Queued {
            if worker.row.place_by.is_some_and(|by| by <= now) {
                let why = worker.row.waits_for.as_deref();
                let why = why.unwrap_or("no node was looked at").to_owned();
                let text = format!("its time to wait for a place ran out: {why}");
                let exit = ExitReport {
                    reason: Some(format!("{}: {why}", Category::PlacementExpired)),
                    ..ExitReport::default()
                };
                return self.end_worker(now, id, ExitHow::PlacementExpired, Some(exit), text, out);
            }
            return self.rearm_worker(id);
        }
        if worker
            .sent
            .is_some_and(|(_, at)| now >= at + limits.start_answer)
        {
            worker.sent = None;
            self.start_unconfirmed(now, id, out);
        }
        let Some(worker) = self.fleet.workers.get_mut(id) else {
            return;
        };
        if worker.release_by.is_some_and(|by| by <= now) {
            worker.release_by = None;
            self.release_unanswered(now, id, out);
        }
        let expired = |one: &Restarting| one.until <= now;
        let worker = self.fleet.workers.get(id);
        if worker.is_some_and(|worker| worker.restarting.as_ref().is_some_and(expired)) {
            self.restart_expired(now, id, out);
        }
        let Some(worker) = self.fleet.workers.get(id) else {
            return;
        };
        let from = worker
            .confirmed(self.matched_at(worker))
            .max(worker.held_from);
        if now >= from + limits.binding_ttl {
            let doubt = self.fleet.doubt.as_ref().map(|doubt| doubt.until);
            if let Some(until) = doubt.filter(|until| *until > now) {
                // We doubt ourselves: it is looked at again when that is over.
                if let Some(worker) = self.fleet.workers.get_mut(id) {
                    let key = || TimerKey::Worker(id.clone());
                    self.timers.arm(&mut worker.armed, Some(until), key);
                }
                return;
            }
            let text = format!(
                "nobody confirmed it for {}: its binding expired",
                crate::liveness::seconds(limits.binding_ttl)
            );
            return self.end_worker(now, id, ExitHow::BindingExpired, None, text, out);
        }
        self.rearm_worker(id);
    }

    /// An ended worker is only in the store from now on.
    pub(crate) fn forget_worker(&mut self, id: &WorkerId) {
        if let Some(mut worker) = self.fleet.workers.remove(id) {
            let key = || TimerKey::Worker(id.clone());
            self.timers.arm(&mut worker.armed, None, key);
            if let Some(used) = &worker.row.idempotency_key
                && self.fleet.keys.get(used) == Some(id)
            {
                self.fleet.keys.remove(used);
            }
            self.workers.remove(id.as_str());
        }
    }
}
