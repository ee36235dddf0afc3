//! `GET /api/v1/why/{id}`: the evidence behind where an execution, a run, an agent, a node or a
//! worker is.

use axum::extract::State;
use axum::http::StatusCode;
use muster_engine::effect::Why;
use muster_engine::event::Question;
use muster_engine::row::{AttemptRow, EventRow, ExecutionRow};
use muster_engine::{Event, Reply};
use muster_wire::{ExecutionId, RunId, Status};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::PathText;
use super::caller::Caller;
use super::execution_events;
use super::problem::{Answer, Problem};
use super::queues;
use super::show;
use super::write::{Writer, answer, string};
use crate::app::App;
use crate::auth::Need;
use crate::directory::{AgentEntry, liveness_of};

/// Events that are shown as evidence.
const EVIDENCE_MAX: usize = 200;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(why))
}

/// Why an execution, a run or an agent is where it is.
#[utoipa::path(
    get, path = "/api/v1/why/{id}", tag = "executions",
    params(("id" = String, Path, description = "An execution, a run or an agent")),
    responses(
        (status = 200, description = "Verdict, rule, evidence, and what happens next", body = serde_json::Value),
        (status = 404, description = "No execution, run or agent of this id"),
    )
)]
async fn why(State(app): State<App>, caller: Caller, PathText(id): PathText) -> Answer {
    let body = explain(&app, &caller, &id).await?;
    Ok(answer(StatusCode::OK, body.into()))
}

/// The evidence about whatever an id names, as JSON.
///
/// # Errors
/// 400 when it is no id, 404 when there is nothing of that id that the caller may see.
pub(crate) async fn explain(app: &App, caller: &Caller, id: &str) -> Result<Vec<u8>, Problem> {
    if caller.may(Need::Read)
        && let Some(body) = super::fleet::explain(app, id).await?
    {
        return Ok(body.to_string().into_bytes());
    }
    let execution = show::execution_id(id)?;
    if let Some(body) = of_execution(app, caller, &execution).await? {
        return Ok(body);
    }
    if let Some(entry) = app.directory.agent(id) {
        return agent(app, &entry).await;
    }
    // A run is where its root is.
    let run = RunId::trusted(execution.as_str());
    let root = app
        .blocking(move |stores| stores.decisions.run(&run))
        .await?
        .map(|run| run.root.id);
    let body = match root {
        Some(root) => of_execution(app, caller, &root).await?,
        None => None,
    };
    body.ok_or_else(|| {
        Problem::not_found(format!(
            "{execution} is no execution, no agent and no run; retention may have removed it"
        ))
    })
}

/// Why one execution is where it is; `None` when there is none that the caller may see.
async fn of_execution(
    app: &App,
    caller: &Caller,
    execution: &ExecutionId,
) -> Result<Option<Vec<u8>>, Problem> {
    let question = Question::Why(execution.clone());
    match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Why(Some(why)) if caller.sees(&why.row.principal) => {
            let (attempts, events) = evidence(app, execution).await?;
            return Ok(Some(open(&why, &attempts, &events)));
        }
        Reply::Why(_) | Reply::UnknownExecution => {}
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a question was answered {other:?}"
            )));
        }
    }
    let wanted = execution.clone();
    let (_, row) = app
        .blocking(move |stores| stores.decisions.execution(&wanted))
        .await?;
    match row.filter(|row| caller.sees(&row.principal)) {
        Some(row) => {
            let (attempts, events) = evidence(app, execution).await?;
            Ok(Some(past(&row, &attempts, &events)))
        }
        None => Ok(None),
    }
}

async fn evidence(
    app: &App,
    execution: &ExecutionId,
) -> Result<(Vec<AttemptRow>, Vec<EventRow>), Problem> {
    let wanted = execution.clone();
    Ok(app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let attempts = stores.decisions.attempts(&wanted)?;
            Ok((attempts, stores.decisions.events_of(&wanted, EVIDENCE_MAX)?))
        })
        .await?)
}

fn open(why: &Why, attempts: &[AttemptRow], events: &[EventRow]) -> Vec<u8> {
    let mut writer = Writer::object();
    writer
        .text("id", why.row.id.as_str())
        .text("kind", "execution")
        .text("state", why.row.status.word())
        .text_if("status_reason", why.row.status_reason.as_deref())
        .text("verdict", &why.verdict)
        .text("rule", &why.rule)
        .list("next", &why.next, |out, (at, what)| {
            let mut writer = Writer::object_in(out);
            writer.time_if("at", Some(*at)).text("what", what);
            writer.end()
        })
        .list("changes", &why.changes, |out, (what, command)| {
            let mut writer = Writer::object_in(out);
            writer.text("what", what).text("command", command);
            writer.end()
        })
        .list("ruled_out", why.ruled_out.iter().map(String::as_str), text);
    tail(&mut writer, &why.row, attempts, events);
    writer.end()
}

