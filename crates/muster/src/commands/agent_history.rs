//! The past of an agent or of a machine: a strip of states over time, and every change.

use muster_wire::Timestamp;
use serde_json::Value;

use super::envelope::print_one;
use super::executions::{shown_id, since};
use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::History;
use crate::client::query;
use crate::failure::Outcome;
use crate::out::{self, Colour, Mark, Style, agent_mark, node_mark, span};

/// So many stretches a strip has.
const BUCKETS: usize = 48;

/// Shows it.
pub(super) async fn run(asking: &Asking<'_>, noun: Noun, args: &History) -> Outcome<u8> {
    let id = resolve::id(asking, noun, &args.id).await?;
    let asked = query(&[
        ("from", since(args.since.as_deref())?),
        ("to", since(args.until.as_deref())?),
        ("buckets", Some(BUCKETS.to_string())),
    ]);
    let path = format!("{}/history{asked}", noun.path(&id));
    let mut body = asking.client.get_json(&path).await?;
    if let Some(fields) = body.as_object_mut() {
        fields.entry("id").or_insert_with(|| id.clone().into());
    }
    match asking.json {
        true => print_one("history", &body),
        false => out::data_raw(&text_of(&asking.look.data, &body)),
    }
    Ok(0)
}

/// It for people.
pub(super) fn text_of(style: &Style, body: &Value) -> String {
    let buckets = body
        .get("buckets")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let last = buckets
        .last()
        .and_then(|bucket| item::time(bucket, &["to"]));
    let now = item::time(body, &["as_of"])
        .or(last)
        .unwrap_or_else(Timestamp::wall_clock);
    let mut text = String::new();
    if let (Some(first), Some(last)) = (buckets.first(), buckets.last()) {
        let (from, to) = (item::time(first, &["from"]), item::time(last, &["to"]));
        let ago = |at: Option<Timestamp>| {
            at.map_or_else(String::new, |at| {
                match span::age(item::between(at, now)).as_str() {
                    "now" => "now".to_owned(),
                    age => format!("{age} ago"),
                }
            })
        };
        let strip: String = buckets.iter().map(|bucket| cell(style, bucket)).collect();
        text += &format!("{strip}\n{} to {}\n", ago(from), ago(to));
        text += &legend(style, buckets);
    }
    let changes = ["changes", "history"]
        .iter()
        .find_map(|name| body.get(*name).and_then(Value::as_array));
    let mut changes: Vec<&Value> = changes.into_iter().flatten().collect();
    changes.sort_by_key(|change| (item::time(change, &["at"]), item::number(change, &["seq"])));
    if changes.is_empty() {
        text += "no change is kept of this time\n";
    }
    for change in changes {
        let age = item::time(change, &["at"])
            .map_or_else(|| "—".to_owned(), |at| span::age(item::between(at, now)));
        let word = |name: &str| item::text(change, &[name]);
        let became = match (word("from"), word("to")) {
            (Some(from), Some(to)) => format!("{from} → {to}"),
            (None, Some(to)) => to,
            (Some(from), None) => format!("{from} → gone"),
            (None, None) => word("kind").unwrap_or_else(|| "—".to_owned()),
        };
        // On a terminal short, as every command takes it.
        let whose = word("instance").or_else(|| word("worker"));
        let whose = whose.map_or_else(String::new, |id| format!("{} ", shown_id(style, &id)));
        let said = word("evidence").unwrap_or_default();
        let line = style.words(&format!("{whose}{became}: {said}"));
        text += &format!("  {age:>8}  {}\n", style.wrapped(12, &line));
    }
    if body.get("more") == Some(&Value::Bool(true))
        || body.get("next_before").is_some_and(Value::is_number)
    {
        text += "  there are older ones: --since, --until\n";
    }
    style.words(&text)
}

/// The state of a stretch; while the plane was down nobody knew it.
fn mark_of(bucket: &Value) -> Option<(String, Mark)> {
    if bucket.get("plane_down") == Some(&Value::Bool(true)) {
        return Some(("plane down".to_owned(), PLANE_DOWN));
    }
    let state = item::text(bucket, &["state"])?;
    let mark = match state.as_str() {
        "online" | "suspect" | "connecting" | "unreachable" | "lost" => node_mark(&state, false),
        _ => agent_mark(&state),
    };
    Some((state, mark))
}

const PLANE_DOWN: Mark = Mark {
    shape: "╳",
    word: "x",
    colour: Colour::Dim,
};

fn cell(style: &Style, bucket: &Value) -> String {
    let Some((state, mark)) = mark_of(bucket) else {
        return if style.unicode {
            "·".to_owned()
        } else {
            ".".to_owned()
        };
    };
    match style.unicode {
        true => mark.painted(style),
        // One column each, so that the strip is a time line.
        false if mark == PLANE_DOWN || mark == Mark::UNKNOWN => mark.word.to_owned(),
        false => style.paint(
            mark.colour,
            &state
                .chars()
                .next()
                .unwrap_or('?')
                .to_uppercase()
                .to_string(),
        ),
    }
}

fn legend(style: &Style, buckets: &[Value]) -> String {
    let mut seen: Vec<String> = Vec::new();
    for bucket in buckets {
        let line = match mark_of(bucket) {
            Some((state, _)) => format!("{} {state}", cell(style, bucket)),
            None => format!("{} not known", cell(style, bucket)),
        };
        if !seen.contains(&line) {
            seen.push(line);
        }
    }
    format!("{}\n", style.wrapped(0, &seen.join("  ")))
}
