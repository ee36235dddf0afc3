//! Enrolment: a person makes a token for a name, a machine hands it in once and is a node. What
//! the token is good for, and how long, is decided in [`crate::auth::enrolment`].

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use muster_engine::fleet::event::Enrolment as Enrolled;
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply, NodeRow};
use muster_wire::fleet::NodeKind;
use muster_wire::id::check_id;
use muster_wire::{Category, NodeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::placement::labels;
use super::{ask, conflict, unexpected, wish};
use crate::api::body::{self, PathText, RawBody};
use crate::api::caller::Caller;
use crate::api::keys::audit;
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{Enrolment, NewEnrolment, NotTaken, Subject};
use crate::fleet::door::plane_url;

/// Tokens that wait to be used, at most; then others must be revoked first.
const PENDING_MAX: usize = 1_000;
/// The longest name of a host.
const HOST_MAX: usize = 255;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .routes(routes!(enroll))
}

/// A token that waits to be used, without its text.
#[derive(Debug, Serialize, ToSchema)]
struct EnrolmentShown {
    /// Its id.
    id: String,
    /// The start of the token.
    prefix: String,
    /// The node's name.
    name: String,
    /// The id that the node gets, or has.
    node_id: String,
    /// The node's labels; absent when the node says them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    labels: Option<Vec<Arc<str>>>,
    /// How many workers it takes, 0 without bound; absent when the node says it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_workers: Option<u32>,
    /// Who made it.
    principal: String,
    /// When it was made.
    created_at: String,
    /// After this it is no longer taken.
    expires_at: String,
}

impl EnrolmentShown {
    fn of(enrolment: &Enrolment) -> Self {
        Self {
            id: enrolment.id.clone(),
            prefix: enrolment.prefix.clone(),
            name: enrolment.name.to_string(),
            node_id: enrolment.node.to_string(),
            labels: enrolment.labels.clone(),
            max_workers: enrolment.max_workers,
            principal: enrolment.principal.to_string(),
            created_at: enrolment.created_at.rfc3339(),
            expires_at: enrolment.expires_at.rfc3339(),
        }
    }
}

/// Tokens that wait to be used.
#[derive(Debug, Serialize, ToSchema)]
struct Enrolments {
    /// Newest first.
    enrollments: Vec<EnrolmentShown>,
}

/// A token, shown once.
#[derive(Debug, Serialize, ToSchema)]
struct EnrolmentMade {
    /// The token. It cannot be asked for again.
    token: String,
    /// A node of this name is known: it is enrolled again, and its former key is no longer taken
    /// from then on.
    again: bool,
    /// The plane's address as this request reached it.
    plane: String,
    #[serde(flatten)]
    enrolment: EnrolmentShown,
}

/// What a token is to enrol.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The node's name.
    name: String,
    /// Its labels; what it says itself when absent or empty.
    #[serde(default)]
    labels: Vec<String>,
    /// How many workers it takes, 0 is without bound; what it says itself when absent.
    #[serde(default)]
    max_workers: Option<u32>,
}

/// What a machine says of itself.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Handed {
    /// The token; it may come as `Authorization: Bearer` instead.
    #[serde(default)]
    token: Option<String>,
    /// The name it wants: the token's.
    #[serde(default)]
    name: Option<String>,
    /// Its labels, where the token names none.
    #[serde(default)]
    labels: Vec<String>,
    /// How many workers it takes, where the token does not say; 0 is without bound.
    #[serde(default)]
    max_workers: Option<u32>,
    /// The host's name, for the audit log.
    #[serde(default)]
    host: Option<String>,
}

/// A machine is a node.
#[derive(Debug, Serialize, ToSchema)]
struct NodeEnrolled {
    /// Its id.
    node_id: String,
    /// Its name.
    name: String,
    /// Its key, for its link alone. It cannot be asked for again.
    token: String,
    /// Its labels.
    #[schema(value_type = Vec<String>)]
    labels: Vec<Arc<str>>,
    /// How many workers it takes; 0 is without bound.
    max_workers: u32,
}

/// List enrolment tokens
///
/// Those that wait to be used, without their texts.
#[utoipa::path(get, path = "/api/v1/fleet/enrollments", tag = "fleet",
    responses((status = 200, description = "Newest first.", body = Enrolments)))]
async fn list(State(app): State<App>) -> Json<Enrolments> {
    let now = app.clock.now();
    let found = app.auth.enrolments();
    let open = found.iter().filter(|enrolment| enrolment.is_open(now));
    Json(Enrolments {
        enrollments: open.map(EnrolmentShown::of).collect(),
    })
}

