//! Agents' memory over HTTP: values by key in four scopes, and the change feed. Vectors are not
//! supported. Decides nothing: which scope a request means is `crate::memory::scope`'s.

mod events;
mod live;
pub(super) use live::unbuffered;
mod socket;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use muster_store::annex::{MemoryBy, MemoryScope};
use muster_wire::{Category, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{HeldBody, Query, RawBody, json};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use crate::app::App;
use crate::bodies::SMALL;
use crate::memory::scope::without_secret;
use crate::memory::{KEY_BYTES_MAX, ScopeError, ScopeIds, ScopeWord, frame};

/// The longest list.
const LIST_MAX: usize = 100_000;
/// Rows read at once for a list.
const LIST_PAGE: usize = 1_000;
/// The longest name of an agent that a change may carry.
const AGENT_BYTES_MAX: usize = 128;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(set))
        .routes(routes!(get))
        .routes(routes!(delete))
        .routes(routes!(list))
        .routes(routes!(vector_set))
        .routes(routes!(vector_search))
        .routes(routes!(vector_delete))
        .routes(routes!(events::history))
        .routes(routes!(live::sse))
        .routes(routes!(socket::ws))
}

/// A value to be set.
#[derive(Debug, Deserialize, ToSchema)]
struct SetBody<'a> {
    /// 1 to 1,024 bytes.
    key: String,
    /// Any JSON, `null` too.
    #[serde(borrow, default, deserialize_with = "there")]
    #[schema(value_type = Option<Object>)]
    data: Option<&'a RawValue>,
    /// `global`, `session`, `actor` or `workflow`.
    scope: Option<String>,
}

/// A key to be read or deleted.
#[derive(Debug, Deserialize, ToSchema)]
struct KeyBody {
    /// 1 to 1,024 bytes.
    key: String,
    /// `global`, `session`, `actor` or `workflow`.
    scope: Option<String>,
}

/// Tells `null` from absence.
fn there<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Sets a value in the named scope, or in the first of workflow, session, actor and global that
/// the headers name. Answers with the value as it is kept.
#[utoipa::path(post, path = "/api/v1/memory/set", tag = "memory", request_body = SetBody<'static>,
    responses((status = 200, description = "The value with its scope and times")))]
async fn set(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    HeldBody(held): HeldBody,
) -> Answer {
    let body = &held.bytes;
    let wish: SetBody<'_> = json(body, "{key, data, scope?}")?;
    let Some(data) = wish.data else {
        return Err(Problem::validation(
            "data is missing; null is a value, absence is not",
        ));
    };
    let key = key(wish.key)?;
    let (scope, by) = change(&caller, &headers, wish.scope.as_deref())?;
    // A small slice would keep the connection's whole read buffer alive.
    let data = match data.get().as_bytes() {
        small if small.len() <= SMALL => Bytes::copy_from_slice(small),
        large => body.slice_ref(large),
    };
    let (memory, now) = (app.memory.clone(), app.clock.now());
    let row = app
        .blocking(move |stores| memory.set(&*stores.annex, &scope, &key, data, &by, now))
        .await?;
    Ok(json_text(StatusCode::OK, frame::row_text(&row)))
}

/// Reads a value from the named scope, or from the first of workflow, session, actor and global
/// that has it.
#[utoipa::path(post, path = "/api/v1/memory/get", tag = "memory", request_body = KeyBody,
    responses((status = 200, description = "The value with its scope and times; `data` is always there"),
              (status = 404, description = "No such key")))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Answer {
    may_read(&caller)?;
    let wish: KeyBody = json(&body, "{key, scope?}")?;
    let key = key(wish.key)?;
    let ids = ScopeIds::from_headers(&headers).map_err(refuse)?;
    let scopes = match named(&ids, wish.scope.as_deref())? {
        Some(scope) => vec![scope],
        None => ids.walk(),
    };
    let found = app
        .blocking(move |stores| stores.annex.memory_get(&scopes, &key))
        .await?;
    match found {
        Some(row) => Ok(json_text(StatusCode::OK, frame::row_text(&row))),
        None => Err(Problem::not_found(
            "there is no value under this key in this scope",
        )),
    }
}

/// Deletes a value. Deleting what is not there is no error.
#[utoipa::path(post, path = "/api/v1/memory/delete", tag = "memory", request_body = KeyBody,
    responses((status = 204, description = "It is not there")))]
