//! Tags of agents that need an approval: what is pending, and the decision. Deciding changes who
//! may be called and always needs an admin's key.

use axum::Json;
use axum::extract::State;
use muster_engine::row::AgentTags;
use muster_engine::{Event, Reply};
use muster_wire::api::agents::{AgentTags as Shown, TagRequests};
use muster_wire::{AgentId, Category};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, RawBody};
use super::caller::Caller;
use super::pauses::conflict;
use super::problem::Problem;
use crate::app::App;
use crate::driver::record::Line;

/// Tags that are decided about at once.
const TAGS_MAX: usize = 200;
/// The longest tag.
const TAG_MAX: usize = 128;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(approve))
        .routes(routes!(reject))
}

/// Agents that ask for tags which need an approval.
#[utoipa::path(
    get, path = "/api/v1/tags", tag = "tags",
    responses((status = 200, description = "One entry for each agent that ever asked", body = TagRequests))
)]
async fn list(State(app): State<App>) -> Result<Json<TagRequests>, Problem> {
    let stored = app.blocking(|stores| stores.decisions.agents(None)).await?;
    let mut asking: Vec<(AgentId, AgentTags)> = stored
        .into_iter()
        .map(|agent| (agent.row.id, agent.row.tags))
        .filter(|(_, tags)| *tags != AgentTags::default())
        .collect();
    asking.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Json(TagRequests {
        agents: asking.iter().map(|(id, tags)| shown(id, tags)).collect(),
        need_approval: app.config.admission.tags_need_approval.clone(),
    }))
}

/// Approves tags of an agent; without a list, all that are pending.
#[utoipa::path(
    post, path = "/api/v1/tags/{agent}/approve", tag = "tags",
    params(("agent" = String, Path, description = "The agent")),
    request_body(content = serde_json::Value, description = "{tags?}"),
    responses(
        (status = 200, description = "Its tags as they now are", body = Shown),
        (status = 403, description = "The key is no admin's"),
        (status = 404, description = "No such agent"),
    )
)]
async fn approve(
    State(app): State<App>,
    caller: Caller,
    PathText(agent): PathText,
    RawBody(body): RawBody,
) -> Result<Json<Shown>, Problem> {
    decide(&app, &caller, &agent, &body, true).await
}

/// Rejects tags of an agent; without a list, all that are pending. An agent that asks for a
/// rejected tag is not called.
#[utoipa::path(
    post, path = "/api/v1/tags/{agent}/reject", tag = "tags",
    params(("agent" = String, Path, description = "The agent")),
    request_body(content = serde_json::Value, description = "{tags?}"),
    responses(
        (status = 200, description = "Its tags as they now are", body = Shown),
        (status = 403, description = "The key is no admin's"),
        (status = 404, description = "No such agent"),
    )
)]
async fn reject(
    State(app): State<App>,
    caller: Caller,
    PathText(agent): PathText,
    RawBody(body): RawBody,
) -> Result<Json<Shown>, Problem> {
    decide(&app, &caller, &agent, &body, false).await
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Which {
    #[serde(default)]
    tags: Vec<Box<str>>,
}

async fn decide(
    app: &App,
    caller: &Caller,
    agent: &str,
    body: &[u8],
    yes: bool,
) -> Result<Json<Shown>, Problem> {
    let id = AgentId::parse(agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    let Which { tags } = if body.trim_ascii().is_empty() {
        Which::default()
    } else {
        body::json(body, "{tags?}")?
    };
    let fine = |tag: &str| !tag.is_empty() && tag.len() <= TAG_MAX;
    if tags.len() > TAGS_MAX || !tags.iter().all(|tag| fine(tag)) {
        return Err(Problem::validation(format!(
            "tags: at most {TAGS_MAX}, each of 1 to {TAG_MAX} bytes"
        )));
    }
    let detail = if tags.is_empty() {
        "all that were pending".to_owned()
    } else {
        tags.join(", ")
    };
    let (wanted, by) = (id.clone(), caller.principal.clone());
    let make = |waiter| Event::TagsDecided {
        agent: wanted,
        tags,
        approve: yes,
        by,
        waiter,
    };
    let action = match yes {
        true => "tags.approved",
        false => "tags.rejected",
    };
    let object = id.to_string();
    let line = Line::new(&caller.principal, action, move |reply| {
        matches!(reply, Some(Reply::Tags(_))).then(|| (object.clone(), detail.clone()))
    });
    let tags = match app.driver.ask_on_record(line, make).await? {
        Reply::Tags(tags) => tags,
        Reply::UnknownAgent => {
            return Err(Problem::new(
                Category::NotFound,
                format!("no agent {id} is registered; see `muster agents`"),
            ));
        }
        Reply::Conflict { message, status } => return Err(conflict(message, status)),
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a decision about tags was answered {other:?}"
            )));
        }
    };
    Ok(Json(shown(&id, &tags)))
}

fn shown(id: &AgentId, tags: &AgentTags) -> Shown {
    let texts = |tags: &[Box<str>]| tags.iter().map(ToString::to_string).collect();
    Shown {
        agent: id.to_string(),
        callable: tags.unapproved().is_empty(),
        pending: texts(&tags.pending),
        approved: texts(&tags.approved),
        rejected: texts(&tags.rejected),
    }
}
