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
        title: "LAST STARTS",
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
        path: "/api/v1/queues".to_owned(),
        draw,
    };
    list::run(asking, &list, args.watch).await
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "nothing waits\n".to_owned();
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
    let oldest = item::time(item, &["oldest_at", "oldest"])
        .map(|at| span::age(item::between(at, now)))
        .or_else(|| item::number(item, &["oldest_ms", "oldest_age_ms"]).map(ms));
    vec![
        Cell::new(item::text(item, &["agent", "agent_id", "id"]).unwrap_or_default()),
        Cell::new(match (running, cap) {
            (Some(running), Some(cap)) => format!("{running}/{cap}"),
            (Some(running), None) => format!("{running}/no cap"),
            (None, _) => String::new(),
        }),
        Cell::new(
            item::number(item, &["depth", "waiting", "queued"])
                .map_or_else(String::new, span::number),
        ),
        Cell::new(oldest.unwrap_or_default()),
        Cell::new(
            item::number(
                item,
                &["starts_in_ms", "last_starts_in_ms", "estimated_start_ms"],
            )
            .map_or_else(String::new, |n| format!("≈ {}", ms(n))),
        ),
        Cell::new(
            item::text(item, &["held_up_by", "cause", "why"])
                .map_or_else(String::new, |c| c.replace('_', " ")),
        ),
    ]
}

fn ms(n: u64) -> String {
    span::age(i64::try_from(n).unwrap_or(i64::MAX))
}
