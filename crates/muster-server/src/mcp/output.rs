//! What tools give, as schemas. Every tool may give the one error shape instead: some clients
//! check results against the schema even when they are errors.

use serde_json::{Map, Value, json};

/// A text.
pub(super) fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

/// A whole number.
pub(super) fn whole(about: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": about})
}

/// A truth value.
pub(super) fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

/// One of these words.
pub(super) fn word(words: &[&str], about: &str) -> Value {
    json!({"type": "string", "enum": words, "description": about})
}

/// Any JSON at all.
pub(super) fn any(about: &str) -> Value {
    json!({"description": about})
}

/// A list.
pub(super) fn list(items: Value, about: &str) -> Value {
    json!({"type": "array", "items": items, "description": about})
}

/// The same or `null`, where something is not known.
pub(super) fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// An object with these members and no others. The first so many are always there.
pub(super) fn object(always: usize, members: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = members.iter().take(always).map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = members
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

/// A tool's result, or an error.
pub(super) fn result(result: Value) -> Map<String, Value> {
    let mut properties = error_members();
    let Value::Object(mut result) = result else {
        return Map::new();
    };
    if let Some(Value::Object(own)) = result.remove("properties") {
        properties.extend(own);
    }
    let own = result.remove("required").unwrap_or_default();
    let error = json!(["error", "error_category", "message"]);
    result.insert("properties".into(), properties.into());
    result.insert(
        "anyOf".into(),
        json!([{"required": own}, {"required": error}]),
    );
    result
}

fn error_members() -> Map<String, Value> {
    let members = [
        (
            "error",
            text("Only in errors: the category, or a finer word."),
        ),
        (
            "error_category",
            text("Only in errors: what went wrong; switch on this word."),
        ),
        (
            "message",
            text("Only in errors: what went wrong and what to do."),
        ),
        (
            "retry_after",
            whole("Only in errors: seconds after which trying again makes sense."),
        ),
        ("execution_id", text("The execution.")),
        ("details", any("Only in errors: whatever helps.")),
    ];
    members
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}
