//! `muster call`: submits, waits with the tree in sight, and hands over the result. It goes in
//! by the async lane, so that leaving the wait never leaves the work.

use std::io::Read;
use std::time::Duration;

use http::Method;
use muster_server::config::Span;
use muster_wire::{Category, ErrorBody};
use serde_json::Value;
use serde_json::value::RawValue;

use super::progress::{Fields, TREE_STEPS_MAX, Waited, Waiting, steps};
use super::{Asking, item};
use crate::cli::Call;
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::{self, Colour, execution_mark, id, payload, span, tree};

/// What is done with something that was accepted.
pub(super) struct Follow<'a> {
    /// What was called.
    pub(super) target: &'a str,
    /// Prints the ids at once and does not wait.
    pub(super) asynchronous: bool,
    /// How long to wait at most.
    pub(super) bound: Option<Duration>,
    /// The result and nothing else.
    pub(super) quiet: bool,
}

/// How long `--wait` means.
pub(super) fn bound(wait: Option<&Option<String>>) -> Outcome<Option<Duration>> {
    let Some(Some(text)) = wait else {
        return Ok(None);
    };
    match Span::parse(text) {
        Ok(span) => Ok(Some(span.0)),
        Err(error) => Err(Failure::new(
            Category::Validation,
            format!("--wait: {error}"),
        )),
    }
}

/// Calls, and waits unless told not to.
pub(super) async fn run(asking: &Asking<'_>, args: &Call) -> Outcome<u8> {
    let bound = bound(args.wait.as_ref())?;
    let body = body_of(&read_input(&args.input)?, args.priority)?;
    let headers: Vec<(&str, &str)> = args
        .key
        .iter()
        .map(|key| ("idempotency-key", key.as_str()))
        .collect();
    let path = format!("/api/v1/execute/async/{}", encode(&args.target));
    let answer = asking
        .client
        .send(Method::POST, &path, Some(body.into()), &headers)
        .await
        .map_err(|failure| with_hint(failure, &args.target))?;
    let follow = Follow {
        target: &args.target,
        asynchronous: args.asynchronous,
        bound,
        quiet: args.quiet,
    };
    follow.on(asking, &answer.json()?).await
}

impl Follow<'_> {
    /// Says what was accepted, or waits for its end.
    pub(super) async fn on(&self, asking: &Asking<'_>, accepted: &Value) -> Outcome<u8> {
        let ids = (
            item::raw(accepted, &["execution_id", "id"]),
            item::raw(accepted, &["run_id", "workflow_id"]),
        );
        let (Some(execution), Some(run)) = ids else {
            return Err(Failure::new(
                Category::BadResponse,
                "the plane took the call and named no execution",
            ));
        };
        if self.asynchronous {
            return Ok(say_accepted(asking, self, accepted, &execution, &run));
        }
        let waiting = Waiting {
            asking,
            execution: &execution,
            run: &run,
            quiet: self.quiet,
        };
        match waiting.wait(self.bound).await? {
            Waited::Ended(fields) => ended(asking, self, &fields, &execution, &run).await,
            Waited::TimeUp => Err(still_running(&execution, self.bound.unwrap_or_default())),
            Waited::Left => {
                let next = format!(
                    "muster why {execution} · muster executions show {execution} · muster cancel {execution}"
                );
                if asking.json {
                    let mut body = ErrorBody::new(
                        Category::StillRunning,
                        format!("{} was left with Ctrl-C; it goes on", self.target),
                    );
                    body.execution_id = Some(execution.clone());
                    let left = Failure::from(body).seen(format!("run {run}")).hint(next);
                    left.print(&asking.look.errors, true);
                } else {
                    out::talk(&format!("it goes on: {next}"));
                }
                Ok(Category::Cancelled.exit_code())
            }
        }
    }
}

fn say_accepted(
    asking: &Asking<'_>,
    args: &Follow<'_>,
    accepted: &Value,
    execution: &str,
    run: &str,
) -> u8 {
    if asking.json {
        super::envelope::print_one("execution", accepted);
        return 0;
    }
    out::data(execution);
    if !args.quiet {
        let position = item::number(accepted, &["queue_position"])
            .map(|n| format!(", {} ahead of it", span::number(n)))
            .unwrap_or_default();
        let status = item::text(accepted, &["status"]).unwrap_or_default();
        out::talk(&format!("{} {status}{position}, run {run}", args.target));
        out::talk(&format!("see it: muster runs show {run}"));
    }
    0
}

