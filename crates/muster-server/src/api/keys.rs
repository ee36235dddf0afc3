//! Keys: listing, making, revoking, rotating. A key's text is in exactly one answer, that of
//! the request that made it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use muster_store::annex::{AuditRow, KeyRecord};
use muster_wire::api::keys::{
    KeyAct, KeyConsequence, KeyMade, KeyRevocation, KeyShown, KeyState, Keys,
};
use muster_wire::id::check_id;
use muster_wire::plain::count;
use muster_wire::{Category, Timestamp, mint};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::{self, PathText, Query, RawBody};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{Grants, KeyText, Need, Scope};
use crate::driver::record;

/// The longest life a key may be given, and the longest overlap of a rotation.
const SECONDS_MAX: u64 = 10 * 365 * 86_400;
/// How long the old key is taken after a rotation, when nothing else is said.
const OVERLAP_SECONDS: u64 = 3_600;
/// The longest name.
const NAME_BYTES_MAX: usize = 200;
/// Most scopes of one key.
const SCOPES_MAX: usize = 64;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .routes(routes!(rotate))
}

/// Which keys.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Also those that the plane makes by itself: of workers, of a Relay broker's agents, and
    /// enrolment tokens.
    #[serde(default)]
    all: bool,
}

/// What a key should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// A name for people.
    name: String,
    /// `admin`, `operate`, `read`, `call`, `agent`, `agent:ID`; alone `worker:ID` (with the
    /// `agent:ID` it is bound to), `node:ID` or `relay`.
    scopes: Vec<String>,
    /// Who it stands for: agent ids belong to principals. When absent it is whoever makes it;
    /// for a key that may call and neither read nor be an agent it is a new one, so that it
    /// sees only its own calls, and so for `relay`, whose nodes are its own.
    #[serde(default)]
    principal: Option<String>,
    /// After so many seconds it is no longer taken.
    #[serde(default)]
    expires_in_seconds: Option<u64>,
}

/// Whether to act.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Change nothing, and say what would happen.
    #[serde(default)]
    dry_run: bool,
}

/// How a key is rotated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rotation {
    /// How long the old key is taken beside the new one; 3600 when absent.
    #[serde(default)]
    overlap_seconds: Option<u64>,
}

