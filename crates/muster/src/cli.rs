//! The command line: every command, argument and help text. Does nothing.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::out::ColourChoice;

const EXIT_CODES: &str = "\
Exit codes, from the error's category:
    0  done
    1  the agent failed: agent_error, bad_response, outcome_unknown, agent_restart_orphaned
    2  the request is wrong: validation, too_large; wrong arguments
    3  not_supported by this plane
   65  conflict, run_cancelled, idempotency_conflict
   66  not_found, target_not_found
   69  the agent is not there: node_unavailable, agent_unreachable
   70  internal_error
   75  try again: concurrency_limit, overloaded, still_running, control_plane_*, store_full
   77  unauthenticated, permission_denied, agent_id_taken, wrong_attempt
  124  agent_timeout
  130  cancelled, or stopped with Ctrl-C

Data goes to stdout, everything else to stderr.";

/// A control plane for AI agents.
#[derive(Debug, Parser)]
#[command(name = "muster", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// JSON for programs instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColourChoice,
    /// The plane's address. Also MUSTER_SERVER or AGENTFIELD_SERVER; else the local one.
    #[arg(long, global = true, value_name = "URL", help_heading = "Plane")]
    pub(crate) server: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Everything local: a plane, and an example agent or yours, restarted on changes.
    #[command(
        after_help = "Examples:\n  muster dev\n  muster dev -- python agent.py\n  muster dev --port 8090 --data /tmp/try -- python -m my_agent"
    )]
    Dev(Dev),
    /// The plane.
    #[command(
        after_help = "Examples:\n  muster server\n  muster server --listen 0.0.0.0:8080 --data /var/lib/muster\n  muster server --config muster.toml --print-config"
    )]
    Server(Server),
    /// Calls a function and prints its result.
    #[command(
        after_help = "Examples:\n  muster call hello.greet --input '{\"name\":\"world\"}'\n  muster call trip.plan --input @trip.json -q | jq .\n  echo '{}' | muster call report.build --input - --async"
    )]
    Call(Call),
    /// The agents: who can be called, and how each is.
    #[command(
        after_help = "Examples:\n  muster agents\n  muster agents show hello\n  muster agents --json --watch"
    )]
    Agents(Listing<NoFilter>),
    /// Executions: what waits, runs and has ended.
    #[command(
        after_help = "Examples:\n  muster executions --state queued,waiting\n  muster executions --agent billing --since 1h\n  muster executions show exec_01KB"
    )]
    Executions(Listing<ExecutionFilter>),
    /// Runs: trees of calls.
    #[command(after_help = "Examples:\n  muster runs\n  muster runs show run_01KB")]
    Runs(Listing<RunFilter>),
    /// Cancels an execution, or with --tree its whole run.
    #[command(
        after_help = "Examples:\n  muster cancel exec_…3QH8ZT\n  muster cancel run_…0R53QH --tree --reason 'wrong input'"
    )]
    Cancel(Cancel),
    /// Pauses an execution, or with --tree its whole run: what was not sent waits for a resume.
    #[command(
        after_help = "Examples:\n  muster pause exec_…3QH8ZT\n  muster pause run_…0R53QH --tree --reason 'wait for the data'"
    )]
    Pause(Pause),
    /// Resumes what was paused.
    #[command(
        after_help = "Examples:\n  muster resume exec_…3QH8ZT\n  muster resume run_…0R53QH --tree"
    )]
    Resume(Pause),
    /// What waits for a person's decision, and what was decided.
    #[command(
        after_help = "Examples:\n  muster approvals\n  muster approvals --status pending --watch"
    )]
    Approvals(Approvals),
    /// Approves what an execution waits for.
    #[command(
        after_help = "Examples:\n  muster approve exec_…3QH8ZT\n  muster approve exec_…3QH8ZT --changes --feedback 'shorter, please'"
    )]
    Approve(Approve),
    /// Rejects what an execution waits for.
    #[command(after_help = "Examples:\n  muster reject exec_…3QH8ZT --feedback 'too expensive'")]
    Reject(Decide),
    /// Runs a run or one execution again; what had succeeded is taken over.
    #[command(
        after_help = "Examples:\n  muster restart exec_…3QH8ZT\n  muster restart exec_…3QH8ZT --scope execution --input @fixed.json --wait\n  muster restart exec_…3QH8ZT --fork --reuse none"
    )]
    Restart(Restart),
    /// Follows the event stream.
    #[command(
        after_help = "Examples:\n  muster tail\n  muster tail --agent hello\n  muster tail --json --from CURSOR | jq ."
    )]
    Tail(Tail),
    /// Why something waits, was refused, or ended as it did.
    #[command(after_help = "Examples:\n  muster why exec_01KB\n  muster why hello")]
    Why(Why),
    /// The queues of the agents.
    #[command(after_help = "Examples:\n  muster queues\n  muster queues --watch")]
    Queues(Plain),
    /// Tags of agents that need an approval before their agents are called.
    #[command(
        after_help = "Examples:\n  muster tags\n  muster tags approve billing\n  muster tags reject billing finance"
    )]
    Tags(Tags),
    /// Keys: who may do what.
    #[command(
        after_help = "Examples:\n  muster keys list\n  muster keys create --scope call,read --name ci\n  muster keys revoke key_01KB"
    )]
    Keys(Keys),
    /// Stops dispatching, to one agent or to all.
    #[command(
        after_help = "Examples:\n  muster hold billing --reason 'the bank is down'\n  muster hold --reason maintenance"
    )]
    Hold(Hold),
    /// Lets dispatching go on; says first what would be sent.
    #[command(after_help = "Examples:\n  muster unhold billing\n  muster unhold --yes")]
    Unhold(Unhold),
    /// What was set aside because it could not be read or decided.
    #[command(after_help = "Examples:\n  muster quarantine list\n  muster quarantine show 12")]
    Quarantine(Quarantine),
    /// Messages for webhooks: what waits, what was given up; and sending it again.
    #[command(
        after_help = "Examples:\n  muster webhooks list --state dead\n  muster webhooks show msg_AbC\n  muster webhooks redrive --all"
    )]
    Webhooks(Webhooks),
    /// Copies a plane's store while it runs.
    #[command(after_help = "Example:\n  muster backup /var/backups/muster-2026-01-31")]
    Backup(Backup),
    /// Puts a copy where a plane can start on it; that one begins in hold.
    #[command(
        after_help = "Example:\n  muster restore /var/backups/muster-2026-01-31 --data ~/.muster\n  muster server --data ~/.muster\n  muster unhold"
    )]
    Restore(Restore),
    /// Checks the plane and this machine.
    #[command(
        after_help = "Examples:\n  muster doctor\n  muster doctor --server http://10.0.0.5:8080"
    )]
    Doctor,
    /// Prints the plane's OpenAPI document.
    #[command(after_help = "Example:\n  muster openapi > openapi.json")]
    Openapi,
    /// Prints completions for a shell.
    #[command(
        after_help = "Example:\n  muster completions bash > ~/.local/share/bash-completion/completions/muster"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
        #[command(flatten)]
        asks: AsksNobody,
    },
    /// The example agent that `dev` runs.
    #[command(name = "example-agent", hide = true)]
    ExampleAgent(ExampleAgent),
}

