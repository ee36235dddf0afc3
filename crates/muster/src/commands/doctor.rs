//! `muster doctor`: looks at the plane and at this machine, one line a check, with what to do.
//! Exit code 0 when nothing failed, else that of the first failure; warnings do not fail.

use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};

use super::list::Listed;
use super::{Asking, item};
use crate::failure::Outcome;
use crate::out::{self, Colour, Style, span};

/// Callers, agents and streams each hold a descriptor.
const FILES_LOW: u64 = 4_096;
/// Below this much room a store is about to refuse.
const ROOM_LOW: u64 = 2 << 30;
const SKEW_MS_MAX: i64 = 2_000;
/// A store that is full sooner is worth a warning.
const DAYS_LOW: f64 = 7.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    Warn,
    /// With the exit code of what failed.
    Failed(u8),
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    seen: String,
    hint: Option<String>,
}

fn check(name: &'static str, verdict: Verdict, seen: impl Into<String>) -> Check {
    Check {
        name,
        verdict,
        seen: seen.into(),
        hint: None,
    }
}

impl Check {
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Checks everything that can be looked at.
pub(super) async fn run(asking: &Asking<'_>) -> Outcome<u8> {
    let checks = look(asking).await;
    let code = exit_code(&checks);
    if asking.json {
        let items: Vec<Value> = checks.iter().map(as_json).collect();
        let all = json!({
            "kind": "checks",
            "as_of": Timestamp::wall_clock().rfc3339(),
            "position": null,
            "position_unknown": "several answers, one after the other",
            "items": items,
            "next_cursor": null,
        });
        out::data(&all.to_string());
    } else {
        for check in &checks {
            out::data_raw(&text_of(&asking.look.data, check));
        }
    }
    Ok(code)
}

fn exit_code(checks: &[Check]) -> u8 {
    checks
        .iter()
        .find_map(|check| match check.verdict {
            Verdict::Failed(code) => Some(code),
            _ => None,
        })
        .unwrap_or(0)
}

async fn look(asking: &Asking<'_>) -> Vec<Check> {
    let address = asking.client.address();
    let before = Timestamp::wall_clock();
    let answer = match asking.client.get("/healthz").await {
        Ok(answer) => answer,
        Err(failure) => {
            let code = failure.exit_code();
            let mut seen = failure.body.message;
            for line in failure.evidence {
                seen += &format!("; {line}");
            }
            let mut found = check("plane", Verdict::Failed(code), seen);
            found.hint = failure.hint;
            return vec![found];
        }
    };
    let mut checks = vec![check(
        "plane",
        Verdict::Fine,
        format!("answers at {address}"),
    )];
    checks.extend(clock(answer.date.as_deref(), before));
    checks.push(match asking.client.get("/readyz").await {
        Ok(_) => check("ready", Verdict::Fine, "takes new work"),
        Err(failure) => check(
            "ready",
            Verdict::Failed(failure.exit_code()),
            failure.body.message,
        )
        .hint("it starts, stops, or its store is stuck: see its log"),
    });
    match asking.client.get_json("/api/v1/system").await {
        Ok(system) => {
            checks.push(version(&system));
            checks.push(room(&system));
            checks.push(files(&system));
        }
        Err(failure) if failure.body.error_category == Category::Unauthenticated => checks.push(
            check(
                "key",
                Verdict::Failed(failure.exit_code()),
                failure.body.message,
            )
            .hint(failure.hint.unwrap_or_default()),
        ),
        Err(failure) => checks.push(
            check("system", Verdict::Unknown, failure.body.message)
                .hint("a key with the scope read is needed beyond loopback: MUSTER_API_KEY"),
        ),
    }
    if let Ok(health) = asking.client.get_json("/api/v1/health").await {
        checks.extend(problems(&health));
    }
    if let Ok(hold) = asking.client.get_json("/api/v1/hold").await
        && hold.get("held").and_then(Value::as_bool) == Some(true)
    {
        let reason = item::text(&hold, &["reason"]).unwrap_or_default();
        checks.push(
            check(
                "hold",
                Verdict::Warn,
                format!("nothing is dispatched: {reason}"),
            )
            .hint("lift it: muster unhold"),
        );
    }
    if let Ok(body) = asking.client.get_json("/api/v1/nodes").await {
        checks.extend(agents(&Listed::of(body)));
    }
    checks
}

fn clock(date: Option<&str>, here: Timestamp) -> Option<Check> {
    let there = jiff::fmt::rfc2822::parse(date?).ok()?;
    let skew = there.timestamp().as_microsecond() / 1_000 - here.0 / 1_000;
    // The header has whole seconds.
    let off = skew.abs() > SKEW_MS_MAX;
    let seen = match off {
        false => "agrees with this machine's".to_owned(),
        true if skew > 0 => format!("{} ahead of this machine's", span::age(skew)),
        true => format!("{} behind this machine's", span::age(-skew)),
    };
    let found = check(
        "clock",
        if off { Verdict::Warn } else { Verdict::Fine },
        seen,
    );
    Some(match off {
        true => {
            found.hint("set both clocks by NTP; ages on this machine are counted by the plane's")
        }
        false => found,
    })
}

fn version(system: &Value) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    match item::text(system, &["version"]) {
        Some(theirs) if theirs == ours => check("version", Verdict::Fine, ours),
        Some(theirs) => check(
            "version",
            Verdict::Warn,
            format!("plane {theirs}, this command {ours}"),
        )
        .hint("use the same on both sides"),
        None => check("version", Verdict::Unknown, "the plane does not say"),
    }
}