/// List keys
///
/// Without their texts, which nobody has. Revoked and expired ones are shown too; those that the
/// plane makes by itself only with `all`.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", params(Wanted),
    responses((status = 200, description = "Every key, newest first.", body = Keys)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Keys>, Problem> {
    let now = app.clock.now();
    let keys = app.auth.ring.list();
    let keys = keys
        .iter()
        .filter(|record| wanted.all || !is_made_by_the_plane(record))
        .map(|record| shown(&app, record, &caller, now))
        .collect();
    Ok(Json(Keys {
        as_of: now.into(),
        keys,
    }))
}

/// A key as it is now, with what is open with it.
fn shown(app: &App, record: &KeyRecord, caller: &Caller, now: Timestamp) -> KeyShown {
    let state = match (record.revoked_at, record.expires_at) {
        (Some(_), _) => KeyState::Revoked,
        (None, Some(at)) if at <= now => KeyState::Expired,
        _ => KeyState::Active,
    };
    let (by, open) = app.auth.ring.doings(&record.id);
    KeyShown {
        id: record.id.clone(),
        prefix: record.prefix.clone(),
        name: record.name.clone(),
        scopes: record.scopes.clone(),
        principal: record.principal.clone(),
        state: state.into(),
        created_at: record.created_at.into(),
        last_used_at: record.used_at.map(Into::into),
        last_used_by: by.map(|by| by.to_string()),
        revoked_at: record.revoked_at.map(Into::into),
        expires_at: record.expires_at.map(Into::into),
        open_links: open as u64,
        sessions: app.auth.sessions_of(&record.id, now) as u64,
        is_own: caller.key_id.as_deref() == Some(record.id.as_str()),
        is_configured: app.auth.ring.is_fixed(&record.id),
    }
}

/// What an act on a key would do.
fn consequence(
    act: KeyAct,
    key: KeyShown,
    old_until: Option<Timestamp>,
    now: Timestamp,
) -> KeyConsequence {
    let name = format!("{:?} ({}…)", key.name, key.prefix);
    let open = match (key.open_links, key.sessions) {
        (0, 0) => "nothing is open with it".to_owned(),
        (links, sessions) => format!(
            "{} and {} end with it",
            count(links, "open connection"),
            count(sessions, "signed-in browser")
        ),
    };
    let own = if key.is_own {
        "; it is the one you use"
    } else {
        ""
    };
    let text = match (act, &key.state) {
        (_, state) if *state != KeyState::Active.into() => {
            format!("{name} is {state} already; nothing changes")
        }
        (KeyAct::Revoke, _) => {
            format!("{name} is no longer taken, at once and for good; {open}{own}")
        }
        (KeyAct::Rotate, _) => {
            let left = old_until.map_or(0, |at| at.since(now).as_secs());
            format!(
                "another key takes the place of {name}, which is taken for {left} s more; then {open}{own}"
            )
        }
    };
    let last_used_by_unknown = match (&key.last_used_by, &key.last_used_at) {
        (Some(_), _) => None,
        (None, Some(_)) => Some("it was not used since the plane started".to_owned()),
        (None, None) => Some("it was never used".to_owned()),
    };
    KeyConsequence {
        dry_run: true,
        as_of: now.into(),
        act: act.into(),
        text,
        last_used_at: key.last_used_at,
        last_used_by: key.last_used_by.clone(),
        last_used_by_unknown,
        old_until: old_until.map(Into::into),
        key,
    }
}

fn is_made_by_the_plane(record: &KeyRecord) -> bool {
    let first = record.scopes.first();
    first
        .and_then(|word| Scope::parse(word).ok())
        .is_some_and(|scope| match scope {
            Scope::Worker(_) | Scope::Enroll(_) | Scope::RelayAgent(_) | Scope::Session(_) => true,
            Scope::Admin
            | Scope::Operate
            | Scope::Read
            | Scope::Call
            | Scope::Agent
            | Scope::AgentOnly(_)
            | Scope::Node(_)
            | Scope::Relay => false,
        })
}

/// Make a key
///
/// The answer holds its text, once. It is stored as a hash.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, description = "The key with its text.", body = KeyMade), (status = 400, description = "A scope, the name or the principal is not right.")))]
async fn create(
    State(app): State<App>,
    caller: Caller,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let wanted: NewKey = body::json(&bytes, "{name, scopes, principal?, expires_in_seconds?}")?;
    let scopes = check_scopes(&wanted.scopes)?;
    if wanted.name.trim().is_empty()
        || wanted.name.len() > NAME_BYTES_MAX
        || wanted.name.chars().any(char::is_control)
    {
        return Err(Problem::validation(format!(
            "name must be 1 to {NAME_BYTES_MAX} bytes without control characters"
        )));
    }
    let principal = match wanted.principal {
        Some(principal) => {
            check_id(&principal).map_err(|e| Problem::validation(format!("principal: {e}")))?;
            principal
        }
        // One who sees only what is its own is somebody of its own: otherwise it would see all
        // that its maker called.
        None if is_own_caller(&scopes) => mint("caller"),
        // Every worker of that broker sees its key: no node of somebody else's may be its own.
        None if scopes == [Scope::Relay] => mint("relay"),
        None => caller.principal.to_string(),
    };
    let now = app.clock.now();
    let expires_at = match wanted.expires_in_seconds {
        Some(0) => return Err(Problem::validation("expires_in_seconds must be at least 1")),
        Some(seconds) => Some(now + bounded(seconds, "expires_in_seconds")?),
        None => None,
    };
    let (work, by) = (app.clone(), caller.principal.to_string());
    let (key, record) = app
        .blocking(move |stores| {
            let made = work.auth.create(
                &*stores.annex,
                wanted.name.trim(),
                &scopes,
                &principal,
                expires_at,
                now,
            )?;
            let detail = format!(
                "{} {:?} for {}; scopes {}",
                made.1.prefix,
                made.1.name,
                made.1.principal,
                made.1.scopes.join(" ")
            );
            audit(stores, now, &by, "key.created", &made.1.id, detail)?;
            Ok::<_, Problem>(made)
        })
        .await?;
    Ok(made(&key, shown(&app, &record, &caller, now)))
}

/// Revoke a key
///
/// At once, with what is open with it and the browsers that are signed in with it. Revoking a
/// revoked key changes nothing.
#[utoipa::path(post, path = "/api/v1/keys/{id}/revoke", tag = "keys", params(("id" = String, Path, description = "The key's id."), Asked),
    responses((status = 200, description = "The key as it now is; with dry_run what would happen.", body = KeyRevocation), (status = 404, description = "No such key."), (status = 409, description = "It comes from the configuration.")))]