async fn ended(
    asking: &Asking<'_>,
    args: &Follow<'_>,
    fields: &Fields,
    execution: &str,
    run: &str,
) -> Outcome<u8> {
    let state = fields.state();
    let took = fields.number("duration_ms").map_or_else(
        || "—".to_owned(),
        |ms| span::duration(i64::try_from(ms).unwrap_or(i64::MAX)),
    );
    if state != "succeeded" {
        return Err(failed(fields, args.target, execution, run));
    }
    let result = fields.json("result").unwrap_or("null");
    let style = &asking.look.errors;
    if !args.quiet && !asking.json {
        let mut said = format!("{} {state} {took}", args.target);
        if let Ok((steps, _)) = steps(asking, run, TREE_STEPS_MAX).await
            && steps.len() > 1
        {
            said += &format!(", {}", tree::counts(&steps));
        }
        let mark = execution_mark(&state, "");
        let short = style.paint(Colour::Dim, &id::short(run, style.ellipsis()));
        out::talk(&style.words(&format!("{} {said}  {short}", mark.painted(style))));
    }
    if asking.json {
        let mut raw: Vec<_> = fields.raw();
        // The plane says nothing of a result that is null.
        if !raw.iter().any(|(name, _)| name == "result") {
            raw.push(("result".to_owned(), RawValue::NULL.to_owned()));
        }
        out::data(&super::envelope::execution(&raw));
    } else if asking.look.data.redraws {
        out::data(&payload::pretty(result));
    } else {
        out::data(result);
    }
    Ok(0)
}

/// The failure of an execution that ended otherwise than well.
fn failed(fields: &Fields, target: &str, execution: &str, run: &str) -> Failure {
    let state = fields.state();
    let category = match (fields.text("error_category"), state.as_str()) {
        (Some(word), _) => Category::from(word.as_str()),
        (None, "cancelled") => Category::Cancelled,
        (None, "timeout") => Category::AgentTimeout,
        (None, _) => Category::AgentError,
    };
    let said = fields
        .text("error_message")
        .or_else(|| fields.text("error"))
        .or_else(|| fields.text("status_reason"))
        .unwrap_or_else(|| format!("it ended as {state} without a word"));
    let mut body = ErrorBody::new(category, format!("{target} {state}: {said}"));
    body.execution_id = Some(execution.to_owned());
    let mut failure = Failure::from(body).seen(format!("run {run}"));
    if let Some(details) = fields.json("error_details") {
        failure = failure.seen(format!("details {}", cut(details)));
    }
    failure.hint(format!("`muster why {execution}` has the evidence"))
}

/// Details of an agent may be large; all of them are in `executions show`.
fn cut(text: &str) -> String {
    const MAX: usize = 600;
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn still_running(execution: &str, bound: Duration) -> Failure {
    let mut body = ErrorBody::new(
        Category::StillRunning,
        format!("not done after {}; it goes on", Span(bound)),
    );
    body.execution_id = Some(execution.to_owned());
    Failure::from(body).hint(format!("muster executions show {execution}"))
}

pub(super) fn with_hint(failure: Failure, target: &str) -> Failure {
    if failure.hint.is_some() {
        return failure;
    }
    let agent = target.split('.').next().unwrap_or(target);
    match failure.body.error_category {
        Category::TargetNotFound => failure.hint("`muster agents` lists who can be called"),
        Category::NodeUnavailable => failure.hint(format!(
            "start it, for example with `muster dev -- python agent.py`, or see `muster why {agent}`"
        )),
        Category::Validation => failure.hint(format!(
            "`muster agents show {agent}` has what each of its functions takes"
        )),
        Category::ConcurrencyLimit => failure.hint(format!("see `muster queues` and `muster why {agent}`")),
        _ => failure,
    }
}

pub(super) fn read_input(argument: &str) -> Outcome<String> {
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    match argument.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| {
            Failure::new(Category::Validation, format!("--input: {file}: {error}"))
        }),
        None => Ok(argument.to_owned()),
    }
}

/// The request's body. The input goes in as it was written.
fn body_of(input: &str, priority: Option<u8>) -> Outcome<String> {
    let class = priority.map_or_else(String::new, |class| format!("\"priority\":{class},"));
    Ok(format!("{{{class}\"input\":{}}}", raw(input)?.get()))
}

/// JSON as it was written.
pub(super) fn raw(input: &str) -> Outcome<&RawValue> {
    serde_json::from_str(input).map_err(|error| {
        Failure::new(
            Category::Validation,
            format!("--input is not JSON: {error}"),
        )
        .hint("quote it for the shell: --input '{\"name\":\"world\"}'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_goes_out_as_it_was_written() {
        assert_eq!(
            body_of(r#" {"n": 9223372036854775808, "x": 1e400} "#, None).unwrap(),
            r#"{"input":{"n": 9223372036854775808, "x": 1e400}}"#
        );
        assert_eq!(
            body_of("{}", Some(0)).unwrap(),
            r#"{"priority":0,"input":{}}"#
        );
        assert_eq!(body_of("{", None).unwrap_err().exit_code(), 2);
    }
}
