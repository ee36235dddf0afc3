//! `muster nodes`, `fleet` and `drift`.

use clap::{Args, Subcommand};

use super::{History, Plain};

#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(subcommand)]
    pub(crate) command: Option<NodesCommand>,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// One, whole: its facts, its workers' names, its history.
    #[command(after_help = "Example:\n  muster nodes show edge-1")]
    Show {
        /// Its name, or its id: whole, a prefix, or the short form.
        id: String,
    },
    /// How it was over some time: a strip of its states, and every change.
    #[command(
        after_help = "Examples:\n  muster nodes history edge-1\n  muster nodes history edge-1 --since 7d"
    )]
    History(History),
    /// Makes a token by which a machine joins, and prints what to run there.
    #[command(after_help = "Example:\n  muster nodes enroll edge-1 --label gpu,zone=eu")]
    Enroll(Enroll),
    /// Takes no new work; its workers are released one after another.
    #[command(after_help = "Example:\n  muster nodes drain edge-1 --reason 'a new disk'")]
    Drain(Wish),
    /// Takes no new work; what runs goes on.
    #[command(after_help = "Example:\n  muster nodes cordon edge-1")]
    Cordon(Wish),
    /// Takes work again.
    #[command(after_help = "Example:\n  muster nodes activate edge-1")]
    Activate(Wish),
    /// Makes it history: it may not connect any more.
    #[command(
        after_help = "Examples:\n  muster nodes retire edge-1\n  muster nodes retire edge-1 --yes"
    )]
    Retire(SureWish),
    /// Puts your word before the computed state.
    #[command(after_help = "Example:\n  muster nodes pin edge-1 suspect --reason noisy")]
    Pin {
        /// Its name or id.
        node: String,
        /// As what it counts.
        #[arg(value_parser = ["online", "suspect", "unreachable"])]
        state: String,
        /// Why; shown to everybody who looks.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Takes the pin out.
    #[command(after_help = "Example:\n  muster nodes unpin edge-1")]
    Unpin(Wish),
    /// Says that it will not come back: its workers count as lost.
    #[command(after_help = "Example:\n  muster nodes lost edge-1")]
    Lost(SureWish),
    /// Deletes a node that has no living workers, with its history.
    #[command(after_help = "Example:\n  muster nodes delete edge-1")]
    Delete(SureWish),
}

#[derive(Debug, Args)]
pub(crate) struct Wish {
    /// Its name or id.
    pub(crate) node: String,
    /// Why; shown to everybody who looks.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SureWish {
    #[command(flatten)]
    pub(crate) wish: Wish,
    /// Does not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Enroll {
    /// The machine's name in the fleet.
    pub(crate) name: String,
    /// Labels that placements may ask for.
    #[arg(long, value_delimiter = ',', value_name = "LABEL,…")]
    pub(crate) label: Vec<String>,
    /// How many workers it takes; 0 is without bound. The machine may say less.
    #[arg(long, value_name = "N")]
    pub(crate) max_workers: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    pub(crate) command: Option<FleetCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Ends the plane's doubt about itself: what it believes of silent machines counts again.
    #[command(after_help = "Example:\n  muster fleet end-doubt")]
    EndDoubt {
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}
