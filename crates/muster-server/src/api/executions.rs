//! Executions: the poll of one, the list, the attempts of one.

use axum::extract::State;
use axum::http::StatusCode;
use muster_engine::row::{EventKind, ExecutionRow};
use muster_store::ExecutionFilter;
use muster_store::outbox::DeliveryFilter;
use muster_wire::api::execution::{
    AttemptList, Execution, ExecutionCounts, ExecutionList, FailedDial,
};
use muster_wire::{AgentId, ExecutionId, FunctionName, RunId, Timestamp, WaitCause};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals::status_word;
use super::body::{PathText, Query};
use super::caller::Caller;
use super::filters::{Asked, words};
use super::paging;
use super::problem::{Answer, Problem};
use super::show::{self, ApprovalShown, Beside, Successor};
use super::stamp::Stamp;
use super::webhooks::MessageShown;
use super::why::sentence;
use super::write::{Writer, answer};
use crate::app::App;
use crate::auth::Need;

/// Events that are looked through for dials that failed.
const DIALS_MAX: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(one))
        .routes(routes!(list))
        .routes(routes!(attempts))
}

#[derive(serde::Deserialize, Default)]
struct OneAsked {
    payload: Option<String>,
}

/// One execution. A known id is never 404.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("payload" = Option<String>, Query, description = "none: without its result and the details of its failure"),
    ),
    responses(
        (status = 200, description = "The execution, with its result when it ended", body = Execution),
        (status = 404, description = "No such execution"),
    )
)]
async fn one(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(asked): Query<OneAsked>,
) -> Answer {
    let execution = show::execution_id(&id)?;
    let without = match asked.payload.as_deref() {
        None | Some("") => false,
        Some("none") => true,
        Some(_) => return Err(Problem::validation("payload is none, or absent")),
    };
    let found = if without {
        show::find_row(&app, &execution).await?
    } else {
        show::find(&app, &execution).await?
    };
    let view = found
        .filter(|view| caller.sees(&view.row.principal))
        .ok_or_else(|| show::unknown_execution(&execution))?;
    let room = 768 + view.result.as_ref().map_or(0, |result| result.len());
    let verdicts = sentence::verdicts(&app, std::iter::once(&*view.row)).await?;
    let beside = Beside {
        as_of: without.then(|| app.clock.now()),
        without,
        sizes: show::Sizes::of(&app, &view.row).await?,
        why: sentence::of(&view.row, &verdicts),
        restarted_as: successor(&app, &view.row).await?,
        webhook_events: webhook_events(&app, &view.row).await?,
        approval: approval(&app, &view.row).await?,
    };
    let body = show::whole_with(Vec::with_capacity(room), &view, &beside);
    Ok(answer(StatusCode::OK, body.into()))
}

/// By what it was run again, while that is there.
async fn successor(app: &App, row: &ExecutionRow) -> Result<Option<Successor>, Problem> {
    let links = row.links.as_ref();
    let Some(id) = links.and_then(|links| links.restarted_as.clone()) else {
        return Ok(None);
    };
    let run = match app.views.get(id.as_str()) {
        Some(view) => Some(view.row.run.clone()),
        None => {
            let wanted = id.clone();
            let found = app
                .blocking(move |stores| stores.decisions.execution(&wanted))
                .await?;
            found.1.map(|row| row.run)
        }
    };
    Ok(run.map(|run_id| Successor {
        execution_id: id,
        run_id,
    }))
}

/// What it asked a person last. Of one that waits it is in the row, so that polls of its caller
/// read no store; of one that asked nothing lately nothing is looked up.
async fn approval(app: &App, row: &ExecutionRow) -> Result<Option<ApprovalShown>, Problem> {
    let waits = row
        .wait
        .as_deref()
        .filter(|wait| wait.cause == WaitCause::Approval);
    if let Some(wait) = waits
        && let Some(url) = app.approvals.page(&row.id, &wait.reference)
    {
        return Ok(Some(ApprovalShown {
            request: wait.reference.clone(),
            status: "pending",
            url,
        }));
    }
    let reason = row.status_reason.as_deref().unwrap_or_default();
    if waits.is_none() && !reason.starts_with("approval_") && !app.approvals.asked(&row.id) {
        return Ok(None);
    }
    let id = row.id.clone();
    let (_, found) = app
        .blocking(move |stores| stores.decisions.approvals_named(Some(&id), None))
        .await?;
    let Some(latest) = found.into_iter().next_back() else {
        return Ok(None);
    };
    app.approvals
        .remember(&row.id, latest.request.clone(), latest.request_url.clone());
    Ok(Some(ApprovalShown {
        status: status_word(&latest),
        request: latest.request,
        url: latest.request_url,
    }))
}

