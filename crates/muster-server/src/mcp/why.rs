//! `why`: the same evidence as over the API, as a tool gives it.

use serde_json::{Value, json};

use super::answer::Found;
use super::argument::{Argument, Arguments, Kind, required};
use super::output;
use super::runs::ID_MAX;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::why;
use crate::app::App;

/// What it takes.
pub(super) const ARGUMENTS: &[Argument] = &[required(
    "id",
    Kind::Text(ID_MAX),
    "A run_id, an execution_id or an agent_id.",
)];

/// What is asked about.
pub(super) struct Why(String);

impl Why {
    pub(super) fn read(given: &Arguments<'_>) -> Self {
        Self(given.text("id").unwrap_or_default())
    }
}

/// Explains where something stands.
pub(super) async fn run(app: &App, caller: &Caller, Why(id): &Why) -> Result<Found, Problem> {
    let why = why::explain(app, caller, id, None).await?;
    match serde_json::to_value(why).map_err(|error| Problem::internal(&error))? {
        Value::Object(found) => Ok(found),
        _ => Err(Problem::internal(&"an explanation is no object")),
    }
}

/// What it gives. Evidence is shown as the API shows it, so there may be more of it.
pub(super) fn schema() -> Value {
    let items = json!({"type": "object"});
    let mut schema = output::object(
        5,
        vec![
            ("id", output::text("What it is about.")),
            ("kind", output::text("execution or agent.")),
            ("state", output::text("Where it stands.")),
            ("verdict", output::text("Why, in a sentence.")),
            (
                "rule",
                json!({"type": "object", "description": "The rule behind it: text with its numbers, and where it is written down."}),
            ),
            ("name", output::text("What it is called.")),
            (
                "status_reason",
                output::text("A finer word than the state."),
            ),
            (
                "next",
                output::list(items.clone(), "What happens next, and when."),
            ),
            (
                "changes",
                output::list(items.clone(), "What would change it."),
            ),
            ("ruled_out", output::list(items.clone(), "What it is not.")),
            (
                "execution",
                json!({"type": "object", "description": "The execution."}),
            ),
            (
                "attempts",
                output::list(items.clone(), "How often it was sent, and how that went."),
            ),
            ("facts", output::list(items, "What was seen, oldest first.")),
        ],
    );
    schema["additionalProperties"] = true.into();
    schema
}