async fn delete(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Answer {
    let wish: KeyBody = json(&body, "{key, scope?}")?;
    let key = key(wish.key)?;
    let (scope, by) = change(&caller, &headers, wish.scope.as_deref())?;
    let (memory, now) = (app.memory.clone(), app.clock.now());
    app.blocking(move |stores| memory.delete(&*stores.annex, &scope, &key, &by, now))
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What to list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `global`, `session`, `actor` or `workflow`; without it the first that the headers name.
    scope: Option<String>,
    /// Only keys after this one.
    after: Option<String>,
    /// At most so many, up to 100,000.
    limit: Option<usize>,
}

/// Lists the keys of a scope in order, without their values.
#[utoipa::path(get, path = "/api/v1/memory/list", tag = "memory", params(ListQuery),
    responses((status = 200, description = "An array of objects with `key`, scope and times")))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(wish): Query<ListQuery>,
) -> Answer {
    may_read(&caller)?;
    let ids = ScopeIds::from_headers(&headers).map_err(refuse)?;
    let scope = named(&ids, wish.scope.as_deref())?.unwrap_or_else(|| ids.first());
    let limit = wish.limit.unwrap_or(LIST_MAX).min(LIST_MAX);
    let mut after = wish.after.unwrap_or_default();
    let rows = app
        .blocking(move |stores| {
            let mut all = Vec::new();
            while all.len() < limit {
                let page = LIST_PAGE.min(limit - all.len());
                let rows = stores.annex.memory_keys(&scope, &after, page)?;
                let Some(last) = rows.last() else { break };
                after.clone_from(&last.key);
                let is_last = rows.len() < page;
                all.extend(rows);
                if is_last {
                    break;
                }
            }
            Ok::<_, muster_store::StoreError>(all)
        })
        .await?;
    Ok(json_text(StatusCode::OK, frame::list_text(&rows)))
}

/// Vectors are not supported: answers 501.
#[utoipa::path(post, path = "/api/v1/memory/vector/set", tag = "memory",
    responses((status = 501, description = "Not supported")))]
async fn vector_set() -> Problem {
    Problem::not_supported("memory of vectors")
}

/// Vectors are not supported: answers 501.
#[utoipa::path(post, path = "/api/v1/memory/vector/search", tag = "memory",
    responses((status = 501, description = "Not supported")))]
async fn vector_search() -> Problem {
    Problem::not_supported("memory of vectors")
}

/// Vectors are not supported: answers 501.
#[utoipa::path(post, path = "/api/v1/memory/vector/delete", tag = "memory",
    responses((status = 501, description = "Not supported")))]
async fn vector_delete() -> Problem {
    Problem::not_supported("memory of vectors")
}

/// Memory belongs to agents; a key that sees only its own results sees none of it.
fn may_read(caller: &Caller) -> Result<(), Problem> {
    if caller.grants.only_own_results() {
        return Err(Problem::new(
            Category::PermissionDenied,
            "this needs a key with the scope read or agent",
        ));
    }
    Ok(())
}

fn key(key: String) -> Result<String, Problem> {
    match key.len() {
        0 => Err(Problem::validation("key must not be empty")),
        1..=KEY_BYTES_MAX => Ok(key),
        _ => Err(Problem::validation(format!(
            "key has at most {KEY_BYTES_MAX} bytes"
        ))),
    }
}

/// Where a change goes, and who makes it.
fn change(
    caller: &Caller,
    headers: &HeaderMap,
    scope: Option<&str>,
) -> Result<(MemoryScope, MemoryBy), Problem> {
    let ids = ScopeIds::from_headers(headers).map_err(refuse)?;
    let scope = named(&ids, scope)?.unwrap_or_else(|| ids.first());
    let claimed = headers
        .get("x-agent-node-id")
        .and_then(|value| value.to_str().ok())
        .filter(|text| !text.is_empty() && text.len() <= AGENT_BYTES_MAX)
        .map(str::to_owned);
    let by = MemoryBy {
        agent: caller
            .key_agent
            .as_ref()
            .map(ToString::to_string)
            .or(claimed),
        actor: ids.actor.as_deref().map(str::to_owned),
        workflow: ids.workflow.as_deref().map(str::to_owned),
    };
    Ok((scope, by))
}

fn named(ids: &ScopeIds, scope: Option<&str>) -> Result<Option<MemoryScope>, Problem> {
    match scope {
        None | Some("") => Ok(None),
        Some(word) => ScopeWord::parse(word)
            .and_then(|word| ids.named(word))
            .map(Some)
            .map_err(refuse),
    }
}

fn refuse(error: ScopeError) -> Problem {
    Problem::validation(error.to_string())
}

/// JSON text as an answer.
fn json_text(status: StatusCode, text: String) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        Bytes::from(text),
    )
        .into_response()
}

/// A moment of a query: RFC 3339; without a zone it is UTC, as Python's naive times are sent.
fn moment(text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text)
        .or_else(|| Timestamp::parse(&format!("{text}Z")))
        // A plus sign that nobody encoded arrives as a space.
        .or_else(|| Timestamp::parse(&text.replace(' ', "+")))
        .ok_or_else(|| Problem::validation("since must be a time such as 2026-01-31T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_python_sends_them() {
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00.000000",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T13:00:00 01:00",
        ] {
            assert_eq!(
                moment(text).unwrap().rfc3339(),
                "2026-01-31T12:00:00.000Z",
                "{text}"
            );
        }
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "1e400", "\0"] {
            assert!(moment(text).is_err(), "{text:?}");
        }
    }
}
