//! `muster logs`: the last output of a worker as it was written, or what an execution logged.

use std::io::IsTerminal;

use serde_json::Value;

use super::executions::shown_id;
use super::list::{Listed, print_one};
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
    let answer = asking.client.get(&path).await?;
    if asking.json {
        let text = String::from_utf8_lossy(&answer.body);
        print_one("output", &serde_json::json!({"id": id, "output": text}));
        return Ok(0);
    }
    // Untrusted bytes: on a terminal without what would steer it, in a pipe as they are.
    if std::io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(&answer.body);
        for line in text.lines() {
            out::data(out::clean(line).trim_end());
        }
    } else {
        out::data_bytes(&answer.body);
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
fn line_of(style: &Style, line: &Value) -> String {
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
