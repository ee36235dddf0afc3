//! Retention in memory: whole runs, then each kind by its own moment.

use muster_engine::row::PayloadKind;
use muster_wire::{ExecutionId, RunId, Timestamp};

use super::annex::Beside;
use super::state::State;
use crate::Retention;

/// One bounded pass; how many rows went.
pub(super) fn retire(state: &mut State, beside: &mut Beside, cut: &Retention, limit: usize) -> u64 {
    let mut gone = retire_runs(state, beside, cut.executions_before, limit);
    gone += retire_payloads(state, cut.payloads_before, limit);
    gone += removed(&mut state.outbox, limit, |message| {
        let done = message.delivery.delivered_at.or(message.delivery.dead_at);
        done.is_some_and(|at| at < cut.webhooks_before)
    });
    let last = state.last_seq();
    let old: Vec<u64> = state
        .events
        .iter()
        .take(limit)
        .filter(|(seq, row)| row.at < cut.events_before && **seq < last)
        .map(|(seq, _)| *seq)
        .collect();
    gone += old.len() as u64;
    old.iter().for_each(|seq| drop(state.events.remove(seq)));

    let number_of = &state.number_of;
    gone += removed(&mut state.keys, limit, |key| {
        key.at < cut.keys_before
            || (key.at < cut.executions_before && !number_of.contains_key(&key.execution))
    });
    gone += removed(&mut state.quarantine, limit, |item| {
        item.at < cut.quarantine_before && item.kind != "row"
    });
    gone += removed(&mut state.instances, limit, |row| {
        row.gone_at.is_some_and(|at| at < cut.instances_before)
    });
    gone += state.fleet.retire(cut, limit);
    gone + beside.retire(cut, limit)
}

/// Removes the oldest runs that ended.
pub(super) fn oldest(state: &mut State, beside: &mut Beside, limit: usize) -> u64 {
    retire_runs(state, beside, Timestamp::NEVER, limit)
}

fn retire_runs(state: &mut State, beside: &mut Beside, before: Timestamp, limit: usize) -> u64 {
    let is_source = |run: &RunId| {
        state
            .runs
            .values()
            .any(|row| row.source.as_ref() == Some(run))
    };
    let mut old: Vec<(Timestamp, RunId)> = state
        .members
        .keys()
        .filter(|run| {
            let mut members = state.run_members(run);
            members.all(|row| row.ended_at.is_some_and(|at| at < before)) && !is_source(run)
        })
        .filter_map(|run| Some((state.run_members(run).next()?.created_at, run.clone())))
        .collect();
    old.sort();
    let mut room = limit.max(1);
    let mut gone = 0;
    for (_, run) in old {
        if room == 0 {
            break;
        }
        gone += retire_run(state, beside, &run, &mut room);
    }
    gone
}

fn retire_payloads(state: &mut State, before: Timestamp, limit: usize) -> u64 {
    let old = |id: &ExecutionId| {
        let ended = state.execution(id).and_then(|row| row.ended_at);
        ended.is_some_and(|at| at < before)
    };
    let small: Vec<_> = state
        .payloads
        .keys()
        .filter(|(id, _)| old(id))
        .take(limit)
        .cloned()
        .collect();
    let large: Vec<_> = state
        .large
        .keys()
        .filter(|(id, _)| old(id))
        .take(limit)
        .cloned()
        .collect();
    small
        .iter()
        .for_each(|key| drop(state.payloads.remove(key)));
    large.iter().for_each(|key| drop(state.large.remove(key)));
    (small.len() + large.len()) as u64
}

/// Removes what is old, at most so many.
pub(super) fn removed<K: Ord + Clone, V>(
    map: &mut std::collections::BTreeMap<K, V>,
    limit: usize,
    is_old: impl Fn(&V) -> bool,
) -> u64 {
    let old: Vec<K> = map
        .iter()
        .filter(|(_, value)| is_old(value))
        .take(limit)
        .map(|(key, _)| key.clone())
        .collect();
    old.iter().for_each(|key| drop(map.remove(key)));
    old.len() as u64
}

/// Removes up to `room` members of a run, its root last.
fn retire_run(state: &mut State, beside: &mut Beside, run: &RunId, room: &mut usize) -> u64 {
    let mut members: Vec<(bool, u64, ExecutionId)> = state
        .run_members(run)
        .map(|row| (row.root == row.id, state.number_of[&row.id], row.id.clone()))
        .collect();
    members.sort_by_key(|(root, n, _)| (*root, std::cmp::Reverse(*n)));
    members.truncate(*room);
    *room -= members.len();
    let mut gone = 0;
    let last = state.last_seq();
    for (_, n, id) in members {
        let before = state.attempts.len() + state.payloads.len() + state.events.len();
        state.attempts.retain(|(execution, _), _| *execution != id);
        state.payloads.retain(|(execution, _), _| *execution != id);
        state.large.retain(|(execution, _), _| *execution != id);
        state
            .events
            .retain(|seq, row| *seq == last || row.execution.as_ref() != Some(&id));
        let after = state.attempts.len() + state.payloads.len() + state.events.len();
        gone += (before - after) as u64 + 1;
        state.forget(n);
        beside.forget(&id);
    }
    if !state.members.contains_key(run) {
        state.runs.remove(run);
        state.approvals.retain(|_, approval| approval.run != *run);
        beside.forget_run(run);
    }
    gone
}

/// Removes large payloads that no execution names.
pub(super) fn collect_leftovers(state: &mut State, before: Timestamp, limit: usize) -> usize {
    let old: Vec<(ExecutionId, PayloadKind)> = state
        .large
        .iter()
        .filter(|((_, _), large)| large.at < before)
        .filter(|((owner, kind), _)| match state.execution(owner) {
            None => true,
            Some(row) => {
                *kind == PayloadKind::Result
                    && row.status.is_terminal()
                    && row.result_size.is_none()
            }
        })
        .take(limit)
        .map(|(key, _)| key.clone())
        .collect();
    old.iter().for_each(|key| drop(state.large.remove(key)));
    old.len()
}
