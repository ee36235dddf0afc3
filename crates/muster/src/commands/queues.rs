//! `muster queues`: who waits for which agent, and how many calls an agent gets at once.

use http::Method;
use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};

use super::executions::shown_id;
use super::list::{List, Listed};
use super::resolve::{self, Noun};
use super::{Asking, envelope, item, list};
use crate::cli::{Queues, QueuesCommand};
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Style, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "AGENT",
        give: Give::Never,
    },
    Column {
        title: "RUN/CAP",
        give: Give::Never,
    },
    Column {
        title: "WAIT",
        give: Give::Never,
    },
    Column {
        title: "OLDEST",
        give: Give::Drop(1),
    },
    Column {
        title: "STARTS",
        give: Give::Drop(0),
    },
    Column {
        title: "HELD UP BY",
        give: Give::Cut,
    },
];

const ENTRY_COLUMNS: &[Column] = &[
    Column {
        title: "PLACE",
        give: Give::Never,
    },
    Column {
        title: "FUNCTION",
        give: Give::Never,
    },
    Column {
        title: "STARTS",
        give: Give::Never,
    },
    Column {
        title: "CLASS",
        give: Give::Drop(0),
    },
    Column {
        title: "AGE",
        give: Give::Drop(1),
    },
    Column {
        title: "RUN",
        give: Give::Drop(2),
    },
    Column {
        title: "ID",
        give: Give::Never,
    },
];

