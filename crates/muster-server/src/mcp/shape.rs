//! Executions and runs as tools show them: what a model needs and no more, with the schema of
//! each beside it. Payloads are bounded, and never shown as something they are not.

use muster_engine::effect::ExecutionView;
use muster_engine::row::{ExecutionRow, Payload};
use muster_store::RunSummary;
use muster_wire::{Category, ExecutionKind, FunctionKind, Lane, Status};
use serde_json::{Map, Value};

use super::answer::{Found, put, put_if};
use super::output;
use crate::api::show;

/// The largest payload that is shown; a larger one is fetched over the API.
const SHOWN_MAX: usize = 256 * 1024;
/// The longest error text that is shown.
const TEXT_MAX: usize = 4 * 1024;
/// Significant digits that every double keeps.
const DIGITS_MAX: usize = 17;

/// An execution without its payloads.
pub(super) fn step(row: &ExecutionRow) -> Found {
    let mut found = Map::new();
    put(&mut found, "execution_id", row.id.as_str());
    put(&mut found, "run_id", row.run.as_str());
    put(
        &mut found,
        "target",
        format!("{}.{}", row.agent, row.function),
    );
    put(&mut found, "type", row.function_kind.word());
    put(&mut found, "status", row.status.word());
    put(&mut found, "lane", row.lane.word());
    put(&mut found, "kind", row.kind.word());
    put(&mut found, "attempt", row.attempt);
    put(&mut found, "created_at", row.created_at.rfc3339());
    let parent = row.parent.as_ref().map(|parent| parent.as_str());
    put_if(&mut found, "parent_execution_id", parent);
    put_if(&mut found, "status_reason", row.status_reason.as_deref());
    put_if(
        &mut found,
        "started_at",
        row.started_at.map(|at| at.rfc3339()),
    );
    put_if(
        &mut found,
        "completed_at",
        row.ended_at.map(|at| at.rfc3339()),
    );
    put_if(&mut found, "duration_ms", show::duration_ms(row));
    let category = row.error_category.as_ref().map(Category::word);
    put_if(&mut found, "error_category", category);
    put_if(
        &mut found,
        "error_message",
        row.error_text.as_ref().map(text),
    );
    found
}

/// An execution with its result and details.
pub(super) fn whole(view: &ExecutionView) -> Found {
    let mut found = step(&view.row);
    if is_too_large(&view.row) {
        put(&mut found, "result_omitted", true);
    } else if let Some(result) = &view.result {
        payload(&mut found, "result", "result_json", result);
    } else if view.row.status == Status::Succeeded {
        put(&mut found, "result", Value::Null);
    }
    put_if(&mut found, "result_size", view.row.result_size);
    if let Some(details) = &view.details {
        payload(&mut found, "error_details", "error_details_json", details);
    }
    found
}

/// Whether an execution's result is too large to be shown.
pub(super) fn is_too_large(row: &ExecutionRow) -> bool {
    row.result_size.is_some_and(|size| size > SHOWN_MAX as u64)
}

/// A run without its steps.
pub(super) fn run(run: &RunSummary) -> Found {
    let total: u64 = run.counts.iter().map(|(_, count)| count).sum();
    let counts: Map<String, Value> = run
        .counts
        .iter()
        .map(|(status, count)| (status.word().to_owned(), (*count).into()))
        .collect();
    let mut found = Map::new();
    put(&mut found, "run_id", run.id.as_str());
    put(&mut found, "status", run.status.word());
    put(&mut found, "executions", total);
    put(&mut found, "counts", counts);
    put_if(
        &mut found,
        "cancelled_at",
        run.cancelled_at.map(|at| at.rfc3339()),
    );
    found
}

/// Shows a payload as JSON where it stays what it is, as its text where it would not, and only
/// that it is there where it is large.
fn payload(found: &mut Found, name: &str, name_as_text: &str, payload: &Payload) {
    let bytes = &payload.0[..];
    if bytes.len() > SHOWN_MAX {
        put(found, &format!("{name}_omitted"), true);
        return;
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) if keeps_numbers(bytes) => put(found, name, value),
        _ => put(found, name_as_text, String::from_utf8_lossy(bytes)),
    }
}

