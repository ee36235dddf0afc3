//! `GET /api/v1/discovery/capabilities`: which agents there are, how they are, and what they
//! offer, as JSON, compact JSON or XML. Names and health are at hand; what the registrations
//! say (tags, descriptions, schemas) is read from the store for the agents of one page.

mod offer;
mod select;
mod xml;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use muster_engine::liveness::InstanceState;
use muster_store::{StoreResult, StoredAgent, Stores};
use muster_wire::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::Query;
use super::problem::{Answer, Problem};
use crate::app::App;
use crate::directory::AgentEntry;
pub(crate) use offer::Function;
pub(crate) use offer::Registration;
use select::Selection;

/// Agents of one page when nobody says how many, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(capabilities))
}

/// Which agents and functions, and how much of them.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// `json`, `compact` or `xml`.
    pub(crate) format: Option<String>,
    /// Only this agent.
    pub(crate) agent: Option<String>,
    /// The same as `agent`.
    pub(crate) node_id: Option<String>,
    /// Only these agents, comma-separated.
    pub(crate) agent_ids: Option<String>,
    /// The same as `agent_ids`.
    pub(crate) node_ids: Option<String>,
    /// Only reasoners whose names fit; `*` is any run of characters, `?` one. Without `skill`,
    /// no skills.
    pub(crate) reasoner: Option<String>,
    /// Only skills whose names fit. Without `reasoner`, no reasoners.
    pub(crate) skill: Option<String>,
    /// Only functions with one of these tags, or of an agent with one; comma-separated, with
    /// the same wildcards.
    pub(crate) tags: Option<String>,
    /// Show what the functions take.
    pub(crate) include_input_schema: Option<bool>,
    /// Show what they give.
    pub(crate) include_output_schema: Option<bool>,
    /// Show what they say of themselves; on when absent.
    pub(crate) include_descriptions: Option<bool>,
    /// Show their examples.
    pub(crate) include_examples: Option<bool>,
    /// Only agents that are `active`, `degraded`, `inactive` or `unknown`.
    pub(crate) health_status: Option<String>,
    /// Agents of one page; 100 when absent, 500 at most.
    pub(crate) limit: Option<usize>,
    /// How many agents to pass over.
    pub(crate) offset: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Capabilities)]
pub(crate) struct Found {
    /// When.
    pub(crate) discovered_at: String,
    /// Agents that fit.
    pub(crate) total_agents: usize,
    /// Their reasoners that fit.
    pub(crate) total_reasoners: usize,
    /// Their skills that fit.
    pub(crate) total_skills: usize,
    /// Where in the list this is.
    pub(crate) pagination: Pagination,
    /// The agents of this page.
    pub(crate) capabilities: Vec<Capability>,
}

/// Where in the list a page is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Pagination {
    /// Agents of one page.
    pub(crate) limit: usize,
    /// Agents passed over.
    pub(crate) offset: usize,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

/// One agent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Capability {
    /// Its id.
    pub(crate) agent_id: String,
    /// Where it is called; `null` when that is not known.
    pub(crate) base_url: Option<String>,
    /// Its version; `null` when that is not known.
    pub(crate) version: Option<String>,
    /// `active`, `degraded`, `inactive` or `unknown`.
    pub(crate) health_status: &'static str,
    /// The exact word: `restarting`, `unreachable_callback`, …
    pub(crate) state: &'static str,
    /// Always `long_running`.
    pub(crate) deployment_type: &'static str,
    /// When it last beat; `null` when it never did.
    pub(crate) last_heartbeat: Option<String>,
    /// Its reasoners that fit.
    pub(crate) reasoners: Vec<Function>,
    /// Its skills that fit.
    pub(crate) skills: Vec<Function>,
}

/// Finds agents and what they offer.
#[utoipa::path(get, path = "/api/v1/discovery/capabilities", tag = "agents", params(Wanted),
    responses((status = 200, description = "Agents by id, with their functions", body = Found),
              (status = 400, description = "A filter is not right")))]
async fn capabilities(State(app): State<App>, Query(wanted): Query<Wanted>) -> Answer {
    let format = Format::of(wanted.format.as_deref())?;
    Ok(format.answer(&look(&app, &wanted).await?))
}

/// Finds agents and what they offer.
///
/// # Errors
/// 400 when a filter is not right.
pub(crate) async fn look(app: &App, wanted: &Wanted) -> Result<Found, Problem> {
    let selection = Selection::of(wanted)?;
    let now = app.clock.now();
    let mut agents = app.directory.agents();
    agents.retain(|agent| selection.wants_agent(agent.id.as_str()));
    agents.sort_by(|a, b| a.id.cmp(&b.id));
    let candidates: Vec<(Arc<AgentEntry>, Option<InstanceState>)> = agents
        .into_iter()
        .map(|agent| {
            let state = state_of(app, &agent, now);
            (agent, state)
        })
        .filter(|(_, state)| selection.wants_health(health(*state)))
        .collect();
    let (limit, offset) = (
        wanted.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX),
        wanted.offset.unwrap_or(0),
    );
    Ok(app
        .blocking(move |stores| find(stores, &selection, &candidates, limit, offset, now))
        .await?)
}

