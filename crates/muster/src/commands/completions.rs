//! `muster completions`.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::out;

/// Prints the completions of a shell.
pub(super) fn print(shell: clap_complete::Shell) {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "muster", &mut text);
    out::data_raw(&String::from_utf8_lossy(&text));
}
