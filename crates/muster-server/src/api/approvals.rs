//! Approvals, as people see and decide them: the list, and the answer. A decision is the
//! engine's; this only reads what was said.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use bytes::Bytes;
use muster_engine::event::Verdict;
use muster_engine::row::{ApprovalRow, Payload};
use muster_engine::{Event, Reply};
use muster_store::ApprovalFilter;
use muster_wire::api::act::DecisionAnswer;
use muster_wire::api::approval::ApprovalList;
use muster_wire::{AgentId, Category, Decision, ExecutionId, RunId, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, Query, RawBody};
use super::caller::Caller;
use super::dry::{self, DryRun};
use super::paging;
use super::pauses::{conflict, has_ended};
use super::problem::{Answer, Problem};
use super::show;
use super::stamp::Stamp;
use super::write::Writer;
use crate::app::App;
use crate::auth::Need;
use crate::driver::record::Line;

/// The longest feedback, and the largest answer.
const TEXT_MAX: usize = 64 * 1024;
/// The largest signed message.
const MESSAGE_MAX: usize = 256 * 1024;
/// The longest request id.
pub(crate) const REQUEST_MAX: usize = 256;
/// What the body of a decision looks like.
const SHAPE: &str = "{decision, approval_request_id?, feedback?, response?}";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(decide))
        .routes(routes!(decide_signed))
}

/// What a list may be narrowed to.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Filter {
    status: Option<String>,
    agent: Option<String>,
    run_id: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Approvals: pending ones first, then the others; each newest first.
#[utoipa::path(
    get, path = "/api/v1/approvals", tag = "executions",
    params(
        ("status" = Option<String>, Query, description = "pending, approved, rejected, request_changes, expired or closed"),
        ("agent" = Option<String>, Query), ("run_id" = Option<String>, Query),
        ("limit" = Option<usize>, Query, description = "At most 500"),
        ("cursor" = Option<String>, Query),
    ),
    responses((status = 200, description = "A page", body = ApprovalList))
)]
async fn list(State(app): State<App>, Query(asked): Query<Filter>) -> Answer {
    let agent = asked.agent.as_deref().map(AgentId::parse).transpose();
    let run = asked.run_id.as_deref().map(RunId::parse).transpose();
    let mut filter = ApprovalFilter {
        agent: agent.map_err(|error| Problem::validation(format!("agent: {error}")))?,
        run: run.map_err(|error| Problem::validation(format!("run_id: {error}")))?,
        ..ApprovalFilter::default()
    };
    // Which groups there are, each a list of its own; the cursor says in which one it stands.
    let groups: &[bool] = match asked.status.as_deref() {
        None | Some("") => &[true, false],
        Some("pending") => &[true],
        Some("closed") => {
            filter.closed = true;
            &[false]
        }
        Some(word) => {
            filter.decision = Some(Decision::from_word(word).ok_or_else(|| {
                Problem::validation(
                    "status must be pending, approved, rejected, request_changes, expired or closed",
                )
            })?);
            &[false]
        }
    };
    let (group, cursor) = match asked.cursor.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => match text.split_at_checked(1) {
            Some(("p", rest)) => (true, Some(rest)),
            Some(("d", rest)) => (false, Some(rest)),
            _ => (true, Some(text)),
        },
        None => (groups[0], None),
    };
    let first = paging::page(asked.limit, cursor)?;
    let limit = first.limit;
    let groups: Vec<bool> = groups
        .iter()
        .copied()
        .skip_while(|pending| *pending != group)
        .collect();
    let stamp = Stamp::now(&app);
    let rows = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let mut rows: Vec<ApprovalRow> = Vec::new();
            let mut page = first;
            for pending in groups {
                filter.pending = Some(pending);
                page.limit = limit - rows.len();
                if page.limit > 0 {
                    rows.extend(stores.decisions.approvals(&filter, &page)?);
                }
                page.after = None;
            }
            Ok(rows)
        })
        .await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|row| {
        let group = if row.decided_at.is_none() { "p" } else { "d" };
        let name = format!("{} {}", row.execution, row.request);
        format!("{group}{}", paging::cursor(row.requested_at, &name))
    });
    let mut writer = Writer::object();
    stamp.write(&mut writer);
    writer
        .list("approvals", &rows, |out, row| {
            let mut writer = Writer::object_in(out);
            approval(&mut writer, row);
            writer.end()
        })
        .number("count", i64::try_from(rows.len()).unwrap_or(i64::MAX))
        .text_if("next_cursor", next.as_deref());
    Ok(writer.answer(StatusCode::OK))
}