/// What became of the messages for its webhook; `None` while there can be none.
async fn webhook_events(
    app: &App,
    row: &ExecutionRow,
) -> Result<Option<Vec<MessageShown>>, Problem> {
    if !show::has_webhook(row) || !row.status.is_terminal() {
        return Ok(None);
    }
    let filter = DeliveryFilter {
        execution: Some(row.id.clone()),
        ..DeliveryFilter::default()
    };
    let found = app
        .blocking(move |stores| stores.decisions.deliveries(&filter, paging::LIMIT))
        .await?;
    let shown = found.into_iter().map(|found| MessageShown::of(app, found));
    Ok(Some(shown.collect()))
}

/// Executions, newest first.
#[utoipa::path(
    get, path = "/api/v1/executions", tag = "executions",
    params(
        ("status" = Option<String>, Query, description = "Words, separated by commas"),
        ("agent" = Option<String>, Query, description = "Ids, separated by commas"),
        ("function" = Option<String>, Query),
        ("run_id" = Option<String>, Query), ("parent_execution_id" = Option<String>, Query),
        ("state" = Option<String>, Query, description = "The same as status"),
        ("category" = Option<String>, Query, description = "Error category"),
        ("error_category" = Option<String>, Query, description = "The same as category"),
        ("reason" = Option<String>, Query, description = "A finer word: of its status, or of what it waits for"),
        ("label" = Option<String>, Query, description = "session=… or actor=…"),
        ("origin" = Option<String>, Query, description = "dev, server or ci"),
        ("since" = Option<String>, Query, description = "RFC 3339; of what ended, only what ended at or after. What is open is always there"),
        ("until" = Option<String>, Query, description = "RFC 3339; of what ended, only what ended before"),
        ("q" = Option<String>, Query, description = "Beginning or end of an id, or a part of agent.function"),
        ("sort" = Option<String>, Query, description = "started"),
        ("order" = Option<String>, Query, description = "newest (default) or oldest"),
        ("limit" = Option<usize>, Query, description = "At most 500"),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, description = "A page", body = ExecutionList))
)]
async fn list(State(app): State<App>, Query(asked): Query<Asked>) -> Answer {
    let page = paging::page(asked.limit, asked.cursor.as_deref())?;
    let filter = filter(&asked)?;
    let (limit, wanted) = (page.limit, filter.statuses.clone());
    let stamp = Stamp::now(&app);
    let (rows, counts) = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let rows = stores.decisions.executions(&filter, &page)?;
            Ok((rows, stores.decisions.execution_counts(&filter)?))
        })
        .await?;
    let next = rows.last().filter(|_| rows.len() == limit);
    let next = next.map(|row| paging::cursor(row.created_at, row.id.as_str()));
    let verdicts = sentence::verdicts(&app, rows.iter()).await?;
    let counts: ExecutionCounts = counts.into_iter().collect();
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    writer
        .list("executions", &rows, |out, row| {
            show::line_why(out, row, sentence::of(row, &verdicts).as_deref())
        })
        .number("count", i64::try_from(rows.len()).unwrap_or(i64::MAX))
        .value("counts", &counts)
        .value("total", &counts.of_states(&wanted))
        .text_if("next_cursor", next.as_deref());
    Ok(writer.answer(StatusCode::OK))
}

