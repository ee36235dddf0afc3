//! Where the time of one execution went, from what is stored of it. What nothing tells is a gap,
//! never a guess.

use muster_engine::row::{EventKind, EventRow, ExecutionRow};
use muster_store::Life;
use muster_wire::api::steps::{Segment, SegmentKind};
use muster_wire::{AttemptOutcome, ExecutionKind, Status, Timestamp};

/// The reason of one that waits for its agent to come back.
const ABSORBED: &str = "awaiting_agent_restart";
/// The reason of one that waits for a child.
const CHILD: &str = "awaiting_child";

/// Milliseconds since 1970.
pub(super) fn ms(at: Timestamp) -> i64 {
    at.0.div_euclid(1_000)
}

/// The segments of an execution, in order.
pub(crate) fn of(row: &ExecutionRow, life: &Life) -> Vec<Segment> {
    let marks = marks(row, life);
    let mut segments = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        let until = marks.get(at + 1).map(|next| next.at).or(row.ended_at);
        match mark.kind {
            None => {}
            Some(SegmentKind::Running) => running(mark, until, life, &mut segments),
            Some(kind) => push(&mut segments, kind, mark.at, until),
        }
    }
    segments
}

/// Since when it is in its state; `None` when no event tells it any more.
pub(crate) fn since(row: &ExecutionRow, life: &Life) -> Option<Timestamp> {
    if row.status.is_terminal() {
        return row.ended_at;
    }
    // Where its first events are gone, what its row knows of the beginning is no change of state.
    let told = |event: &&EventRow| changes_state(event.kind);
    let last = life.events.iter().rev().find(told);
    last.map(|event| event.at)
        .or_else(|| (row.status == Status::Queued).then_some(row.created_at))
        .or_else(|| (row.status == Status::Running).then_some(row.started_at)?)
}

/// From when on it was in a state.
struct Mark {
    at: Timestamp,
    kind: Option<SegmentKind>,
    /// The attempt that began there.
    attempt: Option<u32>,
}

fn marks(row: &ExecutionRow, life: &Life) -> Vec<Mark> {
    let mut marks: Vec<Mark> = life
        .events
        .iter()
        .filter(|event| changes_state(event.kind))
        .map(|event| Mark {
            at: event.at,
            kind: kind_after(event),
            attempt: event.attempt.filter(|_| {
                matches!(
                    event.kind,
                    EventKind::ExecutionStarted | EventKind::ExecutionResent
                )
            }),
        })
        .collect();
    let first = marks.first().map(|mark| mark.at);
    if first.is_none_or(|first| first > row.created_at) {
        // Its first events are gone, or it was sent as it came in: its row knows the beginning.
        let mut known = Vec::new();
        if row.kind == ExecutionKind::Dispatched && row.started_at != Some(row.created_at) {
            known.push(mark(row.created_at, SegmentKind::Queued));
        }
        if let Some(started) = row.started_at
            && first.is_none_or(|first| first > started)
        {
            known.push(mark(started, SegmentKind::Running));
        }
        known.retain(|known| first.is_none_or(|first| known.at < first));
        known.append(&mut marks);
        marks = known;
    }
    marks
}

fn mark(at: Timestamp, kind: SegmentKind) -> Mark {
    Mark {
        at,
        kind: Some(kind),
        attempt: None,
    }
}

fn changes_state(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::ExecutionQueued
            | EventKind::ExecutionStarted
            | EventKind::ExecutionAbsorbed
            | EventKind::ExecutionResent
            | EventKind::ExecutionWaiting
            | EventKind::ExecutionContinued
            | EventKind::ExecutionPaused
            | EventKind::ExecutionResumed
            | EventKind::ExecutionSucceeded
            | EventKind::ExecutionFailed
            | EventKind::ExecutionCancelled
            | EventKind::ExecutionTimedOut
    )
}

fn kind_after(event: &EventRow) -> Option<SegmentKind> {
    let reason = event.reason.as_deref().unwrap_or_default();
    Some(match event.status? {
        Status::Queued => SegmentKind::Queued,
        Status::Running if reason == ABSORBED => SegmentKind::Absorbed,
        Status::Running => SegmentKind::Running,
        Status::Waiting if reason == CHILD => SegmentKind::WaitingChild,
        Status::Waiting => SegmentKind::WaitingPerson,
        Status::Paused => SegmentKind::Paused,
        Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout => return None,
    })
}

/// What is running is on its way until its agent took it.
fn running(mark: &Mark, until: Option<Timestamp>, life: &Life, segments: &mut Vec<Segment>) {
    let attempt = mark
        .attempt
        .and_then(|n| life.attempts.iter().find(|attempt| attempt.n == n));
    let Some(attempt) = attempt else {
        return push(segments, SegmentKind::Running, mark.at, until);
    };
    match (attempt.accepted_at, attempt.outcome) {
        (Some(accepted), _) => {
            let accepted = until.map_or(accepted, |until| accepted.min(until));
            push(segments, SegmentKind::Dispatch, mark.at, Some(accepted));
            push(segments, SegmentKind::Running, accepted, until);
        }
        (None, Some(AttemptOutcome::DialFailed) | None) => {
            push(segments, SegmentKind::Dispatch, mark.at, until);
        }
        (None, Some(_)) => push(segments, SegmentKind::Running, mark.at, until),
    }
}

