//! Without Linux: no subreaper, no pidfds, no look at other processes. A worker's group is all
//! that can be ended, and a worker outlives a holder that was killed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{Found, Process};

pub(crate) fn become_reaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

pub(crate) fn boot_id() -> String {
    String::new()
}

/// Nothing tells two processes of one number apart.
pub(crate) fn start_of(_pid: u32) -> Option<u64> {
    Some(0)
}

pub(crate) fn descendants(_of: u32) -> Vec<Found> {
    Vec::new()
}

pub(crate) fn tagged(_variables: &[String]) -> Vec<Found> {
    Vec::new()
}

/// Nothing proves which process it is: none is signalled.
pub(crate) fn signal(_process: Process, _signal: Signal) -> bool {
    false
}

pub(crate) fn ignores_term(_pid: u32) -> bool {
    false
}

/// The path as it is: a directory with a long one cannot be used.
pub(crate) fn stream_path(directory: &Path, name: &str) -> io::Result<(OwnedFd, PathBuf)> {
    let handle = std::fs::File::open(directory)?;
    Ok((handle.into(), directory.join(name)))
}
