//! Looks at processes through `/proc`, and signals those that a test made.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// The letter of its state.
pub(crate) fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

fn field(pid: u32, after_name: usize) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = text.rsplit_once(')')?.1;
    rest.split_ascii_whitespace().nth(after_name)?.parse().ok()
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    field(pid, 1)
}

pub(crate) fn session(pid: u32) -> Option<u32> {
    field(pid, 3)
}

/// The children of a process, ended ones too.
pub(crate) fn children(of: u32) -> Vec<u32> {
    all().filter(|pid| parent(*pid) == Some(of)).collect()
}

/// The most it ever had.
pub(crate) fn rss_peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The files that a process has open.
pub(crate) fn open_files(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|path| path.display().to_string())
        .collect()
}

/// Signals a process that a test made.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a pid")).expect("a pid");
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills every process in whose arguments a directory is: that test's holders.
pub(crate) fn kill_mentioning(directory: &Path) {
    let name = directory.display().to_string();
    for pid in all() {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_own = pid == std::process::id();
        if !is_own && String::from_utf8_lossy(&arguments).contains(&name) {
            signal(pid, Signal::KILL);
        }
    }
}
