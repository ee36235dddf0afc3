//! An answer of 400 and above as a failure, with the hint that fits what was asked for.

use muster_wire::{Category, ErrorBody};

use super::Client;
use crate::failure::Failure;

impl Client {
    /// A failure from an answer to what was asked there. Where something was not found, the hint
    /// is the list that it would be in.
    pub(super) fn refused(&self, path: &str, status: u16, body: &[u8]) -> Failure {
        let failure = refusal(status, body);
        if failure.hint.is_some() || failure.body.error_category != Category::NotFound {
            return failure;
        }
        if failure.body.message.starts_with("there is no route") {
            let own = self.base.path().trim_end_matches('/');
            return match own.is_empty() {
                true => failure.hint(
                    "the plane is of another version than this command: `muster doctor` compares",
                ),
                false => failure.hint(format!(
                    "is {own} in --server or MUSTER_SERVER right? A plane's address ends with its port; `muster doctor` looks"
                )),
            };
        }
        match LISTED.iter().find(|(place, _)| path.starts_with(place)) {
            Some((_, command)) => failure.hint(format!("`{command}` lists them")),
            None => failure,
        }
    }

    pub(super) fn absent(&self, what: &str) -> Failure {
        Failure::new(
            Category::ControlPlaneUnavailable,
            format!("no plane answers at {}", self.address()),
        )
        .seen(what)
        .hint("start one with `muster dev` or `muster server`, or name it with --server URL")
    }

    pub(crate) fn gone(&self, what: &str) -> Failure {
        Failure::new(
            Category::ControlPlaneUnavailable,
            format!("the plane at {} went away", self.address()),
        )
        .seen(what)
    }
}

/// Where things are, and the command that lists them.
const LISTED: &[(&str, &str)] = &[
    ("/api/v1/webhooks/", "muster webhooks"),
    ("/api/v1/quarantine/", "muster quarantine"),
    ("/api/v1/keys/", "muster keys"),
    ("/api/v1/queues/", "muster queues"),
    ("/api/v1/approvals/", "muster approvals"),
    ("/api/v1/admin/agents/", "muster tags"),
    ("/api/v1/nodes/", "muster agents"),
    ("/api/v1/fleet/nodes/", "muster nodes"),
    ("/api/v1/fleet/workers/", "muster workers --ended"),
    ("/api/v1/runs/", "muster runs"),
    ("/api/v1/workflows/", "muster runs"),
    ("/api/v1/executions/", "muster executions"),
];

/// A failure from an answer of 400 and above.
pub(super) fn refusal(status: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) if body.error_category == Category::Unauthenticated => Failure::from(body)
            .hint("set MUSTER_API_KEY, or run this where the plane's data directory .muster is"),
        Ok(body) => Failure::from(body),
        Err(_) => Failure::new(
            Category::BadResponse,
            format!("the answer was {status} and not in the plane's error shape"),
        )
        .hint("is that address a muster plane? `muster doctor` looks"),
    }
}
