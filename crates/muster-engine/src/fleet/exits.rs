//! Exits of processes and other news of single workers: taken once, whatever comes twice or late.
//! The number of restarts tells which process it is about.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::WorkerReport;
use muster_wire::fleet::{ExitHow, ExitReport, NodeKind, RestartPolicy, WorkerState};
use muster_wire::id::minted_noun;
use muster_wire::{NodeId, Timestamp, WorkerId};

use super::event::LinkId;
use super::row::{Target, WorkerRow};
use super::worker::Worker;
use super::{FleetReply, reply};
use crate::effect::Effects;
use crate::engine::Engine;
use crate::event::Waiter;
use crate::liveness::seconds;
use crate::row::Payload;

/// A node's clock may be ahead of ours by so much.
pub(crate) const AHEAD_MOST: Duration = Duration::from_secs(24 * 3600);
/// The longest name of a worker, in characters.
const NAME_MAX: usize = 128;

/// An exit as a node tells it.
pub(crate) struct Exited {
    pub(crate) worker: WorkerId,
    pub(crate) restarts: u32,
    pub(crate) exit: ExitReport,
    pub(crate) next_start_at: Option<Timestamp>,
}

/// How a process ended, in a few words.
pub(crate) fn how(exit: &ExitReport) -> String {
    match (exit.code, exit.signal, &exit.reason) {
        (Some(code), _, _) => format!("exit code {code}"),
        (None, Some(signal), _) => format!("signal {signal}"),
        (None, None, Some(reason)) => format!("no exit code: {reason}"),
        (None, None, None) => "no exit code".into(),
    }
}

/// That a process ended and another follows: with who wanted that, where somebody did.
fn again_words(now: Timestamp, exit: Option<&ExitReport>, words: &str, at: Timestamp) -> String {
    let is_said = |exit: &&ExitReport| exit.code.is_some() || exit.signal.is_some();
    let reason = exit.filter(is_said).and_then(|exit| exit.reason.as_deref());
    let ended = match reason {
        Some(reason) => format!("{reason} ({words})"),
        None => words.to_owned(),
    };
    match at.since(now) {
        wait if wait < Duration::from_millis(50) => {
            format!("{ended}; its node starts it again now")
        }
        wait => format!("{ended}; its node starts it again in {}", seconds(wait)),
    }
}

/// A moment as a node told it, unless no clock that works would say it.
pub(crate) fn believable(now: Timestamp, told: Timestamp) -> Option<Timestamp> {
    (told > Timestamp::ZERO && told <= now + AHEAD_MOST).then_some(told)
}

/// A name as a node told it, without what would steer a terminal, and not without end.
pub(crate) fn shown_name(told: &str) -> Arc<str> {
    let fine = told.trim().chars().filter(|c| !c.is_control());
    fine.take(NAME_MAX).collect::<String>().into()
}

impl Engine {
    pub(crate) fn exit_told(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        link: LinkId,
        exited: Exited,
        waiter: Option<Waiter>,
        out: &mut Effects,
    ) {
        if !self.takes(now, node, link, waiter, out) {
            return;
        }
        self.process_exited(now, node, exited, out);
        if let Some(waiter) = waiter {
            reply(waiter, FleetReply::Taken, out);
        }
    }

