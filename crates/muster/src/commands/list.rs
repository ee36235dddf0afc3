//! What all lists share: asking, the envelope for programs, and `--watch`.

use std::time::Duration;

use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::Asking;
use crate::failure::Outcome;
use crate::out::{self, Style};

/// A list as it is asked for and drawn.
pub(super) struct List {
    /// What its items are.
    pub(super) kind: &'static str,
    /// Where it is.
    pub(super) path: String,
    /// Draws it for people.
    pub(super) draw: fn(&Style, &Listed) -> String,
}

/// A list as it came.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// The plane's time.
    pub(super) as_of: Timestamp,
    /// The items as they came.
    pub(super) items: Vec<Value>,
    /// Where the next page begins.
    pub(super) next_cursor: Value,
}

/// Changes come in bursts; a list is asked for again when they pause.
const SETTLE: Duration = Duration::from_millis(250);
/// Ages tick though nothing changes.
const TICK: Duration = Duration::from_secs(2);

impl Listed {
    /// Takes the items out of an answer, whatever their key is.
    pub(super) fn of(body: Value) -> Self {
        let items = body
            .get("items")
            .or_else(|| {
                let object = body.as_object()?;
                object.values().find(|value| value.is_array())
            })
            .or(Some(&body))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let as_of = body
            .get("as_of")
            .and_then(Value::as_str)
            .and_then(Timestamp::parse)
            .unwrap_or_else(Timestamp::wall_clock);
        Self {
            as_of,
            items,
            next_cursor: body.get("next_cursor").cloned().unwrap_or(Value::Null),
        }
    }

    /// The envelope for programs.
    pub(super) fn envelope(&self, kind: &str) -> Value {
        json!({
            "kind": kind,
            "as_of": self.as_of.rfc3339(),
            "items": self.items,
            "next_cursor": self.next_cursor,
        })
    }
}

/// One thing, in the envelope of its own.
pub(super) fn print_one(kind: &str, item: &Value) {
    let mut object = json!({"kind": kind, "as_of": Timestamp::wall_clock().rfc3339()});
    if let (Some(object), Some(item)) = (object.as_object_mut(), item.as_object()) {
        for (key, value) in item {
            object.insert(key.clone(), value.clone());
        }
    }
    out::data(&object.to_string());
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
            _ = tokio::signal::ctrl_c() => return Ok(0),
        }
    }
}

async fn fetch(asking: &Asking<'_>, list: &List) -> Outcome<Listed> {
    Ok(Listed::of(asking.client.get_json(&list.path).await?))
}

fn print(asking: &Asking<'_>, list: &List, listed: &Listed) {
    if asking.json {
        out::data(&listed.envelope(list.kind).to_string());
    } else {
        out::data_raw(&(list.draw)(&asking.look.data, listed));
    }
}

/// Draws over what was painted before; how many lines it painted.
fn repaint(text: &str, before: usize) -> usize {
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
