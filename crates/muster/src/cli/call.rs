//! `muster call`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// What to call: AGENT.FUNCTION.
    pub(crate) target: String,
    /// The input: JSON, @FILE, or - for stdin.
    #[arg(long, short, default_value = "{}", value_name = "JSON|@FILE|-")]
    pub(crate) input: String,
    /// Prints the ids at once and does not wait.
    #[arg(long = "async", conflicts_with = "wait")]
    pub(crate) asynchronous: bool,
    /// How long to wait at most, like 90s; without a value until it ends, which is the default.
    #[arg(long, value_name = "DURATION", num_args = 0..=1)]
    pub(crate) wait: Option<Option<String>>,
    /// Idempotency key: the same key with the same input calls once.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Its class in the queue: 0 goes first, 9 last.
    #[arg(long, value_name = "0-9", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub(crate) priority: Option<u8>,
    /// The result and nothing else.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
