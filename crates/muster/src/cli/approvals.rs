//! `muster approvals`, `approve` and `reject`.

use clap::Args;

use super::{Most, Plain};

#[derive(Debug, Args)]
pub(crate) struct Approvals {
    #[command(flatten)]
    pub(crate) plain: Plain,
    /// Only these: pending, approved, rejected, request_changes, expired or closed.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) most: Most,
}

#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The execution that waits: whole, or at least six characters of it.
    pub(crate) id: String,
    /// The request; without it, the one that is pending.
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    /// What the agent is told with it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) feedback: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) decide: Decide,
    /// Not as it is: with changes.
    #[arg(long)]
    pub(crate) changes: bool,
}
