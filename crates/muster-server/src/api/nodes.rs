//! Agents as the AgentField wire calls them, nodes: registration, beats, goodbye. How they are
//! shown is in `agents/`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use muster_engine::event::InstanceKey;
use muster_engine::event::Registration;
use muster_engine::row::Payload;
use muster_engine::{Event, Reply};
use muster_wire::api::agents::{BeatNoted, GoodbyeNoted, Registered};
use muster_wire::{AgentId, Category, InstanceId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{self, PathText, RawBody};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::registration;
use super::write::{Writer, answer};
use crate::app::App;
use crate::directory::BeatTaken;
use crate::fleet::tunnel;

/// The SDK's word for an agent that waits for its tags to be approved.
pub(super) const PENDING: &str = "pending_approval";
/// The largest registration.
const REGISTRATION_MAX: usize = 8 * 1024 * 1024;
/// The largest beat or goodbye.
const BEAT_MAX: usize = 16 * 1024;
/// The longest drain that is believed.
const DRAIN_MAX: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(register_alias, super::agents::list))
        .routes(routes!(beat))
        .routes(routes!(shutdown))
}

/// Registers an instance of an agent.
#[utoipa::path(
    post, path = "/api/v1/nodes/register", tag = "agents",
    request_body(content = serde_json::Value, description = "The agent's registration"),
    responses(
        (status = 201, description = "Registered", body = Registered),
        (status = 400, description = "Malformed, or an address the plane never dials"),
        (status = 409, description = "The id belongs to another principal"),
    )
)]
async fn register(State(app): State<App>, caller: Caller, request: Request) -> Answer {
    take_registration(app, caller, request).await
}

/// The same under its older name.
#[utoipa::path(
    post, path = "/api/v1/nodes", tag = "agents",
    request_body(content = serde_json::Value, description = "The agent's registration"),
    responses((status = 201, description = "Registered", body = Registered))
)]
async fn register_alias(State(app): State<App>, caller: Caller, request: Request) -> Answer {
    take_registration(app, caller, request).await
}

async fn take_registration(app: App, caller: Caller, request: Request) -> Answer {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| *peer);
    let bytes = body::read(request, REGISTRATION_MAX).await?;
    let mut read = registration::read(&bytes)?;
    let given_url = read.base_url.clone();
    let mut candidates = Vec::new();
    if let Some(worker) = through_a_node(&app, &caller, &given_url).await? {
        read = read.of_worker(&worker);
    } else {
        registration::check_address(&read.base_url, peer, app.dialling.rules())?;
        candidates = registration::candidates(&read, peer, app.dialling.rules());
    }
    caller.register_as(&app, &read.agent).await?;
    let patterns = &app.config.admission.tags_need_approval;
    let tags = registration::tags_for_approval(&read.tags, patterns)?;
    let agent = read.agent.clone();
    let (principal, worker) = (caller.principal.clone(), caller.worker.clone());
    let make = |waiter| {
        Event::Registered(Box::new(Registration {
            waiter,
            agent: read.agent,
            instance: read.instance,
            principal,
            base_url: read.base_url,
            version: read.version,
            functions: Arc::new(read.functions),
            starting: read.starting,
            // The registration is kept for long: it must not keep a read buffer alive.
            body: Payload(Bytes::copy_from_slice(&bytes)),
            worker,
            tags,
            candidates,
        }))
    };
    match app.driver.ask(make).await? {
        Reply::Registered { pending_tags, .. } => Ok(registered(&agent, &given_url, &pending_tags)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a registration was answered {other:?}"
        ))),
    }
}

/// The worker that registers, when it is one of a node and is called through it.
async fn through_a_node(
    app: &App,
    caller: &Caller,
    base_url: &str,
) -> Result<Option<Arc<str>>, Problem> {
    let Some(worker) = caller.worker.as_ref().filter(|_| tunnel::carries(base_url)) else {
        return Ok(None);
    };
    let through = super::fleet::is_called_through_its_node(app, worker).await?;
    Ok(through.then(|| worker.clone()))
}

/// The SDK waits with its start while the status is `pending_approval`.
fn registered(agent: &AgentId, base_url: &str, pending_tags: &[Box<str>]) -> Response {
    let mut writer = Writer::object();
    writer
        .flag("success", true)
        .text("node_id", agent.as_str())
        .text("resolved_base_url", base_url);
    if pending_tags.is_empty() {
        writer.text("message", "registered");
    } else {
        writer
            .text(
                "message",
                "registered; it is not called before its tags are approved",
            )
            .text("status", PENDING)
            .value("pending_tags", &pending_tags);
    }
    writer.answer(StatusCode::CREATED)
}

