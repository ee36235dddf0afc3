//! The frames of a node's terminal socket, `/v1/node/terminal/ws`: a socket of its own, so that
//! output can never hold up control. JSON text without `v`. One socket carries all sessions of a
//! node. The same for the broker and for our daemon. Knows no socket.

use serde::{Deserialize, Serialize};

use crate::status::words;

words!(
    /// What a viewer may do.
    TerminalMode {
        /// Watch.
        View = "view",
        /// Type, too.
        Drive = "drive",
    }
);

/// From the plane to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TerminalCommand {
    /// Open a session on a worker.
    #[serde(rename = "terminal.open")]
    Open {
        /// Chosen by the plane.
        session_id: String,
        /// The worker's name at the broker; its id at our daemon.
        agent: String,
        /// Watch or drive.
        mode: TerminalMode,
    },
    /// Bytes that a person typed.
    #[serde(rename = "terminal.input")]
    Input {
        /// Where.
        session_id: String,
        /// Base64.
        data_base64: String,
    },
    /// The driver's window changed.
    #[serde(rename = "terminal.resize")]
    Resize {
        /// Where.
        session_id: String,
        /// Rows.
        rows: u16,
        /// Columns.
        cols: u16,
    },
    /// Close a session.
    #[serde(rename = "terminal.close")]
    Close {
        /// Which.
        session_id: String,
    },
    /// The answer to a [`TerminalNews::Beat`].
    #[serde(rename = "muster.terminal.ack")]
    Ack {
        /// To which.
        id: String,
    },
}

/// From a node to the plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TerminalNews {
    /// Our daemon's beat on this socket; answered by [`TerminalCommand::Ack`]. It begins to count
    /// with the first answer, so a plane that knows no such frame is not held to it.
    #[serde(rename = "muster.terminal.beat")]
    Beat {
        /// Answer to this.
        id: String,
    },
    /// A session is open: what to paint first. Our daemon says it again after output was
    /// dropped: then this is the screen at `offset`.
    #[serde(rename = "terminal.ready")]
    Ready {
        /// Which.
        session_id: String,
        /// Base64 of bytes that repaint the screen.
        #[serde(default)]
        screen: String,
        /// Rows.
        #[serde(default)]
        rows: u16,
        /// Columns.
        #[serde(default)]
        cols: u16,
        /// How much output came before.
        #[serde(default)]
        offset: u64,
    },
    /// Output. `offset` counts bytes of the worker's output; a jump is what was dropped.
    #[serde(rename = "terminal.output")]
    Output {
        /// Where.
        session_id: String,
        /// Text.
        #[serde(default)]
        chunk: String,
        /// Where in the worker's output it begins.
        #[serde(default)]
        offset: u64,
    },
    /// Bytes were written to the worker.
    #[serde(rename = "terminal.input_ack")]
    InputAck {
        /// Where.
        session_id: String,
        /// How many.
        #[serde(default)]
        bytes_written: u64,
    },
    /// Something could not be done.
    #[serde(rename = "terminal.error")]
    Error {
        /// Where.
        #[serde(default)]
        session_id: String,
        /// A word.
        #[serde(default)]
        code: String,
        /// A sentence.
        #[serde(default)]
        message: String,
    },
    /// A session is over.
    #[serde(rename = "terminal.closed")]
    Closed {
        /// Which.
        session_id: String,
        /// A word.
        #[serde(default)]
        code: Option<String>,
        /// A sentence.
        #[serde(default)]
        message: Option<String>,
    },
    /// A type this build does not know.
    #[serde(other)]
    Other,
}
