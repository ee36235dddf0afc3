//! What lists and their `show` take.

use clap::{Args, Subcommand};

/// A list with `show`.
#[derive(Debug, Args)]
pub(crate) struct Listing<F: Args> {
    #[command(subcommand)]
    pub(crate) show: Option<Show>,
    #[command(flatten)]
    pub(crate) filter: F,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Show {
    /// One, whole.
    #[command(
        after_help = "Examples:\n  muster executions show exec_…3QH8ZT\n  muster runs show run_…0R53QH --json"
    )]
    Show {
        /// Its id: whole, a prefix, or the short form.
        id: String,
    },
}

/// What every list takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Plain {
    /// Repaints when something changes; in a pipe one list after the other.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// A bound of a list that has pages.
#[derive(Debug, Clone, Args)]
pub(crate) struct Most {
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}
