//! The start: an engine from what the store holds. A first start, a crash and a take-over are
//! this one path.

use std::sync::Arc;

use muster_wire::{AgentId, ExecutionKind, FunctionKind, Status, Timestamp, WaitCause};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::agent::{Agent, Gate, Instance};
use crate::approvals::Approvals;
use crate::effect::{Effects, Write};
use crate::engine::{Engine, Run};
use crate::execution::{AWAITING_RESTART, Attempt, Execution, Phase};
use crate::limits::Limits;
use crate::liveness::{InstanceFacts, InstanceState};
use crate::recent::Recent;
use crate::replay::EqualCalls;
use crate::row::{EventKind, EventRow, InstanceRow, Links, OpenExecution, Snapshot};
use crate::timers::Timers;

/// Silence of an instance that is forgiven after a start when restarts are not absorbed.
const FORGIVEN_LEAST: std::time::Duration = std::time::Duration::from_secs(15);
/// The gap between beats that is assumed until it is learned again.
const BEAT_ASSUMED: std::time::Duration = std::time::Duration::from_secs(5);

/// The time in which nobody decided.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outage {
    /// The last moment before it.
    began: Timestamp,
    /// How long it was, in microseconds.
    length: i64,
}

impl Outage {
    /// A moment from before the outage, as if the outage had not been.
    pub(crate) fn not_counted(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0.saturating_add(self.length))
    }

    /// The same for a moment that may be younger than the outage.
    pub(crate) fn not_counted_if_before(self, at: Timestamp) -> Timestamp {
        if at <= self.began {
            self.not_counted(at)
        } else {
            at
        }
    }
}

impl Engine {
    /// Rebuilds from what the store holds. The effects are committed and carried out like those
    /// of a step.
    ///
    /// `secret_key` is the plane's own: attempts' secrets are derived from it, so it must stay
    /// the same for one store.
    pub fn restore(
        limits: Limits,
        secret_key: [u8; 32],
        now: Timestamp,
        snapshot: Snapshot,
        out: &mut Effects,
    ) -> Engine {
        let held_by = |agent: Option<&AgentId>| {
            let of = snapshot.held_by.iter().find(|(of, _)| of.as_ref() == agent);
            of.map(|(_, by)| by.clone())
        };
        // Kept beside the hold: what was kept of another one says nothing of this.
        let hold_by = held_by(None).filter(|by| Some(&by.reason) == snapshot.hold.as_ref());
        let mut engine = Engine {
            secret_key,
            now,
            seq: snapshot.last_seq,
            agents: FxHashMap::default(),
            executions: FxHashMap::default(),
            runs: FxHashMap::default(),
            paused_runs: FxHashSet::default(),
            children: FxHashMap::default(),
            approvals: Approvals::default(),
            bereaved_at: None,
            reading_bereaved: false,
            unread_bereaved: !snapshot.queues.is_empty(),
            addresses: FxHashMap::default(),
            workers: FxHashMap::default(),
            recent: Recent::starting_at(snapshot.last_seq),
            places: FxHashMap::default(),
            unheard: FxHashMap::default(),
            timers: Timers::default(),
            circuits: Vec::new(),
            observed: 0,
            waiting_total: 0,
            hold: snapshot.hold.clone(),
            hold_by,
            draining: false,
            drain_ended: false,
            outage: Outage::default(),
            store_full: false,
            fleet: crate::fleet::Fleet::default(),
            limits,
        };
        // Nobody decided between the last event and now: that time counts for nobody. Where the
        // wall clock was set back meanwhile, it is less than nothing.
        let away = Outage {
            began: snapshot.last_at,
            length: now.0.saturating_sub(snapshot.last_at.0),
        };
        engine.outage = away;
        for row in snapshot.agents {
            let mut agent = Agent::new(row.id.clone(), row.principal, row.created_at);
            agent.held = row.held;
            agent.held_by = held_by(Some(&row.id)).filter(|_| row.held);
            agent.cap = row.cap;
            let need = engine.limits.tags_need_approval;
            agent.unapproved = need && !row.tags.unapproved().is_empty();
            agent.tags = row.tags;
            engine.agents.insert(row.id, agent);
        }
        let mut instances = snapshot.instances;
        instances.sort_by_key(|row| row.renewed_at);
        for row in instances {
            engine.restore_instance(now, away, row);
        }
        engine.doubt_the_replaced(now);
        for count in snapshot.queues {
            engine.waiting_total += count.count;
            if let Some(agent) = engine.agents.get_mut(&count.agent) {
                agent
                    .queue
                    .restore_count(count.class, count.turn, count.count);
            }
        }
        for agent in engine.agents.values_mut() {
            agent.turn = agent
                .queue
                .lowest_turn()
                .map_or(0, |turn| turn.saturating_sub(1));
        }
        let marked: FxHashMap<_, _> = snapshot
            .runs
            .into_iter()
            .map(|run| (run.id.clone(), run))
            .collect();
        let paused = marked.values().filter(|run| run.paused_at.is_some());
        engine.paused_runs = paused.map(|run| run.id.clone()).collect();
        for open in snapshot.open {
            let cancelled = marked
                .get(&open.row.run)
                .is_some_and(|run| run.cancelled_at.is_some());
            engine.restore_execution(now, away, open, cancelled, out);
        }
        engine.let_observed_live_with_their_parents();
        engine.tell(EventRow::line(EventKind::PlaneStarted, now), out);
        engine.restore_approvals(now, away, snapshot.approvals, out);
        let ids: Vec<_> = engine.agents.keys().cloned().collect();
        for id in &ids {
            engine.tell_directory(id, out);
            engine.tell_instances(now, id, out);
        }
        for execution in engine.executions.values() {
            Self::publish(execution, None, None, out);
        }
        crate::turns::first_windows(&mut engine, out);
        if engine.unread_bereaved {
            engine.read_bereaved(out);
        }
        engine.let_parents_go_on(now, out);
        engine.start_circuits(now);
        engine.restore_fleet(now, away, snapshot.fleet, out);
        for id in &ids {
            engine.dial_gates(now, id, out);
            engine.end_absorbed_when_down(now, id, out);
        }
        engine
    }

