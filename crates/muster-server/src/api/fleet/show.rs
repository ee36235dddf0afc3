//! Nodes and workers as JSON. What nobody can know is `null`, with a reason and what was last
//! known beside it; never a zero.

use muster_engine::fleet::effect::{
    DriftView, Fact, FleetSummary, Known, NodeView, PassedOver, WorkerView,
};
use muster_engine::fleet::row::{FleetHistoryRow, Wished};
use muster_engine::fleet::{NodeRow, WorkerRow};
use muster_wire::fleet::{ExitHow, ExitReport, WorkerState};
use muster_wire::{Category, Timestamp};
use serde_json::{Map, Value, json};

/// A moment, or null.
pub(super) fn time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| at.rfc3339().into())
}

/// A number under its name; where it is not known with `NAME_reason` and `NAME_last`.
fn known<T: Copy + serde::Serialize>(out: &mut Map<String, Value>, name: &str, number: &Known<T>) {
    out.insert(name.to_owned(), json!(number.value));
    if let Some(reason) = &number.reason {
        out.insert(format!("{name}_reason"), json!(reason));
    }
    if number.value.is_none()
        && let Some((value, at)) = number.last
    {
        out.insert(
            format!("{name}_last"),
            json!({"value": value, "at": at.rfc3339()}),
        );
    }
}

fn wished(wished: &Wished) -> Value {
    json!({"by": wished.by, "at": wished.at.rfc3339(), "reason": wished.reason})
}

fn fact(fact: &Fact) -> Value {
    json!({"what": fact.what, "at": time(fact.at), "by": fact.by, "text": fact.text})
}

/// A node with its verdict: what lists show.
pub(super) fn node(view: &NodeView) -> Value {
    let row: &NodeRow = &view.row;
    let mut out = object(json!({
        "id": row.id,
        "name": row.name,
        "kind": row.kind,
        "state": view.state,
        "state_at": view.state_at.rfc3339(),
        "evidence": view.evidence,
        "flapping": view.flapping,
        "wish": row.wish,
        "labels": row.labels,
        "max_workers": (row.max_workers > 0).then_some(row.max_workers),
        "version": row.version,
        "host": row.host,
        "worker_names": view.worker_names,
        "drift": view.drift,
        "heard_at": time(row.heard_at),
        "next": next(view),
    }));
    let load = Known {
        value: view.load,
        reason: view.load_reason.clone(),
        last: view.load_last,
    };
    known(&mut out, "load", &load);
    known(&mut out, "workers", &view.workers);
    known(&mut out, "free", &view.free);
    if let Some(pin) = &row.pin {
        let mut pinned = object(wished(&pin.wished));
        pinned.insert("state".into(), json!(pin.state));
        out.insert("pin".into(), pinned.into());
    }
    out.into()
}

fn next(view: &NodeView) -> Value {
    view.next.as_ref().map_or(
        Value::Null,
        |(at, what)| json!({"at": at.rfc3339(), "what": what}),
    )
}

/// The same with every fact.
pub(super) fn node_whole(view: &NodeView) -> Value {
    let row = &view.row;
    let told = |told: &Option<(Timestamp, std::sync::Arc<str>)>| {
        told.as_ref().map_or(
            Value::Null,
            |(at, why)| json!({"at": at.rfc3339(), "why": why}),
        )
    };
    let counted = |counted: &Option<(Timestamp, u32)>| {
        counted.as_ref().map_or(
            Value::Null,
            |(at, count)| json!({"at": at.rfc3339(), "workers": count}),
        )
    };
    let mut out = object(node(view));
    out.extend(object(json!({
        "capabilities": row.capabilities,
        "epoch": row.epoch,
        "principal": row.principal,
        "enrolled_at": row.enrolled_at.rfc3339(),
        "connected_at": time(row.connected_at),
        "disconnected": told(&row.disconnected),
        "beat": counted(&row.beat),
        "inventory": counted(&row.inventory),
        "goodbye": told(&row.goodbye),
        "lost": told(&row.lost),
        "wished": row.wished.as_ref().map_or(Value::Null, wished),
        "link": view.link.map(|link| link.0),
        "beat_interval_ms": u64::try_from(view.beat_interval.as_millis()).unwrap_or(u64::MAX),
        "beats_missed": view.beats_missed,
        "late_frames": view.late_frames,
        "facts": view.facts.iter().map(fact).collect::<Vec<_>>(),
    })));
    out.into()
}

/// A worker with its verdict.
pub(super) fn worker(view: &WorkerView) -> Value {
    let mut out = object(row(&view.row));
    out.insert("node_name".into(), json!(view.node_name));
    out.insert("state".into(), json!(view.state));
    out.insert("state_at".into(), json!(view.state_at.rfc3339()));
    out.insert("evidence".into(), json!(view.evidence));
    if let Some(why) = view.unknown_because {
        out.insert("unknown_because".into(), json!(why));
    }
    out.into()
}

/// A worker of the past, which the engine does not hold any more.
pub(super) fn past(row_of: &WorkerRow) -> Value {
    let mut out = object(row(row_of));
    out.insert("node_name".into(), Value::Null);
    out.insert("evidence".into(), json!(end_of(row_of)));
    out.into()
}

