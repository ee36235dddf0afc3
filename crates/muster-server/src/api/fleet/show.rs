//! Nodes and workers as answers show them. What nobody can know is `null`, with a reason and what
//! was last known beside it; never a zero.

use std::collections::BTreeMap;

use muster_engine::fleet::effect::{
    DriftView, FleetSummary, Known, LabelSum, NodeView, WorkerView,
};
use muster_engine::fleet::row::{FleetHistoryRow, Wished};
use muster_engine::fleet::{NodeRow, WorkerRow};
use muster_wire::api::fleet::{
    Fleet, FleetAlarm, FleetCapacity, FleetDoubt, FleetHistoryLine, FleetLabel, FleetNode,
    FleetNodeWhole, FleetWorker, NextStep, NodeDrift, NodeFact, NodePin, PassedOver, ToldWhy,
    ToldWorkers, WishedBy, WorkerExit, WorkerRestart, WorkerTarget,
};
use muster_wire::api::{At, LastCount, LastMeasure};
use muster_wire::fleet::{ExitHow, ExitReport, WorkerState};
use muster_wire::{Category, Timestamp};

use crate::api::stamp::Stamp;

/// Names of workers that a row of a list has.
const NAMES_OF_A_LINE: usize = 32;

fn at(at: Option<Timestamp>) -> Option<At> {
    at.map(At)
}

