//! Signing a browser in and out: a key or a one-use code becomes a cookie, and the key itself is
//! in no address, no storage and no page.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use muster_wire::api::session::{CodeMade, Lacking, SessionShown, SessionStarted, SignedBy};
use muster_wire::{Category, Timestamp};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::{self, RawBody};
use crate::api::caller::Caller;
use crate::api::keys::{audit, check_scopes};
use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{
    Auth, CODE_GOOD_FOR, Credential, Grants, Key, KeyText, Need, OWNER, cookie, is_local, place_of,
};

/// What is read of a sign-in: a key is short.
const BODY_MAX: usize = 4 * 1024;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(sign_in, session, sign_out))
        .routes(routes!(make_code))
}

/// One of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    /// A key of a person.
    #[serde(default)]
    key: Option<String>,
    /// A one-use code.
    #[serde(default)]
    code: Option<String>,
}

/// What a code may do.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewCode {
    /// Fewer scopes than those of the key that makes it; all when absent.
    #[serde(default)]
    scopes: Option<Vec<String>>,
}

/// Sign a browser in
///
/// With a key or a one-use code, exactly one. The answer sets a cookie that scripts cannot read
/// and other sites cannot send; it lasts 7 days, or 12 hours unused, and ends with its key. A
/// session that the browser had before ends.
#[utoipa::path(post, path = "/api/v1/session", tag = "session", request_body = SignIn,
    responses((status = 200, description = "Signed in; the cookie is in Set-Cookie.", body = SessionStarted),
              (status = 401, description = "The key or the code is not taken."),
              (status = 403, description = "The key is a program's."),
              (status = 429, description = "Too many wrong ones came from there.")))]
async fn sign_in(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let now = app.clock.now();
    let place = place_of(&request).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let is_secure = cookie::is_secure(request.uri(), request.headers());
    let before = app.auth.sessions_in(request.headers(), now);
    let bytes = body::read(request, BODY_MAX).await?;
    let wanted: SignIn = body::json(&bytes, "{key} or {code}")?;
    let (shown, scopes) = match (&wanted.key, &wanted.code) {
        (Some(key), None) => (app.auth.ring.find(key.trim(), now).ok(), None),
        (None, Some(code)) => {
            // A code is short enough to be guessed at, so it waits its turn.
            closed(&app, place, now)?;
            match app.auth.codes.redeem(code, now) {
                Some(code) => {
                    let key = app.auth.ring.good_of_hash(&code.key, now).ok();
                    (key, Some(code.scopes))
                }
                None => (None, None),
            }
        }
        _ => {
            return Err(Problem::validation(
                "the body must be {key} or {code}, one of them",
            ));
        }
    };
    let Some(key) = shown else {
        return Err(wrong(&app, place, now, wanted.code.is_some()).await);
    };
    if !Auth::signs_in(&key) {
        return Err(Problem::new(
            Category::PermissionDenied,
            "this key is for a program; sign in with a key of your own",
        ));
    }
    let by = if scopes.is_some() {
        "a code"
    } else {
        "its key"
    };
    let scopes = scopes.unwrap_or_else(|| key.record.scopes.clone());
    let started = start(&app, key, scopes, format!("{by}, from {place}"), now).await?;
    replace(&app, before, now).await?;
    let line = app.auth.set_cookie(&started.0, is_secure);
    Ok(([(SET_COOKIE, line), no_store()], Json(started.1)).into_response())
}

/// No answer here is for anybody but its reader.
fn no_store() -> (HeaderName, String) {
    (CACHE_CONTROL, "no-store".to_owned())
}

async fn start(
    app: &App,
    key: Arc<Key>,
    scopes: Vec<String>,
    how: String,
    now: Timestamp,
) -> Result<(KeyText, SessionStarted), Problem> {
    let work = app.clone();
    app.blocking(move |stores| {
        let (text, record) = work.auth.sign_in(&*stores.annex, &key, &scopes, now)?;
        let detail = format!("{} {:?}, with {how}", key.record.prefix, key.record.name);
        audit(
            stores,
            now,
            &record.principal,
            "session.started",
            &record.id,
            detail,
        )?;
        let expires_at = record.expires_at.unwrap_or(now).into();
        let started = SessionStarted {
            principal: record.principal,
            scopes,
            expires_at,
        };
        Ok((text, started))
    })
    .await
}

