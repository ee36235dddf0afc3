//! The spans of an execution, made of its row and its attempts when it has ended.

use muster_engine::row::{AttemptOutcome, AttemptRow, ExecutionRow};
use muster_wire::{ExecutionKind, Status, Timestamp};

use super::context::{Context, Span as SpanId, span_of, span_of_attempt, span_of_part};
use super::encode::{Kind, Span, Value};

/// All spans of an execution that ended: itself, its wait, its attempts with the waits for their
/// callbacks.
pub(super) fn of_end(
    context: &Context<'_>,
    row: &ExecutionRow,
    attempts: &[AttemptRow],
) -> Vec<Span> {
    let end = row.ended_at.unwrap_or(row.created_at);
    let own = span_of(&row.id);
    let failed = matches!(row.status, Status::Failed | Status::Timeout);
    let category = row
        .error_category
        .as_ref()
        .map(|word| word.word().to_owned());
    let mut attributes = vec![
        ("muster.execution.id", text(row.id.as_str())),
        ("muster.run.id", text(row.run.as_str())),
        ("muster.agent", text(row.agent.as_str())),
        ("muster.function", text(row.function.as_str())),
        ("muster.lane", text(row.lane.word())),
        ("muster.status", text(row.status.word())),
        ("muster.attempts", number(u64::from(row.attempt))),
        ("muster.input.bytes", number(row.input_size)),
    ];
    if let Some(category) = &category {
        attributes.push(("muster.error_category", text(category)));
    }
    if let Some(size) = row.result_size {
        attributes.push(("muster.result.bytes", number(size)));
    }
    if row.replayed_from().is_some() {
        attributes.push(("muster.replayed", Value::Flag(true)));
    }
    if row.kind == ExecutionKind::Observed {
        attributes.push(("muster.observed", Value::Flag(true)));
    }
    let execution = Span {
        trace: context.trace,
        id: own,
        parent: context.parent,
        state: context.state.map(str::to_owned),
        name: format!("{}.{}", row.agent, row.function),
        kind: Kind::Server,
        start: row.created_at,
        end,
        attributes,
        error: failed.then(|| category.unwrap_or_else(|| row.status.word().to_owned())),
    };
    let mut spans = vec![execution];
    if row.kind != ExecutionKind::Observed && row.replayed_from().is_none() {
        let until = attempts.first().map_or(end, |first| first.sent_at);
        let id = span_of_part("queued", &row.id, 0);
        spans.push(part(context, id, own, "queued", row.created_at, until));
    }
    for attempt in attempts {
        of_attempt(context, row, attempt, end, &mut spans);
    }
    spans
}

fn of_attempt(
    context: &Context<'_>,
    row: &ExecutionRow,
    attempt: &AttemptRow,
    end: Timestamp,
    spans: &mut Vec<Span>,
) {
    let own = span_of_attempt(&row.id, attempt.n);
    let until = attempt.ended_at.unwrap_or(end);
    let broke = attempt
        .outcome
        .filter(|outcome| !matches!(outcome, AttemptOutcome::Answered | AttemptOutcome::Disowned));
    let mut span = part(
        context,
        own,
        span_of(&row.id),
        &format!("attempt {}", attempt.n),
        attempt.sent_at,
        until,
    );
    span.kind = Kind::Client;
    span.attributes = vec![
        ("muster.execution.id", text(row.id.as_str())),
        ("muster.attempt", number(u64::from(attempt.n))),
        ("muster.instance", text(attempt.instance.as_str())),
    ];
    if let Some(outcome) = attempt.outcome {
        span.attributes
            .push(("muster.outcome", text(outcome.word())));
    }
    span.error = broke.map(|outcome| outcome.word().to_owned());
    spans.push(span);
    if let Some(accepted) = attempt.accepted_at {
        let id = span_of_part("callback", &row.id, attempt.n);
        spans.push(part(context, id, own, "callback", accepted, until));
    }
}

/// From the arrival of a request to the commit that accepted it.
pub(super) fn of_admission(context: &Context<'_>, row: &ExecutionRow, received: Timestamp) -> Span {
    let id = span_of_part("admission", &row.id, 0);
    part(
        context,
        id,
        span_of(&row.id),
        "admission",
        received,
        row.created_at,
    )
}

fn part(
    context: &Context<'_>,
    id: SpanId,
    parent: SpanId,
    name: &str,
    start: Timestamp,
    end: Timestamp,
) -> Span {
    Span {
        trace: context.trace,
        id,
        parent: Some(parent),
        state: context.state.map(str::to_owned),
        name: name.to_owned(),
        kind: Kind::Internal,
        start,
        end,
        attributes: Vec::new(),
        error: None,
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn number(n: u64) -> Value {
    Value::Number(i64::try_from(n).unwrap_or(i64::MAX))
}
