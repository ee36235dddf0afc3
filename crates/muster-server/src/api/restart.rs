//! `POST /api/v1/executions/{id}/restart`: a run again, or one execution of it alone, taking over
//! what need not be done twice. A lane like the others: reads what it runs again, then submits.

mod plan;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use muster_engine::effect::Receipt;
use muster_engine::event::{InputFault, Restart, Submission, Waiter};
use muster_engine::row::{ExecutionRow, Payload, PayloadKind, Replay};
use muster_engine::{Refusal, Reply};
use muster_store::{StoreResult, Stores};
use muster_wire::api::act::RestartConsequence;
use muster_wire::api::execution::RestartAccepted;
use muster_wire::{Category, ExecutionId, ExecutionKind, Lane, ReplayMode, RunId, Target};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, Query};
use super::call::{self, Call, Context};
use super::caller::Caller;
use super::dry::DryRun;
use super::execute::{REPLAYED, has_webhook, name, read_body};
use super::problem::{Answer, Problem};
use super::show;
use super::submit::submit;
use super::write::Writer;
use crate::app::App;
use crate::inputs;
use crate::webhooks;

/// The longest reason that is taken.
const REASON_MAX: usize = 500;
/// How far callers are followed to find one that the plane dispatched.
const CALLERS_MAX: usize = 64;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(restart))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked<'a> {
    scope: Option<String>,
    reuse: Option<String>,
    #[serde(default)]
    fork: Option<bool>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    context: Option<&'a RawValue>,
    reason: Option<String>,
    #[serde(borrow)]
    webhook: Option<&'a RawValue>,
}

/// What is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The root of the run.
    Workflow,
    /// The execution that is named, alone.
    Execution,
}

impl Scope {
    fn word(self) -> &'static str {
        match self {
            Scope::Workflow => "workflow",
            Scope::Execution => "execution",
        }
    }
}

/// What the store has of the run that is restarted.
struct Source {
    named: ExecutionRow,
    /// The one that is run again.
    of: ExecutionRow,
    /// Its input, unless another one is given.
    input: Option<Payload>,
}

/// Runs an execution's whole run again, or the execution alone; what had succeeded is taken over.
#[utoipa::path(
    post, path = "/api/v1/executions/{id}/restart", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("dry_run" = Option<bool>, Query, description = "Only say what it would do"),
    ),
    request_body(content = Option<serde_json::Value>, description = "{\"scope\"?: \"workflow\"|\"execution\", \"reuse\"?: \"succeeded-before\"|\"all-succeeded\"|\"none\", \"fork\"?, \"input\"?, \"context\"?, \"reason\"?, \"webhook\"?}; may be absent"),
    responses(
        (status = 200, description = "With dry_run: what it would do", body = RestartConsequence),
        (status = 202, description = "Accepted and stored", body = RestartAccepted),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "No such execution, or the key does not see the root of its run"),
        (status = 409, description = "It runs inside an agent's process, its run is open, or its input is gone"),
        (status = 503, description = "Refused; nothing was stored"),
    )
)]
async fn restart(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(dry): Query<DryRun>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let held = read_body(&app, body).await?;
    let asked: Asked<'_> = if held.bytes.trim_ascii().is_empty() {
        Asked::default()
    } else {
        body::json(
            &held.bytes,
            "{scope?, reuse?, fork?, input?, context?, reason?, webhook?}",
        )?
    };
    let scope = asked.scope()?;
    let mode = asked.mode()?;
    let named = show::execution_id(&id)?;
    let source = source(&app, &caller, &named, scope, asked.input.is_none()).await?;
    if asked.input.is_some() && source.of.id != named {
        return Err(Problem::validation(format!(
            "input: with scope workflow the root {} runs again with its own input; to change the input of {named} say scope execution, or restart the root",
            source.of.id
        )));
    }
    if dry.is_wanted() {
        asked.reason()?;
        Context::read(asked.context)?;
        if let Some(input) = asked.input {
            takes(&app, &source.of, input).await?;
        }
        let plan = plan::Plan {
            scope: scope.word(),
            mode,
            fork: asked.fork.unwrap_or(false),
            named: source.named,
            of: source.of,
        };
        return Ok(axum::Json(plan.consequence(&app).await?).into_response());
    }
    let submission = submission(&app, &caller, &headers, &held.bytes, &asked, mode, source)?;
    let Some(made) = submission.restart.as_deref().cloned() else {
        return Err(Problem::internal(&"a restart without its source"));
    };
    let replay = submission.replay.clone();
    let target = format!("{}.{}", submission.agent, submission.function);
    let mut call = Call {
        submission,
        webhook: webhooks::Asked::read(asked.webhook),
    };
    let registered = call.seal_webhook(&app).await;
    let minted = call.submission.execution.clone();
    let receipt = match submit(&app, call, held).await? {
        Reply::Accepted(receipt) => receipt,
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a restart was answered {other:?}"
            )));
        }
    };
    let registered = if receipt.execution == minted {
        registered
    } else {
        registered.joined(has_webhook(&app, &receipt.execution).await?)
    };
    let mut writer = Writer::object();
    show::receipt(&mut writer, &receipt, &target);
    writer
        .text("source_execution_id", made.named.as_str())
        .text("source_run_id", made.source.as_str())
        .text("restarted_execution_id", made.of.as_str())
        .text("replay_mode", mode.word())
        .text_if(
            "replay_before_execution_id",
            replay
                .and_then(|r| r.before)
                .as_ref()
                .map(ExecutionId::as_str),
        )
        .text("scope", scope.word())
        .text("kind", if made.fork { "fork" } else { "restart" });
    show::webhook(&mut writer, &registered);
    Ok(answered(writer, &receipt))
}

