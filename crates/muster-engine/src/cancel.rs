//! Cancel of one execution and of a whole run. The record is final at once; the agent is told
//! after, and what it did is kept as a receipt.

use std::sync::Arc;

use muster_wire::{ExecutionId, RunId, Timestamp};

use crate::effect::{Effects, Load, Reply, Write};
use crate::ending::End;
use crate::engine::{Engine, Run};
use crate::event::{Cancel, TreeCancel};
use crate::execution::{Execution, Phase};
use crate::row::{EventKind, EventRow, ExecutionRow, RunRow};

impl Engine {
    pub(crate) fn cancel_requested(
        &mut self,
        now: Timestamp,
        cancel: Box<Cancel>,
        out: &mut Effects,
    ) {
        let id = cancel.execution.clone();
        if self.executions.contains_key(&id) {
            let told = self.cancel_one(now, &id, &cancel.by, cancel.reason.as_deref(), out);
            return out.replies.push((
                cancel.waiter,
                Reply::Cancelled {
                    ended: vec![id],
                    told,
                },
            ));
        }
        if let Some(ended) = self.recent.ended(&id) {
            return out.replies.push((
                cancel.waiter,
                Reply::AlreadyEnded {
                    status: ended.status,
                },
            ));
        }
        let Some((as_of, row)) = &cancel.known else {
            return out.loads.push(Load::Cancel(cancel));
        };
        if !self.recent.ends_cover(*as_of) {
            return out.loads.push(Load::Cancel(cancel));
        }
        match row {
            None => out.replies.push((cancel.waiter, Reply::UnknownExecution)),
            Some(row) if row.status.is_terminal() => {
                out.replies
                    .push((cancel.waiter, Reply::AlreadyEnded { status: row.status }));
            }
            Some(row) => {
                self.adopt_queued((**row).clone());
                let told = self.cancel_one(now, &id, &cancel.by, cancel.reason.as_deref(), out);
                out.replies.push((
                    cancel.waiter,
                    Reply::Cancelled {
                        ended: vec![id],
                        told,
                    },
                ));
            }
        }
    }

    /// Brings a queued execution from the store into memory, to end or to pause it.
    pub(crate) fn adopt_queued(&mut self, row: ExecutionRow) {
        let idempotent = self
            .agents
            .get(&row.agent)
            .and_then(|agent| agent.function(&row.function))
            .is_some_and(|function| function.idempotent);
        self.join_run(&row.run, &row.root, 0, false);
        self.add_child(&row);
        self.keep(Box::new(Execution::new(
            Arc::new(row),
            Phase::Queued,
            idempotent,
        )));
    }

    /// Ends one that is in memory; returns how many attempts are told.
    pub(crate) fn cancel_one(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        by: &str,
        reason: Option<&str>,
        out: &mut Effects,
    ) -> u32 {
        self.cancel_as(
            now,
            id,
            reason.unwrap_or("cancelled"),
            End::cancelled(by, reason),
            out,
        )
    }

    /// Ends one that is in memory, and tells its agent why.
    pub(crate) fn cancel_as(
        &mut self,
        now: Timestamp,
        id: &ExecutionId,
        why: &str,
        end: End,
        out: &mut Effects,
    ) -> u32 {
        let Some(execution) = self.take(id) else {
            return 0;
        };
        self.disown_descendants(&execution.row.run.clone(), id);
        let told = self.tell_cancel(&execution, why, out);
        self.end(now, execution, end, out);
        u32::from(told)
    }

    /// What runs below a cancelled execution goes on, but may call nothing more.
    fn disown_descendants(&mut self, run: &RunId, above: &ExecutionId) {
        if self.runs.get(run).is_none_or(|run| run.open <= 1) {
            return;
        }
        let members: Vec<(ExecutionId, Option<ExecutionId>)> = self
            .executions
            .values()
            .filter(|e| e.row.run == *run)
            .map(|e| (e.row.id.clone(), e.row.parent.clone()))
            .collect();
        let mut below = vec![above.clone()];
        while let Some(parent) = below.pop() {
            for (id, of) in &members {
                if of.as_ref() == Some(&parent)
                    && let Some(child) = self.executions.get_mut(id)
                    && !child.disowned
                {
                    child.disowned = true;
                    below.push(id.clone());
                }
            }
        }
    }

