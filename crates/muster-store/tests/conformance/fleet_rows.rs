//! Rows of the fleet to write, as plain or as full as can be.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::fleet::row::{
    FleetHistoryRow, FleetWrite, NodeRow, Pin, Target, Wished, WorkerRow,
};
use muster_store::annex::RelayRow;
use muster_wire::fleet::{
    ExitHow, ExitReport, NodeKind, NodeState, NodeWish, RestartMode, RestartPolicy, WorkerIo,
    WorkerState,
};
use muster_wire::{NodeId, Timestamp, WorkerId};

use crate::support::{agent_id, payload};

/// Ordinary input: a NUL, a quote, what is not ASCII, and a lone replacement character.
pub(crate) const HOSTILE: &str = "a\0b'\"\\\u{FFFD}é\u{1F980}\n";

pub(crate) fn node_id(id: &str) -> NodeId {
    NodeId::trusted(id)
}

pub(crate) fn worker_id(id: &str) -> WorkerId {
    WorkerId::trusted(id)
}

pub(crate) fn node(id: &str) -> NodeRow {
    NodeRow {
        id: node_id(id),
        name: Arc::from(id),
        kind: NodeKind::Daemon,
        labels: Vec::new(),
        max_workers: 0,
        capabilities: Vec::new(),
        version: Arc::from(""),
        host: None,
        epoch: None,
        principal: Arc::from("owner"),
        wish: NodeWish::Active,
        wished: None,
        pin: None,
        enrolled_at: Timestamp(1),
        connected_at: None,
        disconnected: None,
        heard_at: None,
        beat: None,
        inventory: None,
        goodbye: None,
        lost: None,
        told: (NodeState::Connecting, Timestamp(1)),
    }
}

/// A node with something in every field.
pub(crate) fn full_node(id: &str) -> NodeRow {
    let wished = Wished {
        by: Arc::from(HOSTILE),
        at: Timestamp(i64::MIN),
        reason: Some(Arc::from(HOSTILE)),
    };
    NodeRow {
        name: Arc::from(HOSTILE),
        kind: NodeKind::Relay,
        labels: vec![Arc::from("gpu"), Arc::from(HOSTILE)],
        max_workers: u32::MAX,
        capabilities: vec![Arc::from(HOSTILE)],
        version: Arc::from(HOSTILE),
        host: Some(Arc::from(HOSTILE)),
        epoch: Some(Arc::from("")),
        principal: Arc::from(HOSTILE),
        wish: NodeWish::Draining,
        wished: Some(wished.clone()),
        pin: Some(Pin {
            state: NodeState::Lost,
            wished,
        }),
        enrolled_at: Timestamp(i64::MIN),
        connected_at: Some(Timestamp(i64::MAX)),
        disconnected: Some((Timestamp(-1), Arc::from(HOSTILE))),
        heard_at: Some(Timestamp(i64::MAX)),
        beat: Some((Timestamp(i64::MAX), u32::MAX)),
        inventory: Some((Timestamp(i64::MIN), 0)),
        goodbye: Some((Timestamp(0), Arc::from(HOSTILE))),
        lost: Some((Timestamp(7), Arc::from(HOSTILE))),
        told: (NodeState::Unreachable, Timestamp(i64::MAX)),
        ..node(id)
    }
}

pub(crate) fn worker(id: &str, at: i64) -> WorkerRow {
    WorkerRow {
        id: worker_id(id),
        name: Arc::from("w"),
        node: None,
        target: Target::default(),
        spec: payload(b""),
        command: Arc::from("sleep 1"),
        io: None,
        restart: RestartPolicy::default(),
        labels: Vec::new(),
        principal: Arc::from("owner"),
        idempotency_key: None,
        body_hash: [0; 16],
        created_at: Timestamp(at),
        state: WorkerState::Queued,
        state_at: Timestamp(at),
        place_by: None,
        waits_for: None,
        pid: None,
        started_at: None,
        restarts: 0,
        next_start_at: None,
        confirmed_at: None,
        release: None,
        adopted: false,
        agent: None,
        exit: None,
        ended: None,
    }
}

/// A worker with something in every field.
pub(crate) fn full_worker(id: &str, at: i64) -> WorkerRow {
    WorkerRow {
        name: Arc::from(HOSTILE),
        node: Some(node_id("n1")),
        target: Target {
            node: Some(Arc::from(HOSTILE)),
            labels: vec![Arc::from(HOSTILE), Arc::from("")],
        },
        spec: payload(b"\x00\xff\xfesealed"),
        command: Arc::from(HOSTILE),
        io: Some(WorkerIo::Pipes),
        restart: RestartPolicy {
            mode: RestartMode::OnFailure,
            max: Some(u32::MAX),
        },
        labels: vec![Arc::from(HOSTILE)],
        principal: Arc::from(HOSTILE),
        idempotency_key: Some(Arc::from("owner\0key")),
        body_hash: [255; 16],
        state: WorkerState::Exited,
        state_at: Timestamp(i64::MIN),
        place_by: Some(Timestamp(i64::MAX)),
        waits_for: Some(Arc::from(HOSTILE)),
        pid: Some(u32::MAX),
        started_at: Some(Timestamp(i64::MIN)),
        restarts: u32::MAX,
        next_start_at: Some(Timestamp(i64::MAX)),
        confirmed_at: Some(Timestamp(i64::MAX)),
        release: Some(Wished {
            by: Arc::from(""),
            at: Timestamp(3),
            reason: None,
        }),
        adopted: true,
        agent: Some(agent_id("a1")),
        exit: Some(ExitReport {
            code: Some(i32::MIN),
            signal: Some(i32::MAX),
            at: Some(Timestamp(i64::MAX)),
            output: HOSTILE.repeat(3),
            reason: Some(HOSTILE.into()),
        }),
        ended: Some((Timestamp(now()), ExitHow::Unobserved)),
        ..worker(id, at)
    }
}

pub(crate) fn put_node(row: NodeRow) -> Write {
    Write::Fleet(FleetWrite::PutNode(Box::new(row)))
}

pub(crate) fn put_worker(row: WorkerRow) -> Write {
    Write::Fleet(FleetWrite::PutWorker(Box::new(row)))
}

pub(crate) fn exited(mut row: WorkerRow, at: i64) -> WorkerRow {
    row.state = WorkerState::Exited;
    row.ended = Some((Timestamp(at), ExitHow::Reported));
    row
}

pub(crate) fn line(seq: u64, node: Option<&str>, worker: Option<&str>) -> FleetHistoryRow {
    FleetHistoryRow {
        seq,
        at: Timestamp(i64::try_from(seq).unwrap()),
        node: node.map(node_id),
        worker: worker.map(worker_id),
        kind: Arc::from("node.state"),
        from: None,
        to: Some(Arc::from(HOSTILE)),
        evidence: Arc::from(HOSTILE),
    }
}

pub(crate) fn put_line(row: FleetHistoryRow) -> Write {
    Write::Fleet(FleetWrite::InsertHistory(Box::new(row)))
}

pub(crate) fn record(kind: &str, name: &str, at: i64) -> RelayRow {
    RelayRow {
        kind: kind.into(),
        name: name.into(),
        node: Some(HOSTILE.into()),
        value: Bytes::from_static(b"{\"n\":1e400}\x00\xff"),
        updated_at: Timestamp(at),
    }
}

pub(crate) fn now() -> i64 {
    Timestamp::wall_clock().0
}
