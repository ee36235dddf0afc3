//! How workers of a machine are supervised. Values and their defaults; reads no file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How workers are supervised.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The command that runs a holder, before the arguments that the supervisor adds.
    pub holder: Vec<OsString>,
    /// At most so many workers at once; 0 is without bound. More are refused as `full`.
    pub workers_max: u32,
    /// How long a worker must live to count as started, where its spec does not say.
    pub start_window: Duration,
    /// Time between SIGTERM and SIGKILL, where its spec does not say.
    pub stop_grace: Duration,
    /// Where workers run whose spec does not say; the daemon's own directory by default.
    pub worker_dir: PathBuf,
    /// The wait before the first start again; it doubles with each.
    pub restart_wait: Duration,
    /// The longest wait before a start again.
    pub restart_wait_max: Duration,
    /// A run of this length starts the count of starts in a row anew.
    pub restart_reset: Duration,
    /// How long an ended worker is remembered after its end was acknowledged.
    pub ended_keep: Duration,
    /// At most so many ended workers are remembered; the oldest are forgotten first, and none
    /// before its end was acknowledged.
    pub ended_max: usize,
    /// When so many exits wait for an acknowledgement, no new worker is started.
    pub outbox_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            holder: vec![own_program(), "holder".into()],
            workers_max: 0,
            start_window: Duration::from_secs(1),
            stop_grace: Duration::from_secs(10),
            worker_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            restart_wait: Duration::from_secs(1),
            restart_wait_max: Duration::from_secs(60),
            restart_reset: Duration::from_secs(60),
            ended_keep: Duration::from_secs(24 * 60 * 60),
            ended_max: 200,
            outbox_max: 10_000,
        }
    }
}

/// This program. On Linux by a link that stays good when the file was replaced: a holder is of
/// the build of the daemon that starts it.
fn own_program() -> OsString {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    std::env::current_exe().map_or_else(|_| "muster".into(), PathBuf::into_os_string)
}
