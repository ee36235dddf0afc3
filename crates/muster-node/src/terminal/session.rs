//! One viewer of one worker: paints, passes output on as fast as it is taken, types, and says
//! why it ends. Output that nobody takes stays with the holder, which drops and counts it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_wire::WorkerId;
use muster_wire::fleet::terminal::{TerminalMode, TerminalNews};
use tokio::sync::mpsc;

use super::outgoing::Out;
use super::text::{Chunk, Cutter};
use crate::attachment::{
    AttachError, Attachment, AttachmentControl, AttachmentNews, AttachmentOutput,
};
use crate::supervise::Supervisor;

/// What a viewer wants.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Type these bytes.
    Input(Vec<u8>),
    /// Another size.
    Resize(u16, u16),
    /// No more.
    Close,
}

/// A viewer.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) mode: TerminalMode,
    pub(crate) supervisor: Supervisor,
    pub(crate) out: Out,
}

/// Rows and columns, as this viewer last knew them.
struct Size(AtomicU32);

impl Size {
    fn new(rows: u16, cols: u16) -> Self {
        Self(AtomicU32::new(u32::from(rows) << 16 | u32::from(cols)))
    }
    fn set(&self, rows: u16, cols: u16) {
        let both = u32::from(rows) << 16 | u32::from(cols);
        self.0.store(both, Ordering::Relaxed);
    }
    fn get(&self) -> (u16, u16) {
        let both = self.0.load(Ordering::Relaxed);
        ((both >> 16) as u16, both as u16)
    }
}

/// Why a session ended: a word and a sentence.
type Ended = (&'static str, String);

impl Session {
    /// Runs until the worker, the viewer or the socket ends. Takes no wishes any more by the time
    /// at which it says so: its id may be used again then.
    pub(crate) async fn run(self, wishes: mpsc::Receiver<Wish>) {
        let (code, message) = match self.open().await {
            Ok(attachment) => self.watch(attachment, wishes).await,
            Err(ended) => {
                drop(wishes);
                self.error(ended.0, &ended.1).await;
                ended
            }
        };
        let closed = TerminalNews::Closed {
            session_id: self.id.clone(),
            code: Some(code.to_owned()),
            message: Some(message),
        };
        self.out.tell(closed).await;
    }

    async fn open(&self) -> Result<Attachment, Ended> {
        let worker =
            WorkerId::parse(&self.agent).map_err(|error| ("agent_not_found", error.to_string()))?;
        self.supervisor
            .attach(&worker)
            .await
            .map_err(|error| (word(&error), error.to_string()))
    }

    async fn watch(&self, attachment: Attachment, wishes: mpsc::Receiver<Wish>) -> Ended {
        let Attachment {
            screen,
            rows,
            cols,
            offset,
            output,
            control,
        } = attachment;
        let size = Size::new(rows, cols);
        self.paint(&screen, &size, offset).await;
        tokio::select! {
            ended = self.pass_on(output, &size) => ended,
            ended = self.do_wishes(control, wishes, &size) => ended,
        }
    }

    async fn paint(&self, screen: &[u8], size: &Size, offset: u64) {
        let (rows, cols) = size.get();
        let ready = TerminalNews::Ready {
            session_id: self.id.clone(),
            screen: STANDARD.encode(screen),
            rows,
            cols,
            offset,
        };
        self.out.tell(ready).await;
    }

    /// Output, one frame for each free place.
    async fn pass_on(&self, mut output: AttachmentOutput, size: &Size) -> Ended {
        let mut cutter = Cutter::default();
        let mut chunks: VecDeque<Chunk> = VecDeque::new();
        loop {
            let reason = match output.next().await {
                AttachmentNews::Output { offset, bytes } => {
                    cutter.push(offset, &bytes, &mut chunks);
                    None
                }
                // The screen is painted anew, so what was kept of a character is of no use.
                AttachmentNews::Gap {
                    rows,
                    cols,
                    offset,
                    screen,
                    ..
                } => {
                    cutter = Cutter::default();
                    size.set(rows, cols);
                    self.paint(&screen, size, offset).await;
                    None
                }
                AttachmentNews::Closed { reason } => {
                    chunks.extend(cutter.rest());
                    Some(reason)
                }
            };
            while let Some(chunk) = chunks.pop_front() {
                let Some(place) = self.out.place().await else {
                    return ("socket_closed", "the terminal socket is gone".into());
                };
                let news = TerminalNews::Output {
                    session_id: self.id.clone(),
                    chunk: chunk.text,
                    offset: chunk.offset,
                };
                self.out.bulk(place, news).await;
            }
            if let Some(reason) = reason {
                return ("agent_exited", reason);
            }
        }
    }

    async fn do_wishes(
        &self,
        control: AttachmentControl,
        mut wishes: mpsc::Receiver<Wish>,
        size: &Size,
    ) -> Ended {
        while let Some(wish) = wishes.recv().await {
            let done = match wish {
                Wish::Close => return ("closed", "the plane closed the session".into()),
                Wish::Input(_) | Wish::Resize(..) if self.mode != TerminalMode::Drive => {
                    let text = "this session watches; it does not drive";
                    self.error("view_only", text).await;
                    continue;
                }
                Wish::Input(bytes) => self.type_in(&control, &bytes).await,
                Wish::Resize(rows, cols) => {
                    let done = control.resize(rows, cols).await;
                    if done.is_ok() {
                        size.set(rows, cols);
                    }
                    done
                }
            };
            if let Err(error) = done {
                self.error(word(&error), &error.to_string()).await;
            }
        }
        ("closed", "the terminal socket is gone".into())
    }

    async fn type_in(&self, control: &AttachmentControl, bytes: &[u8]) -> Result<(), AttachError> {
        let written = control.input(bytes).await?;
        let acknowledged = TerminalNews::InputAck {
            session_id: self.id.clone(),
            bytes_written: written as u64,
        };
        self.out.tell(acknowledged).await;
        Ok(())
    }

    async fn error(&self, code: &str, message: &str) {
        let error = TerminalNews::Error {
            session_id: self.id.clone(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        self.out.tell(error).await;
    }
}

fn word(error: &AttachError) -> &'static str {
    match error {
        AttachError::UnknownWorker => "agent_not_found",
        AttachError::NoTerminal => "no_terminal",
        AttachError::Broken(_) => "holder_broken",
    }
}
