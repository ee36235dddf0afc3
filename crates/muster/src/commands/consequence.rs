//! What an act would come to, in the plane's words, before it is done; and the question, on a
//! terminal alone. Where nobody can be asked, what was not confirmed with `--yes` is refused.

use std::io::{BufRead, IsTerminal};

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::{Asking, item};
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean};
use muster_wire::{Category, Timestamp};

/// How many names are said before the rest is counted.
const NAMES: usize = 12;

/// An act as it would be sent.
pub(super) struct Act<'a> {
    /// `POST`, or `DELETE`.
    pub(super) method: Method,
    /// Where to.
    pub(super) path: &'a str,
    /// Its body.
    pub(super) body: Option<Bytes>,
    /// Nobody is asked.
    pub(super) yes: bool,
}

impl Act<'_> {
    /// Says what it would come to and asks; whether it is to be done.
    pub(super) async fn is_wanted(&self, asking: &Asking<'_>) -> Outcome<bool> {
        if self.yes {
            return Ok(true);
        }
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let path = format!("{}{mark}dry_run=true", self.path);
        let would = asking
            .client
            .send(self.method.clone(), &path, self.body.clone(), &[])
            .await?
            .json()?;
        // A plane that does not know the word has done it by now, and is not asked a second time.
        if would.get("dry_run") != Some(&Value::Bool(true)) {
            return Err(Failure::new(
                Category::BadResponse,
                "this plane does not say what an act would do, and may have done it",
            )
            .hint(
                "look with `muster overview`; the plane and this command are of different versions",
            ));
        }
        if would.get("allowed") == Some(&Value::Bool(false)) {
            let text = item::text(&would, &["text"]);
            let mut failure = Failure::new(
                Category::Conflict,
                text.unwrap_or_else(|| "it would be refused".to_owned()),
            );
            failure.evidence = lines(&would).into_iter().skip(1).collect();
            return Err(failure);
        }
        ask(lines(&would), "Go on?")
    }
}

/// Says what something comes to, and asks; whether it is to be done. Without a terminal the
/// answer is an error that says the same.
pub(super) fn ask(comes_to: Vec<String>, question: &str) -> Outcome<bool> {
    if !std::io::stdin().is_terminal() {
        let mut failure = Failure::new(
            Category::Validation,
            "nobody is there to be asked; nothing was done",
        )
        .hint("with --yes it is done without a question");
        failure.evidence = comes_to;
        return Err(failure);
    }
    for line in comes_to {
        out::talk(&line);
    }
    out::talk_raw(&format!("{question} [y/N] "));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let go = matches!(line.trim(), "y" | "Y" | "yes");
    if !go {
        out::talk("nothing was done");
    }
    Ok(go)
}

/// The consequence, a line each.
pub(super) fn lines(would: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(item::text(would, &["text", "stays"]));
    lines.extend(last_use(would));
    let names = names(would, "workers", "name");
    if !names.is_empty() {
        let total = item::number(would, &["workers_total"]).unwrap_or(names.len() as u64);
        lines.push(format!("workers: {}", some_of(&names, total)));
    }
    let told: Vec<String> = would
        .get("told")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(clean)
        .collect();
    if !told.is_empty() {
        lines.push(format!(
            "agents that are told: {}",
            some_of(&told, told.len() as u64)
        ));
    }
    lines.extend(item::text(would, &["then", "undo"]).map(|then| format!("afterwards: {then}")));
    lines
}

/// When a key was used last, and by whom; nothing when it is not about a key.
fn last_use(would: &Value) -> Option<String> {
    would.get("last_used_at")?;
    let by = item::text(would, &["last_used_by"]).map(|by| format!(" by {by}"));
    let as_of = item::time(would, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    Some(match item::time(would, &["last_used_at"]) {
        Some(at) => format!(
            "last used {}{}",
            out::span::ago(item::between(at, as_of)),
            by.unwrap_or_default()
        ),
        None => "never used".to_owned(),
    })
}

fn names(of: &Value, list: &str, name: &str) -> Vec<String> {
    let all = of.get(list).and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(|one| item::text(one, &[name]))
        .collect()
}

fn some_of(names: &[String], total: u64) -> String {
    let shown = names.len().min(NAMES);
    let mut text = names[..shown].join(", ");
    let rest = total.saturating_sub(shown as u64);
    if rest > 0 {
        text += &format!(" and {} more", out::span::number(rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_planes_sentence_comes_first_and_many_names_are_counted() {
        let workers: Vec<Value> = (0..15).map(|n| json!({"name": format!("w{n}")})).collect();
        let would = json!({"dry_run": true, "text": "2 workers are lost", "workers": workers,
                           "workers_total": 40, "told": ["a"]});
        let lines = lines(&would);
        assert_eq!(lines[0], "2 workers are lost");
        assert!(lines[1].ends_with("w11 and 28 more"), "{lines:?}");
        assert_eq!(lines[2], "agents that are told: a");
        let key = json!({"text": "it ends", "as_of": "2026-11-29T18:00:00.000Z",
                         "last_used_at": "2026-11-29T17:57:00.000Z", "last_used_by": "10.0.0.7"});
        assert_eq!(super::lines(&key)[1], "last used 3 m ago by 10.0.0.7");
        let never = json!({"text": "it ends", "last_used_at": null});
        assert_eq!(super::lines(&never)[1], "never used");
    }
}
