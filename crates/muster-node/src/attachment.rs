//! Somebody watches and drives a worker: its screen, the output that follows, and the way back.
//! Bounded: a reader that is slow misses output, which is counted, and gets the screen again.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::holder::protocol::{Ask, Frame, Tell};
use crate::supervise::Request;

/// Why a worker cannot be attached to, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// No such worker runs here.
    #[error("this node has no worker of that id which still runs")]
    UnknownWorker,
    /// It has pipes, so nobody can type or change its size.
    #[error("this worker has pipes and no terminal: it can be watched, not driven")]
    NoTerminal,
    /// Its holder does not answer.
    #[error("the holder of this worker did not answer: {0}")]
    Broken(String),
}

/// A worker that is watched.
#[derive(Debug)]
pub struct Attachment {
    /// Bytes that paint its screen as it is at `offset`; of one with pipes the end of its output.
    pub screen: Vec<u8>,
    /// Rows of its terminal.
    pub rows: u16,
    /// Columns of its terminal.
    pub cols: u16,
    /// How many bytes of output came before.
    pub offset: u64,
    /// What follows.
    pub output: AttachmentOutput,
    /// The way back.
    pub control: AttachmentControl,
}

/// What an attachment tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachmentNews {
    /// Output.
    Output {
        /// Where in the worker's output it begins.
        offset: u64,
        /// The bytes, as they came.
        bytes: Vec<u8>,
    },
    /// The reader was too slow: output was dropped; this is the screen now.
    Gap {
        /// How many bytes were dropped, this time.
        dropped: u64,
        /// Rows of its terminal now.
        rows: u16,
        /// Columns of its terminal now.
        cols: u16,
        /// Where the output goes on.
        offset: u64,
        /// Bytes that paint the screen as it is there.
        screen: Vec<u8>,
    },
    /// It is over, and why: the worker ended, its holder went away. Nothing follows.
    Closed {
        /// A sentence.
        reason: String,
    },
}

/// The reading half.
#[derive(Debug)]
pub struct AttachmentOutput {
    news: mpsc::Receiver<AttachmentNews>,
}

impl AttachmentOutput {
    pub(crate) fn of(news: mpsc::Receiver<AttachmentNews>) -> Self {
        Self { news }
    }

    /// Waits for what comes next. Safe to cancel. After `Closed` it is `Closed` again.
    pub async fn next(&mut self) -> AttachmentNews {
        self.news.recv().await.unwrap_or(AttachmentNews::Closed {
            reason: "the attachment was closed".into(),
        })
    }
}

/// The writing half.
#[derive(Clone)]
pub struct AttachmentControl {
    way: mpsc::Sender<Request>,
    has_terminal: bool,
}

impl fmt::Debug for AttachmentControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttachmentControl")
    }
}

/// How long a worker may take to read what was typed; then what fitted is acknowledged.
pub const INPUT_WAIT: Duration = Duration::from_secs(2);
/// The most that is typed at once; more is cut up.
const INPUT_MAX: usize = 64 * 1024;
/// Many may type before, each for [`INPUT_WAIT`].
const ANSWER_WAIT: Duration = Duration::from_secs(15);

impl AttachmentControl {
    pub(crate) fn of(way: mpsc::Sender<Request>, has_terminal: bool) -> Self {
        Self { way, has_terminal }
    }

    /// Types; answers how many bytes reached the terminal, which is fewer when the worker does
    /// not read for [`INPUT_WAIT`].
    ///
    /// # Errors
    /// When the worker has no terminal, or is gone.
    pub async fn input(&self, bytes: &[u8]) -> Result<usize, AttachError> {
        self.check()?;
        let mut typed = 0;
        for piece in bytes.chunks(INPUT_MAX) {
            let piece = piece.to_vec();
            let length = piece.len();
            let answer = self
                .ask(move |id| Frame::Input { id, bytes: piece })
                .await?;
            let Frame::Message(Tell::Typed { bytes, .. }) = answer else {
                return Err(AttachError::Broken("it answered something else".into()));
            };
            let taken = usize::try_from(bytes).unwrap_or(length);
            typed += taken;
            if taken < length {
                break;
            }
        }
        Ok(typed)
    }

    /// Changes the size of the terminal, for everybody.
    ///
    /// # Errors
    /// When the worker has no terminal, or is gone.
    pub async fn resize(&self, rows: u16, cols: u16) -> Result<(), AttachError> {
        self.check()?;
        let ask = move |id| Frame::Message(Ask::Resize { id, rows, cols });
        match self.ask(ask).await? {
            Frame::Message(Tell::Refused { message, .. }) => Err(AttachError::Broken(message)),
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<(), AttachError> {
        if self.has_terminal {
            Ok(())
        } else {
            Err(AttachError::NoTerminal)
        }
    }

    async fn ask(
        &self,
        make: impl FnOnce(u64) -> Frame<Ask> + Send + 'static,
    ) -> Result<Frame<Tell>, AttachError> {
        let gone = || AttachError::Broken("the connection to it has ended".into());
        let (request, heard) = Request::new(make);
        let asked = async {
            self.way.send(request).await.map_err(|_| gone())?;
            heard.await.map_err(|_| gone())
        };
        match tokio::time::timeout(ANSWER_WAIT, asked).await {
            Ok(answered) => answered,
            Err(_) => Err(AttachError::Broken("it took too long".into())),
        }
    }
}
