//! `muster fleet`: the fleet in numbers, and what of it nobody knows.

use muster_wire::Timestamp;
use serde_json::{Value, json};

use super::envelope::print_one;
use super::{Asking, consequence, item};
use crate::cli::{Fleet, FleetCommand};
use crate::failure::Outcome;
use crate::out::{self, Colour, Mark, Style, node_mark, span, worker_mark};

/// Shows it, or ends the doubt.
pub(super) async fn run(asking: &Asking<'_>, args: &Fleet) -> Outcome<u8> {
    match &args.command {
        Some(FleetCommand::EndDoubt { yes }) => end_doubt(asking, *yes).await,
        None => {
            let fleet = asking.client.get_json("/api/v1/fleet").await?;
            if asking.json {
                print_one("fleet", &fleet);
            } else {
                let now = item::time(&fleet, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
                out::data_raw(&text_of(&asking.look.data, &fleet, now));
            }
            Ok(0)
        }
    }
}

async fn end_doubt(asking: &Asking<'_>, yes: bool) -> Outcome<u8> {
    let comes_to = "what the plane believes of machines that are silent is acted on again: workers of those declared lost are lost";
    if !yes && !consequence::ask(vec![comes_to.to_owned()], "Go on?")? {
        return Ok(0);
    }
    let ended = asking
        .client
        .post("/api/v1/fleet/doubt/end", &json!({}))
        .await
        .map_err(|failure| failure.hint("`muster fleet` says whether the plane doubts itself"))?;
    if asking.json {
        print_one("doubt", &ended.json().unwrap_or(Value::Null));
    } else {
        out::data("the doubt is ended");
    }
    Ok(0)
}

/// The summary for people: alarms first.
pub(super) fn text_of(style: &Style, fleet: &Value, now: Timestamp) -> String {
    let mut text = String::new();
    let alarms = fleet.get("alarms").and_then(Value::as_array);
    for alarm in alarms.into_iter().flatten() {
        let what = item::text(alarm, &["kind"]).unwrap_or_default();
        let said = item::text(alarm, &["text"]).unwrap_or_default();
        let since = item::time(alarm, &["since"])
            .map(|at| format!(" for {}", span::age(item::between(at, now))))
            .unwrap_or_default();
        let alarm = format!(
            "{} {}{since}  {said}",
            Mark::WARN.painted(style),
            style.paint(Mark::WARN.colour, &what)
        );
        text += &format!("  {}\n", style.wrapped(4, &style.words(&alarm)));
    }
    let counts = |name: &str, mark: fn(&str) -> Mark| -> String {
        let counts = fleet.get(name).and_then(Value::as_object);
        let all: Vec<String> = counts
            .into_iter()
            .flatten()
            .filter_map(|(state, n)| Some((state, n.as_u64()?)))
            .filter(|(_, n)| *n > 0)
            .map(|(state, n)| {
                let mark = mark(state);
                let state = out::clean(state);
                style.paint(
                    mark.colour,
                    &format!("{} {} {state}", span::number(n), mark.text(style)),
                )
            })
            .collect();
        match all.is_empty() {
            true => "none".to_owned(),
            false => all.join("  "),
        }
    };
    let mut line = |label: &str, value: String| {
        let label = style.paint(Colour::Dim, &format!("{label:8}"));
        text += &format!("{label}  {}\n", style.wrapped(10, &style.words(&value)));
    };
    line("nodes", counts("nodes", |state| node_mark(state, false)));
    line(
        "workers",
        counts("workers", |state| worker_mark(state, true)),
    );
    line("places", places(fleet));
    let waiting = item::number(fleet, &["queued"]).unwrap_or(0);
    if waiting > 0 {
        line(
            "queue",
            format!("{} wait for a place", span::number(waiting)),
        );
    }
    style.words(&text)
}

/// `11 of 16 used, 8 unknown, 67 % reachable`.
fn places(fleet: &Value) -> String {
    let of = fleet.get("capacity").unwrap_or(&Value::Null);
    let used = item::number(of, &["used"]).map_or_else(|| "?".to_owned(), span::number);
    let why = |name: &str| item::text(of, &[name]);
    let mut text = match (
        item::number(of, &["reachable"]),
        why("reachable_reason").filter(|_| of.get("reachable").is_some()),
    ) {
        (Some(all), _) => format!("{used} of {} used", span::number(all)),
        (None, Some(why)) => format!("{used} of ? used: {why}"),
        (None, None) => format!("{used} used, no cap"),
    };
    match (item::number(of, &["unknown"]), why("unknown_reason")) {
        (Some(unknown @ 1..), _) => text += &format!(", {} unknown", span::number(unknown)),
        (None, Some(why)) => text += &format!(", ? unknown: {why}"),
        _ => {}
    }
    if let Some(share) = of.get("reachable_share").and_then(Value::as_f64) {
        text += &format!(", {:.0} % reachable", share * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_nobody_knows_are_a_question_mark_with_the_reason() {
        let shown = |capacity: Value| places(&json!({"capacity": capacity}));
        assert_eq!(
            shown(json!({"reachable": 16, "used": 11, "unknown": 8, "reachable_share": 0.67})),
            "11 of 16 used, 8 unknown, 67 % reachable"
        );
        let why = "no node is online yet, 52 connect";
        assert_eq!(
            shown(
                json!({"reachable": null, "reachable_reason": why, "used": null,
                   "used_reason": why, "unknown": 0, "reachable_share": null})
            ),
            "? of ? used: no node is online yet, 52 connect"
        );
        assert_eq!(
            shown(json!({"reachable": 4, "used": 1, "unknown": null,
                   "unknown_reason": "1 node has no bound"})),
            "1 of 4 used, ? unknown: 1 node has no bound"
        );
    }
}
