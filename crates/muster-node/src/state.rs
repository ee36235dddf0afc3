//! The state directory of a node: who may use it, and where things lie in it. Knows nothing of
//! processes.
//!
//! ```text
//! lock               held by the daemon that uses it
//! epoch              changes when the memory of workers was lost
//! workers/ID/        one worker; written by its holder
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another daemon uses it.
    #[error(
        "another daemon uses the state directory {0}: stop that one, or give this one a directory of its own"
    )]
    InUse(PathBuf),
    /// It cannot be read or written.
    #[error("the state directory cannot be used: {path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// The state directory of a node, locked against a second daemon for as long as this lives.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    epoch: String,
    _lock: File,
}

impl StateDir {
    /// Makes or opens it, with rights for its owner alone, and locks it.
    ///
    /// # Errors
    /// When another daemon uses it, or it cannot be written.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        make_private(path).map_err(|error| io_at(path, error))?;
        let path = fs::canonicalize(path).map_err(|error| io_at(path, error))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|error| io_at(&lock_path, error))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(OpenError::InUse(path)),
            Err(errno) => return Err(io_at(&lock_path, errno.into())),
        }
        let workers = path.join("workers");
        make_private(&workers).map_err(|error| io_at(&workers, error))?;
        let epoch = read_or_mint_epoch(&path)?;
        Ok(Self {
            path,
            epoch,
            _lock: lock,
        })
    }

    /// Changes when the memory of workers was lost: a new directory has a new one.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Where the directories of workers are.
    pub(crate) fn workers(&self) -> PathBuf {
        self.path.join("workers")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read_or_mint_epoch(path: &Path) -> Result<String, OpenError> {
    let file = path.join("epoch");
    match fs::read_to_string(&file) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_at(&file, error)),
    }
    let epoch = muster_wire::mint("epoch");
    write_durably(path, "epoch", epoch.as_bytes()).map_err(|error| io_at(&file, error))?;
    Ok(epoch)
}

fn io_at(path: &Path, error: io::Error) -> OpenError {
    OpenError::Io {
        path: path.to_owned(),
        error,
    }
}

/// Makes a directory that only its owner may enter; takes the others' rights off an old one.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// Writes a file that is there whole or not at all, also after a loss of power.
pub(crate) fn write_durably(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let passing = directory.join(format!(".{name}.new"));
    let written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&passing)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&passing, directory.join(name)))
        .and_then(|()| File::open(directory)?.sync_all());
    if written.is_err() {
        // What is left of it would only take room.
        let _ = fs::remove_file(&passing);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_refused_and_the_epoch_outlives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node");
        let first = StateDir::open(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let refused = StateDir::open(&path).unwrap_err();
        assert!(refused.to_string().contains("another daemon"), "{refused}");
        let epoch = first.epoch().to_owned();
        drop(first);
        assert_eq!(StateDir::open(&path).unwrap().epoch(), epoch);
    }
}
