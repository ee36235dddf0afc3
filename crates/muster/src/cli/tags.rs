//! `muster tags`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Tags {
    #[command(subcommand)]
    pub(crate) command: Option<TagsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagsCommand {
    /// Who asks for what, and what was decided.
    #[command(after_help = "Example:\n  muster tags list")]
    List,
    /// Approves tags of an agent; without any, all that are pending.
    #[command(
        after_help = "Examples:\n  muster tags approve billing\n  muster tags approve billing finance"
    )]
    Approve {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
    /// Rejects tags of an agent; without any, all that are pending.
    #[command(after_help = "Example:\n  muster tags reject billing finance")]
    Reject {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
}