/// Make an enrolment token
///
/// Good for one machine of this name, once, within 15 minutes. When a node of the name is known,
/// it is that node which is enrolled again.
#[utoipa::path(post, path = "/api/v1/fleet/enrollments", tag = "fleet", request_body = Wanted,
    responses((status = 201, description = "The token, shown once.", body = EnrolmentMade),
              (status = 400, description = "The name or the labels are not right."),
              (status = 409, description = "The name is a Relay broker's, or too many tokens wait.")))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let wanted: Wanted = body::json(&bytes, "{name, labels?, max_workers?}")?;
    check_id(&wanted.name).map_err(|error| Problem::validation(format!("name: {error}")))?;
    let given = labels("labels", &wanted.labels)?;
    let known = known_node(&app, &wanted.name).await?;
    let now = app.clock.now();
    let open = app.auth.enrolments();
    if open.iter().filter(|one| one.is_open(now)).count() >= PENDING_MAX {
        return Err(conflict(format!(
            "{PENDING_MAX} enrolment tokens wait to be used; revoke some first"
        )));
    }
    let again = known.is_some();
    let wanted = NewEnrolment {
        name: wanted.name.as_str().into(),
        node: known,
        labels: (!given.is_empty()).then_some(given),
        max_workers: wanted.max_workers,
    };
    let (work, by) = (app.clone(), caller.principal.to_string());
    let (token, made) = app
        .blocking(move |stores| {
            let (token, made) = work.auth.open_enrolment(&*stores.annex, wanted, &by, now)?;
            let detail = format!("{} for a node named {}", made.prefix, made.name);
            audit(stores, now, &by, "enrolment.created", &made.id, detail)?;
            Ok::<_, Problem>((token, made))
        })
        .await?;
    let body = EnrolmentMade {
        token: token.expose().to_owned(),
        again,
        plane: plane_url(&app, &headers),
        enrolment: EnrolmentShown::of(&made),
    };
    Ok(secret(StatusCode::CREATED, &body))
}

/// The node of a name, if it is one of ours.
async fn known_node(app: &App, name: &str) -> Result<Option<NodeId>, Problem> {
    match ask(app, FleetQuestion::Node(name.into())).await? {
        FleetReply::Node(view) if *view.row.name != *name => Err(conflict(format!(
            "{name:?} is the id of a node; choose another name"
        ))),
        FleetReply::Node(view) => match view.row.kind {
            NodeKind::Daemon => Ok(Some(view.row.id)),
            NodeKind::Relay => Err(conflict(format!(
                "{name:?} is a node of a Relay broker; choose another name, or delete that node"
            ))),
        },
        FleetReply::UnknownNode => Ok(None),
        FleetReply::Conflict(message) => Err(conflict(message)),
        _ => Err(unexpected("a question about a node")),
    }
}

/// Revoke an enrolment token
#[utoipa::path(post, path = "/api/v1/fleet/enrollments/{id}/revoke", tag = "fleet",
    params(("id" = String, Path, description = "The token's id")),
    responses((status = 200, description = "It is no longer taken.", body = EnrolmentShown),
              (status = 404, description = "No such token."),
              (status = 409, description = "It was used or revoked before.")))]
async fn revoke(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
) -> Result<Json<EnrolmentShown>, Problem> {
    let none = || Problem::not_found("no enrolment token has that id");
    let enrolment = app.auth.enrolment(&id).ok_or_else(none)?;
    let now = app.clock.now();
    let (work, by) = (app.clone(), caller.principal.to_string());
    app.blocking(move |stores| {
        let gone = || conflict("it was used or revoked before".into());
        let known = work.auth.ring.get(&enrolment.id);
        if known.is_none_or(|record| record.revoked_at.is_some()) {
            return Err(gone());
        }
        let detail = format!("{} for a node named {}", enrolment.prefix, enrolment.name);
        audit(stores, now, &by, "enrolment.revoked", &enrolment.id, detail)?;
        if !work
            .auth
            .use_enrolment(&*stores.annex, &enrolment.id, now)?
        {
            return Err(gone());
        }
        Ok(Json(EnrolmentShown::of(&enrolment)))
    })
    .await
}

/// Enrol a machine
///
/// Hands in a token, once. The answer holds the key with which the machine opens its link. Should
/// the answer be lost, another token for the same name enrols the same node again.
#[utoipa::path(post, path = "/api/v1/fleet/enroll", tag = "fleet", request_body = Handed,
    responses((status = 201, description = "The machine is a node.", body = NodeEnrolled),
              (status = 401, description = "No token, or one that is not known or has expired."),
              (status = 403, description = "The token is for another name."),
              (status = 409, description = "The token was used or revoked, or the name is taken.")))]
