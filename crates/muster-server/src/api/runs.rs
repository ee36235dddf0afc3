//! Runs: the list, one, and the steps of one.

mod detail;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use muster_engine::row::ExecutionRow;
use muster_store::{ExecutionFilter, Page, RunFilter, RunSummary, Stores};
use muster_wire::api::execution::ExecutionCounts;
use muster_wire::api::run::{Run, RunList};
use muster_wire::api::steps::{StepGroups, Steps};
use muster_wire::{AgentId, FunctionName, RunId, Status, WaitCause};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query};
use super::caller::Caller;
use super::filters::{Asked, words};
use super::paging;
use super::problem::{Answer, Problem};
use super::show;
use super::stamp::Stamp;
use super::steps;
use super::usage;
use super::why::sentence;
use super::write::Writer;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(some_steps))
        .routes(routes!(groups))
}

/// Runs, newest first.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs",
    params(
        ("status" = Option<String>, Query, description = "Words, separated by commas"),
        ("state" = Option<String>, Query, description = "Words, separated by commas: exactly as a run's `state` says. `status=running` finds every run with an open member"),
        ("agent" = Option<String>, Query, description = "The root's agent"),
        ("function" = Option<String>, Query, description = "The root's function"),
        ("category" = Option<String>, Query, description = "The root's error category"),
        ("reason" = Option<String>, Query, description = "A finer word of the root"),
        ("label" = Option<String>, Query, description = "session=… or actor=…"),
        ("origin" = Option<String>, Query, description = "dev, server or ci"),
        ("since" = Option<String>, Query, description = "RFC 3339; of what ended, only what ended at or after. What is open is always there"),
        ("until" = Option<String>, Query, description = "RFC 3339; of what ended, only what ended before"),
        ("q" = Option<String>, Query, description = "Beginning or end of an id, or a part of agent.function"),
        ("sort" = Option<String>, Query, description = "started"),
        ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, description = "A page", body = RunList))
)]
async fn list(State(app): State<App>, Query(asked): Query<Asked>) -> Answer {
    let page = paging::page(asked.limit, asked.cursor.as_deref())?;
    let filter = filter(&asked)?;
    let wanted = wanted(&filter);
    let stamp = Stamp::now(&app);
    let counted = filter.clone();
    let counts: ExecutionCounts = app
        .blocking(move |stores| stores.decisions.run_counts(&counted))
        .await?
        .into_iter()
        .collect();
    let (runs, next) = page_of(&app, filter, page).await?;
    let whys = whys(&app, &runs).await?;
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    writer
        .list("runs", runs.iter().zip(&whys), |out, (run, why)| {
            let mut writer = Writer::object_in(out);
            members(&mut writer, run);
            writer.text_if("why", why.as_deref());
            writer.end()
        })
        .number("count", i64::try_from(runs.len()).unwrap_or(i64::MAX))
        .value("counts", &counts)
        .value(
            "total",
            &wanted.map_or(0, |states| counts.of_states(&states)),
        )
        .text_if("next_cursor", next.as_deref());
    Ok(writer.answer(StatusCode::OK))
}

/// The states that a filter lets through, none named for all; `None` when there is no such one.
fn wanted(filter: &RunFilter) -> Option<Vec<Status>> {
    let running = filter.statuses.contains(&Status::Running);
    let fits = |state: &Status| {
        let by_status = filter.statuses.is_empty()
            || filter.statuses.contains(state)
            || (running && !state.is_terminal());
        by_status && (filter.states.is_empty() || filter.states.contains(state))
    };
    let states: Vec<Status> = Status::ALL.iter().copied().filter(fits).collect();
    (!states.is_empty()).then_some(states)
}

fn filter(asked: &Asked) -> Result<RunFilter, Problem> {
    if asked.run_id.is_some() || asked.parent_execution_id.is_some() || asked.order.is_some() {
        return Err(Problem::validation(
            "run_id, parent_execution_id and order narrow executions, not runs",
        ));
    }
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let agent = given(&asked.agent)
        .map(|id| AgentId::parse(&id))
        .transpose();
    let function = given(&asked.function)
        .map(|name| FunctionName::parse(&name))
        .transpose();
    Ok(RunFilter {
        statuses: words("status", asked.status.as_deref())?,
        states: asked.states()?,
        agent: agent.map_err(|error| Problem::validation(format!("agent: {error}")))?,
        function: function.map_err(|error| Problem::validation(format!("function: {error}")))?,
        category: asked.category()?,
        also: asked.also()?,
        ..RunFilter::default()
    })
}

