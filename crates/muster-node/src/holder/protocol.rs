//! What a holder and a daemon say to each other over the holder's socket. Knows the bytes, not
//! what is done about them.
//!
//! A frame is a length (u32, little endian, of what follows), a kind (u8) and a body. The first
//! frame of both sides is a hello with a version; both then keep to the lower one. Whoever does
//! not know a kind, a word or a field passes over it, so that a daemon and a holder of different
//! builds understand each other.

use std::io;

use muster_wire::fleet::ExitReport;
use muster_wire::fleet::frame::SpawnOutput;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::record::{ExitRecord, StateRecord};

/// The version of this build.
pub(crate) const VERSION: u32 = 2;
/// From this version on a holder knows [`Ask::Restart`].
pub(crate) const RESTARTS_FROM: u32 = 2;
/// The longest frame that is read. The longest that is written has the last output in it.
pub(crate) const FRAME_MAX: usize = 1024 * 1024;
/// The most output in one frame.
pub(crate) const CHUNK_MAX: usize = 64 * 1024;

const MESSAGE: u8 = 1;
const OUTPUT: u8 = 2;
const INPUT: u8 = 3;
const PAINTED: u8 = 4;
const TAIL: u8 = 5;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// State, exits, requests.
    #[default]
    Control,
    /// Output alone, so that it can hold up nothing.
    Watch,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The first.
    Hello {
        #[serde(default)]
        version: u32,
        #[serde(default)]
        role: Role,
    },
    /// End the worker for good.
    Release { id: u64, grace_ms: Option<u64> },
    /// End the worker's process and start it again.
    Restart {
        id: u64,
        grace_ms: Option<u64>,
        reason: Option<String>,
    },
    /// Send the last output.
    Tail { id: u64 },
    /// Change the size of the terminal.
    Resize { id: u64, rows: u16, cols: u16 },
    /// The plane has acknowledged this exit.
    Told { number: u64 },
    /// A word of a later build.
    #[serde(other)]
    Other,
}

/// From the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Tell {
    /// The first.
    Hello {
        #[serde(default)]
        version: u32,
        #[serde(default)]
        build: String,
    },
    /// How the worker is now.
    State { state: StateRecord },
    /// A process exited.
    Exited { record: ExitRecord },
    /// The worker and all its processes are gone.
    Released { id: u64, exit: ExitReport },
    /// It was started again, and this became of it.
    Restarted { id: u64, output: SpawnOutput },
    /// So many bytes reached the terminal.
    Typed { id: u64, bytes: u64 },
    /// Done.
    Done { id: u64 },
    /// Not done.
    Refused { id: u64, message: String },
    /// The worker has ended for good and its processes are gone, but for those named: the last
    /// on a connection that controls.
    Over {
        exit: ExitReport,
        #[serde(default)]
        stuck: Vec<u32>,
    },
    /// The last on a connection that watches.
    Closed { reason: String },
    /// A word of a later build.
    #[serde(other)]
    Other,
}

/// One frame, with its message of type `M`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame<M> {
    /// A message.
    Message(M),
    /// Output from an offset on.
    Output { offset: u64, bytes: Vec<u8> },
    /// What somebody typed.
    Input { id: u64, bytes: Vec<u8> },
    /// A screen at an offset, after so many bytes were dropped.
    Painted {
        rows: u16,
        cols: u16,
        offset: u64,
        dropped: u64,
        screen: Vec<u8>,
    },
    /// The last output.
    Tail { id: u64, bytes: Vec<u8> },
    /// A kind of a later build.
    Unknown,
}

impl<M: Serialize> Frame<M> {
    /// The bytes of a frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, head, body): (u8, Vec<u8>, &[u8]) = match self {
            Frame::Message(message) => {
                let text = serde_json::to_vec(message)
                    .unwrap_or_else(|error| unreachable!("a message is always JSON: {error}"));
                (MESSAGE, text, &[])
            }
            Frame::Output { offset, bytes } => (OUTPUT, offset.to_le_bytes().into(), bytes),
            Frame::Input { id, bytes } => (INPUT, id.to_le_bytes().into(), bytes),
            Frame::Tail { id, bytes } => (TAIL, id.to_le_bytes().into(), bytes),
            Frame::Painted {
                rows,
                cols,
                offset,
                dropped,
                screen,
            } => {
                let mut head = Vec::with_capacity(20);
                head.extend(rows.to_le_bytes());
                head.extend(cols.to_le_bytes());
                head.extend(offset.to_le_bytes());
                head.extend(dropped.to_le_bytes());
                (PAINTED, head, screen)
            }
            Frame::Unknown => (0, Vec::new(), &[]),
        };
        let length = u32::try_from(1 + head.len() + body.len()).unwrap_or(u32::MAX);
        let mut out = Vec::with_capacity(5 + head.len() + body.len());
        out.extend(length.to_le_bytes());
        out.push(kind);
        out.extend(head);
        out.extend(body);
        out
    }
}

