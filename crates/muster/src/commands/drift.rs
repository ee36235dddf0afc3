//! `muster drift`: where a machine and the plane disagree about what runs, with every name.

use muster_wire::Timestamp;
use serde_json::Value;

use super::list::{List, Listed};
use super::nodes::{name, texts};
use super::{Asking, item, list};
use crate::cli::Plain;
use crate::failure::Outcome;
use crate::out::{Colour, Mark, Style, span};

/// Lists the lasting differences.
pub(super) async fn run(asking: &Asking<'_>, args: &Plain) -> Outcome<u8> {
    let list = List {
        kind: "drift",
        path: "/api/v1/fleet/drift",
        filter: Vec::new(),
        limit: None,
        join: None,
        draw,
    };
    list::run(asking, &list, args.watch).await
}

/// The differences for people. Names are never cut: they are what it is about.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "none: machines and the plane agree about what runs\n".to_owned();
    }
    listed
        .items
        .iter()
        .map(|item| one(style, item, listed.as_of))
        .collect()
}

fn one(style: &Style, item: &Value, now: Timestamp) -> String {
    let number = |name: &str| item::text(item, &[name]).unwrap_or_else(|| "?".to_owned());
    let since = item::time(item, &["since"])
        .map(|at| format!(" for {}", span::age(item::between(at, now))))
        .unwrap_or_default();
    let mut text = format!(
        "{} {}  {}{since}: {} believed, {} claimed\n",
        Mark::WARN.painted(style),
        style.paint(Mark::WARN.colour, "drift"),
        style.paint(Colour::Bold, &name(item)),
        number("believed"),
        number("claimed"),
    );
    for (label, field) in [("missing", "missing"), ("unknown", "surplus")] {
        for name in texts(item, field) {
            text += &format!("  {label:8} {name}\n");
        }
    }
    if let Some(next) = item::text(item, &["next"]) {
        let next = style.wrapped(11, &style.words(&next));
        text += &format!("  {:8} {next}\n", "next");
    }
    style.words(&text)
}
