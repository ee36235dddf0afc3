//! Runs: the list, one, and the steps of one.

use axum::extract::State;
use axum::http::StatusCode;
use muster_engine::row::ExecutionRow;
use muster_store::{ExecutionFilter, Page, RunFilter, RunSummary};
use muster_wire::api::run::{Run, RunList};
use muster_wire::api::steps::Steps;
use muster_wire::{AgentId, RunId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query};
use super::caller::Caller;
use super::executions::{statuses, time};
use super::paging;
use super::problem::{Answer, Problem};
use super::show;
use super::stamp::Stamp;
use super::usage;
use super::write::Writer;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(steps))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Filter {
    status: Option<String>,
    agent: Option<String>,
    since: Option<String>,
    until: Option<String>,
    q: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Runs, newest first.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs",
    params(
        ("status" = Option<String>, Query, description = "Words, separated by commas"),
        ("agent" = Option<String>, Query, description = "The root's agent"),
        ("since" = Option<String>, Query), ("until" = Option<String>, Query),
        ("q" = Option<String>, Query, description = "Beginning or end of an id"),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, description = "A page", body = RunList))
)]
async fn list(State(app): State<App>, Query(asked): Query<Filter>) -> Answer {
    let page = paging::page(asked.limit, asked.cursor.as_deref())?;
    let agent = asked.agent.as_deref().map(AgentId::parse).transpose();
    let filter = RunFilter {
        statuses: statuses(asked.status.as_deref())?,
        agent: agent.map_err(|error| Problem::validation(format!("agent: {error}")))?,
        since: time("since", asked.since.as_deref())?,
        until: time("until", asked.until.as_deref())?,
        id_part: asked.q.filter(|q| !q.is_empty()),
    };
    let stamp = Stamp::now(&app);
    let (runs, next) = page_of(&app, filter, page).await?;
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    writer
        .list("runs", &runs, summary)
        .number("count", i64::try_from(runs.len()).unwrap_or(i64::MAX))
        .text_if("next_cursor", next.as_deref());
    Ok(writer.answer(StatusCode::OK))
}

/// One page of runs, and the cursor of the next.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn page_of(
    app: &App,
    filter: RunFilter,
    page: Page,
) -> Result<(Vec<RunSummary>, Option<String>), Problem> {
    let limit = page.limit;
    let runs = app
        .blocking(move |stores| stores.decisions.runs(&filter, &page))
        .await?;
    let last = runs.last().filter(|_| runs.len() == limit);
    let next = last.map(|run| paging::cursor(run.root.created_at, run.root.id.as_str()));
    Ok((runs, next))
}

/// One run.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "The run")),
    responses(
        (status = 200, description = "The run", body = Run),
        (status = 404, description = "No such run"),
    )
)]
async fn one(State(app): State<App>, caller: Caller, PathText(run): PathText) -> Answer {
    let stamp = Stamp::now(&app);
    let run = known(&app, &caller, &run).await?;
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    members(&mut writer, &run);
    let id = run.id.clone();
    let usage = app
        .blocking(move |stores| usage::of_run(&*stores.decisions, &id))
        .await?;
    writer.raw("usage", &serde_json::to_vec(&usage).unwrap_or_default());
    Ok(writer.answer(StatusCode::OK))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StepsAsked {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The executions of a run, oldest first: parents come before their children.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/steps", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "A page, or columns", body = Steps),
        (status = 404, description = "No such run"),
    )
)]
async fn steps(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(asked): Query<StepsAsked>,
) -> Answer {
    let page = paging::page(asked.limit, asked.cursor.as_deref())?;
    let run = known(&app, &caller, &run).await?;
    let (rows, next) = steps_of(&app, &run.id, page).await?;
    let mut writer = Writer::object();
    writer
        .text("run_id", run.id.as_str())
        .text("status", run.status.word())
        .list("steps", &rows, show::line)
        .text_if("next_cursor", next.as_deref());
    Ok(writer.answer(StatusCode::OK))
}

/// One page of the executions of a run, oldest first, and the cursor of the next.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn steps_of(
    app: &App,
    run: &RunId,
    page: Page,
) -> Result<(Vec<ExecutionRow>, Option<String>), Problem> {
    let filter = ExecutionFilter {
        run: Some(run.clone()),
        oldest_first: true,
        ..ExecutionFilter::default()
    };
    let limit = page.limit;
    let rows = app
        .blocking(move |stores| stores.decisions.executions(&filter, &page))
        .await?;
    let last = rows.last().filter(|_| rows.len() == limit);
    let next = last.map(|row| paging::cursor(row.created_at, row.id.as_str()));
    Ok((rows, next))
}

async fn known(app: &App, caller: &Caller, run: &str) -> Result<RunSummary, Problem> {
    let id = RunId::parse(run).map_err(|e| Problem::validation(format!("run id: {e}")))?;
    let wanted = id.clone();
    let run = app
        .blocking(move |stores| stores.decisions.run(&wanted))
        .await?;
    run.filter(|run| caller.sees(&run.root.principal))
        .ok_or_else(|| Problem::not_found(format!("there is no run {id}")))
}

fn summary(out: Vec<u8>, run: &RunSummary) -> Vec<u8> {
    let mut writer = Writer::object_in(out);
    members(&mut writer, run);
    writer.end()
}

/// What is known of a run, as members of an object.
fn members(writer: &mut Writer, run: &RunSummary) {
    let links = run.root.links.as_deref();
    let replay = links.and_then(|links| links.replay.as_ref());
    let source = replay.map(|replay| replay.source.as_str());
    let ended_at = run.root.ended_at.filter(|_| run.status.is_terminal());
    let total: u64 = run.counts.iter().map(|(_, count)| count).sum();
    writer
        .text("run_id", run.id.as_str())
        .text("name", &format!("{}.{}", run.root.agent, run.root.function))
        .text("status", run.status.word())
        .text("state", run.status.word())
        .time_if("started_at", Some(run.root.created_at))
        .time_if("ended_at", ended_at)
        .number("executions", i64::try_from(total).unwrap_or(i64::MAX))
        .value(
            "counts",
            &run.counts
                .iter()
                .map(|(status, count)| (status.word(), *count))
                .collect::<std::collections::BTreeMap<_, _>>(),
        )
        .time_if("cancelled_at", run.cancelled_at)
        .text_if("source_run_id", source)
        .raw("root", &show::line(Vec::new(), &run.root));
    if let Some(ended_at) = ended_at {
        let took = ended_at.since(run.root.created_at).as_millis();
        writer.number("took_ms", i64::try_from(took).unwrap_or(i64::MAX));
    }
}
