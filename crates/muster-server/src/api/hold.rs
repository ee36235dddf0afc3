//! The stop button: nothing is dispatched, to one agent or at all, until somebody lifts it.
//! Reads, callbacks and cancels go on. Always needs a key: it stands for a person's decision.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use muster_engine::Reply;
use muster_engine::event::{Event, Question};
use muster_engine::row::HeldBy;
use muster_wire::api::At;
use muster_wire::{AgentId, Category};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::{self, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::driver::record::Line;

/// Why nobody knows who holds something.
pub(crate) const BY_UNKNOWN: &str = "it was held by an older build, which did not keep by whom";

/// The longest reason.
const REASON_BYTES_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show, hold))
        .routes(routes!(unhold))
}

/// What is held back.
#[derive(Debug, Serialize, ToSchema)]
struct HoldShown {
    /// Whether nothing is dispatched at all.
    held: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Who holds it; `null` when nothing is held, or nobody knows.
    #[schema(required)]
    by: Option<String>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_unknown: Option<&'static str>,
    /// Since when; `null` when nothing is held, or nobody knows.
    #[schema(required)]
    since: Option<At>,
    /// Agents that are held one by one.
    agents: Vec<String>,
    /// The same agents, with who holds each, since when and why.
    held_agents: Vec<HeldAgentShown>,
    /// What is queued behind a hold, by agent.
    queued: Vec<QueuedShown>,
}

/// An agent that is held by itself.
#[derive(Debug, Serialize, ToSchema)]
struct HeldAgentShown {
    /// The agent.
    agent: String,
    /// Who holds it; `null` when nobody knows.
    #[schema(required)]
    by: Option<String>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_unknown: Option<&'static str>,
    /// Since when; `null` when nobody knows.
    #[schema(required)]
    since: Option<At>,
    /// Why it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Queued executions of one agent.
#[derive(Debug, Serialize, ToSchema)]
struct QueuedShown {
    /// The agent.
    agent: String,
    /// How many.
    executions: u64,
}

/// What to stop, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Hold {
    /// One agent; everything, when absent.
    #[serde(default)]
    agent: Option<String>,
    /// Why, for whoever sees it.
    reason: String,
}

/// What to let go.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Unhold {
    /// One agent; the hold over everything, when absent.
    #[serde(default)]
    agent: Option<String>,
}

/// Whether to do it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// Only say what would be sent; change nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What lifting a hold sends.
#[derive(Debug, Serialize, ToSchema)]
struct Lifted {
    /// Whether it was only asked.
    dry_run: bool,
    /// What goes out, or would, while slots allow.
    queued: Vec<QueuedShown>,
    /// How many executions in all.
    executions: u64,
    /// Messages for webhooks that wait; they go out when the hold over everything is lifted.
    webhooks: u64,
    /// Agents that stay held one by one.
    agents: Vec<String>,
    /// Whether the hold over everything stays.
    held: bool,
}

/// Show what is held
#[utoipa::path(get, path = "/api/v1/hold", tag = "hold",
    responses((status = 200, description = "The hold, held agents, and what waits behind them.", body = HoldShown)))]
async fn show(State(app): State<App>) -> Result<Json<HoldShown>, Problem> {
    let back = HeldBack::ask(&app).await?;
    let held = back.reason.is_some();
    let agent = |(agent, by): &(AgentId, Option<HeldBy>)| HeldAgentShown {
        agent: agent.to_string(),
        by: by.as_ref().map(|by| by.by.to_string()),
        by_unknown: by.is_none().then_some(BY_UNKNOWN),
        since: by.as_ref().map(|by| At(by.at)),
        reason: by.as_ref().map(|by| by.reason.to_string()),
    };
    Ok(Json(HoldShown {
        held,
        by: back.by.as_ref().map(|by| by.by.to_string()),
        by_unknown: (held && back.by.is_none()).then_some(BY_UNKNOWN),
        since: back.by.as_ref().map(|by| At(by.at)),
        queued: back.shown(|_| true),
        agents: back.agents_but(None),
        held_agents: back.agents.iter().map(agent).collect(),
        reason: back.reason.as_deref().map(str::to_owned),
    }))
}

/// Stop dispatching
///
/// To one agent, or at all. What was sent goes on; callbacks are taken; calls are queued.
#[utoipa::path(post, path = "/api/v1/hold", tag = "hold", request_body = Hold,
    responses((status = 200, description = "It is held.", body = HoldShown), (status = 404, description = "No such agent.")))]
async fn hold(
    State(app): State<App>,
    caller: Caller,
    RawBody(bytes): RawBody,
) -> Result<Json<HoldShown>, Problem> {
    let wanted: Hold = body::json(&bytes, "{agent?, reason}")?;
    let reason = wanted.reason.trim();
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.chars().any(char::is_control)
    {
        return Err(Problem::validation(format!(
            "reason must be 1 to {REASON_BYTES_MAX} bytes without control characters"
        )));
    }
    let agent = agent(wanted.agent.as_deref())?;
    change(&app, &caller, agent.clone(), Some(reason.into())).await?;
    show(State(app)).await
}