/// Why something ended as it did: its row, its attempts, its events.
fn past(row: &ExecutionRow, attempts: &[AttemptRow], events: &[EventRow]) -> Vec<u8> {
    let mut writer = Writer::object();
    writer
        .text("id", row.id.as_str())
        .text("kind", "execution")
        .text("state", row.status.word())
        .text_if("status_reason", row.status_reason.as_deref())
        .text("verdict", &verdict(row))
        .text("rule", rule(row));
    tail(&mut writer, row, attempts, events);
    writer.end()
}

fn verdict(row: &ExecutionRow) -> String {
    let target = format!("{}.{}", row.agent, row.function);
    let took = show::duration_ms(row).map_or_else(String::new, |ms| format!(" after {ms} ms"));
    let category = row
        .error_category
        .as_ref()
        .map_or("no category", |c| c.word());
    match row.status {
        Status::Succeeded => format!("{target} ended well{took}"),
        Status::Failed => format!("{target} failed{took}: {category}"),
        Status::Cancelled => format!(
            "{target} was cancelled{took}{}",
            row.status_reason
                .as_deref()
                .map_or_else(String::new, |why| format!(": {why}"))
        ),
        Status::Timeout => format!("{target} ran out of time{took}: {category}"),
        Status::Queued => format!("{target} waits in the queue of {}", row.agent),
        Status::Running | Status::Waiting | Status::Paused => {
            format!("{target} is {}", row.status)
        }
    }
}

fn rule(row: &ExecutionRow) -> &'static str {
    match row.status {
        Status::Queued => "it starts when a slot of its agent is free and its turn has come",
        Status::Running | Status::Waiting | Status::Paused => {
            "it ends by its agent's word or a clock"
        }
        Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout => {
            "the first end that is committed stands and never changes"
        }
    }
}

fn tail(writer: &mut Writer, row: &ExecutionRow, attempts: &[AttemptRow], events: &[EventRow]) {
    writer
        .raw("execution", &show::line(Vec::new(), row))
        .list("attempts", attempts, |out, attempt| {
            let mut writer = Writer::object_in(out);
            writer
                .number("n", attempt.n.into())
                .text("instance_id", attempt.instance.as_str())
                .time_if("sent_at", Some(attempt.sent_at))
                .time_if("accepted_at", attempt.accepted_at)
                .time_if("ended_at", attempt.ended_at)
                .text_if("outcome", attempt.outcome.map(|outcome| outcome.word()));
            writer.end()
        })
        .list("evidence", events, execution_events::line);
}

async fn agent(app: &App, entry: &AgentEntry) -> Result<Vec<u8>, Problem> {
    let state = queues::ask(app, entry.id.as_str()).await?;
    let now = app.clock.now();
    let limits = app.limits.clone();
    let best = entry.verdict(now, &limits);
    let unapproved = entry.unapproved();
    let mut writer = Writer::object();
    writer
        .text("id", entry.id.as_str())
        .text("kind", "agent")
        .text(
            "state",
            best.as_ref().map_or("down", |verdict| verdict.state.word()),
        )
        .text(
            "verdict",
            &format!(
                "{}{}",
                best.as_ref().map_or_else(
                    || format!("{} has no instance", entry.id),
                    |verdict| {
                        format!(
                            "{} is {}: {}",
                            entry.id,
                            verdict.state.word(),
                            verdict.evidence
                        )
                    },
                ),
                match (state.held, unapproved.is_empty()) {
                    (true, _) => "; it is on hold, so nothing is dispatched to it".to_owned(),
                    (false, true) => String::new(),
                    (false, false) => format!(
                        "; it is not called, because tags of it are not approved: {}",
                        unapproved.join(", ")
                    ),
                }
            ),
        )
        .text(
            "rule",
            if !state.held && !unapproved.is_empty() {
                "an agent that asks for a tag which needs an approval is not called before; `muster tags approve` approves"
            } else if state.held {
                "while a hold is set calls are queued; `muster unhold` lifts it"
            } else {
                "an agent is as good as its best instance"
            },
        )
        .value("queue", &queues::line(&state))
        .list("evidence", entry.instances().iter(), |out, instance| {
            let mut writer = Writer::object_in(out);
            writer.text("instance_id", instance.id.as_str());
            if let Some(facts) = instance.facts_now() {
                let verdict = facts.verdict(now, liveness_of(&limits, &entry.id));
                writer
                    .text("base_url", &facts.base_url)
                    .text("state", verdict.state.word())
                    .text("evidence", &verdict.evidence)
                    .time_if("at", Some(verdict.at));
            }
            writer.end()
        });
    Ok(writer.end())
}

fn text(mut out: Vec<u8>, text: &str) -> Vec<u8> {
    string(&mut out, text);
    out
}