fn texts(texts: &[std::sync::Arc<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// What was last known of a count, when it is not known now.
fn last<T: Copy + Into<u64>>(number: &Known<T>) -> Option<LastCount> {
    let last = number.last.filter(|_| number.value.is_none());
    last.map(|(value, at)| LastCount {
        value: value.into(),
        at: At(at),
    })
}

fn wished(wished: &Wished) -> WishedBy {
    WishedBy {
        by: wished.by.to_string(),
        at: At(wished.at),
        reason: wished.reason.as_deref().map(str::to_owned),
    }
}

/// A node with its verdict: what lists show.
pub(super) fn node(view: &NodeView) -> FleetNode {
    let mut shown = node_with_names(view);
    shown.worker_names.truncate(NAMES_OF_A_LINE);
    shown
}

fn node_with_names(view: &NodeView) -> FleetNode {
    let row: &NodeRow = &view.row;
    FleetNode {
        id: row.id.clone(),
        name: row.name.to_string(),
        kind: row.kind,
        state: view.state,
        state_at: At(view.state_at),
        evidence: view.evidence.clone(),
        flapping: view.flapping,
        wish: row.wish,
        labels: texts(&row.labels),
        max_workers: (row.max_workers > 0).then_some(row.max_workers),
        version: row.version.to_string(),
        host: row.host.as_deref().map(str::to_owned),
        worker_names: texts(&view.worker_names),
        drift: view.drift,
        heard_at: at(row.heard_at),
        next: view.next.as_ref().map(|(at, what)| NextStep {
            at: At(*at),
            what: what.clone(),
        }),
        load: view.load,
        load_reason: view.load_reason.clone(),
        load_unknown: view.load_reason.clone(),
        load_last: view
            .load_last
            .filter(|_| view.load.is_none())
            .map(|(value, at)| LastMeasure { value, at: At(at) }),
        workers: view.workers.value,
        workers_reason: view.workers.reason.clone(),
        workers_unknown: view.workers.reason.clone(),
        workers_last: last(&view.workers),
        free: view.free.value,
        free_reason: view.free.reason.clone(),
        free_unknown: view.free.reason.clone(),
        free_last: last(&view.free),
        pin: row.pin.as_ref().map(|pin| NodePin {
            by: pin.wished.by.to_string(),
            at: At(pin.wished.at),
            reason: pin.wished.reason.as_deref().map(str::to_owned),
            state: pin.state,
        }),
    }
}

/// The same with every fact.
pub(super) fn node_whole(stamp: Stamp, view: &NodeView) -> FleetNodeWhole {
    let row = &view.row;
    let told = |told: &Option<(Timestamp, std::sync::Arc<str>)>| {
        told.as_ref().map(|(at, why)| ToldWhy {
            at: At(*at),
            why: why.to_string(),
        })
    };
    let counted = |counted: Option<(Timestamp, u32)>| {
        counted.map(|(at, workers)| ToldWorkers {
            at: At(at),
            workers,
        })
    };
    let facts = view.facts.iter().map(|fact| NodeFact {
        what: fact.what.to_owned(),
        at: at(fact.at),
        by: fact.by.to_owned(),
        text: fact.text.clone(),
    });
    FleetNodeWhole {
        as_of: stamp.as_of,
        position: stamp.position,
        node: node_with_names(view),
        capabilities: texts(&row.capabilities),
        epoch: row.epoch.as_deref().map(str::to_owned),
        principal: row.principal.to_string(),
        enrolled_at: At(row.enrolled_at),
        connected_at: at(row.connected_at),
        disconnected: told(&row.disconnected),
        beat: counted(row.beat),
        inventory: counted(row.inventory),
        goodbye: told(&row.goodbye),
        lost: told(&row.lost),
        wished: row.wished.as_ref().map(wished),
        link: view.link.map(|link| link.0),
        beat_interval_ms: u64::try_from(view.beat_interval.as_millis()).unwrap_or(u64::MAX),
        beats_missed: view.beats_missed,
        late_frames: view.late_frames,
        facts: facts.collect(),
    }
}

/// A worker with its verdict.
pub(super) fn worker(view: &WorkerView) -> FleetWorker {
    FleetWorker {
        node_name: view.node_name.as_deref().map(str::to_owned),
        state: view.state,
        state_at: At(view.state_at),
        evidence: view.evidence.clone(),
        unknown_because: view.unknown_because.map(str::to_owned),
        ..past(&view.row)
    }
}

/// A worker of the past, which the engine does not hold any more.
pub(super) fn past(row: &WorkerRow) -> FleetWorker {
    let queued = row.state == WorkerState::Queued;
    let expired = matches!(row.ended, Some((_, ExitHow::PlacementExpired)));
    FleetWorker {
        id: row.id.clone(),
        name: row.name.to_string(),
        node: row.node.clone(),
        node_name: None,
        state: row.state,
        state_at: At(row.state_at),
        evidence: end_of(row),
        unknown_because: None,
        command: row.command.to_string(),
        io: row.io,
        restart: WorkerRestart {
            mode: row.restart.mode,
            max: row.restart.max,
        },
        labels: texts(&row.labels),
        target: WorkerTarget {
            node: row.target.node.as_deref().map(str::to_owned),
            labels: texts(&row.target.labels),
        },
        // The node's own principal placed nothing.
        principal: (!row.adopted).then(|| row.principal.to_string()),
        principal_reason: row.adopted.then(|| "adopted".to_owned()),
        created_at: At(row.created_at),
        pid: row.pid,
        started_at: at(row.started_at),
        restarts: row.restarts,
        next_start_at: at(row.next_start_at),
        confirmed_at: at(row.confirmed_at),
        adopted: row.adopted,
        agent: row.agent.clone(),
        release: row.release.as_ref().map(wished),
        exit: row.exit.as_ref().map(exit),
        ended_at: at(row.ended.map(|(at, _)| at)),
        ended_how: row.ended.map(|(_, how)| how),
        place_by: at(row.place_by.filter(|_| queued)),
        waits_for: row
            .waits_for
            .as_deref()
            .filter(|_| queued)
            .map(str::to_owned),
        error_category: expired.then_some(Category::PlacementExpired),
    }
}

/// How a process ended; what nobody saw is null, and `reason` says why.
pub(super) fn exit(exit: &ExitReport) -> WorkerExit {
    WorkerExit {
        code: exit.code,
        signal: exit.signal,
        at: at(exit.at),
        output: exit.output.clone(),
        reason: exit.reason.clone(),
    }
}

/// An exit that was told so long after it is shown with both moments.
const TOLD_LATE: std::time::Duration = std::time::Duration::from_secs(2);

/// The end of a worker in a sentence.
pub(super) fn end_of(row: &WorkerRow) -> String {
    let Some((at, how)) = row.ended else {
        return format!("it is {}", row.state);
    };
    let said = match (&row.exit, how) {
        (
            Some(ExitReport {
                code: Some(code), ..
            }),
            _,
        ) => format!("exited with {code}"),
        (
            Some(ExitReport {
                signal: Some(signal),
                ..
            }),
            _,
        ) => format!("ended by signal {signal}"),
        _ => format!("ended ({how})"),
    };
    // What a node saw has the node's own time; when it could tell us is another moment.
    match row.exit.as_ref().and_then(|exit| exit.at) {
        Some(seen) if at.since(seen) > TOLD_LATE => format!("it {said} at {seen}, told at {at}"),
        Some(seen) => format!("it {said} at {seen}"),
        None => format!("it {said} at {at}"),
    }
}

/// Why a node was not taken.
pub(super) fn passed_over(over: &muster_engine::fleet::effect::PassedOver) -> PassedOver {
    PassedOver {
        node: over.node.clone(),
        name: over.name.to_string(),
        why: over.why.to_owned(),
        evidence: over.evidence.clone(),
    }
}

/// A lasting difference.
pub(super) fn drift(drift: &DriftView) -> NodeDrift {
    NodeDrift {
        node: drift.node.clone(),
        name: drift.name.to_string(),
        since: At(drift.since),
        believed: drift.believed,
        claimed: drift.claimed,
        missing: texts(&drift.missing),
        surplus: texts(&drift.surplus),
        next: drift.next.clone(),
    }
}

/// The whole fleet in numbers.
pub(super) fn summary(stamp: Stamp, summary: &FleetSummary) -> Fleet {
    let nodes = summary.nodes.iter();
    let workers = summary.workers.iter();
    Fleet {
        as_of: stamp.as_of,
        position: stamp.position,
        nodes: by_word(nodes.map(|(state, n)| (state.word(), *n))),
        workers: by_word(workers.map(|(state, n)| (state.word(), *n))),
        queued: summary.queued,
        drifting: summary.drifting,
        late_frames: summary.late_frames,
        doubt: summary.doubt.as_ref().map(|(since, evidence)| FleetDoubt {
            since: At(*since),
            evidence: evidence.clone(),
        }),
        capacity: capacity(summary),
        alarms: alarms(summary),
        labels: summary.labels.iter().map(label).collect(),
    }
}

fn label(sum: &LabelSum) -> FleetLabel {
    let states = sum.states.iter();
    let states = by_word(states.map(|(state, n)| (state.word(), *n)));
    FleetLabel {
        label: sum.label.to_string(),
        nodes: states.values().sum(),
        states,
        capacity: sum.capacity,
        capacity_unknown: match sum.capacity {
            Some(_) => None,
            None => Some("a node that is online has no bound".to_owned()),
        },
        used: sum.used,
        used_unknown: match sum.used {
            Some(_) => None,
            None => Some("no node with it is online".to_owned()),
        },
        unknown: sum.unknown,
    }
}

/// Counts by a word.
pub(crate) fn by_word<'a>(counts: impl Iterator<Item = (&'a str, u32)>) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for (word, n) in counts {
        *out.entry(word.to_owned()).or_default() += u64::from(n);
    }
    out
}

