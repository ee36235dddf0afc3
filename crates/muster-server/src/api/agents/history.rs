//! How an agent was over some time: its instances' changes, which are events, and from them the
//! state of its best instance in equal stretches. Where no plane was there, nobody knows.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use muster_engine::liveness::InstanceState;
use muster_engine::row::{EventKind, EventRow};
use muster_wire::api::At;
use muster_wire::api::agents::{AgentHistory, HistoryBucket, InstanceChange};
use muster_wire::{AgentId, InstanceId, Timestamp};
use serde::Deserialize;

use super::show;
use crate::api::body::{PathText, Query};
use crate::api::executions::time;
use crate::api::fleet::history::is_in;
use crate::api::nodes::unknown;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;
use crate::lives::Stretch;

/// What is shown when nobody says of which time.
const SPAN: Duration = Duration::from_secs(24 * 3600);
/// Events are kept for a week.
const SPAN_MAX: Duration = Duration::from_secs(31 * 86_400);
/// Stretches when nobody says how many, and at most.
const BUCKETS: usize = 96;
const BUCKETS_MAX: usize = 1_000;
/// Events that are read.
const EVENTS_MAX: usize = 20_000;
/// Changes that are shown.
const CHANGES_MAX: usize = 500;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    from: Option<String>,
    to: Option<String>,
    buckets: Option<usize>,
}

/// How an agent was over some time
///
/// In equal stretches, each with the worst state that its best instance had in it, and every
/// change of an instance. A stretch in which no plane was there is `plane_down`, and `null` when
/// it was away for all of it; before the plane's first start none was down.
#[utoipa::path(
    get, path = "/api/v1/nodes/{agent}/history", tag = "agents",
    params(("agent" = String, Path, description = "The agent"),
           ("from" = Option<String>, Query, description = "RFC 3339; a day ago when absent"),
           ("to" = Option<String>, Query, description = "RFC 3339; now when absent"),
           ("buckets" = Option<usize>, Query, description = "96 when absent, 1,000 at most")),
    responses((status = 200, description = "Its past", body = AgentHistory),
              (status = 404, description = "No such agent"))
)]
pub(super) async fn history(
    State(app): State<App>,
    PathText(agent): PathText,
    Query(asked): Query<Asked>,
) -> Result<Json<AgentHistory>, Problem> {
    let stamp = Stamp::now(&app);
    let now = stamp.as_of.0;
    let id = AgentId::parse(&agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    if app.directory.agent(id.as_str()).is_none() {
        return Err(unknown(&agent));
    }
    let (from, to) = span(now, asked.from.as_deref(), asked.to.as_deref())?;
    let buckets = asked.buckets.unwrap_or(BUCKETS).clamp(1, BUCKETS_MAX);
    let wanted = id.clone();
    let (mut events, oldest) = app
        .blocking(move |stores| {
            let store = &stores.decisions;
            let events = store.events_of_instances(&wanted, to, EVENTS_MAX)?;
            let oldest = store.oldest_event()?;
            let oldest = match oldest {
                Some(seq) => store.events(seq - 1, 1)?.first().map(|event| event.at),
                None => None,
            };
            Ok::<_, Problem>((events, oldest))
        })
        .await?;
    let cut = events.len() == EVENTS_MAX;
    events.reverse();
    let written: Vec<Timestamp> = events.iter().map(|event| event.at).collect();
    let presence = app.lives.presence(from, to.min(now), &written);
    // What was before the oldest event that is kept is not known.
    let kept_from = match (cut, events.first()) {
        (true, Some(first)) => first.at,
        _ => oldest.unwrap_or(now),
    };
    let past = Past::of(&events);
    let width = to.since(from) / u32::try_from(buckets).unwrap_or(u32::MAX);
    let mut shown = Vec::with_capacity(buckets);
    for n in 0..u32::try_from(buckets).unwrap_or(u32::MAX) {
        let begin = from + width * n;
        let end = if n as usize + 1 == buckets {
            to
        } else {
            begin + width
        };
        let seen = presence.of(begin, end.min(now), is_in(&written, begin, end));
        shown.push(bucket(&past, seen, kept_from, now, begin, end));
    }
    let mut changes: Vec<InstanceChange> = past.changes(from, to);
    let more = cut || changes.len() > CHANGES_MAX;
    let first = changes.len().saturating_sub(CHANGES_MAX);
    changes.drain(..first);
    Ok(Json(AgentHistory {
        as_of: stamp.as_of,
        position: stamp.position,
        from: At(from),
        to: At(to),
        buckets: shown,
        changes,
        more,
    }))
}

/// The time that is asked for.
pub(crate) fn span(
    now: Timestamp,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<(Timestamp, Timestamp), Problem> {
    let to = time("to", to)?.unwrap_or(now).min(now);
    let from = time("from", from)?.unwrap_or(to - SPAN);
    if from >= to {
        return Err(Problem::validation(
            "from: a moment before to, and not in the future",
        ));
    }
    if to.since(from) > SPAN_MAX {
        return Err(Problem::validation("from: at most 31 days before to"));
    }
    Ok((from, to))
}

/// What is known of one stretch.
fn bucket(
    past: &Past<'_>,
    seen: Stretch,
    kept_from: Timestamp,
    now: Timestamp,
    from: Timestamp,
    to: Timestamp,
) -> HistoryBucket {
    let reason = if from >= now {
        Some("it is still to come")
    } else if seen.unknown.is_some() {
        seen.unknown
    } else if to <= kept_from {
        Some("nothing is kept of that time")
    } else {
        None
    };
    let state = match reason {
        None => past.worst(from, to),
        Some(_) => None,
    };
    let unknown = match (state, reason) {
        (Some(_), _) => None,
        (None, Some(reason)) => Some(reason),
        (None, None) => Some("no instance was known"),
    };
    HistoryBucket {
        from: At(from),
        to: At(to),
        state: state.map(show::state),
        state_unknown: unknown.map(str::to_owned),
        plane_down: seen.plane_down,
    }
}

/// The events of instances, the earliest first, and what each made of its instance.
struct Past<'e>(Vec<Step<'e>>);

struct Step<'e> {
    at: Timestamp,
    instance: &'e InstanceId,
    before: Option<InstanceState>,
    after: Option<InstanceState>,
    evidence: &'e str,
}

