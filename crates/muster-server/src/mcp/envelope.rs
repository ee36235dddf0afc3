//! One JSON-RPC message as bytes. Says what is malformed, and takes a tool's arguments out as
//! they came: the library would turn every number into a float and every text into a tree.

use std::ops::Range;

use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::{StatusCode, header};
use muster_wire::{Category, ErrorBody};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json;

/// JSON-RPC: the text is no JSON.
const PARSE_ERROR: i32 = -32_700;
/// JSON-RPC: the JSON is no request.
const INVALID_REQUEST: i32 = -32_600;
/// JSON-RPC: a fault of the server.
const INTERNAL_ERROR: i32 = -32_603;

/// The longest id, as it is written.
const ID_MAX: usize = 512;

/// A message that is well formed as far as this module looks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// Its id as it came; `null` when it has none.
    pub(super) id: String,
    /// Where the arguments of a tool call are.
    arguments: Option<Range<usize>>,
}

/// What is not taken as a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    status: StatusCode,
    code: i32,
    id: String,
    category: Category,
    message: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Reads a message.
///
/// # Errors
/// With what is wrong, without the text itself.
pub(super) fn read(body: &[u8]) -> Result<Envelope, Fault> {
    if std::str::from_utf8(body).is_err() {
        return Err(Fault::parse("the body is not UTF-8"));
    }
    match json::check(body) {
        Ok(_) => {}
        Err(json::NotJson::Deep) => {
            return Err(Fault::request(
                "null",
                format!("the body nests deeper than {}", json::DEPTH_MAX),
            ));
        }
        Err(error) => return Err(Fault::parse(error.to_string())),
    }
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Fault::request(
            "null",
            "batches are not taken: send one message in each request",
        ));
    }
    let message: Message<'_> = serde_json::from_slice(body).map_err(|error| {
        Fault::request(
            "null",
            format!("not a JSON-RPC message: {}", json::place(&error)),
        )
    })?;
    let id = message.id.map_or("null", RawValue::get);
    let fault = |why: &str| Err(Fault::request(id, why));
    if !is_id(id) {
        return Err(Fault::request(
            "null",
            format!("id must be a whole number or a text of at most {ID_MAX} bytes"),
        ));
    }
    if message.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return fault("jsonrpc must be \"2.0\"");
    }
    let Some(method) = message.method else {
        return if message.result.is_some() || message.error.is_some() {
            fault("a server without sessions asks nothing, so it takes no answers")
        } else {
            fault("method is missing")
        };
    };
    if !method.get().starts_with('"') {
        return fault("method must be a text");
    }
    // `null` is no id either.
    if message.id.is_none() && !method.get().starts_with("\"notifications/") {
        return fault("a request needs an id");
    }
    if let Some(params) = message.params
        && !params.get().starts_with('{')
    {
        return fault("params must be an object");
    }
    let arguments = match message.params {
        Some(params) if method.get() == "\"tools/call\"" => {
            let Ok(params) = serde_json::from_str::<Params<'_>>(params.get()) else {
                return fault("params has a member twice");
            };
            params.arguments.map(|raw| place(body, raw.get()))
        }
        _ => None,
    };
    Ok(Envelope {
        id: id.to_owned(),
        arguments,
    })
}

/// Whether an id can be given back as it came.
fn is_id(id: &str) -> bool {
    let is_text = || id.len() <= ID_MAX && serde_json::from_str::<String>(id).is_ok();
    id == "null" || id.parse::<i64>().is_ok() || is_text()
}

