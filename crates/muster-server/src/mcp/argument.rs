//! Arguments of tools: each is one row from which both the schema that clients see and the check
//! of what they send are made, so that the two cannot differ.

use muster_wire::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::api::problem::Problem;
use crate::json::Members;

/// One argument.
#[derive(Debug)]
pub(super) struct Argument {
    /// Its name.
    pub(super) name: &'static str,
    /// What it may be.
    pub(super) kind: Kind,
    /// Whether a call without it is refused.
    pub(super) required: bool,
    /// What it is for.
    pub(super) about: &'static str,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Text of 1 to so many bytes.
    Text(usize),
    /// One line of 1 to so many visible ASCII characters, blanks only between them: what may
    /// stand in a header.
    Line(usize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words.
    Words(&'static [&'static str]),
    /// At most so many texts.
    Texts(usize),
    /// A whole number within these bounds.
    Whole(i64, i64),
    /// An object.
    Object,
    /// A moment in RFC 3339.
    Moment,
}

/// The longest text in a list of them.
const ITEM_MAX: usize = 256;

/// An argument that may be left out.
pub(super) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument {
        name,
        kind,
        required: false,
        about,
    }
}

/// An argument that must be there.
pub(super) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument {
        name,
        kind,
        required: true,
        about,
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(arguments: &[Argument]) -> Map<String, Value> {
    let mut properties = Map::new();
    for argument in arguments {
        let mut property = argument.kind.schema();
        property.insert("description".into(), argument.about.into());
        properties.insert(argument.name.into(), property.into());
    }
    let required = arguments.iter().filter(|argument| argument.required);
    let required: Vec<&str> = required.map(|argument| argument.name).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.into());
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

impl Kind {
    fn schema(self) -> Map<String, Value> {
        let schema = match self {
            Kind::Text(max) => json!({"type": "string", "minLength": 1, "maxLength": max}),
            Kind::Line(max) => json!({
                "type": "string", "maxLength": max, "pattern": "^[!-~]([ -~]*[!-~])?$",
            }),
            Kind::Word(words) => json!({"type": "string", "enum": words}),
            Kind::Words(words) => json!({
                "type": "array", "items": {"type": "string", "enum": words}, "maxItems": words.len(),
            }),
            Kind::Texts(max) => json!({
                "type": "array", "maxItems": max,
                "items": {"type": "string", "minLength": 1, "maxLength": ITEM_MAX},
            }),
            Kind::Whole(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Kind::Object => json!({"type": "object"}),
            Kind::Moment => json!({"type": "string", "format": "date-time"}),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// What it must be, for the message of a refusal.
    fn words(self) -> String {
        match self {
            Kind::Text(max) => format!("text of 1 to {max} bytes"),
            Kind::Line(max) => format!("1 to {max} visible ASCII characters"),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Words(words) => format!("a list of some of {}", words.join(", ")),
            Kind::Texts(max) => format!("a list of at most {max} texts"),
            Kind::Whole(min, max) => format!("a whole number from {min} to {max}"),
            Kind::Object => "an object".into(),
            Kind::Moment => "a moment like 2026-01-31T12:00:00Z".into(),
        }
    }

    fn fits(self, raw: &RawValue) -> bool {
        match self {
            Kind::Text(max) => text(raw).is_some_and(|text| (1..=max).contains(&text.len())),
            Kind::Line(max) => text(raw).is_some_and(|text| {
                let inside = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
                inside && text.trim() == text && (1..=max).contains(&text.len())
            }),
            Kind::Word(words) => text(raw).is_some_and(|text| words.contains(&text.as_str())),
            Kind::Words(words) => texts(raw).is_some_and(|given| {
                given.len() <= words.len()
                    && given.iter().all(|word| words.contains(&word.as_str()))
            }),
            Kind::Texts(max) => texts(raw).is_some_and(|given| {
                given.len() <= max
                    && given
                        .iter()
                        .all(|text| (1..=ITEM_MAX).contains(&text.len()))
            }),
            Kind::Whole(min, max) => whole(raw).is_some_and(|n| (min..=max).contains(&n)),
            Kind::Object => raw.get().starts_with('{'),
            Kind::Moment => text(raw).is_some_and(|text| Timestamp::parse(&text).is_some()),
        }
    }
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn texts(raw: &RawValue) -> Option<Vec<String>> {
    serde_json::from_str(raw.get()).ok()
}

/// `5.0` is whole too: JSON does not tell the two apart.
fn whole(raw: &RawValue) -> Option<i64> {
    if let Ok(number) = serde_json::from_str(raw.get()) {
        return Some(number);
    }
    let number: f64 = serde_json::from_str(raw.get()).ok()?;
    let small = number.fract() == 0.0 && number.abs() < 9e15;
    // Checked to be whole and within range.
    small.then_some(number as i64)
}

/// The arguments of one call, checked against their rows.
#[derive(Debug)]
pub(super) struct Arguments<'a>(Vec<(&'static str, &'a RawValue)>);

impl<'a> Arguments<'a> {
    /// Reads them; `null` is the same as absent.
    ///
    /// # Errors
    /// 400 that names the argument and what it must be, never what it was.
    pub(super) fn read(
        tool: &str,
        rows: &[Argument],
        given: Option<&'a [u8]>,
    ) -> Result<Self, Problem> {
        let wrong = |message: String| Problem::validation(format!("{tool}: {message}"));
        let members = match given {
            None | Some(b"null") => Vec::new(),
            Some(bytes) => {
                let Members(members) = serde_json::from_slice(bytes)
                    .map_err(|_| wrong("arguments must be an object".into()))?;
                members
            }
        };
        let mut read: Vec<(&'static str, &'a RawValue)> = Vec::with_capacity(members.len());
        for (name, raw) in members {
            let Some(row) = rows.iter().find(|row| row.name == name) else {
                return Err(wrong(unknown(&name, rows)));
            };
            if read.iter().any(|(other, _)| *other == row.name) {
                return Err(wrong(format!("{name} is there twice")));
            }
            if raw.get() == "null" {
                continue;
            }
            if !row.kind.fits(raw) {
                return Err(wrong(format!("{name} must be {}", row.kind.words())));
            }
            read.push((row.name, raw));
        }
        let missing = rows
            .iter()
            .find(|row| row.required && read.iter().all(|(name, _)| *name != row.name));
        match missing {
            None => Ok(Self(read)),
            Some(row) => {
                let (name, kind) = (row.name, row.kind.words());
                Err(wrong(format!("{name} is required: {kind}")))
            }
        }
    }

    /// The value as it came.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.map(|(_, raw)| *raw)
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(text)
    }

    /// Texts; none when absent.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.raw(name).and_then(texts).unwrap_or_default()
    }

    /// A whole number that is not negative: the least the rows allow is 0.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.raw(name)
            .and_then(whole)
            .and_then(|number| u64::try_from(number).ok())
    }
}

/// An argument that there is not. Its name is repeated only where it can be no payload.
fn unknown(name: &str, rows: &[Argument]) -> String {
    let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let known = if known.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("it takes {}", known.join(", "))
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if (1..=32).contains(&name.len()) && name.bytes().all(plain) {
        format!("there is no argument {name}; {known}")
    } else {
        format!("one of the arguments is unknown; {known}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Argument] = &[
        required("id", Kind::Text(8), "Which."),
        optional("n", Kind::Whole(0, 9), "How many."),
        optional("status", Kind::Words(&["a", "b"]), "Which."),
        optional("input", Kind::Object, "What."),
        optional("since", Kind::Moment, "When."),
        optional("key", Kind::Line(5), "Which."),
    ];

    fn read(text: &str) -> Result<Arguments<'_>, String> {
        Arguments::read("tool", ROWS, Some(text.as_bytes())).map_err(|problem| {
            assert_eq!(problem.status, 400);
            problem.body.message
        })
    }

    #[test]
    fn what_fits_is_read_and_null_is_absent() {
        let text = r#"{"id":"x","n":5.0,"status":["b"],"input":{"a":1e400},"since":null}"#;
        let arguments = read(text).unwrap();
        assert_eq!(arguments.text("id").as_deref(), Some("x"));
        assert_eq!(arguments.count("n"), Some(5));
        assert_eq!(arguments.texts("status"), ["b"]);
        assert_eq!(arguments.raw("input").unwrap().get(), r#"{"a":1e400}"#);
        assert!(arguments.raw("since").is_none());
    }

    #[test]
    fn a_refusal_names_the_argument_and_never_the_value() {
        for (text, says) in [
            ("[]", "arguments must be an object"),
            ("\"canary\"", "arguments must be an object"),
            ("{}", "id is required"),
            (r#"{"id":null}"#, "id is required"),
            (r#"{"id":"canary-canary"}"#, "id must be text of 1 to 8"),
            (r#"{"id":"\ud800"}"#, "id must be text"),
            (
                r#"{"id":"x","n":10}"#,
                "n must be a whole number from 0 to 9",
            ),
            (r#"{"id":"x","n":1.5}"#, "n must be"),
            (r#"{"id":"x","n":"1"}"#, "n must be"),
            (r#"{"id":"x","status":"a"}"#, "status must be a list"),
            (
                r#"{"id":"x","status":["canary"]}"#,
                "status must be a list of some of a, b",
            ),
            (r#"{"id":"x","input":[]}"#, "input must be an object"),
            (r#"{"id":"x","since":"canary"}"#, "since must be a moment"),
            (r#"{"id":"x","key":"a\nb"}"#, "key must be 1 to 5 visible"),
            (r#"{"id":"x","key":" a"}"#, "key must be"),
            (r#"{"id":"x","key":"é"}"#, "key must be"),
            (r#"{"id":"x","key":""}"#, "key must be"),
            (r#"{"id":"x","id":"y"}"#, "id is there twice"),
            (
                r#"{"id":"x","N":1}"#,
                "there is no argument N; it takes id, n, status",
            ),
            (
                r#"{"id":"x","canary /7/":1}"#,
                "one of the arguments is unknown",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(says), "{text}: {message}");
            assert!(!message.contains("canary"), "{message}");
        }
    }

    #[test]
    fn the_schema_says_what_the_check_checks() {
        let schema = Value::Object(schema(ROWS));
        let validator = jsonschema::validator_for(&schema).unwrap();
        for text in [
            r#"{"id":"x"}"#,
            r#"{"id":"x","n":9,"status":["a","b"],"input":{}}"#,
            r#"{"id":"x","n":10}"#,
            r#"{"id":""}"#,
            r#"{"id":5}"#,
            r#"{}"#,
            r#"{"id":"x","m":1}"#,
            r#"{"id":"x","status":["c"]}"#,
            r#"{"id":"x","input":[]}"#,
            r#"{"id":"x","key":"a b"}"#,
            r#"{"id":"x","key":"a "}"#,
            r#"{"id":"x","key":"a\n"}"#,
            r#"{"id":"x","key":"123456"}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(validator.is_valid(&value), read(text).is_ok(), "{text}");
        }
    }
}
