//! The daemon of a machine: supervises worker processes through holders that outlive it, and
//! keeps an honest link to the plane. Decides nothing about the fleet.

pub mod attachment;
pub mod holder;
pub mod settings;
pub mod state;
pub mod supervise;

pub use attachment::{
    AttachError, Attachment, AttachmentControl, AttachmentNews, AttachmentOutput,
};
pub use muster_wire::fleet;
pub use settings::Settings;
pub use state::{OpenError, StateDir};
pub use supervise::{ReleaseError, Supervisor, WorkerNews};
