//! What stands between a worker and its holder: a pseudo terminal, or one pipe for both of its
//! outputs, so that their order is kept. Knows no process.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use muster_wire::fleet::WorkerIo;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, OptionalActions, Winsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::screen::Size;

/// The holder's end.
#[derive(Debug, Clone)]
pub(crate) struct End {
    fd: Rc<AsyncFd<OwnedFd>>,
}

/// The worker's end: what it has as stdin, stdout, stderr.
pub(crate) struct WorkerEnd {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// Opens both ends.
pub(crate) fn open(io: WorkerIo, size: Size) -> io::Result<(End, WorkerEnd)> {
    match io {
        WorkerIo::Pty => {
            let (ours, theirs) = open_terminal(size)?;
            let worker = WorkerEnd {
                stdin: theirs.try_clone()?.into(),
                stdout: theirs.try_clone()?.into(),
                stderr: theirs.into(),
            };
            Ok((
                End::of(ours, Interest::READABLE | Interest::WRITABLE)?,
                worker,
            ))
        }
        WorkerIo::Pipes => {
            let (ours, theirs) = io::pipe()?;
            let worker = WorkerEnd {
                stdin: Stdio::null(),
                stdout: theirs.try_clone()?.into(),
                stderr: theirs.into(),
            };
            Ok((End::of(ours.into(), Interest::READABLE)?, worker))
        }
    }
}

fn open_terminal(size: Size) -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let ours = rustix::pty::openpt(flags)?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    // So that erasing a letter erases all of its bytes.
    let mut modes = rustix::termios::tcgetattr(&theirs)?;
    modes.input_modes |= InputModes::IUTF8;
    rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    rustix::termios::tcsetwinsize(&ours, winsize(size))?;
    Ok((ours, theirs))
}

fn winsize(size: Size) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl End {
    fn of(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe; an OwnedFd is always the descriptor it says"
        )]
        let fd = Rc::new(AsyncFd::with_interest(fd, interest)?);
        Ok(Self { fd })
    }

    /// Reads what is there; 0 is the end. A terminal whose last user is gone says EIO.
    pub(crate) async fn read(&self, into: &mut [u8]) -> usize {
        loop {
            let Ok(mut ready) = self.fd.readable().await else {
                return 0;
            };
            match ready.try_io(|fd| rustix::io::read(fd, &mut *into).map_err(Into::into)) {
                Ok(Ok(read)) => return read,
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(_)) => return 0,
                Err(_would_block) => {}
            }
        }
    }

    /// Writes what a worker takes within `wait`; how much that was.
    pub(crate) async fn write(&self, bytes: &[u8], wait: Duration) -> usize {
        let mut written = 0;
        let all = async {
            while written < bytes.len() {
                let Ok(mut ready) = self.fd.writable().await else {
                    return;
                };
                let rest = &bytes[written..];
                match ready.try_io(|fd| rustix::io::write(fd, rest).map_err(Into::into)) {
                    Ok(Ok(more)) => written += more,
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(_)) => return,
                    Err(_would_block) => {}
                }
            }
        };
        let _ = tokio::time::timeout(wait, all).await;
        written
    }

    /// Changes the size; the worker gets SIGWINCH.
    pub(crate) fn resize(&self, size: Size) -> Result<(), Errno> {
        rustix::termios::tcsetwinsize(self.fd.get_ref(), winsize(size))
    }
}