/// Ends the sessions that a browser had: it has one.
async fn replace(app: &App, before: Vec<Arc<str>>, now: Timestamp) -> Result<(), Problem> {
    if before.is_empty() {
        return Ok(());
    }
    let work = app.clone();
    app.blocking(move |stores| {
        for id in before {
            let Some(session) = work.auth.ring.get(&id) else {
                continue;
            };
            let why = "its browser signed in anew".to_owned();
            audit(stores, now, &session.principal, "session.ended", &id, why)?;
            work.auth.sign_out(&*stores.annex, &id)?;
        }
        Ok(())
    })
    .await
}

fn closed(app: &App, place: IpAddr, now: Timestamp) -> Result<(), Problem> {
    let Some(left) = app.auth.attempts.closed_for(place, now) else {
        return Ok(());
    };
    let seconds = u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
    Err(Problem::new(
        Category::RateLimited,
        "too many wrong sign-ins from there; wait, or use a key that is right",
    )
    .retry_after(seconds.saturating_add(1)))
}

/// Counts a wrong sign-in and says so: which of the ways it was wrong is nobody's business.
async fn wrong(app: &App, place: IpAddr, now: Timestamp, by_code: bool) -> Problem {
    if let Err(problem) = closed(app, place, now) {
        return problem;
    }
    let closes = app.auth.attempts.wrong(place, now);
    let mut detail = format!(
        "a {} that is not taken",
        if by_code { "code" } else { "key" }
    );
    if closes {
        detail.push_str("; nothing more is tried from there for the rest of a minute");
    }
    let object = place.to_string();
    let noted = app
        .blocking(move |stores| audit(stores, now, "anonymous", "session.refused", &object, detail))
        .await;
    if let Err(problem) = noted {
        return problem;
    }
    Problem::new(
        Category::Unauthenticated,
        match by_code {
            true => "That code is not known, was used, or its time is over.",
            false => "That key is not known or was revoked.",
        },
    )
}

/// Who asks
///
/// Answers everybody: who is not signed in hears what would be needed for what.
#[utoipa::path(get, path = "/api/v1/session", tag = "session",
    responses((status = 200, description = "Who the plane takes the caller for.", body = SessionShown)))]
async fn session(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let loopback = is_local(&request) && !app.auth.asks_all();
    let shown = show(&app, caller.credential(), loopback);
    ([no_store()], Json(shown)).into_response()
}

fn show(app: &App, credential: Option<&Credential>, loopback: bool) -> SessionShown {
    let keyless = if loopback {
        Grants::loopback()
    } else {
        Grants::default()
    };
    let grants = credential.map_or(&keyless, |shown| &shown.identity().grants);
    let session = credential.and_then(Credential::session);
    let by = match (credential, session, loopback) {
        (Some(_), Some(_), _) => SignedBy::Session,
        (Some(_), None, _) => SignedBy::Key,
        (None, _, true) => SignedBy::Loopback,
        (None, _, false) => SignedBy::Nobody,
    };
    let scopes = match credential {
        Some(shown) => Auth::part_of(shown, None).unwrap_or_default(),
        None if loopback => ["read", "call", "agent"].map(str::to_owned).to_vec(),
        None => Vec::new(),
    };
    let key = credential.map(|shown| &shown.key().record);
    let principal = match credential {
        Some(shown) => Some(shown.identity().principal.to_string()),
        None => loopback.then(|| OWNER.to_owned()),
    };
    SessionShown {
        as_of: app.clock.now().into(),
        plane: app.config.server.own_name().map(str::to_owned),
        signed_in: credential.is_some(),
        by: by.into(),
        principal,
        scopes,
        key_id: key.map(|record| record.id.clone()),
        name: key.map(|record| record.name.clone()),
        prefix: key.map(|record| record.prefix.clone()),
        loopback,
        needs: lacking(grants),
        expires_at: session
            .map_or_else(
                || key.and_then(|record| record.expires_at),
                |s| s.record.expires_at,
            )
            .map(Into::into),
        idle_until: session.and_then(Key::over_at).map(Into::into),
    }
}

