//! `muster why`: the verdict, the facts oldest first, the rule, what happens next, what would
//! change it, and what it is not. The plane says all of it; only the ages are counted here.

use muster_wire::{Category, Status, Timestamp};
use serde_json::Value;

use super::executions::shown_id;
use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::Why;
use crate::client::{encode, query};
use crate::failure::Outcome;
use crate::out::style::{bound, columns_of};
use crate::out::{
    self, Colour, Mark, Style, agent_mark, execution_mark, node_mark, span, worker_mark,
};

/// Asks why.
pub(super) async fn run(asking: &Asking<'_>, args: &Why) -> Outcome<u8> {
    resolve::refuse_empty(&args.id)?;
    let kind = query(&[("kind", args.kind.clone())]);
    let ask = |id: &str| format!("/api/v1/why/{}{kind}", encode(id));
    let body = match asking.client.get_json(&ask(&args.id)).await {
        Err(failure)
            if matches!(
                failure.body.error_category,
                Category::NotFound | Category::TargetNotFound | Category::Validation
            ) =>
        {
            let nouns: &[Noun] = match args.kind.as_deref() {
                Some("run") => &[Noun::Run],
                Some("execution") => &[Noun::Execution],
                Some("node") => &[Noun::Node],
                Some("worker") => &[Noun::Worker],
                Some("agent" | "queue") => &[Noun::Agent],
                _ => nouns_of(&args.id),
            };
            let Some(id) = first(asking, nouns, &args.id).await else {
                return Err(failure);
            };
            asking.client.get_json(&ask(&id)).await?
        }
        other => other?,
    };
    if asking.json {
        super::envelope::print_one("why", &body);
    } else {
        out::data_raw(&text_of(&asking.look.data, &body));
    }
    Ok(0)
}

/// What an id may be of.
fn nouns_of(typed: &str) -> &'static [Noun] {
    match typed.split(['_', '…', '.']).next() {
        Some("run") => &[Noun::Run],
        Some("exec") => &[Noun::Execution],
        Some("node") => &[Noun::Node],
        Some("wrk") => &[Noun::Worker],
        // A machine or a worker goes by its name; a bare tail is an execution's more often than
        // anything else's.
        _ => &[Noun::Execution, Noun::Node, Noun::Worker, Noun::Agent],
    }
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
            .map_or(&[][..], Vec::as_slice)
    };
    let verdict =
        item::text(why, &["verdict"]).unwrap_or_else(|| "the plane gives no verdict".to_owned());
    let mut text = head_of(style, why, &verdict, as_of);

    let facts: Vec<[String; 3]> = list("facts")
        .iter()
        .map(|fact| fact_of(fact, as_of))
        .collect();
    let widest = |at: usize| {
        facts
            .iter()
            .map(|fact| columns_of(&fact[at]))
            .max()
            .unwrap_or(0)
    };
    let (age_width, by_width) = (widest(0).max(5), widest(1));
    for [age, by, said] in &facts {
        let indent = 2 + age_width + 2 + by_width + 2;
        let said = style.wrapped(indent, &style.words(said));
        text += &format!("  {age:>age_width$}  {by:by_width$}  {said}\n");
    }

    if let Some(rule) = why.get("rule").and_then(|rule| item::text(rule, &["text"])) {
        text += &labelled(style, "rule", &rule);
    }
    let next: Vec<String> = list("next")
        .iter()
        .map(|next| next_of(next, as_of))
        .collect();
    if !next.is_empty() {
        text += &labelled(style, "next", &next.join(" · "));
    }
    for change in list("changes") {
        let said = item::text(change, &["text"]).unwrap_or_default();
        let line = match item::text(change, &["command"]) {
            Some(command) => format!("{said}: {}", bound(&command)),
            None => said,
        };
        text += &labelled(style, "or", &line);
    }
    let not: Vec<String> = list("ruled_out")
        .iter()
        .filter_map(|not| item::text(not, &["text"]))
        .collect();
    if !not.is_empty() {
        text += &labelled(style, "not", &not.join(" · "));
    }
    style.words(&text)
}

