//! `/openapi.json`: generated from the routes, so that it cannot drift from them. What holds
//! for every route is added here once: the error shape, the keys, the scope each one needs.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use muster_wire::Category;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::api::docs;
use crate::app::App;
use crate::auth::{Need, table};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
}

/// Adds the document's own routes.
pub(crate) fn serve(router: Router<App>, document: &Value) -> Router<App> {
    let text = Bytes::from(serde_json::to_vec(document).unwrap_or_default());
    let tag: Arc<str> = format!("\"{}\"", &blake3::hash(&text).to_hex()[..16]).into();
    router
        .route(
            "/openapi.json",
            get(move |headers: HeaderMap| async move { answer(&headers, &tag, text) }),
        )
        .merge(docs::routes(document))
}

fn answer(headers: &HeaderMap, tag: &str, text: Bytes) -> Response {
    let known = headers
        .get(IF_NONE_MATCH)
        .is_some_and(|v| v.as_bytes() == tag.as_bytes());
    if known {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag.to_owned())]).into_response();
    }
    let headers = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (ETAG, tag.to_owned()),
    ];
    (headers, text).into_response()
}

/// The document with what holds for every route.
pub(crate) fn finish(document: &OpenApi) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    document["info"] = json!({
        "title": "Muster",
        "version": env!("CARGO_PKG_VERSION"),
        "description": ABOUT,
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    let components = object(&mut document["components"]);
    if let Some(schemas) = components.get_mut("schemas") {
        object(schemas).values_mut().for_each(absent_or_null);
    }
    object(components.entry("schemas").or_insert(Value::Null))
        .insert("Problem".into(), problem_schema());
    object(components.entry("responses").or_insert(Value::Null))
        .insert("Problem".into(), problem_response());
    components.insert(
        "securitySchemes".into(),
        json!({
            "key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            "bearer": { "type": "http", "scheme": "bearer" },
            "session": {
                "type": "apiKey", "in": "cookie", "name": "muster_session_8080",
                "description": "The session of a browser, set by `POST /api/v1/session`. The name ends in the plane's port. It acts only from the plane's own pages.",
            },
        }),
    );
    for (path, item) in object(&mut document["paths"]).iter_mut() {
        for (method, operation) in object(item).iter_mut() {
            operation["operationId"] = operation_id(method, path).into();
            let method = method.to_uppercase().parse().unwrap_or_default();
            let asks = table::asks(&method, path);
            complete(operation, table::look_up(&method, Some(path)).0, asks);
        }
    }
    document
}

const ABOUT: &str = "The API of a Muster control plane. Compatible with AgentField's where names \
coincide. Every answer with a status of 400 or above has the shape of `Problem`; switch on \
`error_category`. On loopback, calls, reads and what agents tell need no key; elsewhere \
everything but the health routes does. Decisions of a person (scope `operate`) and the \
administration (scope `admin`) always need one.";

/// One name an operation, made of what it is asked for: `get_api_v1_runs_run_steps`. Client
/// generators refuse a document in which two share one.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    std::iter::once(method)
        .chain(words.filter(|word| !word.is_empty()))
        .collect::<Vec<_>>()
        .join("_")
}

/// Adds to one operation the errors and the scope that its handler did not have to spell out.
/// `asks`: what the handler asks for itself.
fn complete(operation: &mut Value, need: Need, asks: Option<&str>) {
    let responses = object(&mut operation["responses"]);
    for (status, response) in responses.iter_mut() {
        let is_error = status.parse::<u16>().is_ok_and(|status| status >= 400);
        if is_error && response.get("content").is_none() && response.get("$ref").is_none() {
            response["content"] = problem_content();
        }
    }
    responses
        .entry("default")
        .or_insert_with(|| json!({ "$ref": "#/components/responses/Problem" }));
    let scope = match (need, asks) {
        (_, Some(asks)) => asks.to_owned(),
        (Need::Nothing, None) => "No key needed, from anywhere.".to_owned(),
        (need, None) if need.always_needs_a_key() => {
            format!("Always needs a key, with scope {}.", need.scopes())
        }
        (need, None) => format!("Scope: {}; no key needed on loopback.", need.scopes()),
    };
    operation["security"] = match need {
        Need::Nothing if asks.is_none() => json!([]),
        need if need.always_needs_a_key() => {
            json!([{ "key": [] }, { "bearer": [] }, { "session": [] }])
        }
        _ => json!([{}, { "key": [] }, { "bearer": [] }, { "session": [] }]),
    };
    let said = operation["description"]
        .as_str()
        .unwrap_or("")
        .trim()
        .to_owned();
    operation["description"] = if said.is_empty() {
        scope
    } else {
        format!("{said}\n\n{scope}")
    }
    .into();
}