/// Whether every number of a JSON text is kept by a 64-bit integer or a double.
fn keeps_numbers(json: &[u8]) -> bool {
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'"' => {
                at += 1;
                while at < json.len() && json[at] != b'"' {
                    at += 1 + usize::from(json[at] == b'\\');
                }
            }
            b'-' | b'0'..=b'9' => {
                let rest = &json[at..];
                let of_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
                let end = rest.iter().position(|b| !of_number(b));
                let number = &rest[..end.unwrap_or(rest.len())];
                if !is_kept(number) {
                    return false;
                }
                at += number.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    true
}

fn is_kept(number: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(number) else {
        return false;
    };
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return true;
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    // Nothing but zeros is zero; anything else must not become it.
    let zero = digits.trim_end_matches('0').is_empty();
    let value = text.parse::<f64>().unwrap_or(f64::INFINITY);
    digits.len() <= DIGITS_MAX && value.is_finite() && (value == 0.0) == zero
}

/// Text that came from outside, bounded.
fn text(bytes: &Payload) -> String {
    let mut text = String::from_utf8_lossy(&bytes.0[..bytes.len().min(TEXT_MAX + 4)]).into_owned();
    if bytes.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX.min(text.len())).rev();
        let end = end.into_iter().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// The schema of [`step`].
pub(super) fn step_schema() -> Value {
    output::object(9, step_members())
}

/// The schema of [`whole`].
pub(super) fn whole_schema() -> Value {
    let mut members = step_members();
    members.extend([
        ("result", output::any("What it gave, once it has succeeded.")),
        ("result_json", output::text("What it gave as JSON text, in place of result: it holds numbers that most programs cannot keep, or nests deeply.")),
        ("result_omitted", output::flag("The result is too large to be shown; fetch GET /api/v1/executions/{id}/payload/result.")),
        ("result_size", output::whole("Bytes of the result.")),
        ("error_details", output::any("What the agent says about its failure.")),
        ("error_details_json", output::text("The same as JSON text, in place of error_details.")),
        ("error_details_omitted", output::flag("The details are too large to be shown; fetch GET /api/v1/executions/{id}/payload/error_details.")),
    ]);
    output::object(9, members)
}

fn step_members() -> Vec<(&'static str, Value)> {
    let kinds: Vec<&str> = FunctionKind::ALL.iter().map(|kind| kind.word()).collect();
    let lanes: Vec<&str> = Lane::ALL.iter().map(|lane| lane.word()).collect();
    let whose: Vec<&str> = ExecutionKind::ALL.iter().map(|kind| kind.word()).collect();
    vec![
        ("execution_id", output::text("The execution.")),
        ("run_id", output::text("Its run.")),
        ("target", output::text("agent.function.")),
        ("type", output::word(&kinds, "What the function is.")),
        ("status", status_schema()),
        ("lane", output::word(&lanes, "How it came in.")),
        (
            "kind",
            output::word(
                &whose,
                "Whether the plane sent it, or it was reported from inside an agent.",
            ),
        ),
        ("attempt", output::whole("How often it was sent.")),
        ("created_at", output::text("When it was accepted.")),
        ("parent_execution_id", output::text("What called it.")),
        (
            "status_reason",
            output::text("A finer word than the status."),
        ),
        ("started_at", output::text("When it was first sent.")),
        ("completed_at", output::text("When it ended.")),
        ("duration_ms", output::whole("How long it took.")),
        ("error_category", output::text("Why it failed.")),
        (
            "error_message",
            output::text("What the agent said about it."),
        ),
    ]
}

/// The schema of [`run`], as members: the first four are always there.
pub(super) fn run_members() -> Vec<(&'static str, Value)> {
    let counts = serde_json::json!({
        "type": "object", "additionalProperties": {"type": "integer"},
        "description": "Executions by status.",
    });
    vec![
        ("run_id", output::text("The run.")),
        ("status", status_schema()),
        ("executions", output::whole("How many there are.")),
        ("counts", counts),
        ("cancelled_at", output::text("When it was cancelled.")),
    ]
}

/// The words of a status.
pub(super) fn status_schema() -> Value {
    let words: Vec<&str> = Status::ALL.iter().map(|status| status.word()).collect();
    output::word(
        &words,
        "succeeded, failed, cancelled and timeout are final.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Found {
        let mut found = Map::new();
        let bytes = Payload(bytes::Bytes::copy_from_slice(text.as_bytes()));
        payload(&mut found, "result", "result_json", &bytes);
        found
    }

    #[test]
    fn a_payload_is_json_where_it_stays_what_it_is_and_text_where_not() {
        for kept in [
            "null",
            "[1, -2.50, 1e16, 18446744073709551615, \"12345678901234567890123\", 0.0]",
            r#"{"a\"9e999":"\"1e999"}"#,
            "0.30000000000000004",
        ] {
            let value: Value = serde_json::from_str(kept).unwrap();
            assert_eq!(shown(kept)["result"], value, "{kept}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [
            "[1e400]",
            "123456789012345678901234567890",
            "0.1234567890123456789",
            "1e-400",
            "\"\\ud800\"",
            &deep,
        ] {
            assert_eq!(shown(text)["result_json"], text);
        }
        let large = format!("\"{}\"", "x".repeat(SHOWN_MAX));
        assert_eq!(
            shown(&large),
            serde_json::from_str::<Found>(r#"{"result_omitted":true}"#).unwrap()
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "é".repeat(TEXT_MAX);
        let shown = text(&Payload(long.into_bytes().into()));
        assert!(
            shown.ends_with("é…") && shown.len() <= TEXT_MAX + 3,
            "{}",
            shown.len()
        );
        assert_eq!(
            text(&Payload(b"\xffshort".to_vec().into())),
            "\u{fffd}short"
        );
    }
}
