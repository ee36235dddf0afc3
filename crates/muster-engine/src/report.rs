//! Workflow events: evidence about executions the plane dispatched, and the only truth about
//! those that run inside an agent's process. They never change the status of a dispatched one.

use std::sync::Arc;

use muster_wire::{ExecutionKind, FunctionKind, Lane, ParentEnd, Status, Timestamp};

use crate::effect::{Count, Effects, Notice, Write};
use crate::ending::End;
use crate::engine::Engine;
use crate::event::Report;
use crate::execution::{Execution, Phase};
use crate::row::{EventKind, EventRow, ExecutionRow, PayloadKind, QueueKey};

/// Open observed executions of one parent; more are counted and dropped.
const OBSERVED_MAX: u32 = 100_000;

impl Engine {
    pub(crate) fn reported(&mut self, now: Timestamp, report: Report, out: &mut Effects) {
        match self.executions.get(&report.about.execution) {
            Some(execution) if execution.row.kind == ExecutionKind::Observed => {
                let proved = self.proves(execution, report.about.proof)
                    || execution.row.agent == report.agent;
                if !proved {
                    return out.notices.push(Notice::Count(Count::Unproved));
                }
                self.observed_report(now, report, out);
            }
            Some(execution) => {
                if !self.proves(execution, report.about.proof) {
                    return out.notices.push(Notice::Count(Count::Unproved));
                }
                self.evidence(now, report, out);
            }
            None if self.recent.ended(&report.about.execution).is_some() => {}
            None => self.observe(now, report, out),
        }
    }

    /// Evidence about a dispatched execution.
    fn evidence(&mut self, now: Timestamp, report: Report, out: &mut Effects) {
        let Some(mut execution) = self.take(&report.about.execution) else {
            return;
        };
        if report.outcome.status.is_terminal() {
            if let Some(error) = &report.outcome.error {
                execution.reported_error = Some(error.clone());
            }
            let recovering = execution
                .attempt()
                .is_some_and(|attempt| attempt.recover_until.is_some());
            if recovering {
                // Its answer died with the plane's connection; this is what is left of it.
                return self.end(now, execution, End::said(*report.outcome), out);
            }
        }
        if execution.row.function_kind == FunctionKind::Reasoner
            && let Phase::Sent(attempt) = &execution.phase
        {
            let mut attempt = attempt.clone();
            attempt.recover_until = None;
            out.writes.push(Write::AcceptAttempt {
                attempt: crate::event::AttemptKey {
                    execution: execution.row.id.clone(),
                    n: attempt.n,
                },
                at: now,
            });
            execution.phase = Phase::Accepted(attempt);
        }
        self.keep(execution);
    }

    fn observed_report(&mut self, now: Timestamp, report: Report, out: &mut Effects) {
        if !report.outcome.status.is_terminal() {
            return;
        }
        if let Some(execution) = self.take(&report.about.execution) {
            self.end(now, execution, End::said(*report.outcome), out);
        }
    }

    /// A call inside an agent's process that was not known yet. Its parent's attempt proves it.
    fn observe(&mut self, now: Timestamp, report: Report, out: &mut Effects) {
        let unproved = Notice::Count(Count::Unproved);
        let Some(claimed) = &report.parent else {
            return out.notices.push(unproved);
        };
        let Some(parent) = self.executions.get(&claimed.execution) else {
            return out.notices.push(unproved);
        };
        let inside = parent.row.kind == ExecutionKind::Observed && parent.row.agent == report.agent;
        if !(self.proves(parent, claimed.proof) || inside) || self.observed >= OBSERVED_MAX {
            return out.notices.push(unproved);
        }
        let row = &parent.row;
        let instance = match &parent.phase {
            Phase::Observed { instance, .. } => instance.clone(),
            Phase::Queued
            | Phase::Shelved
            | Phase::Absorbed { .. }
            | Phase::Sent(_)
            | Phase::Accepted(_) => parent.attempt().map(|attempt| attempt.instance.clone()),
        };
        let kind = self
            .agents
            .get(&report.agent)
            .and_then(|agent| agent.function(&report.function))
            .map_or(FunctionKind::Reasoner, |function| function.kind);
        let child = ExecutionRow {
            id: report.about.execution.clone(),
            run: row.run.clone(),
            root: row.root.clone(),
            parent: Some(row.id.clone()),
            depth: row.depth + 1,
            kind: ExecutionKind::Observed,
            lane: Lane::Async,
            agent: report.agent.clone(),
            function: report.function.clone(),
            function_kind: kind,
            status: Status::Running,
            status_reason: None,
            error_category: None,
            error_text: None,
            error_status: None,
            queue: QueueKey {
                class: row.queue.class,
                turn: 0,
                seq: self.seq + 1,
            },
            attempt: 0,
            holds: row.holds.clone(),
            over_cap: false,
            created_at: now,
            started_at: Some(now),
            ended_at: None,
            active_us: 0,
            clock_from: Some(now),
            deadline_us: i64::MAX,
            absorb_until: None,
            input_size: report.input.as_ref().map_or(0, |input| input.len() as u64),
            input_hash: [0; 16],
            result_size: None,
            key_hash: None,
            principal: row.principal.clone(),
            session: report.session.clone().or_else(|| row.session.clone()),
            actor: row.actor.clone(),
            traceparent: None,
            usage: None,
            origin: self.limits.origin,
            late_outcome: None,
            wait: None,
            resume_to: None,
            on_parent_end: ParentEnd::Detach,
            links: None,
        };
        let disowned = parent.disowned;
        self.join_run(&child.run, &child.root, 0, false);
        self.add_child(&child);
        let child = Arc::new(child);
        out.writes.push(Write::InsertExecution(child.clone()));
        if let Some(input) = report.input {
            out.writes.push(Write::PutPayload {
                execution: child.id.clone(),
                kind: PayloadKind::Input,
                bytes: input,
            });
        }
        let mut execution = Box::new(Execution::new(
            child,
            Phase::Observed {
                instance,
                ends_at: None,
            },
            false,
        ));
        execution.disowned = disowned;
        self.tell(
            EventRow::of(EventKind::ExecutionStarted, now, &execution),
            out,
        );
        Self::publish(&execution, None, None, out);
        self.observed += 1;
        if report.outcome.status.is_terminal() {
            self.end(now, execution, End::said(*report.outcome), out);
        } else {
            self.keep(execution);
        }
    }
}