    /// First the run is marked, so that nothing joins it any more; then its queued members are
    /// read, at or after the mark; then all open members end in one commit.
    pub(crate) fn tree_cancel_requested(
        &mut self,
        now: Timestamp,
        cancel: Box<TreeCancel>,
        out: &mut Effects,
    ) {
        let Some(known) = &cancel.known else {
            return out.loads.push(Load::Tree(cancel));
        };
        let as_of = known.as_of;
        let Some(root) = self
            .runs
            .get(&cancel.run)
            .map(|run| run.root.clone())
            .or_else(|| known.run.as_ref().map(|r| r.root.clone()))
        else {
            return out.replies.push((cancel.waiter, Reply::UnknownRun));
        };
        let marked = self.runs.get(&cancel.run).and_then(|run| run.marked_at);
        let before = known.run.as_ref().is_some_and(|run| run.cancelled);
        let queued_somewhere = !known.queued.is_empty();
        if !before && marked.is_none() {
            self.mark_cancelled(now, &cancel, root, out);
            // The read may have missed what was queued in this very batch.
            return out.loads.push(Load::Tree(cancel));
        }
        if marked.is_some_and(|marked| as_of < marked) {
            return out.loads.push(Load::Tree(cancel));
        }
        if !self.recent.ends_cover(as_of) && queued_somewhere {
            return out.loads.push(Load::Tree(cancel));
        }
        let TreeCancel {
            waiter,
            run,
            by,
            reason,
            known,
        } = *cancel;
        for row in known.map(|known| known.queued).unwrap_or_default() {
            if !self.executions.contains_key(&row.id) && self.recent.ended(&row.id).is_none() {
                self.adopt_queued(row);
            }
        }
        // Queued ones first: the end of a running one hands its slot to whoever is next, and that
        // must not be a member.
        let mut members: Vec<(bool, u64, ExecutionId)> = self
            .executions
            .values()
            .filter(|e| e.row.run == run)
            .map(|e| {
                (
                    !matches!(e.phase, Phase::Queued),
                    e.row.queue.seq,
                    e.row.id.clone(),
                )
            })
            .collect();
        members.sort();
        let mut told = 0;
        let mut ended = Vec::with_capacity(members.len());
        for (_, _, id) in members {
            told += self.cancel_one(now, &id, &by, reason.as_deref(), out);
            ended.push(id);
        }
        if let Some(held) = self.runs.get_mut(&run)
            && held.marked_at.is_some()
        {
            held.open -= 1;
            if held.open == 0 {
                self.runs.remove(&run);
            }
        }
        out.replies.push((waiter, Reply::Cancelled { ended, told }));
    }

    fn mark_cancelled(
        &mut self,
        now: Timestamp,
        cancel: &TreeCancel,
        root: ExecutionId,
        out: &mut Effects,
    ) {
        out.writes.push(Write::PutRun(Box::new(RunRow {
            cancelled_at: Some(now),
            cancelled_by: Some(cancel.by.clone()),
            ..RunRow::unmarked(cancel.run.clone(), root.clone())
        })));
        let mut line = EventRow::line(EventKind::RunCancelled, now);
        line.run = Some(cancel.run.clone());
        line.execution = Some(root.clone());
        line.reason.clone_from(&cancel.reason);
        line.text = Some(format!("by {}", cancel.by).into());
        let seq = self.tell(line, out);
        let run = self.runs.entry(cancel.run.clone()).or_insert_with(|| Run {
            root,
            cancelled: true,
            marked_at: None,
            paused_at: None,
            size: 0,
            open: 0,
        });
        run.cancelled = true;
        // The mark itself keeps the run in memory until its members have ended.
        if run.marked_at.is_none() {
            run.open += 1;
        }
        run.marked_at = Some(seq);
    }
}