/// Where a part of a text is in it.
fn place(whole: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

impl Envelope {
    /// The arguments of a tool call.
    pub(super) fn arguments(&self, body: &Bytes) -> Option<Bytes> {
        Some(body.slice(self.arguments.clone()?))
    }

    /// The message for the library: with empty arguments.
    pub(super) fn without_arguments(&self, body: &Bytes) -> Bytes {
        let Some(arguments) = &self.arguments else {
            return body.clone();
        };
        let mut short = BytesMut::with_capacity(body.len() - arguments.len() + 2);
        short.extend_from_slice(&body[..arguments.start]);
        short.extend_from_slice(b"{}");
        short.extend_from_slice(&body[arguments.end..]);
        short.freeze()
    }
}

impl Fault {
    fn parse(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: PARSE_ERROR,
            id: "null".into(),
            category: Category::Validation,
            message: message.into(),
        }
    }

    fn request(id: &str, message: impl Into<String>) -> Self {
        Self {
            code: INVALID_REQUEST,
            id: id.to_owned(),
            ..Self::parse(message)
        }
    }

    /// A message that is too large without the arguments of a tool.
    pub(super) fn too_large(id: &str, max: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            category: Category::TooLarge,
            ..Self::request(
                id,
                format!("without a tool's arguments a message has at most {max} bytes"),
            )
        }
    }

    /// What the library refused in its own words, or a fault of ours.
    pub(super) fn refused(id: &str, status: StatusCode, message: String) -> Self {
        let ours = status.is_server_error();
        Self {
            status,
            code: if ours {
                INTERNAL_ERROR
            } else {
                INVALID_REQUEST
            },
            id: id.to_owned(),
            category: if ours {
                Category::InternalError
            } else {
                Category::Validation
            },
            message,
        }
    }
}

impl IntoResponse for Fault {
    /// A JSON-RPC error whose data is the plane's one error shape.
    fn into_response(self) -> Response {
        let data = ErrorBody::new(self.category, self.message);
        let error = serde_json::json!({
            "code": self.code, "message": data.message, "data": data,
        });
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}",
            self.id
        );
        (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            body,
        )
            .into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_out_to_the_byte_and_the_rest_stays() {
        let text = r#" {"jsonrpc":"2.0","id":"a\"b","method":"tools/call","params":{"name":"t","arguments":{"n": 1e400, "s":"\ud800"} ,"_meta":{"x":1}}}"#;
        let body = Bytes::from_static(text.as_bytes());
        let envelope = read(&body).unwrap();
        assert_eq!(envelope.id, r#""a\"b""#);
        let arguments = envelope.arguments(&body).unwrap();
        assert_eq!(&arguments[..], br#"{"n": 1e400, "s":"\ud800"}"#);
        let short = envelope.without_arguments(&body);
        let expected = text.replace(r#"{"n": 1e400, "s":"\ud800"}"#, "{}");
        assert_eq!(&short[..], expected.as_bytes());
    }

    #[test]
    fn other_methods_keep_their_params() {
        let body = Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"arguments":{"a":1}}}"#,
        );
        let envelope = read(&body).unwrap();
        assert_eq!(envelope.without_arguments(&body), body);
        assert_eq!(envelope.arguments(&body), None);
    }

    #[test]
    fn what_is_malformed_has_the_protocols_code() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(600), "]".repeat(600));
        for (body, code) in [
            (&b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}"[..], PARSE_ERROR),
            (b"", PARSE_ERROR),
            (b"{", PARSE_ERROR),
            (b"nonsense", PARSE_ERROR),
            (deep.as_bytes(), INVALID_REQUEST),
            (b"[]", INVALID_REQUEST),
            (b"5", INVALID_REQUEST),
            (b"{}", INVALID_REQUEST),
            (br#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1,"method":5}"#, INVALID_REQUEST),
            (
                br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
                INVALID_REQUEST,
            ),
            (br#"{"jsonrpc":"2.0","method":"m"}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, INVALID_REQUEST),
            (br#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, INVALID_REQUEST),
            (
                br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{},"arguments":{}}}"#,
                INVALID_REQUEST,
            ),
        ] {
            let fault = read(body).unwrap_err();
            assert_eq!(fault.code, code, "{}", String::from_utf8_lossy(body));
        }
    }
}