/// In place of `--server` in commands that ask no plane: not in their help, and refused.
#[derive(Debug, Args)]
pub(crate) struct AsksNobody {
    #[arg(long = "server", id = "server", hide = true, value_name = "URL")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Port of the plane, on 127.0.0.1.
    #[arg(long, default_value_t = 8080, conflicts_with = "listen")]
    pub(crate) port: u16,
    /// Address and port, instead of --port.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Data directory.
    #[arg(long, value_name = "DIR", default_value = "./.muster")]
    pub(crate) data: PathBuf,
    /// Configuration file.
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// A command that runs your agent.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Address and port.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Data directory; ~/.muster when nothing says otherwise.
    #[arg(long, value_name = "DIR", conflicts_with = "database")]
    pub(crate) data: Option<String>,
    /// A database instead of a data directory.
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) database: Option<String>,
    /// Configuration file; else MUSTER_CONFIG, else ./muster.toml when it is there.
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Prints every effective value and where it came from, and ends.
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

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
    /// The result and nothing else.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

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

#[derive(Debug, Clone, Args)]
pub(crate) struct NoFilter {}

#[derive(Debug, Clone, Args)]
pub(crate) struct ExecutionFilter {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<String>,
    /// Only of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only of this function.
    #[arg(long = "fn", value_name = "FUNCTION")]
    pub(crate) function: Option<String>,
    /// Only of this run.
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// Only what started since: 15m, 2h, or a time.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunFilter {
    /// Only these states.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    pub(crate) state: Vec<String>,
    /// Only runs whose root is of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only what started since: 15m, 2h, or a time.
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
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
pub(crate) struct Approvals {
    #[command(flatten)]
    pub(crate) plain: Plain,
    /// Only these: pending, approved, rejected, request_changes, expired or closed.
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
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

#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// The execution: whole, or at least six characters of it.
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
pub(crate) struct Tags {
    #[command(subcommand)]
    pub(crate) command: Option<TagsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagsCommand {
    /// Who asks for what, and what was decided.
    List,
    /// Approves tags of an agent; without any, all that are pending.
    Approve {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
    /// Rejects tags of an agent; without any, all that are pending.
    Reject {
        /// The agent.
        agent: String,
        /// Which tags.
        tags: Vec<String>,
    },
}

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

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// An execution, a run or an agent.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Every key: prefix, scopes, last use.
    List,
    /// Makes a key and shows it once.
    #[command(after_help = "Scopes: agent[:ID], call, read, operate, worker:ID, admin")]
    Create {
        /// What it may do.
        #[arg(long, required = true, value_delimiter = ',', value_name = "SCOPE,…")]
        scope: Vec<String>,
        /// A name to remember it by.
        #[arg(long, default_value = "")]
        name: String,
        /// How long it is taken: 30d, 12h.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
    },
    /// Ends a key.
    Revoke {
        /// Its id, or a prefix.
        id: String,
    },
    /// Makes a new key in place of one; the old one is still taken for a while.
    Rotate {
        /// Its id, or a prefix.
        id: String,
    },
}

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

#[derive(Debug, Args)]
pub(crate) struct Quarantine {
    #[command(subcommand)]
    pub(crate) command: QuarantineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// Everything in it.
    List,
    /// One item, whole.
    Show {
        /// Its id.
        id: String,
    },
    /// Removes an item for good.
    Drop {
        /// Its id.
        id: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// Messages, newest first.
    List {
        /// Only these: pending, delivered or dead.
        #[arg(long)]
        state: Option<String>,
        /// Only of this execution.
        #[arg(long)]
        execution: Option<String>,
        /// How many.
        #[arg(long)]
        limit: Option<u32>,
    },
    /// One message.
    Show {
        /// Its id.
        id: String,
    },
    /// Sends again what was given up.
    Redrive {
        /// Its id.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Everything that was given up.
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where to, on the plane's machine; must hold no store.
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The copy.
    pub(crate) from: PathBuf,
    /// Where to; must hold no store.
    #[arg(long)]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct ExampleAgent {
    /// The id it registers.
    #[arg(long, default_value = "hello")]
    pub(crate) id: String,
    /// A file whose text is the version it registers; tests change it.
    #[arg(long)]
    pub(crate) version_file: Option<PathBuf>,
}

/// Reads the command line; ends the process when it is not right, or asks for help.
pub(crate) fn read() -> Cli {
    let mut command = Cli::command();
    let read = command.try_get_matches_from_mut(std::env::args_os());
    read.and_then(|matches| {
        refuse_filters_of_one(&mut command, &matches)?;
        Cli::from_arg_matches(&matches)
    })
    .unwrap_or_else(|error| error.exit())
}

/// A list's filters mean nothing to its `show`; the options of every command do.
fn refuse_filters_of_one(
    command: &mut clap::Command,
    matches: &clap::ArgMatches,
) -> Result<(), clap::Error> {
    let Some((list, matches)) = matches.subcommand() else {
        return Ok(());
    };
    if !matches!(matches.subcommand(), Some(("show", _)))
        || !["agents", "executions", "runs"].contains(&list)
    {
        return Ok(());
    }
    let given = matches.ids().find(|id| {
        !["json", "color", "server"].contains(&id.as_str())
            && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
            && matches.try_contains_id(id.as_str()).is_ok()
            && matches
                .try_get_raw(id.as_str())
                .is_ok_and(|raw| raw.is_some())
    });
    match given {
        Some(id) => Err(command.error(
            clap::error::ErrorKind::ArgumentConflict,
            format!("--{id} belongs to the list, and `muster {list} show` shows one"),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_command_shows_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let help = sub
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains("muster "),
                "{} has no example",
                sub.get_name()
            );
        }
    }

    fn parsed(words: &[&str]) -> Result<Cli, clap::Error> {
        let mut command = Cli::command();
        let matches = command.try_get_matches_from_mut([&["muster"], words].concat())?;
        refuse_filters_of_one(&mut command, &matches)?;
        Cli::from_arg_matches(&matches)
    }

    #[test]
    fn the_plane_is_named_in_every_position() {
        for words in [
            &["--server", "X", "agents"][..],
            &["agents", "--server", "X"],
            &["agents", "--server", "X", "show", "a"],
            &["agents", "show", "a", "--server", "X"],
            &["agents", "show", "--server", "X", "a"],
            &["keys", "list", "--server", "X"],
            &["keys", "--server", "X", "list"],
            &["quarantine", "list", "--server", "X"],
            &["quarantine", "drop", "1", "--server", "X"],
            &["executions", "--server", "X", "--limit", "1"],
            &["call", "a.b", "--server", "X"],
            &["cancel", "exec_1", "--server", "X"],
        ] {
            let cli = parsed(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
            assert_eq!(cli.server.as_deref(), Some("X"), "{words:?}");
        }
        let mut command = Cli::command();
        command.build();
        let help = |name: &str| {
            let found = command.find_subcommand(name).unwrap();
            found.clone().render_long_help().to_string()
        };
        assert!(help("agents").contains("--server"));
        assert!(!help("server").contains("--server") && !help("dev").contains("--server"));
    }

    #[test]
    fn a_filter_with_show_and_a_limit_of_none_are_refused() {
        for words in [
            &["executions", "--state", "queued", "show", "exec_1"][..],
            &["agents", "--watch", "show", "a"],
            &["executions", "--limit", "0"],
            &["runs", "--limit", "0"],
        ] {
            assert_eq!(parsed(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
        parsed(&["executions", "--json", "show", "exec_1"]).unwrap();
    }

    #[test]
    fn the_documented_exit_codes_are_the_categories_codes() {
        let mut lines: Vec<(u8, &str)> = Vec::new();
        for line in EXIT_CODES.lines().filter(|line| line.starts_with("  ")) {
            let (code, words) = line.trim().split_once("  ").unwrap();
            lines.push((code.parse().unwrap(), words));
        }
        for category in muster_wire::Category::ALL {
            let code = category.exit_code();
            assert!(
                lines.iter().any(|(listed, _)| *listed == code),
                "{category} exits {code}"
            );
            if let Some((listed, _)) = lines.iter().find(|(_, words)| {
                words
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .any(|w| w == category.word())
            }) {
                assert_eq!(*listed, code, "{category}");
            }
        }
    }
}
