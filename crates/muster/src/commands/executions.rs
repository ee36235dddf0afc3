//! `muster executions`.

use muster_server::config::Span;
use muster_wire::{Category, Timestamp};
use serde_json::Value;

use super::list::{List, Listed};
use super::progress::Fields;
use super::resolve::{self, Noun};
use super::{Asking, envelope, item, list, waits};
use crate::cli::{ExecutionFilter, Listing, Show};
use crate::client::encode;
use crate::failure::{Failure, Outcome};
use crate::out::table::{Cell, Column, Give, draw as draw_table};
use crate::out::{self, Colour, Style, execution_mark, id, payload, span};

const COLUMNS: &[Column] = &[
    Column {
        title: "STATE",
        give: Give::Never,
    },
    Column {
        title: "TARGET",
        give: Give::Never,
    },
    Column {
        title: "WHY",
        give: Give::Cut,
    },
    Column {
        title: "AGE",
        give: Give::Drop(1),
    },
    Column {
        title: "RUN",
        give: Give::Drop(0),
    },
    Column {
        title: "ID",
        give: Give::Never,
    },
];

/// Lists, or shows one.
pub(super) async fn run(asking: &Asking<'_>, args: &Listing<ExecutionFilter>) -> Outcome<u8> {
    if let Some(Show::Show { id, .. }) = &args.show {
        return show(asking, id).await;
    }
    let list = List {
        kind: "executions",
        path: "/api/v1/executions",
        filter: asked(asking, &args.filter).await?,
        limit: Some(args.filter.most.limit),
        join: Some(list::Join::Waits),
        draw,
    };
    list::run(asking, &list, args.plain.watch).await
}

async fn asked(
    asking: &Asking<'_>,
    filter: &ExecutionFilter,
) -> Outcome<Vec<(&'static str, Option<String>)>> {
    let run = match &filter.run {
        Some(run) => Some(resolve::id(asking, Noun::Run, run).await?),
        None => None,
    };
    let states = (!filter.state.is_empty()).then(|| filter.state.join(","));
    Ok(vec![
        ("status", states),
        ("agent", filter.agent.clone()),
        ("function", filter.function.clone()),
        ("run_id", run),
        ("since", since(filter.since.as_deref())?),
        ("until", since(filter.until.as_deref())?),
        ("category", filter.category.clone()),
        ("reason", filter.reason.clone()),
        ("q", filter.text.clone()),
    ])
}

/// A moment from `2h` or from a time.
pub(super) fn since(text: Option<&str>) -> Outcome<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    if let Some(at) = Timestamp::parse(text) {
        return Ok(Some(at.rfc3339()));
    }
    let ago = Span::parse(text).map_err(|_| {
        Failure::new(
            Category::Validation,
            format!("--since: {text:?} is neither a duration like 2h nor a time like 2026-11-29T18:00:00Z"),
        )
    })?;
    Ok(Some((Timestamp::wall_clock() - ago.0).rfc3339()))
}

/// The list for people.
pub(super) fn draw(style: &Style, listed: &Listed) -> String {
    if listed.items.is_empty() {
        return "none\n".to_owned();
    }
    let rows: Vec<Vec<Cell>> = listed
        .items
        .iter()
        .map(|item| row(style, item, listed.as_of))
        .collect();
    draw_table(style, COLUMNS, &rows)
}

fn row(style: &Style, item: &Value, now: Timestamp) -> Vec<Cell> {
    vec![
        state_cell(style, item),
        Cell::new(item::target(item)),
        Cell::new(item::why(item, now)),
        Cell::new(item::age(item, now)),
        Cell::new(shown_id(
            style,
            &item::text(item, &["run_id", "run"]).unwrap_or_default(),
        )),
        Cell::new(shown_id(style, &item::id(item))),
    ]
}

/// Mark and word of an execution's state.
pub(super) fn state_cell(style: &Style, item: &Value) -> Cell {
    let state = item::state(item);
    let reason = item::text(item, &["status_reason", "reason"]).unwrap_or_default();
    let mark = execution_mark(&state, &reason);
    Cell::coloured(mark.colour, format!("{} {state}", mark.text(style)))
}

/// Short on a terminal, whole in a pipe.
pub(super) fn shown_id(style: &Style, whole: &str) -> String {
    match style.width {
        Some(_) => id::short(whole, style.ellipsis()),
        None => whole.to_owned(),
    }
}

async fn show(asking: &Asking<'_>, typed: &str) -> Outcome<u8> {
    let whole = resolve::id(asking, Noun::Execution, typed).await?;
    let answer = asking
        .client
        .get(&format!("/api/v1/executions/{}", encode(&whole)))
        .await?;
    if asking.json {
        let fields = Fields::of(&answer)?;
        let mut bodies = [fields.of_ours()];
        waits::put(asking, &mut bodies).await?;
        let mut raw = fields.raw();
        if let Some(wait) = bodies[0].get("wait") {
            raw.retain(|(name, _)| name != "wait");
            let wait = serde_json::value::to_raw_value(wait).unwrap_or_default();
            raw.push(("wait".to_owned(), wait));
        }
        out::data(&envelope::execution(&raw));
        return Ok(0);
    }
    let fields = Fields::of(&answer)?;
    let input = match fields.json("input") {
        Some(input) => Some(input.to_owned()),
        None => asking
            .client
            .get(&format!(
                "/api/v1/executions/{}/payload/input",
                encode(&whole)
            ))
            .await
            .ok()
            .map(|answer| String::from_utf8_lossy(&answer.body).into_owned()),
    };
    out::data_raw(&text_of(
        &asking.look.data,
        &whole,
        &fields,
        input.as_deref(),
    ));
    Ok(0)
}

