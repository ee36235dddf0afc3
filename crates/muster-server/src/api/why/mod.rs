//! `GET /api/v1/why/{id}`: the evidence behind where something is, in one order for everything:
//! the verdict, the facts oldest first, the rule, what happens next, what would change it, and
//! what it is not.

mod agent;
mod duty;
mod execution;
mod facts;
mod fleet;
mod rules;
pub(crate) mod sentence;

use axum::extract::State;
use axum::response::IntoResponse as _;
use muster_wire::api::why::{Why, WhyKind};
use muster_wire::{ExecutionId, RunId, Status};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use crate::app::App;
use crate::auth::Need;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(why))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked {
    kind: Option<String>,
}

/// Why something is where it is: an execution, a run, an agent, an instance, a queue, a node, a
/// worker or a duty.
#[utoipa::path(
    get, path = "/api/v1/why/{id}", tag = "executions",
    params(
        ("id" = String, Path, description = "What it is about"),
        ("kind" = Option<String>, Query, description = "execution, run, agent, instance, queue, node, worker or duty; needed only for a queue, whose id is its agent's"),
    ),
    responses(
        (status = 200, description = "Verdict, facts, rule, and what happens next", body = Why),
        (status = 404, description = "There is nothing of this id"),
    )
)]
async fn why(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(asked): Query<Asked>,
) -> Answer {
    let kind = match asked.kind.as_deref().filter(|word| !word.is_empty()) {
        None => None,
        Some(word) => Some(WhyKind::from_word(word).ok_or_else(|| {
            let all: Vec<&str> = WhyKind::ALL.iter().map(|kind| kind.word()).collect();
            Problem::validation(format!("kind: one of {}", all.join(", ")))
        })?),
    };
    Ok(axum::Json(explain(&app, &caller, &id, kind).await?).into_response())
}

/// The evidence about whatever an id names.
///
/// # Errors
/// 400 when it is no id, 404 when there is nothing of that id that the caller may see.
pub(crate) async fn explain(
    app: &App,
    caller: &Caller,
    id: &str,
    kind: Option<WhyKind>,
) -> Result<Why, Problem> {
    let is = |wanted: WhyKind| kind.is_none_or(|kind| kind == wanted);
    let reads = caller.may(Need::Read);
    if reads && (kind == Some(WhyKind::Node) || is(WhyKind::Node) && id.starts_with("node_")) {
        return fleet::node(app, id).await;
    }
    if reads && (kind == Some(WhyKind::Worker) || is(WhyKind::Worker) && id.starts_with("wrk_")) {
        return fleet::worker(app, id).await;
    }
    if reads && kind == Some(WhyKind::Duty) {
        return duty::of(app, id).ok_or_else(|| nothing(id));
    }
    let execution = show::execution_id(id)?;
    if is(WhyKind::Execution)
        && let Some(why) = execution::of(app, caller, &execution).await?
    {
        return Ok(why);
    }
    if reads && kind == Some(WhyKind::Queue) {
        return agent::queue(app, id).await;
    }
    if is(WhyKind::Agent)
        && let Some(entry) = app.directory.agent(id)
    {
        return agent::of(app, &entry).await;
    }
    if is(WhyKind::Run)
        && let Some(why) = run(app, caller, &execution).await?
    {
        return Ok(why);
    }
    if is(WhyKind::Instance)
        && let Some(why) = agent::instance(app, id)
    {
        return Ok(why);
    }
    let by_duty = || duty::of(app, id).filter(|_| reads && is(WhyKind::Duty));
    by_duty().ok_or_else(|| nothing(id))
}

fn nothing(id: &str) -> Problem {
    Problem::not_found(format!(
        "{id} is no execution, run, agent, instance, node, worker or duty; retention may have removed it"
    ))
}

/// A run is where its root is, or where the member is that holds it up.
async fn run(app: &App, caller: &Caller, id: &ExecutionId) -> Result<Option<Why>, Problem> {
    let wanted = RunId::trusted(id.as_str());
    let found = app
        .blocking(move |stores| stores.decisions.run(&wanted))
        .await?
        .filter(|run| caller.sees(&run.root.principal));
    let Some(run) = found else {
        return Ok(None);
    };
    let member = super::runs::holder_of(app, &run).await?;
    let member = member.as_ref().unwrap_or(&run.root);
    let Some(mut why) = execution::of(app, caller, &member.id).await? else {
        return Ok(None);
    };
    why.id = run.id.to_string();
    why.kind = WhyKind::Run.into();
    run.status.word().clone_into(&mut why.state);
    why.status = Some(run.status.word().to_owned());
    // Since when the member is there that holds it up; else its root tells.
    let since = match run.status {
        status if status.is_terminal() => run.ended_at,
        Status::Running if run.root.status != Status::Running || member.id != run.root.id => {
            Some(run.root.started_at.unwrap_or(run.root.created_at))
        }
        _ => why.since.map(|at| at.0),
    };
    why.since = since.map(Into::into);
    if since.is_some() {
        why.since_unknown = None;
    }
    why.name = format!("{}.{}", run.root.agent, run.root.function);
    if member.id != run.root.id {
        why.facts.push(facts::now(
            "plane",
            format!("{} of this run holds it up", member.id),
        ));
    }
    Ok(Some(why))
}
