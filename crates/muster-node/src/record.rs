//! What is kept on disk of one worker, in `workers/ID/`: written by its holder, read by whichever
//! daemon is there. Decides nothing.
//!
//! ```text
//! lock               held by the holder while it lives
//! state.json         how the worker is
//! exit-N.json        an exit that the plane has not acknowledged
//! exit-N.told        one that it has
//! output             the last output of a worker that has ended
//! sock               where the holder listens
//! holder.log         what went wrong in the holder
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use muster_wire::Timestamp;
use muster_wire::fleet::frame::{NodeFrame, SpawnOutput, WorkerReport};
use muster_wire::fleet::{ExitReport, WorkerIo, WorkerState};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::state::write_durably;
use crate::tree::Process;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Within the start window of its first process or of a later one.
    #[default]
    Starting,
    /// It has lived through it.
    Running,
    /// Its process exited; another is to come.
    Restarting,
    /// For good.
    Ended,
}

/// How a worker is. Fields are only ever added, each with a default: an older or newer build
/// reads it, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateRecord {
    pub(crate) worker_id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) phase: Phase,
    #[serde(default = "pty")]
    pub(crate) io: WorkerIo,
    /// The holder itself.
    #[serde(default)]
    pub(crate) holder: Option<Process>,
    /// The worker's process, while there is one.
    #[serde(default)]
    pub(crate) process: Option<Process>,
    #[serde(default)]
    pub(crate) started_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) restarts: u32,
    #[serde(default)]
    pub(crate) next_start_at: Option<Timestamp>,
    /// What the first start came to.
    #[serde(default)]
    pub(crate) answer: Option<SpawnOutput>,
    /// Which run of the machine this is: after another start of it nothing of this is left.
    #[serde(default)]
    pub(crate) boot: String,
    /// Time between SIGTERM and SIGKILL.
    #[serde(default = "ten_seconds")]
    pub(crate) stop_grace_ms: u64,
}

fn ten_seconds() -> u64 {
    10_000
}

fn pty() -> WorkerIo {
    WorkerIo::Pty
}

impl StateRecord {
    /// As the plane is told.
    pub(crate) fn report(&self) -> WorkerReport {
        WorkerReport {
            worker_id: self.worker_id.clone(),
            name: self.name.clone(),
            state: match self.phase {
                Phase::Starting => WorkerState::Starting,
                Phase::Running => WorkerState::Running,
                Phase::Restarting => WorkerState::Restarting,
                Phase::Ended => WorkerState::Exited,
            },
            pid: self.process.map(|process| process.pid),
            started_at: self.process.and(self.started_at),
            restarts: self.restarts,
            next_start_at: self.next_start_at,
        }
    }
}

/// One exit. The last of a worker has no `next_start_at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitRecord {
    pub(crate) worker_id: String,
    #[serde(default)]
    pub(crate) name: String,
    /// Counts the exits of a worker, from 0.
    pub(crate) number: u64,
    #[serde(default)]
    pub(crate) restarts: u32,
    #[serde(default)]
    pub(crate) exit: ExitReport,
    #[serde(default)]
    pub(crate) next_start_at: Option<Timestamp>,
    /// When it was written; never earlier than the one before of the same worker.
    #[serde(default)]
    pub(crate) written_at: Timestamp,
}

impl ExitRecord {
    /// The id of its frame: the same whenever it is sent.
    pub(crate) fn id(&self) -> String {
        format!("exit:{}:{}", self.worker_id, self.number)
    }

    /// The worker and the number in such an id.
    pub(crate) fn parse_id(id: &str) -> Option<(&str, u64)> {
        let (worker, number) = id.strip_prefix("exit:")?.rsplit_once(':')?;
        Some((worker, number.parse().ok()?))
    }

    /// Whether nothing follows.
    pub(crate) fn is_final(&self) -> bool {
        self.next_start_at.is_none()
    }

    /// As the plane is told.
    pub(crate) fn frame(&self) -> NodeFrame {
        NodeFrame::Exited {
            id: self.id(),
            worker_id: self.worker_id.clone(),
            name: self.name.clone(),
            restarts: self.restarts,
            exit: self.exit.clone(),
            next_start_at: self.next_start_at,
        }
    }
}

/// At most so many exits of one worker wait on disk. Then the oldest that another followed makes
/// room, and the newest says how many are missing.
pub(crate) const UNTOLD_MAX: usize = 64;

/// The directory of one worker.
#[derive(Debug, Clone)]
pub(crate) struct WorkerDir {
    path: PathBuf,
}

/// What is in it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) state: Option<StateRecord>,
    pub(crate) untold: Vec<ExitRecord>,
    pub(crate) told: Vec<ExitRecord>,
}

impl Kept {
    /// The exit after which nothing follows.
    pub(crate) fn last(&self) -> Option<&ExitRecord> {
        self.untold
            .iter()
            .chain(&self.told)
            .find(|record| record.is_final())
    }

    /// The number that the next exit has.
    pub(crate) fn next_number(&self) -> u64 {
        let numbers = self.untold.iter().chain(&self.told).map(|one| one.number);
        numbers.max().map_or(0, |number| number + 1)
    }
}

impl WorkerDir {
    /// At a path.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file that the holder of this start locks. A holder makes none itself: a
    /// directory without it is one that was given up.
    pub(crate) fn make_lock(&self, start: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(self.path.join("lock"))?;
        file.write_all(start.as_bytes())
    }

    /// Takes the holder's lock; `None` when a living holder has it, or the directory was given
    /// up before it was taken.
    pub(crate) fn take_lock(&self) -> io::Result<Option<File>> {
        lock(self.open_lock()?)
    }