/// By which execution it was run again: an id, or an id with its run.
fn successor(fields: &Fields) -> Option<String> {
    let named = fields
        .json("restarted_as")
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_default();
    let id = item::raw(&named, &["execution_id"])
        .or_else(|| fields.text("restarted_as"))
        .or_else(|| fields.text("restarted_as_execution_id"))?;
    Some(match item::raw(&named, &["run_id"]) {
        Some(run) => format!("as {id} in {run}"),
        None => format!("as {id}"),
    })
}

/// What a restart takes over of its source run.
fn replay(fields: &Fields) -> Option<String> {
    let mode = fields.text("replay_mode")?;
    Some(match fields.text("replay_before_execution_id") {
        Some(before) => format!("{mode}, up to {before}"),
        None => mode,
    })
}

pub(super) fn text_of(style: &Style, whole: &str, fields: &Fields, input: Option<&str>) -> String {
    let state = fields.state();
    let reason = fields.text("status_reason").unwrap_or_default();
    let mark = execution_mark(&state, &reason);
    let target = fields.text("target").unwrap_or_else(|| {
        format!(
            "{}.{}",
            fields.text("node_id").unwrap_or_default(),
            fields.text("reasoner_id").unwrap_or_default()
        )
    });
    let mut text = style.words(&format!(
        "{} {}  {}  {whole}\n",
        mark.painted(style),
        style.paint(mark.colour, &state),
        style.paint(Colour::Bold, &out::clean(&target)),
    ));
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let value = style.wrapped(13, &style.words(&out::clean(&value)));
            text += &format!("  {name:10} {value}\n");
        }
    };
    line("run", fields.text("run_id"));
    line(
        "parent",
        fields
            .text("parent_execution_id")
            .or_else(|| fields.text("parent_id")),
    );
    line("lane", fields.text("lane"));
    line("restart of", fields.text("restart_of"));
    line("restarted", successor(fields));
    line("source run", fields.text("source_run_id"));
    line("replay", replay(fields));
    line("replay of", fields.text("replay_of"));
    line("taken from", fields.text("replayed_from_execution_id"));
    line("created", fields.text("created_at"));
    line("started", fields.text("started_at"));
    line(
        "ended",
        fields
            .text("completed_at")
            .or_else(|| fields.text("ended_at")),
    );
    line(
        "took",
        fields
            .number("duration_ms")
            .map(|ms| span::duration(i64::try_from(ms).unwrap_or(i64::MAX))),
    );
    let category = fields.text("error_category");
    // A finer word, where it is one.
    let is_finer = !reason.is_empty() && category.as_ref() != Some(&reason);
    line("reason", Some(reason).filter(|_| is_finer));
    line("category", category);
    line(
        "error",
        fields
            .text("error_message")
            .or_else(|| fields.text("error")),
    );
    for (name, json) in [
        ("input", input),
        ("result", fields.json("result")),
        ("details", fields.json("error_details")),
    ] {
        if let Some(json) = json {
            let pretty = payload::pretty(json).replace('\n', "\n             ");
            text += &format!("  {name:10} {pretty}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn since_is_a_duration_or_a_time() {
        assert_eq!(since(None).unwrap(), None);
        assert_eq!(
            since(Some("2026-11-29T18:00:00Z")).unwrap().unwrap(),
            "2026-11-29T18:00:00.000Z"
        );
        assert!(since(Some("2h")).unwrap().is_some());
        assert_eq!(since(Some("yesterday")).unwrap_err().exit_code(), 2);
    }

    fn shown(fields: &Value) -> String {
        let fields = Fields::parse(&fields.to_string());
        let style = Style {
            colour: false,
            unicode: true,
            width: None,
            redraws: false,
        };
        text_of(&style, "exec_1", &fields, None)
    }

    #[test]
    fn both_sides_of_a_restart_name_each_other() {
        for (source, line) in [
            (json!({"restarted_as": "exec_2"}), "as exec_2\n"),
            (
                json!({"restarted_as_execution_id": "exec_2"}),
                "as exec_2\n",
            ),
            (
                json!({"restarted_as_execution_id": "exec_2",
                       "restarted_as": {"execution_id": "exec_2", "run_id": "run_2"}}),
                "as exec_2 in run_2\n",
            ),
        ] {
            let text = shown(&source);
            assert!(text.contains(&format!("  restarted  {line}")), "{text}");
        }
        let text = shown(&json!({
            "restart_of": "exec_0", "source_run_id": "run_0", "replay_mode": "succeeded-before",
            "replay_before_execution_id": "exec_9",
        }));
        for line in [
            "  restart of exec_0\n",
            "  source run run_0\n",
            "  replay     succeeded-before, up to exec_9\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let text = shown(&json!({"replay_of": "exec_8", "replayed_from_execution_id": "exec_8"}));
        assert!(
            text.contains("  replay of  exec_8\n  taken from exec_8\n"),
            "{text}"
        );
        let text = shown(&json!({"status": "succeeded"}));
        assert!(
            !text.contains("restart") && !text.contains("replay"),
            "{text}"
        );
    }
}
