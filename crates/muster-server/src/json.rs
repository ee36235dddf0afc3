//! JSON as bytes: depth, canonical text, single members. No value tree is built and no number
//! is turned into a float, so whatever came in goes out the same.

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep objects and lists may nest.
pub const DEPTH_MAX: usize = 512;

/// Why a text is not taken as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    /// It breaks the grammar, or is not UTF-8.
    #[error("not JSON: {0}")]
    Grammar(String),
    /// It nests deeper than [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX}")]
    Deep,
}

/// Checks grammar, UTF-8 and depth.
///
/// # Errors
/// Says what is wrong, without the text itself.
pub fn check(bytes: &[u8]) -> Result<&RawValue, NotJson> {
    if depth(bytes) > DEPTH_MAX {
        return Err(NotJson::Deep);
    }
    serde_json::from_slice(bytes).map_err(|error| NotJson::Grammar(place(&error)))
}

/// Where and what, without the text: serde's message may quote it.
pub fn place(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax => "it breaks the grammar",
        serde_json::error::Category::Data => "a value has the wrong type",
        serde_json::error::Category::Io => "it cannot be read",
    };
    format!("{what} at line {} column {}", error.line(), error.column())
}

/// The deepest nesting, counted outside strings.
pub fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut most, mut at) = (0usize, 0usize, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    most
}

/// The place of the quote that ends the string which begins at `start`, or the end.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The canonical text of checked JSON: no blanks, members sorted by key, escapes in strings
/// resolved, numbers as they were written.
pub fn canonical(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    Canon {
        bytes: text.as_bytes(),
        at: 0,
    }
    .value(&mut out);
    out
}

struct Canon<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Canon<'_> {
    fn value(&mut self, out: &mut Vec<u8>) {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.list(out),
            b'"' => self.string(out),
            _ => {
                let start = self.at;
                while self.at < self.bytes.len()
                    && !matches!(
                        self.bytes[self.at],
                        b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'
                    )
                {
                    self.at += 1;
                }
                out.extend_from_slice(&self.bytes[start..self.at]);
            }
        }
    }

    fn object(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        out.push(b'{');
        // (start of the key, end of the key, end of the value) in `out`.
        let mut members: Vec<(usize, usize, usize)> = Vec::new();
        while !matches!(self.peek(), b'}' | 0) {
            let start = out.len();
            self.string(out);
            let key_end = out.len();
            self.peek();
            self.at += 1;
            out.push(b':');
            self.value(out);
            members.push((start, key_end, out.len()));
            if self.peek() == b',' {
                self.at += 1;
            }
            out.push(b',');
        }
        self.at += 1;
        if out.last() == Some(&b',') {
            out.pop();
        }
        let key = |m: &(usize, usize, usize)| out[m.0..m.1].to_vec();
        if !members
            .windows(2)
            .all(|two| out[two[0].0..two[0].1] <= out[two[1].0..two[1].1])
        {
            let first = members[0].0;
            members.sort_by_cached_key(key);
            let mut sorted = Vec::with_capacity(out.len() - first);
            for member in &members {
                if !sorted.is_empty() {
                    sorted.push(b',');
                }
                sorted.extend_from_slice(&out[member.0..member.2]);
            }
            out.truncate(first);
            out.extend_from_slice(&sorted);
        }
        out.push(b'}');
    }

    fn list(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        out.push(b'[');
        while !matches!(self.peek(), b']' | 0) {
            self.value(out);
            if self.peek() == b',' {
                self.at += 1;
                out.push(b',');
            }
        }
        self.at += 1;
        out.push(b']');
    }

    fn string(&mut self, out: &mut Vec<u8>) {
        self.peek();
        let start = self.at;
        let end = string_end(self.bytes, start).min(self.bytes.len().saturating_sub(1));
        self.at = end + 1;
        let raw = &self.bytes[start..=end];
        if raw.contains(&b'\\')
            && let Ok(text) = serde_json::from_slice::<String>(raw)
            && let Ok(plain) = serde_json::to_vec(&text)
        {
            out.extend_from_slice(&plain);
        } else {
            // Without escapes, or with a lone surrogate that no string can hold.
            out.extend_from_slice(raw);
        }
    }

    /// The next byte that is no blank; 0 at the end.
    fn peek(&mut self) -> u8 {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return *byte;
            }
            self.at += 1;
        }
        0
    }
}

