//! Completions: the script that a shell reads, and what that script asks while a command is
//! typed. Commands and flags are known here; agents, ids and names are asked of the plane. A
//! plane that does not answer at once has none, and nothing is said.

use std::ffi::OsStr;
use std::time::Duration;

use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use muster_wire::Status;
use muster_wire::fleet::WorkerState;
use serde_json::Value;

use super::item;
use super::list::Listed;
use crate::cli::Cli;
use crate::client::{Client, encode};
use crate::out::{self, clean};

/// Names the shell when its script asks.
const ASKS: &str = "COMPLETE";
/// How long somebody waits who pressed a key.
const PATIENCE: Duration = Duration::from_millis(700);
/// How many of a kind are offered.
const OFFERED: usize = 100;
/// So much of what a thing is stands beside it.
const BESIDE: usize = 60;

const APPROVALS: &[&str] = &[
    "pending",
    "approved",
    "rejected",
    "request_changes",
    "expired",
    "closed",
];
const DELIVERIES: &[&str] = &["pending", "delivered", "dead"];
/// Those before a colon take an id behind it.
const SCOPES: &[&str] = &[
    "agent", "agent:", "call", "read", "operate", "worker:", "node:", "relay", "admin",
];
const FILTERS: &[&str] = &[
    "state:",
    "agent:",
    "fn:",
    "category:",
    "reason:",
    "label:",
    "session:",
    "since:",
];

/// What may stand somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Agent,
    Function,
    Execution,
    Run,
    Node,
    Worker,
    Key,
    Message,
    Quarantined,
    Setting,
    /// What the audit log has seen.
    Audited,
}

/// Prints the script of a shell.
pub(super) fn print(shell: clap_complete::Shell) {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    if let Some(shell) = shells.completer(&shell.to_string()) {
        // Found in the path, so that the script outlives a move of the program.
        let _ = shell.write_registration(ASKS, "muster", "muster", "muster", &mut text);
    }
    out::data_raw(&String::from_utf8_lossy(&text));
}

/// Answers a shell's script and ends; does nothing when none asks.
pub(crate) fn answer() {
    let asked = std::env::var(ASKS).unwrap_or_default();
    let shell = asked.rsplit('/').next().unwrap_or_default();
    // A variable of this name may mean something to another program.
    if Shells::builtins().completer(shell).is_some() {
        CompleteEnv::with_factory(|| with_values(Cli::command(), ""))
            .bin("muster")
            .completer("muster")
            .complete();
    }
}

/// The command line with what may stand in its places.
fn with_values(command: clap::Command, path: &str) -> clap::Command {
    command
        .mut_args(|arg| {
            let words = words_at(path, arg.get_id().as_str());
            match things_at(path, arg.get_id().as_str()) {
                [] if words.is_empty() => arg,
                things => arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
                    offer(&words, things, typed)
                })),
            }
        })
        .mut_subcommands(|sub| {
            let path = format!("{path} {}", sub.get_name());
            with_values(sub, path.trim_start())
        })
}

/// What may stand at an argument of a command.
fn things_at(path: &str, arg: &str) -> &'static [Thing] {
    use Thing::*;
    let of = path.split(' ').next().unwrap_or_default();
    match (of, arg) {
        ("call", "target") => &[Function],
        ("compare", "a" | "b") => &[Run],
        ("config", "key") => &[Setting],
        ("executions" | "approve" | "reject", "id") => &[Execution],
        ("runs", "id") => &[Run],
        ("cancel" | "pause" | "resume" | "restart", "id") => &[Execution, Run],
        ("agents", "id") => &[Agent],
        ("nodes", "id") => &[Node],
        ("workers", "id") => &[Worker],
        ("keys", "id") => &[Key],
        ("webhooks", "id") => &[Message],
        ("quarantine", "id") => &[Quarantined],
        ("logs", "id") => &[Worker, Execution],
        ("why", "id") => &[Agent, Node, Worker, Execution, Run],
        (_, "agent") => &[Agent],
        (_, "node") => &[Node],
        (_, "worker") => &[Worker],
        (_, "run") => &[Run],
        (_, "execution") => &[Execution],
        ("audit", "action") => &[Audited],
        _ => &[],
    }
}

