//! `muster tail`: the event stream, one line an event. Goes on after the plane was away, from
//! where it was.

use std::time::Duration;

use muster_wire::Category;
use serde_json::Value;

use super::executions::shown_id;
use super::resolve::{self, Noun};
use super::{Asking, item, list};
use crate::cli::Tail;
use crate::client::{StreamEvent, query};
use crate::failure::Outcome;
use crate::out::{self, Colour, Style, execution_mark};

const BACK_OFF_FIRST: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// Follows until Ctrl-C.
pub(super) async fn run(asking: &Asking<'_>, args: &Tail) -> Outcome<u8> {
    let run = match &args.run {
        Some(run) => Some(resolve::id(asking, Noun::Run, run).await?),
        None => None,
    };
    let execution = match &args.execution {
        Some(id) => Some(resolve::id(asking, Noun::Execution, id).await?),
        None => None,
    };
    let mut from = args.from.clone();
    let mut back_off = BACK_OFF_FIRST;
    let mut began = false;
    // One for the whole while: what comes between two waits is not lost.
    let mut left = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let filter = query(&[
            ("agent", args.agent.clone()),
            ("run", run.clone()),
            ("execution", execution.clone()),
            ("cursor", from.clone()),
        ]);
        let following = async {
            let mut events = asking
                .client
                .events(&format!("/api/v1/events{filter}"))
                .await?;
            began = true;
            back_off = BACK_OFF_FIRST;
            loop {
                let event = events.next().await?;
                if event.name.as_deref() == Some("end") {
                    // It stops; the connection ends next.
                    continue;
                }
                show(asking, &event);
                if let Some(id) = event.id {
                    from = Some(id);
                }
            }
            #[allow(unreachable_code)]
            Ok::<(), crate::failure::Failure>(())
        };
        let ended = tokio::select! {
            ended = following => ended,
            _ = &mut left => break,
        };
        if let Err(failure) = ended {
            // A plane that was never there, or does not like the question, is an error.
            if !began || failure.body.error_category.http_status() != 503 {
                let wrong = failure.body.error_category == Category::Validation
                    && failure.body.message.contains("cursor");
                return Err(match wrong {
                    true => failure.hint(
                        "where a cursor comes from: a `muster tail` that is stopped prints its last one, and in the HTTP API it is the id of an event",
                    ),
                    false => failure,
                });
            }
            if asking.json {
                failure
                    .hint("nothing to do: it tries again, and goes on where it was")
                    .print(&asking.look.errors, true);
            } else {
                out::talk(&format!("{}; trying again", failure.body.message));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(back_off) => {}
            _ = &mut left => break,
        }
        back_off = (back_off * 2).min(BACK_OFF_MAX);
    }
    let hint = match from {
        Some(from) => format!("go on from here: muster tail --from {from}"),
        None => "nothing had come; `muster tail` goes on from now".to_owned(),
    };
    if !asking.json {
        out::talk(&hint);
    }
    Ok(list::left(asking, &hint))
}

fn show(asking: &Asking<'_>, event: &StreamEvent) {
    if asking.json {
        out::data(&event.data);
        return;
    }
    match event.name.as_deref() {
        Some("reset") => {
            out::talk("that position is gone by retention; the oldest events follow");
            return;
        }
        Some("gap") => {
            out::talk("slow reader: what was missed follows from the store");
            return;
        }
        _ => {}
    }
    match serde_json::from_str::<Value>(&event.data) {
        Ok(body) => out::data(&line(&asking.look.data, event.name.as_deref(), &body)),
        Err(_) => out::data(&out::clean(&event.data)),
    }
}

/// `18:00:00.123  execution.started  hotel.search  exec_…  why`
pub(super) fn line(style: &Style, name: Option<&str>, event: &Value) -> String {
    let at = item::text(event, &["at", "time", "timestamp"]).unwrap_or_default();
    let clock = at.get(11..23).unwrap_or(&at);
    let kind = item::text(event, &["type", "kind", "event"])
        .or_else(|| name.map(out::clean))
        .unwrap_or_else(|| "?".to_owned());
    let status = item::text(event, &["state", "status"]).unwrap_or_default();
    let reason = item::text(event, &["reason", "status_reason"]).unwrap_or_default();
    let colour = match status.as_str() {
        "" => Colour::Plain,
        status => execution_mark(status, &reason).colour,
    };
    let about = match (
        item::text(event, &["agent", "agent_id"]),
        item::text(event, &["function"]),
    ) {
        (Some(agent), Some(function)) => format!("{agent}.{function}"),
        (Some(agent), None) => agent,
        _ => item::text(event, &["target"]).unwrap_or_default(),
    };
    let id = item::text(
        event,
        &[
            "execution_id",
            "execution",
            "instance",
            "instance_id",
            "run_id",
        ],
    )
    .unwrap_or_default();
    let mut parts = vec![
        style.paint(Colour::Dim, clock),
        style.paint(colour, &format!("{kind:24}")),
        format!("{about:20}"),
        shown_id(style, &id),
    ];
    let category = item::text(event, &["category", "error_category"]);
    let said: Vec<String> = [
        category,
        Some(reason),
        item::text(event, &["text", "message"]),
    ]
    .into_iter()
    .flatten()
    .filter(|text| !text.is_empty())
    .collect();
    if !said.is_empty() {
        parts.push(said.join(": "));
    }
    style.words(parts.join("  ").trim_end())
}
