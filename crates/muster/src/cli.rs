//! The command line: every command and its help; the arguments of each are in a file of their
//! own. Does nothing.

mod agents;
mod approvals;
mod backup;
mod call;
mod dev;
mod executions;
mod hold;
mod keys;
mod list;
mod node;
mod nodes;
mod plane;
mod quarantine;
mod server;
mod tags;
mod tail;
mod webhooks;
mod workers;
mod wrong;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use agents::{Agents, AgentsCommand, History, Queues, QueuesCommand};
pub(crate) use approvals::{Approvals, Approve, Decide};
pub(crate) use backup::{Backup, Restore};
pub(crate) use call::Call;
pub(crate) use dev::{Dev, ExampleAgent};
pub(crate) use executions::{Cancel, ExecutionFilter, Pause, Restart, RunFilter, Why};
pub(crate) use hold::{Hold, Unhold};
pub(crate) use keys::{Keys, KeysCommand};
pub(crate) use list::{Listing, Most, Plain, Show};
pub(crate) use node::{Node, NodeCommand, NodeDrain, NodeEnroll, NodeRun, NodeState, NodeWanted};
pub(crate) use nodes::{Enroll, Fleet, FleetCommand, Nodes, NodesCommand, SureWish, Wish};
pub(crate) use plane::{Audit, Compare, Config, Overview, Search, Usage};
pub(crate) use quarantine::{Quarantine, QuarantineCommand};
pub(crate) use server::Server;
pub(crate) use tags::{Tags, TagsCommand};
pub(crate) use tail::Tail;
pub(crate) use webhooks::{Webhooks, WebhooksCommand};
pub(crate) use workers::{Attach, Logs, Release, Spawn, Workers, WorkersRestart, WorkersShow};

use crate::out::ColourChoice;

const EXIT_CODES: &str = "\
Exit codes, from the error's category:
    0  done
    1  the agent failed: agent_error, bad_response, outcome_unknown, agent_restart_orphaned
    2  the request is wrong: validation, too_large; wrong arguments
    3  not_supported by this plane
   65  conflict, run_cancelled, idempotency_conflict; of the fleet node_draining,
       no_eligible_node, unsupported_by_node
   66  not_found, target_not_found
   69  nobody is there: node_unavailable, agent_unreachable; of the fleet node_unreachable
   70  internal_error
   75  try again: concurrency_limit, overloaded, still_running, control_plane_*, store_full;
       of the fleet fleet_capacity, placement_expired
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
    /// The plane at a glance: what needs you, what is held up, what failed, who is there.
    #[command(
        after_help = "Every number has the command that lists exactly those.\n\nExamples:\n  muster overview\n  muster overview --watch"
    )]
    Overview(Overview),
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
    /// This machine as a node of the fleet: its daemon, its enrolment, its own view.
    #[command(
        after_help = "Examples:\n  muster node enroll --plane http://10.0.0.5:8080 --token enr_…\n  muster node run\n  muster node status"
    )]
    Node(Node),
    /// Calls a function and prints its result.
    #[command(
        after_help = "Examples:\n  muster call hello.greet --input '{\"name\":\"world\"}'\n  muster call trip.plan --input @trip.json -q | jq .\n  echo '{}' | muster call report.build --input - --async"
    )]
    Call(Call),
    /// The agents: who can be called, and how each is.
    #[command(
        after_help = "Examples:\n  muster agents\n  muster agents show hello\n  muster agents history hello\n  muster agents --json --watch"
    )]
    Agents(Agents),
    /// Executions: what waits, runs and has ended.
    #[command(
        after_help = "Examples:\n  muster executions --state queued,waiting\n  muster executions --agent billing --since 1h\n  muster executions show exec_01KB"
    )]
    Executions(Listing<ExecutionFilter>),
    /// Runs: trees of calls.
    #[command(
        after_help = "Examples:\n  muster runs\n  muster runs show run_01KB\n  muster runs --json"
    )]
    Runs(Listing<RunFilter>),
    /// Two runs side by side: their steps in pairs, and what differs.
    #[command(
        after_help = "Examples:\n  muster compare run_…0R53QH run_…P4D1XW\n  muster compare run_…0R53QH run_…P4D1XW --all"
    )]
    Compare(Compare),
    /// Finds anything: by part of an id or a name, or by filters.
    #[command(
        after_help = "Filters: state: agent: fn: category: reason: label:k=v session: since:\n\nExamples:\n  muster search 3QH8ZT\n  muster search state:failed agent:billing since:2h"
    )]
    Search(Search),
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
        after_help = "Examples:\n  muster restart exec_…3QH8ZT\n  muster restart run_…0R53QH --wait\n  muster restart exec_…3QH8ZT --scope execution --input @fixed.json --wait\n  muster restart exec_…3QH8ZT --fork --reuse none"
    )]
    Restart(Restart),
    /// The machines of the fleet: who can run workers, and how sure that is.
    #[command(
        after_help = "Examples:\n  muster nodes\n  muster nodes show edge-1\n  muster nodes enroll edge-1 --label gpu\n  muster nodes drain edge-1 --reason 'a new disk'"
    )]
    Nodes(Nodes),
    /// The workers: processes that machines of the fleet run.
    #[command(
        after_help = "Examples:\n  muster workers\n  muster workers --node edge-1 --ended\n  muster workers show wrk_…3QH8ZT"
    )]
    Workers(Workers),
    /// Starts a command as a worker on a machine of the fleet.
    #[command(
        after_help = "Examples:\n  muster spawn -- python agent.py\n  muster spawn --node edge-1 --attach -- bash\n  muster spawn --label gpu --restart on-failure:5 --queue=10m --env MODEL=small -- ./train"
    )]
    Spawn(Spawn),
    /// Watches a worker's terminal, and drives it.
    #[command(
        after_help = "Examples:\n  muster attach wrk_…3QH8ZT\n  muster attach coder-1 --take\n  muster attach coder-1 --read-only"
    )]
    Attach(Attach),
    /// The last output of a worker, or what an execution logged.
    #[command(after_help = "Examples:\n  muster logs coder-1\n  muster logs exec_…3QH8ZT")]
    Logs(Logs),
    /// Ends a worker: SIGTERM, and after its grace SIGKILL, with everything it started.
    #[command(
        after_help = "Examples:\n  muster release coder-1\n  muster release wrk_…3QH8ZT --grace 30s --reason done"
    )]
    Release(Release),
    /// The fleet in numbers: what can be reached, what is used, what nobody knows.
    #[command(after_help = "Examples:\n  muster fleet\n  muster fleet end-doubt")]
    Fleet(Fleet),
    /// Where machines and the plane disagree about what runs.
    #[command(after_help = "Examples:\n  muster drift\n  muster drift --json")]
    Drift(Plain),
    /// Follows the event stream.
    #[command(
        after_help = "Examples:\n  muster tail\n  muster tail --agent hello\n  muster tail --json --from CURSOR | jq ."
    )]
    Tail(Tail),
    /// Why something waits, was refused, or ended as it did.
    #[command(
        after_help = "Examples:\n  muster why exec_01KB\n  muster why hello\n  muster why wrk_…3QH8ZT"
    )]
    Why(Why),
    /// The queues of the agents.
    #[command(
        after_help = "Examples:\n  muster queues\n  muster queues --watch\n  muster queues show billing\n  muster queues cap billing 8"
    )]
    Queues(Queues),
    /// Tokens and cost, as agents reported them.
    #[command(
        after_help = "Examples:\n  muster usage\n  muster usage --by day\n  muster usage --by run --since 2h"
    )]
    Usage(Usage),
    /// Who changed what may be done, and what was decided by hand.
    #[command(
        after_help = "Examples:\n  muster audit\n  muster audit --action key --since 7d\n  muster audit --object billing"
    )]
    Audit(Audit),
    /// Every value that holds for the plane, and where it came from.
    #[command(
        after_help = "Examples:\n  muster config\n  muster config admission\n  muster config --set"
    )]
    Config(Config),
    /// Tags of agents that need an approval before their agents are called.
    #[command(
        after_help = "Examples:\n  muster tags\n  muster tags approve billing\n  muster tags reject billing finance"
    )]
    Tags(Tags),
    /// Keys: who may do what.
    #[command(
        after_help = "Examples:\n  muster keys\n  muster keys create --scope call,read --name ci\n  muster keys revoke key_01KB"
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
    #[command(after_help = "Examples:\n  muster quarantine\n  muster quarantine show 12")]
    Quarantine(Quarantine),
    /// Messages for webhooks: what waits, what was given up; and sending it again.
    #[command(
        after_help = "Examples:\n  muster webhooks\n  muster webhooks list --state dead\n  muster webhooks show msg_AbC\n  muster webhooks redrive --all"
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
    /// Prints completions for a shell: bash, zsh, fish, elvish or powershell.
    #[command(
        after_help = "Agents, functions, ids, machines, workers and keys come from the plane, as long as it answers at once.\n\nExamples:\n  muster completions bash > ~/.local/share/bash-completion/completions/muster\n  muster completions zsh > ~/.zfunc/_muster\n  muster completions fish > ~/.config/fish/completions/muster.fish"
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