/// Totals over all that fit, details for one page of them.
fn find(
    stores: &Stores,
    selection: &Selection,
    candidates: &[(Arc<AgentEntry>, Option<InstanceState>)],
    limit: usize,
    offset: usize,
    now: Timestamp,
) -> StoreResult<Found> {
    let mut found = Found {
        discovered_at: now.rfc3339(),
        total_agents: 0,
        total_reasoners: 0,
        total_skills: 0,
        pagination: Pagination {
            limit,
            offset,
            has_more: false,
        },
        capabilities: Vec::new(),
    };
    // One read for all of them; a question about one agent reads no others.
    let few = selection.only_agent();
    let stored: HashMap<AgentId, StoredAgent> = stores
        .decisions
        .agents(few.as_ref())?
        .into_iter()
        .map(|stored| (stored.row.id.clone(), stored))
        .collect();
    for (agent, state) in candidates {
        let in_page = (offset..offset.saturating_add(limit)).contains(&found.total_agents);
        // Tags are in the registration only; all else can be counted from what is at hand.
        let (reasoners, skills) = if in_page || selection.needs_registration() {
            let registration = stored
                .get(&agent.id)
                .map_or_else(Registration::default, |stored| {
                    Registration::read(&stored.row.registration.0)
                });
            let (reasoners, skills) = selection.functions(agent, &registration);
            let counts = (reasoners.len(), skills.len());
            if !selection.is_met_by(counts) {
                continue;
            }
            if in_page {
                found
                    .capabilities
                    .push(capability(agent, *state, reasoners, skills));
            }
            counts
        } else {
            let counts = selection.count(agent);
            if !selection.is_met_by(counts) {
                continue;
            }
            counts
        };
        found.total_agents += 1;
        found.total_reasoners += reasoners;
        found.total_skills += skills;
    }
    found.pagination.has_more = offset.saturating_add(limit) < found.total_agents;
    Ok(found)
}

fn capability(
    agent: &AgentEntry,
    state: Option<InstanceState>,
    reasoners: Vec<Function>,
    skills: Vec<Function>,
) -> Capability {
    let newest = agent.instances().last().cloned();
    let facts = newest.as_ref().and_then(|instance| instance.facts());
    let told = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let beat = newest
        .as_ref()
        .and_then(|instance| instance.beat_at())
        .max(facts.as_ref().and_then(|facts| facts.beat_at));
    Capability {
        agent_id: agent.id.to_string(),
        base_url: facts.as_ref().and_then(|facts| told(&facts.base_url)),
        version: facts.as_ref().and_then(|facts| told(&facts.version)),
        health_status: health(state),
        state: state.map_or("down", InstanceState::word),
        deployment_type: "long_running",
        last_heartbeat: beat.map(Timestamp::rfc3339),
        reasoners,
        skills,
    }
}

/// How its best instance is; `None` without any.
fn state_of(app: &App, agent: &AgentEntry, now: Timestamp) -> Option<InstanceState> {
    agent.verdict(now, &app.limits).map(|verdict| verdict.state)
}

/// The SDK's word.
fn health(state: Option<InstanceState>) -> &'static str {
    match state {
        Some(InstanceState::Active) => "active",
        Some(InstanceState::Degraded | InstanceState::UnreachableCallback) => "degraded",
        Some(InstanceState::Unknown | InstanceState::Restarting) => "unknown",
        Some(InstanceState::Down) | None => "inactive",
    }
}

/// The three formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Compact,
    Xml,
}

impl Format {
    fn of(word: Option<&str>) -> Result<Self, Problem> {
        match word.map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "json") => Ok(Format::Json),
            Some("compact") => Ok(Format::Compact),
            Some("xml") => Ok(Format::Xml),
            Some(_) => Err(Problem::validation(
                "format is one of json, compact and xml",
            )),
        }
    }

    fn answer(self, found: &Found) -> Response {
        match self {
            Format::Json => axum::Json(found).into_response(),
            Format::Compact => axum::Json(Compact::of(found)).into_response(),
            Format::Xml => {
                let kind = [(CONTENT_TYPE, "application/xml; charset=utf-8")];
                (kind, xml::document(found)).into_response()
            }
        }
    }
}

/// Just names and targets.
#[derive(Debug, Serialize)]
struct Compact<'a> {
    discovered_at: &'a str,
    reasoners: Vec<Target<'a>>,
    skills: Vec<Target<'a>>,
}

#[derive(Debug, Serialize)]
struct Target<'a> {
    id: &'a str,
    agent_id: &'a str,
    target: &'a str,
    tags: &'a [String],
}

impl<'a> Compact<'a> {
    fn of(found: &'a Found) -> Self {
        let list = |of: fn(&Capability) -> &Vec<Function>| {
            found
                .capabilities
                .iter()
                .flat_map(move |agent| {
                    of(agent).iter().map(|function| Target {
                        id: &function.id,
                        agent_id: &agent.agent_id,
                        target: &function.invocation_target,
                        tags: &function.tags,
                    })
                })
                .collect()
        };
        Self {
            discovered_at: &found.discovered_at,
            reasoners: list(|agent| &agent.reasoners),
            skills: list(|agent| &agent.skills),
        }
    }
}
