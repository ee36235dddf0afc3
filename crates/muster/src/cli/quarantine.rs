//! `muster quarantine`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(crate) command: Option<QuarantineCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// Everything in it.
    #[command(after_help = "Example:\n  muster quarantine list")]
    List,
    /// One item, whole.
    #[command(after_help = "Example:\n  muster quarantine show 12")]
    Show {
        /// Its id.
        id: String,
    },
    /// Removes an item for good.
    #[command(after_help = "Example:\n  muster quarantine drop 12")]
    Drop {
        /// Its id.
        id: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}
