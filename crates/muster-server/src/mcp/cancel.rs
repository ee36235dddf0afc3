//! `cancel_run`: the same ends of one execution and of a whole run as over the API.

use std::sync::Arc;

use muster_wire::RunId;
use serde_json::{Map, Value};

use super::answer::{Found, put};
use super::argument::{Argument, Arguments, Kind, optional};
use super::output;
use super::runs::{self, ID};
use crate::api::caller::Caller;
use crate::api::cancel::{self, REASON_MAX, Stopped};
use crate::api::problem::Problem;
use crate::api::show;
use crate::app::App;

/// What it takes.
pub(super) const ARGUMENTS: &[Argument] = &[
    ID,
    optional(
        "reason",
        Kind::Text(REASON_MAX),
        "Why; kept with the record and told to the agents.",
    ),
];

/// A wish to stop something.
pub(super) struct Cancel {
    id: String,
    reason: Option<Arc<str>>,
}

impl Cancel {
    pub(super) fn read(given: &Arguments<'_>) -> Self {
        Self {
            id: given.text("id").unwrap_or_default(),
            reason: given.text("reason").map(Into::into),
        }
    }
}

/// Stops an execution, or a run with everything in it.
pub(super) async fn run(app: &App, caller: &Caller, asked: Cancel) -> Result<Found, Problem> {
    let execution = show::execution_id(&asked.id)?;
    let is_execution = runs::row_of(app, &execution).await?.is_some();
    let mut found = Map::new();
    let stopped = if is_execution {
        put(&mut found, "execution_id", execution.as_str());
        cancel::one(app, caller, &execution, asked.reason).await?
    } else {
        let run = RunId::parse(&asked.id);
        let run = run.map_err(|error| Problem::validation(format!("id: {error}")))?;
        put(&mut found, "run_id", run.as_str());
        cancel::tree(app, caller, &run, asked.reason).await?
    };
    let Stopped { ended, told } = stopped;
    let ended: Vec<&str> = ended.iter().map(|id| id.as_str()).collect();
    put(&mut found, "status", "cancelled");
    put(&mut found, "cancelled", ended);
    put(&mut found, "told", told);
    Ok(found)
}

/// What it gives.
pub(super) fn schema() -> Value {
    let ids = output::list(
        serde_json::json!({"type": "string"}),
        "Executions that ended by it.",
    );
    output::object(
        3,
        vec![
            ("status", output::word(&["cancelled"], "Always cancelled.")),
            ("cancelled", ids),
            ("told", output::whole("Agents that are being told to stop.")),
            ("run_id", output::text("The run, when a run was cancelled.")),
            (
                "execution_id",
                output::text("The execution, when one was cancelled."),
            ),
        ],
    )
}
