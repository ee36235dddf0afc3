//! `/v1/channels`: the shim that a broker needs before it starts a worker. Channels exist and
//! have members; nothing is ever said in them.

use axum::extract::State;
use http::StatusCode;
use muster_wire::{Category, mint};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::me;
use super::envelope::{ok, refuse};
use super::record::Channel;
use super::{identity, name};
use crate::api::body::{self, PathText, RawBody};
use crate::api::caller::Caller;
use crate::api::problem::{Answer, Problem};
use crate::app::App;

/// The longest topic.
const TOPIC_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(join))
        .routes(routes!(members))
        .routes(routes!(mute))
}

/// What a channel should be.
#[derive(Deserialize)]
struct New {
    name: String,
    #[serde(default)]
    topic: Option<String>,
}

/// Make a channel
///
/// One that is there is answered as it is.
#[utoipa::path(post, path = "/v1/channels", tag = "relay",
    responses((status = 201, description = "The channel.")))]
async fn create(State(app): State<App>, RawBody(bytes): RawBody) -> Answer {
    let new: New = body::json(&bytes, "{name, topic?}")?;
    name(&new.name)?;
    if new
        .topic
        .as_ref()
        .is_some_and(|topic| topic.len() > TOPIC_MAX)
    {
        return Err(Problem::validation(format!(
            "topic has at most {TOPIC_MAX} bytes"
        )));
    }
    let (work, now) = (app.clone(), app.clock.now());
    let make = move |stores: &muster_store::Stores| {
        work.relay.change(&*stores.annex, now, |tables| {
            if let Some(there) = tables.channel(&new.name) {
                return Ok((there.clone(), Vec::new()));
            }
            let channel = Channel {
                id: mint("ch"),
                name: new.name,
                topic: new.topic,
                created_at: now,
            };
            Ok((channel.clone(), tables.making(channel)?))
        })
    };
    let channel: Channel = app.blocking(make).await?;
    Ok(ok(StatusCode::CREATED, shown(&channel)))
}

/// Join a channel
///
/// As the agent whose token is shown.
#[utoipa::path(post, path = "/v1/channels/{name}/join", tag = "relay", params(("name" = String, Path, description = "The channel.")),
    responses((status = 200, description = "It is a member."), (status = 404, description = "`channel_not_found`.")))]
async fn join(State(app): State<App>, caller: Caller, PathText(name): PathText) -> Answer {
    let agent = me(&app, &caller)?;
    let into = name.clone();
    let agent = identity::edit(&app, agent.id, move |tables, agent| {
        tables.channel(&into).ok_or_else(not_found)?;
        agent.channels.insert(into);
        Ok(())
    })
    .await?;
    let member =
        json!({"channel": name, "agent_id": agent.id, "agent_name": agent.name, "role": "member"});
    Ok(ok(StatusCode::OK, member))
}

/// List the members of a channel
#[utoipa::path(get, path = "/v1/channels/{name}/members", tag = "relay", params(("name" = String, Path, description = "The channel.")),
    responses((status = 200, description = "Its members by name."), (status = 404, description = "`channel_not_found`.")))]
async fn members(State(app): State<App>, PathText(name): PathText) -> Answer {
    let members = app.relay.look(|tables| {
        tables.channel(&name)?;
        let members = tables
            .agents()
            .filter(|agent| agent.channels.contains(&name));
        let shown = |agent: &super::record::Agent| {
            json!({
                "agent_id": agent.id,
                "agent_name": agent.name,
                "role": "member",
                "joined_at": agent.changed_at.rfc3339(),
            })
        };
        Some(members.map(shown).collect::<Vec<Value>>())
    });
    Ok(ok(StatusCode::OK, members.ok_or_else(not_found)?))
}

/// Mute a channel
///
/// Taken; nothing is said in a channel.
#[utoipa::path(post, path = "/v1/channels/{name}/mute", tag = "relay", params(("name" = String, Path, description = "The channel.")),
    responses((status = 200, description = "Taken."), (status = 404, description = "`channel_not_found`.")))]
async fn mute(State(app): State<App>, PathText(name): PathText) -> Answer {
    if app.relay.look(|tables| tables.channel(&name).is_none()) {
        return Err(not_found());
    }
    Ok(ok(StatusCode::OK, json!({"channel": name, "muted": true})))
}

fn shown(channel: &Channel) -> Value {
    json!({
        "id": channel.id,
        "name": channel.name,
        "topic": channel.topic,
        "created_at": channel.created_at.rfc3339(),
    })
}

fn not_found() -> Problem {
    refuse(
        Category::NotFound,
        "channel_not_found",
        "there is no channel of that name",
    )
}