/// Why each of these runs waits, or did not end well: by its root, or by the member that holds
/// it up.
async fn whys(app: &App, runs: &[RunSummary]) -> Result<Vec<Option<String>>, Problem> {
    let wanted: Vec<Option<RunId>> = runs
        .iter()
        .map(|run| {
            let held = run.counts.iter().any(|(status, count)| {
                *count > 0 && matches!(status, Status::Queued | Status::Waiting | Status::Paused)
            });
            let open = !run.status.is_terminal() && !sentence::is_held_up(&run.root);
            (open && held).then(|| run.id.clone())
        })
        .collect();
    let holders = app
        .blocking(move |stores| -> muster_store::StoreResult<Vec<_>> {
            wanted
                .iter()
                .map(|run| run.as_ref().map_or(Ok(None), |run| holder(stores, run)))
                .collect()
        })
        .await?;
    let explained: Vec<&ExecutionRow> = runs
        .iter()
        .zip(&holders)
        .map(|(run, holder)| holder.as_ref().unwrap_or(&run.root))
        .collect();
    let verdicts = sentence::verdicts(app, explained.iter().copied()).await?;
    Ok(explained
        .iter()
        .map(|row| sentence::of(row, &verdicts))
        .collect())
}

/// The member that holds a run up, if it is one below its root.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn holder_of(
    app: &App,
    run: &RunSummary,
) -> Result<Option<ExecutionRow>, Problem> {
    if run.status.is_terminal() || sentence::is_held_up(&run.root) {
        return Ok(None);
    }
    let id = run.id.clone();
    Ok(app.blocking(move |stores| holder(stores, &id)).await?)
}

/// The member that holds a run up: one that waits for a person before one that waits for a slot.
fn holder(stores: &Stores, run: &RunId) -> muster_store::StoreResult<Option<ExecutionRow>> {
    let page = Page {
        after: None,
        limit: 20,
    };
    let filter = ExecutionFilter {
        run: Some(run.clone()),
        statuses: vec![Status::Waiting, Status::Paused, Status::Queued],
        oldest_first: true,
        ..ExecutionFilter::default()
    };
    let rows = stores.decisions.executions(&filter, &page)?;
    Ok(rows.into_iter().min_by_key(|row| match &row.wait {
        Some(wait) if wait.cause == WaitCause::Approval => 0,
        Some(_) => 2,
        None => 1,
    }))
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
    let why = whys(&app, std::slice::from_ref(&run))
        .await?
        .pop()
        .flatten();
    let detail = detail::of(&app, &run).await?;
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    members(&mut writer, &run);
    let id = run.id.clone();
    let usage = app
        .blocking(move |stores| usage::of_run(&*stores.decisions, &id))
        .await?;
    writer.raw("usage", &serde_json::to_vec(&usage).unwrap_or_default());
    writer.text_if("why", why.as_deref());
    detail.write(&mut writer);
    Ok(writer.answer(StatusCode::OK))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StepsAsked {
    view: Option<String>,
    after: Option<String>,
    after_position: Option<String>,
    ids: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The executions of a run, oldest first: parents come before their children.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/steps", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("view" = Option<String>, Query, description = "columns: without payloads, for a drawing"),
        ("after" = Option<String>, Query, description = "In columns: behind this step, as `next` said"),
        ("after_position" = Option<String>, Query, description = "In columns: only what changed since, as `position` said"),
        ("ids" = Option<String>, Query, description = "In columns: only these, separated by commas; at most 500"),
        ("limit" = Option<usize>, Query, description = "At most 500; in columns 2,000"),
        ("cursor" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "A page, or columns", body = Steps),
        (status = 404, description = "No such run"),
    )
)]
async fn some_steps(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(asked): Query<StepsAsked>,
) -> Answer {
    match asked.view.as_deref() {
        None | Some("") => {}
        Some("columns") => {
            let wanted = steps::Wanted::read(
                &app,
                asked.after.as_deref(),
                asked.after_position.as_deref(),
                asked.ids.as_deref(),
                asked.limit,
            )?;
            let run = known(&app, &caller, &run).await?;
            let columns = steps::columns(&app, &run, wanted).await?;
            return Ok(axum::Json(columns).into_response());
        }
        Some(_) => return Err(Problem::validation("view is columns, or absent")),
    }
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

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GroupsAsked {
    parent: Option<String>,
}

/// The executions of a run, grouped by what called them and what they call: for runs with more
/// steps than anybody draws.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/groups", tag = "runs",
    params(
        ("run" = String, Path, description = "The run"),
        ("parent" = Option<String>, Query, description = "Only what this execution called"),
    ),
    responses(
        (status = 200, description = "Its groups, the largest first", body = StepGroups),
        (status = 404, description = "No such run"),
    )
)]
async fn groups(
    State(app): State<App>,
    caller: Caller,
    PathText(run): PathText,
    Query(asked): Query<GroupsAsked>,
) -> Answer {
    let parent = asked.parent.filter(|parent| !parent.is_empty());
    let parent = parent.map(|id| show::execution_id(&id)).transpose()?;
    let run = known(&app, &caller, &run).await?;
    let groups = steps::grouped(&app, &run, parent).await?;
    Ok(axum::Json(groups).into_response())
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

/// What is known of a run, as members of an object.
fn members(writer: &mut Writer, run: &RunSummary) {
    let links = run.root.links.as_deref();
    let replay = links.and_then(|links| links.replay.as_ref());
    let source = replay.map(|replay| replay.source.as_str());
    let ended_at = run.ended_at;
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
