//! What a `muster dev` that was killed left running: its child's process id and start time lie
//! in the data directory, and the next start ends that process group. Knows nothing of a child
//! that runs now.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

/// How long SIGTERM may take before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long SIGKILL may take until it is not waited for.
const AT_MOST: Duration = Duration::from_secs(7);
const LOOK: Duration = Duration::from_millis(20);

/// Where the child is noted.
#[derive(Debug, Clone)]
pub(crate) struct Note(PathBuf);

/// A process, told apart from a later one of the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    pid: u32,
    /// In ticks since the machine was started.
    started: u64,
    /// Which start of the machine.
    boot: String,
}

impl Note {
    /// In a data directory.
    pub(crate) fn in_directory(data: &Path) -> Self {
        Self(data.join("dev-process.json"))
    }

    /// Notes a process that was just started. Where the system does not say when it started,
    /// nothing is noted: a number alone may be somebody else's later.
    pub(crate) fn write(&self, pid: Option<u32>) {
        let Some(known) = pid.and_then(look) else {
            return;
        };
        let text = serde_json::to_vec(&known).unwrap_or_default();
        if let Err(error) = std::fs::write(&self.0, text) {
            tracing::warn!(error = %error, "could not note the agent's process");
        }
    }

    /// The process has ended.
    pub(crate) fn clear(&self) {
        let _ = std::fs::remove_file(&self.0);
    }

    /// Ends the process group that was noted, when its process still runs; its process id.
    pub(crate) async fn end(&self) -> Option<u32> {
        let text = std::fs::read(&self.0).ok()?;
        let known = serde_json::from_slice::<Known>(&text).ok();
        let found = known.filter(|known| look(known.pid).as_ref() == Some(known));
        let ended = match &found {
            Some(known) => end(known).await,
            None => None,
        };
        self.clear();
        ended
    }
}

async fn end(known: &Known) -> Option<u32> {
    let group = Pid::from_raw(i32::try_from(known.pid).ok()?)?;
    let began = Instant::now();
    let _ = kill_process_group(group, Signal::TERM);
    let mut killed = false;
    while look(known.pid).as_ref() == Some(known) && began.elapsed() < AT_MOST {
        if !killed && began.elapsed() >= PATIENCE {
            let _ = kill_process_group(group, Signal::KILL);
            killed = true;
        }
        tokio::time::sleep(LOOK).await;
    }
    // What the process itself had started and did not end.
    let _ = kill_process_group(group, Signal::KILL);
    Some(known.pid)
}

/// A process that runs and leads its group; a zombie has ended.
fn look(pid: u32) -> Option<Known> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // The name before the bracket may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let group: u32 = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    (state != "Z" && group == pid).then(|| Known {
        pid,
        started,
        boot: boot.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[tokio::test]
    async fn the_noted_process_is_ended_and_a_later_one_of_its_id_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let note = Note::in_directory(dir.path());
        assert_eq!(note.end().await, None, "nothing is noted");

        let mut noted = sleeper();
        note.write(Some(noted.id()));
        assert_eq!(note.end().await, Some(noted.id()));
        assert!(!noted.wait().unwrap().success());
        assert_eq!(note.end().await, None, "it is noted no longer");

        let mut other = sleeper();
        let mut known = look(other.id()).unwrap();
        known.started -= 1;
        std::fs::write(&note.0, serde_json::to_vec(&known).unwrap()).unwrap();
        assert_eq!(note.end().await, None);
        assert!(other.try_wait().unwrap().is_none(), "it is another process");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