fn lacking(grants: &Grants) -> Vec<Lacking> {
    let all = [
        (Need::Read, "read", "see runs, agents, queues and the fleet"),
        (Need::Call, "call", "call functions, restart and cancel"),
        (
            Need::Operate,
            "operate",
            "approve, pause and hold, place and release workers, see and drive their terminals",
        ),
        (
            Need::Admin,
            "admin",
            "manage keys and enrolment, read the audit log and the configuration, approve tags, copy the store",
        ),
    ];
    let missing = all.into_iter().filter(|(need, ..)| !grants.satisfy(*need));
    missing
        .map(|(_, scope, what)| Lacking {
            scope: scope.to_owned(),
            what: what.to_owned(),
        })
        .collect()
}

/// Sign a browser out
///
/// At once: what is open in it ends, too. Without a session nothing happens.
#[utoipa::path(delete, path = "/api/v1/session", tag = "session",
    responses((status = 204, description = "Signed out.")))]
async fn sign_out(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let session = caller.credential().and_then(Credential::session);
    if let Some(id) = session.map(|session| session.record.id.clone()) {
        let (work, now, by) = (app.clone(), app.clock.now(), caller.principal.to_string());
        app.blocking(move |stores| {
            let why = "signed out".to_owned();
            audit(stores, now, &by, "session.ended", &id, why)?;
            work.auth.sign_out(&*stores.annex, &id)?;
            Ok::<_, Problem>(())
        })
        .await?;
    }
    let is_secure = cookie::is_secure(request.uri(), request.headers());
    let line = app.auth.clear_cookie(is_secure);
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, line), no_store()]).into_response())
}

/// Make a code that signs a browser in
///
/// Once, within 10 minutes, with the scopes of the key that makes it or fewer. Always needs a
/// key or a session.
#[utoipa::path(post, path = "/api/v1/keys/code", tag = "session",
    request_body(content = NewCode, description = "May be absent."),
    responses((status = 201, description = "The code: shown once.", body = CodeMade),
              (status = 403, description = "The key has not all of these scopes, or is a program's.")))]
async fn make_code(
    State(app): State<App>,
    caller: Caller,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    let wanted: NewCode = if bytes.is_empty() {
        NewCode::default()
    } else {
        body::json(&bytes, "{scopes?}")?
    };
    let Some(shown) = caller.credential() else {
        return Err(Problem::new(
            Category::Unauthenticated,
            "a code stands for a key: send one in X-API-Key",
        ));
    };
    let denied = |message: &str| Problem::new(Category::PermissionDenied, message);
    if !Auth::signs_in(shown.key()) {
        return Err(denied("this key is for a program; nobody signs in with it"));
    }
    let scopes = wanted.scopes.as_deref().map(check_scopes).transpose()?;
    let scopes = Auth::part_of(shown, scopes.as_deref())
        .ok_or_else(|| denied("a code has no more scopes than the key that makes it"))?;
    let now = app.clock.now();
    let until = now + CODE_GOOD_FOR;
    let key = &shown.key().record;
    let code = app.auth.codes.issue(key.hash, scopes.clone(), until, now);
    let code = code.ok_or_else(|| {
        Problem::new(Category::Overloaded, "too many codes are open").retry_after(60)
    })?;
    let (by, id) = (caller.principal.to_string(), key.id.clone());
    let detail = format!("{} {:?}; scopes {}", key.prefix, key.name, scopes.join(" "));
    app.blocking(move |stores| audit(stores, now, &by, "session.code_made", &id, detail))
        .await?;
    let made = CodeMade {
        path: format!("/ui/login#code={code}"),
        code,
        scopes,
        expires_at: until.into(),
    };
    Ok((StatusCode::CREATED, [no_store()], Json(made)).into_response())
}
