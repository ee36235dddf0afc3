//! Bytes of a terminal as text: a character is never cut between two chunks, and what is not
//! UTF-8 is replaced. Knows no frame.

/// The longest chunk, in bytes of the worker's output.
pub(crate) const CHUNK: usize = 16 << 10;

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where in the worker's output it begins.
    pub(crate) offset: u64,
    /// The text.
    pub(crate) text: String,
}

/// Cuts output into chunks, and keeps the beginning of a character until its end comes.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    kept: Vec<u8>,
    offset: u64,
}

impl Cutter {
    /// Output that begins at `offset`. What was kept is given out first if something is missing
    /// in between.
    pub(crate) fn push(&mut self, offset: u64, bytes: &[u8], out: &mut impl Extend<Chunk>) {
        if self.offset + self.kept.len() as u64 != offset {
            out.extend(self.rest());
            self.offset = offset;
        }
        self.kept.extend_from_slice(bytes);
        let whole = self.kept.len() - unfinished(&self.kept);
        let mut rest = &self.kept[..whole];
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(cut(rest));
            out.extend([Chunk {
                offset: self.offset,
                text: String::from_utf8_lossy(head).into_owned(),
            }]);
            self.offset += head.len() as u64;
            rest = tail;
        }
        self.kept.drain(..whole);
    }

    /// What was kept, although its end never came.
    pub(crate) fn rest(&mut self) -> Option<Chunk> {
        let kept = std::mem::take(&mut self.kept);
        let offset = self.offset;
        self.offset += kept.len() as u64;
        (!kept.is_empty()).then(|| Chunk {
            offset,
            text: String::from_utf8_lossy(&kept).into_owned(),
        })
    }
}

/// How many bytes at the end begin a character that may still become whole.
fn unfinished(bytes: &[u8]) -> usize {
    // The first byte of it is among the last three.
    let from = bytes.len().saturating_sub(3);
    let Some(at) = bytes[from..].iter().rposition(|byte| byte & 0xC0 == 0xC0) else {
        return 0;
    };
    let tail = &bytes[from + at..];
    match std::str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => tail.len() - error.valid_up_to(),
        _ => 0,
    }
}

/// Where a chunk ends: at most [`CHUNK`] bytes, at the beginning of a character.
fn cut(bytes: &[u8]) -> usize {
    if bytes.len() <= CHUNK {
        return bytes.len();
    }
    let boundary = (CHUNK - 3..=CHUNK)
        .rev()
        .find(|at| bytes[*at] & 0xC0 != 0x80);
    boundary.unwrap_or(CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(cutter: &mut Cutter, offset: u64, bytes: &[u8]) -> Vec<Chunk> {
        let mut out = Vec::new();
        cutter.push(offset, bytes, &mut out);
        out
    }

    #[test]
    fn a_character_is_never_cut_wherever_the_bytes_are() {
        let text = "aß€🦀".repeat(20_000);
        for step in [1, 2, 3, 5, 7, 4096, 100_003] {
            let mut cutter = Cutter::default();
            let (mut got, mut at) = (String::new(), 0);
            for piece in text.as_bytes().chunks(step) {
                for chunk in push(&mut cutter, at, piece) {
                    assert_eq!(chunk.offset, got.len() as u64);
                    assert!(chunk.text.len() <= CHUNK);
                    got += &chunk.text;
                }
                at += piece.len() as u64;
            }
            assert_eq!(cutter.rest(), None);
            assert!(got == text, "step {step}");
        }
    }

    #[test]
    fn what_is_not_utf8_is_replaced_and_holds_nothing_up() {
        let mut cutter = Cutter::default();
        let out = push(&mut cutter, 0, b"a\xffb\xc3(\x80\x80\x80");
        assert_eq!(out[0].text, "a\u{fffd}b\u{fffd}(\u{fffd}\u{fffd}\u{fffd}");
        // The beginning of a character waits for its end, and is told when none comes.
        assert_eq!(push(&mut cutter, 8, b"\xf0\x9f"), []);
        let rest = cutter.rest().unwrap();
        assert_eq!((rest.offset, rest.text.as_str()), (8, "\u{fffd}"));
    }

    #[test]
    fn a_gap_is_a_jump_of_the_offset() {
        let mut cutter = Cutter::default();
        assert_eq!(
            push(&mut cutter, 0, "a€".as_bytes()[..3].as_ref())[0].text,
            "a"
        );
        let out = push(&mut cutter, 100, b"z");
        assert_eq!(
            out[0],
            Chunk {
                offset: 1,
                text: "\u{fffd}".into()
            }
        );
        assert_eq!(
            out[1],
            Chunk {
                offset: 100,
                text: "z".into()
            }
        );
    }
}
