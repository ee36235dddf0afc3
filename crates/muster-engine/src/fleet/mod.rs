//! The fleet: nodes, their links, their workers, placements. Facts with times; a state is
//! computed from them when asked. Knows no socket, no key and no clock.

pub mod effect;
pub mod event;
pub mod limits;
pub mod row;

use muster_wire::Timestamp;

pub use effect::{FleetNotice, FleetQuestion, FleetReply, FleetSend};
pub use event::FleetEvent;
pub use limits::FleetLimits;
pub use row::{FleetSnapshot, FleetWrite, NodeRow, WorkerRow};

use crate::effect::{Effects, Reply};
use crate::engine::Engine;

impl Engine {
    /// Applies one event of the fleet.
    pub(crate) fn fleet_step(&mut self, now: Timestamp, event: FleetEvent, out: &mut Effects) {
        let _ = (now, event, out);
    }

    /// Answers a question about the fleet.
    pub(crate) fn fleet_ask(&self, now: Timestamp, question: &FleetQuestion) -> Reply {
        let _ = (now, question);
        Reply::Fleet(Box::new(FleetReply::Nodes(Vec::new())))
    }
}
