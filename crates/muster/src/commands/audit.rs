//! `muster audit`: who changed what may be done, and what was decided by hand. Newest first.

use muster_wire::Timestamp;
use serde_json::Value;

use super::executions::since;
use super::list::{List, Listed};
use super::{Asking, item, list};
use crate::cli::Audit;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{Style, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "AGE",
        give: Give::Never,
    },
    Column {
        title: "WHO",
        give: Give::Never,
    },
    Column {
        title: "DID",
        give: Give::Never,
    },
    Column {
        title: "TO",
        give: Give::Never,
    },
    Column {
        title: "DETAIL",
        give: Give::Cut,
    },
    Column {
        title: "AT",
        give: Give::Drop(0),
    },
];

/// Lists it.
pub(super) async fn run(asking: &Asking<'_>, args: &Audit) -> Outcome<u8> {
    let list = List {
        kind: "audit",
        path: "/api/v1/audit",
        filter: vec![
            ("actor", args.actor.clone()),
            ("action", args.action.clone()),
            ("object", args.object.clone()),
            ("since", since(args.since.as_deref())?),
            ("until", since(args.until.as_deref())?),
        ],
        limit: Some(args.most.limit),
        join: None,
        draw,
    };
    list::run(asking, &list, false).await
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "nothing that is kept fits\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, line: &Value, now: Timestamp) -> Vec<Cell> {
    let field = |name: &str| item::text(line, &[name]).unwrap_or_default();
    vec![
        Cell::new(item::age(line, now)),
        Cell::new(super::executions::shown_id(style, &field("principal"))),
        Cell::new(field("action")),
        Cell::new(super::executions::shown_id(style, &field("object"))),
        Cell::new(field("detail")),
        Cell::new(match item::time(line, &["at"]) {
            Some(at) => at.rfc3339(),
            None => span::age(0),
        }),
    ]
}
