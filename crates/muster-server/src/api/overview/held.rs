//! What is held up, by cause. How many there are is the store's; why, for what is queued, is the
//! engine's, agent by agent.

use std::collections::BTreeMap;

use muster_engine::effect::AgentState;
use muster_store::{Glanced, HeldKind, QueueCount};
use muster_wire::api::At;
use muster_wire::api::held::HeldCause;
use muster_wire::api::overview::HeldGroup;
use muster_wire::{Status, Timestamp};

use crate::api::queues::{held_by, hold_text};

/// Bytes of agents' names that the queries of all causes may have together: the answer is small.
const NAMES_MAX: usize = 6_000;

/// What is held up, the largest first.
pub(super) fn causes(states: &[AgentState], seen: &Glanced) -> Vec<HeldGroup> {
    let mut groups = queued(states, &seen.queued);
    groups.extend(seen.held.iter().map(|held| {
        let (cause, state, query, text) = words(held.kind);
        HeldGroup {
            cause,
            state,
            text: text.to_owned(),
            count: held.count,
            oldest_at: Some(At(held.oldest_at)),
            query: Some(query.to_owned()),
        }
    }));
    groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.cause.cmp(&b.cause)));
    groups
}

/// How many have a status.
pub(super) fn count(groups: &[HeldGroup], status: Status) -> u64 {
    let of = groups.iter().filter(|group| group.state == status);
    of.map(|group| group.count).sum()
}

fn words(kind: HeldKind) -> (HeldCause, Status, &'static str, &'static str) {
    match kind {
        HeldKind::Approval => (
            HeldCause::Approval,
            Status::Waiting,
            "status=waiting&reason=waiting_for_approval",
            "a person decides",
        ),
        HeldKind::Child => (
            HeldCause::WaitingChild,
            Status::Waiting,
            "status=waiting&reason=awaiting_child",
            "a call of theirs waits itself",
        ),
        HeldKind::Paused => (
            HeldCause::Paused,
            Status::Paused,
            "status=paused",
            "a person paused them",
        ),
        HeldKind::Absorbed => (
            HeldCause::AgentRestart,
            Status::Running,
            "status=running&reason=awaiting_agent_restart",
            "their agent restarts; nothing was sent, so nothing runs twice",
        ),
    }
}

/// The cause that holds the queue of an agent up.
fn cause_of(state: Option<&AgentState>) -> HeldCause {
    let Some(state) = state else {
        return HeldCause::AgentUnavailable;
    };
    // The store has something queued, whatever the engine has done since.
    let mut state = state.clone();
    state.queued = state.queued.max(1);
    match held_by(&state).map(|held| held.cause) {
        Some(HeldCause::AgentRestart) if state.can_start => HeldCause::Starting,
        Some(HeldCause::AgentRestart) => HeldCause::AgentUnavailable,
        Some(cause) => cause,
        None => HeldCause::Starting,
    }
}

fn text_of(cause: HeldCause, agents: &[&QueueCount], states: &[AgentState]) -> String {
    let who = match agents {
        [only] => only.agent.to_string(),
        several => format!("{} agents", several.len()),
    };
    match cause {
        HeldCause::AgentFull => format!("{who} at the cap"),
        HeldCause::Hold => match states.iter().find(|state| state.hold.is_some()) {
            Some(state) => hold_text(state),
            None => match agents {
                [only] => states
                    .iter()
                    .find(|state| state.id == only.agent)
                    .map_or_else(|| format!("{who} held"), hold_text),
                _ => format!("{who} held"),
            },
        },
        HeldCause::TagsPending => format!("tags of {who} are not approved"),
        HeldCause::AgentUnavailable => format!("no instance of {who} can be called"),
        _ => format!("{who} takes them next"),
    }
}

fn queued(states: &[AgentState], queues: &[QueueCount]) -> Vec<HeldGroup> {
    let state_of = |queue: &QueueCount| states.iter().find(|state| state.id == queue.agent);
    let mut by_cause: BTreeMap<HeldCause, Vec<&QueueCount>> = BTreeMap::new();
    for queue in queues {
        let cause = cause_of(state_of(queue));
        by_cause.entry(cause).or_default().push(queue);
    }
    let only_one = by_cause.len() == 1;
    let mut room = NAMES_MAX;
    let mut groups = Vec::new();
    for (cause, mut agents) in by_cause {
        agents.sort_by_key(|queue| std::cmp::Reverse(queue.count));
        if only_one {
            let query = Some("status=queued".to_owned());
            groups.push(group(cause, &agents, states, query));
            continue;
        }
        // As many as a query may name; the rest is counted, and has no query.
        let mut named = 0;
        for queue in &agents {
            let bytes = queue.agent.as_str().len() + 1;
            if bytes > room {
                break;
            }
            room -= bytes;
            named += 1;
        }
        let (named, rest) = agents.split_at(named);
        if !named.is_empty() {
            let names: Vec<&str> = named.iter().map(|queue| queue.agent.as_str()).collect();
            let query = format!("status=queued&agent={}", names.join(","));
            groups.push(group(cause, named, states, Some(query)));
        }
        if !rest.is_empty() {
            groups.push(group(cause, rest, states, None));
        }
    }
    groups
}

fn group(
    cause: HeldCause,
    agents: &[&QueueCount],
    states: &[AgentState],
    query: Option<String>,
) -> HeldGroup {
    let oldest: Option<Timestamp> = agents.iter().map(|queue| queue.oldest_at).min();
    HeldGroup {
        cause,
        state: Status::Queued,
        text: text_of(cause, agents, states),
        count: agents.iter().map(|queue| queue.count).sum(),
        oldest_at: oldest.map(At),
        query,
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::AgentId;

    use super::*;

    fn queue(agent: &str, count: u64) -> QueueCount {
        QueueCount {
            agent: AgentId::trusted(agent),
            count,
            oldest_at: Timestamp(count.cast_signed()),
        }
    }

    #[test]
    fn agents_that_nobody_knows_have_no_instance_and_one_cause_needs_no_names() {
        let groups = queued(&[], &[queue("a", 2), queue("b", 3)]);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].cause, HeldCause::AgentUnavailable);
        assert_eq!(groups[0].count, 5);
        assert_eq!(groups[0].query.as_deref(), Some("status=queued"));
        assert_eq!(groups[0].oldest_at, Some(At(Timestamp(2))));
    }
}