/// Lists the queues, shows one, or sets a cap.
pub(super) async fn run(asking: &Asking<'_>, args: &Queues) -> Outcome<u8> {
    match &args.command {
        Some(QueuesCommand::Show { agent, limit }) => return show(asking, agent, *limit).await,
        Some(QueuesCommand::Cap { agent, cap }) => return set_cap(asking, agent, cap).await,
        None => {}
    }
    let list = List {
        kind: "queues",
        path: "/api/v1/queues",
        filter: Vec::new(),
        limit: None,
        join: None,
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

async fn show(asking: &Asking<'_>, typed: &str, limit: u32) -> Outcome<u8> {
    let agent = resolve::id(asking, Noun::Agent, typed).await?;
    let path = format!("/api/v1/queues/{}?limit={limit}", encode(&agent));
    let queue = asking.client.get_json(&path).await?;
    if asking.json {
        envelope::print_one("queue", &queue);
        return Ok(0);
    }
    out::data_raw(&text_of(&asking.look.data, &queue));
    Ok(0)
}

/// One queue for people: its numbers, and who waits in it.
pub(super) fn text_of(style: &Style, queue: &Value) -> String {
    let now = item::time(queue, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let mut text = draw_table(style, COLUMNS, &[row(queue, now)]);
    let entries = queue.get("entries").and_then(Value::as_array);
    let rows: Vec<Vec<Cell>> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry_row(style, entry, now))
        .collect();
    text.push('\n');
    if rows.is_empty() {
        return text + "nobody waits in it\n";
    }
    text += &draw_table(style, ENTRY_COLUMNS, &rows);
    if let Some(more @ 1..) = item::number(queue, &["more"]) {
        let more = format!(
            "{} {} more behind them\n",
            style.ellipsis(),
            span::number(more)
        );
        text += &more;
    }
    text
}

fn entry_row(style: &Style, entry: &Value, now: Timestamp) -> Vec<Cell> {
    let text = |name: &str| item::text(entry, &[name]).unwrap_or_default();
    let starts = item::number(entry, &["starts_in_ms"])
        .map(|ms| format!("≈ {}", span::age(i64::try_from(ms).unwrap_or(i64::MAX))));
    vec![
        Cell::new(item::number(entry, &["position"]).map_or_else(String::new, span::number)),
        Cell::new(text("function")),
        Cell::new(starts.unwrap_or_else(|| "?".to_owned())),
        Cell::new(text("class")),
        Cell::new(item::age(entry, now)),
        Cell::new(shown_id(style, &text("run_id"))),
        Cell::new(shown_id(style, &text("execution_id"))),
    ]
}

async fn set_cap(asking: &Asking<'_>, typed: &str, cap: &str) -> Outcome<u8> {
    let wanted = wanted_cap(cap)?;
    let agent = resolve::id(asking, Noun::Agent, typed).await?;
    let path = format!("/api/v1/nodes/{}/cap", encode(&agent));
    let body = json!({ "cap": wanted }).to_string();
    let set = asking
        .client
        .send(Method::PUT, &path, Some(body.into()), &[])
        .await?
        .json()?;
    if asking.json {
        envelope::print_one("cap", &set);
        return Ok(0);
    }
    out::data(&cap_sentence(&set));
    out::talk(&format!("back: {}", undo(&set)));
    Ok(0)
}

/// `off` is 0, `default` is null.
fn wanted_cap(text: &str) -> Outcome<Value> {
    match text {
        "off" | "none" => Ok(json!(0)),
        "default" => Ok(Value::Null),
        number => match number.parse::<u32>() {
            Ok(cap) => Ok(json!(cap)),
            Err(_) => Err(
                Failure::new(Category::Validation, format!("{number:?} is no cap"))
                    .hint("say how many, `off`, or `default`: muster queues cap AGENT 8"),
            ),
        },
    }
}

fn cap_word(of: &Value, name: &str) -> String {
    item::number(of, &[name])
        .filter(|cap| *cap > 0)
        .map_or_else(|| "no cap".to_owned(), |cap| format!("cap {cap}"))
}

pub(super) fn cap_sentence(set: &Value) -> String {
    let by = match item::text(set, &["source"]).as_deref() {
        Some("config") => ", by the configuration",
        _ => "",
    };
    format!(
        "{} has {}{by}; it had {}",
        item::text(set, &["agent"]).unwrap_or_default(),
        cap_word(set, "cap"),
        cap_word(set, "was"),
    )
}

/// The command that takes it back.
pub(super) fn undo(set: &Value) -> String {
    let agent = item::text(set, &["agent"]).unwrap_or_default();
    let was = match item::text(set, &["was_source"]).as_deref() {
        Some("config") => "default".to_owned(),
        _ => item::number(set, &["was"])
            .filter(|cap| *cap > 0)
            .map_or_else(|| "off".to_owned(), |cap| cap.to_string()),
    };
    format!("muster queues cap {agent} {was}")
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "no agent has registered, so nothing waits\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(item: &Value, now: Timestamp) -> Vec<Cell> {
    let cap = item::number(item, &["cap"]).filter(|cap| *cap > 0);
    let running = item::number(item, &["running", "held", "slots_held"]);
    let waiting = [&["queued"][..], &["waiting_callers"]]
        .iter()
        .filter_map(|names| item::number(item, names))
        .reduce(|queued, callers| queued + callers);
    let oldest = item::time(item, &["oldest_queued_at", "oldest_at"])
        .map(|at| span::age(item::between(at, now)));
    vec![
        Cell::new(item::text(item, &["agent", "agent_id", "id"]).unwrap_or_default()),
        Cell::new(match (running, cap) {
            (Some(running), Some(cap)) => format!("{running}/{cap}"),
            (Some(running), None) => format!("{running}/no cap"),
            (None, _) => String::new(),
        }),
        Cell::new(waiting.map_or_else(String::new, span::number)),
        Cell::new(oldest.unwrap_or_default()),
        Cell::new(rate(item)),
        Cell::new(held_up_by(item, waiting)),
    ]
}

fn rate(item: &Value) -> String {
    match item.get("starts_per_minute").and_then(Value::as_f64) {
        Some(rate) if rate >= 10.0 => format!("{rate:.0}/min"),
        Some(rate) => format!("{rate:.1}/min"),
        None => String::new(),
    }
}

fn held_up_by(item: &Value, waiting: Option<u64>) -> String {
    if let Some(by) = item.get("held_by").filter(|by| by.is_object()) {
        let agent = item::text(item, &["agent"]).unwrap_or_default();
        let said = item::text(by, &["text"]).unwrap_or_default();
        return match item::text(by, &["cause"]).as_deref() {
            Some("hold") => format!("{said}: muster unhold"),
            Some("tags_pending") => format!("{said}: muster tags approve {agent}"),
            _ => said,
        };
    }
    if item.get("held").and_then(Value::as_bool) == Some(true) {
        return "a hold: muster unhold".to_owned();
    }
    if item.get("pending_tags").is_some() {
        let agent = item::text(item, &["agent"]).unwrap_or_default();
        return format!("tags: muster tags approve {agent}");
    }
    let absorbed = item::number(item, &["absorbed"]).unwrap_or(0);
    if absorbed > 0 {
        return format!("its restart, {absorbed} wait for it");
    }
    match (
        waiting,
        item::number(item, &["running"]),
        item::number(item, &["cap"]),
    ) {
        (Some(1..), Some(running), Some(cap)) if running >= cap => format!("cap {cap}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_said_with_the_command_that_takes_it_back() {
        assert_eq!(wanted_cap("off").unwrap(), 0);
        assert!(wanted_cap("default").unwrap().is_null());
        assert_eq!(wanted_cap("many").unwrap_err().exit_code(), 2);
        let set =
            json!({"agent": "a", "cap": 8, "source": "set", "was": null, "was_source": "config"});
        assert_eq!(cap_sentence(&set), "a has cap 8; it had no cap");
        assert_eq!(undo(&set), "muster queues cap a default");
        let set =
            json!({"agent": "a", "cap": null, "source": "set", "was": 3, "was_source": "set"});
        assert_eq!(undo(&set), "muster queues cap a 3");
    }
}
