//! The one place that writes to stdout and stderr, and how output looks: colour, marks, width.
//! Data goes to stdout, talk to stderr.

pub(crate) mod id;
mod mark;
pub(crate) mod payload;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod tree;

use std::io::{IsTerminal, Write};

pub(crate) use muster_wire::plain as span;

pub(crate) use mark::{Mark, agent_mark, execution_mark, node_mark, worker_mark};
pub(crate) use style::{Colour, ColourChoice, Style, clean, rows};

/// How the two streams of this process look.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// Stdout.
    pub(crate) data: Style,
    /// Stderr.
    pub(crate) errors: Style,
}

impl Look {
    /// Asks the environment and the terminals.
    pub(crate) fn of_this_process(choice: ColourChoice) -> Self {
        let env = |name: &str| std::env::var(name).ok();
        Self {
            data: Style::find(
                choice,
                std::io::stdout().is_terminal(),
                style::columns(std::io::stdout()),
                env,
            ),
            errors: Style::find(
                choice,
                std::io::stderr().is_terminal(),
                style::columns(std::io::stderr()),
                env,
            ),
        }
    }
}

/// Writes a line of data to stdout. A reader that went away ends the process quietly.
pub(crate) fn data(line: &str) {
    write(std::io::stdout().lock(), line, "\n");
}

/// Writes to stdout as it is.
pub(crate) fn data_raw(text: &str) {
    write(std::io::stdout().lock(), text, "");
}

/// Writes bytes to stdout as they are.
pub(crate) fn data_bytes(bytes: &[u8]) {
    write_bytes(std::io::stdout().lock(), bytes, b"");
}

/// Writes a line of talk to stderr.
pub(crate) fn talk(line: &str) {
    write(std::io::stderr().lock(), line, "\n");
}

/// Writes to stderr as it is: redraws.
pub(crate) fn talk_raw(text: &str) {
    write(std::io::stderr().lock(), text, "");
}

fn write(to: impl Write, text: &str, end: &str) {
    write_bytes(to, text.as_bytes(), end.as_bytes());
}

fn write_bytes(mut to: impl Write, text: &[u8], end: &[u8]) {
    let done = to
        .write_all(text)
        .and_then(|()| to.write_all(end))
        .and_then(|()| to.flush());
    if done.is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}