#[derive(Deserialize)]
struct Beat<'a> {
    #[serde(borrow, default)]
    instance_id: Option<std::borrow::Cow<'a, str>>,
}

/// A beat: noted where it lands.
#[utoipa::path(
    post, path = "/api/v1/nodes/{agent}/heartbeat", tag = "agents",
    params(("agent" = String, Path, description = "The agent")),
    request_body(content = serde_json::Value, description = "{instance_id?, status?, …}"),
    responses(
        (status = 200, description = "Noted", body = BeatNoted),
        (status = 404, description = "No such agent or instance: register"),
    )
)]
async fn beat(State(app): State<App>, PathText(agent): PathText, request: Request) -> Answer {
    let bytes = body::read(request, BEAT_MAX).await?;
    let beat: Beat<'_> = if bytes.trim_ascii().is_empty() {
        Beat { instance_id: None }
    } else {
        body::json(&bytes, "{instance_id?, status?}")?
    };
    let instance = beat.instance_id.as_deref().filter(|id| !id.is_empty());
    let now = app.clock.now();
    match app.directory.beat(&agent, instance, now) {
        BeatTaken::Noted => {}
        BeatTaken::Watched(key, interval) => {
            let at = now;
            app.driver.tell(Event::Heard { key, at, interval });
        }
        BeatTaken::Unknown => {
            return Err(Problem::new(
                Category::NotFound,
                "node not found: no such agent or instance is registered; register it",
            ));
        }
    }
    Ok(answer(
        StatusCode::OK,
        Bytes::from_static(b"{\"message\":\"heartbeat noted\"}"),
    ))
}

#[derive(Deserialize, Default)]
struct Goodbye {
    #[serde(default)]
    timeout_seconds: Option<f64>,
    #[serde(default)]
    instance_id: Option<String>,
}

/// A goodbye: no new work goes there; what is in flight may still call back.
#[utoipa::path(
    post, path = "/api/v1/nodes/{agent}/shutdown", tag = "agents",
    params(("agent" = String, Path, description = "The agent")),
    request_body(content = serde_json::Value, description = "{reason?, timeout_seconds?, instance_id?}"),
    responses(
        (status = 202, description = "Noted", body = GoodbyeNoted),
        (status = 404, description = "No such agent"),
    )
)]
async fn shutdown(
    State(app): State<App>,
    PathText(agent): PathText,
    RawBody(bytes): RawBody,
) -> Answer {
    let id = AgentId::parse(&agent).map_err(|e| Problem::validation(format!("agent id: {e}")))?;
    let said: Goodbye = if bytes.trim_ascii().is_empty() {
        Goodbye::default()
    } else {
        body::json(&bytes, "{reason?, timeout_seconds?}")?
    };
    let instance = match said.instance_id.filter(|id| !id.is_empty()) {
        Some(text) => Some(
            InstanceId::parse(&text)
                .map_err(|e| Problem::validation(format!("instance_id: {e}")))?,
        ),
        None => None,
    };
    let drain = said
        .timeout_seconds
        .unwrap_or(0.0)
        .clamp(0.0, DRAIN_MAX.as_secs_f64());
    let drain = Duration::try_from_secs_f64(drain).unwrap_or_default();
    // Who missed a beat tells who is left to say goodbye: the newest receipts go in first.
    if let Some(entry) = app.directory.agent(&agent) {
        for instance in entry.instances().iter() {
            let key = InstanceKey {
                agent: id.clone(),
                instance: instance.id.clone(),
            };
            if let Some((at, interval)) = app.directory.receipt(&key) {
                app.driver.tell(Event::Heard { key, at, interval });
            }
        }
    }
    let make = |waiter| Event::Goodbye {
        agent: id,
        instance,
        drain,
        waiter,
    };
    match app.driver.ask(make).await? {
        Reply::Done => Ok(Writer::object()
            .number("lease_seconds", 0)
            .time_if("next_lease_renewal", Some(app.clock.now()))
            .text(
                "message",
                "goodbye noted; callbacks of work in flight are taken",
            )
            .answer(StatusCode::ACCEPTED)),
        Reply::UnknownAgent => Err(unknown(&agent)),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "a goodbye was answered {other:?}"
        ))),
    }
}

pub(super) fn unknown(agent: &str) -> Problem {
    let agent: String = agent.chars().take(128).collect();
    Problem::not_found(format!("node not found: there is no agent {agent:?}"))
}
