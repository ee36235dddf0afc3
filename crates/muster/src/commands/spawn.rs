//! `muster spawn`: asks for a worker and says where it runs, or why it does not.

use std::collections::BTreeMap;

use http::Method;
use muster_server::config::Span;
use muster_wire::fleet::{RestartMode, RestartPolicy};
use muster_wire::{Category, ErrorBody};
use serde_json::{Value, json};

use super::workers::{WORKERS, exit_word, id_of, mark_of, node_of, output_of};
use super::{Asking, attach, envelope, item};
use crate::cli::{Attach, Spawn};
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean};

/// Spawns, and attaches when told to.
pub(super) async fn run(asking: &Asking<'_>, args: &Spawn) -> Outcome<u8> {
    let body = body_of(args, |name| std::env::var(name).ok())?;
    let headers: Vec<(&str, &str)> = args
        .key
        .iter()
        .map(|key| ("idempotency-key", key.as_str()))
        .collect();
    let answer = asking
        .client
        .send(
            Method::POST,
            WORKERS,
            Some(body.to_string().into()),
            &headers,
        )
        .await
        .map_err(with_hint)?;
    let answer = answer.json()?;
    // The worker itself, or beside what was done.
    let worker = answer
        .get("worker")
        .filter(|worker| worker.is_object())
        .unwrap_or(&answer);
    say(asking, worker)?;
    if args.attach && item::state(worker) != "queued" {
        let args = Attach {
            worker: id_of(worker),
            drive: false,
            take: false,
            read_only: false,
            detach_key: "ctrl-]".to_owned(),
        };
        return attach::run(asking, &args).await;
    }
    Ok(0)
}

/// The wish as the plane reads it.
fn body_of(args: &Spawn, here: impl Fn(&str) -> Option<String>) -> Outcome<Value> {
    let (command, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| wrong("there is no command"))?;
    let mut body = json!({
        "command": command,
        "args": arguments,
        "io": if args.pipes { "pipes" } else { "pty" },
        "restart": restart_of(&args.restart)?,
    });
    let mut set = |name: &str, value: Value| body[name] = value;
    if let Some(node) = &args.node {
        set("node", json!(node));
    }
    if !args.label.is_empty() {
        set("target_labels", json!(args.label));
    }
    if !args.spread.is_empty() {
        set("labels", json!(args.spread));
    }
    for (name, value) in [("name", &args.name), ("cwd", &args.cwd)] {
        if let Some(value) = value {
            set(name, json!(value));
        }
    }
    let env = environment(&args.env, here)?;
    if !env.is_empty() {
        set("env", json!(env));
    }
    match &args.queue {
        None => {}
        Some(None) => set("queue", json!(true)),
        Some(Some(text)) => set("queue", json!(duration("--queue", text)?)),
    }
    for (name, flag, text) in [
        ("start_window", "--start-window", &args.start_window),
        ("stop_grace", "--stop-grace", &args.stop_grace),
    ] {
        if let Some(text) = text {
            set(name, json!(duration(flag, text)?));
        }
    }
    Ok(body)
}

/// `never`, `on-failure`, `on-failure:5`, `always`, `always:3`.
fn restart_of(text: &str) -> Outcome<RestartPolicy> {
    let (mode, max) = match text.split_once(':') {
        Some((mode, max)) => (mode, Some(max)),
        None => (text, None),
    };
    let mode = RestartMode::from_word(mode).ok_or_else(|| {
        wrong(format!(
            "--restart {text}: it is never, on-failure[:TIMES] or always[:TIMES]"
        ))
    })?;
    let max = match max {
        None => None,
        Some(_) if mode == RestartMode::Never => {
            return Err(wrong(format!(
                "--restart {text}: never is never, without a number"
            )));
        }
        Some(max) => Some(max.parse().map_err(|_| {
            wrong(format!(
                "--restart {text}: what follows the colon is a number of times"
            ))
        })?),
    };
    Ok(RestartPolicy { mode, max })
}

/// `NAME=VALUE`, or `NAME` with the value it has here.
fn environment(
    given: &[String],
    here: impl Fn(&str) -> Option<String>,
) -> Outcome<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    for given in given {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            // The value is not said: it may be a secret.
            None => match here(given) {
                Some(value) => (given.as_str(), value),
                None => return Err(wrong(format!("--env {given}: it is not set here"))),
            },
        };
        if name.is_empty() {
            return Err(wrong("--env: a variable has no name"));
        }
        env.insert(name.to_owned(), value);
    }
    Ok(env)
}

/// A duration, checked here so that the flag is named.
pub(super) fn duration<'a>(flag: &str, text: &'a str) -> Outcome<&'a str> {
    match Span::parse(text) {
        Ok(_) => Ok(text),
        Err(error) => Err(wrong(format!("{flag}: {error}"))),
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(Category::Validation, message)
}

