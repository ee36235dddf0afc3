//! `muster usage`: what agents reported that their calls used. A cost is what an agent said; what
//! nobody reported is unknown and counted.

use muster_wire::Timestamp;
use serde_json::Value;

use super::executions::{shown_id, since};
use super::list::{List, Listed};
use super::{Asking, item, list};
use crate::cli::Usage;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{Colour, Style, clean, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "OF",
        give: Give::Never,
    },
    Column {
        title: "CALLS",
        give: Give::Never,
    },
    Column {
        title: "IN",
        give: Give::Drop(1),
    },
    Column {
        title: "OUT",
        give: Give::Drop(1),
    },
    Column {
        title: "TOKENS",
        give: Give::Never,
    },
    Column {
        title: "COST",
        give: Give::Never,
    },
    Column {
        title: "NOT COUNTED",
        give: Give::Cut,
    },
];

/// Lists the sums.
pub(super) async fn run(asking: &Asking<'_>, args: &Usage) -> Outcome<u8> {
    let list = List {
        kind: "usage",
        path: "/api/v1/usage",
        filter: vec![
            ("by", Some(args.by.clone())),
            ("since", since(args.since.as_deref())?),
            ("until", since(args.until.as_deref())?),
        ],
        limit: Some(args.most.limit),
        join: None,
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

/// The sums for people, and the sum of all.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    let total = listed.more.get("total").unwrap_or(&Value::Null);
    let from = listed
        .more
        .get("from")
        .and_then(Value::as_str)
        .and_then(Timestamp::parse);
    let over = from.map_or_else(String::new, |from| {
        match span::age(item::between(from, listed.as_of)).as_str() {
            "1 d" => " in the last day".to_owned(),
            time => format!(" in the last {time}"),
        }
    });
    if listed.items.is_empty() {
        return format!("nothing ended{over}\n");
    }
    let mut rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|line| row(style, &name(style, line), &line["usage"]))
        .collect();
    rows.push(row(style, "all", total));
    let mut text = draw_table(style, COLUMNS, &rows);
    text += &style.paint(
        Colour::Dim,
        &style.words(&format!("of what ended{over}, as agents reported it")),
    );
    text.push('\n');
    text
}

fn name(style: &Style, line: &Value) -> String {
    match item::text(line, &["run_id"]) {
        Some(run) => shown_id(style, &run),
        None => item::text(line, &["key"]).unwrap_or_default(),
    }
}

fn row(_: &Style, name: &str, usage: &Value) -> Vec<Cell> {
    let tokens = |name: &str| {
        Cell::new(item::number(usage, &[name]).map_or_else(|| "?".to_owned(), span::number))
    };
    vec![
        Cell::new(name),
        Cell::new(item::number(usage, &["executions"]).map_or_else(String::new, span::number)),
        tokens("input_tokens"),
        tokens("output_tokens"),
        tokens("total_tokens"),
        Cell::new(cost(usage)),
        Cell::new(not_counted(usage)),
    ]
}

/// `1.24 USD + 3 EUR`; a cost that nobody reported is a question mark.
fn cost(usage: &Value) -> String {
    let all: Vec<String> = usage
        .get("cost")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|cost| {
            let amount = item::text(cost, &["amount"])?;
            let currency = item::text(cost, &["currency"]).unwrap_or_default();
            Some(format!("{amount} {}", clean(&currency)))
        })
        .collect();
    match all.is_empty() {
        true => "?".to_owned(),
        false => all.join(" + "),
    }
}

fn not_counted(usage: &Value) -> String {
    let mut said = Vec::new();
    for (name, words) in [
        ("unreported", "without a report"),
        ("unreadable", "with values that cannot be read"),
        ("with_other_keys", "with other keys"),
    ] {
        if let Some(n @ 1..) = item::number(usage, &[name]) {
            said.push(format!("{} {words}", span::number(n)));
        }
    }
    said.join(", ")
}
