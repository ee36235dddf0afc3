//! Processes of this machine: which descend from which, and how to signal one that is provably
//! the one that was meant. All that only Linux has is behind here; elsewhere a holder knows its
//! worker's group and nothing more.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

pub(crate) use system::{
    become_reaper, boot_id, descendants, die_with_parent, ignores_term, signal, start_of,
    stream_path, tagged,
};

/// A process, told apart from a later one of the same number by when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// When it was started, in the machine's own count since its start.
    pub(crate) start: u64,
}

/// A process as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) process: Process,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// It has ended, and its parent has not asked how.
    pub(crate) is_zombie: bool,
}

/// How often descendants are looked for again after SIGKILL before those that are left count as
/// stuck.
pub(crate) const KILL_WAIT: std::time::Duration = std::time::Duration::from_secs(5);
