//! Terminals of workers: the sockets over which nodes bring them, who watches and who drives.
//! Output never holds up control: it has a socket of its own towards the node, and a bounded
//! queue towards each viewer, which drops and counts.

mod feed;
mod filter;
mod lane;
mod room;
mod snapshot;
mod ticket;
mod viewer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use muster_wire::{NodeId, WorkerId};
use tokio::sync::watch;

pub(crate) use lane::{FRAME_MAX, serve as serve_lane};
pub(crate) use snapshot::last_output;
pub(crate) use viewer::{FRAME_MAX as VIEWER_FRAME_MAX, Viewer, serve as serve_viewer};

use lane::Lane;

/// Every terminal socket, and who sits before which terminal.
#[derive(Debug)]
pub(crate) struct Terminals {
    last: AtomicU64,
    lanes: DashMap<NodeId, Arc<Lane>>,
    /// Changes when a lane opens.
    opened: watch::Sender<u64>,
    rooms: room::Rooms,
    /// One-use keys of browsers, which cannot set a header.
    pub(crate) tickets: ticket::Tickets,
}

impl Default for Terminals {
    fn default() -> Self {
        Self {
            last: AtomicU64::new(0),
            lanes: DashMap::new(),
            opened: watch::Sender::new(0),
            rooms: room::Rooms::default(),
            tickets: ticket::Tickets::default(),
        }
    }
}

impl Terminals {
    fn lane(&self, node: &NodeId) -> Option<Arc<Lane>> {
        let lane = self.lanes.get(node)?;
        Some(lane.value().clone())
    }

    /// The plane knows that a worker has ended, whoever told it.
    pub(crate) fn worker_ended(&self, worker: &WorkerId) {
        self.rooms.over(worker);
    }

    /// A new lane of a node; an older one is closed.
    fn open(&self, lane: &Arc<Lane>) {
        let older = self.lanes.insert(lane.node.clone(), lane.clone());
        if let Some(older) = older {
            older.close();
        }
        self.opened.send_modify(|count| *count += 1);
    }

    fn ended(&self, lane: &Lane) {
        lane.close();
        self.lanes
            .remove_if(&lane.node, |_, current| current.id == lane.id);
    }

    fn next_id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}
