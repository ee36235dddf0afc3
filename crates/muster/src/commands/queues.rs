//! `muster queues`.

use muster_wire::Timestamp;
use serde_json::Value;

use super::list::{List, Listed};
use super::{Asking, item, list};
use crate::cli::Plain;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{Style, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "AGENT",
        give: Give::Never,
    },
    Column {
        title: "RUN/CAP",
        give: Give::Never,
    },
    Column {
        title: "WAIT",
        give: Give::Never,
    },
    Column {
        title: "OLDEST",
        give: Give::Drop(1),
    },
    Column {
        title: "STARTS",
        give: Give::Drop(0),
    },
    Column {
        title: "HELD UP BY",
        give: Give::Cut,
    },
];

/// Lists the queues.
pub(super) async fn run(asking: &Asking<'_>, args: &Plain) -> Outcome<u8> {
    let list = List {
        kind: "queues",
        path: "/api/v1/queues",
        filter: Vec::new(),
        limit: None,
        join: None,
        draw,
    };
    list::run(asking, &list, args.watch).await
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no agent has registered, so nothing waits\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(item: &Value, now: Timestamp) -> Vec<Cell> {
    let cap = item::number(item, &["cap"]).filter(|cap| *cap > 0);
    let running = item::number(item, &["running", "held", "slots_held"]);
    let waiting = [&["queued"][..], &["waiting_callers"]]
        .iter()
        .filter_map(|names| item::number(item, names))
        .reduce(|queued, callers| queued + callers);
    let oldest = item::time(item, &["oldest_queued_at", "oldest_at"])
        .map(|at| span::age(item::between(at, now)));
    vec![
        Cell::new(item::text(item, &["agent", "agent_id", "id"]).unwrap_or_default()),
        Cell::new(match (running, cap) {
            (Some(running), Some(cap)) => format!("{running}/{cap}"),
            (Some(running), None) => format!("{running}/no cap"),
            (None, _) => String::new(),
        }),
        Cell::new(waiting.map_or_else(String::new, span::number)),
        Cell::new(oldest.unwrap_or_default()),
        Cell::new(rate(item)),
        Cell::new(held_up_by(item, waiting)),
    ]
}

fn rate(item: &Value) -> String {
    match item.get("starts_per_minute").and_then(Value::as_f64) {
        Some(rate) if rate >= 10.0 => format!("{rate:.0}/min"),
        Some(rate) => format!("{rate:.1}/min"),
        None => String::new(),
    }
}

fn held_up_by(item: &Value, waiting: Option<u64>) -> String {
    if item.get("held").and_then(Value::as_bool) == Some(true) {
        return "a hold: muster unhold".to_owned();
    }
    if item.get("pending_tags").is_some() {
        let agent = item::text(item, &["agent"]).unwrap_or_default();
        return format!("tags: muster tags approve {agent}");
    }
    let absorbed = item::number(item, &["absorbed"]).unwrap_or(0);
    if absorbed > 0 {
        return format!("its restart, {absorbed} wait for it");
    }
    match (
        waiting,
        item::number(item, &["running"]),
        item::number(item, &["cap"]),
    ) {
        (Some(1..), Some(running), Some(cap)) if running >= cap => format!("cap {cap}"),
        _ => String::new(),
    }
}
