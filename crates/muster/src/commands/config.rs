//! `muster config`: every value that holds for a running plane, and where each came from.

use serde_json::Value;

use super::list::Listed;
use super::{Asking, envelope, item};
use crate::cli::Config;
use crate::failure::{Failure, Outcome};
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, clean};
use muster_wire::Category;

const COLUMNS: &[Column] = &[
    Column {
        title: "KEY",
        give: Give::Never,
    },
    Column {
        title: "VALUE",
        give: Give::Never,
    },
    Column {
        title: "FROM",
        give: Give::Cut,
    },
];

/// Lists it.
pub(super) async fn run(asking: &Asking<'_>, args: &Config) -> Outcome<u8> {
    let mut listed = Listed::of(asking.client.get_json("/api/v1/config").await?);
    if let Some(prefix) = &args.key {
        listed.items.retain(|value| {
            item::raw(value, &["key"]).is_some_and(|key| key.starts_with(prefix.as_str()))
        });
        if listed.items.is_empty() {
            return Err(
                Failure::new(Category::NotFound, format!("no key begins with {prefix}"))
                    .hint("`muster config` lists them all"),
            );
        }
    }
    if args.set {
        listed.items.retain(|value| value["source"] != "default");
    }
    match asking.json {
        true => out::data(&envelope::list("config", &listed)),
        false => out::data_raw(&draw(&asking.look.data, &listed)),
    }
    Ok(0)
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "nothing is set: every value is the default\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed.items.iter().map(|item| row(style, item)).collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, value: &Value) -> Vec<Cell> {
    let source = item::text(value, &["source"]).unwrap_or_default();
    let mut from = source.clone();
    if let Some(place) = item::text(value, &["place"]) {
        from += &format!(" {place}");
    }
    if let Some(note) = item::text(value, &["note"]) {
        from += &format!(": {note}");
    }
    let shown = match value.get("value") {
        Some(Value::String(text)) => clean(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => clean(&other.to_string()),
    };
    // In a pipe nothing is cut.
    let shown = match style.width {
        Some(width) => style.cut(&style.words(&shown), width / 3),
        None => shown,
    };
    let colour = if source == "default" {
        Colour::Dim
    } else {
        Colour::Bold
    };
    vec![
        Cell::new(item::text(value, &["key"]).unwrap_or_default()),
        Cell::coloured(colour, shown),
        Cell::new(from),
    ]
}
