//! Cursors of the event sequence: opaque outside. Inside, the number and a mark of the store
//! they belong to, so that one from another store is noticed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::app::App;

/// Writes and reads cursors of one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursors([u8; 4]);

impl Cursors {
    /// Those of the plane's store.
    pub(crate) fn of(app: &App) -> Self {
        Self::marked(&app.stores.decisions.about().mark)
    }

    fn marked(mark: &str) -> Self {
        let mut short = [0; 4];
        short.copy_from_slice(&blake3::hash(mark.as_bytes()).as_bytes()[..4]);
        Self(short)
    }

    /// The text of a position.
    pub(crate) fn text(self, seq: u64) -> String {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.0);
        bytes[4..].copy_from_slice(&seq.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a text. That of another store is a position that is gone: the largest.
    /// `None` when it is no cursor.
    pub(crate) fn read(self, text: &str) -> Option<u64> {
        let bytes: [u8; 12] = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        let seq = bytes[4..]
            .iter()
            .fold(0, |seq, byte| seq << 8 | u64::from(*byte));
        Some(if bytes[..4] == self.0 { seq } else { u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_one_of_another_store_is_gone() {
        let (one, two) = (Cursors::marked("a"), Cursors::marked("b"));
        for seq in [0, 1, 77, u64::MAX - 1] {
            assert_eq!(one.read(&one.text(seq)), Some(seq));
            assert_eq!(two.read(&one.text(seq)), Some(u64::MAX));
        }
        for text in ["", "1", "abc", "AAAA AAAA", &"A".repeat(17), "é"] {
            assert_eq!(one.read(text), None, "{text:?}");
        }
    }
}