fn problem_content() -> Value {
    json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } })
}

fn problem_response() -> Value {
    json!({
        "description": "The one error shape. Absent keys are absent, never null.",
        "headers": { "Retry-After": {
            "description": "Seconds; always equal to `retry_after`.",
            "schema": { "type": "integer" }
        } },
        "content": problem_content(),
    })
}

fn problem_schema() -> Value {
    let words: Vec<&str> = Category::ALL.iter().map(Category::word).collect();
    json!({
        "type": "object",
        "description": "Why something was refused or failed.",
        "required": ["error", "error_category", "message"],
        "properties": {
            "error": { "type": "string", "description": "The same word as `error_category`, or a finer one." },
            "error_category": {
                "type": "string", "enum": words,
                "description": "What clients switch on. A newer plane may know more words."
            },
            "message": { "type": "string", "description": "A sentence for a person that says what to do." },
            "retry_after": { "type": "integer", "minimum": 0, "description": "Seconds after which trying again makes sense." },
            "execution_id": { "type": "string", "description": "Only where an execution exists." },
            "details": { "description": "Whatever helps: the field, the limit, what was looked at; with 403, `needs`: the scope that is missing." },
        },
    })
}

/// A key that may be absent is never `null`: `null` is left to keys that are always there.
fn absent_or_null(schema: &mut Value) {
    if let Some(Value::Array(parts)) = schema.get_mut("allOf") {
        parts.iter_mut().for_each(absent_or_null);
    }
    let always: Vec<String> = match schema.get("required") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        if !always.contains(name) {
            never_null(property);
        }
    }
}

fn never_null(property: &mut Value) {
    let is_null = |part: &Value| part.get("type").is_some_and(|it| it == "null");
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            property["type"] = only.clone();
        }
    }
    if let Some(Value::Array(parts)) = property.get_mut("oneOf") {
        parts.retain(|part| !is_null(part));
        if let [only] = parts.as_slice() {
            let only = only.clone();
            let about = property.get("description").cloned();
            *property = only;
            if let Some(about) = about {
                property["description"] = about;
            }
        }
    }
}

/// The value as an object; made one when it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_route_that_asks_for_itself_is_not_said_to_be_open_to_anybody() {
        let document = crate::api::document();
        for (path, method, word) in [
            ("/api/v1/fleet/workers/{worker}/terminal", "get", "ticket"),
            ("/api/v1/fleet/enroll", "post", "token"),
            ("/api/v1/webhooks/approval-response", "post", "signature"),
        ] {
            let operation = &document["paths"][path][method];
            let said = operation["description"].as_str().unwrap().to_lowercase();
            assert!(
                said.contains(word) && !said.contains("no key needed, from anywhere"),
                "{path}: {said}"
            );
            assert!(operation["security"][0].is_object(), "{path}");
        }
    }

    #[test]
    fn each_security_that_an_operation_names_is_described() {
        let document = crate::api::document();
        let schemes = document["components"]["securitySchemes"]
            .as_object()
            .unwrap();
        assert_eq!(schemes["session"]["in"], "cookie");
        let mut seen = std::collections::BTreeSet::new();
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                for one in operation["security"].as_array().unwrap() {
                    seen.extend(one.as_object().unwrap().keys().cloned());
                }
            }
        }
        let known: std::collections::BTreeSet<String> = schemes.keys().cloned().collect();
        assert_eq!(seen, known);
    }

    #[test]
    fn the_whole_document_is_generated_and_every_operation_is_described() {
        let document = crate::api::document();
        let mut thin = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let summary = operation["summary"].as_str().unwrap_or("");
                if summary.len() < 5 || !operation["responses"]["default"].is_object() {
                    thin.push(format!("{method} {path}: {summary:?}"));
                }
            }
        }
        assert!(thin.is_empty(), "{thin:#?}");
    }
}