/// Whether the function that would run again takes another input: refused as the restart itself
/// would be.
async fn takes(app: &App, of: &ExecutionRow, input: &RawValue) -> Result<(), Problem> {
    let entry = app.directory.agent(of.agent.as_str());
    let Some(function) = entry.and_then(|agent| agent.function(&of.function)) else {
        return Ok(());
    };
    let fault = inputs::fault(app, &of.agent, &function, input.get().as_bytes()).await;
    match fault {
        None => Ok(()),
        Some(InputFault { field, message }) => Err(Refusal::Input { field, message }.into()),
    }
}

fn answered(mut writer: Writer, receipt: &Receipt) -> axum::response::Response {
    let mut response = writer.answer(StatusCode::ACCEPTED);
    name(&mut response, &receipt.execution, receipt.run.as_str());
    if receipt.replayed {
        response
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

impl Asked<'_> {
    fn scope(&self) -> Result<Scope, Problem> {
        match self.scope.as_deref() {
            None | Some("workflow") => Ok(Scope::Workflow),
            Some("execution") => Ok(Scope::Execution),
            Some(_) => Err(Problem::validation(
                "scope must be workflow (the whole run, from its root) or execution (the one that is named, alone)",
            )),
        }
    }

    fn mode(&self) -> Result<ReplayMode, Problem> {
        match self.reuse.as_deref() {
            None => Ok(ReplayMode::SucceededBefore),
            Some(word) => ReplayMode::from_word(word).ok_or_else(|| {
                let words: Vec<&str> = ReplayMode::ALL.iter().map(|mode| mode.word()).collect();
                Problem::validation(format!("reuse must be one of {}", words.join(", ")))
            }),
        }
    }

    fn reason(&self) -> Result<Option<Arc<str>>, Problem> {
        match self.reason.as_deref().map(str::trim) {
            Some(reason) if reason.len() > REASON_MAX => Err(Problem::validation(format!(
                "the reason has more than {REASON_MAX} bytes"
            ))),
            reason => Ok(reason.filter(|reason| !reason.is_empty()).map(Into::into)),
        }
    }
}

/// Reads what is restarted. Whoever may not see it is told that it is not there.
async fn source(
    app: &App,
    caller: &Caller,
    named: &ExecutionId,
    scope: Scope,
    with_input: bool,
) -> Result<Source, Problem> {
    let wanted = named.clone();
    let found = app
        .blocking(move |stores| find(stores, &wanted, scope, with_input))
        .await?;
    let (row, of, input) = match found {
        Found::Nothing => return Err(show::unknown_execution(named)),
        Found::Observed { row, caller: above } if caller.sees(&row.principal) => {
            let hint =
                above.map_or_else(String::new, |id| format!("; restart {id}, which called it"));
            return Err(Problem::new(
                Category::Conflict,
                format!(
                    "{named} runs inside an agent's process and cannot be restarted by itself{hint}"
                ),
            )
            .execution(named.as_str()));
        }
        Found::Observed { .. } => return Err(show::unknown_execution(named)),
        Found::Dispatched { row, of, input } => (row, of, input),
    };
    if !caller.sees(&row.principal) {
        return Err(show::unknown_execution(named));
    }
    if !caller.sees(&of.principal) {
        return Err(Problem::not_found(format!(
            "the root of run {} is not there for this key, so the whole run cannot be restarted with it; say scope execution to run {named} again alone",
            row.run
        ))
        .execution(named.as_str()));
    }
    if with_input && input.is_none() {
        return Err(Problem::new(
            Category::Conflict,
            format!(
                "the input of {} is no longer stored; give one as `input`",
                of.id
            ),
        )
        .execution(of.id.as_str()));
    }
    Ok(Source {
        named: *row,
        of: *of,
        input,
    })
}

enum Found {
    Nothing,
    Observed {
        row: Box<ExecutionRow>,
        caller: Option<ExecutionId>,
    },
    Dispatched {
        row: Box<ExecutionRow>,
        of: Box<ExecutionRow>,
        input: Option<Payload>,
    },
}

fn find(
    stores: &Stores,
    named: &ExecutionId,
    scope: Scope,
    with_input: bool,
) -> StoreResult<Found> {
    let store = &stores.decisions;
    let Some(row) = store.execution(named)?.1 else {
        return Ok(Found::Nothing);
    };
    if row.kind == ExecutionKind::Observed {
        let mut above = row.parent.clone();
        for _ in 0..CALLERS_MAX {
            let Some(id) = &above else { break };
            match store.execution(id)?.1 {
                Some(parent) if parent.kind == ExecutionKind::Observed => above = parent.parent,
                Some(_) => break,
                None => above = None,
            }
        }
        return Ok(Found::Observed {
            row: Box::new(row),
            caller: above,
        });
    }
    let of = match scope {
        Scope::Workflow if row.root != row.id => store.execution(&row.root)?.1,
        Scope::Workflow | Scope::Execution => Some(row.clone()),
    };
    let Some(of) = of else {
        return Ok(Found::Nothing);
    };
    let input = match with_input {
        true => store.payload(&of.id, PayloadKind::Input)?,
        false => None,
    };
    Ok(Found::Dispatched {
        row: Box::new(row),
        of: Box::new(of),
        input,
    })
}

fn submission(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: &Bytes,
    asked: &Asked<'_>,
    mode: ReplayMode,
    source: Source,
) -> Result<Submission, Problem> {
    let Source { named, of, input } = source;
    let context = Context::read(asked.context)?;
    let input = match (asked.input, input) {
        (Some(given), _) => call::input(body, Some(given))?,
        (None, Some(stored)) => stored.0,
        (None, None) => Bytes::from_static(b"{}"),
    };
    let body_hash = if asked.input.is_none() && asked.context.is_none() {
        of.input_hash
    } else {
        let text = std::str::from_utf8(&input)
            .map_err(|_| Problem::internal(&"a stored input is not UTF-8"))?;
        let target = Target {
            agent: of.agent.clone(),
            function: of.function.clone(),
        };
        call::hash(&target, Some(text), asked.context)
    };
    let key = call::header(headers, "idempotency-key", "Idempotency-Key")?;
    Ok(Submission {
        waiter: Waiter(0),
        lane: Lane::Restart,
        execution: ExecutionId::mint(),
        run: RunId::mint(),
        run_claimed: false,
        parent: None,
        agent: of.agent,
        function: of.function,
        principal: caller.principal.clone(),
        key_hash: caller.key_hash.clone(),
        idempotency_key: call::idempotency_key(key, &caller.principal)?,
        body_hash,
        input: Payload(input),
        input_stored: None,
        input_fault: None,
        class: Some(of.queue.class),
        deadline: u64::try_from(of.deadline_us)
            .ok()
            .map(std::time::Duration::from_micros),
        session: of.session,
        actor: of.actor,
        traceparent: call::traceparent(headers),
        on_parent_end: None,
        webhook: None,
        llm_endpoint: context.llm_endpoint,
        replay: Some(Box::new(Replay {
            source: named.run.clone(),
            mode,
            before: (of.id != named.id).then(|| named.id.clone()),
        })),
        replay_index: None,
        restart: Some(Box::new(Restart {
            of: of.id,
            named: named.id,
            source: named.run,
            fork: asked.fork.unwrap_or(false),
            reason: asked.reason()?,
        })),
        received_at: app.clock.now(),
        known: Default::default(),
    })
}

/// A caller that sees only its own takes over only what is its own; a name of anything else is
/// no name.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn only_what_is_seen(
    app: &App,
    caller: &Caller,
    call: &mut Call,
) -> Result<(), Problem> {
    let Some(replay) = &call.submission.replay else {
        return Ok(());
    };
    if caller.sees_all() {
        return Ok(());
    }
    let source = replay.source.clone();
    let run = app
        .blocking(move |stores| stores.decisions.run(&source))
        .await?;
    if !run.is_some_and(|run| caller.sees(&run.root.principal)) {
        call.submission.replay = None;
    }
    Ok(())
}