/// The members of an object in order, values as raw text; `None` when it is no object.
pub struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> de::Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key, &'de RawValue>()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Each)
    }
}

/// A key; one with a lone surrogate is kept with replacement characters instead of failing.
struct Key(String);

impl<'de> de::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(text.to_owned()))
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Key, E> {
                Ok(Key(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        from.deserialize_bytes(Text)
    }
}

/// Takes one member out of an object's text. `None` when it is no object or has no such member;
/// the rest keeps its text to the byte.
pub fn take_member(text: &str, name: &str) -> Option<(String, String)> {
    if !text.trim_start().starts_with('{') || !text.contains(name) {
        return None;
    }
    let members = spans(text)?;
    let at = members.iter().position(|member| member.key == name)?;
    let taken = text[members[at].value.clone()].to_owned();
    let mut rest = String::with_capacity(text.len());
    rest.push('{');
    for (index, member) in members.iter().enumerate() {
        if index != at {
            if rest.len() > 1 {
                rest.push(',');
            }
            rest.push_str(&text[member.start..member.value.end]);
        }
    }
    rest.push('}');
    Some((taken, rest))
}

struct Span {
    start: usize,
    key: String,
    value: std::ops::Range<usize>,
}

/// Where the members of an object are in its text.
fn spans(text: &str) -> Option<Vec<Span>> {
    let Members(members) = serde_json::from_str(text).ok()?;
    let base = text.as_ptr() as usize;
    let mut found = Vec::with_capacity(members.len());
    let mut from = text.find('{')? + 1;
    for (key, value) in members {
        let start = from + text[from..].find('"')?;
        let value_start = value.get().as_ptr() as usize - base;
        let value = value_start..value_start + value.get().len();
        from = value.end;
        found.push(Span { start, key, value });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canon(text: &str) -> String {
        String::from_utf8(canonical(text)).unwrap()
    }

    #[test]
    fn canonical_text_sorts_keys_keeps_numbers_and_resolves_escapes() {
        for (text, want) in [
            (
                r#" { "b" : 1 , "a" : [ 1.0 , 2e400, 123456789012345678901234567890 ] } "#,
                r#"{"a":[1.0,2e400,123456789012345678901234567890],"b":1}"#,
            ),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
            (
                r#"{"z":{"y":1,"x":{}},"a":[]}"#,
                r#"{"a":[],"z":{"x":{},"y":1}}"#,
            ),
            (r#"{}"#, "{}"),
            (r#"[ ]"#, "[]"),
            (r#""\ud800""#, r#""\ud800""#),
            (r#"{"a":"x\"},{","b":null}"#, r#"{"a":"x\"},{","b":null}"#),
        ] {
            check(text.as_bytes()).unwrap();
            assert_eq!(canon(text), want);
        }
    }

    #[test]
    fn depth_counts_outside_strings_only() {
        assert_eq!(depth(br#"{"a":"[[[[","b":[[]]}"#), 3);
        let deep = "[".repeat(513) + &"]".repeat(513);
        assert_eq!(check(deep.as_bytes()).unwrap_err(), NotJson::Deep);
        assert!(check(br#""\ud800""#).is_ok());
        assert!(check(b"1e400").is_ok());
        assert!(check(b"\"\xff\"").is_err());
    }

    #[test]
    fn a_member_is_taken_and_the_rest_keeps_its_text() {
        let text = r#"{ "a": 1.00, "__u__": {"x":[1]}, "b" : "__u__" }"#;
        let (taken, rest) = take_member(text, "__u__").unwrap();
        assert_eq!(taken, r#"{"x":[1]}"#);
        assert_eq!(rest, r#"{"a": 1.00,"b" : "__u__"}"#);
        assert_eq!(take_member(r#"["__u__"]"#, "__u__"), None);
        assert_eq!(take_member(r#"{"a":"__u__"}"#, "__u__"), None);
        assert_eq!(take_member(r#"{"__u__":1}"#, "__u__").unwrap().1, "{}");
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                proptest::collection::hash_map(".{0,6}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_means_the_same_and_does_not_depend_on_layout(value in any_json()) {
            let compact = serde_json::to_string(&value).unwrap();
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let canonical = canon(&compact);
            prop_assert_eq!(&canonical, &canon(&pretty));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&canonical).unwrap(), value);
        }

        #[test]
        fn no_text_makes_the_checks_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(raw) = check(&bytes) {
                canonical(raw.get());
                take_member(raw.get(), "a");
            }
        }
    }
}
