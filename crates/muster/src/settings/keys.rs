//! Which keys there are, taken from the configuration itself, and which key was meant by one
//! that is not there.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use figment::value::Value;
use muster_server::config::{Agent, Config};
use serde_json::Value as Json;

/// Sections and keys that the product will have and this build has not.
const LATER: &[&str] = &["cluster", "server.tls"];

/// Every key with its default, flat.
pub(super) fn all() -> &'static BTreeMap<String, Json> {
    static KEYS: OnceLock<BTreeMap<String, Json>> = OnceLock::new();
    KEYS.get_or_init(|| flat(&serde_json::to_value(Config::default()).unwrap_or_default()))
}

/// What an agent's own table may have.
fn of_an_agent() -> &'static BTreeMap<String, Json> {
    static KEYS: OnceLock<BTreeMap<String, Json>> = OnceLock::new();
    KEYS.get_or_init(|| flat(&serde_json::to_value(Agent::default()).unwrap_or_default()))
}

/// Leaves by key.
pub(super) fn flat(json: &Json) -> BTreeMap<String, Json> {
    fn walk(prefix: &str, json: &Json, out: &mut BTreeMap<String, Json>) {
        match json {
            Json::Object(map) => {
                for (name, value) in map {
                    let key = if prefix.is_empty() {
                        name.clone()
                    } else {
                        format!("{prefix}.{name}")
                    };
                    walk(&key, value, out);
                }
            }
            leaf => {
                out.insert(prefix.to_owned(), leaf.clone());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk("", json, &mut out);
    out
}

/// Section and key; for an agent's table section, agent and key. An agent's id may have dots.
pub(super) fn path(key: &str) -> Vec<&str> {
    match of_agent(key) {
        Some((id, last)) => vec!["agents", id, last],
        None => key.split('.').collect(),
    }
}

fn of_agent(key: &str) -> Option<(&str, &str)> {
    if all().contains_key(key) {
        return None;
    }
    key.strip_prefix("agents.")?.rsplit_once('.')
}

/// Why a key is refused, if it is.
pub(super) fn unknown(key: &str) -> Option<String> {
    if all().contains_key(key) {
        return None;
    }
    if super::node::is_of_node(key) {
        return super::node::unknown(key);
    }
    if LATER.iter().any(|later| {
        key == *later
            || key
                .strip_prefix(later)
                .is_some_and(|rest| rest.starts_with('.'))
    }) {
        return Some(format!("{key} is not in this build yet"));
    }
    if let Some((id, last)) = of_agent(key) {
        if of_an_agent().contains_key(last) {
            return None;
        }
        return Some(said(
            key,
            closest(last, of_an_agent().keys()).map(|k| format!("agents.{id}.{k}")),
        ));
    }
    Some(said(key, closest(key, all().keys())))
}

pub(super) fn said(key: &str, meant: Option<String>) -> String {
    match meant {
        Some(meant) => format!("{key} is no key; did you mean {meant}?"),
        None => format!("{key} is no key"),
    }
}

pub(super) fn closest<'a>(
    key: &str,
    keys: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
) -> Option<String> {
    keys.into_iter()
        .map(|known| (strsim::jaro_winkler(key, known.as_ref()), known.as_ref()))
        .filter(|(nearness, _)| *nearness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known.to_owned())
}

/// The variable that was meant by one with a single underscore.
pub(super) fn meant_by_variable(name: &str) -> Option<String> {
    all()
        .keys()
        .map(|key| format!("MUSTER_{}", key.replace('.', "__").to_ascii_uppercase()))
        .find(|right| right.replace("__", "_") == name)
}

/// Text from the environment or a flag as the value that the key wants.
pub(super) fn value_of(key: &str, text: &str) -> Value {
    let default = match of_agent(key) {
        Some((_, last)) => of_an_agent().get(last),
        None => all().get(key),
    };
    match default {
        Some(Json::Array(_)) if !text.trim_start().starts_with('[') => Value::from(
            text.split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| part.parse::<Value>().unwrap_or_else(|_| Value::from(part)))
                .collect::<Vec<Value>>(),
        ),
        Some(Json::Array(_) | Json::Bool(_) | Json::Number(_)) => {
            text.parse().unwrap_or_else(|_| Value::from(text))
        }
        // An optional number of an agent: anything else that is optional is text.
        Some(Json::Null) if key.ends_with(".max_concurrent") => {
            text.parse().unwrap_or_else(|_| Value::from(text))
        }
        _ => Value::from(text),
    }
}
