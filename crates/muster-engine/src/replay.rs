//! Replay: a call of a run that restarts another is answered from that run when it did the same
//! there. Finds which call of the source run is meant and takes its end over; what a source
//! run holds is read by the shell. Knows nothing of rooms and queues: a hit needs neither.

use std::sync::Arc;

use muster_wire::{ExecutionId, Lane, ReplayMode, Status, Timestamp};
use rustc_hash::FxHashMap;

use crate::admission::Pause;
use crate::effect::{Effects, ExecutionChange, Notice, Reply, Write};
use crate::ending::End;
use crate::engine::Engine;
use crate::event::{Known, Outcome, ReplayHit, Submission};
use crate::execution::Held;
use crate::lineage::Lineage;
use crate::refusal::Refusal;
use crate::row::{
    EventKind, EventRow, ExecutionRow, PayloadKind, QueueKey, REPLAYED_FROM, Replay, RunRow,
};

/// How far up callers are followed; calls nest less deep.
const LINE_MAX: usize = 256;

/// The restarted execution of a source run, as far as the modes need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// When it was accepted.
    pub created_at: Timestamp,
    /// It and everything that called it.
    pub line: Vec<ExecutionId>,
}

impl Replay {
    /// Whether the end of an execution of the source run may be taken over. `before` is the
    /// execution of that name, as the store has it.
    pub fn takes_over(&self, twin: &ExecutionRow, before: Option<&Before>) -> bool {
        let Some(ended_at) = twin.ended_at.filter(|_| twin.status == Status::Succeeded) else {
            return false;
        };
        match (self.mode, &self.before, before) {
            (ReplayMode::None, _, _) => false,
            (_, None, _) => true,
            // It is named and is not there any more: nobody knows what came before it.
            (_, Some(_), None) => false,
            (ReplayMode::SucceededBefore, Some(_), Some(before)) => ended_at <= before.created_at,
            (ReplayMode::AllSucceeded, Some(_), Some(before)) => !before.line.contains(&twin.id),
        }
    }
}

/// What a store that has every row at hand says of a replay; `rows` in order of acceptance.
/// Stores that search for it answer the same.
pub fn look_up<'a>(
    rows: impl Iterator<Item = &'a ExecutionRow> + Clone,
    submission: &Submission,
    has_result: impl Fn(&ExecutionId) -> bool,
    known: &mut Known,
) {
    let by_id = |id: &ExecutionId| rows.clone().find(|row| row.id == *id);
    if let Some(restart) = &submission.restart {
        let open = |row: &ExecutionRow| row.run == restart.source && !row.status.is_terminal();
        known.source_open = Some(rows.clone().any(open));
        return;
    }
    let Some(replay) = &submission.replay else {
        return;
    };
    let hash = &submission.body_hash;
    let parent = submission.parent.as_ref().map(|claimed| &claimed.execution);
    let equal = |row: &&ExecutionRow| row.parent.is_some() && row.input_hash == *hash;
    known.equal_calls = parent.map(|parent| {
        let calls = rows.clone().filter(equal);
        let count = calls.filter(|row| row.parent.as_ref() == Some(parent));
        u32::try_from(count.count()).unwrap_or(u32::MAX)
    });
    let Some(index) = submission.replay_index else {
        return;
    };
    let twin_of_parent = parent.and_then(by_id).and_then(|parent| {
        let links = parent.links.as_deref()?;
        let same = links.replay.as_ref()?.source == replay.source;
        links.replay_of.clone().filter(|_| same)
    });
    let candidates = rows
        .clone()
        .filter(equal)
        .filter(|row| row.run == replay.source);
    let twin = match &twin_of_parent {
        Some(parent) => candidates
            .filter(|row| row.parent.as_ref() == Some(parent))
            .nth(index as usize),
        None => candidates
            .filter(|row| {
                let taken = |other: &ExecutionRow| {
                    other.run == submission.run
                        && other.links.as_deref().and_then(|l| l.replay_of.as_ref())
                            == Some(&row.id)
                };
                !rows.clone().any(taken)
            })
            .nth(index as usize),
    };
    let Some(twin) = twin else { return };
    let ended = match twin.replayed_from() {
        Some(id) => by_id(&ExecutionId::trusted(id)),
        None => Some(twin),
    };
    let before = replay.before.as_ref().and_then(by_id).map(|row| Before {
        created_at: row.created_at,
        line: line(row, by_id),
    });
    let row = ended.unwrap_or(twin);
    let usable = ended.is_some()
        && replay.takes_over(twin, before.as_ref())
        && (row.result_size.is_none() || has_result(&row.id));
    known.hit = Some(Box::new(ReplayHit {
        row: Box::new(row.clone()),
        twin: twin.id.clone(),
        usable,
    }));
}

