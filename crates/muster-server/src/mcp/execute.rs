//! `execute_reasoner`: a call on the lane `mcp`, through the same reading, checks and admission
//! as on every other lane. Answers like the async one, and may wait for the end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_engine::Reply;
use muster_engine::effect::Receipt;
use muster_engine::row::ExecutionRow;
use muster_wire::{Lane, Status, Timestamp};
use serde_json::{Map, Value};

use super::answer::{End, Found, put, put_if};
use super::argument::{Argument, Arguments, Kind, optional, required};
use super::discover::TARGET_MAX;
use super::progress::Progress;
use super::runs::{self, ID_MAX};
use super::wait::{self, WAIT_MAX_S, Wanted};
use super::{output, shape};
use crate::api::call::{Asked, Call, Named};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::show;
use crate::api::submit::submit;
use crate::app::App;
use crate::bodies::Held;

/// The longest deadline that can be asked for: a year.
const DEADLINE_MAX_S: i64 = 366 * 24 * 3600;

/// What it takes.
pub(super) const ARGUMENTS: &[Argument] = &[
    required(
        "target",
        Kind::Text(TARGET_MAX),
        "agent.function, as discover_agents gives it.",
    ),
    optional(
        "input",
        Kind::Object,
        "The function's arguments by name; see get_reasoner_schema.",
    ),
    optional(
        "wait_seconds",
        Kind::Whole(0, WAIT_MAX_S),
        "Wait so long for the end and give the result; 0 (when absent) answers at once. Keep it below your client's own time-out.",
    ),
    optional(
        "idempotency_key",
        Kind::Line(256),
        "The same key with the same target and input joins the first call instead of calling again.",
    ),
    optional(
        "priority",
        Kind::Whole(0, 9),
        "Class in the agent's queue: 0 goes first; 5 when absent.",
    ),
    optional(
        "deadline_seconds",
        Kind::Whole(1, DEADLINE_MAX_S),
        "How long it may be at work before it ends as timeout.",
    ),
    optional(
        "run_id",
        Kind::Line(128),
        "Join this run instead of beginning one.",
    ),
    optional(
        "parent_execution_id",
        Kind::Line(ID_MAX),
        "The execution on whose behalf the call is made.",
    ),
    optional("session_id", Kind::Line(256), "The session it belongs to."),
    optional("actor_id", Kind::Line(256), "On whose behalf."),
    optional(
        "on_parent_end",
        Kind::Word(&["detach", "cancel"]),
        "What becomes of it when its parent ends; it goes on when absent.",
    ),
    optional(
        "context",
        Kind::Object,
        "Tells this call from others with the same input; llm_endpoint in it names the LLM endpoint it will need.",
    ),
];

/// A call, read.
pub(super) struct Order {
    call: Call,
    target: String,
    within: Duration,
}

impl Order {
    /// Reads a call from checked arguments, which are a part of `body`.
    ///
    /// # Errors
    /// 400 with a sentence.
    pub(super) fn read(
        given: &Arguments<'_>,
        body: &Bytes,
        caller: &Caller,
        trace: Option<Arc<str>>,
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let target = given.text("target").unwrap_or_default();
        let texts = [
            "run_id",
            "parent_execution_id",
            "idempotency_key",
            "session_id",
            "actor_id",
        ]
        .map(|name| (name, given.text(name)));
        let named = |at: usize| {
            let (name, text) = &texts[at];
            let text = text.as_deref()?;
            Some(Named { name, text })
        };
        let asked = Asked {
            target: &target,
            lane: Lane::Mcp,
            body,
            input: given.raw("input"),
            priority: given.raw("priority"),
            deadline: given.raw("deadline_seconds"),
            on_parent_end: given.raw("on_parent_end"),
            webhook: None,
            context: given.raw("context"),
            replay: None,
            run: named(0),
            parent: named(1),
            idempotency_key: named(2),
            session: named(3),
            actor: named(4),
            traceparent: trace,
        };
        Ok(Self {
            call: asked.check(caller, now)?,
            target,
            within: Duration::from_secs(given.count("wait_seconds").unwrap_or(0)),
        })
    }
}

