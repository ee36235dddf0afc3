//! `muster keys`. A key's text is shown once, when it is made.

use http::Method;
use muster_server::config::Span;
use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};

use super::envelope::print_one;
use super::executions::shown_id;
use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, consequence, item, list};
use crate::cli::{Keys, KeysCommand};
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, id, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "PREFIX",
        give: Give::Never,
    },
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "SCOPES",
        give: Give::Wrap,
    },
    Column {
        title: "USED",
        give: Give::Drop(1),
    },
    Column {
        title: "NAME",
        give: Give::Cut,
    },
    Column {
        title: "ID",
        give: Give::Never,
    },
];

/// Lists, makes, ends, replaces.
pub(super) async fn run(asking: &Asking<'_>, args: &Keys) -> Outcome<u8> {
    match args.command.as_ref().unwrap_or(&KeysCommand::List) {
        KeysCommand::List => {
            let list = List {
                kind: "keys",
                path: "/api/v1/keys",
                filter: Vec::new(),
                limit: None,
                join: None,
                draw,
            };
            list::run(asking, &list, false).await
        }
        KeysCommand::Create {
            scope,
            name,
            expires,
        } => {
            let mut body = json!({
                "name": if name.is_empty() { "made on the command line" } else { name },
                "scopes": scope,
            });
            if let Some(expires) = expires {
                let life = Span::parse(expires).map_err(|error| {
                    Failure::new(Category::Validation, format!("--expires: {error}"))
                })?;
                body["expires_in_seconds"] = json!(life.0.as_secs());
            }
            let made = asking.client.post("/api/v1/keys", &body).await?.json()?;
            Ok(made_key(asking, &made))
        }
        KeysCommand::Code { scope } => {
            let body = match scope.is_empty() {
                true => json!({}),
                false => json!({ "scopes": scope }),
            };
            let made = asking.client.post("/api/v1/keys/code", &body).await?;
            Ok(made_code(asking, &made.json()?))
        }
        KeysCommand::Revoke { id, yes } => {
            let id = resolve::id_for_good(asking, Noun::Key, id).await?;
            let path = format!("/api/v1/keys/{}/revoke", encode(&id));
            let act = consequence::Act {
                method: Method::POST,
                path: &path,
                body: Some("{}".into()),
                yes: *yes,
            };
            if !act.is_wanted(asking).await? {
                return Ok(0);
            }
            let revoked = asking.client.post(&path, &json!({})).await?.json()?;
            if asking.json {
                print_one("key", &revoked);
            } else {
                out::data(&format!("{id} revoked"));
            }
            Ok(0)
        }
        KeysCommand::Rotate { id } => {
            let id = resolve::id_for_good(asking, Noun::Key, id).await?;
            let path = format!("/api/v1/keys/{}/rotate", encode(&id));
            let made = asking.client.post(&path, &json!({})).await?.json()?;
            let code = made_key(asking, &made);
            if !asking.json {
                out::talk(
                    "the old key is still taken for an hour; `muster keys revoke` ends it now",
                );
            }
            Ok(code)
        }
    }
}

fn made_key(asking: &Asking<'_>, made: &Value) -> u8 {
    if asking.json {
        print_one("key", made);
        return 0;
    }
    out::data(&item::text(made, &["key"]).unwrap_or_default());
    let scopes = scopes(made);
    out::talk(&format!(
        "{} with {scopes}; it is shown this once",
        item::id(made)
    ));
    0
}

fn made_code(asking: &Asking<'_>, made: &Value) -> u8 {
    if asking.json {
        print_one("code", made);
        return 0;
    }
    out::data(&item::text(made, &["code"]).unwrap_or_default());
    let path = item::text(made, &["path"]).unwrap_or_default();
    out::talk(&format!(
        "signs a browser in once, within 10 minutes, with {}: type it at {}/ui/login, or open {}{path}",
        scopes(made),
        asking.client.address(),
        asking.client.address(),
    ));
    0
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no keys\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    let state = item::state(item);
    let colour = if state == "active" {
        Colour::Plain
    } else {
        Colour::Dim
    };
    let used = item::time(item, &["last_used_at", "used_at"]).map_or_else(
        || "never".to_owned(),
        |at| span::age(item::between(at, now)),
    );
    vec![
        Cell::new(item::text(item, &["prefix"]).unwrap_or_default()),
        Cell::coloured(colour, state),
        Cell::new(match style.width {
            Some(_) => id::shorten_in(&scopes(item), style.ellipsis()),
            None => scopes(item),
        }),
        Cell::new(used),
        Cell::new(item::text(item, &["name"]).unwrap_or_default()),
        Cell::new(shown_id(style, &item::id(item))),
    ]
}

fn scopes(item: &Value) -> String {
    let all: Vec<String> = item
        .get("scopes")
        .and_then(Value::as_array)
        .map(|all| {
            all.iter()
                .filter_map(Value::as_str)
                .map(out::clean)
                .collect()
        })
        .unwrap_or_default();
    all.join(" ")
}
