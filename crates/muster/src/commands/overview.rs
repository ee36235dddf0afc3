//! `muster overview`: the plane at a glance: what needs somebody, what is held up, whether work
//! ends as fast as it starts, what failed, who is there. Each number has the command that lists
//! exactly those.

use std::time::Duration;

use muster_wire::Timestamp;
use serde_json::Value;

use super::envelope::print_one;
use super::{Asking, item, list};
use crate::cli::Overview;
use crate::failure::Outcome;
use crate::out::{
    self, Colour, Mark, Style, agent_mark, execution_mark, node_mark, span, worker_mark,
};

const PATH: &str = "/api/v1/overview";
/// Changes come in bursts.
const SETTLE: Duration = Duration::from_secs(1);
/// Ages tick though nothing changes.
const TICK: Duration = Duration::from_secs(2);

/// Shows it, once or again and again.
pub(super) async fn run(asking: &Asking<'_>, args: &Overview) -> Outcome<u8> {
    if !args.plain.watch {
        print(asking, &asking.client.get_json(PATH).await?);
        return Ok(0);
    }
    list::until_left(asking, again_and_again(asking)).await
}

async fn again_and_again(asking: &Asking<'_>) -> Outcome<u8> {
    let mut events = asking
        .client
        .events("/api/v1/events?topics=summary")
        .await?;
    let style = &asking.look.data;
    let mut painted = 0;
    loop {
        let body = asking.client.get_json(PATH).await?;
        match asking.json || !style.redraws {
            true => print(asking, &body),
            false => painted = list::repaint(&text_of(style, &body), painted),
        }
        tokio::select! {
            event = events.next() => {
                event?;
                tokio::time::sleep(SETTLE).await;
            }
            () = tokio::time::sleep(TICK), if style.redraws => {}
        }
    }
}

fn print(asking: &Asking<'_>, body: &Value) {
    match asking.json {
        true => print_one("overview", body),
        false => out::data_raw(&text_of(&asking.look.data, body)),
    }
}

