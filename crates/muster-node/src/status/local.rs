//! The socket's address. A path in a socket's address has room for about a hundred bytes, so a
//! deep state directory is reached through a descriptor of it where the system has such names.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The socket's name.
const NAME: &str = "node.sock";
/// What every system takes.
const PATH_MAX: usize = 100;

/// A path to the socket, and what must live as long as it is used.
pub(super) struct Place {
    pub(super) path: PathBuf,
    _directory: Option<File>,
}

impl Place {
    /// In a state directory.
    pub(super) fn of(state: &Path) -> io::Result<Self> {
        let path = state.join(NAME);
        if path.as_os_str().len() < PATH_MAX || !cfg!(target_os = "linux") {
            return Ok(Self {
                path,
                _directory: None,
            });
        }
        use std::os::fd::AsRawFd as _;
        let directory = File::open(state)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(NAME);
        Ok(Self {
            path,
            _directory: Some(directory),
        })
    }
}