fn decode<M: for<'a> Deserialize<'a>>(frame: &[u8]) -> io::Result<Frame<M>> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let (&kind, body) = frame.split_first().ok_or_else(|| bad("an empty frame"))?;
    let number = |at: usize| -> io::Result<u64> {
        body.get(at..at + 8)
            .and_then(|eight| eight.try_into().ok())
            .map(u64::from_le_bytes)
            .ok_or_else(|| bad("a frame that ends too early"))
    };
    let short = |at: usize| -> io::Result<u16> {
        body.get(at..at + 2)
            .and_then(|two| two.try_into().ok())
            .map(u16::from_le_bytes)
            .ok_or_else(|| bad("a frame that ends too early"))
    };
    Ok(match kind {
        MESSAGE => Frame::Message(serde_json::from_slice(body)?),
        OUTPUT => Frame::Output {
            offset: number(0)?,
            bytes: body[8..].to_vec(),
        },
        INPUT => Frame::Input {
            id: number(0)?,
            bytes: body[8..].to_vec(),
        },
        TAIL => Frame::Tail {
            id: number(0)?,
            bytes: body[8..].to_vec(),
        },
        PAINTED => Frame::Painted {
            rows: short(0)?,
            cols: short(2)?,
            offset: number(4)?,
            dropped: number(12)?,
            screen: body[20..].to_vec(),
        },
        _ => Frame::Unknown,
    })
}

/// Reads frames. What was read of one is kept, so a cancelled [`FrameReader::next`] loses nothing.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    from: R,
    held: Vec<u8>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Of a stream.
    pub(crate) fn of(from: R) -> Self {
        Self {
            from,
            held: Vec::new(),
        }
    }

    /// The next frame; `None` when the other side has closed.
    pub(crate) async fn next<M: for<'a> Deserialize<'a>>(
        &mut self,
    ) -> io::Result<Option<Frame<M>>> {
        loop {
            if let Some(length) = self.held.first_chunk::<4>() {
                let length = u32::from_le_bytes(*length) as usize;
                if length > FRAME_MAX {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("a frame of {length} bytes"),
                    ));
                }
                if self.held.len() >= 4 + length {
                    let frame = decode(&self.held[4..4 + length]);
                    self.held.drain(..4 + length);
                    if self.held.is_empty() && self.held.capacity() > CHUNK_MAX {
                        self.held = Vec::new();
                    }
                    return frame.map(Some);
                }
            }
            if self.from.read_buf(&mut self.held).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// How long a write may take before the connection counts as dead.
pub(crate) const WRITE_WAIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Writes a frame whole, or fails within [`WRITE_WAIT`].
pub(crate) async fn write<M: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    frame: &Frame<M>,
) -> io::Result<()> {
    let bytes = frame.encode();
    match tokio::time::timeout(WRITE_WAIT, to.write_all(&bytes)).await {
        Ok(written) => written,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the other side does not read",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_survive_being_cut_anywhere_and_later_words_are_passed_over() {
        let frames: Vec<Frame<Tell>> = vec![
            Frame::Message(Tell::Done { id: 7 }),
            Frame::Output {
                offset: 5,
                bytes: b"\xff\x00x".to_vec(),
            },
            Frame::Painted {
                rows: 24,
                cols: 80,
                offset: 9,
                dropped: 3,
                screen: b"s".to_vec(),
            },
            Frame::Tail {
                id: 1,
                bytes: Vec::new(),
            },
        ];
        let mut bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        bytes.extend([2, 0, 0, 0, 99, 1]);
        let later = br#"{"say":"sing","song":1}"#;
        bytes.extend((later.len() as u32 + 1).to_le_bytes());
        bytes.push(MESSAGE);
        bytes.extend(later);
        let (mut near, far) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move { near.write_all(&bytes).await });
        let mut reader = FrameReader::of(far);
        for frame in frames {
            assert_eq!(reader.next::<Tell>().await.unwrap(), Some(frame));
        }
        assert_eq!(reader.next::<Tell>().await.unwrap(), Some(Frame::Unknown));
        assert_eq!(
            reader.next::<Tell>().await.unwrap(),
            Some(Frame::Message(Tell::Other))
        );
        writer.await.unwrap().unwrap();
        assert_eq!(reader.next::<Tell>().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_or_too_short_is_an_error_and_no_panic() {
        for bytes in [vec![255, 255, 255, 255, 1], vec![3, 0, 0, 0, OUTPUT, 1, 2]] {
            let mut reader = FrameReader::of(std::io::Cursor::new(bytes));
            assert!(reader.next::<Tell>().await.is_err());
        }
    }
}
