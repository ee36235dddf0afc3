//! `muster quarantine`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(crate) command: QuarantineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// Everything in it.
    List,
    /// One item, whole.
    Show {
        /// Its id.
        id: String,
    },
    /// Removes an item for good.
    Drop {
        /// Its id.
        id: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}
