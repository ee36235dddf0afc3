//! `muster executions`, `runs`, `cancel`, `pause`, `resume`, `restart` and `why`.

use clap::Args;

use super::Most;

#[derive(Debug, Clone, Args)]
pub(crate) struct ExecutionFilter {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<String>,
    /// Only of this agent; several are separated by commas.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only of this function.
    #[arg(long = "fn", value_name = "FUNCTION")]
    pub(crate) function: Option<String>,
    /// Only of this run.
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Only what failed with this category.
    #[arg(long, value_name = "CATEGORY")]
    pub(crate) category: Option<String>,
    /// Only with exactly this finer word for its state.
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Only with this in their ids or names.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only what is open or ended since: 15m, 2h, or a time.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only what is open or ended before.
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) most: Most,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunFilter {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<String>,
    /// Only runs whose root is of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only what is open or ended since: 15m, 2h, or a time.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) most: Most,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// An execution, or a run with --tree: whole, or at least six characters of it.
    pub(crate) id: String,
    /// The whole run that it is in.
    #[arg(long)]
    pub(crate) tree: bool,
    /// Why; kept with the execution.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Does not ask, however many are open.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// An execution, or a run with --tree: whole, or at least six characters of it.
    pub(crate) id: String,
    /// The whole run that it is in.
    #[arg(long)]
    pub(crate) tree: bool,
    /// Why; kept with the execution.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// The execution, or a run, which is done again from its root: whole, or at least six
    /// characters of it.
    pub(crate) id: String,
    /// The whole run from its root, or the execution alone.
    #[arg(long, value_parser = ["workflow", "execution"], default_value = "workflow")]
    pub(crate) scope: String,
    /// What is taken over: what had succeeded before it, all that succeeded, or none.
    #[arg(long, value_parser = ["succeeded-before", "all-succeeded", "none"], default_value = "succeeded-before")]
    pub(crate) reuse: String,
    /// Also while the run has not ended.
    #[arg(long)]
    pub(crate) fork: bool,
    /// Another input for what is run again: JSON, @FILE, or - for stdin.
    #[arg(long, short, value_name = "JSON|@FILE|-")]
    pub(crate) input: Option<String>,
    /// Why; kept in the events.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Waits for the end, at most so long when a duration is given, and prints the result.
    #[arg(long, value_name = "DURATION", num_args = 0..=1)]
    pub(crate) wait: Option<Option<String>>,
    /// Idempotency key: the same key restarts once.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The result, or the id, and nothing else.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// An execution, a run, an agent, an instance, a machine, a worker, or a duty of the plane.
    pub(crate) id: String,
    /// What it is, where its id does not say: an agent's id is its queue's, too.
    #[arg(long, value_parser = ["execution", "run", "agent", "instance", "node", "worker", "queue", "duty"])]
    pub(crate) kind: Option<String>,
}
