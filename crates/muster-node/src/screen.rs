//! The screen of a terminal as its worker has painted it, so that somebody who joins late sees
//! what is there; and the answers a worker may ask a terminal for, because the terminals of
//! viewers must not give them. Output is untrusted: nothing in it can stop a holder.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rows and columns, at least one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) cols: u16,
}

/// The largest terminal that is made: a screen costs memory by its cells.
pub(crate) const SIDE_MAX: u16 = 1000;

impl Size {
    /// Within what is possible.
    pub(crate) fn clamped((rows, cols): (u16, u16)) -> Self {
        Self {
            rows: rows.clamp(1, SIDE_MAX),
            cols: cols.clamp(1, SIDE_MAX),
        }
    }
}

/// Questions of a worker that wait for their answer, at most a few.
#[derive(Debug, Default)]
struct Asked {
    answers: Vec<u8>,
}

/// A worker that asks faster than it reads is not answered every time.
const ANSWERS_MAX: usize = 1024;

impl vt100::Callbacks for Asked {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        word: char,
    ) {
        let number = parameters.first().and_then(|one| one.first()).copied();
        let answer = match (first, word, number.unwrap_or(0)) {
            // Are you well?
            (None, 'n', 5) => "\x1b[0n".to_owned(),
            // Where is the cursor?
            (None, 'n', 6) => {
                let (row, col) = screen.cursor_position();
                format!("\x1b[{};{}R", u32::from(row) + 1, u32::from(col) + 1)
            }
            // What are you? A VT100 with the advanced video option.
            (None, 'c', 0) => "\x1b[?1;2c".to_owned(),
            _ => return,
        };
        if self.answers.len() + answer.len() <= ANSWERS_MAX {
            self.answers.extend(answer.into_bytes());
        }
    }
}

/// The screen of one worker.
pub(crate) struct Screen {
    parser: vt100::Parser<Asked>,
    size: Size,
}

impl Screen {
    /// An empty one.
    pub(crate) fn new(size: Size) -> Self {
        Self {
            parser: parser(size),
            size,
        }
    }

    /// Paints output; what the worker is to be answered.
    pub(crate) fn paint(&mut self, bytes: &[u8]) -> Vec<u8> {
        let painted = catch_unwind(AssertUnwindSafe(|| self.parser.process(bytes)));
        if painted.is_err() {
            // Better an empty screen than a dead worker.
            self.parser = parser(self.size);
        }
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    /// Its size.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Changes its size.
    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
        let (rows, cols) = sides(size);
        let resized = catch_unwind(AssertUnwindSafe(|| self.parser.set_size(rows, cols)));
        if resized.is_err() {
            self.parser = parser(size);
        }
    }

    /// Bytes that paint it on any terminal of its size.
    pub(crate) fn repaint(&self) -> Vec<u8> {
        let screen = self.parser.screen();
        let mut bytes = Vec::new();
        if screen.alternate_screen() {
            bytes.extend(b"\x1b[?1049h");
        }
        bytes.extend(screen.state_formatted().into_bytes());
        bytes
    }
}

fn sides(size: Size) -> (NonZeroU16, NonZeroU16) {
    let side = |side| NonZeroU16::new(side).unwrap_or(NonZeroU16::MIN);
    (side(size.rows), side(size.cols))
}

fn parser(size: Size) -> vt100::Parser<Asked> {
    let (rows, cols) = sides(size);
    vt100::Parser::new_with_callbacks(rows, cols, 0, Asked::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repaint_shows_what_was_painted_and_where_the_cursor_is() {
        let mut screen = Screen::new(Size { rows: 5, cols: 20 });
        screen.paint(b"one\r\n\x1b[31mtwo\x1b[0m\x1b[4;6Hthree");
        let mut seen = Screen::new(screen.size());
        seen.paint(&screen.repaint());
        assert_eq!(
            seen.parser.screen().contents(),
            screen.parser.screen().contents()
        );
        assert_eq!(seen.parser.screen().cursor_position(), (3, 10));
        screen.paint(b"\x1b[?1049h\x1b[2JALT");
        assert!(screen.repaint().starts_with(b"\x1b[?1049h"));
    }

    #[test]
    fn a_worker_that_asks_its_terminal_is_answered() {
        let mut screen = Screen::new(Size { rows: 5, cols: 20 });
        assert_eq!(screen.paint(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(screen.paint(b"\x1b[5n\x1b[c"), b"\x1b[0n\x1b[?1;2c");
        assert_eq!(screen.paint(b"plain"), b"");
        let many = b"\x1b[6n".repeat(10_000);
        assert!(screen.paint(&many).len() <= ANSWERS_MAX);
    }

    #[test]
    fn hostile_output_and_sizes_do_not_stop_it() {
        let mut screen = Screen::new(Size::clamped((0, 0)));
        let mut seed: u32 = 7;
        for round in 0..200_u16 {
            let noise: Vec<u8> = (0..400)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Many escapes, so that sequences come about.
                    if seed >> 29 == 0 {
                        0x1b
                    } else {
                        (seed >> 13) as u8
                    }
                })
                .collect();
            screen.paint(&noise);
            screen.resize(Size::clamped((round % 7, 600 - round)));
        }
        screen.paint(b"\x1bc\x1b[2J\x1b[Hstill here");
        let shown = screen.parser.screen().contents();
        assert!(
            shown.contains("still") || screen.size().cols < 11,
            "{shown}"
        );
    }
}
