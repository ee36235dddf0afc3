//! `muster tags`: tags of agents that need an approval.

use serde_json::{Value, json};

use super::envelope::print_one;
use super::list::{List, Listed};
use super::{Asking, list};
use crate::cli::{Tags, TagsCommand};
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, clean};

const COLUMNS: &[Column] = &[
    Column {
        title: "AGENT",
        give: Give::Never,
    },
    Column {
        title: "CALLED",
        give: Give::Never,
    },
    Column {
        title: "PENDING",
        give: Give::Cut,
    },
    Column {
        title: "APPROVED",
        give: Give::Drop(1),
    },
    Column {
        title: "REJECTED",
        give: Give::Drop(0),
    },
];

/// Lists or decides.
pub(super) async fn run(asking: &Asking<'_>, args: &Tags) -> Outcome<u8> {
    match &args.command {
        None | Some(TagsCommand::List) => {
            let list = List {
                kind: "tags",
                path: "/api/v1/tags",
                filter: Vec::new(),
                limit: None,
                join: None,
                draw,
            };
            list::run(asking, &list, false).await
        }
        Some(TagsCommand::Approve { agent, tags }) => decide(asking, agent, tags, "approve").await,
        Some(TagsCommand::Reject { agent, tags }) => decide(asking, agent, tags, "reject").await,
    }
}

async fn decide(asking: &Asking<'_>, agent: &str, tags: &[String], how: &str) -> Outcome<u8> {
    let path = format!("/api/v1/tags/{}/{how}", encode(agent));
    let answer = asking.client.post(&path, &json!({ "tags": tags })).await?;
    let now = answer.json()?;
    if asking.json {
        print_one("tags", &now);
    } else {
        out::data(&sentence(&now));
    }
    Ok(0)
}

pub(super) fn sentence(now: &Value) -> String {
    let agent = clean(now["agent"].as_str().unwrap_or_default());
    let pending = words(now, "pending");
    if now["callable"] == true {
        format!("{agent} may be called")
    } else if pending.is_empty() {
        format!(
            "{agent} is not called; rejected: {}",
            words(now, "rejected")
        )
    } else {
        format!("{agent} is not called yet; pending: {pending}. muster tags approve {agent}")
    }
}

fn words(item: &Value, name: &str) -> String {
    let list = item.get(name).and_then(Value::as_array);
    let words: Vec<String> = list
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(clean)
        .collect();
    words.join(", ")
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no agent asks for a tag that needs an approval\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed.items.iter().map(row).collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(item: &Value) -> Vec<Cell> {
    let called = if item["callable"] == true {
        Cell::coloured(Colour::Green, "yes")
    } else {
        Cell::coloured(Colour::Yellow, "no")
    };
    vec![
        Cell::new(clean(item["agent"].as_str().unwrap_or_default())),
        called,
        Cell::new(words(item, "pending")),
        Cell::new(words(item, "approved")),
        Cell::new(words(item, "rejected")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_whether_it_is_called() {
        for (now, want) in [
            (json!({"agent":"a","callable":true}), "a may be called"),
            (
                json!({"agent":"a","callable":false,"pending":["x","y"]}),
                "a is not called yet; pending: x, y. muster tags approve a",
            ),
            (
                json!({"agent":"a","callable":false,"pending":[],"rejected":["z"]}),
                "a is not called; rejected: z",
            ),
        ] {
            assert_eq!(sentence(&now), want);
        }
    }
}
