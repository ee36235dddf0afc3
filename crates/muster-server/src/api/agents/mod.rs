//! Agents as people see them: the list, one with what it offers. Registration and beats are in
//! `nodes.rs`.

pub(crate) mod history;
mod show;

pub(crate) use show::word;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use muster_engine::effect::AgentState as Seen;
use muster_engine::event::Question;
use muster_engine::liveness::Verdict;
use muster_engine::{Event, Reply};
use muster_store::AgentCount;
use muster_wire::api::At;
use muster_wire::api::agents::{Agent, AgentState, AgentWindow, Agents};
use muster_wire::{AgentId, Timestamp};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{PathText, Query};
use super::filters::words;
use super::nodes::unknown;
use super::problem::Problem;
use super::stamp::Stamp;
use crate::app::App;
use crate::directory::AgentEntry;

/// A minute in microseconds.
const MINUTE_US: i64 = 60_000_000;
/// How far back calls are counted.
pub(crate) const WINDOW: Duration = Duration::from_secs(3600);

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(one))
        .routes(routes!(history::history))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Listed {
    limit: Option<usize>,
    cursor: Option<String>,
    status: Option<String>,
    state: Option<String>,
    q: Option<String>,
}

/// An agent with its verdict, where there is one.
pub(crate) type Judged = (Arc<AgentEntry>, Option<Verdict>);

/// Every agent, by id.
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "agents",
    params(
        ("limit" = Option<usize>, Query, description = "At most 1,000; 100 when absent"),
        ("cursor" = Option<String>, Query),
        ("status" = Option<String>, Query, description = "The same as state"),
        ("state" = Option<String>, Query, description = "active, unknown, degraded, restarting, unreachable_callback or down; several with commas"),
        ("q" = Option<String>, Query, description = "A part of the id or of a function's name"),
    ),
    responses((status = 200, description = "A page", body = Agents))
)]
pub(super) async fn list(
    State(app): State<App>,
    Query(asked): Query<Listed>,
) -> Result<Json<Agents>, Problem> {
    let stamp = Stamp::now(&app);
    let limit = asked.limit.unwrap_or(100).clamp(1, 1000);
    let mut found = judged(&app, stamp.as_of.0);
    if let Some(part) = asked.q.as_deref().filter(|part| !part.is_empty()) {
        let part = part.to_lowercase();
        found.retain(|(agent, _)| offers(agent, &part));
    }
    let mut states = std::collections::BTreeMap::new();
    for (_, verdict) in &found {
        *states.entry(word(verdict).to_owned()).or_default() += 1;
    }
    let (name, wanted) = match (&asked.state, &asked.status) {
        (None, Some(status)) => ("status", Some(status)),
        (state, _) => ("state", state.as_ref()),
    };
    let wanted: Vec<AgentState> = words(name, wanted.map(String::as_str))?;
    if !wanted.is_empty() {
        found.retain(|(_, verdict)| wanted.iter().any(|state| state.word() == word(verdict)));
    }
    let total = found.len() as u64;
    let after = asked.cursor.unwrap_or_default();
    found.retain(|(agent, _)| agent.id.as_str() > after.as_str());
    let more = found.len() > limit;
    found.truncate(limit);
    let beside = Beside::read(&app, stamp.as_of.0, None).await?;
    let last = found.last().filter(|_| more);
    Ok(Json(Agents {
        next_cursor: last.map(|(agent, _)| agent.id.to_string()),
        nodes: found
            .iter()
            .map(|(agent, verdict)| show::line(&app, agent, verdict.as_ref(), &beside))
            .collect(),
        count: found.len() as u64,
        total,
        states,
        as_of: stamp.as_of,
        position: stamp.position,
    }))
}

/// Every agent with its verdict, by id.
pub(crate) fn judged(app: &App, now: Timestamp) -> Vec<Judged> {
    let mut agents = app.directory.agents();
    agents.sort_by(|a, b| a.id.cmp(&b.id));
    let judge = |agent: Arc<AgentEntry>| {
        let verdict = agent.verdict(now, &app.limits);
        (agent, verdict)
    };
    agents.into_iter().map(judge).collect()
}

/// Whether its id or a function of it has a part.
pub(crate) fn offers(agent: &AgentEntry, part: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(part);
    has(agent.id.as_str()) || agent.functions().iter().any(|f| has(f.name.as_str()))
}

/// One agent with its instances, what it offers, and its registration as it came.
#[utoipa::path(
    get, path = "/api/v1/nodes/{agent}", tag = "agents",
    params(("agent" = String, Path, description = "The agent")),
    responses(
        (status = 200, description = "The agent", body = Agent),
        (status = 404, description = "No such agent"),
    )
)]
async fn one(State(app): State<App>, PathText(agent): PathText) -> Result<Json<Agent>, Problem> {
    let stamp = Stamp::now(&app);
    let id = AgentId::parse(&agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    let entry = app
        .directory
        .agent(id.as_str())
        .ok_or_else(|| unknown(&agent))?;
    let beside = Beside::read(&app, stamp.as_of.0, Some(&id)).await?;
    let stored = app
        .blocking(move |stores| stores.decisions.agents(Some(&id)))
        .await?
        .pop();
    Ok(Json(show::whole(&app, stamp, &entry, &beside, stored)))
}

/// What is shown of agents and is not in the directory: read once for a whole list.
pub(crate) struct Beside {
    states: HashMap<AgentId, Seen>,
    counts: HashMap<AgentId, AgentCount>,
    from: Timestamp,
    refused_from: Timestamp,
}

impl Beside {
    /// Reads it for all, or for one.
    async fn read(app: &App, now: Timestamp, only: Option<&AgentId>) -> Result<Self, Problem> {
        // Whole minutes: what is shown changes with what happens.
        let from = Timestamp((now - WINDOW).0.div_euclid(MINUTE_US) * MINUTE_US);
        let states = match only {
            None => states(app).await?,
            Some(id) => vec![*super::queues::ask(app, id.as_str()).await?],
        };
        let only = only.cloned();
        let counts = app
            .blocking(move |stores| stores.decisions.ended_by_agent(from, only.as_ref()))
            .await?;
        let by_id = |count: AgentCount| (count.agent.clone(), count);
        Ok(Self {
            states: states
                .into_iter()
                .map(|one| (one.id.clone(), one))
                .collect(),
            counts: counts.into_iter().map(by_id).collect(),
            from,
            refused_from: from.max(app.clock.started_at()),
        })
    }

    fn window(&self, app: &App, id: &AgentId) -> AgentWindow {
        let count = self.counts.get(id);
        AgentWindow {
            from: At(self.from),
            calls: count.map_or(0, |count| count.ended),
            failed: count.map_or(0, |count| count.failed),
            refused: app.meters.refusals.of(id.as_str()),
            refused_from: At(self.refused_from),
        }
    }
}

/// The engine's state of every agent.
///
/// # Errors
/// 503 when it cannot answer.
pub(crate) async fn states(app: &App) -> Result<Vec<Seen>, Problem> {
    let question = Question::Agents;
    let ask = app.driver.ask(|waiter| Event::Asked { question, waiter });
    match ask.await? {
        Reply::Agents(mut states) => {
            states.sort_by(|a, b| a.id.cmp(&b.id));
            Ok(states)
        }
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a question was answered {other:?}"
        ))),
    }
}
