//! `muster quarantine`.

use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::envelope::print_one;
use super::list::{List, Listed};
use super::{Asking, consequence, item, list, resolve};
use crate::cli::{Quarantine, QuarantineCommand};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "ID",
        give: Give::Never,
    },
    Column {
        title: "KIND",
        give: Give::Never,
    },
    Column {
        title: "AGE",
        give: Give::Drop(0),
    },
    Column {
        title: "ABOUT",
        give: Give::Never,
    },
    Column {
        title: "ERROR",
        give: Give::Cut,
    },
];

/// Lists, shows, drops.
pub(super) async fn run(asking: &Asking<'_>, args: &Quarantine) -> Outcome<u8> {
    let path = |id: &str| format!("/api/v1/quarantine/{}", encode(id));
    match args.command.as_ref().unwrap_or(&QuarantineCommand::List) {
        QuarantineCommand::List => {
            let list = List {
                kind: "quarantine",
                path: "/api/v1/quarantine",
                filter: Vec::new(),
                limit: None,
                join: None,
                draw,
            };
            list::run(asking, &list, false).await
        }
        QuarantineCommand::Show { id } => {
            resolve::refuse_empty(id)?;
            let found = asking.client.get_json(&path(id)).await?;
            if asking.json {
                print_one("quarantined", &found);
                return Ok(0);
            }
            out::data_raw(&text_of(&asking.look.data, &found));
            Ok(0)
        }
        QuarantineCommand::Drop { id, yes } => {
            resolve::refuse_empty(id)?;
            let found = asking.client.get_json(&path(id)).await?;
            let about = item::text(&found, &["about"]).unwrap_or_default();
            let comes_to = format!("{id} ({about}) is dropped for good");
            if !*yes && !consequence::ask(vec![comes_to], "Go on?")? {
                return Ok(0);
            }
            let dropped = asking
                .client
                .post(&format!("{}/drop", path(id)), &json!({}))
                .await?
                .json()?;
            if asking.json {
                print_one("quarantined", &dropped);
            } else {
                out::data(&format!("{id} dropped"));
            }
            Ok(0)
        }
    }
}

/// One, a line each.
pub(super) fn text_of(style: &Style, found: &Value) -> String {
    let mut text = String::new();
    for name in ["id", "at", "kind", "about", "error", "what"] {
        let said = item::text(found, &[name]).unwrap_or_else(|| "—".to_owned());
        let name = style.paint(Colour::Dim, &format!("{name:6}"));
        text += &format!("{name} {}\n", style.wrapped(7, &style.words(&said)));
    }
    text
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "nothing was set aside\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(item: &Value, now: Timestamp) -> Vec<Cell> {
    let field = |name: &str| Cell::new(item::text(item, &[name]).unwrap_or_default());
    vec![
        field("id"),
        field("kind"),
        Cell::new(
            item::time(item, &["at"])
                .map_or_else(String::new, |at| span::age(item::between(at, now))),
        ),
        field("about"),
        field("error"),
    ]
}
