//! `muster tail`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// From this event on; without it, from now. A stopped tail says its last cursor.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) from: Option<String>,
    /// Only of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only of this run.
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Only of this execution.
    #[arg(long)]
    pub(crate) execution: Option<String>,
}
