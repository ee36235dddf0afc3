//! The frames of a viewer's socket, `GET /api/v1/fleet/workers/{worker}/terminal`: a person, in
//! `muster attach` or in a browser, who watches a worker's terminal and may drive it. JSON text.
//! Who drives is the plane's to say: one at a time, by explicit hand-over. Knows no socket.

use serde::{Deserialize, Serialize};

/// From a viewer to the plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ViewerCommand {
    /// Bytes that were typed. Taken from the driver alone.
    #[serde(rename = "terminal.input")]
    Input {
        /// Base64.
        data_base64: String,
    },
    /// The viewer's window. The worker's terminal follows the driver's.
    #[serde(rename = "terminal.resize")]
    Resize {
        /// Rows.
        rows: u16,
        /// Columns.
        cols: u16,
    },
    /// The viewer wants to drive.
    #[serde(rename = "terminal.drive")]
    Drive {
        /// Also when somebody else drives: they watch from then on.
        #[serde(default)]
        take: bool,
    },
    /// The viewer drives no longer, and watches.
    #[serde(rename = "terminal.watch")]
    Watch {},
    /// A type this build does not know.
    #[serde(other)]
    Other,
}

/// From the plane to a viewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ViewerNews {
    /// What to paint first, and who drives. Comes again when the node's link was away.
    #[serde(rename = "terminal.ready")]
    Ready {
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
    /// Output, without what would steer a viewer's terminal.
    #[serde(rename = "terminal.output")]
    Output {
        /// Text.
        #[serde(default)]
        chunk: String,
        /// Where in the worker's output it begins.
        #[serde(default)]
        offset: u64,
        /// How many bytes before it were dropped, because this viewer or the link was slow.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
    },
    /// Bytes were written to the worker.
    #[serde(rename = "terminal.input_ack")]
    InputAck {
        /// How many.
        #[serde(default)]
        bytes_written: u64,
    },
    /// Who drives now. Comes after `terminal.ready` and at every hand-over.
    #[serde(rename = "terminal.driver")]
    Driver {
        /// Whether it is this viewer.
        driving: bool,
        /// The driver's name; `None` when nobody drives.
        #[serde(default)]
        driver: Option<String>,
        /// How many watch, the driver among them.
        #[serde(default)]
        viewers: u32,
        /// Why it changed, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Something could not be done; the session goes on.
    #[serde(rename = "terminal.error")]
    Error {
        /// `not_driving`, `driven_by_another`, `not_allowed`, or a word of the node.
        #[serde(default)]
        code: String,
        /// A sentence.
        #[serde(default)]
        message: String,
    },
    /// The session is over; the socket closes next.
    #[serde(rename = "terminal.closed")]
    Closed {
        /// `agent_exited`, `node_unreachable`, `going_away`, or a word of the node.
        #[serde(default)]
        code: String,
        /// A sentence.
        #[serde(default)]
        message: String,
    },
    /// A type this build does not know.
    #[serde(other)]
    Other,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_without_what_may_be_missing_and_unknown_ones_are_known_as_such() {
        let drive: ViewerCommand = serde_json::from_str(r#"{"type":"terminal.drive"}"#).unwrap();
        assert_eq!(drive, ViewerCommand::Drive { take: false });
        let closed: ViewerNews =
            serde_json::from_str(r#"{"type":"terminal.closed","new":1}"#).unwrap();
        assert!(matches!(closed, ViewerNews::Closed { .. }));
        let later: ViewerNews = serde_json::from_str(r#"{"type":"terminal.bell"}"#).unwrap();
        assert_eq!(later, ViewerNews::Other);
        let text = serde_json::to_string(&ViewerNews::Output {
            chunk: "x".into(),
            offset: 7,
            dropped: 0,
        })
        .unwrap();
        assert_eq!(text, r#"{"type":"terminal.output","chunk":"x","offset":7}"#);
    }
}