fn room(system: &Value) -> Check {
    let store = system.get("store").unwrap_or(system);
    let free = item::number(store, &["free_bytes", "free", "disk_free_bytes"]);
    let reserve = item::number(store, &["reserve_bytes"]).unwrap_or(0);
    let days = store.get("days_until_full").and_then(Value::as_f64);
    let seen = |free| {
        let mut seen = match store.get("bytes").and_then(Value::as_object) {
            Some(kinds) => {
                let sizes = kinds.iter().filter_map(|(kind, bytes)| {
                    Some(format!("{kind} {}", span::bytes(bytes.as_u64()?)))
                });
                format!("{}; ", sizes.collect::<Vec<_>>().join(", "))
            }
            None => String::new(),
        };
        seen += &format!("{} free", span::bytes(free));
        if let Some(growth) = store.get("growth_bytes_per_day").and_then(Value::as_u64) {
            seen += &format!("; grows {} a day", span::bytes(growth));
        }
        if let Some(days) = days {
            seen += &format!("; full in {days:.0} d");
        }
        seen
    };
    match free {
        Some(free)
            if free < ROOM_LOW.min(reserve.saturating_mul(2))
                || (reserve == 0 && free < ROOM_LOW) =>
        {
            check("store", Verdict::Warn, seen(free))
                .hint("below store.min_free new work is refused")
        }
        Some(free) if days.is_some_and(|days| days < DAYS_LOW) => {
            check("store", Verdict::Warn, seen(free))
                .hint("keep less: retention.executions, retention.payloads or retention.max_store")
        }
        Some(free) => check("store", Verdict::Fine, seen(free)),
        None => check(
            "store",
            Verdict::Unknown,
            "the plane does not say how much room it has",
        ),
    }
}

fn files(system: &Value) -> Check {
    let of = system.get("process").unwrap_or(system);
    match item::number(of, &["max_fds"]) {
        Some(limit) if limit < FILES_LOW => {
            check("files", Verdict::Warn, format!("at most {limit} open"))
                .hint("raise it: ulimit -n, or LimitNOFILE= in the unit")
        }
        Some(limit) => check(
            "files",
            Verdict::Fine,
            format!("at most {} open", span::number(limit)),
        ),
        // The field is absent where there is no limit; without any of them nothing is known.
        None if of.get("open_fds").is_some() => check("files", Verdict::Fine, "no limit"),
        None => check("files", Verdict::Unknown, "the plane does not say"),
    }
}

/// What the plane itself says is not as it should be: late duties, a full store, a hold.
fn problems(health: &Value) -> Vec<Check> {
    let Some(problems) = health.get("problems").and_then(Value::as_array) else {
        return Vec::new();
    };
    problems
        .iter()
        .filter_map(Value::as_str)
        .map(|problem| check("health", Verdict::Warn, problem))
        .collect()
}

