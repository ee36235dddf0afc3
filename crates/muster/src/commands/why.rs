//! `muster why`: the verdict, the facts oldest first, the rule, what happens next, what would
//! change it, and what it is not. The plane says all of it; only the ages are counted here.

use muster_wire::{Category, Timestamp};
use serde_json::Value;

use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::Why;
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::{self, Colour, Style, agent_mark, execution_mark, node_mark, span, worker_mark};

/// Asks why.
pub(super) async fn run(asking: &Asking<'_>, args: &Why) -> Outcome<u8> {
    resolve::refuse_empty(&args.id)?;
    let ask = |id: &str| format!("/api/v1/why/{}", encode(id));
    let body = match asking.client.get_json(&ask(&args.id)).await {
        Err(failure)
            if matches!(
                failure.body.error_category,
                Category::NotFound | Category::TargetNotFound | Category::Validation
            ) =>
        {
            let nouns: &[Noun] = match args.id.split(['_', '…', '.']).next() {
                Some("run") => &[Noun::Run],
                Some("exec") => &[Noun::Execution],
                Some("node") => &[Noun::Node],
                Some("wrk") => &[Noun::Worker],
                // A machine or a worker goes by its name; a bare tail is an execution's more
                // often than anything else's.
                _ => &[Noun::Execution, Noun::Node, Noun::Worker],
            };
            let Some(id) = first(asking, nouns, &args.id).await else {
                return Err(failure);
            };
            asking.client.get_json(&ask(&id)).await?
        }
        other => other?,
    };
    if asking.json {
        super::list::print_one("why", &body);
    } else {
        out::data_raw(&text_of(&asking.look.data, &body));
    }
    Ok(0)
}

/// The id of the first kind of thing of which one is meant.
async fn first(asking: &Asking<'_>, nouns: &[Noun], typed: &str) -> Option<String> {
    for noun in nouns {
        // By name it is found, and by id it is asked for.
        if let Ok((_, body)) = resolve::get(asking, *noun, typed).await {
            return item::raw(&body, &["id", "execution_id", "run_id"]);
        }
    }
    None
}

/// The answer for people.
pub(super) fn text_of(style: &Style, why: &Value) -> String {
    let as_of = item::time(why, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let list = |name: &str| {
        why.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut text = String::new();

    let state = item::text(why, &["state", "status"]).unwrap_or_default();
    let reason = item::text(why, &["status_reason", "reason"]).unwrap_or_default();
    let mark = match item::text(why, &["kind"]).as_deref() {
        Some("agent" | "instance") => agent_mark(&state),
        Some("node") => node_mark(&state, why.get("flapping").is_some_and(|it| it == true)),
        Some("worker") => worker_mark(&state, false),
        _ => execution_mark(&state, &reason),
    };
    let verdict =
        item::text(why, &["verdict"]).unwrap_or_else(|| "the plane gives no verdict".to_owned());
    let shape = if state.is_empty() {
        String::new()
    } else {
        format!("{} ", mark.painted(style))
    };
    text += &format!("{shape}{}\n", style.paint(Colour::Bold, &verdict));

    let facts: Vec<(String, String, String)> = list("facts")
        .iter()
        .map(|fact| {
            let age = item::time(fact, &["at"]).map_or_else(
                || "—".to_owned(),
                |at| span::duration(item::between(at, as_of)),
            );
            let by = item::text(fact, &["by"]).unwrap_or_else(|| "plane".to_owned());
            let mut said = item::text(fact, &["text"]).unwrap_or_default();
            if let Some(value) = item::text(fact, &["value"]) {
                said += &format!(" {value}");
            }
            if let Some(unknown) = item::text(fact, &["unknown"]) {
                said += &format!(": not known, {unknown}");
            }
            (age, by, said)
        })
        .collect();
    let widest = |pick: fn(&(String, String, String)) -> &String| {
        facts
            .iter()
            .map(|fact| pick(fact).chars().count())
            .max()
            .unwrap_or(0)
    };
    let (age_width, by_width) = (widest(|f| &f.0).max(5), widest(|f| &f.1));
    for (age, by, said) in &facts {
        text += &format!("  {age:>age_width$}  {by:by_width$}  {said}\n");
    }

    let rule = why.get("rule");
    if let Some(rule) = rule.and_then(|rule| item::text(rule, &["text"])) {
        text += &labelled(style, "rule", &rule);
    }
    let next: Vec<String> = list("next")
        .iter()
        .map(|next| {
            let said = item::text(next, &["text"]).unwrap_or_default();
            match item::time(next, &["at"]).map(|at| item::between(as_of, at)) {
                Some(ms) if ms >= 0 => format!("in {}: {said}", span::duration(ms)),
                Some(ms) => format!("due {} ago: {said}", span::age(-ms)),
                None => said,
            }
        })
        .collect();
    if !next.is_empty() {
        text += &labelled(style, "next", &next.join(" · "));
    }
    for change in list("changes") {
        let said = item::text(&change, &["text"]).unwrap_or_default();
        let command = item::text(&change, &["command"]);
        let line = command.map_or(said.clone(), |command| format!("{said}: {command}"));
        text += &labelled(style, "or", &line);
    }
    let out_ruled: Vec<String> = list("ruled_out")
        .iter()
        .filter_map(|ruled| item::text(ruled, &["text"]))
        .collect();
    if !out_ruled.is_empty() {
        text += &labelled(style, "not", &out_ruled.join(" · "));
    }
    style.words(&text)
}

fn labelled(style: &Style, label: &str, said: &str) -> String {
    let padded = format!("{label:5}");
    format!("{}  {said}\n", style.paint(Colour::Dim, &padded))
}
