//! Writes JSON answers by hand where they are hot, or where they hold text that must not be
//! read: a stored result goes out as the bytes that came in.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use muster_engine::row::Payload;
use muster_wire::Timestamp;

/// An object or a list that is being written.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Begins an object.
    pub fn object() -> Self {
        Self::object_in(Vec::with_capacity(512))
    }

    /// Begins an object behind what is written already.
    pub fn object_in(mut out: Vec<u8>) -> Self {
        out.push(b'{');
        Self { out }
    }

    /// A member whose value is JSON already.
    pub fn raw(&mut self, name: &str, json: &[u8]) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(json);
        self
    }

    /// A member of text.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.name(name);
        string(&mut self.out, text);
        self
    }

    /// A member of text, if there is one.
    pub fn text_if(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(name, text);
        }
        self
    }

    /// A member of text that came from outside as bytes, if there is one.
    pub fn bytes_if(&mut self, name: &str, text: Option<&Payload>) -> &mut Self {
        if let Some(text) = text {
            self.text(name, &String::from_utf8_lossy(&text.0));
        }
        self
    }

    /// A number.
    pub fn number(&mut self, name: &str, number: i64) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(number.to_string().as_bytes());
        self
    }

    /// A truth value.
    pub fn flag(&mut self, name: &str, flag: bool) -> &mut Self {
        self.raw(name, if flag { b"true" } else { b"false" })
    }

    /// A moment, if there is one.
    pub fn time_if(&mut self, name: &str, at: Option<Timestamp>) -> &mut Self {
        if let Some(at) = at {
            self.text(name, &at.rfc3339());
        }
        self
    }

    /// Anything that serializes.
    pub fn value(&mut self, name: &str, value: &impl serde::Serialize) -> &mut Self {
        self.name(name);
        if serde_json::to_writer(&mut self.out, value).is_err() {
            self.out.extend_from_slice(b"null");
        }
        self
    }

    /// A list whose items are written one by one.
    pub fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(Vec<u8>, T) -> Vec<u8>,
    ) -> &mut Self {
        self.name(name);
        let mut out = std::mem::take(&mut self.out);
        out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out = write(out, item);
        }
        out.push(b']');
        self.out = out;
        self
    }

    /// Ends it.
    pub fn end(&mut self) -> Vec<u8> {
        self.out.push(b'}');
        std::mem::take(&mut self.out)
    }

    /// Ends it as an answer.
    pub fn answer(&mut self, status: StatusCode) -> Response {
        answer(status, self.end().into())
    }

    fn name(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        // Names are ours: letters and underscores.
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

/// Writes a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    let plain = text.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else if serde_json::to_writer(&mut *out, text).is_err() {
        out.extend_from_slice(b"\"\"");
    }
}

/// A JSON answer.
pub fn answer(status: StatusCode, body: Bytes) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::object();
        writer
            .text("a", "x\"\n\u{0}é")
            .raw("b", b"[1e400]")
            .number("c", -5)
            .flag("d", true)
            .text_if("e", None)
            .list("f", [1, 2], |mut out, item| {
                out.extend_from_slice(item.to_string().as_bytes());
                out
            });
        let text = String::from_utf8(writer.end()).unwrap();
        assert_eq!(
            text,
            "{\"a\":\"x\\\"\\n\\u0000é\",\"b\":[1e400],\"c\":-5,\"d\":true,\"f\":[1,2]}"
        );
        assert_eq!(Writer::object().end(), b"{}");
    }
}
