//! Parents and their children: who was called by whom, and the end of what ends with its
//! parent. Children in memory end in the commit of their parent's end; those that are only in
//! the store are read after it, and by every start.

use muster_wire::{ExecutionId, ParentEnd, Timestamp};

use crate::effect::{Effects, Load};
use crate::ending::End;
use crate::engine::Engine;
use crate::event::Submission;
use crate::execution::{Execution, Phase};
use crate::refusal::Refusal;
use crate::row::ExecutionRow;

/// How many bereaved executions are read at once.
const BEREAVED_READ: usize = 500;
/// The reason word of what ended with its parent.
const PARENT_ENDED: &str = "parent_ended";

impl Engine {
    /// An execution came into memory.
    pub(crate) fn add_child(&mut self, row: &ExecutionRow) {
        if let Some(parent) = &row.parent {
            let children = self.children.entry(parent.clone()).or_default();
            children.insert(row.id.clone());
        }
    }

    /// An execution left memory.
    pub(crate) fn lose_child(&mut self, row: &ExecutionRow) {
        if let Some(parent) = &row.parent
            && let Some(children) = self.children.get_mut(parent)
        {
            children.remove(&row.id);
            if children.is_empty() {
                self.children.remove(parent);
            }
        }
    }

    /// A queued execution is only in the store: when its parent ends, it must be looked for.
    pub(crate) fn left_in_store(&mut self, row: &ExecutionRow) {
        if row.on_parent_end == ParentEnd::Cancel
            && let Some(parent) = row
                .parent
                .as_ref()
                .and_then(|id| self.executions.get_mut(id))
        {
            parent.stored_children = true;
        }
    }

    /// Whether a call ends with the execution that makes it.
    pub(crate) fn ends_with_parent(&self, submission: &Submission) -> bool {
        let by_function = || {
            self.agents
                .get(&submission.agent)
                .and_then(|agent| agent.function(&submission.function))
                .is_some_and(|function| function.cancel_with_parent)
        };
        match submission.on_parent_end {
            Some(wish) => wish == ParentEnd::Cancel,
            None => by_function(),
        }
    }

    /// Whether its parent ended, and it with it.
    pub(crate) fn is_bereaved(&self, row: &ExecutionRow) -> bool {
        let parent = row.parent.as_ref();
        row.on_parent_end == ParentEnd::Cancel
            && parent.is_some_and(|parent| self.recent.ended(parent).is_some())
    }

    /// Whether nobody knows yet what a parent that ended before the last crash left in queues.
    pub(crate) fn may_be_bereaved(&self, id: &ExecutionId) -> bool {
        self.unread_bereaved
            && self
                .executions
                .get(id)
                .is_some_and(|execution| execution.row.on_parent_end == ParentEnd::Cancel)
    }

    /// An execution has ended, as number `seq`: what ends with it ends.
    pub(crate) fn end_children(
        &mut self,
        now: Timestamp,
        parent: &Execution,
        seq: u64,
        out: &mut Effects,
    ) {
        let id = &parent.row.id;
        if parent.queued_children > 0 && !self.places.is_empty() {
            self.refuse_places_of(now, id, out);
        }
        if let Some(children) = self.children.get(id) {
            // Queued ones first: a slot that a running one gives back must not go to them.
            let mut ending: Vec<(bool, u64, ExecutionId)> = children
                .iter()
                .filter_map(|id| self.executions.get(id))
                .filter(|child| child.row.on_parent_end == ParentEnd::Cancel)
                .map(|child| {
                    let queued = matches!(child.phase, Phase::Queued);
                    (!queued, child.row.queue.seq, child.row.id.clone())
                })
                .collect();
            ending.sort_unstable();
            for (_, _, child) in ending {
                self.cancel_as(now, &child, PARENT_ENDED, with_parent(id), out);
            }
        }
        if parent.stored_children {
            self.bereaved_at = Some(seq);
            self.read_bereaved(out);
        }
    }

    /// A queued execution whose turn has come after its parent's end.
    pub(crate) fn end_bereaved(
        &mut self,
        now: Timestamp,
        execution: Box<Execution>,
        out: &mut Effects,
    ) {
        let parent = execution.row.parent.clone();
        let end = with_parent(parent.as_ref().unwrap_or(&execution.row.root));
        self.end(now, execution, end, out);
    }

    pub(crate) fn read_bereaved(&mut self, out: &mut Effects) {
        if std::mem::replace(&mut self.reading_bereaved, true) {
            return;
        }
        out.loads.push(Load::Bereaved {
            limit: BEREAVED_READ,
        });
    }

    pub(crate) fn bereaved_loaded(
        &mut self,
        now: Timestamp,
        rows: Vec<ExecutionRow>,
        more: bool,
        as_of: u64,
        out: &mut Effects,
    ) {
        self.reading_bereaved = false;
        if !self.recent.ends_cover(as_of) {
            return self.read_bereaved(out);
        }
        for row in rows {
            let (id, Some(parent)) = (row.id.clone(), row.parent.clone()) else {
                continue;
            };
            if self.recent.ended(&id).is_some() || self.executions.contains_key(&parent) {
                continue;
            }
            if !self.executions.contains_key(&id) {
                self.adopt_queued(row);
            }
            self.cancel_as(now, &id, PARENT_ENDED, with_parent(&parent), out);
        }
        // The read may have come before the commit of the end that asked for it.
        if more || self.bereaved_at.is_some_and(|at| as_of < at) {
            return self.read_bereaved(out);
        }
        self.bereaved_at = None;
        if std::mem::take(&mut self.unread_bereaved) {
            let agents: Vec<_> = self.agents.keys().cloned().collect();
            for agent in agents {
                self.pump(now, &agent, out);
            }
        }
    }

    /// Sync callers that wait for a turn without a row, for an execution that has ended.
    fn refuse_places_of(&mut self, now: Timestamp, parent: &ExecutionId, out: &mut Effects) {
        let agents: Vec<_> = self.places.values().cloned().collect();
        for id in agents {
            let keys = self
                .agents
                .get(&id)
                .map(|agent| agent.queue.places_of(parent))
                .unwrap_or_default();
            for key in keys {
                let ends = self
                    .agents
                    .get_mut(&id)
                    .and_then(|agent| agent.queue.place_mut(&key))
                    .map(|place| place.submission.clone())
                    .is_some_and(|submission| self.ends_with_parent(&submission));
                if ends && let Some(place) = self.remove_place(&id, &key) {
                    let refusal = Refusal::ParentEnded {
                        parent: parent.clone(),
                    };
                    self.refuse(now, &place.submission, &refusal, out);
                }
            }
        }
    }
}

/// The end of what ends with its parent.
fn with_parent(parent: &ExecutionId) -> End {
    let why = format!("{parent}, which called it, has ended");
    End::cancelled("the plane", Some(&why)).reason(PARENT_ENDED)
}
