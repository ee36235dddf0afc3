//! One file per command. Each reads its arguments, asks the plane, and hands data and talk to
//! the output module.

mod agent_history;
mod agents;
mod approvals;
mod attach;
mod audit;
mod backup;
mod call;
mod cancel;
mod compare;
pub(crate) mod completions;
mod config;
mod consequence;
mod doctor;
mod drift;
mod envelope;
mod executions;
mod fleet;
mod fleet_history;
mod hold;
mod item;
mod keys;
mod known;
mod list;
mod logs;
mod node;
mod node_wishes;
mod nodes;
mod openapi;
mod overview;
mod pauses;
mod progress;
mod quarantine;
mod queues;
mod release;
mod resolve;
mod restart;
mod runs;
#[cfg(test)]
mod schema;
mod search;
pub(crate) mod server;
mod spawn;
mod tags;
mod tail;
mod usage;
mod waits;
mod webhooks;
mod why;
mod worker_restart;
mod workers;

use std::future::Future;

use muster_wire::Category;

use crate::cli::{Cli, Command, Dev, Restore, Server};
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::out::Look;

/// What every command that asks a plane has.
pub(crate) struct Asking<'a> {
    /// The plane.
    pub(crate) client: Client,
    /// How output looks.
    pub(crate) look: &'a Look,
    /// JSON for programs.
    pub(crate) json: bool,
}

/// Runs the command that was asked for; the exit code when nothing failed.
pub(crate) fn run(cli: Cli, look: &Look) -> Outcome<u8> {
    let json = cli.json;
    let server = cli.server;
    let asking = || -> Outcome<Asking<'_>> {
        Ok(Asking {
            client: Client::find(server.as_deref())?,
            look,
            json,
        })
    };
    match cli.command {
        Command::Dev(Dev { asks, .. })
        | Command::Server(Server { asks, .. })
        | Command::Restore(Restore { asks, .. })
        | Command::Completions { asks, .. }
            if asks.server.is_some() || server.is_some() =>
        {
            Err(Failure::new(
                Category::Validation,
                "--server names a plane to ask, and this asks none",
            )
            .hint("where a plane listens is said with --listen"))
        }
        Command::Node(args) if args.command.names_a_plane_for_nothing() => Err(Failure::new(
            Category::Validation,
            "--server names a plane to ask, and this asks none",
        )
        .hint("a node's plane is said with --plane when it is enrolled")),
        Command::Node(args) => node::run(&args.command, server.as_deref(), look, json),
        Command::Dev(args) => crate::dev::run(args, look),
        Command::Server(args) => server::run(&args, look, json),
        Command::ExampleAgent(args) => wait(crate::dev::example::run(args)),
        Command::Completions { shell, .. } => {
            completions::print(shell);
            Ok(0)
        }
        Command::Call(args) => wait(call::run(&asking()?, &args)),
        Command::Overview(args) => wait(overview::run(&asking()?, &args)),
        Command::Search(args) => wait(search::run(&asking()?, &args)),
        Command::Compare(args) => wait(compare::run(&asking()?, &args)),
        Command::Usage(args) => wait(usage::run(&asking()?, &args)),
        Command::Audit(args) => wait(audit::run(&asking()?, &args)),
        Command::Config(args) => wait(config::run(&asking()?, &args)),
        Command::Agents(args) => wait(agents::run(&asking()?, &args)),
        Command::Executions(args) => wait(executions::run(&asking()?, &args)),
        Command::Runs(args) => wait(runs::run(&asking()?, &args)),
        Command::Cancel(args) => wait(cancel::run(&asking()?, &args)),
        Command::Pause(args) => wait(pauses::run(&asking()?, &args, true)),
        Command::Resume(args) => wait(pauses::run(&asking()?, &args, false)),
        Command::Approvals(args) => wait(approvals::run(&asking()?, &args)),
        Command::Approve(args) => {
            let decision = if args.changes {
                "request_changes"
            } else {
                "approved"
            };
            wait(approvals::decide(&asking()?, &args.decide, decision))
        }
        Command::Reject(args) => wait(approvals::decide(&asking()?, &args, "rejected")),
        Command::Restart(args) => wait(restart::run(&asking()?, &args)),
        Command::Tags(args) => wait(tags::run(&asking()?, &args)),
        Command::Nodes(args) => wait(nodes::run(&asking()?, &args)),
        Command::Workers(args) => wait(workers::run(&asking()?, &args)),
        Command::Spawn(args) => wait(spawn::run(&asking()?, &args)),
        Command::Attach(args) => wait(attach::run(&asking()?, &args)),
        Command::Logs(args) => wait(logs::run(&asking()?, &args)),
        Command::Release(args) => wait(release::run(&asking()?, &args)),
        Command::Fleet(args) => wait(fleet::run(&asking()?, &args)),
        Command::Drift(args) => wait(drift::run(&asking()?, &args)),
        Command::Tail(args) => wait(tail::run(&asking()?, &args)),
        Command::Why(args) => wait(why::run(&asking()?, &args)),
        Command::Queues(args) => wait(queues::run(&asking()?, &args)),
        Command::Keys(args) => wait(keys::run(&asking()?, &args)),
        Command::Hold(args) => wait(hold::hold(&asking()?, &args)),
        Command::Unhold(args) => wait(hold::unhold(&asking()?, &args)),
        Command::Quarantine(args) => wait(quarantine::run(&asking()?, &args)),
        Command::Webhooks(args) => wait(webhooks::run(&asking()?, &args)),
        Command::Backup(args) => wait(backup::backup(&asking()?, &args)),
        Command::Restore(args) => backup::restore(&args, json),
        Command::Doctor => wait(doctor::run(&asking()?)),
        Command::Openapi => wait(openapi::run(&asking()?)),
    }
}

