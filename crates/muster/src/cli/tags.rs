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
    List,
    /// Approves tags of an agent; without any, all that are pending.
    Approve {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
    /// Rejects tags of an agent; without any, all that are pending.
    Reject {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
}