    /// The same for the holder of a start. One that comes so late that its worker was given up,
    /// and started anew by another, leaves that one's lock alone.
    pub(crate) fn take_lock_of(&self, start: &str) -> io::Result<Option<File>> {
        let mut file = self.open_lock()?;
        let mut made_for = String::new();
        file.read_to_string(&mut made_for)?;
        if made_for != start {
            return Ok(None);
        }
        lock(file)
    }

    fn open_lock(&self) -> io::Result<File> {
        let path = self.path.join("lock");
        OpenOptions::new().read(true).write(true).open(path)
    }

    /// Whether a holder lives. Never makes a lock fail that a holder is about to take.
    pub(crate) fn is_held(&self) -> bool {
        let Ok(file) = File::open(self.path.join("lock")) else {
            return false;
        };
        let probe = FlockOperation::NonBlockingLockShared;
        matches!(
            rustix::fs::flock(&file, probe),
            Err(rustix::io::Errno::WOULDBLOCK)
        )
    }

    /// Writes how the worker is.
    pub(crate) fn write_state(&self, state: &StateRecord) -> io::Result<()> {
        write_durably(&self.path, "state.json", &serde_json::to_vec(state)?)
    }

    /// Writes an exit.
    pub(crate) fn write_exit(&self, record: &ExitRecord) -> io::Result<()> {
        let name = format!("exit-{}.json", record.number);
        write_durably(&self.path, &name, &serde_json::to_vec(record)?)
    }

    /// The plane knows this one. An earlier one that it knows, too, is not needed any more.
    pub(crate) fn mark_told(&self, number: u64) {
        let from = self.path.join(format!("exit-{number}.json"));
        // Not there: the holder made room, or it was marked before. Told again then, at worst.
        if fs::rename(from, self.path.join(format!("exit-{number}.told"))).is_ok()
            && let Some(before) = number.checked_sub(1)
        {
            let _ = fs::remove_file(self.path.join(format!("exit-{before}.told")));
        }
    }

    /// Whether an exit waits for the plane.
    pub(crate) fn is_untold(&self, number: u64) -> bool {
        self.path.join(format!("exit-{number}.json")).exists()
    }

    /// Makes room for a newer exit.
    pub(crate) fn drop_exit(&self, number: u64) {
        let _ = fs::remove_file(self.path.join(format!("exit-{number}.json")));
    }

    /// Keeps the last output.
    pub(crate) fn write_output(&self, bytes: &[u8]) -> io::Result<()> {
        write_durably(&self.path, "output", bytes)
    }

    /// The last output of a worker that has ended.
    pub(crate) fn read_output(&self) -> Option<Vec<u8>> {
        fs::read(self.path.join("output")).ok()
    }

    /// Reads all that is kept. A file that cannot be read as what it is to be is passed over: its
    /// worker is then one whose end nobody saw.
    pub(crate) fn read(&self) -> io::Result<Kept> {
        let mut kept = Kept::default();
        for file in fs::read_dir(&self.path)? {
            let file = file?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            if name == "state.json" {
                kept.state = read_json(&file.path());
            } else if name.starts_with("exit-") && name.ends_with(".json") {
                kept.untold.extend(read_json::<ExitRecord>(&file.path()));
            } else if name.starts_with("exit-") && name.ends_with(".told") {
                kept.told.extend(read_json::<ExitRecord>(&file.path()));
            }
        }
        kept.untold.sort_by_key(|record| record.number);
        kept.told.sort_by_key(|record| record.number);
        Ok(kept)
    }

    /// Forgets the worker.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // The lock goes first: a holder that comes too late then finds none.
        let _ = fs::remove_file(self.path.join("lock"));
        fs::remove_dir_all(&self.path)
    }
}

fn lock(file: File) -> io::Result<Option<File>> {
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if file.metadata()?.nlink() > 0 => Ok(Some(file)),
        Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let bytes = fs::read(path).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "a record of a worker cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64, next: Option<i64>) -> ExitRecord {
        ExitRecord {
            worker_id: "w".into(),
            name: "n".into(),
            number,
            restarts: 0,
            exit: ExitReport::default(),
            next_start_at: next.map(Timestamp),
            written_at: Timestamp(1),
        }
    }

    #[test]
    fn exits_wait_until_they_are_told_and_the_last_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let worker = WorkerDir::at(directory.path().into());
        for (number, next) in [(0, Some(5)), (1, Some(6)), (2, None)] {
            worker.write_exit(&record(number, next)).unwrap();
        }
        worker.mark_told(0);
        worker.mark_told(1);
        worker.mark_told(9);
        assert_eq!(ExitRecord::parse_id(&record(2, None).id()), Some(("w", 2)));
        let kept = worker.read().unwrap();
        assert_eq!(kept.untold, vec![record(2, None)]);
        assert_eq!(kept.told.len(), 1, "the older told one is not needed");
        worker.mark_told(2);
        let kept = worker.read().unwrap();
        assert!(kept.untold.is_empty());
        assert_eq!(kept.last(), Some(&record(2, None)));
        assert_eq!(kept.next_number(), 3);
    }

    #[test]
    fn a_holder_that_comes_after_its_directory_was_given_up_gets_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        let worker = WorkerDir::at(directory.path().join("w"));
        fs::create_dir(worker.path()).unwrap();
        worker.make_lock("first").unwrap();
        assert!(!worker.is_held());
        assert!(worker.take_lock_of("earlier").unwrap().is_none());
        assert!(worker.take_lock_of("first").unwrap().is_some());
        let lock = worker.take_lock().unwrap().unwrap();
        assert!(worker.is_held());
        assert!(worker.take_lock().unwrap().is_none());
        drop(lock);
        assert!(!worker.is_held());
        worker.remove().unwrap();
        assert!(worker.take_lock().is_err());
    }
}
