//! `muster webhooks`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Messages, newest first.
    List {
        /// Only these: pending, delivered or dead.
        #[arg(long)]
        state: Option<String>,
        /// Only of this execution.
        #[arg(long)]
        execution: Option<String>,
        /// How many.
        #[arg(long)]
        limit: Option<u32>,
    },
    /// One message.
    Show {
        /// Its id.
        id: String,
    },
    /// Sends again what was given up.
    Redrive {
        /// Its id.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Everything that was given up.
        #[arg(long)]
        all: bool,
    },
}