fn row(row: &WorkerRow) -> Value {
    let mut out = object(json!({
        "id": row.id,
        "name": row.name,
        "node": row.node,
        "state": row.state,
        "state_at": row.state_at.rfc3339(),
        "command": row.command,
        "io": row.io,
        "restart": {"mode": row.restart.mode, "max": row.restart.max},
        "labels": row.labels,
        "target": {"node": row.target.node, "labels": row.target.labels},
        "principal": row.principal,
        "created_at": row.created_at.rfc3339(),
        "pid": row.pid,
        "started_at": time(row.started_at),
        "restarts": row.restarts,
        "next_start_at": time(row.next_start_at),
        "confirmed_at": time(row.confirmed_at),
        "adopted": row.adopted,
        "agent": row.agent,
        "release": row.release.as_ref().map_or(Value::Null, wished),
        "exit": row.exit.as_ref().map_or(Value::Null, exit),
        "ended_at": time(row.ended.map(|(at, _)| at)),
        "ended_how": row.ended.map(|(_, how)| how),
    }));
    if row.adopted {
        // The node's own principal placed nothing.
        out.insert("principal".into(), Value::Null);
        out.insert("principal_reason".into(), json!("adopted"));
    }
    if row.state == WorkerState::Queued {
        out.insert("place_by".into(), time(row.place_by));
        out.insert("waits_for".into(), json!(row.waits_for));
    }
    if let Some((_, ExitHow::PlacementExpired)) = row.ended {
        let category = Category::PlacementExpired;
        out.insert("error_category".into(), json!(category.word()));
    }
    out.into()
}

/// How a process ended; what nobody saw is null, and `reason` says why.
pub(super) fn exit(exit: &ExitReport) -> Value {
    json!({
        "code": exit.code,
        "signal": exit.signal,
        "at": time(exit.at),
        "output": exit.output,
        "reason": exit.reason,
    })
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
pub(super) fn passed_over(over: &PassedOver) -> Value {
    json!({"node": over.node, "name": over.name, "why": over.why, "evidence": over.evidence})
}

/// A lasting difference.
pub(super) fn drift(drift: &DriftView) -> Value {
    json!({
        "node": drift.node,
        "name": drift.name,
        "since": drift.since.rfc3339(),
        "believed": drift.believed,
        "claimed": drift.claimed,
        "missing": drift.missing,
        "surplus": drift.surplus,
        "next": drift.next,
    })
}

/// The whole fleet in numbers.
pub(super) fn summary(summary: &FleetSummary) -> Value {
    let nodes: Map<String, Value> = summary
        .nodes
        .iter()
        .map(|(state, n)| (state.word().to_owned(), json!(n)))
        .collect();
    let workers: Map<String, Value> = summary
        .workers
        .iter()
        .map(|(state, n)| (state.word().to_owned(), json!(n)))
        .collect();
    let mut out = object(json!({
        "nodes": nodes,
        "workers": workers,
        "queued": summary.queued,
        "drifting": summary.drifting,
        "late_frames": summary.late_frames,
        "doubt": summary.doubt.as_ref().map(|(since, evidence)| {
            json!({"since": since.rfc3339(), "evidence": evidence})
        }),
    }));
    let mut capacity = Map::new();
    known(&mut capacity, "reachable", &summary.capacity);
    known(&mut capacity, "used", &summary.used);
    known(&mut capacity, "unknown", &summary.capacity_unknown);
    known(&mut capacity, "reachable_share", &summary.reachable_share);
    out.insert("capacity".into(), capacity.into());
    let mut alarms = Vec::new();
    if let Some(text) = &summary.capacity_alarm {
        alarms.push(json!({"kind": "capacity", "text": text}));
    }
    if let Some((since, evidence)) = &summary.doubt {
        alarms.push(json!({"kind": "doubt", "text": evidence, "since": since.rfc3339()}));
    }
    if summary.drifting > 0 {
        let text = format!(
            "{} node(s) say other than what is believed; see /api/v1/fleet/drift",
            summary.drifting
        );
        alarms.push(json!({"kind": "drift", "text": text}));
    }
    out.insert("alarms".into(), alarms.into());
    out.into()
}

/// One line of a history.
pub(super) fn history(line: &FleetHistoryRow) -> Value {
    json!({
        "seq": line.seq,
        "at": line.at.rfc3339(),
        "node": line.node,
        "worker": line.worker,
        "kind": line.kind,
        "from": line.from,
        "to": line.to,
        "evidence": line.evidence,
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_that_nobody_knows_is_null_with_its_reason_and_never_0() {
        let reason = || Some("no node is online yet, 52 connect".to_owned());
        let shown = summary(&FleetSummary {
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
        let capacity = &shown["capacity"];
        assert_eq!(capacity["used"], Value::Null);
        assert_eq!(capacity["used_reason"], json!(reason()));
        assert_eq!(capacity["used_last"]["value"], 7);
        assert_eq!(capacity["reachable_share"], Value::Null);
        assert_eq!(capacity["reachable_share_reason"], json!(reason()));
        assert_eq!(capacity["unknown"], 4);
    }

    #[test]
    fn what_nobody_knows_is_null_with_its_reason_and_what_was_last_known() {
        let mut out = Map::new();
        known(
            &mut out,
            "workers",
            &Known {
                value: None,
                reason: Some("node_unreachable".into()),
                last: Some((5, Timestamp(1_000_000))),
            },
        );
        assert_eq!(
            Value::Object(out),
            json!({"workers": null, "workers_reason": "node_unreachable",
                   "workers_last": {"value": 5, "at": "1970-01-01T00:00:01.000Z"}})
        );
        let mut out = Map::new();
        let none = Known {
            value: Some(0),
            reason: None,
            last: None,
        };
        known(&mut out, "workers", &none);
        assert_eq!(Value::Object(out), json!({"workers": 0}));
    }
}