/// Says what became of it. One that exited within its start window has failed.
fn say(asking: &Asking<'_>, worker: &Value) -> Outcome<()> {
    let id = id_of(worker);
    let state = item::state(worker);
    if asking.json {
        envelope::print_one("worker", worker);
    } else {
        out::data(&id);
    }
    if state == "exited" {
        return Err(ended(worker, &id));
    }
    if asking.json {
        return Ok(());
    }
    let style = &asking.look.errors;
    let mark = mark_of(worker);
    let name = item::text(worker, &["name"]).unwrap_or_default();
    let evidence = item::text(worker, &["evidence"]).unwrap_or_default();
    let place = match node_of(worker) {
        node if node.is_empty() => item::text(worker, &["waits_for"])
            .map(|why| format!("waits for a place: {why}"))
            .unwrap_or_else(|| "waits for a place".to_owned()),
        node => match item::text(worker, &["pid"]) {
            Some(pid) => format!("on {node}, pid {pid}"),
            None => format!("on {node}"),
        },
    };
    out::talk(&style.words(&format!(
        "{} {} {name}  {place}  {evidence}",
        mark.painted(style),
        style.paint(mark.colour, &state),
    )));
    out::talk(&match state.as_str() {
        "queued" => format!("see it: muster workers show {name} · give it up: muster release {id}"),
        _ => format!("see it: muster attach {name} · end it: muster release {name}"),
    });
    Ok(())
}

/// It did not live through its start window.
fn ended(worker: &Value, id: &str) -> Failure {
    let exit = worker.get("exit").unwrap_or(&Value::Null);
    let name = item::text(worker, &["name"]).unwrap_or_default();
    let known = |what: &str| !exit.get(what).unwrap_or(&Value::Null).is_null();
    let node = node_of(worker);
    let text = match item::text(exit, &["reason"]) {
        // No process of it ever ran.
        Some(reason) if !known("code") && !known("signal") => {
            format!("{name} could not be started on {node}: {reason}")
        }
        _ => {
            let how = exit_word(exit);
            format!("{name} was started on {node} and ended at once: {how}")
        }
    };
    let body = ErrorBody::new(Category::AgentError, text);
    let mut failure = Failure::from(body);
    let most = worker.pointer("/restart/max").and_then(Value::as_u64);
    match item::number(worker, &["restarts"]) {
        Some(times @ 1..) if most == Some(times) => {
            failure = failure.seen(format!("its {times} restarts are used up"));
        }
        Some(times @ 1..) => failure = failure.seen(format!("it was started again {times} times")),
        _ => {}
    }
    failure.evidence.extend(output_of(exit));
    failure.hint(format!("`muster workers show {id}` has it all"))
}

fn with_hint(mut failure: Failure) -> Failure {
    let details = failure.body.details.clone().unwrap_or(Value::Null);
    for passed in details
        .get("passed_over")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let who = item::text(passed, &["name", "node"]).unwrap_or_default();
        let said = item::text(passed, &["evidence", "why"]).unwrap_or_default();
        // Of the one that was named the sentence itself says it all.
        if !failure.body.message.contains(&said) {
            failure = failure.seen(format!("{}: {}", clean(&who), clean(&said)));
        }
    }
    if let Some(hint) = item::text(&details, &["hint"]) {
        return failure.hint(hint);
    }
    if failure.hint.is_some() {
        return failure;
    }
    match failure.body.error_category {
        Category::NodeUnreachable => failure
            .hint("place it elsewhere without --node, or see `muster nodes` and `muster why NODE`"),
        Category::NodeDraining => {
            failure.hint("let it take work again: muster nodes activate NODE")
        }
        Category::NoEligibleNode => {
            failure.hint("see `muster nodes`; a machine joins with `muster nodes enroll NAME`")
        }
        Category::FleetCapacity => failure.hint("wait for a place with --queue=10m"),
        Category::UnsupportedByNode => {
            failure.hint("place it on a machine that runs `muster node`, or without that option")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn body(words: &[&str]) -> Outcome<Value> {
        let cli = crate::cli::Cli::parse_from([&["muster", "spawn"], words].concat());
        let crate::cli::Command::Spawn(args) = cli.command else {
            unreachable!("it is spawn")
        };
        body_of(&args, |name| (name == "TOKEN").then(|| "canary".to_owned()))
    }

    #[test]
    fn the_wish_has_what_was_said_and_nothing_else() {
        assert_eq!(
            body(&["--", "cat", "-u"]).unwrap(),
            json!({"command": "cat", "args": ["-u"], "io": "pty", "restart": {"mode": "never"}})
        );
        assert_eq!(
            body(&[
                "--node",
                "edge-1",
                "--label",
                "gpu",
                "--label",
                "zone=eu",
                "--name",
                "n",
                "--cwd",
                "/tmp",
                "--env",
                "A=b=c",
                "--env",
                "TOKEN",
                "--pipes",
                "--restart",
                "on-failure:5",
                "--queue=10m",
                "--",
                "train",
                "--fast"
            ])
            .unwrap(),
            json!({
                "command": "train", "args": ["--fast"], "io": "pipes", "node": "edge-1",
                "target_labels": ["gpu", "zone=eu"], "name": "n", "cwd": "/tmp",
                "env": {"A": "b=c", "TOKEN": "canary"},
                "restart": {"mode": "on-failure", "max": 5},
                "queue": "10m",
            })
        );
        assert_eq!(body(&["--queue", "--", "x"]).unwrap()["queue"], true);
    }

    #[test]
    fn wrong_wishes_are_refused_before_they_are_sent() {
        for (words, says) in [
            (&["--restart", "often", "--", "x"][..], "on-failure"),
            (&["--restart", "never:3", "--", "x"], "never is never"),
            (&["--restart", "always:x", "--", "x"], "number of times"),
            (&["--env", "ABSENT", "--", "x"], "not set here"),
            (&["--env", "=1", "--", "x"], "no name"),
            (&["--queue=soon", "--", "x"], "--queue"),
        ] {
            let failure = body(words).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{words:?}");
            assert!(failure.body.message.contains(says), "{failure:?}");
        }
    }
}
