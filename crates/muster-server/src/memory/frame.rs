//! One memory change as it goes to readers: the JSON text, made once for all of them.

use axum::extract::ws::Utf8Bytes;
use muster_store::annex::{MemoryAction, MemoryEvent, MemoryRow, MemoryScope};

/// A frame over this is not taken by the published SDK's socket (1 MiB), which then drops the
/// connection: such a frame goes without its values, and says so.
pub const FRAME_BYTES_MAX: usize = 960 * 1024;

/// A change, ready to be sent.
#[derive(Debug)]
pub struct Change {
    /// Its number.
    pub seq: u64,
    /// Where.
    pub scope: MemoryScope,
    /// Which key.
    pub key: String,
    /// The JSON object.
    pub text: Utf8Bytes,
}

impl Change {
    /// Renders an event. What is too large for a frame is named in `omitted`.
    pub fn new(event: MemoryEvent) -> Self {
        let size = |part: &Option<bytes::Bytes>| part.as_ref().map_or(0, |data| data.len());
        let with_data = size(&event.data) < FRAME_BYTES_MAX;
        let with_previous =
            with_data && size(&event.data) + size(&event.previous) < FRAME_BYTES_MAX;
        let text = event_text(&event, with_data, with_previous);
        Self {
            seq: event.seq,
            scope: event.scope,
            key: event.key,
            text: Utf8Bytes::from(text),
        }
    }
}

/// An event as JSON text on one line.
fn event_text(event: &MemoryEvent, with_data: bool, with_previous: bool) -> String {
    let mut out = Text::object(event.data.as_ref().map_or(256, |data| data.len() + 256));
    out.string("id", &event.id);
    out.raw("sequence", event.seq.to_string().as_bytes());
    out.string("type", "memory_change");
    out.string("timestamp", &event.at.rfc3339());
    out.string("scope", &event.scope.scope);
    out.string("scope_id", &event.scope.id);
    out.string("key", &event.key);
    out.string(
        "action",
        match event.action {
            MemoryAction::Set => "set",
            MemoryAction::Delete => "delete",
        },
    );
    let null: &[u8] = b"null";
    let shown = |part: &Option<bytes::Bytes>, on: bool| match part {
        Some(data) if on => data.clone(),
        _ => bytes::Bytes::from_static(null),
    };
    out.raw("data", &shown(&event.data, with_data));
    out.raw("previous_data", &shown(&event.previous, with_previous));
    let omitted: Vec<&str> = [
        ("data", !with_data && event.data.is_some()),
        ("previous_data", !with_previous && event.previous.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, omitted)| omitted.then_some(name))
    .collect();
    if !omitted.is_empty() {
        out.raw("omitted", serde_json::json!(omitted).to_string().as_bytes());
    }
    let by = serde_json::json!({
        "agent_id": event.agent,
        "actor_id": event.actor,
        "workflow_id": event.workflow,
    });
    out.raw("metadata", by.to_string().as_bytes());
    out.end()
}

/// A value as the memory routes answer it.
pub fn row_text(row: &MemoryRow) -> String {
    let mut out = Text::object(row.data.len() + 256);
    out.string("key", &row.key);
    out.raw("data", &row.data);
    named(&mut out, row);
    out.end()
}

/// A line of a list: everything but the value.
pub fn list_text(rows: &[MemoryRow]) -> String {
    let mut all = String::from("[");
    for row in rows {
        if all.len() > 1 {
            all.push(',');
        }
        let mut out = Text::object(row.key.len() + 256);
        out.string("key", &row.key);
        named(&mut out, row);
        all.push_str(&out.end());
    }
    all.push(']');
    all
}

fn named(out: &mut Text, row: &MemoryRow) {
    out.string("scope", &row.scope.scope);
    out.string("scope_id", &row.scope.id);
    out.string("created_at", &row.created_at.rfc3339());
    out.string("updated_at", &row.updated_at.rfc3339());
}

/// Writes a JSON object on one line. Values from outside are put in as they came: a number of
/// 30 digits stays one.
struct Text(Vec<u8>);

impl Text {
    fn object(capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.push(b'{');
        Self(out)
    }

    fn name(&mut self, name: &'static str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn string(&mut self, name: &'static str, value: &str) {
        self.name(name);
        // Writing a string into a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    /// JSON text. Line breaks in it can only stand between tokens, where a space means the same.
    fn raw(&mut self, name: &'static str, json: &[u8]) {
        self.name(name);
        let start = self.0.len();
        self.0.extend_from_slice(json);
        for byte in &mut self.0[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    fn end(mut self) -> String {
        self.0.push(b'}');
        match String::from_utf8(self.0) {
            Ok(text) => text,
            // A store that was written by somebody else; the reader still gets a frame.
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use muster_wire::Timestamp;

    use super::*;

    fn event(data: &str, previous: Option<&str>) -> MemoryEvent {
        MemoryEvent {
            seq: 7,
            id: "evt_1".into(),
            at: Timestamp(0),
            scope: MemoryScope {
                scope: Arc::from("session"),
                id: Arc::from("s\"1"),
            },
            key: "k\n".into(),
            action: MemoryAction::Set,
            data: Some(Bytes::copy_from_slice(data.as_bytes())),
            previous: previous.map(|p| Bytes::copy_from_slice(p.as_bytes())),
            agent: Some("a".into()),
            actor: None,
            workflow: None,
        }
    }

    #[test]
    fn values_are_passed_on_as_they_came_on_one_line() {
        let change = Change::new(event(
            "{\r\n\"n\": 123456789012345678901234567890.10}",
            None,
        ));
        assert!(!change.text.contains(['\n', '\r']));
        assert!(change.text.contains("123456789012345678901234567890.10"));
        let back: serde_json::Value = serde_json::from_str(&change.text).unwrap();
        assert_eq!(back["key"], "k\n");
        assert_eq!(back["type"], "memory_change");
        assert_eq!(back["scope_id"], "s\"1");
        assert_eq!(back["previous_data"], serde_json::Value::Null);
        assert_eq!(back["metadata"]["agent_id"], "a");
        assert_eq!(back["metadata"]["actor_id"], serde_json::Value::Null);
        assert!(back.get("omitted").is_none());
    }

    #[test]
    fn a_value_too_large_for_a_frame_is_left_out_and_named() {
        let large = format!("\"{}\"", "x".repeat(FRAME_BYTES_MAX));
        let both = Change::new(event(&large, Some("1")));
        let back: serde_json::Value = serde_json::from_str(&both.text).unwrap();
        assert_eq!(back["data"], serde_json::Value::Null);
        assert_eq!(
            back["omitted"],
            serde_json::json!(["data", "previous_data"])
        );
        let previous = Change::new(event("1", Some(&large)));
        let back: serde_json::Value = serde_json::from_str(&previous.text).unwrap();
        assert_eq!(back["data"], 1);
        assert_eq!(back["omitted"], serde_json::json!(["previous_data"]));
    }
}
