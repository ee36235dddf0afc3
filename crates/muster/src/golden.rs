//! What people see, from fixed answers of a plane: at 60, 80 and 120 columns, in a pipe, with
//! colour, and without UTF-8. The files are in `snapshots/`.

use muster_wire::Timestamp;
use serde_json::Value;

use crate::commands::drawn;
use crate::failure::Failure;
use crate::out::{ColourChoice, Style};

fn style(width: Option<usize>, colour: bool, unicode: bool) -> Style {
    Style {
        colour,
        unicode,
        width,
        redraws: false,
    }
}

fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Draws a fixture in every way and keeps it in one file.
pub(crate) fn keep(name: &str, draw: impl Fn(&Style) -> String) {
    keep_with(name, true, draw);
}

/// A stream of lines, which go on where the terminal ends, or a table, which does not.
fn keep_with(name: &str, bounded: bool, draw: impl Fn(&Style) -> String) {
    let mut all = String::new();
    // Asked for by the environment, on a terminal that has colour.
    let no_colour = Style::find(ColourChoice::Auto, true, Some(80), |name| {
        (name == "NO_COLOR").then(|| "1".to_owned())
    });
    assert_eq!(draw(&no_colour), draw(&style(Some(80), false, true)));
    for (title, style) in [
        ("60 columns", style(Some(60), false, true)),
        ("80 columns", style(Some(80), false, true)),
        ("120 columns", style(Some(120), false, true)),
        ("a pipe", style(None, false, true)),
        ("80 columns, colour", style(Some(80), true, true)),
        ("80 columns, no UTF-8", style(Some(80), false, false)),
    ] {
        let text = draw(&style);
        if let (true, Some(width)) = (bounded, style.width) {
            for line in text.lines() {
                let plain = without_colour(line);
                let columns = crate::out::style::columns_of(&plain);
                assert!(
                    columns <= width.max(longest_word(&plain)),
                    "{name}, {title}: {columns} columns\n{line}"
                );
            }
        }
        if !style.unicode {
            assert!(text.is_ascii(), "{name}: not ASCII\n{text}");
        }
        assert_eq!(style.colour, text.contains("\u{1b}["), "{name}, {title}");
        all += &format!("== {title}\n{}\n", text.replace('\u{1b}', "␛"));
    }
    insta::assert_snapshot!(name, all);
}

