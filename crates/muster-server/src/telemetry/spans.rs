//! The spans of an execution, made of its row and its attempts when it has ended.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_engine::row::{AttemptOutcome, AttemptRow, ExecutionRow};
use muster_wire::{ExecutionKind, Status, Timestamp};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceFlags, TraceId,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::context::{Context, Span, span_of, span_of_attempt, span_of_part};

/// Who makes these spans.
static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("muster")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
});

/// All spans of an execution that ended: itself, its wait, its attempts with the waits for their
/// callbacks.
pub(super) fn of_end(
    context: &Context<'_>,
    row: &ExecutionRow,
    attempts: &[AttemptRow],
) -> Vec<SpanData> {
    let end = row.ended_at.unwrap_or(row.created_at);
    let own = span_of(&row.id);
    let name = format!("{}.{}", row.agent, row.function);
    let mut execution = span(context, own, name, row.created_at, end);
    execution.span_kind = SpanKind::Server;
    if let Some(parent) = context.parent {
        execution.parent_span_id = SpanId::from_bytes(parent);
        execution.parent_span_is_remote = context.is_remote;
    }
    execution.attributes = attributes(row);
    if matches!(row.status, Status::Failed | Status::Timeout) {
        let category = row.error_category.as_ref();
        let why = category.map_or_else(|| row.status.word(), |word| word.word());
        execution.status = SpanStatus::error(why.to_owned());
    }
    let mut spans = vec![execution];
    if row.kind != ExecutionKind::Observed && row.replayed_from().is_none() {
        let until = attempts.first().map_or(end, |first| first.sent_at);
        let id = span_of_part("queued", &row.id, 0);
        let queued = span(context, id, "queued".to_owned(), row.created_at, until);
        spans.push(under(own, queued));
    }
    for attempt in attempts {
        of_attempt(context, row, attempt, end, &mut spans);
    }
    spans
}

fn attributes(row: &ExecutionRow) -> Vec<KeyValue> {
    let mut attributes = vec![
        text("muster.execution.id", row.id.as_str()),
        text("muster.run.id", row.run.as_str()),
        text("muster.agent", row.agent.as_str()),
        text("muster.function", row.function.as_str()),
        text("muster.lane", row.lane.word()),
        text("muster.status", row.status.word()),
        number("muster.attempts", u64::from(row.attempt)),
        number("muster.input.bytes", row.input_size),
    ];
    if let Some(category) = &row.error_category {
        attributes.push(text("muster.error_category", category.word()));
    }
    if let Some(size) = row.result_size {
        attributes.push(number("muster.result.bytes", size));
    }
    if row.replayed_from().is_some() {
        attributes.push(KeyValue::new("muster.replayed", true));
    }
    if row.kind == ExecutionKind::Observed {
        attributes.push(KeyValue::new("muster.observed", true));
    }
    attributes
}

fn of_attempt(
    context: &Context<'_>,
    row: &ExecutionRow,
    attempt: &AttemptRow,
    end: Timestamp,
    spans: &mut Vec<SpanData>,
) {
    let own = span_of_attempt(&row.id, attempt.n);
    let until = attempt.ended_at.unwrap_or(end);
    let broke = attempt
        .outcome
        .filter(|outcome| !matches!(outcome, AttemptOutcome::Answered | AttemptOutcome::Disowned));
    let name = format!("attempt {}", attempt.n);
    let mut sent = span(context, own, name, attempt.sent_at, until);
    sent.span_kind = SpanKind::Client;
    sent.attributes = vec![
        text("muster.execution.id", row.id.as_str()),
        number("muster.attempt", u64::from(attempt.n)),
        text("muster.instance", attempt.instance.as_str()),
    ];
    if let Some(outcome) = attempt.outcome {
        sent.attributes.push(text("muster.outcome", outcome.word()));
    }
    if let Some(outcome) = broke {
        sent.status = SpanStatus::error(outcome.word());
    }
    spans.push(under(span_of(&row.id), sent));
    if let Some(accepted) = attempt.accepted_at {
        let id = span_of_part("callback", &row.id, attempt.n);
        let callback = span(context, id, "callback".to_owned(), accepted, until);
        spans.push(under(own, callback));
    }
}

/// From the arrival of a request to the commit that accepted it.
pub(super) fn of_admission(
    context: &Context<'_>,
    row: &ExecutionRow,
    received: Timestamp,
) -> SpanData {
    let id = span_of_part("admission", &row.id, 0);
    let name = "admission".to_owned();
    under(
        span_of(&row.id),
        span(context, id, name, received, row.created_at),
    )
}

/// A span within the plane, without a parent and with nothing to say.
fn span(
    context: &Context<'_>,
    id: Span,
    name: String,
    start: Timestamp,
    end: Timestamp,
) -> SpanData {
    // What a caller sent need not be a state that can be read; the agent gets it all the same.
    let state = context.state.and_then(|state| state.parse().ok());
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(context.trace),
            SpanId::from_bytes(id),
            TraceFlags::SAMPLED,
            false,
            state.unwrap_or_default(),
        ),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: time(start),
        // A clock that was set back makes nothing negative.
        end_time: time(end.max(start)),
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: SpanStatus::Unset,
        instrumentation_scope: SCOPE.clone(),
    }
}

/// The same below another one.
fn under(parent: Span, span: SpanData) -> SpanData {
    SpanData {
        parent_span_id: SpanId::from_bytes(parent),
        ..span
    }
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.0).unwrap_or_default())
}

fn text(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, value.to_owned())
}

fn number(key: &'static str, n: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(n).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use muster_wire::RunId;

    use super::*;

    #[test]
    fn a_span_never_ends_before_it_starts() {
        let run = RunId::trusted("run_1");
        let context = Context::read(None, &run, 1.0);
        let made = span(
            &context,
            [1; 8],
            "queued".to_owned(),
            Timestamp(10),
            Timestamp(5),
        );
        assert_eq!(made.start_time, UNIX_EPOCH + Duration::from_micros(10));
        assert_eq!(made.end_time, made.start_time);
    }
}
