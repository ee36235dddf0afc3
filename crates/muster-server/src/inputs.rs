//! Checks an input against the schema its function was registered with: required fields, and
//! in strict mode each property whose schema compiles. Schemas come from agents: they are
//! compiled without network or files, with linear-time patterns, and up to a size.

use std::sync::Arc;

use dashmap::DashMap;
use jsonschema::{PatternOptions, Validator};
use muster_engine::event::InputFault;
use muster_engine::row::Function;
use muster_wire::AgentId;
use serde_json::Value;

use crate::app::AppState;
use crate::config::ValidateInput;
use crate::json::Members;

/// Compiled functions that are kept.
const CACHED_MAX: usize = 1024;
/// The largest schema of one property that is compiled.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// The longest text of a fault.
const MESSAGE_MAX: usize = 300;

/// Compiled schemas by agent and function; forgotten when the agent registers anew.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    compiled: DashMap<(AgentId, Box<str>), Arc<Vec<Property>>>,
}

#[derive(Debug)]
struct Property {
    name: String,
    validator: Validator,
}

impl Schemas {
    /// Forgets what was compiled of an agent.
    pub(crate) fn forget(&self, agent: &AgentId) {
        if !self.compiled.is_empty() {
            self.compiled.retain(|(owner, _), _| owner != agent);
        }
    }
}

/// What is wrong with an input, if anything. A function that is not known has no faults: its
/// call is refused for that.
pub(crate) async fn fault(
    app: &AppState,
    agent: &AgentId,
    function: &Function,
    input: &[u8],
) -> Option<InputFault> {
    match app.config.admission.validate_input {
        ValidateInput::Off => None,
        ValidateInput::Lenient => missing(function, input),
        ValidateInput::Strict => match missing(function, input) {
            Some(fault) => Some(fault),
            None => misfit(app, agent, function, input).await,
        },
    }
}

/// The first required field that is not there.
fn missing(function: &Function, input: &[u8]) -> Option<InputFault> {
    if function.required.is_empty() {
        return None;
    }
    let Members(members) = serde_json::from_slice(input).ok()?;
    let field = function
        .required
        .iter()
        .find(|field| members.iter().all(|(name, _)| **name != ***field))?;
    Some(InputFault {
        field: field.to_string(),
        message: "is required".into(),
    })
}

async fn misfit(
    app: &AppState,
    agent: &AgentId,
    function: &Function,
    input: &[u8],
) -> Option<InputFault> {
    let properties = properties(app, agent, function).await;
    let Members(members) = serde_json::from_slice(input).ok()?;
    for property in properties.iter() {
        let Some((_, raw)) = members.iter().find(|(name, _)| *name == property.name) else {
            continue;
        };
        // What no value can hold (1e400, a lone surrogate) is the agent's to judge.
        let Ok(value) = serde_json::from_str::<Value>(raw.get()) else {
            continue;
        };
        if value.is_null() {
            // Published schemas say `string` where null is accepted.
            continue;
        }
        if let Err(error) = property.validator.validate(&value) {
            let place = error.instance_path().to_string();
            return Some(InputFault {
                field: format!("{}{}", property.name, place.replace('/', ".")),
                message: masked(&error),
            });
        }
    }
    None
}

/// What a schema objects to, without the value itself.
fn masked(error: &jsonschema::ValidationError<'_>) -> String {
    let mut text = error.masked_with("the value").to_string();
    if text.len() > MESSAGE_MAX {
        let cut = (0..=MESSAGE_MAX)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        text.truncate(cut.unwrap_or(0));
    }
    text
}

async fn properties(app: &AppState, agent: &AgentId, function: &Function) -> Arc<Vec<Property>> {
    let key = (agent.clone(), Box::from(function.name.as_str()));
    if let Some(found) = app.schemas.compiled.get(&key) {
        return found.clone();
    }
    let (wanted, name) = (agent.clone(), function.name.clone());
    let compile = move |stores: &muster_store::Stores| {
        let stored = stores.decisions.agents(Some(&wanted)).unwrap_or_default();
        let registration = stored.first().map(|agent| &agent.row.registration.0);
        let schema = registration.and_then(|body| schema_of(body, name.as_str()));
        compiled(schema.as_ref())
    };
    let properties = Arc::new(app.blocking(compile).await);
    if app.schemas.compiled.len() >= CACHED_MAX {
        app.schemas.compiled.clear();
    }
    app.schemas.compiled.insert(key, properties.clone());
    properties
}

/// The `input_schema` of a function in a stored registration.
fn schema_of(registration: &[u8], function: &str) -> Option<Value> {
    let registration: Value = serde_json::from_slice(registration).ok()?;
    ["reasoners", "skills"]
        .iter()
        .filter_map(|list| registration.get(list)?.as_array())
        .flatten()
        .find(|entry| entry.get("id").and_then(Value::as_str) == Some(function))?
        .get("input_schema")
        .cloned()
}

/// Each property whose schema compiles; the others are not checked.
fn compiled(schema: Option<&Value>) -> Vec<Property> {
    let Some(properties) = schema
        .and_then(|s| s.get("properties"))
        .and_then(Value::as_object)
    else {
        return Vec::new();
    };
    properties
        .iter()
        .filter(|(_, schema)| schema.to_string().len() <= SCHEMA_BYTES_MAX)
        .filter_map(|(name, schema)| {
            let validator = jsonschema::options()
                .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
                .build(schema)
                .ok()?;
            Some(Property {
                name: name.clone(),
                validator,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_does_not_compile_is_left_out_and_the_others_count() {
        let schema = json!({"properties": {
            "a": {"type": "integer"},
            "b": {"$ref": "#/$defs/Nowhere"},
            "c": {"type": "string", "pattern": "(a+)+$"},
            "d": {"$ref": "http://169.254.169.254/x"},
        }});
        let names: Vec<_> = compiled(Some(&schema))
            .into_iter()
            .map(|p| p.name)
            .collect();
        assert!(names.contains(&"a".to_owned()) && names.contains(&"c".to_owned()));
        assert!(!names.contains(&"b".to_owned()) && !names.contains(&"d".to_owned()));
    }

    #[test]
    fn a_required_field_is_missed_by_name() {
        let function: Function =
            serde_json::from_value(json!({"name": "f", "kind": "reasoner", "required": ["x"]}))
                .unwrap();
        assert_eq!(missing(&function, br#"{"x":null}"#), None);
        assert_eq!(missing(&function, br#"{"y":1}"#).unwrap().field, "x");
    }
}