/// Runs a command that waits for others, on this thread.
fn wait(work: impl Future<Output = Outcome<u8>>) -> Outcome<u8> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// The drawings for people, for the golden files.
#[cfg(test)]
pub(crate) mod drawn {
    use muster_wire::Timestamp;
    use serde_json::{Value, json};

    use super::list::Listed;
    use super::{
        agent_history, agents, approvals, audit, cancel, compare, config, consequence,
        doctor as doctor_command, drift, executions, fleet, hold, keys, logs as logs_command,
        node as node_command, node_wishes, nodes, overview, pauses, progress, quarantine, queues,
        release, restart, runs, search, tags, tail as tail_command, usage, webhooks,
        why as why_command, worker_restart, workers,
    };
    use crate::out::{Style, id, tree as trees};

    pub(crate) fn quarantined(style: &Style, body: &Value) -> String {
        quarantine::text_of(style, body)
    }
    pub(crate) fn node_status(style: &Style, now: Timestamp) -> String {
        node_command::text_of(style, &node_command::tests::report(), true, now)
    }
    /// What acts say of themselves when they are done, or before.
    pub(crate) fn receipts() -> String {
        const ID: &str = "exec_01KB6E7M9QX2T4V8N0R53QH8ZT";
        const RUN: &str = "run_01KB6E7M9QX2T4V8N0P4D1XW00";
        let cancelled = json!({"cancelled": [ID, "exec_2"], "told": 2});
        let moved = json!({"paused": [ID], "resumed": [ID], "state": "running"});
        let decided = json!({"approval_request_id": "req-1", "new_status": "running"});
        let mut restarted = json!({
            "scope": "workflow", "source_run_id": RUN, "restarted_execution_id": ID,
            "replay_mode": "all-succeeded",
        });
        restarted["kind"] = json!("fork");
        let cap = json!({"agent": "billing", "cap": 8, "was": 4, "was_source": "config"});
        let held = json!({"held": true, "agents": ["billing"]});
        let would = json!({
            "executions": 3, "webhooks": 2, "queued": [{"agent": "billing", "executions": 3}],
        });
        let revoked = json!({
            "text": "the key ci ends now; 1 session ends with it",
            "as_of": "2026-11-29T18:00:00.000Z",
            "last_used_at": "2026-11-29T17:57:00.000Z", "last_used_by": "10.0.0.7",
        });
        let worker = json!({"name": "coder-1", "state": "exited", "exit": {"code": 0}});
        let again = json!({"started": true, "worker": {"name": "coder-1", "pid": 4343}});
        let tagged = json!({"agent": "billing", "pending": ["finance"], "callable": false});
        let enrolled = json!({"token": "enr_x"});
        let mut all = vec![
            cancel::sentence(&cancelled, false, ID),
            cancel::sentence(&cancelled, true, RUN),
            pauses::sentence(&moved, false, true, ID),
            pauses::sentence(&moved, true, true, RUN),
            pauses::sentence(&moved, false, false, ID),
            approvals::sentence(&decided, "approved", ID),
            restart::sentence(&restarted),
            release::said(&worker),
            worker_restart::said(&again).0,
            tags::sentence(&tagged),
            queues::cap_sentence(&cap),
            format!("back: {}", queues::undo(&cap)),
            hold::sends(&would),
            node_wishes::command_for("http://10.0.0.5:8080", &enrolled),
        ];
        all.extend(hold::still_held(&held));
        all.extend(consequence::lines(&revoked));
        all.join("\n")
    }
    pub(crate) fn executions(style: &Style, body: Value) -> String {
        executions::draw(style, &Listed::of(body))
    }
    pub(crate) fn runs(style: &Style, body: Value) -> String {
        runs::draw(style, &Listed::of(body))
    }
    pub(crate) fn agents(style: &Style, body: Value) -> String {
        agents::draw(style, &Listed::of(body))
    }
    pub(crate) fn agent(style: &Style, body: &Value) -> String {
        agents::text_of(style, body, Timestamp::ZERO)
    }
    pub(crate) fn queues(style: &Style, body: Value) -> String {
        queues::draw(style, &Listed::of(body))
    }
    pub(crate) fn approvals(style: &Style, body: Value) -> String {
        approvals::draw(style, &Listed::of(body))
    }
    pub(crate) fn tags(style: &Style, body: Value) -> String {
        tags::draw(style, &Listed::of(body))
    }
    pub(crate) fn nodes(style: &Style, body: Value) -> String {
        nodes::draw(style, &Listed::of(body))
    }
    pub(crate) fn node(style: &Style, body: &Value, now: Timestamp) -> String {
        nodes::text_of(style, body, now)
    }
    pub(crate) fn workers(style: &Style, body: Value) -> String {
        workers::draw(style, &Listed::of(body))
    }
    pub(crate) fn worker(style: &Style, body: &Value, now: Timestamp) -> String {
        workers::text_of(style, body, now)
    }
    pub(crate) fn drift(style: &Style, body: Value) -> String {
        drift::draw(style, &Listed::of(body))
    }
    pub(crate) fn fleet(style: &Style, body: &Value, now: Timestamp) -> String {
        fleet::text_of(style, body, now)
    }
    pub(crate) fn why(style: &Style, body: &Value) -> String {
        why_command::text_of(style, body)
    }
    pub(crate) fn overview(style: &Style, body: &Value) -> String {
        overview::text_of(style, body)
    }
    pub(crate) fn usage(style: &Style, body: Value) -> String {
        usage::draw(style, &Listed::of(body))
    }
    pub(crate) fn audit(style: &Style, body: Value) -> String {
        audit::draw(style, &Listed::of(body))
    }
    pub(crate) fn config(style: &Style, body: Value) -> String {
        config::draw(style, &Listed::of(body))
    }
    pub(crate) fn search(style: &Style, body: Value, now: Timestamp) -> String {
        let mut listed = search::flat(body);
        listed.as_of = now;
        search::draw(style, &listed)
    }
    pub(crate) fn queue(style: &Style, body: &Value) -> String {
        queues::text_of(style, body)
    }
    pub(crate) fn compare(style: &Style, body: Value) -> String {
        let side = |name: &str| Listed::of(body[name].clone());
        let (run_a, run_b) = (
            "run_01KB6E7M9QX2T4V8N0P4D1XW00",
            "run_01KB6E7M9QX2T4V8N077QAZM00",
        );
        let mut listed = compare::compared(run_a, run_b, &side("a"), &side("b"), true);
        listed.as_of = Timestamp::parse("2026-11-29T18:00:00.000Z").unwrap();
        compare::draw(style, &listed)
    }
    pub(crate) fn history(style: &Style, body: &Value) -> String {
        agent_history::text_of(style, body)
    }
    pub(crate) fn keys(style: &Style, body: Value) -> String {
        keys::draw(style, &Listed::of(body))
    }
    pub(crate) fn webhooks(style: &Style, body: Value) -> String {
        webhooks::draw(style, &Listed::of(body))
    }
    pub(crate) fn execution(style: &Style, text: &str) -> String {
        let fields = progress::Fields::parse(text);
        let id = fields.text("execution_id").unwrap_or_default();
        executions::text_of(style, &id, &fields, Some(r#"{"city": "Lyon"}"#))
    }
    pub(crate) fn doctor(style: &Style, body: &Value) -> String {
        doctor_command::drawn(style, body)
    }
    pub(crate) fn webhook(body: &Value) -> String {
        webhooks::text_of(body)
    }
    pub(crate) fn tail(style: &Style, body: Value) -> String {
        let lines = Listed::of(body).items;
        let lines = lines
            .iter()
            .map(|event| tail_command::line(style, None, event) + "\n");
        lines.collect()
    }
    pub(crate) fn logs(style: &Style, body: Value) -> String {
        let lines = Listed::of(body).items;
        let lines = lines
            .iter()
            .map(|line| logs_command::line_of(style, line) + "\n");
        lines.collect()
    }
    pub(crate) fn quarantine(style: &Style, body: Value) -> String {
        quarantine::draw(style, &Listed::of(body))
    }
    pub(crate) fn tree(style: &Style, body: Value, rows_max: usize) -> String {
        let run = body["run_id"].as_str().unwrap_or_default().to_owned();
        let listed = Listed::of(body);
        let steps: Vec<_> = listed
            .items
            .iter()
            .map(|item| progress::step(item, listed.as_of))
            .collect();
        trees::draw(style, &steps, &id::short(&run, style.ellipsis()), rows_max)
    }
}