/// A person's decision on what an execution waits for.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/approval-response", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = serde_json::Value, description = "{decision: approved | rejected | request_changes, approval_request_id?, feedback?, response?}"),
    responses(
        (status = 200, description = "Taken, or the same again", body = DecisionAnswer),
        (status = 404, description = "No such execution, or it asked nothing of that name"),
        (status = 409, description = "It was decided otherwise, or the execution has ended"),
    )
)]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(dry): Query<DryRun>,
    RawBody(body): RawBody,
) -> Answer {
    let execution = show::execution_id(&id)?;
    let mut said = read(&body)?;
    if said
        .execution
        .as_ref()
        .is_some_and(|named| *named != execution)
    {
        return Err(Problem::validation(
            "the body names another execution than the path",
        ));
    }
    said.execution = Some(execution);
    if dry.is_wanted() {
        let execution = said.execution.clone().unwrap_or_else(ExecutionId::mint);
        let found = pending(&app, &execution, said.request.as_deref()).await?;
        return dry::answer(dry::decision(&app, &caller, said.decision, &found).await?);
    }
    settle(&app, said, caller.principal.clone()).await
}

/// The pending approval that a decision would be about.
async fn pending(
    app: &App,
    execution: &ExecutionId,
    request: Option<&str>,
) -> Result<ApprovalRow, Problem> {
    let (id, request) = (execution.clone(), request.map(str::to_owned));
    let (_, found) = app
        .blocking(move |stores| {
            stores
                .decisions
                .approvals_named(Some(&id), request.as_deref())
        })
        .await?;
    let open = found.into_iter().rfind(|row| row.decided_at.is_none());
    match open {
        Some(row) => Ok(row),
        None => Err(match show::find(app, execution).await? {
            None => show::unknown_execution(execution),
            Some(view) if view.row.status.is_terminal() => has_ended(execution, view.row.status),
            Some(_) => Problem::new(
                Category::Conflict,
                format!("{execution} waits for no decision of that name now"),
            )
            .execution(execution.as_str()),
        }),
    }
}

/// A decision from the service where a person made it. Signed, once the plane has a secret.
#[utoipa::path(
    post, path = "/api/v1/webhooks/approval-response", tag = "executions",
    request_body(content = serde_json::Value, description = "{requestId | approval_request_id | execution_id, decision, feedback?, response?}"),
    responses(
        (status = 200, description = "Taken, or the same again", body = DecisionAnswer),
        (status = 401, description = "Not signed, or wrongly"),
        (status = 403, description = "The plane has no secret for signatures and the request is not from its own machine, or the key lacks the scope operate"),
        (status = 404, description = "Nothing of that name was asked"),
        (status = 409, description = "It was decided otherwise, fits several, or the execution has ended"),
    )
)]
async fn decide_signed(State(app): State<App>, caller: Caller, request: Request) -> Answer {
    let local = crate::auth::is_local(&request);
    let headers = request.headers().clone();
    if !app.approvals.has_secret() && !local {
        return Err(Problem::new(
            Category::PermissionDenied,
            "this plane takes no decisions here: set auth.approval_webhook_secret",
        ));
    }
    let body = body::read(request, MESSAGE_MAX).await?;
    let by: Arc<str> = if app.approvals.has_secret() {
        app.approvals
            .verify(&headers, &body, app.clock.now())
            .map_err(|why| Problem::new(Category::Unauthenticated, why.message()))?;
        "approval webhook".into()
    } else if caller.may(Need::Operate) {
        caller.principal.clone()
    } else if caller.key_id.is_some() {
        return Err(Problem::new(
            Category::PermissionDenied,
            format!(
                "without auth.approval_webhook_secret this needs a key with the scope {}",
                Need::Operate.scopes()
            ),
        )
        .details(serde_json::json!({ "needs": Need::Operate.scopes() })));
    } else {
        return Err(Problem::new(
            Category::Unauthenticated,
            "without auth.approval_webhook_secret this needs a key with the scope operate: send X-API-Key",
        ));
    };
    let said = read(&body)?;
    if said.execution.is_none() && said.request.is_none() {
        return Err(Problem::validation(
            "the body must name what is decided: requestId, approval_request_id or execution_id",
        ));
    }
    settle(&app, said, by).await
}