fn without_colour(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        out += &rest[..at];
        rest = rest[at..].split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

/// A word that is not cut, an id or an address, may make a line as long as it needs; so may a
/// command, which is copied whole.
fn longest_word(line: &str) -> usize {
    let is_long = line.split_whitespace().any(|word| word.len() > 25);
    match is_long || line.trim_start().starts_with(['`', 'm']) && line.contains("muster ") {
        true => usize::MAX,
        false => 0,
    }
}

/// Every command, and where what it prints is kept: a golden file; or in brackets why it has none
/// and which test on a real plane reads it.
const KEPT: &[(&str, &str)] = &[
    ("overview", "overview overview_calm"),
    ("dev", "(a program that stays: tests/processes/dev.rs)"),
    (
        "server",
        "(a program that stays: tests/processes/server.rs)",
    ),
    ("node run", "(a program that stays: peers/test_fleet_cli)"),
    ("node enroll", "(one sentence: peers/test_fleet_cli)"),
    ("node status", "node_status"),
    ("node reconnect", "(one sentence: peers/test_fleet_cli)"),
    ("node drain", "(one sentence: peers/test_fleet_cli)"),
    ("node stop", "(one sentence: peers/test_fleet_cli)"),
    ("call", "tree tree_folded errors"),
    ("agents", "agents"),
    ("agents show", "agent"),
    ("agents history", "agent_history"),
    ("agents retire", "(one sentence: peers/test_cli_acts)"),
    ("executions", "executions"),
    ("executions show", "execution"),
    ("runs", "runs"),
    ("runs show", "tree tree_folded"),
    ("compare", "compare"),
    ("search", "search"),
    ("cancel", "receipts"),
    ("pause", "receipts"),
    ("resume", "receipts"),
    ("approvals", "approvals"),
    ("approve", "receipts"),
    ("reject", "receipts"),
    ("restart", "receipts"),
    ("nodes", "nodes"),
    ("nodes show", "node"),
    ("nodes history", "node_history"),
    ("nodes enroll", "receipts"),
    ("nodes drain", "(one sentence: peers/test_fleet_cli)"),
    ("nodes cordon", "(one sentence: peers/test_fleet_cli)"),
    ("nodes activate", "(one sentence: peers/test_fleet_cli)"),
    ("nodes retire", "(one sentence: peers/test_cli_acts)"),
    ("nodes pin", "(one sentence: peers/test_fleet_cli)"),
    ("nodes unpin", "(one sentence: peers/test_fleet_cli)"),
    ("nodes lost", "(one sentence: peers/test_cli_acts)"),
    ("nodes delete", "(one sentence: peers/test_cli_acts)"),
    ("workers", "workers"),
    ("workers show", "worker"),
    ("workers restart", "receipts"),
    ("spawn", "(two sentences: peers/test_fleet_cli)"),
    ("attach", "(a terminal: peers/test_fleet_cli)"),
    ("logs", "logs"),
    ("release", "receipts"),
    ("fleet", "fleet"),
    ("fleet end-doubt", "(one sentence: peers/test_cli_acts)"),
    ("drift", "drift"),
    ("tail", "tail"),
    ("why", "why why_queue"),
    ("queues", "queues"),
    ("queues show", "queue"),
    ("queues cap", "receipts"),
    ("usage", "usage"),
    ("audit", "audit"),
    ("config", "config"),
    ("tags", "tags"),
    ("tags list", "tags"),
    ("tags approve", "receipts"),
    ("tags reject", "receipts"),
    ("keys", "keys"),
    ("keys list", "keys"),
    (
        "keys create",
        "(a secret and a sentence: peers/test_cli_acts)",
    ),
    (
        "keys code",
        "(a secret and a sentence: peers/test_cli_acts)",
    ),
    ("keys revoke", "receipts"),
    (
        "keys rotate",
        "(a secret and a sentence: peers/test_cli_acts)",
    ),
    ("hold", "receipts"),
    ("unhold", "receipts"),
    ("quarantine", "quarantine"),
    ("quarantine list", "quarantine"),
    ("quarantine show", "quarantined"),
    ("quarantine drop", "(one sentence)"),
    ("webhooks", "webhooks"),
    ("webhooks list", "webhooks"),
    ("webhooks show", "webhook"),
    ("webhooks redrive", "webhook"),
    ("backup", "(one sentence)"),
    ("restore", "(one sentence)"),
    ("doctor", "doctor"),
    ("openapi", "(the document)"),
    ("completions", "(a script: peers/test_cli_completions)"),
];

/// A command that is added has its golden file, or says where else it is read.
#[test]
fn every_command_that_prints_is_kept() {
    use clap::CommandFactory;
    fn look(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        for sub in subs {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            if !sub.is_subcommand_required_set() {
                all.push(path.clone());
            }
            look(sub, &path, all);
        }
    }
    let mut all = Vec::new();
    look(&crate::cli::Cli::command(), "", &mut all);
    let kept: Vec<&str> = KEPT.iter().map(|(path, _)| *path).collect();
    assert_eq!(all, kept);
    for (path, files) in KEPT.iter().filter(|(_, files)| !files.starts_with('(')) {
        for file in files.split(' ') {
            let file = format!("src/snapshots/muster__golden__{file}.snap");
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            assert!(file.exists(), "{path}: {}", file.display());
        }
    }
}

#[test]
fn executions() {
    keep("executions", |style| {
        drawn::executions(style, fixture("executions"))
    });
}

#[test]
fn execution() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/execution.json");
    let text = std::fs::read_to_string(path).unwrap();
    keep("execution", |style| drawn::execution(style, &text));
}

#[test]
fn doctor() {
    keep("doctor", |style| drawn::doctor(style, &fixture("doctor")));
}

#[test]
fn tail() {
    keep_with("tail", false, |style| drawn::tail(style, fixture("tail")));
}

#[test]
fn logs() {
    keep_with("logs", false, |style| drawn::logs(style, fixture("logs")));
}

/// Without columns and without colour: what others wrote in it steers no terminal.
#[test]
fn webhook() {
    let text = drawn::webhook(&fixture("webhooks")["messages"][0]);
    insta::assert_snapshot!("webhook", text);
    let hostile = serde_json::json!({"id": "msg_1", "last_error": "\u{1b}[2Jgone\r\u{202e}"});
    let text = drawn::webhook(&hostile);
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
}

#[test]
fn runs() {
    keep("runs", |style| drawn::runs(style, fixture("runs")));
}

#[test]
fn agents() {
    keep("agents", |style| drawn::agents(style, fixture("agents")));
}

#[test]
fn agent() {
    keep("agent", |style| drawn::agent(style, &fixture("agent")));
}