/// Dispatch again
///
/// With `dry_run=true` it says what would be sent and changes nothing.
#[utoipa::path(post, path = "/api/v1/unhold", tag = "hold", params(Asked),
    request_body(content = Unhold, description = "May be absent."),
    responses((status = 200, description = "What is sent, or would be.", body = Lifted), (status = 404, description = "No such agent.")))]
async fn unhold(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<Asked>,
    RawBody(bytes): RawBody,
) -> Result<Json<Lifted>, Problem> {
    let wanted: Unhold = if bytes.is_empty() {
        Unhold::default()
    } else {
        body::json(&bytes, "{agent?}")?
    };
    let agent = agent(wanted.agent.as_deref())?;
    if let Some(agent) = agent
        .as_ref()
        .filter(|agent| app.directory.agent(agent.as_str()).is_none())
    {
        return Err(no_such_agent(agent));
    }
    let back = HeldBack::ask(&app).await?;
    let queued = back.let_go_by(agent.as_ref());
    if !asked.dry_run {
        change(&app, &caller, agent.clone(), None).await?;
        if agent.is_none() {
            // Whoever lifts it has looked: the store may stay where it is.
            app.blocking(|stores| stores.decisions.accept_place())
                .await?;
        }
    }
    let waiting = app
        .blocking(|stores| stores.decisions.delivery_counts())
        .await?;
    let executions = queued.iter().map(|queued| queued.executions).sum();
    Ok(Json(Lifted {
        dry_run: asked.dry_run,
        queued,
        executions,
        webhooks: if agent.is_none() { waiting.pending } else { 0 },
        held: back.reason.is_some() && agent.is_some(),
        agents: back.agents_but(agent.as_ref()),
    }))
}

fn agent(named: Option<&str>) -> Result<Option<AgentId>, Problem> {
    named
        .map(AgentId::parse)
        .transpose()
        .map_err(|error| Problem::validation(format!("agent: {error}")))
}

fn no_such_agent(agent: &AgentId) -> Problem {
    Problem::new(
        Category::TargetNotFound,
        format!("no agent {agent} is registered; see `muster agents`"),
    )
}

async fn change(
    app: &App,
    caller: &Caller,
    agent: Option<AgentId>,
    reason: Option<Arc<str>>,
) -> Result<(), Problem> {
    let (event_agent, by) = (agent.clone(), caller.principal.clone());
    let action = match &reason {
        Some(_) => "hold.set",
        None => "hold.lifted",
    };
    let object = agent.as_ref().map(ToString::to_string);
    let object = object.unwrap_or_else(|| "everything".to_owned());
    let detail = reason.as_deref().unwrap_or_default().to_owned();
    let line = Line::new(&caller.principal, action, move |reply| {
        matches!(reply, Some(Reply::Done)).then(|| (object.clone(), detail.clone()))
    });
    let reply = app
        .driver
        .ask_on_record(line, move |waiter| Event::Held {
            agent: event_agent,
            reason,
            by,
            waiter,
        })
        .await?;
    match (reply, agent) {
        (Reply::Done, _) => Ok(()),
        (Reply::UnknownAgent, Some(agent)) => Err(no_such_agent(&agent)),
        (Reply::Refused(refusal), _) => Err(refusal.into()),
        (other, _) => Err(Problem::internal(&format!(
            "a hold was answered with {other:?}"
        ))),
    }
}

/// What the engine holds back.
pub(crate) struct HeldBack {
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) by: Option<HeldBy>,
    queued: Vec<(AgentId, u64)>,
    agents: Vec<(AgentId, Option<HeldBy>)>,
}

impl HeldBack {
    /// Asks for it.
    ///
    /// # Errors
    /// When the engine cannot answer.
    pub(crate) async fn ask(app: &App) -> Result<Self, Problem> {
        let question = Question::HeldBack;
        match app
            .driver
            .ask(move |waiter| Event::Asked { question, waiter })
            .await?
        {
            Reply::HeldBack {
                reason,
                by,
                mut agents,
                queued,
            } => {
                agents.sort_by(|a, b| a.0.cmp(&b.0));
                Ok(Self {
                    reason,
                    by,
                    queued,
                    agents,
                })
            }
            Reply::Refused(refusal) => Err(refusal.into()),
            other => Err(Problem::internal(&format!(
                "a question was answered with {other:?}"
            ))),
        }
    }

    /// Agents that are held one by one, without one.
    fn agents_but(&self, but: Option<&AgentId>) -> Vec<String> {
        let agents = self.agents.iter().map(|(agent, _)| agent);
        let stay = agents.filter(|agent| Some(*agent) != but);
        stay.map(ToString::to_string).collect()
    }

    /// What lifting one agent's hold, or the hold over everything, lets go. Lifting the one does
    /// not lift the other.
    fn let_go_by(&self, lifting: Option<&AgentId>) -> Vec<QueuedShown> {
        self.shown(|agent| match lifting {
            Some(lifted) => self.reason.is_none() && agent == lifted,
            None => !self.agents.iter().any(|(held, _)| held == agent),
        })
    }

    fn shown(&self, wanted: impl Fn(&AgentId) -> bool) -> Vec<QueuedShown> {
        self.queued
            .iter()
            .filter(|(agent, n)| *n > 0 && wanted(agent))
            .map(|(agent, n)| QueuedShown {
                agent: agent.to_string(),
                executions: *n,
            })
            .collect()
    }
}
