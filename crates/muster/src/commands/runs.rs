//! `muster runs`.

use muster_wire::Timestamp;
use serde_json::Value;

use super::executions::{shown_id, since, state_cell};
use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, envelope, item, list, progress};
use crate::cli::{Listing, RunFilter, Show};
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Style, span, tree};

const COLUMNS: &[Column] = &[
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "ROOT",
        give: Give::Never,
    },
    Column {
        title: "STEPS",
        give: Give::Drop(2),
    },
    Column {
        title: "WHY",
        give: Give::Cut,
    },
    Column {
        title: "TOOK",
        give: Give::Drop(0),
    },
    Column {
        title: "AGE",
        give: Give::Drop(1),
    },
    Column {
        title: "RUN",
        give: Give::Never,
    },
];

/// More steps of a run are not read; said when there are.
const STEPS_SHOWN_MAX: u32 = 20_000;

/// Lists, or shows one as a tree.
pub(super) async fn run(asking: &Asking<'_>, args: &Listing<RunFilter>) -> Outcome<u8> {
    if let Some(Show::Show { id, .. }) = &args.show {
        return show(asking, id).await;
    }
    let filter = &args.filter;
    let list = List {
        kind: "runs",
        path: "/api/v1/runs",
        filter: vec![
            (
                "status",
                (!filter.state.is_empty()).then(|| filter.state.join(",")),
            ),
            ("agent", filter.agent.clone()),
            ("since", since(filter.since.as_deref())?),
        ],
        limit: Some(filter.most.limit),
        join: None,
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "none\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    // The root's own fields may lie one level down.
    let root = item
        .get("root")
        .filter(|root| root.is_object())
        .unwrap_or(item);
    vec![
        state_cell(style, item),
        Cell::new(item::target(root)),
        Cell::new(steps_of(item)),
        Cell::new(match item::text(item, &["why"]) {
            Some(why) => why,
            None => item::why(root, now),
        }),
        Cell::new(item::took(root, now).map_or_else(String::new, span::duration)),
        Cell::new(item::age(root, now)),
        Cell::new(shown_id(
            style,
            &item::text(item, &["run_id", "id"]).unwrap_or_default(),
        )),
    ]
}

/// `28, 2 failed`.
fn steps_of(item: &Value) -> String {
    let counts = item.get("counts").and_then(Value::as_object);
    let total = item::number(item, &["executions", "steps", "size"]).or_else(|| {
        let counts = counts?;
        Some(counts.values().filter_map(Value::as_u64).sum())
    });
    let failed = counts
        .and_then(|counts| counts.get("failed"))
        .and_then(Value::as_u64)
        .unwrap_or(0);
    match (total, failed) {
        (None, _) => String::new(),
        (Some(total), 0) => span::number(total),
        (Some(total), failed) => format!("{}, {failed} failed", span::number(total)),
    }
}

async fn show(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let (id, mut run) = resolve::get(asking, Noun::Run, typed).await?;
    let (steps, listed) = progress::steps(asking, &id, STEPS_SHOWN_MAX).await?;
    if asking.json {
        let steps = listed
            .items
            .into_iter()
            .map(|step| envelope::normal("step", step));
        run["steps"] = steps.collect();
        run["steps_next_cursor"] = listed.next_cursor;
        envelope::print_one("run", &run);
        return Ok(0);
    }
    let style = &asking.look.data;
    out::data_raw(&tree::draw(style, &steps, &id, usize::MAX));
    if !listed.next_cursor.is_null() {
        out::talk("the run has more steps than are read here");
    }
    if steps.len() > 1 {
        out::talk(&tree::counts(&steps));
    }
    Ok(0)
}