/// It for people.
pub(super) fn text_of(style: &Style, body: &Value) -> String {
    let now = item::time(body, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let mut text = String::new();
    needs(style, body, now, &mut text);
    held(style, &body["held"], now, &mut text);
    flow(style, body, &mut text);
    failed(style, &body["failed"], now, &mut text);
    who(style, body, now, &mut text);
    style.words(&text)
}

/// A line with its label; what does not fit goes on below.
fn line(style: &Style, name: &str, said: &str) -> String {
    let label = style.paint(Colour::Dim, &format!("{name:9}"));
    format!("{label}  {}\n", style.wrapped(11, &style.words(said)))
}

fn array<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn needs(style: &Style, body: &Value, now: Timestamp, text: &mut String) {
    let all = array(body, "needs");
    let total = item::number(body, &["needs_total"]).unwrap_or(all.len() as u64);
    if total == 0 {
        *text += &line(style, "needs you", "nothing");
        return;
    }
    *text += &line(style, "needs you", &span::number(total));
    let shown: Vec<[String; 3]> = all
        .iter()
        .map(|need| {
            let when = match (item::time(need, &["until"]), item::time(need, &["since"])) {
                (Some(until), _) if until > now => {
                    format!("{} left", span::age(item::between(now, until)))
                }
                (_, Some(since)) => span::age(item::between(since, now)),
                _ => String::new(),
            };
            let said = item::text(need, &["text"]).unwrap_or_default();
            [
                item::text(need, &["kind"])
                    .unwrap_or_default()
                    .replace('_', " "),
                said,
                when,
            ]
        })
        .collect();
    let marks: Vec<Mark> = all.iter().map(need_mark).collect();
    lines(style, &marks, &shown, text);
    if total > all.len() as u64 {
        *text += &format!(
            "  {} {} more\n",
            style.ellipsis(),
            span::number(total - all.len() as u64)
        );
    }
}

fn need_mark(need: &Value) -> Mark {
    let state = item::text(need, &["state"]).unwrap_or_default();
    match item::text(need, &["kind"]).as_deref() {
        Some("approval") => execution_mark("waiting", ""),
        Some("agent") => agent_mark(&state),
        Some("node") => node_mark(&state, state == "flapping"),
        Some("hold") => agent_mark("held"),
        _ => Mark::WARN,
    }
}

/// Lines of a mark and three texts, the middle of which is cut.
fn lines(style: &Style, marks: &[Mark], rows: &[[String; 3]], text: &mut String) {
    let widest = |at: usize| {
        rows.iter()
            .map(|row| out::style::columns_of(&style.words(&row[at])))
            .max()
            .unwrap_or(0)
    };
    let mark_width = marks
        .iter()
        .map(|mark| out::style::columns_of(mark.text(style)))
        .max()
        .unwrap_or(0);
    let (first, last) = (widest(0), widest(2));
    let room = style.width.map(|width| {
        width
            .saturating_sub(2 + mark_width + 1 + first + 2 + 2 + last)
            .max(20)
    });
    let middle = room.map_or(widest(1), |room| room.min(widest(1)));
    for (mark, [kind, said, when]) in marks.iter().zip(rows) {
        let said = style.cut(&style.words(said), middle);
        let fill = middle.saturating_sub(out::style::columns_of(&said));
        let gap = mark_width.saturating_sub(out::style::columns_of(mark.text(style)));
        let line = format!(
            "  {}{} {kind:first$}  {said}{}  {when}",
            mark.painted(style),
            " ".repeat(gap),
            " ".repeat(fill),
        );
        *text += line.trim_end();
        text.push('\n');
    }
}

fn held(style: &Style, held: &Value, now: Timestamp, text: &mut String) {
    let total = item::number(held, &["total"]).unwrap_or(0);
    let shown = match total {
        0 => "nothing".to_owned(),
        total => span::number(total),
    };
    *text += &line(style, "held up", &shown);
    for cause in array(held, "causes") {
        let state = item::text(cause, &["state"]).unwrap_or_default();
        let reason = match item::text(cause, &["cause"]).as_deref() {
            Some("agent_restart") => "awaiting_agent_restart",
            _ => "",
        };
        let oldest = item::time(cause, &["oldest_at"])
            .map(|at| format!(", oldest {}", span::age(item::between(at, now))))
            .unwrap_or_default();
        *text += &format!(
            "  {} {}  {}{oldest}\n",
            execution_mark(&state, reason).painted(style),
            span::number(item::number(cause, &["count"]).unwrap_or(0)),
            item::text(cause, &["text"]).unwrap_or_default(),
        );
        if let Some(query) = item::raw(cause, &["query"]) {
            *text += &style.paint(Colour::Dim, &format!("      {}", command(&query)));
            text.push('\n');
        }
    }
}

/// The command that lists what a query string lists.
pub(super) fn command(query: &str) -> String {
    let mut command = "muster executions".to_owned();
    for pair in query.trim_start_matches('?').split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let flag = match key {
            "status" | "state" => "--state",
            "agent" => "--agent",
            "function" => "--fn",
            "reason" => "--reason",
            "category" | "error_category" => "--category",
            "since" => "--since",
            "until" => "--until",
            "run_id" => "--run",
            "q" => "--text",
            _ => continue,
        };
        let value = decoded(value);
        let is_plain = value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.,:".contains(c));
        command += &match is_plain {
            true => format!(" {flag} {value}"),
            false => format!(" {flag} '{}'", out::clean(&value).replace('\'', "'\\''")),
        };
    }
    command
}

fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let pair: String = bytes.by_ref().take(2).map(char::from).collect();
                out.push(u8::from_str_radix(&pair, 16).unwrap_or(b'?'));
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn flow(style: &Style, body: &Value, text: &mut String) {
    let flow = &body["flow"];
    let rate = |name: &str| match flow.get(name).and_then(Value::as_f64) {
        Some(rate) if rate >= 10.0 => format!("{rate:.0}/min"),
        Some(rate) => format!("{rate:.1}/min"),
        None => "?".to_owned(),
    };
    let count =
        |name: &str| item::number(body, &[name]).map_or_else(|| "?".to_owned(), span::number);
    let oldest = item::number(flow, &["oldest_wait_ms"])
        .map(|ms| {
            format!(
                ", the oldest waits {}",
                span::age(i64::try_from(ms).unwrap_or(i64::MAX))
            )
        })
        .unwrap_or_default();
    let rates = format!(
        "{} started, {} ended",
        rate("started_per_min"),
        rate("ended_per_min")
    );
    *text += &line(style, "flow", &rates);
    let open = format!(
        "{} running, {} waiting, {} queued, {} paused{oldest}",
        count("running"),
        count("waiting"),
        count("queued"),
        count("paused"),
    );
    *text += &line(style, "open", &open);
}