    /// That a younger process registered at an older one's address is not stored with the older
    /// one: it is doubted anew, and is gone unless it beats.
    fn doubt_the_replaced(&mut self, now: Timestamp) {
        let mut older = Vec::new();
        for here in self.addresses.values() {
            for (n, key) in here.iter().enumerate() {
                if here[n + 1..].iter().any(|other| other.agent == key.agent) {
                    older.push(key.clone());
                }
            }
        }
        for key in older {
            if let Some(instance) = self
                .agents
                .get_mut(&key.agent)
                .and_then(|agent| agent.instance_mut(&key.instance))
            {
                instance.replaced_at = Some(now);
            }
            self.rearm(now, &key);
        }
    }

    /// Those that waited for a child that is not there go on.
    fn let_parents_go_on(&mut self, now: Timestamp, out: &mut Effects) {
        let waiting: Vec<_> = self
            .executions
            .values()
            .filter(|e| e.waits_for(WaitCause::AwaitingChild).is_some())
            .map(|e| e.row.id.clone())
            .collect();
        for id in waiting {
            self.child_moved_on(now, Some(&id), out);
        }
    }

    /// What runs inside an agent's process ends with its caller, when that is open too.
    fn let_observed_live_with_their_parents(&mut self) {
        if self.observed == 0 {
            return;
        }
        let ids: Vec<_> = self
            .executions
            .values()
            .filter(|e| matches!(e.phase, Phase::Observed { .. }))
            .filter(|e| {
                e.row
                    .parent
                    .as_ref()
                    .is_some_and(|parent| self.executions.contains_key(parent))
            })
            .map(|e| e.row.id.clone())
            .collect();
        for id in ids {
            if let Some(mut execution) = self.take(&id) {
                if let Phase::Observed { ends_at, .. } = &mut execution.phase {
                    *ends_at = None;
                }
                self.keep(execution);
            }
        }
    }

    fn restore_instance(&mut self, now: Timestamp, away: Outage, row: InstanceRow) {
        let limits = self.liveness(&row.agent);
        let key = crate::event::InstanceKey {
            agent: row.agent.clone(),
            instance: row.id.clone(),
        };
        if row.gone_at.is_none() && !row.base_url.is_empty() {
            self.addresses
                .entry(row.base_url.clone())
                .or_default()
                .push(key.clone());
        }
        let Some(agent) = self.agents.get_mut(&row.agent) else {
            return;
        };
        let facts = InstanceFacts {
            key: key.clone(),
            base_url: row.base_url,
            version: row.version,
            functions: row.functions,
            registered_at: row.registered_at.min(now),
            renewed_at: row.renewed_at.min(now),
            beat_at: None,
            beat_interval: BEAT_ASSUMED,
            goodbye_at: row.goodbye_at.map(|at| at.min(now)),
            restart_until: None,
            dial_failed: None,
            dial_failing_since: None,
            probe_failed: None,
            probe_alive_at: None,
            exchange_at: None,
            wait_ran_out_at: None,
            gone: row
                .gone_at
                .map(|at| (at.min(now), row.gone_evidence.unwrap_or_default())),
            // Only silence is forgiven; goodbyes and exits are facts and stay.
            forgiven_until: now + limits.restart_grace.max(FORGIVEN_LEAST),
            heard_since: Some(now),
            worker: row.worker,
            node_away: None,
            candidates: Arc::default(),
            in_flight: 0,
        };
        let told = facts.verdict(now, limits).state;
        agent.instances.push(Instance {
            given_url: facts.base_url.clone(),
            sought_at: None,
            facts,
            gate: Gate::Open,
            replaced_at: None,
            shares_address: false,
            orphans_at: row.orphans_at.map(|at| away.not_counted(at)),
            probing: false,
            told: if told == InstanceState::Active {
                InstanceState::Unknown
            } else {
                told
            },
            told_at: now,
            watched: false,
            armed: None,
        });
        self.rearm(now, &key);
    }

