//! The two ways in which nodes speak over one socket: our daemon's and the Relay broker's. Both
//! become the same events, and the same commands become their frames. Decides nothing.

mod daemon;
mod relay;

use std::time::Duration;

use muster_engine::event::Waiter;
use muster_engine::fleet::event::Hello;
use muster_wire::Timestamp;
use muster_wire::fleet::NodeKind;
use muster_wire::fleet::frame::{LINK_CAPABILITY, LinkOffer, NodeFrame, PlaneFrame, WorkerReport};

use super::session::{End, Here, plain};
use super::{Command, Link};
use crate::app::App;
use daemon::Daemon;
use relay::Relay;

/// The ids of items that could not be read, where they had one.
pub(crate) type Unread = Vec<Option<String>>;

/// The longest name of a worker that a node tells.
const NAME_MAX: usize = 128;
/// How far a node's clock may be ahead before what it says of time is no time.
const AHEAD_MAX: Duration = Duration::from_secs(86_400);

/// A report as it may be kept: its name is plain and bounded, its times are times.
fn clean(mut report: WorkerReport, now: Timestamp) -> WorkerReport {
    let name = plain(&report.name, NAME_MAX);
    report.name = match name.trim() {
        "" => report.worker_id.clone(),
        name => name.to_owned(),
    };
    report.started_at = report.started_at.filter(|at| is_time(*at, now));
    report.next_start_at = report.next_start_at.filter(|at| is_time(*at, now));
    report
}

/// Whether a moment by a node's clock can be one.
fn is_time(at: Timestamp, now: Timestamp) -> bool {
    at.0 > 0 && at <= now + AHEAD_MAX
}

/// A load as a share of what the node has; `None` when it is none.
fn share(load: f64) -> Option<f64> {
    (load.is_finite() && load >= 0.0).then(|| load.min(1.0))
}

/// Who speaks on a socket, once its first frame has said so.
pub(crate) enum Dialect {
    /// `muster node`.
    Daemon(Daemon),
    /// The Agent Relay broker, 12.x or 11.x.
    Relay(Relay),
}

/// A first frame that could be read.
pub(crate) struct Introduction {
    register: NodeFrame,
    dialect: Dialect,
}

impl Introduction {
    /// Reads who it is out of its `node.register`.
    ///
    /// # Errors
    /// The id of the frame, and what is wrong with it.
    pub(crate) fn read(register: NodeFrame) -> Result<Self, (Option<String>, String)> {
        let NodeFrame::Register {
            id, capabilities, ..
        } = &register
        else {
            return Err((None, "the first frame is node.register".into()));
        };
        let offer = capabilities.iter().find(|c| c.name == LINK_CAPABILITY);
        let dialect = match offer {
            None => Dialect::Relay(Relay::new(&register)),
            Some(capability) => {
                let offer = capability.metadata.clone().unwrap_or_default();
                let offer: LinkOffer = serde_json::from_value(offer).map_err(|_| {
                    let message = format!("{LINK_CAPABILITY}: its metadata is no link offer");
                    (id.clone(), message)
                })?;
                Dialect::Daemon(Daemon::new(offer))
            }
        };
        Ok(Self { register, dialect })
    }

    /// What it is.
    pub(crate) fn kind(&self) -> NodeKind {
        match self.dialect {
            Dialect::Daemon(_) => NodeKind::Daemon,
            Dialect::Relay(_) => NodeKind::Relay,
        }
    }

    /// The id of the first frame.
    pub(crate) fn id(&self) -> Option<String> {
        match &self.register {
            NodeFrame::Register { id, .. } => id.clone(),
            _ => None,
        }
    }

    /// What the engine is told.
    pub(crate) fn hello(&self, app: &App, waiter: Waiter, link: &Link) -> Hello {
        let hello = super::session::hello_of(waiter, link, &self.register);
        match &self.dialect {
            Dialect::Daemon(daemon) => daemon.hello(app, hello),
            Dialect::Relay(relay) => relay.hello(hello),
        }
    }

    /// The answer once it was taken. 11.x sends no id: it gets one that it cannot know.
    pub(crate) fn registered(&self, app: &App) -> PlaneFrame {
        let data = match &self.dialect {
            Dialect::Daemon(daemon) => daemon.registered(app, &self.register),
            Dialect::Relay(relay) => relay.registered(app, &self.register),
        };
        PlaneFrame::Reply {
            id: self.id().unwrap_or_else(|| muster_wire::mint("reply")),
            ok: true,
            data,
        }
    }

    /// The dialect, for the frames that follow.
    pub(crate) fn into_dialect(self) -> Dialect {
        self.dialect
    }
}

impl Dialect {
    /// A node that says nothing at all for so long has no connection any more.
    pub(crate) fn idle_max(&self) -> Duration {
        match self {
            Dialect::Daemon(daemon) => daemon.idle_max(),
            Dialect::Relay(relay) => relay.idle_max(),
        }
    }

    /// Whether a frame is answered only after the engine has: such a one is its own brake, the
    /// others cost a token.
    pub(crate) fn awaits_engine(&self, frame: &NodeFrame) -> bool {
        match frame {
            NodeFrame::InventorySync { .. }
            | NodeFrame::AgentRegister { .. }
            | NodeFrame::AgentDeregister { .. }
            | NodeFrame::Inventory { .. }
            | NodeFrame::Worker { .. }
            | NodeFrame::Exited { .. } => true,
            NodeFrame::Register { .. }
            | NodeFrame::Heartbeat { .. }
            | NodeFrame::ActionResult { .. }
            | NodeFrame::DeliveryAck { .. }
            | NodeFrame::Deregister {}
            | NodeFrame::Beat { .. }
            | NodeFrame::Goodbye { .. }
            | NodeFrame::TunnelFailed { .. }
            | NodeFrame::Reply { .. }
            | NodeFrame::Other => false,
        }
    }

    /// Takes a frame: tells the engine, and answers the node. `unread` are the items of an
    /// inventory that could not be read.
    ///
    /// # Errors
    /// When the session is over.
    pub(crate) async fn take(
        &self,
        here: &Here<'_>,
        frame: NodeFrame,
        unread: Unread,
    ) -> Result<(), End> {
        match self {
            Dialect::Daemon(daemon) => daemon.take(here, frame, unread).await,
            Dialect::Relay(relay) => relay.take(here, frame, unread).await,
        }
    }

    /// The frame of a command; `None` when there is none to send: the engine was told why.
    pub(crate) async fn put(&self, here: &Here<'_>, command: Command) -> Option<PlaneFrame> {
        match self {
            Dialect::Daemon(daemon) => daemon.put(here, command).await,
            Dialect::Relay(relay) => relay.put(here, command).await,
        }
    }
}
