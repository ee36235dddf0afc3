//! Holds answers against the document: what a plane says over HTTP must be what `openapi.json`
//! promises for that route and status.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(muster_server::api::document);
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Fails when a JSON answer is not what the document says about its route and status.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, status: u16, body: &[u8]) {
    let path = path.split('?').next().unwrap_or(path);
    // Other protocols have errors of their own.
    if status >= 400 && !path.starts_with("/api/v1/") {
        return;
    }
    let Some((template, operation)) = operation(method, path) else {
        return;
    };
    let responses = &operation["responses"];
    let described = &responses[status.to_string()];
    assert!(
        status >= 400 || described.is_object(),
        "{method} {template} answered {status}, which the document does not name"
    );
    let described = if described.is_object() {
        described
    } else {
        &responses["default"]
    };
    let schema = match described["$ref"].as_str() {
        Some(_) => json!({ "$ref": "#/components/schemas/Problem" }),
        None => described["content"]["application/json"]["schema"].clone(),
    };
    if schema.is_null() {
        return;
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        // A payload may hold numbers that no machine number holds: it is still JSON.
        let raw = serde_json::from_slice::<&serde_json::value::RawValue>(body);
        return assert!(
            raw.is_ok(),
            "{method} {template} answered {status} with what is no JSON"
        );
    };
    let validator = validator(&schema);
    let faults: Vec<String> = validator
        .iter_errors(&body)
        .take(5)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{method} {template} answered {status} against the document:\n{}\n{body:#}",
        faults.join("\n")
    );
}

fn validator(schema: &Value) -> Arc<Validator> {
    let key = schema.to_string();
    let mut known = VALIDATORS.lock().unwrap();
    let make = || {
        let whole = json!({ "allOf": [schema], "components": DOCUMENT["components"] });
        Arc::new(jsonschema::validator_for(&whole).unwrap())
    };
    known.entry(key).or_insert_with(make).clone()
}

/// The operation of a path, and its template: of those that fit, the one with the most text of
/// its own.
fn operation(method: &str, path: &str) -> Option<(&'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object()?;
    let fitting = paths.iter().filter(|(template, _)| fits(template, path));
    let (template, item) = fitting.max_by_key(|(template, _)| {
        template
            .split('/')
            .filter(|part| !part.starts_with('{'))
            .count()
    })?;
    let operation = item.get(method.to_lowercase())?;
    Some((template, operation))
}

fn fits(template: &str, path: &str) -> bool {
    let (wanted, given) = (template.split('/'), path.split('/'));
    wanted.clone().count() == given.clone().count()
        && wanted
            .zip(given)
            .all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
}
