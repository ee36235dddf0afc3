//! What is answered to a frame that cannot be read: where the fault is, never what was there.

use muster_wire::fleet::frame::PlaneFrame;

pub(super) fn error(id: Option<String>, code: &str, message: &str) -> PlaneFrame {
    PlaneFrame::Error {
        id: id.unwrap_or_else(|| muster_wire::mint("err")),
        ok: false,
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// The answer to a frame that cannot be read: where the fault is, never what was there.
pub(super) fn invalid(text: &str, why: &serde_json::Error) -> PlaneFrame {
    let message = if text.is_empty() {
        "frames are JSON text".to_owned()
    } else {
        format!("the frame cannot be read: {}", wrong(text, why))
    };
    error(id_of(text), "invalid_message", &message)
}

/// What is wrong with a frame, without what it says. A value of a known shape that does not fit
/// has no place that the parser knows.
fn wrong(text: &str, why: &serde_json::Error) -> String {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        _kind: String,
    }
    if why.is_syntax() || why.is_eof() {
        return format!("no JSON at line {}, column {}", why.line(), why.column());
    }
    if serde_json::from_str::<Typed>(text).is_err() {
        return "it is no object with a text \"type\"".into();
    }
    let said = why.to_string();
    // Names of fields are ours; what was found is not repeated.
    match said.split_once("missing field `") {
        Some((_, rest)) => {
            let field = rest.split('`').next().unwrap_or_default();
            format!("the field {field:?} is missing")
        }
        None => match said.rsplit_once(", expected ") {
            Some((_, expected)) => {
                let expected = expected.split(" at line").next().unwrap_or_default();
                format!("a field has another type than its own, which is {expected}")
            }
            None => "a field has another type than its own".into(),
        },
    }
}

/// The id of a frame that is otherwise unreadable.
pub(super) fn id_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        id: Option<String>,
    }
    let envelope: Option<Envelope> = serde_json::from_str(text).ok();
    envelope
        .and_then(|envelope| envelope.id)
        .filter(|id| id.len() <= 256)
}

#[cfg(test)]
mod tests {
    use muster_wire::fleet::frame::read_node_frame;

    use super::*;

    #[test]
    fn an_unreadable_frame_is_answered_with_its_id_and_without_its_text() {
        let text = r#"{"v":1,"type":"muster.beat","id":"beat_7","seq":"canary"}"#;
        let why = read_node_frame(text).unwrap_err();
        let PlaneFrame::Error {
            id, code, message, ..
        } = invalid(text, &why)
        else {
            panic!("no error");
        };
        assert_eq!((id.as_str(), code.as_str()), ("beat_7", "invalid_message"));
        assert!(!message.contains("canary"));
        assert!(message.contains("another type"), "{message}");
        for (text, says) in [
            (r#"{"type":"muster.beat","id":"b"}"#, "\"seq\" is missing"),
            ("{", "no JSON at line 1, column 1"),
            ("[]", "no object with a text"),
            ("{}", "no object with a text"),
            (r#"{"type":7}"#, "no object with a text"),
        ] {
            let PlaneFrame::Error { message, .. } =
                invalid(text, &read_node_frame(text).unwrap_err())
            else {
                panic!("no error");
            };
            assert!(message.contains(says), "{text}: {message}");
            assert!(!message.contains("line 0"), "{text}: {message}");
        }
        assert_eq!(id_of("nonsense"), None);
    }
}
