//! Nodes, workers and their history as columns. What lists filter by has a column of its own;
//! the rest is one column of JSON, which a `sqlite3` shell can read. Closed words are text here:
//! these rows are few, and a word needs no table beside it.

use std::sync::Arc;

use muster_engine::fleet::row::{FleetHistoryRow, NodeRow, Pin, Target, Wished, WorkerRow};
use muster_engine::row::Payload;
use muster_wire::fleet::{
    ExitHow, ExitReport, NodeKind, NodeState, NodeWish, RestartPolicy, WorkerIo, WorkerState,
};
use muster_wire::{AgentId, NodeId, Timestamp, WorkerId};
use serde::{Deserialize, Serialize};

use super::rows::Columns;
use crate::{StoreError, StoreResult};

/// The columns that [`node`] reads.
pub(super) const NODE_COLUMNS: &str =
    "id,name,kind,wish,state,state_at,enrolled_at,connected_at,heard_at,principal,detail";

/// The columns that [`worker`] reads. The spec is the last: who lists does not read it.
pub(super) const WORKER_COLUMNS: &str = "id,name,node,state,state_at,created_at,confirmed_at,\
     ended_at,ended_how,agent,principal,idempotency_key,detail";

/// The columns that [`history`] reads.
pub(super) const HISTORY_COLUMNS: &str = "seq,at,node,worker,kind,before,after,evidence";

/// What of a node has no column of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeDetail {
    labels: Vec<Arc<str>>,
    max_workers: u32,
    capabilities: Vec<Arc<str>>,
    version: Arc<str>,
    host: Option<Arc<str>>,
    epoch: Option<Arc<str>>,
    wished: Option<Wish>,
    pin: Option<(NodeState, Wish)>,
    disconnected: Option<(Timestamp, Arc<str>)>,
    beat: Option<(Timestamp, u32)>,
    inventory: Option<(Timestamp, u32)>,
    goodbye: Option<(Timestamp, Arc<str>)>,
    lost: Option<(Timestamp, Arc<str>)>,
}

/// What of a worker has no column of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerDetail {
    target_node: Option<Arc<str>>,
    target_labels: Vec<Arc<str>>,
    command: Arc<str>,
    io: Option<WorkerIo>,
    restart: RestartPolicy,
    labels: Vec<Arc<str>>,
    body_hash: [u8; 16],
    place_by: Option<Timestamp>,
    waits_for: Option<Arc<str>>,
    pid: Option<u32>,
    started_at: Option<Timestamp>,
    restarts: u32,
    next_start_at: Option<Timestamp>,
    release: Option<Wish>,
    adopted: bool,
    exit: Option<ExitReport>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    by: Arc<str>,
    at: Timestamp,
    reason: Option<Arc<str>>,
}

impl Wish {
    fn of(wished: &Wished) -> Self {
        Self {
            by: wished.by.clone(),
            at: wished.at,
            reason: wished.reason.clone(),
        }
    }

    fn into_row(self) -> Wished {
        Wished {
            by: self.by,
            at: self.at,
            reason: self.reason,
        }
    }
}

impl NodeDetail {
    pub(super) fn of(row: &NodeRow) -> Self {
        Self {
            labels: row.labels.clone(),
            max_workers: row.max_workers,
            capabilities: row.capabilities.clone(),
            version: row.version.clone(),
            host: row.host.clone(),
            epoch: row.epoch.clone(),
            wished: row.wished.as_ref().map(Wish::of),
            pin: row
                .pin
                .as_ref()
                .map(|pin| (pin.state, Wish::of(&pin.wished))),
            disconnected: row.disconnected.clone(),
            beat: row.beat,
            inventory: row.inventory,
            goodbye: row.goodbye.clone(),
            lost: row.lost.clone(),
        }
    }
}

impl WorkerDetail {
    pub(super) fn of(row: &WorkerRow) -> Self {
        Self {
            target_node: row.target.node.clone(),
            target_labels: row.target.labels.clone(),
            command: row.command.clone(),
            io: row.io,
            restart: row.restart,
            labels: row.labels.clone(),
            body_hash: row.body_hash,
            place_by: row.place_by,
            waits_for: row.waits_for.clone(),
            pid: row.pid,
            started_at: row.started_at,
            restarts: row.restarts,
            next_start_at: row.next_start_at,
            release: row.release.as_ref().map(Wish::of),
            adopted: row.adopted,
            exit: row.exit.clone(),
        }
    }
}

