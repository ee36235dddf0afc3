//! Which workers are agents, and through which node they are called. Told by the engine, read by
//! whoever dials.

use std::sync::Arc;

use dashmap::DashMap;
use muster_wire::{NodeId, WorkerId};

/// Where a worker is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Through the link of this node.
    Through(NodeId),
    /// It has ended: its address may be somebody else's by now.
    Ended,
    /// Nobody has said where it runs.
    Unknown,
}

/// Routes that may be remembered for workers that ended.
const ENDED_MAX: usize = 10_000;

/// All routes.
#[derive(Debug, Default)]
pub(crate) struct Routes(DashMap<Arc<str>, Option<NodeId>>);

impl Routes {
    /// The engine says where a worker runs; `None` when it has ended.
    pub(crate) fn put(&self, worker: &WorkerId, node: Option<NodeId>) {
        if node.is_none() && self.0.len() > ENDED_MAX {
            self.0.retain(|_, node| node.is_some());
        }
        self.0.insert(Arc::from(worker.as_str()), node);
    }

    /// Where a worker is called.
    pub(crate) fn of(&self, worker: &str) -> Route {
        match self.0.get(worker).as_deref() {
            None => Route::Unknown,
            Some(None) => Route::Ended,
            Some(Some(node)) => Route::Through(node.clone()),
        }
    }
}
