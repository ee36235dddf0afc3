//! `muster webhooks`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    pub(crate) command: Option<WebhooksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Messages, newest first.
    #[command(
        after_help = "Examples:\n  muster webhooks list\n  muster webhooks list --state dead"
    )]
    List {
        /// Only these: pending, delivered or dead.
        #[arg(long)]
        state: Option<String>,
        /// Only of this execution.
        #[arg(long)]
        execution: Option<String>,
        /// How many at most; 50 unless told.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
    },
    /// One message.
    #[command(after_help = "Example:\n  muster webhooks show msg_AbC")]
    Show {
        /// Its id.
        id: String,
    },
    /// Sends again what was given up.
    #[command(
        after_help = "Examples:\n  muster webhooks redrive msg_AbC\n  muster webhooks redrive --all"
    )]
    Redrive {
        /// Its id.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Everything that was given up.
        #[arg(long)]
        all: bool,
    },
}

impl WebhooksCommand {
    /// What `muster webhooks` alone is.
    pub(crate) const ALL: Self = Self::List {
        state: None,
        execution: None,
        limit: None,
    };
}
