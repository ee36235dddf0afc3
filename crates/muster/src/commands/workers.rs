//! `muster workers`: the processes that machines of the fleet run, and placements that wait.

use muster_wire::Timestamp;
use serde_json::Value;

use super::executions::shown_id;
use super::known::text_or_reason;
use super::list::{Join, List, Listed};
use super::nodes::{NODES, texts};
use super::resolve::{self, Noun};
use super::{Asking, envelope, fleet_history, item, list, worker_restart};
use crate::cli::{Workers, WorkersShow};
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Mark, Style, span, worker_mark};

const COLUMNS: &[Column] = &[
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "WORKER",
        give: Give::Never,
    },
    Column {
        title: "NODE",
        give: Give::Drop(4),
    },
    Column {
        title: "PID",
        give: Give::Drop(1),
    },
    Column {
        title: "AGENT",
        give: Give::Drop(0),
    },
    Column {
        title: "EVIDENCE",
        give: Give::Cut,
    },
    Column {
        title: "AGE",
        give: Give::Drop(2),
    },
    Column {
        title: "ID",
        give: Give::Never,
    },
];

/// Where the workers are listed.
pub(super) const WORKERS: &str = "/api/v1/fleet/workers";

/// Lists, or shows one.
pub(super) async fn run(asking: &Asking<'_>, args: &Workers) -> Outcome<u8> {
    match &args.show {
        Some(WorkersShow::Show { id }) => return show(asking, id).await,
        Some(WorkersShow::Restart(args)) => return worker_restart::run(asking, args).await,
        None => {}
    }
    let list = List {
        kind: "workers",
        path: WORKERS,
        filter: vec![
            ("node", args.node.clone()),
            (
                "state",
                (!args.state.is_empty()).then(|| args.state.join(",")),
            ),
            ("ended", args.ended.then(|| "true".to_owned())),
        ],
        limit: Some(args.limit),
        // What has ended long ago is known by its node's id alone.
        join: args.ended.then_some(Join::List {
            path: NODES,
            put: with_names,
        }),
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

fn with_names(workers: &mut [Value], nodes: &[Value]) {
    for worker in workers {
        if item::text(worker, &["node_name"]).is_some() {
            continue;
        }
        let id = item::raw(worker, &["node"]);
        let node = nodes
            .iter()
            .find(|node| id.is_some() && item::raw(node, &["id"]) == id);
        if let Some(name) = node.and_then(|node| node.get("name")) {
            worker["node_name"] = name.clone();
        }
    }
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no workers; try: muster spawn -- COMMAND, or see those that ended: muster workers --ended\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    let mark = mark_of(item);
    vec![
        Cell::coloured(
            mark.colour,
            format!("{} {}", mark.text(style), shown_state(item)),
        ),
        Cell::new(item::text(item, &["name"]).unwrap_or_default()),
        Cell::new(match item::text(item, &["node_name"]) {
            Some(name) => name,
            None => shown_id(style, &node_of(item)),
        }),
        Cell::new(item::text(item, &["pid"]).unwrap_or_default()),
        Cell::new(item::text(item, &["agent", "agent_id"]).unwrap_or_default()),
        Cell::new(evidence(item, now)),
        Cell::new(item::age(item, now)),
        Cell::new(shown_id(style, &id_of(item))),
    ]
}

pub(super) fn id_of(item: &Value) -> String {
    item::text(item, &["worker_id", "id"]).unwrap_or_default()
}

pub(super) fn node_of(item: &Value) -> String {
    item::text(item, &["node_name", "node"]).unwrap_or_default()
}

/// Its mark, by its state and its exit.
pub(super) fn mark_of(item: &Value) -> Mark {
    let well = item
        .pointer("/exit/code")
        .and_then(Value::as_i64)
        .is_some_and(|code| code == 0);
    let how = item::text(item, &["ended_how"]).unwrap_or_default();
    worker_mark(&item::state(item), well || how == "released")
}

/// The state; a worker that was declared lost may live all the same.
fn shown_state(item: &Value) -> String {
    match item::state(item).as_str() {
        "lost" => "lost ?".to_owned(),
        state => state.to_owned(),
    }
}

/// The evidence; a moment in it as its age.
fn evidence(item: &Value, now: Timestamp) -> String {
    let Some(text) = item::text(item, &["evidence"]) else {
        return "the plane gives none".to_owned();
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match Timestamp::parse(word).map(|at| item::between(at, now)) {
            Some(ms @ 0..) => {
                if words.pop_if(|before| before == "at").is_some()
                    && let Some(before) = words.last_mut()
                {
                    before.push(',');
                }
                words.push(span::ago(ms));
            }
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// `exit 1`, `signal 9`.
pub(super) fn exit_word(exit: &Value) -> String {
    let number = |name: &str| exit.get(name).and_then(Value::as_i64);
    match (number("code"), number("signal")) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => {
            match text_or_reason(exit, "code").or_else(|| item::text(exit, &["reason"])) {
                Some(reason) => format!("how is not known: {}", reason.replace('_', " ")),
                None => "how is not known".to_owned(),
            }
        }
    }
}

async fn show(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let (id, body) = resolve::get(asking, Noun::Worker, typed).await?;
    if asking.json {
        envelope::print_one("worker", &body);
        return Ok(0);
    }
    let now = item::time(&body, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let style = &asking.look.data;
    out::data_raw(&text_of(style, &body, now));
    let history = fleet_history::of(asking, &Noun::Worker.path(&id)).await?;
    out::data_raw(&fleet_history::draw(style, &history, now));
    Ok(0)
}

/// One worker for people.
pub(super) fn text_of(style: &Style, worker: &Value, now: Timestamp) -> String {
    let mark = mark_of(worker);
    let mut text = format!(
        "{} {}  {}\n",
        mark.painted(style),
        style.paint(mark.colour, &shown_state(worker)),
        style.paint(
            Colour::Bold,
            &item::text(worker, &["name"]).unwrap_or_default()
        ),
    );
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let value = style.wrapped(13, &style.words(&value));
            text += &format!("  {label:10} {value}\n");
        }
    };
    line("evidence", Some(evidence(worker, now)));
    line("id", Some(id_of(worker)));
    line("node", Some(node_of(worker)));
    line("command", item::text(worker, &["command"]));
    line("pid", text_or_reason(worker, "pid"));
    line(
        "started",
        item::time(worker, &["started_at"])
            .map(|at| span::ago(item::between(at, now)))
            .or_else(|| text_or_reason(worker, "started_at")),
    );
    line("restart", restarts(worker, now));
    line("io", text_or_reason(worker, "io"));
    line("agent", item::text(worker, &["agent", "agent_id"]));
    line("labels", Some(texts(worker, "labels").join(", ")));
    let adopted = worker.get("adopted") == Some(&Value::Bool(true));
    let placed = match adopted {
        true => Some("nobody here: its node had it, and it was adopted".to_owned()),
        false => item::text(worker, &["principal"]),
    };
    line("placed by", placed);
    line("waits for", item::text(worker, &["waits_for"]));
    line(
        "gives up",
        item::time(worker, &["place_by"])
            .filter(|_| item::state(worker) == "queued")
            .map(|at| format!("in {}", span::age(item::between(now, at).max(0)))),
    );
    line("release", worker.get("release").and_then(released));
    if let Some(exit) = worker.get("exit").filter(|exit| exit.is_object()) {
        let ago = item::time(exit, &["at"]).map_or_else(String::new, |at| {
            format!(", {}", span::ago(item::between(at, now)))
        });
        let how = item::text(worker, &["ended_how"])
            .map(|how| format!(" ({})", how.replace('_', " ")))
            .unwrap_or_default();
        line("exit", Some(format!("{}{ago}{how}", exit_word(exit))));
        for said in output_of(exit) {
            line("output", Some(said));
        }
    }
    style.words(&text)
}

/// The end of what it printed, line by line.
pub(super) fn output_of(exit: &Value) -> Vec<String> {
    const LINES: usize = 10;
    let output = exit
        .get("output")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let lines: Vec<String> = output
        .lines()
        .map(|line| out::clean(line).trim_end().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].to_vec()
}

/// `on-failure, 2 of 5 so far`.
fn restarts(worker: &Value, now: Timestamp) -> Option<String> {
    let policy = worker.get("restart")?;
    let mode = item::text(policy, &["mode"]).or_else(|| policy.as_str().map(out::clean))?;
    let so_far = item::number(worker, &["restarts"]).unwrap_or(0);
    let mut text = match item::number(policy, &["max"]) {
        Some(most) => format!("{mode}, {so_far} of {most} so far"),
        None if mode == "never" => mode,
        None => format!("{mode}, {so_far} so far"),
    };
    if let Some(at) = item::time(worker, &["next_start_at"]).filter(|at| *at > now) {
        text += &format!(", again in {}", span::age(item::between(now, at)));
    }
    Some(text)
}

fn released(release: &Value) -> Option<String> {
    let by = item::text(release, &["by"])?;
    let reason = item::text(release, &["reason"])
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    Some(format!("asked for by {by}{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_past_worker_has_its_machines_name_and_an_age_for_a_moment() {
        let mut workers = [
            json!({"node": "node_1", "node_name": null}),
            json!({"node": "node_2", "node_name": null}),
            json!({"node": null}),
        ];
        with_names(&mut workers, &[json!({"id": "node_1", "name": "mini"})]);
        assert_eq!(node_of(&workers[0]), "mini");
        assert_eq!(node_of(&workers[1]), "node_2");
        let past = json!({"evidence": "it exited with 0 at 1970-01-01T00:01:00.000Z"});
        assert_eq!(
            evidence(&past, Timestamp(180_000_000)),
            format!("it exited with 0, {}", span::ago(120_000))
        );
    }
}
