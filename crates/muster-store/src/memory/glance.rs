//! What an overview asks, by walking everything.

use std::collections::{BTreeMap, BTreeSet};

use muster_engine::row::{EventRow, ExecutionRow};
use muster_wire::{AgentId, Category, Status, Timestamp, WaitCause};

use super::state::State;
use crate::{AgentCount, FoundIds, Glance, Glanced, HeldCount, HeldKind, QueueCount};

/// The whole at a glance.
pub(super) fn glance(state: &State, ask: &Glance) -> Glanced {
    let before = ask.from - ask.span();
    let mut out = Glanced {
        last_seq: state.last_seq(),
        started: vec![0; ask.buckets],
        ended: vec![0; ask.buckets],
        ..Glanced::default()
    };
    let mut queued: BTreeMap<&AgentId, (u64, u64, Timestamp)> = BTreeMap::new();
    let mut held: BTreeMap<HeldKind, (u64, Timestamp)> = BTreeMap::new();
    let (mut failed, mut failed_before) = (BTreeMap::new(), BTreeMap::new());
    for row in state.executions.values() {
        if let Some(n) = ask.bucket_of(row.created_at) {
            out.started[n] += 1;
        }
        if let Some(n) = row.ended_at.and_then(|at| ask.bucket_of(at)) {
            out.ended[n] += 1;
        }
        match row.status {
            Status::Queued => {
                let first = (0, row.queue.seq, row.created_at);
                let queue = queued.entry(&row.agent).or_insert(first);
                queue.0 += 1;
                if row.queue.seq < queue.1 {
                    (queue.1, queue.2) = (row.queue.seq, row.created_at);
                }
            }
            Status::Running => out.running += 1,
            _ => {}
        }
        if let Some(kind) = kind_of(row) {
            let entry = held.entry(kind).or_insert((0, row.created_at));
            entry.0 += 1;
            entry.1 = entry.1.min(row.created_at);
        }
        if is_bad(row)
            && let Some(at) = row.ended_at
        {
            let category = row
                .error_category
                .clone()
                .unwrap_or(Category::InternalError);
            let word = category.word().to_owned();
            if at >= ask.from {
                *failed.entry(word).or_insert(0) += 1;
            } else if at >= before {
                *failed_before.entry(word).or_insert(0) += 1;
            }
        }
    }
    out.queued = queued
        .into_iter()
        .map(|(agent, (count, _, oldest_at))| QueueCount {
            agent: agent.clone(),
            count,
            oldest_at,
        })
        .collect();
    out.held = held
        .into_iter()
        .map(|(kind, (count, oldest_at))| HeldCount {
            kind,
            count,
            oldest_at,
        })
        .collect();
    out.failed = by_frequency(failed);
    out.failed_before = by_frequency(failed_before);
    out
}

fn kind_of(row: &ExecutionRow) -> Option<HeldKind> {
    match row.status {
        Status::Paused => Some(HeldKind::Paused),
        Status::Waiting => match row.wait.as_ref().map(|wait| wait.cause) {
            Some(WaitCause::AwaitingChild) => Some(HeldKind::Child),
            _ => Some(HeldKind::Approval),
        },
        Status::Running => row.absorb_until.map(|_| HeldKind::Absorbed),
        _ => None,
    }
}

fn is_bad(row: &ExecutionRow) -> bool {
    matches!(row.status, Status::Failed | Status::Timeout)
}

fn by_frequency(counts: BTreeMap<String, u64>) -> Vec<(Category, u64)> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let counts = counts.into_iter();
    counts
        .map(|(word, n)| (Category::from(word.as_str()), n))
        .collect()
}

/// What ended of each agent, or of one.
pub(super) fn ended_by_agent(
    state: &State,
    since: Timestamp,
    only: Option<&AgentId>,
) -> Vec<AgentCount> {
    let mut counts: BTreeMap<&AgentId, (u64, u64)> = BTreeMap::new();
    let rows = state.executions.values().filter(|row| {
        row.ended_at.is_some_and(|at| at >= since) && only.is_none_or(|id| *id == row.agent)
    });
    for row in rows {
        let count = counts.entry(&row.agent).or_default();
        count.0 += 1;
        count.1 += u64::from(is_bad(row));
    }
    let counts = counts.into_iter();
    counts
        .map(|(agent, (ended, failed))| AgentCount {
            agent: agent.clone(),
            ended,
            failed,
        })
        .collect()
}

/// Events about an agent's instances.
pub(super) fn events_of_instances(
    state: &State,
    agent: &AgentId,
    until: Timestamp,
    limit: usize,
) -> Vec<EventRow> {
    let about = |event: &&std::sync::Arc<EventRow>| {
        event.execution.is_none()
            && event.instance.is_some()
            && event.agent.as_ref() == Some(agent)
            && event.at < until
    };
    let events = state.events.values().rev().filter(about);
    events
        .take(limit)
        .map(|event| EventRow::clone(event))
        .collect()
}

/// Ids that begin or end with a part.
pub(super) fn find_ids(state: &State, part: &str, limit: usize) -> FoundIds {
    let rows = || state.executions.values();
    FoundIds {
        runs: ids(rows().map(|row| row.run.clone()), part, limit),
        executions: ids(rows().map(|row| row.id.clone()), part, limit),
    }
}

/// Those that begin so first, then those that end so, each the latest minted first.
fn ids<T: Ord + AsRef<str> + Clone>(
    all: impl Iterator<Item = T>,
    part: &str,
    limit: usize,
) -> Vec<T> {
    let upper = part.to_ascii_uppercase();
    let all: BTreeSet<T> = all.collect();
    let begins = |id: &&T| id.as_ref().starts_with(part);
    let ends = |id: &&T| {
        let id = id.as_ref();
        !id.starts_with(part) && (id.ends_with(part) || id.ends_with(&upper))
    };
    let first = all.iter().rev().filter(begins);
    let then = all.iter().rev().filter(ends);
    first.chain(then).take(limit).cloned().collect()
}