/// The state that an event tells of; `None` when it tells of none, `Some(None)` when the instance
/// is gone.
fn told(kind: EventKind) -> Option<Option<InstanceState>> {
    Some(match kind {
        EventKind::InstanceRegistered => Some(InstanceState::Unknown),
        EventKind::InstanceActive => Some(InstanceState::Active),
        EventKind::InstanceDegraded => Some(InstanceState::Degraded),
        EventKind::InstanceRestarting => Some(InstanceState::Restarting),
        EventKind::InstanceUnreachableCallback => Some(InstanceState::UnreachableCallback),
        EventKind::InstanceDown | EventKind::InstanceGoodbye => Some(InstanceState::Down),
        EventKind::InstanceGone => None,
        _ => return None,
    })
}

impl<'e> Past<'e> {
    fn of(events: &'e [EventRow]) -> Self {
        let mut states: BTreeMap<&InstanceId, Option<InstanceState>> = BTreeMap::new();
        let mut steps = Vec::new();
        for event in events {
            let (Some(instance), Some(after)) = (&event.instance, told(event.kind)) else {
                continue;
            };
            let before = states.get(instance).copied().flatten();
            // A registration of one that is there says nothing new of its state.
            if event.kind == EventKind::InstanceRegistered
                && matches!(
                    before,
                    Some(InstanceState::Active | InstanceState::Degraded)
                )
            {
                continue;
            }
            if before == after && states.contains_key(instance) {
                continue;
            }
            states.insert(instance, after);
            steps.push(Step {
                at: event.at,
                instance,
                before,
                after,
                evidence: event.text.as_deref().unwrap_or(event.kind.word()),
            });
        }
        Self(steps)
    }

