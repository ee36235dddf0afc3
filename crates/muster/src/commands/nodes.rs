//! `muster nodes`: the machines, each with its state, the evidence and its age. What operators
//! want of them is in `node_wishes`.

use muster_wire::Timestamp;
use serde_json::Value;

use super::known::{Known, text_or_reason};
use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, envelope, fleet_history, item, list, node_wishes};
use crate::cli::{Nodes, NodesCommand};
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, clean, node_mark, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "NODE",
        give: Give::Never,
    },
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "EVIDENCE",
        give: Give::Cut,
    },
    Column {
        title: "WORKERS",
        give: Give::Never,
    },
    Column {
        title: "SLOTS",
        give: Give::Drop(2),
    },
    Column {
        title: "LABELS",
        give: Give::Drop(0),
    },
    Column {
        title: "WISH",
        give: Give::Drop(1),
    },
];

/// Where the machines are listed.
pub(super) const NODES: &str = "/api/v1/fleet/nodes";

/// Lists, shows one, or does what an operator wants.
pub(super) async fn run(asking: &Asking<'_>, args: &Nodes) -> Outcome<u8> {
    match &args.command {
        None => {
            let list = List {
                kind: "nodes",
                path: NODES,
                filter: Vec::new(),
                limit: None,
                join: None,
                draw,
            };
            list::run(asking, &list, args.plain.watch).await
        }
        Some(NodesCommand::Show { id }) => show(asking, id).await,
        Some(command) => node_wishes::run(asking, command).await,
    }
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no machine has joined; try: muster nodes enroll NAME\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    let mut text = draw_table(style, COLUMNS, &rows);
    if let Some(slots) = slots_in_all(&listed.items, listed.as_of) {
        text += &format!("{}\n", style.paint(Colour::Dim, &slots));
    }
    text
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    let state = item::state(item);
    let mark = node_mark(&state, is_flapping(item));
    vec![
        Cell::new(name(item)),
        Cell::coloured(
            mark.colour,
            format!("{} {}", mark.text(style), shown_state(item)),
        ),
        Cell::new(evidence(item)),
        Cell::new(workers(item, now)),
        Cell::new(slots(item)),
        Cell::new(labels(item)),
        Cell::new(wish(item)),
    ]
}

pub(super) fn name(item: &Value) -> String {
    item::text(item, &["name", "id"]).unwrap_or_default()
}

fn is_flapping(item: &Value) -> bool {
    item.get("flapping").and_then(Value::as_bool) == Some(true)
}

/// The state; a machine that is lost may live all the same, and one that changes too often is
/// shown as that.
fn shown_state(item: &Value) -> String {
    match item::state(item).as_str() {
        state if is_flapping(item) => format!("{state}, flapping"),
        "lost" => "lost ?".to_owned(),
        state => state.to_owned(),
    }
}

fn evidence(item: &Value) -> String {
    item::text(item, &["evidence"]).unwrap_or_else(|| "the plane gives none".to_owned())
}

/// `8`; of a machine that is doubted `3 as of 17 s`; of one that is not heard `? last known 5`.
fn workers(item: &Value, now: Timestamp) -> String {
    let workers = Known::of(item, "workers");
    let mut text = workers.text();
    if workers.value.is_some()
        && item::state(item) == "suspect"
        && let Some(at) = item::time(item, &["heard_at"])
    {
        text += &format!(" as of {}", span::age(item::between(at, now)));
    }
    if item.get("drift").and_then(Value::as_bool) == Some(true) {
        text += ", drift";
    }
    text
}

/// Workers and how many it takes.
fn slots(item: &Value) -> String {
    let most = item::number(item, &["max_workers"]);
    match (Known::of(item, "workers").value, most) {
        (None, _) => "?".to_owned(),
        (Some(used), Some(most @ 1..)) => format!("{used}/{most}"),
        (Some(used), _) => format!("{used}/no cap"),
    }
}

/// Its labels, as many as are read at a glance; `muster nodes show` has them all.
fn labels(item: &Value) -> String {
    const WIDTH: usize = 24;
    let all = texts(item, "labels");
    let (mut shown, mut width) = (Vec::new(), 0);
    for label in &all {
        width += label.chars().count() + 1;
        if width > WIDTH && !shown.is_empty() {
            shown.push(format!("+{}", all.len() - shown.len()));
            break;
        }
        shown.push(label.clone());
    }
    shown.join(" ")
}

fn wish(item: &Value) -> String {
    let mut text = item::text(item, &["wish"]).unwrap_or_default();
    if let Some(pinned) = item
        .get("pin")
        .and_then(|pin| item::text(pin, &["state"]).or_else(|| pin.as_str().map(clean)))
    {
        text += &format!(", pinned {pinned}");
    }
    text
}

