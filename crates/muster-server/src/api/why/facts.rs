//! Facts in words: an event as a sentence, with who saw it.

use muster_engine::row::{EventKind, EventRow};
use muster_wire::Timestamp;
use muster_wire::api::why::WhyFact;

/// Something that holds now.
pub(super) fn now(by: &str, text: impl Into<String>) -> WhyFact {
    WhyFact {
        seq: None,
        at: None,
        by: by.to_owned(),
        text: text.into(),
        value: None,
        unknown: None,
        inferred: None,
    }
}

/// Something that was seen at a moment.
pub(super) fn at(at: Timestamp, by: &str, text: impl Into<String>) -> WhyFact {
    WhyFact {
        at: Some(at.into()),
        ..now(by, text)
    }
}

/// Something that nobody knows.
pub(super) fn unknown(by: &str, text: impl Into<String>, why: impl Into<String>) -> WhyFact {
    WhyFact {
        unknown: Some(why.into()),
        ..now(by, text)
    }
}

/// An event of an execution that ended with these words.
pub(super) fn of_one(event: &EventRow, ended: Option<&str>) -> WhyFact {
    let by = match event.kind {
        EventKind::ExecutionCancelled => ended.and_then(|text| text.strip_prefix("cancelled")),
        EventKind::ExecutionFailed | EventKind::ExecutionTimedOut => {
            let mut fact = of(event);
            if let Some(said) = ended.filter(|said| !fact.text.contains(said)) {
                fact.text.push_str(": ");
                fact.text.push_str(said);
            }
            return fact;
        }
        _ => None,
    };
    let Some(by) = by else {
        return of(event);
    };
    // It says by whom and why; the words of the category and the reason say less.
    WhyFact {
        seq: Some(event.seq),
        ..at(event.at, by_whom(by), format!("it was cancelled{by}"))
    }
}

/// What an event tells.
fn of(event: &EventRow) -> WhyFact {
    let (by, said) = said(event);
    let mut text = said;
    let reason = event.reason.as_deref().filter(|_| tells_reason(event.kind));
    let more = [
        event.category.as_ref().map(muster_wire::Category::word),
        reason,
        event.text.as_deref(),
    ];
    let mut last = "";
    for more in more.into_iter().flatten() {
        // The category and the reason are often the same word.
        if more != last {
            text.push_str(": ");
            text.push_str(more);
        }
        last = more;
    }
    WhyFact {
        seq: Some(event.seq),
        ..at(event.at, by, text)
    }
}

/// Who is named first in ` by ada: a reason`.
fn by_whom(text: &str) -> &str {
    let name = text.strip_prefix(" by ");
    let name = name.and_then(|rest| rest.split(':').next());
    name.filter(|name| !name.is_empty()).unwrap_or("plane")
}

/// Whether the reason says more than the sentence.
fn tells_reason(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::ExecutionQueued
            | EventKind::ExecutionStarted
            | EventKind::ExecutionResent
            | EventKind::ExecutionAbsorbed
            | EventKind::ExecutionPaused
            | EventKind::ExecutionResumed
            | EventKind::ApprovalDecided
            | EventKind::ApprovalTold
    )
}

fn said(event: &EventRow) -> (&'static str, String) {
    let to = || match (&event.instance, event.attempt) {
        (Some(instance), Some(n)) if n > 1 => format!("to instance {instance}, attempt {n}"),
        (Some(instance), _) => format!("to instance {instance}"),
        (None, _) => "to its agent".to_owned(),
    };
    match event.kind {
        EventKind::ExecutionQueued => ("plane", "accepted, and queued".to_owned()),
        EventKind::ExecutionStarted => ("plane", format!("sent {}", to())),
        EventKind::ExecutionResent => ("plane", format!("sent again {}", to())),
        EventKind::ExecutionAbsorbed => (
            "plane",
            "it could not be sent; no byte left, so nothing can run twice".to_owned(),
        ),
        EventKind::ExecutionSucceeded => ("agent", "it ended well".to_owned()),
        EventKind::ExecutionFailed => (failed_by(event), "it failed".to_owned()),
        EventKind::ExecutionCancelled => ("plane", "it was cancelled".to_owned()),
        EventKind::ExecutionTimedOut => ("plane", "its time ran out".to_owned()),
        EventKind::ExecutionLateOutcome => ("agent", "an outcome came after the end".to_owned()),
        EventKind::ExecutionCancelReceipt => ("agent", "what it did about the cancel".to_owned()),
        EventKind::ExecutionWaiting => ("agent", "it began to wait".to_owned()),
        EventKind::ExecutionContinued => ("plane", "it went on".to_owned()),
        EventKind::ExecutionPaused => ("person", "it was paused".to_owned()),
        EventKind::ExecutionResumed => ("person", "it was resumed".to_owned()),
        EventKind::ExecutionRestarted => ("person", "it was run again".to_owned()),
        EventKind::ApprovalRequested => ("agent", "it asked for a decision".to_owned()),
        EventKind::ApprovalDecided => ("person", "it was decided".to_owned()),
        EventKind::ApprovalTold => ("plane", "its agent was told of the decision".to_owned()),
        other => ("plane", other.word().to_owned()),
    }
}

/// Who knows of a failure: the agent of its own, the plane of the others.
fn failed_by(event: &EventRow) -> &'static str {
    match event.category {
        Some(muster_wire::Category::AgentError | muster_wire::Category::BadResponse) => "agent",
        _ => "plane",
    }
}
