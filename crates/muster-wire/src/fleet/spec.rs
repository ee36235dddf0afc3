//! What a worker is to be, and what is told of its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::status::words;
use crate::time::Timestamp;

words!(
    /// What stands between a worker and its reader.
    WorkerIo {
        /// A pseudo terminal: it can be watched and driven.
        Pty = "pty",
        /// Pipes: output alone.
        Pipes = "pipes",
    }
);

words!(
    /// When a worker that exited is started again.
    RestartMode {
        /// Not at all.
        Never = "never",
        /// After an exit other than 0, with back-off, up to a number of times.
        OnFailure = "on-failure",
        /// After every exit, with back-off.
        Always = "always",
    }
);

/// When and how often a worker is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartPolicy {
    /// After which exits.
    pub mode: RestartMode,
    /// At most so many times in a row; `None` is without end. A run of 60 s starts the count anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            mode: RestartMode::Never,
            max: None,
        }
    }
}

/// What a worker is to be. Travels to its node; the plane stores it sealed, because an
/// environment may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// The program: a path, or a name that the node looks up in its `PATH`.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where it runs; the node's own working directory for workers without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables on top of the node's clean set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Terminal or pipes.
    pub io: WorkerIo,
    /// Rows and columns of its terminal.
    #[serde(default = "default_size")]
    pub size: (u16, u16),
    /// When it is started again.
    #[serde(default)]
    pub restart: RestartPolicy,
    /// How long it must live to count as started, in milliseconds; the node's default without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_window_ms: Option<u64>,
    /// How long it has between SIGTERM and SIGKILL, in milliseconds; 10,000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
}

fn default_size() -> (u16, u16) {
    (24, 80)
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// Its exit code; `None` when a signal ended it, or nobody saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// When, by its node's clock; `None` when nobody saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The end of its output, at most 8 KiB, as text: what is not UTF-8 is replaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What is missing of the above, and why (`not_reported_by_node`, the words of an error).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