    fn restore_execution(
        &mut self,
        now: Timestamp,
        away: Outage,
        open: OpenExecution,
        cancelled: bool,
        out: &mut Effects,
    ) {
        let OpenExecution { mut row, attempt } = open;
        if let Some(from) = row.clock_from {
            row.clock_from = Some(away.not_counted(from).min(now));
        }
        if let Some(until) = row.wait.as_mut().and_then(|wait| wait.until.as_mut()) {
            // Stored, so that the next start adds only its own outage.
            *until = away.not_counted(*until);
            out.writes.push(Write::UpdateExecution {
                id: row.id.clone(),
                change: crate::waits::moved(&row),
            });
        }
        let function = self
            .agents
            .get(&row.agent)
            .and_then(|agent| agent.function(&row.function));
        let idempotent = function.is_some_and(|function| function.idempotent);
        let paused = row.status == Status::Paused;
        let absorbed = row.status_reason.as_deref() == Some(AWAITING_RESTART)
            || (paused && row.absorb_until.is_some());
        let phase = match (row.kind, row.status, attempt) {
            (ExecutionKind::Observed, _, _) => {
                self.observed += 1;
                Phase::Observed {
                    instance: None,
                    ends_at: Some(now + self.limits.recovery_grace),
                }
            }
            (ExecutionKind::Dispatched, Status::Queued, _) => return,
            (ExecutionKind::Dispatched, Status::Paused, _)
                if row.resume_to == Some(Status::Queued) =>
            {
                Phase::Shelved
            }
            (ExecutionKind::Dispatched, _, Some(attempt)) if !absorbed => {
                let accepted = attempt.accepted_at.is_some();
                let grace = now + self.limits.recovery_grace;
                let recover_until = match row.function_kind {
                    // A skill's answer died with the connection; its terminal event may come.
                    FunctionKind::Skill => Some(
                        grace.max(away.not_counted(attempt.sent_at) + self.limits.call_timeout),
                    ),
                    FunctionKind::Reasoner => (!accepted).then_some(grace),
                };
                let live = Attempt {
                    n: attempt.n,
                    instance: attempt.instance,
                    candidates: attempt.candidates,
                    proof: attempt.secret_hash,
                    sent_at: attempt.sent_at,
                    recover_until,
                    on_ramp: false,
                };
                if accepted {
                    Phase::Accepted(live)
                } else {
                    Phase::Sent(live)
                }
            }
            // Never sent: it waits on, with a whole grace before it.
            (ExecutionKind::Dispatched, _, _) => {
                let grace = self.restart_grace(&row.agent).unwrap_or(FORGIVEN_LEAST);
                let held =
                    self.hold.is_some() || self.agents.get(&row.agent).is_some_and(|a| a.stopped());
                let until = if held || paused {
                    Timestamp::NEVER
                } else {
                    now + grace
                };
                row.absorb_until = Some(until);
                Phase::Absorbed { until }
            }
        };
        let reruns = row.attempt.saturating_sub(1);
        let mut execution = Box::new(Execution::new(Arc::new(row), phase, idempotent));
        execution.reruns = reruns;
        let replays = |links: &Links| links.replay.is_some();
        if execution.row.links.as_deref().is_some_and(replays) {
            execution.equal_calls = Some(EqualCalls::unknown());
        }
        let row = execution.row.clone();
        let run = self.runs.entry(row.run.clone()).or_insert_with(|| Run {
            root: row.root.clone(),
            cancelled,
            marked_at: None,
            paused_at: None,
            size: 0,
            open: 0,
        });
        run.open += 1;
        run.size += 1;
        self.add_child(&row);
        // Of those that were open nobody knows what they left in queues.
        execution.stored_children = self.unread_bereaved;
        if let Some(agent) = self.agents.get_mut(&row.agent) {
            if execution.holds_slot() {
                agent.holders.insert(row.id.clone());
            } else if execution.attempt().is_some() {
                agent.waiters.insert(row.id.clone());
            }
            if matches!(execution.phase, Phase::Absorbed { .. }) && !paused {
                agent.absorbed.insert(row.queue.seq, row.id.clone());
                for instance in &mut agent.instances {
                    if instance.facts.gone.is_none() {
                        instance.gate = Gate::Closed {
                            wait: std::time::Duration::ZERO,
                            dialling: false,
                        };
                    }
                }
            }
            if let Some(attempt) = execution.attempt()
                && let Some(instance) = agent.instance_mut(&attempt.instance)
            {
                instance.facts.in_flight += 1;
            }
        }
        self.keep(execution);
    }
}
