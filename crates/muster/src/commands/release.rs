//! `muster release`: ends a worker, or gives up one that waits for a place.

use serde_json::{Value, json};

use super::resolve::{self, Noun};
use super::spawn::duration;
use super::workers::{exit_word, node_of};
use super::{Asking, envelope, item};
use crate::cli::Release;
use crate::failure::Outcome;
use crate::out;

/// Releases.
pub(super) async fn run(asking: &Asking<'_>, args: &Release) -> Outcome<u8> {
    let id = resolve::id_for_good(asking, Noun::Worker, &args.worker).await?;
    let mut body = json!({"force": args.force, "reason": args.reason});
    if let Some(grace) = &args.grace {
        body["grace"] = json!(duration("--grace", grace)?);
    }
    let path = format!("{}/release", Noun::Worker.path(&id));
    let answer = asking.client.post(&path, &body).await?.json()?;
    let worker = answer
        .get("worker")
        .filter(|worker| worker.is_object())
        .unwrap_or(&answer);
    if asking.json {
        envelope::print_one("release", &answer);
        return Ok(0);
    }
    out::data(&said(worker));
    Ok(0)
}

pub(super) fn said(worker: &Value) -> String {
    let name = item::text(worker, &["name"]).unwrap_or_default();
    match item::state(worker).as_str() {
        "exited" => {
            let how = item::text(worker, &["ended_how"]).unwrap_or_default();
            match (how.as_str(), worker.get("exit")) {
                ("cancelled", _) => format!("{name} is given up; it had not started"),
                (_, Some(exit)) if exit.is_object() => {
                    format!("{name} has ended: {}", exit_word(exit))
                }
                _ => format!("{name} has ended"),
            }
        }
        state => format!(
            "{name} is {state} on {}: it is ended as soon as its machine can be told",
            node_of(worker)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_it_is_said_and_an_end_is_claimed_on_evidence_alone() {
        for (worker, says) in [
            (
                json!({"name": "a", "state": "exited", "exit": {"code": 0}}),
                "a has ended: exit 0",
            ),
            (
                json!({"name": "a", "state": "exited", "exit": {"signal": 9}}),
                "a has ended: signal 9",
            ),
            (
                json!({"name": "a", "state": "exited", "ended_how": "cancelled"}),
                "a is given up; it had not started",
            ),
            (
                json!({"name": "a", "state": "unknown", "node_name": "edge-1"}),
                "a is unknown on edge-1: it is ended as soon as its machine can be told",
            ),
        ] {
            assert_eq!(said(&worker), says);
        }
    }
}