async fn enroll(
    State(app): State<App>,
    headers: HeaderMap,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let handed: Handed = super::optional(&bytes, "{token, name?, labels?, max_workers?, host?}")?;
    let enrolment = find(&app, &headers, handed.token.as_deref())?;
    if handed
        .name
        .as_deref()
        .is_some_and(|name| *name != *enrolment.name)
    {
        return Err(Problem::new(
            Category::PermissionDenied,
            format!(
                "this token enrols a node named {}; make one for the other name with `muster nodes enroll`",
                enrolment.name
            ),
        ));
    }
    let host = host(handed.host)?;
    let own = labels("labels", &handed.labels)?;
    let max_workers = enrolment.max_workers.or(handed.max_workers).unwrap_or(0);
    let labels = enrolment.labels.clone().unwrap_or(own);
    let node = take_in(&app, &enrolment, labels, max_workers).await?;
    let now = app.clock.now();
    let work = app.clone();
    let (name, id) = (node.name.clone(), node.id.clone());
    let token = app
        .blocking(move |stores| {
            let annex = &*stores.annex;
            if !work.auth.use_enrolment(annex, &enrolment.id, now)? {
                return Err(not_taken(NotTaken::Revoked));
            }
            let whose = Subject::Node(id);
            let made = work.auth.issue(annex, &whose, &enrolment.principal, now);
            let (key, record) = match made {
                Ok(made) => made,
                Err(error) => {
                    work.auth.give_enrolment_back(annex, &enrolment.id)?;
                    return Err(error.into());
                }
            };
            let detail = format!(
                "{name} ({}) with {} from host {host:?}; key {}",
                enrolment.node, enrolment.prefix, record.id
            );
            audit(
                stores,
                now,
                &enrolment.principal,
                "enrolment.redeemed",
                &enrolment.id,
                detail,
            )?;
            Ok(key)
        })
        .await?;
    let body = NodeEnrolled {
        node_id: node.id.to_string(),
        name: node.name.to_string(),
        token: token.expose().to_owned(),
        labels: node.labels.clone(),
        max_workers: node.max_workers,
    };
    Ok(secret(StatusCode::CREATED, &body))
}

/// What the token of a request enrols.
fn find(app: &App, headers: &HeaderMap, token: Option<&str>) -> Result<Enrolment, Problem> {
    let header = || {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    };
    let token = token.or_else(header).map(str::trim).unwrap_or_default();
    if token.is_empty() {
        return Err(Problem::new(
            Category::Unauthenticated,
            "this needs an enrolment token; make one with `muster nodes enroll NAME`",
        ));
    }
    let found = app.auth.find_enrolment(token, app.clock.now());
    found.map_err(not_taken)
}

fn not_taken(why: NotTaken) -> Problem {
    match why {
        NotTaken::Revoked => conflict(
            "this enrolment token was used or revoked; make another for the same name with `muster nodes enroll NAME`"
                .into(),
        ),
        NotTaken::Expired => Problem::new(
            Category::Unauthenticated,
            "this enrolment token has expired: it is good for 15 minutes; make another with `muster nodes enroll NAME`",
        ),
        NotTaken::Malformed | NotTaken::Unknown | NotTaken::SignedOut => Problem::new(
            Category::Unauthenticated,
            "this is no enrolment token of this plane; make one with `muster nodes enroll NAME`",
        ),
    }
}

/// The engine takes the node in. Asking again for the same node changes nothing.
async fn take_in(
    app: &App,
    enrolment: &Enrolment,
    labels: Vec<Arc<str>>,
    max_workers: u32,
) -> Result<NodeRow, Problem> {
    let reply = wish(app, |waiter| {
        FleetEvent::Enrolled(Box::new(Enrolled {
            waiter,
            id: enrolment.node.clone(),
            name: enrolment.name.clone(),
            kind: NodeKind::Daemon,
            labels,
            max_workers,
            principal: enrolment.principal.clone(),
        }))
    })
    .await?;
    match reply {
        FleetReply::Enrolled(row) => Ok(*row),
        FleetReply::LinkRefused { message, .. } | FleetReply::Conflict(message) => {
            Err(conflict(message))
        }
        FleetReply::Refused(refusal) => {
            let hint = refusal.hint.map(|hint| format!("; {hint}"));
            let message = format!("{}{}", refusal.message, hint.unwrap_or_default());
            Err(Problem::new(refusal.category, message))
        }
        _ => Err(unexpected("an enrolment")),
    }
}

fn host(host: Option<String>) -> Result<String, Problem> {
    let host = host.unwrap_or_default();
    if host.len() > HOST_MAX || host.chars().any(char::is_control) {
        return Err(Problem::validation(format!(
            "host: at most {HOST_MAX} bytes without control characters"
        )));
    }
    Ok(host)
}

fn secret(status: StatusCode, body: &impl Serialize) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}
