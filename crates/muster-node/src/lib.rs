//! The daemon of a machine: supervises worker processes through holders that outlive it, and
//! keeps an honest link to the plane. Decides nothing about the fleet.

mod actions;
mod address;
pub mod attachment;
mod backoff;
pub mod daemon;
mod dial;
pub mod enroll;
pub mod holder;
pub mod identity;
mod link;
mod record;
mod ring;
mod screen;
pub mod settings;
pub mod state;
pub mod status;
pub mod supervise;
mod terminal;
mod tree;
mod tunnel;

pub use address::{AddressError, PlaneAddress};
pub use attachment::{
    AttachError, Attachment, AttachmentControl, AttachmentNews, AttachmentOutput,
};
pub use daemon::{DaemonSettings, RunError, Stop, Timing, run};
pub use identity::{Identity, IdentityError};
pub use link::board::{LinkReport, LinkState};
pub use muster_wire::fleet;
pub use settings::Settings;
pub use state::{OpenError, StateDir};
pub use supervise::{ReleaseError, RestartError, Supervisor, WorkerNews};
pub use terminal::TerminalReport;