async fn revoke(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(asked): Query<Asked>,
) -> Result<Json<KeyRevocation>, Problem> {
    must_be_stored(&app, &id)?;
    let now = app.clock.now();
    if asked.dry_run {
        let record = app.auth.ring.get(&id).ok_or_else(no_such_key)?;
        let key = shown(&app, &record, &caller, now);
        return Ok(Json(KeyRevocation::Would(consequence(
            KeyAct::Revoke,
            key,
            None,
            now,
        ))));
    }
    let (work, by) = (app.clone(), caller.principal.to_string());
    let record = app
        .blocking(move |stores| {
            let held = work.auth.ring.get(&id).ok_or_else(no_such_key)?;
            if held.revoked_at.is_none() {
                // First the line: whatever happens then, no key is revoked without one.
                let detail = revoked(&work, &held, now);
                audit(stores, now, &by, "key.revoked", &held.id, detail)?;
            }
            let record = work.auth.revoke(&*stores.annex, &id, now)?;
            let record = record.ok_or_else(no_such_key)?;
            work.auth.withdraw_under(&*stores.annex, &record, now)?;
            work.auth.end_sessions(&*stores.annex, &record.id)?;
            Ok::<_, Problem>(record)
        })
        .await?;
    let key = shown(&app, &record, &caller, now);
    Ok(Json(KeyRevocation::Revoked(key)))
}

/// What goes with a key that is revoked.
fn revoked(app: &App, key: &KeyRecord, now: Timestamp) -> String {
    let mut detail = format!("{} {:?}", key.prefix, key.name);
    let tokens = app.auth.tokens_under(key, now).len() as u64;
    if tokens > 0 {
        let tokens = count(tokens, "token");
        detail.push_str(&format!(", with {tokens} of its nodes and agents"));
    }
    let sessions = app.auth.sessions_of(&key.id, now) as u64;
    if sessions > 0 {
        let browsers = count(sessions, "signed-in browser");
        detail.push_str(&format!(", with {browsers}"));
    }
    detail
}

/// Rotate a key
///
/// Makes a key of the same name, scopes and principal. The old one is taken for the overlap,
/// so that whoever has it can change over; browsers that signed in with it are signed out then.
/// The owner key's file gets the new one.
#[utoipa::path(post, path = "/api/v1/keys/{id}/rotate", tag = "keys", params(("id" = String, Path, description = "The key's id."), Asked),
    request_body(content = Rotation, description = "May be absent."),
    responses((status = 201, description = "The new key with its text.", body = KeyMade), (status = 200, description = "With dry_run: what would happen.", body = KeyConsequence), (status = 404, description = "No such key."), (status = 409, description = "It is revoked, expired, or comes from the configuration.")))]
