//! `muster keys`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: Option<KeysCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Every key: prefix, scopes, last use.
    #[command(after_help = "Examples:\n  muster keys list\n  muster keys list --json")]
    List,
    /// Makes a key and shows it once.
    #[command(
        after_help = "Scopes: agent[:ID], call, read, operate, worker:ID, node:ID, relay, admin\n\nExamples:\n  muster keys create --scope call,read --name ci\n  muster keys create --scope operate --expires 30d"
    )]
    Create {
        /// What it may do.
        #[arg(long, required = true, value_delimiter = ',', value_name = "SCOPE,…")]
        scope: Vec<String>,
        /// A name to remember it by.
        #[arg(long, default_value = "")]
        name: String,
        /// How long it is taken: 30d, 12h.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
    },
    /// Makes a code that signs a browser in once, within 10 minutes.
    #[command(
        after_help = "The session may do what the key of this command may, or fewer with --scope.\n\nExamples:\n  muster keys code\n  muster keys code --scope read"
    )]
    Code {
        /// Fewer scopes than those of the key.
        #[arg(long, value_delimiter = ',', value_name = "SCOPE,…")]
        scope: Vec<String>,
    },
    /// Ends a key. It says first who used it last and what ends with it, and asks.
    #[command(
        after_help = "Examples:\n  muster keys revoke key_01KB\n  muster keys revoke key_01KB --yes"
    )]
    Revoke {
        /// Its id, or a prefix.
        id: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Makes a new key in place of one; the old one is still taken for a while.
    #[command(after_help = "Example:\n  muster keys rotate key_01KB")]
    Rotate {
        /// Its id, or a prefix.
        id: String,
    },
}
