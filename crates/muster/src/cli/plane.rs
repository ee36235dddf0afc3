//! `muster overview`, `search`, `usage`, `audit`, `config` and `compare`.

use clap::Args;

use super::{Most, Plain};

#[derive(Debug, Args)]
pub(crate) struct Overview {
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Part of an id, a name, a label, or filters like state:failed agent:billing since:2h.
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) words: Vec<String>,
    /// How many of each kind at most.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// What it is summed up by.
    #[arg(long, value_parser = ["run", "agent", "function", "day"], default_value = "agent")]
    pub(crate) by: String,
    /// Of what ended since: 15m, 2h, 30d, or a time. Without it the last day; by day the last 30.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Of what ended before.
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) most: Most,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what this principal did.
    #[arg(long, value_name = "WHO")]
    pub(crate) actor: Option<String>,
    /// Only this act; a word before a dot, like key, takes all of them.
    #[arg(long, value_name = "ACT")]
    pub(crate) action: Option<String>,
    /// Only about this: a key, an agent, a machine.
    #[arg(long, value_name = "ID")]
    pub(crate) object: Option<String>,
    /// Only since: 15m, 2h, or a time.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only before.
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) most: Most,
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Only keys that begin with this, like fleet or server.listen.
    pub(crate) key: Option<String>,
    /// Only what somebody set.
    #[arg(long)]
    pub(crate) set: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// A run: whole, a prefix, or the short form.
    pub(crate) a: String,
    /// The other one.
    pub(crate) b: String,
    /// Also the steps that are the same in both.
    #[arg(long)]
    pub(crate) all: bool,
}