/// A node from [`NODE_COLUMNS`].
pub(super) fn node(from: &mut Columns<'_>) -> StoreResult<NodeRow> {
    let id = NodeId::trusted(from.text()?);
    let name = from.arc()?;
    let kind = word(from, "node kind", NodeKind::from_word)?;
    let wish = word(from, "node wish", NodeWish::from_word)?;
    let told = (
        word(from, "node state", NodeState::from_word)?,
        from.time()?,
    );
    let enrolled_at = from.time()?;
    let connected_at = from.time_opt()?;
    let heard_at = from.time_opt()?;
    let principal = from.arc()?;
    let detail: NodeDetail = json(from)?;
    Ok(NodeRow {
        id,
        name,
        kind,
        labels: detail.labels,
        max_workers: detail.max_workers,
        capabilities: detail.capabilities,
        version: detail.version,
        host: detail.host,
        epoch: detail.epoch,
        principal,
        wish,
        wished: detail.wished.map(Wish::into_row),
        pin: detail.pin.map(|(state, wish)| Pin {
            state,
            wished: wish.into_row(),
        }),
        enrolled_at,
        connected_at,
        disconnected: detail.disconnected,
        heard_at,
        beat: detail.beat,
        inventory: detail.inventory,
        goodbye: detail.goodbye,
        lost: detail.lost,
        told,
    })
}

/// A worker from [`WORKER_COLUMNS`], without its spec.
pub(super) fn worker(from: &mut Columns<'_>) -> StoreResult<WorkerRow> {
    let id = WorkerId::trusted(from.text()?);
    let name = from.arc()?;
    let node = from.text_opt()?.map(NodeId::trusted);
    let state = word(from, "worker state", WorkerState::from_word)?;
    let state_at = from.time()?;
    let created_at = from.time()?;
    let confirmed_at = from.time_opt()?;
    let ended_at = from.time_opt()?;
    let how = from.text_opt()?;
    let ended = match (ended_at, how) {
        (None, None) => None,
        (Some(at), Some(how)) => {
            let how = ExitHow::from_word(how).ok_or_else(|| unknown("way to end", how))?;
            Some((at, how))
        }
        _ => return Err(StoreError::Unreadable("an end without its half".into())),
    };
    let agent = from.text_opt()?.map(AgentId::trusted);
    let principal = from.arc()?;
    let idempotency_key = from.arc_opt()?;
    let detail: WorkerDetail = json(from)?;
    Ok(WorkerRow {
        id,
        name,
        node,
        target: Target {
            node: detail.target_node,
            labels: detail.target_labels,
        },
        spec: Payload::default(),
        command: detail.command,
        io: detail.io,
        restart: detail.restart,
        labels: detail.labels,
        principal,
        idempotency_key,
        body_hash: detail.body_hash,
        created_at,
        state,
        state_at,
        place_by: detail.place_by,
        waits_for: detail.waits_for,
        pid: detail.pid,
        started_at: detail.started_at,
        restarts: detail.restarts,
        next_start_at: detail.next_start_at,
        confirmed_at,
        release: detail.release.map(Wish::into_row),
        adopted: detail.adopted,
        agent,
        exit: detail.exit,
        ended,
    })
}

/// A worker from [`WORKER_COLUMNS`] and its spec behind them.
pub(super) fn worker_with_spec(from: &mut Columns<'_>) -> StoreResult<WorkerRow> {
    let mut row = worker(from)?;
    row.spec = from.payload()?;
    Ok(row)
}

/// A line of history from [`HISTORY_COLUMNS`].
pub(super) fn history(from: &mut Columns<'_>) -> StoreResult<FleetHistoryRow> {
    Ok(FleetHistoryRow {
        seq: from.number()?,
        at: from.time()?,
        node: from.text_opt()?.map(NodeId::trusted),
        worker: from.text_opt()?.map(WorkerId::trusted),
        kind: from.arc()?,
        from: from.arc_opt()?,
        to: from.arc_opt()?,
        evidence: from.arc()?,
    })
}

fn word<T>(
    from: &mut Columns<'_>,
    noun: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> StoreResult<T> {
    let found = from.text()?;
    read(found).ok_or_else(|| unknown(noun, found))
}

fn unknown(noun: &str, word: &str) -> StoreError {
    let word: String = word.chars().take(40).collect();
    StoreError::Unreadable(format!("unknown {noun} {word:?}"))
}

/// The place in our own JSON is all that an error tells: the rest may be somebody's output.
fn json<T: serde::de::DeserializeOwned>(from: &mut Columns<'_>) -> StoreResult<T> {
    serde_json::from_slice(from.bytes()?).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        StoreError::Unreadable(format!("detail: not ours at {line}:{column}"))
    })
}
