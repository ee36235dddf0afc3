//! What the engine tells of the fleet after a commit: lines for the log, and routes.

use muster_engine::fleet::FleetNotice;

use super::Fleet;

impl Fleet {
    /// Takes a notice; never waits.
    pub(crate) fn notice(&self, notice: &FleetNotice) {
        match notice {
            FleetNotice::Route { worker, node } => self.routes.put(worker, node.clone()),
            FleetNotice::Log {
                warn,
                node,
                worker,
                text,
            } => {
                let node = node.as_ref().map_or("", |id| id.as_str());
                let worker = worker.as_ref().map_or("", |id| id.as_str());
                if *warn {
                    tracing::warn!(node.id = node, worker.id = worker, "{text}");
                } else {
                    tracing::info!(node.id = node, worker.id = worker, "{text}");
                }
            }
            // A spec lies in its worker's row, and goes with it.
            FleetNotice::Forget(_) => {}
        }
    }
}
