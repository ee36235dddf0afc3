//! What all lists share: asking, the envelope for programs, and `--watch`.

use std::future::Future;
use std::time::Duration;

use muster_wire::{Category, Timestamp};
use serde_json::{Map, Value};

use super::{Asking, envelope, waits};
use crate::client::query;
use crate::failure::{Failure, Outcome};
use crate::out::{self, Style};

/// A list as it is asked for and drawn.
pub(super) struct List {
    /// What its items are.
    pub(super) kind: &'static str,
    /// Where it is.
    pub(super) path: &'static str,
    /// What is asked for.
    pub(super) filter: Vec<(&'static str, Option<String>)>,
    /// How many items at most; `None` for lists that have no pages.
    pub(super) limit: Option<u32>,
    /// What another list knows of the items.
    pub(super) join: Option<Join>,
    /// Draws it for people.
    pub(super) draw: fn(&Style, &Listed) -> String,
}

/// Puts what others know into the items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Join {
    /// Another list.
    List {
        /// Where that list is.
        path: &'static str,
        /// Puts it in: the items, and those of the other list.
        put: fn(&mut [Value], &[Value]),
    },
    /// What executions wait for, from the queues.
    Waits,
}

/// A list as it came.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// The plane's time.
    pub(super) as_of: Timestamp,
    /// The event up to which it is complete; null when it does not say.
    pub(super) position: Value,
    /// The items as they came.
    pub(super) items: Vec<Value>,
    /// Where the next page begins.
    pub(super) next_cursor: Value,
    /// What the answer says beside the items: counts, sums, a time.
    pub(super) more: Map<String, Value>,
}

/// The longest page that a plane gives.
const PAGE_MAX: usize = 500;
/// Changes come in bursts; a list is asked for again when they pause.
const SETTLE: Duration = Duration::from_millis(250);
/// Ages tick though nothing changes.
const TICK: Duration = Duration::from_secs(2);

impl Listed {
    /// Takes the items out of an answer, whatever their key is.
    pub(super) fn of(body: Value) -> Self {
        let mut more = match body {
            Value::Object(fields) => fields,
            Value::Array(items) => Map::from_iter([("items".to_owned(), Value::Array(items))]),
            _ => Map::new(),
        };
        let key = match more.get("items").is_some_and(Value::is_array) {
            true => Some("items".to_owned()),
            false => more
                .iter()
                .find(|(_, value)| value.is_array())
                .map(|(key, _)| key.clone()),
        };
        let items = match key.and_then(|key| more.remove(&key)) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let as_of = more
            .remove("as_of")
            .as_ref()
            .and_then(Value::as_str)
            .and_then(Timestamp::parse)
            .unwrap_or_else(Timestamp::wall_clock);
        let mut take = |name: &str| more.remove(name).unwrap_or(Value::Null);
        let (position, next_cursor, _) = (take("position"), take("next_cursor"), take("count"));
        Self {
            as_of,
            position,
            items,
            next_cursor,
            more,
        }
    }
}

/// Prints a list, once or again and again.
pub(super) async fn run(asking: &Asking<'_>, list: &List, watch: bool) -> Outcome<u8> {
    if !watch {
        let listed = fetch(asking, list).await?;
        print(asking, list, &listed);
        if !asking.json && !listed.next_cursor.is_null() {
            out::talk("there are more: --limit, or narrow it down");
        }
        return Ok(0);
    }
    until_left(asking, again_and_again(asking, list)).await
}

/// Does something until Ctrl-C, which ends it whatever it waits for at that moment.
pub(super) async fn until_left(
    asking: &Asking<'_>,
    work: impl Future<Output = Outcome<u8>>,
) -> Outcome<u8> {
    tokio::select! {
        ended = work => ended,
        _ = tokio::signal::ctrl_c() => Ok(left(
            asking,
            "only the looking ended; `muster overview` shows how it is",
        )),
    }
}

/// The exit code of what was left with Ctrl-C; programs are told so in the error shape.
pub(super) fn left(asking: &Asking<'_>, hint: &str) -> u8 {
    let failure = Failure::new(Category::Cancelled, "stopped with Ctrl-C").hint(hint);
    if asking.json {
        failure.print(&asking.look.errors, true);
    }
    failure.exit_code()
}

async fn again_and_again(asking: &Asking<'_>, list: &List) -> Outcome<u8> {
    let mut events = asking.client.events("/api/v1/events").await?;
    let mut painted = 0;
    loop {
        let listed = fetch(asking, list).await?;
        if asking.json || !asking.look.data.redraws {
            print(asking, list, &listed);
        } else {
            painted = repaint(&(list.draw)(&asking.look.data, &listed), painted);
        }
        let ticks = asking.look.data.redraws;
        tokio::select! {
            event = events.next() => {
                event?;
                // Until nothing has come for a moment, but not for ever.
                for _ in 0..8 {
                    if tokio::time::timeout(SETTLE, events.next()).await.is_err() {
                        break;
                    }
                }
            }
            () = tokio::time::sleep(TICK), if ticks => {}
        }
    }
}

async fn fetch(asking: &Asking<'_>, list: &List) -> Outcome<Listed> {
    let mut listed = pages(asking, list.path, &list.filter, list.limit).await?;
    match list.join {
        None => {}
        Some(Join::Waits) => waits::put(asking, &mut listed.items).await?,
        Some(Join::List { path, put }) => {
            let other = asking.client.get_json(path).await?;
            put(&mut listed.items, &Listed::of(other).items);
        }
    }
    Ok(listed)
}

/// Reads a list to its end, or to so many items.
pub(super) async fn pages(
    asking: &Asking<'_>,
    path: &str,
    filter: &[(&'static str, Option<String>)],
    limit: Option<u32>,
) -> Outcome<Listed> {
    let mut all: Option<Listed> = None;
    loop {
        let have = all.as_ref().map_or(0, |all| all.items.len());
        let page = limit.map(|limit| (limit as usize).saturating_sub(have).min(PAGE_MAX));
        let cursor = all
            .as_ref()
            .and_then(|all| all.next_cursor.as_str().map(str::to_owned));
        let mut asked = filter.to_vec();
        asked.push(("limit", page.map(|page| page.to_string())));
        asked.push(("cursor", cursor));
        let body = asking
            .client
            .get_json(&format!("{path}{}", query(&asked)))
            .await?;
        let listed = Listed::of(body);
        let all = match &mut all {
            None => all.insert(listed),
            Some(all) => {
                all.items.extend(listed.items);
                all.next_cursor = listed.next_cursor;
                all
            }
        };
        let is_full = limit.is_some_and(|limit| all.items.len() >= limit as usize);
        if all.next_cursor.is_null() || is_full {
            return Ok(all.clone());
        }
    }
}

fn print(asking: &Asking<'_>, list: &List, listed: &Listed) {
    if asking.json {
        out::data(&envelope::list(list.kind, listed));
    } else {
        out::data_raw(&(list.draw)(&asking.look.data, listed));
    }
}

/// Draws over what was painted before; how many lines it painted.
pub(super) fn repaint(text: &str, before: usize) -> usize {
    let room = out::rows().saturating_sub(1).max(1);
    let lines: Vec<&str> = text.lines().take(room).collect();
    let mut painted = String::new();
    if before > 0 {
        painted += &format!("\u{1b}[{before}A\r");
    }
    painted += "\u{1b}[J";
    for line in &lines {
        painted += line;
        painted.push('\n');
    }
    out::data_raw(&painted);
    lines.len()
}