fn push(segments: &mut Vec<Segment>, kind: SegmentKind, from: Timestamp, until: Option<Timestamp>) {
    let (from, until) = (ms(from), until.map(ms));
    if until.is_none_or(|until| until > from) {
        segments.push(Segment(kind.into(), from, until));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_engine::row::{AttemptRow, QueueKey};
    use muster_wire::{
        AgentId, ExecutionId, FunctionKind, FunctionName, InstanceId, Lane, Origin, ParentEnd,
        RunId, SecretHash,
    };

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp(ms * 1_000)
    }

    fn row(started: Option<i64>, ended: Option<i64>) -> ExecutionRow {
        let id = ExecutionId::trusted("e");
        ExecutionRow {
            root: id.clone(),
            id,
            run: RunId::trusted("r"),
            parent: None,
            depth: 0,
            kind: ExecutionKind::Dispatched,
            lane: Lane::Async,
            agent: AgentId::trusted("a"),
            function: FunctionName::trusted("f"),
            function_kind: FunctionKind::Reasoner,
            status: Status::Running,
            status_reason: None,
            error_category: None,
            error_text: None,
            error_status: None,
            queue: QueueKey {
                class: 5,
                turn: 0,
                seq: 0,
            },
            attempt: 1,
            holds: Vec::new(),
            over_cap: false,
            created_at: at(0),
            started_at: started.map(at),
            ended_at: ended.map(at),
            active_us: 0,
            clock_from: None,
            deadline_us: 0,
            absorb_until: None,
            input_size: 0,
            input_hash: [0; 16],
            result_size: None,
            key_hash: None,
            principal: "p".into(),
            session: None,
            actor: None,
            traceparent: None,
            usage: None,
            origin: Origin::Server,
            late_outcome: None,
            wait: None,
            resume_to: None,
            on_parent_end: ParentEnd::Detach,
            links: None,
        }
    }

    fn event(kind: EventKind, ms: i64, status: Status, reason: Option<&str>) -> EventRow {
        EventRow {
            seq: 0,
            at: at(ms),
            kind,
            execution: None,
            run: None,
            agent: None,
            function: None,
            instance: None,
            node: None,
            worker: None,
            attempt: Some(1),
            status: Some(status),
            reason: reason.map(Arc::from),
            category: None,
            text: None,
        }
    }

    fn attempt(accepted: Option<i64>, outcome: Option<AttemptOutcome>) -> AttemptRow {
        AttemptRow {
            execution: ExecutionId::trusted("e"),
            n: 1,
            instance: InstanceId::trusted("i"),
            candidates: Vec::new(),
            secret_hash: SecretHash::of("secret"),
            sent_at: at(10),
            accepted_at: accepted.map(at),
            ended_at: None,
            outcome,
            evidence: None,
        }
    }

    fn words(segments: &[Segment]) -> Vec<(&str, i64, Option<i64>)> {
        let word = |s: &'_ Segment| (s.1, s.2);
        segments
            .iter()
            .map(|s| (s.0.known().unwrap().word(), word(s).0, word(s).1))
            .collect()
    }

    #[test]
    fn a_whole_life_adds_up_to_its_time() {
        use EventKind as E;
        let life = Life {
            attempts: vec![attempt(Some(15), Some(AttemptOutcome::Answered))],
            events: vec![
                event(E::ExecutionQueued, 0, Status::Queued, None),
                event(E::ExecutionStarted, 10, Status::Running, None),
                event(
                    E::ExecutionWaiting,
                    30,
                    Status::Waiting,
                    Some("waiting_for_approval"),
                ),
                event(
                    E::ExecutionContinued,
                    60,
                    Status::Running,
                    Some("approval_approved"),
                ),
                event(E::ExecutionPaused, 70, Status::Paused, Some("paused")),
                event(E::ExecutionResumed, 90, Status::Running, None),
                event(E::ExecutionSucceeded, 100, Status::Succeeded, None),
            ],
        };
        assert_eq!(
            words(&of(&row(Some(10), Some(100)), &life)),
            [
                ("queued", 0, Some(10)),
                ("dispatch", 10, Some(15)),
                ("running", 15, Some(30)),
                ("waiting_person", 30, Some(60)),
                ("running", 60, Some(70)),
                ("paused", 70, Some(90)),
                ("running", 90, Some(100)),
            ]
        );
    }

    #[test]
    fn what_waits_for_its_agent_is_no_work_and_goes_on() {
        use EventKind as E;
        let life = Life {
            attempts: vec![attempt(None, Some(AttemptOutcome::DialFailed))],
            events: vec![
                event(E::ExecutionStarted, 0, Status::Running, None),
                event(E::ExecutionAbsorbed, 5, Status::Running, Some(ABSORBED)),
            ],
        };
        let mut row = row(Some(0), None);
        row.created_at = at(0);
        assert_eq!(
            words(&of(&row, &life)),
            [("dispatch", 0, Some(5)), ("absorbed", 5, None)]
        );
    }

    #[test]
    fn without_its_events_the_row_tells_what_it_knows() {
        let life = Life::default();
        assert_eq!(
            words(&of(&row(Some(10), Some(30)), &life)),
            [("queued", 0, Some(10)), ("running", 10, Some(30))]
        );
    }
}