/// The verdict, and at the end of the line where it is since when, and in which run.
fn head_of(style: &Style, why: &Value, verdict: &str, as_of: Timestamp) -> String {
    let shape = mark_of(why).map_or_else(String::new, |mark| format!("{} ", mark.painted(style)));
    let verdict = style.wrapped(2, &style.words(verdict));
    let used = columns_of(&verdict) + if shape.is_empty() { 0 } else { 2 };
    let head = format!("{shape}{}", style.paint(Colour::Bold, &verdict));
    let place: Vec<String> = [
        state_since(why, as_of),
        // What it is, where neither the sentence nor its run says it.
        item::text(why, &["id"])
            .filter(|id| !verdict.contains(id.as_str()) && why.get("run_id").is_none())
            .map(|id| shown_id(style, &id)),
        run_of(style, why),
    ]
    .into_iter()
    .flatten()
    .collect();
    if place.is_empty() {
        return format!("{head}\n");
    }
    let place = style.words(&place.join(" · "));
    let painted = style.paint(Colour::Dim, &place);
    match style.width {
        None => format!("{head}  {painted}\n"),
        Some(width) if !verdict.contains('\n') && used + APART + columns_of(&place) <= width => {
            let fill = (width
                .min(HEAD_MAX)
                .saturating_sub(used + columns_of(&place)))
            .max(APART);
            format!("{head}{}{painted}\n", " ".repeat(fill))
        }
        Some(_) => format!(
            "{head}\n  {}\n",
            style.paint(Colour::Dim, &style.wrapped(2, &place))
        ),
    }
}

/// Between the verdict and where it is, at least.
const APART: usize = 3;
/// Where the line of the verdict ends at most: further apart the two are not read together.
const HEAD_MAX: usize = 100;

/// `running since 3.8 s`, `failed 4 m ago`.
fn state_since(why: &Value, as_of: Timestamp) -> Option<String> {
    let state = item::text(why, &["state"])?;
    let status = Status::from_word(&state);
    let kind = item::text(why, &["kind"]).unwrap_or_default();
    let call = matches!(kind.as_str(), "execution" | "run");
    // A plane that does not say it: what the execution's own times say.
    let own = || {
        let times: &[&str] = match status? {
            Status::Queued => &["created_at"],
            Status::Running => &["started_at"],
            status if status.is_terminal() => &["ended_at", "completed_at"],
            _ => &[],
        };
        why.get("execution").and_then(|one| item::time(one, times))
    };
    let at = item::time(why, &["since"]).or_else(|| own().filter(|_| call));
    Some(match at.map(|at| item::between(at, as_of).max(0)) {
        Some(ms) if call && status.is_some_and(Status::is_terminal) => {
            format!("{state} {}", span::ago(ms))
        }
        Some(ms) => format!("{state} since {}", span::duration(ms)),
        // A state without an age says no more than the verdict.
        None => return None,
    })
}

/// `run_…P4D1XW plan-trip`.
fn run_of(style: &Style, why: &Value) -> Option<String> {
    let id = item::text(why, &["run_id"])?;
    let id = shown_id(style, &id);
    Some(match item::text(why, &["run_name"]) {
        Some(name) => format!("{id} {name}"),
        None => id,
    })
}

/// The mark of what it is about.
fn mark_of(why: &Value) -> Option<Mark> {
    let state = item::text(why, &["state"])?;
    let reason = item::text(why, &["status_reason"]).unwrap_or_default();
    Some(match item::text(why, &["kind"]).as_deref() {
        Some("agent" | "instance") => agent_mark(&state),
        Some("node") => node_mark(&state, state == "flapping"),
        Some("worker") => worker_mark(&state, false),
        Some("queue" | "duty") => return None,
        _ => execution_mark(&state, &reason),
    })
}

/// Its age, who saw it, and what. What nobody knows has no age and says why.
fn fact_of(fact: &Value, as_of: Timestamp) -> [String; 3] {
    let age = item::time(fact, &["at"]).map_or_else(
        || "—".to_owned(),
        |at| span::duration(item::between(at, as_of)),
    );
    let by = item::text(fact, &["by"]).unwrap_or_else(|| "plane".to_owned());
    let mut said = item::text(fact, &["text"]).unwrap_or_default();
    if fact.get("inferred") == Some(&Value::Bool(true)) {
        said = format!("≈ {said}");
    }
    if let Some(value) = item::text(fact, &["value"]) {
        said += &format!(": {value}");
    }
    if let Some(unknown) = item::text(fact, &["unknown"]) {
        said += &format!(": not known, {unknown}");
    }
    [age, by, said]
}

fn next_of(next: &Value, as_of: Timestamp) -> String {
    let said = item::text(next, &["text"]).unwrap_or_default();
    match item::time(next, &["at"]).map(|at| item::between(as_of, at)) {
        Some(ms) if ms >= 0 => format!("in {}: {said}", span::duration(ms)),
        Some(ms) => format!("due {} ago: {said}", span::age(-ms)),
        None => said,
    }
}

fn labelled(style: &Style, label: &str, said: &str) -> String {
    let padded = format!("{label:5}");
    let said = style.wrapped(7, &style.words(said));
    format!("{}  {said}\n", style.paint(Colour::Dim, &padded))
}