fn capacity(summary: &FleetSummary) -> FleetCapacity {
    let (here, used) = (&summary.capacity, &summary.used);
    let (away, share) = (&summary.capacity_unknown, &summary.reachable_share);
    FleetCapacity {
        reachable: here.value,
        reachable_reason: here.reason.clone(),
        reachable_unknown: here.reason.clone(),
        reachable_last: last(here),
        used: used.value,
        used_reason: used.reason.clone(),
        used_unknown: used.reason.clone(),
        used_last: last(used),
        unknown: away.value,
        unknown_reason: away.reason.clone(),
        unknown_since: at(summary.unknown_since),
        unknown_last: last(away),
        reachable_share: share.value,
        reachable_share_reason: share.reason.clone(),
        reachable_share_unknown: share.reason.clone(),
        reachable_share_last: share
            .last
            .filter(|_| share.value.is_none())
            .map(|(value, at)| LastMeasure { value, at: At(at) }),
    }
}

/// What of the fleet needs attention.
pub(crate) fn alarms(summary: &FleetSummary) -> Vec<FleetAlarm> {
    let alarm = |kind: &str, text: String, since| FleetAlarm {
        kind: kind.to_owned(),
        text,
        since,
    };
    let mut alarms = Vec::new();
    if let Some(text) = &summary.capacity_alarm {
        alarms.push(alarm("capacity", text.clone(), None));
    }
    if let Some((since, evidence)) = &summary.doubt {
        alarms.push(alarm("doubt", evidence.clone(), Some(At(*since))));
    }
    if summary.drifting > 0 {
        let text = format!(
            "{} node(s) say other than what is believed; see /api/v1/fleet/drift",
            summary.drifting
        );
        alarms.push(alarm("drift", text, None));
    }
    alarms
}

/// One line of a history.
pub(super) fn history(line: &FleetHistoryRow) -> FleetHistoryLine {
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
    FleetHistoryLine {
        seq: line.seq,
        at: At(line.at),
        node: line.node.clone(),
        worker: line.worker.clone(),
        kind: line.kind.to_string(),
        from: text(&line.from),
        to: text(&line.to),
        evidence: line.evidence.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn capacity_that_nobody_knows_is_null_with_its_reason_and_never_0() {
        let reason = || Some("no node is online yet, 52 connect".to_owned());
        let shown = capacity(&FleetSummary {
            used: Known {
                value: None,
                reason: reason(),
                last: Some((7, Timestamp(1_000_000))),
            },
            reachable_share: Known {
                value: None,
                reason: reason(),
                last: None,
            },
            capacity_unknown: Known {
                value: Some(4),
                ..Known::default()
            },
            ..FleetSummary::default()
        });
        let capacity = serde_json::to_value(shown).unwrap();
        assert_eq!(capacity["used"], Value::Null);
        assert_eq!(capacity["used_reason"], json!(reason()));
        assert_eq!(capacity["used_unknown"], json!(reason()));
        assert_eq!(
            capacity["used_last"],
            json!({"value": 7, "at": "1970-01-01T00:00:01.000Z"})
        );
        assert_eq!(capacity["reachable_share"], Value::Null);
        assert_eq!(capacity["reachable_share_reason"], json!(reason()));
        assert_eq!(capacity["unknown"], 4);
        assert!(capacity.get("unknown_last").is_none());
    }
}