/// Submits the call, and waits for its end where that was asked for.
pub(super) async fn run(
    app: &App,
    order: Order,
    held: Held,
    progress: &mut Progress,
) -> Result<End, Problem> {
    let Order {
        call,
        target,
        within,
    } = order;
    let receipt = match submit(app, call, held).await? {
        Reply::Accepted(receipt) => receipt,
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            let what = format!("a call of the mcp lane was answered {other:?}");
            return Err(Problem::internal(&what));
        }
    };
    let mut found = accepted(&receipt, &target);
    let mut leaving = false;
    if !within.is_zero() && !receipt.status.is_terminal() {
        let wanted = Wanted {
            run: receipt.run.clone(),
            execution: receipt.execution.clone(),
            whole: false,
        };
        // The call was taken: whatever goes wrong with the wait is no refusal of it.
        let end = wait::until(app, &wanted, within, progress).await;
        leaving = matches!(end, Ok(wait::End::Leaving));
    }
    if !within.is_zero() || receipt.status.is_terminal() {
        match runs::row_of(app, &receipt.execution).await {
            Ok(Some(row)) if row.status.is_terminal() => return Ok(ended(app, found, row).await),
            Ok(Some(row)) => put(&mut found, "status", row.status.word()),
            Ok(None) | Err(_) => {}
        }
    }
    put(&mut found, "done", false);
    put_if(&mut found, "shutting_down", leaving.then_some(true));
    let next = if within.is_zero() {
        "it goes on: call wait_run with the execution_id as id, or with the run_id as id for everything it calls"
    } else {
        wait::next(leaving)
    };
    put(&mut found, "next", next);
    Ok(End::Done(found))
}

fn accepted(receipt: &Receipt, target: &str) -> Found {
    let mut found = Map::new();
    put(&mut found, "execution_id", receipt.execution.as_str());
    put(&mut found, "run_id", receipt.run.as_str());
    put(&mut found, "status", receipt.status.word());
    put(&mut found, "target", target);
    put(&mut found, "type", receipt.kind.word());
    put(&mut found, "created_at", receipt.created_at.rfc3339());
    put(&mut found, "replayed", receipt.replayed);
    if let Some(position) = &receipt.position {
        put(&mut found, "queue_position", position.ahead);
        put(&mut found, "queue_position_exact", position.exact);
        put(&mut found, "starts_in_ms", position.starts_in_ms);
    }
    found
}

/// A call that ended: its result, or the error shape and the execution at once.
async fn ended(app: &App, mut found: Found, row: Arc<ExecutionRow>) -> End {
    for gone in ["queue_position", "queue_position_exact", "starts_in_ms"] {
        found.remove(gone);
    }
    put(&mut found, "status", row.status.word());
    put(&mut found, "done", true);
    // Where payloads cannot be read now, what is known is told all the same.
    let shown = match runs::whole(app, row.clone()).await {
        Ok(shown) => shown,
        Err(_) => shape::step(&row),
    };
    if row.status == Status::Succeeded {
        put(&mut found, "execution", shown);
        return End::Done(found);
    }
    let category = show::failure_category(&row);
    let said = shown.get("error_message").cloned();
    let message = said.unwrap_or_else(|| show::failure_text(row.status).into());
    put(&mut found, "error", category.word());
    put(&mut found, "error_category", category.word());
    put(&mut found, "message", message);
    put(&mut found, "execution", shown);
    End::Failed(found)
}

/// What it gives.
pub(super) fn schema() -> Value {
    output::object(
        8,
        vec![
            ("execution_id", output::text("The execution.")),
            ("run_id", output::text("Its run.")),
            ("status", shape::status_schema()),
            ("target", output::text("What was called.")),
            (
                "type",
                output::word(&["reasoner", "skill"], "What the function is."),
            ),
            ("created_at", output::text("When it was accepted.")),
            (
                "replayed",
                output::flag("Whether it joined an earlier call of the same idempotency_key."),
            ),
            ("done", output::flag("Whether it has ended.")),
            ("execution", shape::whole_schema()),
            (
                "queue_position",
                output::whole("How many are before it in its agent's queue."),
            ),
            (
                "queue_position_exact",
                output::flag("Whether that is exact; otherwise there are at least so many."),
            ),
            (
                "starts_in_ms",
                output::or_null(output::whole("An estimate; null when there is none.")),
            ),
            ("shutting_down", output::flag("The plane is about to stop.")),
            ("next", output::text("What to do now.")),
        ],
    )
}
