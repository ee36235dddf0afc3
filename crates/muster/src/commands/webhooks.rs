//! `muster webhooks`.

use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::envelope::print_one;
use super::list::{List, Listed};
use super::{Asking, item, list, resolve};
use crate::cli::{Webhooks, WebhooksCommand};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Style, clean, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "ID",
        give: Give::Never,
    },
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "TYPE",
        give: Give::Drop(1),
    },
    Column {
        title: "AGE",
        give: Give::Drop(0),
    },
    Column {
        title: "TRIES",
        give: Give::Drop(2),
    },
    Column {
        title: "TARGET",
        give: Give::Never,
    },
    Column {
        title: "ERROR",
        give: Give::Cut,
    },
];

/// Lists, shows, sends again.
pub(super) async fn run(asking: &Asking<'_>, args: &Webhooks) -> Outcome<u8> {
    let path = |id: &str| format!("/api/v1/webhooks/{}", encode(id));
    match args.command.as_ref().unwrap_or(&WebhooksCommand::ALL) {
        WebhooksCommand::List {
            state,
            execution,
            limit,
        } => {
            let list = List {
                kind: "webhooks",
                path: "/api/v1/webhooks",
                filter: vec![("state", state.clone()), ("execution", execution.clone())],
                limit: Some(limit.unwrap_or(50)),
                join: None,
                draw,
            };
            list::run(asking, &list, false).await
        }
        WebhooksCommand::Show { id } => {
            resolve::refuse_empty(id)?;
            let found = asking.client.get_json(&path(id)).await?;
            show(asking, &found);
            Ok(0)
        }
        WebhooksCommand::Redrive { id: Some(id), .. } => {
            resolve::refuse_empty(id)?;
            let sent = format!("{}/redrive", path(id));
            let found = asking.client.post(&sent, &json!({})).await?.json()?;
            show(asking, &found);
            Ok(0)
        }
        WebhooksCommand::Redrive { id: None, .. } => {
            let all = "/api/v1/webhooks/redrive";
            let done = asking.client.post(all, &json!({})).await?.json()?;
            if asking.json {
                print_one("redriven", &done);
            } else {
                let count = item::number(&done, &["redriven"]).unwrap_or(0);
                out::data(&format!("{count} messages go out again"));
            }
            Ok(0)
        }
    }
}

fn show(asking: &Asking<'_>, found: &Value) {
    if asking.json {
        print_one("webhook", found);
        return;
    }
    out::data_raw(&text_of(found));
}

/// One message, a line each.
pub(super) fn text_of(found: &Value) -> String {
    let mut shown = String::new();
    for name in [
        "id",
        "type",
        "state",
        "execution_id",
        "run_id",
        "target",
        "tries",
        "created_at",
        "tried_at",
        "next_at",
        "delivered_at",
        "dead_at",
        "last_status",
        "last_error",
    ] {
        let text = match found.get(name) {
            Some(Value::String(text)) => clean(text),
            Some(Value::Number(number)) => number.to_string(),
            _ => continue,
        };
        shown += &format!("{name:13} {text}\n");
    }
    shown
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no message for a webhook\n".to_owned();
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
    let tries = item::number(item, &["tries"]).unwrap_or(0);
    vec![
        field("id"),
        field("state"),
        field("type"),
        Cell::new(
            item::time(item, &["created_at"])
                .map_or_else(String::new, |at| span::age(item::between(at, now))),
        ),
        Cell::new(tries.to_string()),
        field("target"),
        field("last_error"),
    ]
}
