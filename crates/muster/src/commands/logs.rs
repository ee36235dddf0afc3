//! `muster logs`: the last output of a worker, of one that runs its screen; or what an execution
//! logged.

use std::io::IsTerminal;

use muster_wire::Category;
use serde_json::Value;

use super::envelope::print_one;
use super::executions::shown_id;
use super::list::Listed;
use super::resolve::{self, Noun};
use super::{Asking, item};
use crate::cli::Logs;
use crate::client::encode;
use crate::failure::Outcome;
use crate::out::{self, Colour, Style};

/// Prints it.
pub(super) async fn run(asking: &Asking<'_>, args: &Logs) -> Outcome<u8> {
    if args.id.starts_with("exec_") {
        return of_execution(asking, &args.id).await;
    }
    of_worker(asking, &args.id).await
}

async fn of_worker(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let id = resolve::id(asking, Noun::Worker, typed).await?;
    let path = format!("{}/output", Noun::Worker.path(&id));
    let output = asking.client.get_json(&path).await.map_err(|failure| {
        if failure.hint.is_none() && failure.body.error_category == Category::NodeUnreachable {
            return failure.hint(format!(
                "its output is kept on its machine: see `muster why {id}`, and ask again when it is back"
            ));
        }
        failure
    })?;
    if asking.json {
        print_one("output", &output);
        return Ok(0);
    }
    let text = output.get("text").and_then(Value::as_str);
    // Untrusted text: on a terminal without what would steer it, in a pipe as it is.
    match text.map(str::trim_end).filter(|text| !text.is_empty()) {
        None => out::talk("no output is known"),
        Some(text) if std::io::stdout().is_terminal() => {
            for line in text.lines() {
                out::data(out::clean(line).trim_end());
            }
        }
        Some(text) => out::data(text),
    }
    Ok(0)
}

async fn of_execution(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let id = resolve::id(asking, Noun::Execution, typed).await?;
    let body = asking
        .client
        .get_json(&format!("/api/v1/executions/{}/logs", encode(&id)))
        .await?;
    if asking.json {
        print_one("logs", &body);
        return Ok(0);
    }
    let style = &asking.look.data;
    let lines = Listed::of(body).items;
    if lines.is_empty() {
        out::talk(&format!("{} has logged nothing", shown_id(style, &id)));
    }
    for line in &lines {
        out::data(&line_of(style, line));
    }
    Ok(0)
}

/// `18:00:00.123  warn  message`.
pub(super) fn line_of(style: &Style, line: &Value) -> String {
    let at = item::text(line, &["at", "timestamp", "ts", "time"]).unwrap_or_default();
    let clock = at.get(11..23).unwrap_or(&at).to_owned();
    let level = item::text(line, &["level"]).unwrap_or_default();
    let colour = match level.as_str() {
        "error" | "critical" => Colour::Red,
        "warn" | "warning" => Colour::Yellow,
        _ => Colour::Dim,
    };
    let said = item::text(line, &["message", "text", "line"]).unwrap_or_default();
    style.words(&format!(
        "{}  {}  {said}",
        style.paint(Colour::Dim, &clock),
        style.paint(colour, &format!("{level:5}"))
    ))
}
