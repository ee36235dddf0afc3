//! The only place of this package that prints: results and what children say to stdout, talk
//! of our own to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr)]

/// A line of a result, or of a child's output.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Which step begins.
pub(crate) fn step(text: &str) {
    eprintln!("\n==> {text}");
}

/// Something a person should know.
pub(crate) fn note(text: &str) {
    eprintln!("    {text}");
}

/// Why a command could not do its work.
pub(crate) fn problem(text: &str) {
    eprintln!("error: {text}");
}
