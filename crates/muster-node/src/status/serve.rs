//! The daemon's end of the local socket: one line asks, one line answers.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::ask::Question;
use super::local::Place;
use super::report;
use crate::daemon::{Node, Stop};

/// Who asks has so long, in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest question.
const QUESTION_MAX: u64 = 4096;
/// Askers at once; more wait.
const ASKERS_MAX: usize = 16;

/// Opens the socket, for its owner alone. The state directory is locked, so a socket that is
/// there already is of a daemon that has died.
pub(crate) fn listen(state: &Path) -> io::Result<UnixListener> {
    let place = Place::of(state)?;
    remove(&place.path)?;
    let listener = UnixListener::bind(&place.path)?;
    std::fs::set_permissions(&place.path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Takes the socket away, so that nobody waits for an answer.
pub(crate) fn close(state: &Path) {
    let removed = Place::of(state).and_then(|place| remove(&place.path));
    if let Err(error) = removed {
        warn!(%error, "the local socket could not be removed");
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Answers until it is dropped.
pub(crate) async fn serve(node: Arc<Node>, listener: UnixListener) {
    let room = Arc::new(Semaphore::new(ASKERS_MAX));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let node = node.clone();
                tokio::spawn(async move {
                    let _place = place;
                    // An asker that went away is nobody's trouble.
                    let _ = tokio::time::timeout(PATIENCE, answer(&node, stream)).await;
                });
            }
            Err(error) => {
                warn!(%error, "the local socket takes nobody");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn answer(node: &Node, stream: UnixStream) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(QUESTION_MAX))
        .read_line(&mut line)
        .await?;
    // This process may have been stopped while the asker lost patience: what was given up is not
    // done. Writing to an asker that hung up fails; the line's end is before the answer.
    if let Err(error) = write.write_all(b"\n").await {
        info!("somebody asked and hung up: nothing is done");
        return Err(error);
    }
    match serde_json::from_str(&line) {
        Ok(Question::Status) => {}
        Ok(Question::Reconnect) => {
            info!("somebody asks for a new connection");
            node.reconnect.notify_one();
            node.reconnect_terminal.notify_one();
        }
        Ok(Question::Stop { stop_workers }) => {
            info!(stop_workers, "somebody asks the daemon to stop");
            let wish = if stop_workers {
                Stop::Release
            } else {
                Stop::Leave
            };
            node.stop.send_replace(Some(wish));
        }
        Err(_) => return write.write_all(b"{\"error\":\"not understood\"}\n").await,
    }
    let mut text = serde_json::to_vec(&report(node)).map_err(io::Error::other)?;
    text.push(b'\n');
    write.write_all(&text).await
}
