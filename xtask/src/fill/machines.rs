//! Machines that were here once, with workers: what a plane that just started knows of a fleet
//! that it does not hear yet.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::fleet::row::Target;
use muster_engine::fleet::{FleetWrite, NodeRow, WorkerRow};
use muster_engine::row::Payload;
use muster_wire::fleet::{NodeKind, NodeState, NodeWish, RestartPolicy, WorkerIo, WorkerState};
use muster_wire::{NodeId, Timestamp, WorkerId, mint};

use super::Filler;

const WORKERS: u64 = 5;

/// Writes so many machines, each with five workers that ran when it was last heard.
pub(super) fn machines(filler: &mut Filler, count: u64) -> anyhow::Result<()> {
    let now = Timestamp::wall_clock();
    for number in 0..count {
        let heard = now - Duration::from_secs(7200 + number);
        let node = NodeId::trusted(mint("node"));
        filler.write(Write::Fleet(FleetWrite::PutNode(Box::new(machine(
            &node, number, heard,
        )))));
        for place in 0..WORKERS {
            let name = format!("w-{number}-{place}");
            filler.write(Write::Fleet(FleetWrite::PutWorker(Box::new(worker(
                &node, &name, heard,
            )))));
        }
        filler.pause()?;
    }
    filler.commit()
}

fn machine(id: &NodeId, number: u64, heard: Timestamp) -> NodeRow {
    let zone = ["eu", "us", "ap"][(number % 3) as usize];
    NodeRow {
        id: id.clone(),
        name: Arc::from(format!("machine-{number:04}")),
        kind: NodeKind::Daemon,
        labels: vec![Arc::from(format!("zone={zone}"))],
        max_workers: 8,
        capabilities: Vec::new(),
        version: Arc::from(env!("CARGO_PKG_VERSION")),
        host: Some(Arc::from(format!("machine-{number:04}.example"))),
        epoch: None,
        principal: Arc::from("owner"),
        wish: NodeWish::Active,
        wished: None,
        pin: None,
        enrolled_at: heard - Duration::from_secs(86_400),
        connected_at: Some(heard - Duration::from_secs(3600)),
        disconnected: Some((heard, Arc::from("the connection was lost"))),
        heard_at: Some(heard),
        beat: Some((heard, 5)),
        inventory: Some((heard, 5)),
        goodbye: None,
        lost: None,
        told: (NodeState::Unreachable, heard + Duration::from_secs(60)),
    }
}

fn worker(node: &NodeId, name: &str, heard: Timestamp) -> WorkerRow {
    WorkerRow {
        id: WorkerId::trusted(mint("wrk")),
        name: Arc::from(name),
        node: Some(node.clone()),
        target: Target::default(),
        spec: Payload(Bytes::new()),
        command: Arc::from("python agent.py"),
        io: Some(WorkerIo::Pty),
        restart: RestartPolicy::default(),
        labels: Vec::new(),
        principal: Arc::from("owner"),
        idempotency_key: None,
        body_hash: [0; 16],
        created_at: heard - Duration::from_secs(3600),
        state: WorkerState::Running,
        state_at: heard - Duration::from_secs(3599),
        place_by: None,
        waits_for: None,
        pid: Some(4711),
        started_at: Some(heard - Duration::from_secs(3599)),
        restarts: 0,
        next_start_at: None,
        confirmed_at: Some(heard),
        release: None,
        adopted: false,
        agent: None,
        exit: None,
        ended: None,
    }
}
