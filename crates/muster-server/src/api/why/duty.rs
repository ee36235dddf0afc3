//! Why a duty is late, or that it is not.

use muster_wire::api::why::{Why, WhyKind, WhyNext};

use super::facts;
use super::rules::{change, rule};
use crate::app::App;
use crate::duties::LATE_AFTER;

/// Why a duty is as it is; `None` when there is none of that name.
pub(super) fn of(app: &App, name: &str) -> Option<Why> {
    let now = app.clock.now();
    let duty = app
        .duties
        .report(now)
        .into_iter()
        .find(|duty| duty.name == name)?;
    let every = duty.every.as_secs();
    let (state, verdict) = match (duty.late, duty.failed) {
        (true, _) => (
            "late",
            format!("{name} is late: it should run every {every} s"),
        ),
        (false, true) => (
            "failed",
            format!("{name} failed when it ran last: {}", duty.said),
        ),
        (false, false) => (
            "on_time",
            format!("{name} runs every {every} s and is on time"),
        ),
    };
    let mut told = vec![facts::at(duty.since, "plane", "it was announced")];
    match duty.last_run {
        Some(at) => {
            let said = if duty.said.is_empty() {
                "nothing to say"
            } else {
                &duty.said
            };
            told.push(facts::at(at, "plane", format!("it ran last: {said}")));
        }
        None => told.push(facts::unknown(
            "plane",
            "what it does",
            "it has not run since the plane started",
        )),
    }
    let since = match (duty.late, duty.last_run) {
        // Late it is from the moment at which it was.
        (true, last) => last.unwrap_or(duty.since) + duty.every * 3 + LATE_AFTER,
        (false, last) => last.unwrap_or(duty.since),
    };
    let due = duty.last_run.unwrap_or(duty.since) + duty.every;
    Some(Why {
        id: name.to_owned(),
        kind: WhyKind::Duty.into(),
        as_of: now.into(),
        state: state.to_owned(),
        status: None,
        status_reason: None,
        since: Some(since.into()),
        since_unknown: None,
        name: name.to_owned(),
        run_id: None,
        run_name: None,
        verdict,
        rule: rule(
            "duty",
            format!(
                "a duty counts as late after three of its intervals ({every} s) and {} s",
                LATE_AFTER.as_secs()
            ),
        ),
        facts: told,
        next: vec![WhyNext {
            at: Some(due.into()),
            text: "it is due".to_owned(),
        }],
        changes: vec![change("see what the plane says of itself", "muster doctor")],
        ruled_out: Vec::new(),
        execution: None,
        attempts: None,
    })
}
