//! The text of lines: cut to its bounds, without the secrets of attempts.

use std::borrow::Cow;

use bytes::Bytes;
use muster_store::annex::LogRow;
use muster_wire::{ExecutionId, Timestamp};

/// The longest message of a line or note, and the longest attributes.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// The longest of the short fields: level, source, kind, tag.
pub const WORD_BYTES_MAX: usize = 128;

/// Characters of an attempt's secret.
const SECRET: usize = 16;

/// Takes out the tails of attempt ids, `~<n>.<secret>`: an agent logs its own id freely, and
/// the plane must not show it.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('~') {
        let (head, tail) = rest.split_at(at);
        kept.push_str(head);
        let length = secret_tail(tail.as_bytes());
        if length == 0 {
            kept.push('~');
            rest = &tail[1..];
        } else {
            rest = &tail[length..];
        }
    }
    if kept.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// The length of the attempt's tail that this starts with; 0 when it does not.
fn secret_tail(bytes: &[u8]) -> usize {
    let digits = bytes[1..]
        .iter()
        .take(10)
        .take_while(|b| b.is_ascii_digit())
        .count();
    if digits == 0 || bytes.get(1 + digits) != Some(&b'.') {
        return 0;
    }
    let start = 2 + digits;
    let secret = bytes[start..]
        .iter()
        .take(SECRET)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        .count();
    if secret == SECRET { start + SECRET } else { 0 }
}

/// Cuts text to a bound, with a mark where something is missing.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let mut end = max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

/// A message or word as it is kept.
pub fn kept(text: &str, max: usize) -> String {
    cut(&without_secrets(text), max).into_owned()
}

/// The line that stands for lines that were dropped before they could be written.
pub(super) fn gap(execution: ExecutionId, count: u64, at: Timestamp) -> LogRow {
    LogRow {
        seq: 0,
        execution,
        at,
        level: "warn".into(),
        source: "muster".into(),
        event_type: "log.gap".into(),
        message: format!("{count} lines were dropped: they came faster than they could be written"),
        attributes: Bytes::from_static(b"{}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tails_of_attempt_ids_go() {
        for (text, want) in [
            ("exec_1~2.ABCDEFGHIJKLMNOP ended", "exec_1 ended"),
            (
                r#"{"id":"exec_1~12.AB-DEFGHIJ_LMNO9","n":1}"#,
                r#"{"id":"exec_1","n":1}"#,
            ),
            ("a~1.ABCDEFGHIJKLMNOPb~1.ABCDEFGHIJKLMNOP", "ab"),
            ("~/home", "~/home"),
            ("x~1.short", "x~1.short"),
            ("x~.ABCDEFGHIJKLMNOP", "x~.ABCDEFGHIJKLMNOP"),
            ("~", "~"),
            ("~1", "~1"),
            ("~1.", "~1."),
            ("~~1.ABCDEFGHIJKLMNOP~", "~~"),
            ("é~1.ABCDEFGHIJKLMNOPé", "éé"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(text), want, "{text:?}");
        }
        assert!(matches!(without_secrets("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcdef", 5), "ab…");
        assert_eq!(cut("ééé", 5), "é…");
        assert_eq!(cut("é", 1), "…");
    }
}