fn failed(style: &Style, failed: &Value, now: Timestamp, text: &mut String) {
    let total = item::number(failed, &["total"]).unwrap_or(0);
    let over = item::time(failed, &["from"])
        .map(|from| format!(" in {}", span::age(item::between(from, now))))
        .unwrap_or_default();
    let before = |of: &Value| match item::number(of, &["before"]) {
        Some(before) => format!(" ({} before)", span::number(before)),
        None => String::new(),
    };
    let shown = format!("{}{over}{}", span::number(total), before(failed));
    let colour = if total > 0 {
        Colour::Red
    } else {
        Colour::Plain
    };
    *text += &line(style, "failed", &style.paint(colour, &shown));
    for group in array(failed, "categories") {
        *text += &format!(
            "  {} {}  {}{}\n",
            execution_mark("failed", "").painted(style),
            span::number(item::number(group, &["count"]).unwrap_or(0)),
            item::text(group, &["category"]).unwrap_or_default(),
            before(group),
        );
        if let Some(query) = item::raw(group, &["query"]) {
            *text += &style.paint(Colour::Dim, &format!("      {}", command(&query)));
            text.push('\n');
        }
    }
}

fn who(style: &Style, body: &Value, now: Timestamp, text: &mut String) {
    let states = |of: &Value, mark: fn(&str) -> Mark| -> String {
        let all: Vec<String> = of
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(state, n)| Some((state, n.as_u64().filter(|n| *n > 0)?)))
            .map(|(state, n)| {
                let mark = mark(state);
                let said = format!(
                    "{} {} {}",
                    span::number(n),
                    mark.text(style),
                    out::clean(state)
                );
                style.paint(mark.colour, &said)
            })
            .collect();
        match all.is_empty() {
            true => "none".to_owned(),
            false => all.join("  "),
        }
    };
    let agents = states(&body["agents"]["states"], agent_mark);
    let nodes = states(&body["nodes"]["states"], |state| node_mark(state, false));
    let workers = states(&body["workers"], |state| worker_mark(state, true));
    *text += &line(style, "agents", &agents);
    *text += &line(style, "nodes", &nodes);
    *text += &line(style, "workers", &workers);
    if let Some(slots) = slots(&body["slots"], now) {
        *text += &line(style, "slots", &slots);
    }
}

/// `5 free of 16 reachable, 8 unknown for 2 h 21 m`; without machines, nothing.
fn slots(slots: &Value, now: Timestamp) -> Option<String> {
    let told = |name: &str| match item::number(slots, &[name]) {
        Some(n) => (span::number(n), None),
        None => (
            "?".to_owned(),
            item::text(slots, &[&format!("{name}_unknown")]),
        ),
    };
    let total = item::number(slots, &["total"]);
    if total == Some(0) {
        return None;
    }
    let ((free, why), (reachable, _)) = (told("free"), told("reachable"));
    let mut text = format!("{free} free of {reachable} reachable");
    match item::number(slots, &["unknown"]) {
        Some(0) => {}
        Some(unknown) => {
            text += &format!(", {} unknown", span::number(unknown));
            if let Some(since) = item::time(slots, &["unknown_since"]) {
                text += &format!(" for {}", span::age(item::between(since, now)));
            }
        }
        None => text += ", ? unknown",
    }
    if let Some(why) = why {
        text += &format!(": {why}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_command_that_lists_exactly_those() {
        assert_eq!(
            command("status=queued&agent=a,b"),
            "muster executions --state queued --agent a,b"
        );
        assert_eq!(
            command(
                "status=failed,timeout&category=agent_error&since=2026-11-29T18%3A00%3A00.000Z"
            ),
            "muster executions --state failed,timeout --category agent_error --since 2026-11-29T18:00:00.000Z"
        );
        assert_eq!(
            command("reason=a%20b%27"),
            "muster executions --reason 'a b'\\'''"
        );
    }
}