/// An execution and everything that called it.
pub fn line<R: std::ops::Deref<Target = ExecutionRow>>(
    row: R,
    by_id: impl Fn(&ExecutionId) -> Option<R>,
) -> Vec<ExecutionId> {
    let mut line = vec![row.id.clone()];
    let mut next = row.parent.clone();
    while let Some(id) = next.filter(|id| line.len() <= LINE_MAX && !line.contains(id)) {
        next = by_id(&id).and_then(|row| row.parent.clone());
        line.push(id);
    }
    line
}

/// The calls of one open execution that equal each other, so that each gets its own twin.
#[derive(Debug, Clone)]
pub(crate) struct EqualCalls {
    /// Whether every call of it was seen in this process.
    complete: bool,
    seen: FxHashMap<[u8; 16], Indexes>,
}

#[derive(Debug, Clone, Default)]
struct Indexes {
    next: u32,
    /// Of calls that were refused after all.
    given_back: Vec<u32>,
}

impl EqualCalls {
    /// For an execution that was dispatched before this process began.
    pub(crate) fn unknown() -> Box<Self> {
        Box::new(Self {
            complete: false,
            seen: FxHashMap::default(),
        })
    }

    /// For one whose calls are all to come.
    pub(crate) fn none_yet() -> Box<Self> {
        Box::new(Self {
            complete: true,
            seen: FxHashMap::default(),
        })
    }

    /// The index of one more such call; `None` when only the store knows how many there were.
    fn take(&mut self, hash: &[u8; 16], stored: Option<u32>) -> Option<u32> {
        if !self.complete && !self.seen.contains_key(hash) {
            let next = stored?;
            let given_back = Vec::new();
            self.seen.insert(*hash, Indexes { next, given_back });
        }
        let indexes = self.seen.entry(*hash).or_default();
        let smallest = indexes
            .given_back
            .iter()
            .enumerate()
            .min_by_key(|(_, index)| **index)
            .map(|(at, _)| at);
        if let Some(at) = smallest {
            return Some(indexes.given_back.swap_remove(at));
        }
        indexes.next += 1;
        Some(indexes.next - 1)
    }

    fn give_back(&mut self, hash: &[u8; 16], index: u32) {
        if let Some(indexes) = self.seen.get_mut(hash)
            && index < indexes.next
            && !indexes.given_back.contains(&index)
        {
            indexes.given_back.push(index);
        }
    }

    /// Says what is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        for indexes in self.seen.values() {
            if indexes
                .given_back
                .iter()
                .any(|index| *index >= indexes.next)
            {
                return Err("an index came back that was never given".into());
            }
        }
        Ok(())
    }
}

impl Engine {
    /// A run with open members is restarted only as a fork.
    pub(crate) fn source_ended(&self, submission: &Submission) -> Result<(), Pause> {
        let Some(restart) = submission.restart.as_ref().filter(|restart| !restart.fork) else {
            return Ok(());
        };
        let open = match (self.runs.get(&restart.source), submission.known.as_of) {
            (Some(_), _) => true,
            (None, None) => return Err(Pause::Load),
            (None, Some(_)) => submission.known.source_open.unwrap_or(false),
        };
        if open {
            let run = restart.source.clone();
            return Err(Pause::Refuse(Refusal::SourceOpen { run }));
        }
        Ok(())
    }

    /// Row 8: what the new execution takes over or passes on of a source run, and the hit.
    pub(crate) fn replayed(
        &mut self,
        submission: &mut Submission,
        lineage: &mut Lineage,
    ) -> Result<(), Pause> {
        if let Some(restart) = &submission.restart {
            lineage.links.replay = submission.replay.as_deref().cloned();
            lineage.links.replay_of = Some(restart.of.clone());
            lineage.links.restart_of = Some(restart.of.clone());
            return Ok(());
        }
        let parent = match &lineage.parent {
            Some(parent) if lineage.proved => self.executions.get_mut(parent),
            _ => None,
        };
        let inherited = parent.and_then(|parent| {
            let links = parent.row.links.as_deref()?;
            let replay = links.replay.clone()?;
            Some((replay, links.replay_of.is_some(), &mut parent.equal_calls))
        });
        if let Some((replay, has_twin, equal_calls)) = inherited {
            lineage.links.replay = Some(replay.clone());
            if replay.mode == ReplayMode::None || !has_twin {
                return Ok(());
            }
            if submission.replay_index.is_none() {
                let stored = submission.known.as_of.and(submission.known.equal_calls);
                submission.replay = Some(Box::new(replay));
                submission.replay_index = equal_calls
                    .get_or_insert_with(EqualCalls::none_yet)
                    .take(&submission.body_hash, stored);
                submission.known.as_of = None;
            }
        } else if let Some(replay) = submission.replay.as_deref() {
            lineage.links.replay = Some(replay.clone());
            if replay.mode == ReplayMode::None {
                return Ok(());
            }
            if submission.replay_index.is_none() {
                submission.replay_index = Some(0);
                submission.known.as_of = None;
            }
        } else {
            return Ok(());
        }
        if submission.known.as_of.is_none() {
            return Err(Pause::Load);
        }
        if let Some(hit) = &submission.known.hit {
            lineage.links.replay_of = Some(hit.twin.clone());
            lineage.hit = hit.usable.then(|| hit.clone());
        }
        Ok(())
    }