#[test]
fn approvals() {
    keep("approvals", |style| {
        drawn::approvals(style, fixture("approvals"))
    });
}

#[test]
fn queues() {
    keep("queues", |style| drawn::queues(style, fixture("queues")));
}

#[test]
fn tags() {
    keep("tags", |style| drawn::tags(style, fixture("tags")));
}

fn noon() -> Timestamp {
    Timestamp::parse("2026-11-29T18:00:00.000Z").unwrap()
}

#[test]
fn nodes() {
    keep("nodes", |style| drawn::nodes(style, fixture("nodes")));
}

#[test]
fn node() {
    keep("node", |style| drawn::node(style, &fixture("node"), noon()));
}

#[test]
fn workers() {
    keep("workers", |style| drawn::workers(style, fixture("workers")));
}

#[test]
fn worker() {
    keep("worker", |style| {
        drawn::worker(style, &fixture("worker"), noon())
    });
}

#[test]
fn drift() {
    keep("drift", |style| drawn::drift(style, fixture("drift")));
}

#[test]
fn fleet() {
    keep("fleet", |style| {
        drawn::fleet(style, &fixture("fleet"), noon())
    });
}

#[test]
fn why() {
    keep("why", |style| drawn::why(style, &fixture("why")));
}

#[test]
fn why_of_a_queue() {
    keep("why_queue", |style| {
        drawn::why(style, &fixture("why_queue"))
    });
}

#[test]
fn overview() {
    keep("overview", |style| {
        drawn::overview(style, &fixture("overview"))
    });
}

#[test]
fn overview_of_a_calm_plane() {
    keep("overview_calm", |style| {
        drawn::overview(style, &fixture("overview_calm"))
    });
}

#[test]
fn usage() {
    keep("usage", |style| drawn::usage(style, fixture("usage")));
}

#[test]
fn audit() {
    keep("audit", |style| drawn::audit(style, fixture("audit")));
}

#[test]
fn config() {
    keep("config", |style| drawn::config(style, fixture("config")));
}

#[test]
fn search() {
    keep("search", |style| {
        drawn::search(style, fixture("search"), noon())
    });
}

#[test]
fn queue() {
    keep("queue", |style| drawn::queue(style, &fixture("queue")));
}

#[test]
fn compare() {
    keep("compare", |style| drawn::compare(style, fixture("compare")));
}

#[test]
fn agent_history() {
    keep("agent_history", |style| {
        drawn::history(style, &fixture("agent_history"))
    });
}

#[test]
fn node_history() {
    keep("node_history", |style| {
        drawn::history(style, &fixture("node_history"))
    });
}

#[test]
fn keys() {
    keep("keys", |style| drawn::keys(style, fixture("keys")));
}

#[test]
fn webhooks() {
    keep("webhooks", |style| {
        drawn::webhooks(style, fixture("webhooks"))
    });
}

#[test]
fn quarantine() {
    keep("quarantine", |style| {
        drawn::quarantine(style, fixture("quarantine"))
    });
}

#[test]
fn quarantined() {
    keep("quarantined", |style| {
        let mut one = fixture("quarantine")["items"][0].clone();
        one["what"] = serde_json::json!("\u{1b}[2J not JSON at byte 17 of a row of 2,114 bytes: {");
        drawn::quarantined(style, &one)
    });
}

#[test]
fn node_status() {
    keep("node_status", |style| drawn::node_status(style, noon()));
}

/// Receipts of acts are sentences, as long as they are.
#[test]
fn receipts() {
    insta::assert_snapshot!("receipts", drawn::receipts());
}

#[test]
fn errors() {
    keep("errors", |style| {
        let mut all = String::new();
        for category in muster_wire::Category::ALL {
            all += &Failure::new(category.clone(), "what went wrong").text(style);
        }
        let mut body =
            muster_wire::ErrorBody::new(muster_wire::Category::AgentError, "KeyError: 'city'");
        body.execution_id = Some("exec_01KB6E7M9QX2T4V8N04HT7KB00".to_owned());
        body.retry_after = Some(2);
        all + &Failure::from(body)
            .seen("run run_01KB6E7M9QX2T4V8N0P4D1XW00")
            .text(style)
    });
}

#[test]
fn tree() {
    keep("tree", |style| drawn::tree(style, fixture("steps"), 20));
}

#[test]
fn tree_folded_to_six_rows() {
    keep("tree_folded", |style| {
        drawn::tree(style, fixture("steps"), 6)
    });
    let text = drawn::tree(&style(Some(80), false, true), fixture("steps"), 6);
    assert!(text.lines().count() <= 6, "{text}");
}