/// Reads the command line; ends the process when it is not right, or asks for help.
pub(crate) fn read() -> Cli {
    let mut command = Cli::command();
    let read = command.try_get_matches_from_mut(std::env::args_os());
    read.and_then(|matches| {
        refuse_filters_of_one(&mut command, &matches)?;
        Cli::from_arg_matches(&matches)
    })
    .unwrap_or_else(|error| {
        // Up to where the words of another program begin.
        let words: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .take_while(|word| word != "--")
            .collect();
        let json = words.iter().any(|word| word == "--json");
        let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json;
        if !error.use_stderr() || is_help {
            error.exit();
        }
        let failure = wrong::failure(&mut command, &error, &words);
        let look = crate::out::Look::of_this_process(wrong::colour_of(&words));
        failure.print(&look.errors, json);
        std::process::exit(i32::from(failure.exit_code()))
    })
}

/// Lists with commands of their own.
const LISTS: &[&str] = &["agents", "executions", "nodes", "queues", "runs", "workers"];

/// A list's filters mean nothing to its `show`; the options of every command do.
fn refuse_filters_of_one(
    command: &mut clap::Command,
    matches: &clap::ArgMatches,
) -> Result<(), clap::Error> {
    let Some((list, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let one = match matches.subcommand() {
        Some((one, _)) if LISTS.contains(&list) => one.to_owned(),
        _ => return Ok(()),
    };
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
            ErrorKind::ArgumentConflict,
            format!("--{id} belongs to the list, and `muster {list} {one}` is about one"),
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
        shows_examples(&command, "muster");
    }

    fn shows_examples(command: &clap::Command, path: &str) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name());
            let help = sub.get_after_help().map(ToString::to_string);
            assert!(
                help.unwrap_or_default().contains("muster "),
                "{path} has no example"
            );
            shows_examples(sub, &path);
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
        let mut lines: Vec<(u8, String)> = Vec::new();
        for line in EXIT_CODES.lines().filter(|line| line.starts_with("  ")) {
            match (line.trim().split_once("  "), lines.last_mut()) {
                (Some((code, words)), _) => {
                    lines.push((code.parse().unwrap(), words.to_owned()));
                }
                (None, Some((_, words))) => *words += line,
                (None, None) => panic!("{line}"),
            }
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