    /// A call that was counted among its equals was not accepted after all.
    pub(crate) fn uncount(&mut self, submission: &Submission) {
        let (Some(index), Some(claimed)) = (submission.replay_index, &submission.parent) else {
            return;
        };
        let proved = self
            .executions
            .get(&claimed.execution)
            .is_some_and(|parent| self.proves(parent, claimed.proof));
        if proved
            && let Some(parent) = self.executions.get_mut(&claimed.execution)
            && let Some(equal_calls) = &mut parent.equal_calls
        {
            equal_calls.give_back(&submission.body_hash, index);
        }
    }

    /// Answers a call with the end of its twin: written as succeeded, never dispatched. The
    /// result stays where it is.
    pub(crate) fn take_over(
        &mut self,
        now: Timestamp,
        submission: Submission,
        lineage: Lineage,
        hit: &ReplayHit,
        out: &mut Effects,
    ) {
        let turn = self
            .agents
            .get(&submission.agent)
            .map_or(0, |agent| agent.turn);
        let key = QueueKey {
            class: lineage.class,
            turn,
            seq: self.seq + 1,
        };
        let (waiter, lane) = (submission.waiter, submission.lane);
        let mut execution = self.accept(now, &submission, lineage, key, out);
        execution.unwritten = true;
        if lane == Lane::Sync {
            execution.held.push(Held { waiter, until: now });
        } else {
            let mut receipt = self.receipt(now, &execution, false);
            receipt.status = Status::Succeeded;
            receipt.replay_hit = true;
            out.replies
                .push((waiter, Reply::Accepted(Box::new(receipt))));
        }
        let id = execution.row.id.clone();
        let end = End::said(Outcome {
            status: Status::Succeeded,
            result: None,
            result_stored: hit.row.result_size,
            error: None,
            details: None,
            category: None,
            reason: Some(format!("{REPLAYED_FROM}{}", hit.row.id).into()),
            http_status: None,
            usage: None,
        });
        self.end(now, execution, end, out);
        if submission.input_stored.is_none() {
            out.writes.push(Write::PutPayload {
                execution: id,
                kind: PayloadKind::Input,
                bytes: submission.input,
            });
        }
    }

    /// Links both ends of a restart, and marks the new run with the one it comes from.
    pub(crate) fn restarted(
        &mut self,
        now: Timestamp,
        submission: &Submission,
        new: &ExecutionRow,
        out: &mut Effects,
    ) {
        let Some(restart) = &submission.restart else {
            return;
        };
        out.writes.push(Write::PutRun(Box::new(RunRow {
            source: Some(restart.source.clone()),
            ..RunRow::unmarked(new.run.clone(), new.root.clone())
        })));
        out.writes.push(Write::UpdateExecution {
            id: restart.of.clone(),
            change: ExecutionChange::RestartedAs { id: new.id.clone() },
        });
        if let Some(open) = self.executions.get_mut(&restart.of) {
            let row = Arc::make_mut(&mut open.row);
            row.links_mut().restarted_as = Some(new.id.clone());
        }
        out.notices.push(Notice::Restarted {
            execution: restart.of.clone(),
            restarted_as: new.id.clone(),
        });
        let mut line = EventRow::line(EventKind::ExecutionRestarted, now);
        line.execution = Some(restart.of.clone());
        line.run = Some(restart.source.clone());
        line.agent = Some(new.agent.clone());
        line.function = Some(new.function.clone());
        line.text = Some(match &restart.reason {
            Some(reason) => format!("{}: {reason}", new.id).into(),
            None => new.id.as_str().into(),
        });
        self.tell(line, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_came_back_is_given_again_before_a_new_one() {
        let mut calls = EqualCalls::none_yet();
        let hash = [1; 16];
        let first: Vec<_> = (0..3).map(|_| calls.take(&hash, None)).collect();
        assert_eq!(first, [Some(0), Some(1), Some(2)]);
        calls.give_back(&hash, 1);
        calls.give_back(&hash, 1);
        calls.give_back(&hash, 9);
        assert_eq!(calls.take(&hash, None), Some(1));
        assert_eq!(calls.take(&hash, None), Some(3));
        calls.check().unwrap();
    }

    #[test]
    fn after_a_start_the_store_says_how_many_there_were() {
        let mut calls = EqualCalls::unknown();
        let hash = [1; 16];
        assert_eq!(calls.take(&hash, None), None);
        assert_eq!(calls.take(&hash, Some(2)), Some(2));
        assert_eq!(calls.take(&hash, Some(2)), Some(3), "counted here since");
    }
}