/// The words that may stand at an argument whose words are known here. A plane may know more:
/// what is typed is the plane's to refuse.
fn words_at(path: &str, arg: &str) -> Vec<&'static str> {
    let of = path.split(' ').next().unwrap_or_default();
    match (of, arg) {
        ("executions" | "runs", "state") => Status::ALL.iter().map(|word| word.word()).collect(),
        ("workers", "state") => {
            let all = WorkerState::ALL.iter();
            all.map(|word| word.word()).collect()
        }
        ("approvals", "status") => APPROVALS.to_vec(),
        ("webhooks", "state") => DELIVERIES.to_vec(),
        ("keys", "scope") => SCOPES.to_vec(),
        ("spawn", "restart") => vec!["never", "on-failure", "always"],
        ("queues", "cap") => vec!["off", "default"],
        ("search", "words") => FILTERS.to_vec(),
        (_, "category") => muster_wire::Category::ALL
            .iter()
            .map(muster_wire::Category::word)
            .collect(),
        _ => Vec::new(),
    }
}

/// Every word, and everything of these kinds, that begins with what is typed.
fn offer(words: &[&str], things: &[Thing], typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else {
        return Vec::new();
    };
    let words = words.iter().map(|word| ((*word).to_owned(), String::new()));
    let mut found: Vec<(String, String)> = words.collect();
    if !things.is_empty()
        && let Ok(client) = Client::find(server_of_the_line().as_deref())
        && let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    {
        let asked = things.iter().map(|thing| known(&client, *thing, typed));
        let all = runtime.block_on(futures_util::future::join_all(asked));
        found.extend(all.into_iter().flatten());
    }
    found
        .into_iter()
        .filter(|(value, _)| value.starts_with(typed) && is_plain(value))
        .take(OFFERED)
        .enumerate()
        .map(|(at, (value, beside))| {
            let offered = CompletionCandidate::new(value).display_order(Some(at));
            offered.help((!beside.is_empty()).then(|| beside.into()))
        })
        .collect()
}

/// A name that a shell takes as it is: what others chose is put into a command line.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with('-')
        && value
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '@' | '+' | '/'))
}

/// The plane that the line names: `--server` was typed before what is completed.
fn server_of_the_line() -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != "--").skip(1);
    while let Some(word) = words.next() {
        if word == "--server" {
            return words.next();
        }
        if let Some(server) = word.strip_prefix("--server=") {
            return Some(server.to_owned());
        }
    }
    None
}

/// The things of a kind that a plane knows, and what each is.
async fn known(client: &Client, thing: Thing, typed: &str) -> Vec<(String, String)> {
    let ids = format!("limit={OFFERED}&q={}", encode(typed));
    let path = match thing {
        Thing::Agent | Thing::Function => "/api/v1/nodes?limit=500".to_owned(),
        Thing::Execution if typed.is_empty() => format!("/api/v1/executions?limit={OFFERED}"),
        Thing::Execution => format!("/api/v1/executions?{ids}"),
        Thing::Run if typed.is_empty() => format!("/api/v1/runs?limit={OFFERED}"),
        Thing::Run => format!("/api/v1/runs?{ids}"),
        Thing::Node => "/api/v1/fleet/nodes?retired=true".to_owned(),
        Thing::Worker => format!("/api/v1/fleet/workers?ended=true&limit={OFFERED}"),
        Thing::Key => "/api/v1/keys".to_owned(),
        Thing::Message => format!("/api/v1/webhooks?limit={OFFERED}"),
        Thing::Quarantined => "/api/v1/quarantine".to_owned(),
        Thing::Setting => "/api/v1/config".to_owned(),
        Thing::Audited => "/api/v1/audit?limit=500".to_owned(),
    };
    let body = match tokio::time::timeout(PATIENCE, client.get_json(&path)).await {
        Ok(Ok(body)) => body,
        _ => return Vec::new(),
    };
    let items = Listed::of(body).items;
    let mut all: Vec<_> = items.iter().flat_map(|item| named(thing, item)).collect();
    if thing == Thing::Audited {
        all.sort();
        all.dedup();
    }
    all
}

