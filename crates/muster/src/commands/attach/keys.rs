//! The key that leaves a terminal, and finding it in what is typed.

use muster_wire::Category;

use crate::failure::{Failure, Outcome};

/// A control character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DetachKey(u8);

impl DetachKey {
    /// Reads `ctrl-]`, `ctrl-a`, `^]`.
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let lower = text.to_ascii_lowercase();
        let letter = lower
            .strip_prefix("ctrl-")
            .or_else(|| lower.strip_prefix('^'))
            .filter(|letter| letter.len() == 1)
            .and_then(|letter| letter.bytes().next());
        match letter {
            Some(letter @ (b'a'..=b'z' | b'[' | b'\\' | b']' | b'^' | b'_')) => {
                Ok(Self(letter & 0x1f))
            }
            _ => Err(Failure::new(
                Category::Validation,
                format!("--detach-key {text}: it is ctrl- and a letter, or one of [ ] \\ ^ _"),
            )),
        }
    }

    /// What of a piece of typing goes to the worker, and whether the key came after it.
    pub(super) fn split(self, typed: &[u8]) -> (&[u8], bool) {
        match typed.iter().position(|byte| *byte == self.0) {
            Some(at) => (&typed[..at], true),
            None => (typed, false),
        }
    }
}

impl std::fmt::Display for DetachKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ctrl-{}", char::from(self.0 | 0x40))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_read_found_and_named() {
        let key = DetachKey::parse("ctrl-]").unwrap();
        assert_eq!(key, DetachKey(0x1d));
        assert_eq!(key.to_string(), "Ctrl-]");
        assert_eq!(key.split(b"ls\r\x1dmore"), (&b"ls\r"[..], true));
        assert_eq!(key.split(b"ls\r"), (&b"ls\r"[..], false));
        assert_eq!(DetachKey::parse("Ctrl-A").unwrap().to_string(), "Ctrl-A");
        assert_eq!(DetachKey::parse("^]").unwrap(), key);
        for wrong in ["]", "ctrl-", "ctrl-1", "ctrl-ab", "alt-x", ""] {
            assert_eq!(DetachKey::parse(wrong).unwrap_err().exit_code(), 2);
        }
    }
}
