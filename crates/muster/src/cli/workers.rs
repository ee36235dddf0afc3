//! `muster workers`, `spawn`, `release`, `attach` and `logs`.

use clap::{Args, Subcommand};

use super::Plain;

#[derive(Debug, Args)]
pub(crate) struct Workers {
    #[command(subcommand)]
    pub(crate) show: Option<WorkersShow>,
    /// Only of this machine.
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<String>,
    /// Those that have ended, too.
    #[arg(long)]
    pub(crate) ended: bool,
    /// How many at most.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) plain: Plain,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkersShow {
    /// One, whole: its process, its last exit and output, its history.
    #[command(
        after_help = "Examples:\n  muster workers show coder-1\n  muster workers show wrk_…3QH8ZT --json"
    )]
    Show {
        /// Its name, or its id: whole, a prefix, or the short form.
        id: String,
    },
    /// Ends its process and starts it again, whatever its policy: the same worker, with the same
    /// variables and terminal; says what it comes to and asks first.
    #[command(
        after_help = "Examples:\n  muster workers restart coder-1\n  muster workers restart wrk_…3QH8ZT --grace 30s --reason \"new model\" --yes"
    )]
    Restart(WorkersRestart),
}

#[derive(Debug, Args)]
pub(crate) struct WorkersRestart {
    /// Its name, or its id: whole, or at least six characters of it.
    pub(crate) worker: String,
    /// How long it has between SIGTERM and SIGKILL; its own grace without it.
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<String>,
    /// Why; told with the exit.
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Does not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Spawn {
    /// On this machine; without it, on the one with the most room.
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// Only on machines that have this label; may be repeated.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Its name; without it, one is made from the command.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The directory it runs in, on its machine.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// A variable of its environment; NAME alone takes the value from here.
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A label of its own, by which workers are spread over machines; may be repeated.
    #[arg(long, value_name = "LABEL")]
    pub(crate) spread: Vec<String>,
    /// Plain pipes instead of a terminal: its output can be read, and it cannot be driven.
    #[arg(long, conflicts_with = "attach")]
    pub(crate) pipes: bool,
    /// When it is started again: never, `on-failure[:TIMES]` or `always[:TIMES]`.
    #[arg(long, default_value = "never", value_name = "POLICY")]
    pub(crate) restart: String,
    /// Waits for a place when every machine is full, at most so long when a duration is given.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    pub(crate) queue: Option<Option<String>>,
    /// How long it must live to count as started.
    #[arg(long, value_name = "DURATION")]
    pub(crate) start_window: Option<String>,
    /// How long it has between SIGTERM and SIGKILL when it is released.
    #[arg(long, value_name = "DURATION")]
    pub(crate) stop_grace: Option<String>,
    /// Attaches to its terminal at once.
    #[arg(long)]
    pub(crate) attach: bool,
    /// Idempotency key: the same key with the same wish starts one worker.
    #[arg(long, value_name = "KEY", visible_alias = "idempotency-key")]
    pub(crate) key: Option<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Release {
    /// Its name, or its id: whole, or at least six characters of it.
    pub(crate) worker: String,
    /// How long it has between SIGTERM and SIGKILL; its own grace without it.
    #[arg(long, value_name = "DURATION")]
    pub(crate) grace: Option<String>,
    /// Closes its record although its machine cannot be told: for machines that are gone for good.
    #[arg(long)]
    pub(crate) force: bool,
    /// Why; kept with the worker.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Attach {
    /// Its name, or its id: whole, a prefix, or the short form.
    pub(crate) worker: String,
    /// Fails when somebody else drives, instead of watching.
    #[arg(long, conflicts_with_all = ["take", "read_only"])]
    pub(crate) drive: bool,
    /// Drives, also when somebody else does: they watch from then on.
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) take: bool,
    /// Watches; what you type goes nowhere.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Leaves it, and leaves it running: ctrl- and a letter, or one of [ ] \ ^ _.
    #[arg(
        long,
        default_value = "ctrl-]",
        value_name = "KEY",
        env = "MUSTER_DETACH_KEY"
    )]
    pub(crate) detach_key: String,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// A worker, or an execution.
    pub(crate) id: String,
}
