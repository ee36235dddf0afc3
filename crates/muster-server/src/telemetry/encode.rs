//! Spans as OTLP's protobuf, by hand: the few messages that are needed, from `trace.proto` of
//! OpenTelemetry 1.x. Knows nothing of executions.

use muster_wire::Timestamp;

use super::context::{Span as SpanId, Trace};

/// What kind of work a span is, in OTLP's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Within the plane.
    Internal = 1,
    /// The plane was asked.
    Server = 2,
    /// The plane asks.
    Client = 3,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// One span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace: Trace,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) state: Option<String>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// Why it did not end well, in a word.
    pub(super) error: Option<String>,
}

/// The status code of a span that did not end well.
const ERROR: u64 = 2;

/// A whole request: all spans of one resource.
pub(super) fn request(resource: &[(&'static str, Value)], spans: &[Span]) -> Vec<u8> {
    let mut scope = Vec::new();
    message(&mut scope, 1, |out| {
        text(out, 1, "muster");
        text(out, 2, env!("CARGO_PKG_VERSION"));
    });
    for span in spans {
        message(&mut scope, 2, |out| put_span(out, span));
    }
    let mut out = Vec::with_capacity(scope.len() + 256);
    message(&mut out, 1, |out| {
        message(out, 1, |out| put_attributes(out, 1, resource));
        bytes(out, 2, &scope);
    });
    out
}

fn put_span(out: &mut Vec<u8>, span: &Span) {
    bytes(out, 1, &span.trace);
    bytes(out, 2, &span.id);
    if let Some(state) = &span.state {
        text(out, 3, state);
    }
    if let Some(parent) = &span.parent {
        bytes(out, 4, parent);
    }
    text(out, 5, &span.name);
    number(out, 6, span.kind as u64);
    fixed(out, 7, nanoseconds(span.start));
    // A clock that was set back makes nothing negative.
    fixed(out, 8, nanoseconds(span.end.max(span.start)));
    put_attributes(out, 9, &span.attributes);
    if let Some(error) = &span.error {
        message(out, 15, |out| {
            text(out, 2, error);
            number(out, 3, ERROR);
        });
    }
}

fn put_attributes(out: &mut Vec<u8>, field: u32, attributes: &[(&'static str, Value)]) {
    for (key, value) in attributes {
        message(out, field, |out| {
            text(out, 1, key);
            message(out, 2, |out| match value {
                Value::Text(value) => text(out, 1, value),
                Value::Flag(value) => number(out, 2, u64::from(*value)),
                Value::Number(value) => number(out, 3, value.cast_unsigned()),
            });
        });
    }
}

fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.0)
        .unwrap_or_default()
        .saturating_mul(1_000)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u32, wire: u64) {
    varint(out, u64::from(field) << 3 | wire);
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    tag(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    bytes(out, field, value.as_bytes());
}

fn message(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    bytes(out, field, &inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that the reference encoder of Python's `opentelemetry-proto` writes for this.
    #[test]
    fn a_span_is_written_as_the_specification_has_it() {
        let span = Span {
            trace: [0xab; 16],
            id: [0xcd; 8],
            parent: None,
            state: None,
            name: "a.f".into(),
            kind: Kind::Server,
            start: Timestamp(1),
            end: Timestamp(300),
            attributes: vec![("n", Value::Number(300)), ("b", Value::Flag(true))],
            error: Some("agent_error".into()),
        };
        let mut out = Vec::new();
        put_span(&mut out, &span);
        let mut wanted = vec![0x0a, 16];
        wanted.extend([0xab; 16]);
        wanted.extend([0x12, 8]);
        wanted.extend([0xcd; 8]);
        wanted.extend([0x2a, 3, b'a', b'.', b'f', 0x30, 2]);
        wanted.push(0x39);
        wanted.extend(1_000u64.to_le_bytes());
        wanted.push(0x41);
        wanted.extend(300_000u64.to_le_bytes());
        wanted.extend([0x4a, 8, 0x0a, 1, b'n', 0x12, 3, 0x18, 0xac, 0x02]);
        wanted.extend([0x4a, 7, 0x0a, 1, b'b', 0x12, 2, 0x10, 1]);
        wanted.extend([0x7a, 15, 0x12, 11]);
        wanted.extend(b"agent_error");
        wanted.extend([0x18, 2]);
        assert_eq!(out, wanted);
    }

    #[test]
    fn a_span_never_ends_before_it_starts() {
        let span = Span {
            trace: [1; 16],
            id: [1; 8],
            parent: None,
            state: None,
            name: String::new(),
            kind: Kind::Internal,
            start: Timestamp(10),
            end: Timestamp(5),
            attributes: Vec::new(),
            error: None,
        };
        let mut out = Vec::new();
        put_span(&mut out, &span);
        assert_eq!(out[out.len() - 8..], 10_000u64.to_le_bytes());
    }
}
