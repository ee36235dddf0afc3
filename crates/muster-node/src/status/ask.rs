//! The asker's end of the local socket, and what was last known where no daemon answers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::local::Place;
use super::{LAST_FILE, StatusReport};

/// The daemon has so long to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a daemon can be asked on its own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Question {
    /// How it is.
    Status,
    /// To give its connections up and dial anew.
    Reconnect,
    /// To stop.
    Stop {
        /// Whether its workers are released first.
        stop_workers: bool,
    },
}

/// Why nobody answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No daemon runs.
    #[error("no daemon runs with the state directory {0}")]
    NotRunning(PathBuf),
    /// One runs, and said nothing in time. It does not do later what it finds given up.
    #[error(
        "the daemon of the state directory {path} has not answered within {waited:?}, and will not do later what was given up now"
    )]
    Late {
        /// The directory.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// One runs and cannot be asked, or another user's.
    #[error("the daemon of the state directory {path} does not answer: {why}")]
    NoAnswer {
        /// The directory.
        path: PathBuf,
        /// What happened.
        why: String,
    },
}

/// Asks the daemon of a state directory; its status is the answer to everything.
///
/// # Errors
/// When none runs, or it does not answer.
pub async fn ask(state: &Path, question: Question) -> Result<StatusReport, AskError> {
    let no_answer = |why: String| AskError::NoAnswer {
        path: state.to_owned(),
        why,
    };
    let stream = match connect(state).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Err(AskError::NotRunning(state.to_owned()));
        }
        Err(error) => return Err(no_answer(error.to_string())),
    };
    let text = tokio::time::timeout(PATIENCE, talk(stream, question))
        .await
        .map_err(|_| AskError::Late {
            path: state.to_owned(),
            waited: PATIENCE,
        })?
        .map_err(|error| no_answer(error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|error| no_answer(format!("it cannot be understood: {error}")))
}

async fn connect(state: &Path) -> io::Result<UnixStream> {
    let place = Place::of(state)?;
    UnixStream::connect(&place.path).await
}

async fn talk(mut stream: UnixStream, question: Question) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&question).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await?;
    Ok(text)
}

/// What a daemon of this state directory last wrote of itself; `None` when it never did.
pub fn last_known(state: &Path) -> Option<StatusReport> {
    let text = std::fs::read(state.join(LAST_FILE)).ok()?;
    serde_json::from_slice(&text).ok()
}
