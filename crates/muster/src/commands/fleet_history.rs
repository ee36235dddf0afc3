//! The last lines of the history of a machine or a worker.

use muster_wire::Timestamp;
use serde_json::Value;

use super::list::Listed;
use super::{Asking, item};
use crate::failure::Outcome;
use crate::out::{Colour, Style, span};

/// So many lines are shown; all of them are in the API.
const LINES: usize = 12;

/// Asks for the newest lines of what is at `path`.
pub(super) async fn of(asking: &Asking<'_>, path: &str) -> Outcome<Vec<Value>> {
    let body = asking
        .client
        .get_json(&format!("{path}/history?limit={LINES}"))
        .await?;
    Ok(Listed::of(body).items)
}

/// Draws them, oldest first.
pub(super) fn draw(style: &Style, lines: &[Value], now: Timestamp) -> String {
    let mut lines: Vec<&Value> = lines.iter().take(LINES).collect();
    lines.sort_by_key(|line| (item::time(line, &["at"]), item::number(line, &["seq"])));
    let mut text = String::new();
    for line in lines {
        let age = item::time(line, &["at"])
            .map_or_else(|| "—".to_owned(), |at| span::age(item::between(at, now)));
        let change = match (item::text(line, &["from"]), item::text(line, &["to"])) {
            (Some(from), Some(to)) => format!("{from} → {to}: "),
            (None, Some(to)) => format!("{to}: "),
            _ => String::new(),
        };
        let said = item::text(line, &["evidence", "text"]).unwrap_or_default();
        let said = style.wrapped(23, &style.words(&format!("{change}{said}")));
        text += &format!(
            "  {} {age:>8}  {said}\n",
            style.paint(Colour::Dim, "history   ")
        );
    }
    style.words(&text)
}
