//! This side's terminal while it shows a worker's: raw, with its keys in a channel, its size
//! watched, and always put back. Knows nothing of planes.

use std::io::{IsTerminal, Read, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::failure::Outcome;

/// Pieces of typing that may wait to be sent; more are not read until there is room.
const TYPED_MAX: usize = 64;

/// What ends whatever the worker's program may have switched on: colours, a hidden cursor, mouse
/// reports, bracketed paste, application keys.
const PLAIN: &[u8] =
    b"\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>";
const KEEP_TITLE: &[u8] = b"\x1b[22;2t";
const OLD_TITLE: &[u8] = b"\x1b[23;2t";
const OTHER_SCREEN: &[u8] = b"\x1b[?1049h";
const OWN_SCREEN: &[u8] = b"\x1b[?1049l";

/// The terminal. Dropping it puts everything back.
pub(super) struct Screen {
    /// As it was, where stdin is a terminal.
    before: Option<Termios>,
    /// Stdout is a terminal: only then is anything put back there.
    is_shown: bool,
    /// The program switched to the other screen.
    is_other: bool,
    /// The end of the last output, in which a sequence may have begun.
    tail: Vec<u8>,
}

impl Screen {
    /// Takes the terminal over; where stdin is none, nothing is typed.
    pub(super) fn take() -> Outcome<Self> {
        let stdin = std::io::stdin();
        let before = if stdin.is_terminal() {
            let before = tcgetattr(&stdin).map_err(std::io::Error::from)?;
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(&stdin, OptionalActions::Flush, &raw).map_err(std::io::Error::from)?;
            Some(before)
        } else {
            None
        };
        let is_shown = std::io::stdout().is_terminal();
        if is_shown && before.is_some() {
            crate::out::data_bytes(KEEP_TITLE);
        }
        Ok(Self {
            before,
            is_shown,
            is_other: false,
            tail: Vec::new(),
        })
    }

    /// Whether somebody can type.
    pub(super) fn has_keys(&self) -> bool {
        self.before.is_some()
    }

    /// Writes what the worker printed.
    pub(super) fn show(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.follow(bytes);
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Says a line of ours in between. In raw mode a line needs its return.
    pub(super) fn say(&self, text: &str) {
        let end = if self.has_keys() { "\r\n" } else { "\n" };
        crate::out::talk_raw(&format!("[muster] {text}{end}"));
    }

    /// Names the window, which keeps its own name for afterwards.
    pub(super) fn title(&self, text: &str) {
        if self.is_shown && self.has_keys() {
            crate::out::data_bytes(format!("\x1b]2;{text}\x07").as_bytes());
        }
    }

    /// The size of the window; `None` where there is none.
    pub(super) fn size(&self) -> Option<(u16, u16)> {
        let size = tcgetwinsize(std::io::stdout())
            .or_else(|_| tcgetwinsize(std::io::stdin()))
            .ok()?;
        (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
    }

    /// Remembers which of its two screens the program is on.
    fn follow(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let last = |wanted: &[u8]| {
            self.tail
                .windows(wanted.len())
                .rposition(|seen| seen == wanted)
        };
        match (last(OTHER_SCREEN), last(OWN_SCREEN)) {
            (None, None) => {}
            (to, back) => self.is_other = to > back,
        }
        let kept = self.tail.len().min(OTHER_SCREEN.len() - 1);
        self.tail.drain(..self.tail.len() - kept);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_shown {
            let mut out = std::io::stdout().lock();
            // Nothing can be done about a terminal that is gone.
            let _ = out.write_all(PLAIN);
            if self.is_other {
                let _ = out.write_all(OWN_SCREEN);
            }
            if self.has_keys() {
                let _ = out.write_all(OLD_TITLE);
            }
            let _ = out.write_all(b"\r\n");
            let _ = out.flush();
        }
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, before);
        }
    }
}

/// What is typed, in pieces. The thread ends with the process: nothing wakes a read of a terminal.
pub(super) fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(TYPED_MAX);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let mut stdin = std::io::stdin().lock();
        while let Ok(read @ 1..) = stdin.read(&mut buffer) {
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_that_the_program_is_on_is_known_wherever_its_bytes_are_cut() {
        for step in [1, 3, 100] {
            let mut screen = Screen {
                before: None,
                is_shown: false,
                is_other: false,
                tail: Vec::new(),
            };
            for piece in b"a\x1b[?1049hb".chunks(step) {
                screen.follow(piece);
            }
            assert!(screen.is_other, "{step}");
            for piece in b"c\x1b[?1049ld".chunks(step) {
                screen.follow(piece);
            }
            assert!(!screen.is_other, "{step}");
        }
    }
}