/// What an item of a list may be called, and what it is.
fn named(thing: Thing, of: &Value) -> Vec<(String, String)> {
    let ids: &[&str] = match thing {
        Thing::Execution => &["execution_id", "id"],
        Thing::Run => &["run_id", "id"],
        // A machine goes by its name.
        Thing::Node | Thing::Worker => &["name", "id", "worker_id"],
        Thing::Setting => &["key"],
        Thing::Audited => &["action"],
        _ => &["id", "node_id"],
    };
    let Some(id) = item::raw(of, ids) else {
        return Vec::new();
    };
    let beside = |names: &[&str]| {
        let said: Vec<String> = names
            .iter()
            .filter_map(|name| item::text(of, &[name]))
            .collect();
        said.join(" ").chars().take(BESIDE).collect::<String>()
    };
    match thing {
        Thing::Function => {
            let functions = of.get("functions").and_then(Value::as_array);
            let ids = functions
                .into_iter()
                .flatten()
                .filter_map(|one| item::raw(one, &["id", "name"]));
            ids.map(|function| (format!("{id}.{function}"), beside(&["state"])))
                .collect()
        }
        Thing::Execution => vec![(id, beside(&["state", "target"]))],
        Thing::Run => vec![(id, beside(&["state", "name"]))],
        Thing::Key => vec![(id, beside(&["state", "name"]))],
        Thing::Message => vec![(id, beside(&["state", "type"]))],
        Thing::Quarantined => vec![(id, beside(&["kind", "about"]))],
        Thing::Setting => vec![(id, beside(&["source"]))],
        Thing::Audited => vec![(id, String::new())],
        _ => vec![(clean(&id), beside(&["state"]))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A place that names a thing of the plane is completed, whoever adds it.
    #[test]
    fn every_place_for_a_thing_of_the_plane_has_its_values() {
        fn look(command: &clap::Command, path: &str, seen: &mut usize) {
            for arg in command.get_arguments() {
                let id = arg.get_id().as_str();
                let names_a_thing = matches!(
                    id,
                    "id" | "agent" | "node" | "worker" | "run" | "execution" | "target"
                ) && !path.ends_with("example-agent");
                let has = arg.get::<ArgValueCompleter>().is_some();
                assert!(has || !names_a_thing, "{path}: {id} has no values");
                *seen += usize::from(has);
            }
            for sub in command.get_subcommands() {
                look(sub, &format!("{path} {}", sub.get_name()), seen);
            }
        }
        let mut seen = 0;
        let command = with_values(Cli::command(), "");
        command.clone().debug_assert();
        look(&command, "muster", &mut seen);
        assert!(seen > 40, "only {seen} places");
    }

    /// Words that the document of the API closes are offered, all of them.
    #[test]
    fn closed_words_are_those_of_the_api() {
        let document: Value =
            serde_json::from_str(include_str!("../../../../openapi.json")).unwrap();
        for (path, arg, schema) in [
            ("executions", "state", "Status"),
            ("runs", "state", "Status"),
            ("workers", "state", "WorkerState"),
            ("approvals", "status", "ApprovalState"),
            ("webhooks list", "state", "DeliveryState"),
            ("spawn", "restart", "RestartMode"),
            ("executions", "category", "Category"),
        ] {
            let words = &document["components"]["schemas"][schema]["enum"];
            assert_eq!(&json!(words_at(path, arg)), words, "{path} {arg}");
        }
    }

    /// A list that is filtered by a closed word offers it, whoever adds it.
    #[test]
    fn every_closed_word_of_the_command_line_is_offered() {
        fn look(command: &clap::Command, path: &str) {
            for arg in command.get_arguments() {
                let id = arg.get_id().as_str();
                // A node's `--state` is a directory.
                let closed = matches!(id, "state" | "status" | "scope" | "category" | "action")
                    && !path.starts_with("muster node ");
                let offers = arg.get::<ArgValueCompleter>().is_some()
                    || !arg.get_possible_values().is_empty();
                assert!(offers || !closed, "{path}: --{id} offers nothing");
            }
            for sub in command.get_subcommands() {
                look(sub, &format!("{path} {}", sub.get_name()));
            }
        }
        look(&with_values(Cli::command(), ""), "muster");
    }

    #[test]
    fn what_a_shell_would_run_is_never_offered() {
        for name in [
            "billing",
            "a.b",
            "exec_01KB",
            "edge-1",
            "días",
            "10.0.0.5:8080",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "", "-rf", "a b", "$(id)", "a;b", "`id`", "a\nb", "x'", "*", "a|b", "~",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn a_function_goes_by_its_agents_name_and_a_machine_by_its_own() {
        let agent = json!({"id": "trip", "state": "active", "functions": [{"id": "plan"}]});
        let plan = ("trip.plan".to_owned(), "active".to_owned());
        assert_eq!(named(Thing::Function, &agent), [plan]);
        let node = json!({"id": "node_1", "name": "edge-1", "state": "online"});
        let edge = ("edge-1".to_owned(), "online".to_owned());
        assert_eq!(named(Thing::Node, &node), [edge]);
    }
}