    fn process_exited(&mut self, now: Timestamp, node: &NodeId, exited: Exited, out: &mut Effects) {
        let id = exited.worker.clone();
        let mut exited = exited;
        exited.exit.at = exited.exit.at.and_then(|at| believable(now, at));
        exited.next_start_at = exited.next_start_at.map(|at| at.min(now + AHEAD_MOST));
        if !self.fleet.workers.contains_key(&id) && !self.adopt(now, node, &id, "", out) {
            return;
        }
        let Some(worker) = self.fleet.workers.get_mut(&id) else {
            return;
        };
        // A node's frames can touch only its own workers; and an older process is no news.
        if worker.row.node.as_ref() != Some(node) || exited.restarts < worker.row.restarts {
            return;
        }
        let same = exited.restarts == worker.row.restarts;
        let words = how(&exited.exit);
        worker.row.restarts = exited.restarts;
        if let Some((_, ended)) = worker.row.ended {
            let known = match ended {
                ExitHow::Reported | ExitHow::Released | ExitHow::StartFailed => same,
                ExitHow::Unobserved
                | ExitHow::Declared
                | ExitHow::Cancelled
                | ExitHow::PlacementExpired
                | ExitHow::BindingExpired => false,
            };
            if !known {
                // Its end was concluded; now it is known.
                worker.row.ended = Some((now, ExitHow::Reported));
                worker.row.exit = Some(exited.exit);
                let text = format!("its exit was reported later: {words}");
                let name = worker.row.name.clone();
                if let Some(node) = self.fleet.nodes.get_mut(node) {
                    node.names_no_more(&id, &name);
                }
                self.worker_is(now, &id, WorkerState::Exited, text, out);
            }
            return;
        }
        let again = same && worker.row.state == WorkerState::Restarting;
        match exited.next_start_at {
            Some(_) if again => {}
            Some(at) => {
                worker.row.exit = Some(exited.exit);
                worker.row.pid = None;
                worker.row.next_start_at = Some(at);
                worker.row.confirmed_at = Some(now);
                worker.omitted = None;
                let text = again_words(now, worker.row.exit.as_ref(), &words, at);
                self.worker_is(now, &id, WorkerState::Restarting, text.clone(), out);
                self.agent_process_restarts(now, &id, text, at, out);
            }
            None => {
                let ended = if worker.row.release.is_some() {
                    ExitHow::Released
                } else {
                    ExitHow::Reported
                };
                self.end_worker(now, &id, ended, Some(exited.exit), words, out);
            }
        }
    }

    pub(crate) fn worker_seen(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        link: LinkId,
        report: &WorkerReport,
        waiter: Option<Waiter>,
        out: &mut Effects,
    ) {
        if !self.takes(now, node, link, waiter, out) {
            return;
        }
        if let Ok(id) = WorkerId::parse(&report.worker_id) {
            self.worker_told(now, node, &id, report, out);
        }
        if let Some(waiter) = waiter {
            reply(waiter, FleetReply::Taken, out);
        }
    }

    /// A worker that its node runs and nobody here had placed is taken over. False when there
    /// are too many.
    pub(crate) fn adopt(
        &mut self,
        now: Timestamp,
        node: &NodeId,
        id: &WorkerId,
        name: &str,
        out: &mut Effects,
    ) -> bool {
        let living = self.fleet.living();
        let Some(held) = self.fleet.nodes.get_mut(node) else {
            return false;
        };
        // A daemon keeps the ids that were minted here; a broker's are checked where they are read.
        if held.row.kind == NodeKind::Daemon && minted_noun(id.as_str()) != Some("wrk") {
            return false;
        }
        if living >= self.limits.fleet.workers_max as usize
            || !held.adoptions.takes(now, held.row.max_workers)
        {
            return false;
        }
        let io = match held.row.kind {
            NodeKind::Relay => Some(muster_wire::fleet::WorkerIo::Pty),
            NodeKind::Daemon => None,
        };
        let name = match shown_name(name) {
            name if name.is_empty() => id.as_str().into(),
            name => name,
        };
        let row = WorkerRow {
            id: id.clone(),
            name,
            node: Some(node.clone()),
            target: Target::default(),
            spec: Payload::default(),
            command: "".into(),
            io,
            restart: RestartPolicy::default(),
            labels: Vec::new(),
            principal: held.row.principal.clone(),
            idempotency_key: None,
            body_hash: [0; 16],
            created_at: now,
            state: WorkerState::Starting,
            state_at: now,
            place_by: None,
            waits_for: None,
            pid: None,
            started_at: None,
            restarts: 0,
            next_start_at: None,
            confirmed_at: Some(now),
            release: None,
            adopted: true,
            agent: None,
            exit: None,
            ended: None,
        };
        let name = held.row.name.clone();
        let worker = Box::new(Worker::new(row, now));
        self.fleet.workers.insert(id.clone(), worker);
        self.bind(id, node);
        let text = format!("{name} has it, and nobody here had placed it: it is adopted");
        self.worker_is(now, id, WorkerState::Starting, text, out);
        true
    }
}