/// A decision as it was said.
struct Said {
    execution: Option<ExecutionId>,
    request: Option<Arc<str>>,
    decision: Decision,
    feedback: Option<Payload>,
    response: Option<Payload>,
}

/// The names under which people send it.
#[derive(Deserialize, Default)]
struct Body<'a> {
    #[serde(borrow, default, alias = "executionId")]
    execution_id: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        alias = "requestId",
        alias = "request_id",
        alias = "approvalRequestId"
    )]
    approval_request_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    decision: Option<&'a RawValue>,
    #[serde(borrow, default)]
    feedback: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    /// Some services put all of it into an envelope.
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

fn read(bytes: &Bytes) -> Result<Said, Problem> {
    let mut said: Body<'_> = body::json(bytes, SHAPE)?;
    if said.decision.is_none()
        && let Some(inner) = said.data
        && let Ok(inner) = serde_json::from_str::<Body<'_>>(inner.get())
    {
        said = inner;
    }
    let decision = said.decision.or_else(|| {
        // The answer of a form may hold it.
        let response = serde_json::from_str::<Body<'_>>(said.response?.get()).ok()?;
        response.decision
    });
    let execution = text("execution_id", said.execution_id)?
        .map(|id| show::execution_id(&id))
        .transpose()?;
    let request: Option<Arc<str>> =
        text("approval_request_id", said.approval_request_id)?.map(Into::into);
    if request
        .as_ref()
        .is_some_and(|request| request.len() > REQUEST_MAX)
    {
        return Err(Problem::validation(format!(
            "approval_request_id has more than {REQUEST_MAX} bytes"
        )));
    }
    let feedback = text("feedback", said.feedback)?;
    if feedback.as_ref().is_some_and(|text| text.len() > TEXT_MAX)
        || said.response.is_some_and(|raw| raw.get().len() > TEXT_MAX)
    {
        return Err(Problem::validation(format!(
            "feedback and response may have at most {TEXT_MAX} bytes each"
        )));
    }
    let response = said.response.filter(|raw| raw.get() != "null");
    Ok(Said {
        execution,
        request,
        decision: word(decision)?,
        feedback: feedback.map(|text| Payload(text.into())),
        response: response.map(|raw| Payload(Bytes::copy_from_slice(raw.get().as_bytes()))),
    })
}

