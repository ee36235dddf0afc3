//! Linux: `/proc`, subreapers and pidfds.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal};

use super::{Found, Process};

/// Makes this process the parent of every orphan among its descendants.
pub(crate) fn become_reaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Into::into)
}

/// SIGKILL for this process when its parent dies. Outlives an exec.
pub(crate) fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
}

/// Which run of the machine this is.
pub(crate) fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// When a process was started; `None` when there is none of that number.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    stat(pid).map(|found| found.process.start)
}

/// All that descend from a process, without itself; children after their parents.
pub(crate) fn descendants(of: u32) -> Vec<Found> {
    let mut children: HashMap<u32, Vec<Found>> = HashMap::new();
    for found in all() {
        children.entry(found.parent).or_default().push(found);
    }
    let mut out = Vec::new();
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.process.pid);
            out.push(child);
        }
    }
    out
}

/// All whose environment has every one of these variables, as they were started.
pub(crate) fn tagged(variables: &[String]) -> Vec<Found> {
    let has_all = |found: &Found| {
        let environment = fs::read(format!("/proc/{}/environ", found.process.pid));
        let environment = environment.unwrap_or_default();
        let mut has = variables.iter().map(|wanted| {
            environment
                .split(|byte| *byte == 0)
                .any(|one| one == wanted.as_bytes())
        });
        has.all(|has| has)
    };
    all().filter(has_all).collect()
}

/// Signals a process, if it still is the one that was meant. Whether it was.
pub(crate) fn signal(process: Process, signal: Signal) -> bool {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return false };
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    // The handle stays with this process; that it is the one that was meant is looked up after.
    if start_of(process.pid) != Some(process.start) {
        return false;
    }
    rustix::process::pidfd_send_signal(&handle, signal).is_ok()
}

/// Whether SIGTERM would do nothing to it and SIGHUP would: an interactive shell.
pub(crate) fn ignores_term(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let bit = |signal: Signal| ignored & (1 << (signal.as_raw() - 1)) != 0;
    bit(Signal::TERM) && !bit(Signal::HUP)
}

/// A path to a socket that is short enough for its address, however long the directory's is.
/// Good while what is returned lives.
pub(crate) fn stream_path(directory: &Path, name: &str) -> io::Result<(OwnedFd, PathBuf)> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = rustix::fs::open(directory, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", handle.as_raw_fd()));
    Ok((handle, path))
}

fn all() -> impl Iterator<Item = Found> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
}

fn stat(pid: u32) -> Option<Found> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/PID/stat`. The name in it may contain anything, brackets too.
fn parse_stat(text: &str) -> Option<Found> {
    let (before, after) = text.rsplit_once(')')?;
    let pid = before.split_once(' ')?.0.parse().ok()?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // starttime is the 22nd field of the line; the third of `fields` was the fifth.
    let start = fields.nth(16)?.parse().ok()?;
    Some(Found {
        process: Process { pid, start },
        parent,
        group,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = "42 (a) b (c) Z 7 42 42 0 -1 4228 1 2 3 4 5 6 7 8 20 0 1 0 98765 10 11";
        let found = parse_stat(line).unwrap();
        assert_eq!(
            found.process,
            Process {
                pid: 42,
                start: 98765
            }
        );
        assert_eq!((found.parent, found.group, found.is_zombie), (7, 42, true));
        assert_eq!(parse_stat("42 (a"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_process_of_another_start_is_not_signalled() {
        let own = std::process::id();
        let start = start_of(own).unwrap();
        let other = Process {
            pid: own,
            start: start + 1,
        };
        assert!(!signal(other, Signal::KILL));
        assert!(signal(Process { pid: own, start }, Signal::CONT));
    }
}