async fn rotate(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Query(asked): Query<Asked>,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let wanted: Rotation = if bytes.is_empty() {
        Rotation::default()
    } else {
        body::json(&bytes, "{overlap_seconds?}")?
    };
    must_be_stored(&app, &id)?;
    if app.auth.enrolment(&id).is_some() {
        return Err(Problem::new(
            Category::Conflict,
            "this is an enrolment token; make another for the same name",
        ));
    }
    let overlap = bounded(
        wanted.overlap_seconds.unwrap_or(OVERLAP_SECONDS),
        "overlap_seconds",
    )?;
    let now = app.clock.now();
    if asked.dry_run {
        let record = app.auth.ring.get(&id).ok_or_else(no_such_key)?;
        let key = shown(&app, &record, &caller, now);
        let until = (now + overlap).min(record.expires_at.unwrap_or(now + overlap));
        let would = consequence(KeyAct::Rotate, key, Some(until), now);
        return Ok(Json(would).into_response());
    }
    let (work, by) = (app.clone(), caller.principal.to_string());
    let (key, record) = app
        .blocking(move |stores| {
            let made = work.auth.rotate(&*stores.annex, &id, now + overlap, now)?;
            let made = made.ok_or_else(|| match work.auth.ring.get(&id) {
                None => no_such_key(),
                Some(_) => Problem::new(
                    Category::Conflict,
                    "this key is revoked or expired; make a new one",
                ),
            })?;
            let detail = format!(
                "{} {:?} follows {id}, which is taken for {} s more",
                made.1.prefix,
                made.1.name,
                overlap.as_secs()
            );
            audit(stores, now, &by, "key.rotated", &made.1.id, detail)?;
            Ok::<_, Problem>(made)
        })
        .await?;
    Ok(made(&key, shown(&app, &record, &caller, now)))
}

fn made(key: &KeyText, record: KeyShown) -> Response {
    let body = KeyMade {
        key: key.expose().to_owned(),
        record,
    };
    (
        StatusCode::CREATED,
        [(CACHE_CONTROL, "no-store")],
        Json(body),
    )
        .into_response()
}

/// Whether a key with these scopes calls, and sees only the results of its own calls.
fn is_own_caller(scopes: &[Scope]) -> bool {
    let grants = Grants::of(scopes);
    grants.only_own_results() && grants.satisfy(Need::Call)
}

pub(crate) fn check_scopes(words: &[String]) -> Result<Vec<Scope>, Problem> {
    if words.is_empty() || words.len() > SCOPES_MAX {
        return Err(Problem::validation(format!(
            "scopes must name 1 to {SCOPES_MAX} scopes"
        )));
    }
    let scopes: Result<Vec<Scope>, _> = words.iter().map(|word| Scope::parse(word)).collect();
    let scopes = scopes.map_err(|error| Problem::validation(error.to_string()))?;
    if scopes.len() > 1 && scopes.iter().any(Scope::stands_alone) {
        return Err(Problem::validation(
            "node:ID and relay stand alone: make a key of its own for each",
        ));
    }
    if scopes.iter().any(is_minted) {
        return Err(Problem::validation(
            "enrolment tokens are made by POST /api/v1/fleet/enrollments, and a broker's agents get theirs when they register",
        ));
    }
    let workers = scopes
        .iter()
        .filter(|scope| matches!(scope, Scope::Worker(_)))
        .count();
    if workers > 1 || (workers == 1 && scopes.len() > 2) {
        return Err(Problem::validation(
            "a worker's key has worker:ID, and at most the agent:ID it is bound to",
        ));
    }
    Ok(scopes)
}

/// Whether only the plane makes keys of this scope.
fn is_minted(scope: &Scope) -> bool {
    matches!(
        scope,
        Scope::Enroll(_) | Scope::RelayAgent(_) | Scope::Session(_)
    )
}

fn bounded(seconds: u64, field: &str) -> Result<Duration, Problem> {
    if seconds > SECONDS_MAX {
        return Err(Problem::validation(format!(
            "{field} must be at most {SECONDS_MAX}"
        )));
    }
    Ok(Duration::from_secs(seconds))
}

fn must_be_stored(app: &App, id: &str) -> Result<(), Problem> {
    if app.auth.ring.is_fixed(id) {
        return Err(Problem::new(
            Category::Conflict,
            "this key comes from the configuration; change it there",
        ));
    }
    Ok(())
}

fn no_such_key() -> Problem {
    Problem::not_found("there is no key of that id; see `muster keys`")
}

/// Writes a line of the audit log and of the log.
pub(crate) fn audit(
    stores: &muster_store::Stores,
    at: Timestamp,
    principal: &str,
    action: &str,
    object: &str,
    detail: String,
) -> Result<(), Problem> {
    let row = AuditRow {
        at,
        principal: principal.to_owned(),
        action: action.to_owned(),
        object: object.to_owned(),
        detail,
    };
    record::say(&row);
    stores.annex.audit_add(&row)?;
    Ok(())
}
