//! `muster agents` and `queues`.

use clap::{Args, Subcommand};

use super::Plain;

#[derive(Debug, Args)]
pub(crate) struct Agents {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// One, whole: its instances and functions.
    #[command(
        after_help = "Examples:\n  muster agents show hello\n  muster agents show hello --json"
    )]
    Show {
        /// Its id.
        id: String,
    },
    /// How it was over some time: a strip of its states, and every change.
    #[command(
        after_help = "Examples:\n  muster agents history hello\n  muster agents history hello --since 7d"
    )]
    History(History),
    /// Takes an agent that is gone off the list, and frees its id. Its executions stay.
    #[command(
        after_help = "Says first what goes and what stays, and asks.\n\nExamples:\n  muster agents retire old-agent\n  muster agents retire old-agent --yes"
    )]
    Retire {
        /// The agent.
        agent: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Whose.
    pub(crate) id: String,
    /// Since: 2h, 7d, or a time. Without it the last day.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Until.
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Queues {
    #[command(subcommand)]
    pub(crate) command: Option<QueuesCommand>,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// Who waits in the queue of an agent, in the order in which they start.
    #[command(
        after_help = "Examples:\n  muster queues show billing\n  muster queues show billing --limit 1000"
    )]
    Show {
        /// The agent.
        agent: String,
        /// How many entries at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Sets how many calls an agent gets at once.
    #[command(
        after_help = "It holds at once and over restarts of the plane, until `default` is said.\n\nExamples:\n  muster queues cap billing 8\n  muster queues cap billing off\n  muster queues cap billing default"
    )]
    Cap {
        /// The agent.
        agent: String,
        /// How many, `off` for no cap, or `default` for what the configuration says.
        #[arg(value_name = "N|off|default")]
        cap: String,
    },
}
