//! The event stream of a plane, cut into events.

use futures_util::StreamExt;
use hyper::body::Incoming;

use crate::failure::{Failure, Outcome};

/// An open event stream.
pub(crate) struct EventStream {
    pub(super) body: http_body_util::BodyDataStream<Incoming>,
    pub(super) reader: EventReader,
    pub(super) lost: Failure,
}

impl EventStream {
    /// The next event; signs of life are none. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Outcome<StreamEvent> {
        loop {
            if let Some(event) = self.reader.next() {
                if event.name.as_deref() == Some("tick") {
                    continue;
                }
                return Ok(event);
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.reader.push(&bytes),
                Some(Err(_)) | None => return Err(self.lost.clone()),
            }
        }
    }
}

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Its position.
    pub(crate) id: Option<String>,
    /// Its name.
    pub(crate) name: Option<String>,
    /// What it says.
    pub(crate) data: String,
}

/// Cuts bytes into events. A line longer than 1 MiB is dropped.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    bytes: Vec<u8>,
    building: StreamEvent,
}

const LINE_MAX: usize = 1 << 20;

impl EventReader {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > LINE_MAX {
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn next(&mut self) -> Option<StreamEvent> {
        while let Some(end) = self.bytes.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let event = std::mem::take(&mut self.building);
                if !event.data.is_empty() {
                    return Some(event);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => self.building.id = Some(value.to_owned()),
                "event" => self.building.name = Some(value.to_owned()),
                "data" => {
                    if !self.building.data.is_empty() {
                        self.building.data.push('\n');
                    }
                    self.building.data.push_str(value);
                }
                // Comments and retry hints.
                _ => {}
            }
        }
        None
    }
}