/// A text that may be absent, null or empty.
fn text(name: &str, given: Option<&RawValue>) -> Result<Option<String>, Problem> {
    let Some(given) = given.filter(|raw| raw.get() != "null") else {
        return Ok(None);
    };
    let text: String = serde_json::from_str(given.get())
        .map_err(|_| Problem::validation(format!("{name} must be a text")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The decision, in the words that people and services use for it.
fn word(given: Option<&RawValue>) -> Result<Decision, Problem> {
    let said = given.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let said = said.unwrap_or_default().trim().to_ascii_lowercase();
    match said.as_str() {
        "approved" | "approve" | "accepted" => Ok(Decision::Approved),
        "rejected" | "reject" | "denied" | "refused" => Ok(Decision::Rejected),
        "request_changes" | "changes_requested" | "request-changes" => Ok(Decision::RequestChanges),
        "expired" => Err(Problem::validation(
            "decision: that an approval has expired is found by the plane alone",
        )),
        _ => Err(Problem::validation(
            "decision must be approved, rejected or request_changes",
        )),
    }
}

async fn settle(app: &App, said: Said, by: Arc<str>) -> Answer {
    let named = said.execution.clone();
    let line = line(&by);
    let make = |waiter| {
        Event::ApprovalDecided(Box::new(Verdict {
            waiter,
            execution: said.execution,
            request: said.request,
            decision: said.decision,
            by,
            feedback: said.feedback,
            response: said.response,
            known: None,
        }))
    };
    match app.driver.ask_on_record(line, make).await? {
        Reply::Decided {
            approval: row,
            status,
            repeated,
        } => {
            let status = match status {
                Some(status) => Some(status),
                None => show::find(app, &row.execution).await?.map(|v| v.row.status),
            };
            let mut writer = Writer::object();
            writer.text("message", "taken");
            approval(&mut writer, &row);
            writer
                .text_if("decision", row.decision.map(Decision::word))
                .text_if("new_status", status.map(Status::for_sdk))
                .text_if("new_state", status.map(Status::word))
                .flag("repeated", repeated);
            Ok(writer.answer(StatusCode::OK))
        }
        Reply::Ambiguous(fitting) => {
            let list: Vec<_> = fitting
                .iter()
                .map(|(execution, request)| {
                    serde_json::json!({"execution_id": execution, "approval_request_id": request})
                })
                .collect();
            Err(Problem::new(
                Category::Conflict,
                "the decision fits several pending approvals; name the execution too",
            )
            .details(serde_json::json!({ "approvals": list })))
        }
        Reply::UnknownApproval => Err(match named {
            Some(id) => match show::find(app, &id).await? {
                None => show::unknown_execution(&id),
                Some(view) if view.row.status.is_terminal() => has_ended(&id, view.row.status),
                Some(_) => Problem::not_found(format!("{id} asked for no such approval")),
            },
            None => Problem::not_found("no execution asked for an approval of that name"),
        }),
        Reply::Conflict { message, status } => Err(conflict(message, status)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a decision was answered {other:?}"
        ))),
    }
}

/// An approval as members of an object.
pub(crate) fn approval(writer: &mut Writer, row: &ApprovalRow) {
    writer
        .text("approval_request_id", &row.request)
        .text("execution_id", row.execution.as_str())
        .text("run_id", row.run.as_str())
        .text("agent", row.agent.as_str())
        .text("status", status_word(row))
        .text_if("request_url", row.request_url.as_deref())
        .time_if("requested_at", Some(row.requested_at))
        .time_if("expires_at", Some(row.expires_at))
        .time_if("responded_at", row.decided_at)
        .text_if("decided_by", row.decided_by.as_deref())
        .bytes_if("feedback", row.feedback.as_ref())
        .text_if("told", row.told.as_deref());
    if let Some(response) = &row.response {
        writer.raw("response", &response.0);
    }
}

/// Pending, what was decided, or closed when nobody can decide any more.
pub(crate) fn status_word(row: &ApprovalRow) -> &'static str {
    match (row.decision, row.decided_at) {
        (Some(decision), _) => decision.word(),
        (None, None) => "pending",
        (None, Some(_)) => "closed",
    }
}

/// Who decided what is on record beside the execution's own history.
fn line(by: &Arc<str>) -> Line {
    Line::new(by, "approval.decided", |reply| {
        let Some(Reply::Decided {
            approval,
            repeated: false,
            ..
        }) = reply
        else {
            return None;
        };
        let decision = approval.decision.map_or("closed", Decision::word);
        let detail = format!("{}: {decision}", approval.request);
        Some((approval.execution.to_string(), detail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> Result<Said, Problem> {
        read(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn the_names_that_people_send_are_understood() {
        for body in [
            r#"{"requestId":"r","decision":"approved"}"#,
            r#"{"approval_request_id":"r","decision":"Approve"}"#,
            r#"{"request_id":"r","response":{"decision":"approved"}}"#,
            r#"{"type":"completed","data":{"requestId":"r","decision":"approved"}}"#,
        ] {
            let said = said(body).unwrap_or_else(|problem| panic!("{body}: {problem:?}"));
            assert_eq!(said.request.as_deref(), Some("r"), "{body}");
            assert_eq!(said.decision, Decision::Approved, "{body}");
        }
        let whole = said(r#"{"execution_id":"e~1.x","decision":"request_changes","feedback":"f","response":{"a":1}}"#).unwrap();
        assert_eq!(whole.execution.unwrap().as_str(), "e");
        assert_eq!(&whole.feedback.unwrap().0[..], b"f");
        assert_eq!(&whole.response.unwrap().0[..], br#"{"a":1}"#);
    }

    #[test]
    fn what_is_no_decision_is_refused() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"decision":"expired"}"#,
            r#"{"decision":"maybe"}"#,
            r#"{"decision":5}"#,
            r#"{"decision":"approved","feedback":5}"#,
            r#"{"decision":"approved","execution_id":"a b"}"#,
        ] {
            assert_eq!(said(body).err().unwrap().status, 400, "{body}");
        }
    }
}