/// `16 slots reachable of 24, 8 unknown for 2 h 21 m`.
fn slots_in_all(items: &[Value], now: Timestamp) -> Option<String> {
    let places = |states: &[&str]| -> u64 {
        let is_one = |item: &&Value| states.contains(&item::state(item).as_str());
        let most = |item| item::number(item, &["max_workers"]).unwrap_or(0);
        items.iter().filter(is_one).map(most).sum()
    };
    let (reachable, unknown) = (places(&["online", "suspect"]), places(&["unreachable"]));
    if reachable + unknown == 0 {
        return None;
    }
    let mut text = format!(
        "{} slots reachable of {}",
        span::number(reachable),
        span::number(reachable + unknown)
    );
    let since = items
        .iter()
        .filter(|item| item::state(item) == "unreachable")
        .filter_map(|item| item::time(item, &["state_at"]))
        .min();
    if unknown > 0 {
        text += &format!(", {} unknown", span::number(unknown));
        if let Some(since) = since {
            text += &format!(" for {}", span::age(item::between(since, now)));
        }
    }
    Some(text)
}

async fn show(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let (id, body) = resolve::get(asking, Noun::Node, typed).await?;
    if asking.json {
        envelope::print_one("node", &body);
        return Ok(0);
    }
    let now = item::time(&body, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let style = &asking.look.data;
    out::data_raw(&text_of(style, &body, now));
    let history = fleet_history::of(asking, &Noun::Node.path(&id)).await?;
    out::data_raw(&fleet_history::draw(style, &history, now));
    Ok(0)
}

/// One machine for people.
pub(super) fn text_of(style: &Style, node: &Value, now: Timestamp) -> String {
    let mark = node_mark(&item::state(node), is_flapping(node));
    let mut text = format!(
        "{} {}  {}\n",
        mark.painted(style),
        style.paint(mark.colour, &shown_state(node)),
        style.paint(Colour::Bold, &name(node)),
    );
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let value = style.wrapped(13, &style.words(&value));
            text += &format!("  {label:10} {value}\n");
        }
    };
    line("evidence", Some(evidence(node)));
    line("id", item::text(node, &["id"]));
    line("kind", Some(kind(node)));
    line("workers", Some(Known::of(node, "workers").whole(now)));
    line("slots", Some(slots(node)));
    line("names", Some(texts(node, "worker_names").join(", ")));
    line("wish", Some(wished(node, now)));
    line("labels", Some(texts(node, "labels").join(", ")));
    line(
        "load",
        node.get("load")
            .and_then(serde_json::Value::as_f64)
            .map(|load| format!("{:.0} %", load * 100.0))
            .or_else(|| text_or_reason(node, "load")),
    );
    for fact in node
        .get("facts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        line("fact", Some(fact_of(fact, now)));
    }
    line("next", node.get("next").and_then(|next| next_of(next, now)));
    style.words(&text)
}

fn kind(node: &Value) -> String {
    let word = item::text(node, &["kind"]).unwrap_or_default();
    let who = match word.as_str() {
        "muster" => "muster node".to_owned(),
        "relay" => "Agent Relay broker".to_owned(),
        _ => word,
    };
    let more = [
        item::text(node, &["version"]),
        item::text(node, &["host"]).map(|host| format!("on {host}")),
    ];
    let more: Vec<String> = more.into_iter().flatten().collect();
    format!("{who} {}", more.join(" ")).trim().to_owned()
}

/// What an operator wants of it, who and why.
fn wished(node: &Value, now: Timestamp) -> String {
    let mut text = wish(node);
    for name in ["wished", "pin"] {
        let Some(of) = node.get(name).filter(|of| of.is_object()) else {
            continue;
        };
        if let Some(by) = item::text(of, &["by"]) {
            text += &format!(", by {by}");
        }
        if let Some(at) = item::time(of, &["at"]) {
            text += &format!(" {}", span::ago(item::between(at, now)));
        }
        if let Some(reason) = item::text(of, &["reason"]) {
            text += &format!(": {reason}");
        }
    }
    text
}

/// `2 s ago, by node: beat 114 acknowledged`.
fn fact_of(fact: &Value, now: Timestamp) -> String {
    let age = match item::time(fact, &["at"]) {
        Some(at) => span::ago(item::between(at, now)),
        None => "never".to_owned(),
    };
    let by = item::text(fact, &["by"]).unwrap_or_else(|| "plane".to_owned());
    let said = item::text(fact, &["text", "what"]).unwrap_or_default();
    format!("{age}, {by}: {said}")
}

fn next_of(next: &Value, now: Timestamp) -> Option<String> {
    let said = item::text(next, &["text", "what"])?;
    Some(match item::time(next, &["at"]) {
        Some(at) if at > now => format!("in {}: {said}", span::age(item::between(now, at))),
        _ => said,
    })
}

/// Texts of an array.
pub(super) fn texts(of: &Value, name: &str) -> Vec<String> {
    of.get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(clean)
        .collect()
}