    /// The worst that its best instance was in a stretch; `None` when no instance was known.
    fn worst(&self, from: Timestamp, to: Timestamp) -> Option<InstanceState> {
        let mut states: BTreeMap<&InstanceId, InstanceState> = BTreeMap::new();
        let best = |states: &BTreeMap<&InstanceId, InstanceState>| states.values().min().copied();
        let mut worst = None;
        let mut begun = false;
        for step in self.0.iter().take_while(|step| step.at < to) {
            if step.at >= from && !begun {
                worst = best(&states);
                begun = true;
            }
            match step.after {
                Some(state) => states.insert(step.instance, state),
                // It left the list; while no other is there the agent is down.
                None => states.insert(step.instance, InstanceState::Down),
            };
            if begun {
                worst = worst.max(best(&states));
            }
        }
        if begun { worst } else { best(&states) }
    }

    fn changes(&self, from: Timestamp, to: Timestamp) -> Vec<InstanceChange> {
        let inside = self.0.iter().filter(|step| step.at >= from && step.at < to);
        inside
            .map(|step| InstanceChange {
                at: At(step.at),
                instance: step.instance.to_string(),
                from: step.before.map(show::state),
                to: step.after.map(show::state),
                evidence: step.evidence.to_owned(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn event(seconds: i64, instance: &str, kind: EventKind) -> EventRow {
        EventRow {
            seq: 0,
            at: Timestamp(seconds * S),
            kind,
            execution: None,
            run: None,
            agent: None,
            function: None,
            instance: Some(InstanceId::trusted(instance)),
            node: None,
            worker: None,
            attempt: None,
            status: None,
            reason: None,
            category: None,
            text: None,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * S)
    }

    #[test]
    fn an_agent_is_as_good_as_its_best_instance_and_a_stretch_as_bad_as_its_worst_moment() {
        let events = [
            event(10, "a", EventKind::InstanceRegistered),
            event(11, "a", EventKind::InstanceActive),
            event(20, "a", EventKind::InstanceDegraded),
            event(25, "b", EventKind::InstanceRegistered),
            event(26, "b", EventKind::InstanceActive),
            event(30, "a", EventKind::InstanceGone),
            event(50, "b", EventKind::InstanceGoodbye),
        ];
        let past = Past::of(&events);
        assert_eq!(past.worst(at(0), at(5)), None);
        assert_eq!(past.worst(at(12), at(19)), Some(InstanceState::Active));
        assert_eq!(past.worst(at(12), at(24)), Some(InstanceState::Degraded));
        assert_eq!(past.worst(at(27), at(40)), Some(InstanceState::Active));
        assert_eq!(past.worst(at(45), at(60)), Some(InstanceState::Down));
        assert_eq!(past.changes(at(0), at(100)).len(), 7);
    }

    #[test]
    fn where_no_plane_was_there_nobody_knows() {
        let events = [
            event(10, "a", EventKind::InstanceRegistered),
            event(11, "a", EventKind::InstanceActive),
        ];
        let past = Past::of(&events);
        let look = |plane_down, unknown, from, to| {
            let seen = Stretch {
                plane_down,
                unknown,
            };
            bucket(&past, seen, at(10), at(100), at(from), at(to))
        };
        let inside = look(true, Some("no plane was there"), 22, 30);
        assert!(inside.plane_down && inside.state.is_none());
        let partly = look(true, None, 15, 30);
        assert!(partly.plane_down && partly.state.is_some());
        let after = look(false, None, 50, 60);
        assert!(!after.plane_down && after.state.is_some());
        let before = look(false, None, 1, 5);
        assert!(before.state.is_none());
        assert_eq!(
            before.state_unknown.as_deref(),
            Some("nothing is kept of that time")
        );
    }
}
