//! `muster search`: finds anything by part of its id, its name or a filter.

use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};

use super::executions::shown_id;
use super::list::Listed;
use super::{Asking, envelope, item};
use crate::cli::Search;
use crate::client::query;
use crate::failure::{Failure, Outcome};
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Mark, Style, agent_mark, execution_mark, node_mark, span, worker_mark};

const COLUMNS: &[Column] = &[
    Column {
        title: "KIND",
        give: Give::Never,
    },
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "NAME",
        give: Give::Never,
    },
    Column {
        title: "WHAT",
        give: Give::Cut,
    },
    Column {
        title: "AGE",
        give: Give::Drop(0),
    },
    Column {
        title: "ID",
        give: Give::Never,
    },
];

/// Searches.
pub(super) async fn run(asking: &Asking<'_>, args: &Search) -> Outcome<u8> {
    let words = args.words.join(" ");
    let asked = query(&[
        ("q", Some(words.clone())),
        ("limit", Some(args.limit.to_string())),
    ]);
    let body = asking
        .client
        .get_json(&format!("/api/v1/search{asked}"))
        .await?;
    let listed = flat(body);
    if asking.json {
        out::data(&envelope::list("search", &listed));
        return Ok(0);
    }
    let note = listed
        .more
        .get("note")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if listed.items.is_empty() {
        return Err(
            Failure::new(Category::NotFound, format!("nothing fits {words}"))
                .seen(note)
                .hint("filters are like state:failed agent:billing since:2h; see `muster search --help`"),
        );
    }
    out::data_raw(&draw(&asking.look.data, &listed));
    if let Some(understood) = understood(&listed) {
        out::talk(&format!("understood as {understood}"));
    }
    let more = listed.more.get("more_of").and_then(Value::as_array);
    for kind in more.into_iter().flatten().filter_map(Value::as_str) {
        out::talk(&format!(
            "there are more {}s: --limit, or narrow it down",
            out::clean(kind)
        ));
    }
    if !note.is_empty() {
        out::talk(&out::clean(note));
    }
    Ok(0)
}

/// The groups as one list, each item with its kind.
pub(super) fn flat(mut body: Value) -> Listed {
    let groups = body["groups"].take();
    let (mut items, mut more_of) = (Vec::new(), Vec::new());
    for group in groups.as_array().into_iter().flatten() {
        for found in group["items"].as_array().into_iter().flatten() {
            let mut found = found.clone();
            found["kind"] = group["kind"].clone();
            items.push(found);
        }
        if group["more"] == true {
            more_of.push(group["kind"].clone());
        }
    }
    let mut listed = Listed::of(json!({ "items": items }));
    for name in ["q", "understood", "note"] {
        listed.more.insert(name.to_owned(), body[name].take());
    }
    listed.more.insert("more_of".to_owned(), json!(more_of));
    listed
}

/// `agent: billing, state: failed`.
fn understood(listed: &Listed) -> Option<String> {
    let terms: Vec<String> = listed
        .more
        .get("understood")?
        .as_array()?
        .iter()
        .filter_map(|term| {
            Some(format!(
                "{}: {}",
                item::text(term, &["key"])?,
                item::text(term, &["value"])?
            ))
        })
        .collect();
    // A bare word is what it is.
    let is_a_word = |terms: &[String]| {
        let q = listed
            .more
            .get("q")
            .and_then(Value::as_str)
            .unwrap_or_default();
        matches!(terms, [one] if one.split_once(": ").is_some_and(|(_, value)| value == q))
    };
    (!terms.is_empty() && !is_a_word(&terms)).then(|| terms.join(", "))
}

/// What was found, for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, found: &Value, now: Timestamp) -> Vec<Cell> {
    let kind = item::text(found, &["kind"]).unwrap_or_default();
    let state = item::text(found, &["state"]).unwrap_or_default();
    let mark = mark(&kind, &state);
    let shown = match state.is_empty() {
        true => String::new(),
        false => format!("{} {state}", mark.text(style)),
    };
    vec![
        Cell::new(kind),
        Cell::coloured(mark.colour, shown),
        Cell::new(item::text(found, &["title"]).unwrap_or_default()),
        Cell::new(what(found)),
        Cell::new(
            item::time(found, &["at"])
                .map_or_else(String::new, |at| span::age(item::between(at, now))),
        ),
        Cell::new(shown_id(style, &item::id(found))),
    ]
}

/// What the plane says beside it; what was taken over from another run has that for a reason.
fn what(found: &Value) -> String {
    let text = item::text(found, &["text"]).unwrap_or_default();
    text.replace("replayed_from_execution:", "reused from ")
}

fn mark(kind: &str, state: &str) -> Mark {
    match kind {
        "agent" | "function" => agent_mark(state),
        "node" => node_mark(state, false),
        "worker" => worker_mark(state, false),
        "approval" if state == "pending" => execution_mark("waiting", ""),
        _ => execution_mark(state, ""),
    }
}