fn filter(asked: &Asked) -> Result<ExecutionFilter, Problem> {
    fn id<T>(
        name: &str,
        text: Option<&String>,
        read: impl Fn(&str) -> Result<T, muster_wire::id::IdError>,
    ) -> Result<Option<T>, Problem> {
        text.filter(|text| !text.is_empty())
            .map(|text| read(text))
            .transpose()
            .map_err(|error| Problem::validation(format!("{name}: {error}")))
    }
    let (mut statuses, states) = (words("status", asked.status.as_deref())?, asked.states()?);
    if statuses.is_empty() {
        statuses = states;
    } else if !states.is_empty() {
        statuses.retain(|status| states.contains(status));
        if statuses.is_empty() {
            return Err(Problem::validation(
                "status and state name nothing in common; one of them is enough",
            ));
        }
    }
    Ok(ExecutionFilter {
        statuses,
        agents: agents(asked.agent.as_deref())?,
        function: id("function", asked.function.as_ref(), FunctionName::parse)?,
        run: id("run_id", asked.run_id.as_ref(), RunId::parse)?,
        parent: id(
            "parent_execution_id",
            asked.parent_execution_id.as_ref(),
            ExecutionId::parse,
        )?,
        category: asked.category()?,
        since: None,
        until: None,
        oldest_first: match asked.order.as_deref() {
            None | Some("" | "newest") => false,
            Some("oldest") => true,
            Some(_) => return Err(Problem::validation("order is newest or oldest")),
        },
        id_part: None,
        also: asked.also()?,
    })
}

/// Agents that a list is narrowed to at most.
const AGENTS_MAX: usize = 500;

/// Ids of agents, separated by commas.
fn agents(text: Option<&str>) -> Result<Vec<AgentId>, Problem> {
    let ids = text.unwrap_or_default().split(',').map(str::trim);
    let ids = ids.filter(|id| !id.is_empty()).map(|id| {
        AgentId::parse(id).map_err(|error| Problem::validation(format!("agent: {error}")))
    });
    let ids: Vec<AgentId> = ids.collect::<Result<_, _>>()?;
    if ids.len() > AGENTS_MAX {
        return Err(Problem::validation(format!(
            "agent: at most {AGENTS_MAX} ids"
        )));
    }
    Ok(ids)
}

/// A moment in RFC 3339.
///
/// # Errors
/// 400.
pub(crate) fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    text.filter(|text| !text.is_empty())
        .map(|text| {
            Timestamp::parse(text).ok_or_else(|| {
                Problem::validation(format!("{name}: a moment like 2026-01-31T12:00:00Z"))
            })
        })
        .transpose()
}

/// The attempts of an execution, first first. Secrets are not in it.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}/attempts", tag = "executions",
    params(("id" = String, Path, description = "The execution")),
    responses(
        (status = 200, description = "Its attempts", body = AttemptList),
        (status = 404, description = "No such execution"),
    )
)]
async fn attempts(State(app): State<App>, caller: Caller, PathText(id): PathText) -> Answer {
    let execution = show::execution_id(&id)?;
    let wanted = execution.clone();
    let (row, attempts, events) = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let store = &stores.decisions;
            let (_, row) = store.execution(&wanted)?;
            Ok((
                row,
                store.attempts(&wanted)?,
                store.events_of(&wanted, DIALS_MAX)?,
            ))
        })
        .await?;
    let dials: Vec<FailedDial> = events
        .iter()
        .filter(|event| event.kind == EventKind::ExecutionAbsorbed)
        .map(|event| FailedDial {
            at: event.at.into(),
            instance_id: event.instance.clone(),
            attempt: event.attempt,
            text: event.text.as_deref().map(str::to_owned),
        })
        .collect();
    if row.is_none_or(|row| !caller.sees(&row.principal)) {
        return Err(show::unknown_execution(&execution));
    }
    // Evidence is the agent's own text: it is shown to those who may read results.
    let with_evidence = caller.may(Need::Results);
    let mut writer = Writer::object();
    writer
        .text("execution_id", execution.as_str())
        .time_if("as_of", Some(app.clock.now()))
        .list("attempts", &attempts, |out, attempt| {
            let mut writer = Writer::object_in(out);
            writer
                .number("n", attempt.n.into())
                .text("instance_id", attempt.instance.as_str())
                .time_if("sent_at", Some(attempt.sent_at))
                .time_if("accepted_at", attempt.accepted_at)
                .time_if("ended_at", attempt.ended_at)
                .text_if("outcome", attempt.outcome.map(|outcome| outcome.word()));
            if with_evidence {
                writer.bytes_if("evidence", attempt.evidence.as_ref());
            } else if attempt.evidence.is_some() {
                writer.flag("evidence_hidden", true);
            }
            writer.end()
        });
    writer.value("dials", &dials);
    Ok(writer.answer(StatusCode::OK))
}