fn agents(listed: &Listed) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut well = 0;
    for agent in &listed.items {
        let state = item::text(agent, &["state", "health_status"]).unwrap_or_default();
        let id = item::id(agent);
        let evidence = item::text(agent, &["evidence", "why"]).unwrap_or_default();
        let hint = match state.as_str() {
            "unreachable_callback" => {
                "it beats, but cannot be dialled: start it with AGENT_CALLBACK_URL=http://ADDRESS:PORT that this plane can reach"
            }
            "down" | "gone" => "start it again, for example with `muster dev -- python agent.py`",
            "unknown" => "it has registered and never beat: is it still there?",
            "degraded" => "its beats are late: busy, or gone",
            _ => {
                well += 1;
                continue;
            }
        };
        checks.push(
            check(
                "agent",
                Verdict::Warn,
                format!("{id} is {state}; {evidence}"),
            )
            .hint(hint),
        );
    }
    checks.push(match (listed.items.len(), well) {
        (0, _) => check("agents", Verdict::Fine, "none has registered"),
        (all, well) => check("agents", Verdict::Fine, format!("{well} of {all} are well")),
    });
    checks
}

fn text_of(style: &Style, check: &Check) -> String {
    let (shape, word, colour) = match check.verdict {
        Verdict::Fine => ("✓", "ok", Colour::Green),
        Verdict::Warn => ("⚠", "warn", Colour::Yellow),
        Verdict::Failed(_) => ("✕", "fail", Colour::Red),
        Verdict::Unknown => ("?", "?", Colour::Dim),
    };
    let mark = style.paint(colour, if style.unicode { shape } else { word });
    let seen = style.words(&out::clean(check.seen.trim_end_matches("; ")));
    let mark_width = if style.unicode { 1 } else { word.len() };
    let indent = mark_width + 1 + NAME_WIDTH + 1;
    let mut text = format!(
        "{mark} {:NAME_WIDTH$} {}\n",
        check.name,
        style.wrapped(indent, &seen)
    );
    if let Some(hint) = &check.hint {
        let label = style.paint(Colour::Bold, "hint:");
        text += &format!("  {label} {}\n", style.wrapped(8, &style.words(hint)));
    }
    text
}

const NAME_WIDTH: usize = 8;

/// What is said of fixed answers.
#[cfg(test)]
pub(super) fn drawn(style: &Style, body: &Value) -> String {
    let system = &body["system"];
    let mut checks = vec![
        check("plane", Verdict::Fine, "answers at http://127.0.0.1:8080"),
        version(system),
        room(system),
        files(system),
        check("ready", Verdict::Failed(75), "the plane shuts down")
            .hint("it starts, stops, or its store is stuck: see its log"),
    ];
    checks.extend(problems(&body["health"]));
    checks.extend(agents(&Listed::of(body["agents"].clone())));
    checks.iter().map(|check| text_of(style, check)).collect()
}

fn as_json(check: &Check) -> Value {
    let word = match check.verdict {
        Verdict::Fine => "ok",
        Verdict::Warn => "warn",
        Verdict::Failed(_) => "fail",
        Verdict::Unknown => "unknown",
    };
    json!({"check": check.name, "state": word, "seen": check.seen, "hint": check.hint})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plane_does_not_say_is_unknown_and_not_fine() {
        for found in [version(&json!({})), room(&json!({})), files(&json!({}))] {
            assert_eq!(found.verdict, Verdict::Unknown, "{found:?}");
        }
    }

    #[test]
    fn an_agent_that_cannot_be_dialled_gets_the_hint_that_mends_it() {
        let body = json!({"items": [
            {"id": "a", "state": "active"},
            {"id": "b", "state": "unreachable_callback", "evidence": "dial 172.17.0.2:8001 refused"},
        ]});
        let checks = agents(&Listed::of(body));
        assert!(
            checks[0]
                .hint
                .as_deref()
                .unwrap()
                .contains("AGENT_CALLBACK_URL")
        );
        assert_eq!(checks[1].seen, "1 of 2 are well");
    }

    #[test]
    fn clocks_apart_are_said_to_be() {
        let here = Timestamp::parse("2026-11-29T18:00:00Z").unwrap();
        let apart = clock(Some("Sun, 29 Nov 2026 18:05:00 GMT"), here).unwrap();
        assert_eq!(apart.verdict, Verdict::Warn);
        assert_eq!(apart.seen, "5 m ahead of this machine's");
        let together = clock(Some("Sun, 29 Nov 2026 18:00:01 GMT"), here).unwrap();
        assert_eq!(together.verdict, Verdict::Fine);
    }
}
