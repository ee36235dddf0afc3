//! What a holder is told when it is started: everything about its worker. Comes over stdin, so
//! that no secret of a worker's environment is in an argument list or on disk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use muster_wire::fleet::{RestartPolicy, WorkerIo};
use serde::{Deserialize, Serialize};

use crate::backoff::Waits;

/// The most that is read. A machine takes a few MiB of arguments and variables.
pub(crate) const BOOT_MAX: usize = 16 * 1024 * 1024;

/// One worker, as its holder is to run it. Has no `Debug`: its environment may hold secrets.
#[derive(Serialize, Deserialize)]
pub(crate) struct Boot {
    pub(crate) worker_id: String,
    /// Which start this is: what the lock was made for.
    pub(crate) start: String,
    pub(crate) name: String,
    /// The program's file.
    pub(crate) program: PathBuf,
    /// Its name, as its spec says.
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
    /// All of its variables.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) io: WorkerIo,
    pub(crate) size: (u16, u16),
    pub(crate) restart: RestartPolicy,
    pub(crate) waits: Waits,
    pub(crate) start_window: Duration,
    pub(crate) stop_grace: Duration,
    /// The command that runs a holder: it also launches the worker's program.
    pub(crate) prefix: Vec<OsString>,
}

/// Puts the length before it.
pub(crate) fn encode(boot: &Boot) -> Result<Vec<u8>, String> {
    let text = serde_json::to_vec(boot).map_err(|error| error.to_string())?;
    let length = u32::try_from(text.len()).ok();
    let length = length.filter(|length| *length as usize <= BOOT_MAX);
    let Some(length) = length else {
        return Err("its arguments and variables are longer than 16 MiB".into());
    };
    let mut bytes = Vec::with_capacity(4 + text.len());
    bytes.extend(length.to_le_bytes());
    bytes.extend(text);
    Ok(bytes)
}

/// Reads it whole, or fails: a daemon that died in between started nothing.
pub(crate) fn read(from: &mut impl Read) -> io::Result<Boot> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > BOOT_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long"));
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
