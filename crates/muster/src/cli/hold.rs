//! `muster hold` and `unhold`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Hold {
    /// One agent; without it, all.
    pub(crate) agent: Option<String>,
    /// Why; shown to everybody who waits.
    #[arg(long)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Unhold {
    /// One agent; without it, all.
    pub(crate) agent: Option<String>,
    /// Does not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}
