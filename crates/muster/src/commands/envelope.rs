//! What `--json` prints: an envelope for a list, one object for one thing, and the names that
//! items of every list share. `docs/cli.schema.json` describes it; the fields of the API stay
//! beside them, and nothing is taken away.

use muster_wire::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::item;
use super::list::Listed;
use crate::out;

/// Fields that an agent or a caller wrote: copied as text, so that 2^63 and 1e400 stay what
/// they are.
pub(super) const PAYLOADS: &[&str] = &["input", "result", "error_details", "usage"];

/// A list.
pub(super) fn list(kind: &str, listed: &Listed) -> String {
    let mut fields = vec![
        ("kind".to_owned(), json!(kind).to_string()),
        (
            "as_of".to_owned(),
            json!(listed.as_of.rfc3339()).to_string(),
        ),
    ];
    push_known(
        &mut fields,
        "position",
        &listed.position,
        "this list does not say",
    );
    let items: Vec<String> = listed
        .items
        .iter()
        .map(|item| normal(kind, item.clone()).to_string())
        .collect();
    fields.push(("items".to_owned(), format!("[{}]", items.join(","))));
    fields.push(("next_cursor".to_owned(), listed.next_cursor.to_string()));
    for (key, value) in &listed.more {
        if !fields.iter().any(|(known, _)| known == key) {
            fields.push((key.clone(), value.to_string()));
        }
    }
    object(&fields)
}

/// One thing.
pub(super) fn one(kind: &str, thing: &Value) -> String {
    let mut fields = head(kind, thing);
    if let Value::Object(all) = normal(kind, thing.clone()) {
        push_all(&mut fields, all);
    }
    object(&fields)
}

/// One execution as it came: what agents and callers wrote in it is copied as text.
pub(super) fn execution(raw: &[(String, Box<RawValue>)]) -> String {
    let of_ours: Map<String, Value> = raw
        .iter()
        .filter(|(key, _)| !PAYLOADS.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), serde_json::from_str(value.get()).ok()?)))
        .collect();
    let thing = Value::Object(of_ours);
    let mut fields = head("execution", &thing);
    if let Value::Object(all) = normal("execution", thing) {
        push_all(&mut fields, all);
    }
    for (key, value) in raw {
        if PAYLOADS.contains(&key.as_str()) {
            fields.push((key.clone(), value.get().to_owned()));
        }
    }
    object(&fields)
}

/// What something is, and as of when.
fn head(kind: &str, thing: &Value) -> Vec<(String, String)> {
    let as_of = item::time(thing, &["as_of"]).unwrap_or_else(Timestamp::wall_clock);
    let mut fields = vec![
        ("kind".to_owned(), json!(kind).to_string()),
        ("as_of".to_owned(), json!(as_of.rfc3339()).to_string()),
    ];
    // What an agent's function or a machine is stays beside what this line is.
    if let Some(own) = thing.get("kind").filter(|own| own.as_str() != Some(kind)) {
        fields.push(("own_kind".to_owned(), own.to_string()));
    }
    if let Some(position) = thing.get("position") {
        fields.push(("position".to_owned(), position.to_string()));
    }
    fields
}

fn push_all(fields: &mut Vec<(String, String)>, all: Map<String, Value>) {
    // Who and where first; the rest as it comes.
    let (first, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(key, _)| FIRST.contains(&key.as_str()));
    for (key, value) in first.into_iter().chain(rest) {
        if !fields.iter().any(|(known, _)| *known == key) {
            fields.push((key, value.to_string()));
        }
    }
}

const FIRST: &[&str] = &["id", "state", "status", "target", "run_id"];

/// A value, or `null` beside the reason.
fn push_known(fields: &mut Vec<(String, String)>, key: &str, value: &Value, reason: &str) {
    fields.push((key.to_owned(), value.to_string()));
    if value.is_null() {
        fields.push((format!("{key}_unknown"), json!(reason).to_string()));
    }
}

fn object(fields: &[(String, String)]) -> String {
    let all: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{}:{value}", json!(key)))
        .collect();
    format!("{{{}}}", all.join(","))
}

/// Prints one thing.
pub(super) fn print_one(kind: &str, thing: &Value) {
    out::data(&one(kind, thing));
}

/// A name that items share, and the fields that it is taken from.
type Name = (&'static str, &'static [&'static str]);

const EXECUTION: &[Name] = &[
    ("id", &["execution_id"]),
    ("state", &["status"]),
    ("status", &["state"]),
    ("target", &[]),
    ("run_id", &[]),
    ("wait", &[]),
    ("parent_id", &["parent_execution_id"]),
    ("created_at", &[]),
    ("started_at", &[]),
    ("ended_at", &["completed_at"]),
];
const RUN: &[Name] = &[
    ("id", &["run_id"]),
    ("state", &["status"]),
    ("status", &["state"]),
    ("target", &["name"]),
    ("run_id", &[]),
    ("wait", &[]),
    ("created_at", &["started_at"]),
    ("started_at", &[]),
    ("ended_at", &[]),
];
const STATEFUL: &[Name] = &[("id", &[]), ("state", &["status"]), ("status", &["state"])];

/// The names of a kind's items.
fn names_of(kind: &str) -> &'static [Name] {
    match kind {
        "execution" | "executions" | "step" | "steps" => EXECUTION,
        "run" | "runs" => RUN,
        "approval" | "approvals" => &[
            ("id", &["approval_request_id"]),
            ("state", &["status"]),
            ("status", &["state"]),
            ("target", &["execution_id"]),
            ("run_id", &[]),
            ("created_at", &["requested_at"]),
            ("ended_at", &["responded_at"]),
        ],
        "agent" | "agents" => &[
            ("id", &["node_id"]),
            ("state", &["health_status"]),
            ("status", &["state"]),
        ],
        "node" | "nodes" | "key" | "keys" | "webhook" | "webhooks" => STATEFUL,
        "worker" | "workers" => &[
            ("id", &["worker_id"]),
            ("state", &[]),
            ("status", &["state"]),
        ],
        "queue" | "queues" | "tags" | "cap" => &[("id", &["agent"])],
        "drift" => &[("id", &["node"])],
        "audit" => &[("id", &["n"])],
        "usage" | "config" => &[("id", &["key"])],
        "quarantine" | "quarantined" | "search" | "need" => &[("id", &[])],
        _ => &[],
    }
}

/// The names that items of a kind share.
#[cfg(test)]
pub(super) fn shared_names(kind: &str) -> impl Iterator<Item = &'static str> {
    names_of(kind).iter().map(|(name, _)| *name)
}

/// An item with the names that items of its kind share. What is not there is `null`.
pub(super) fn normal(kind: &str, mut item: Value) -> Value {
    let names = names_of(kind);
    let Some(fields) = item.as_object_mut() else {
        return item;
    };
    for (name, from) in names {
        if fields.get(*name).is_some_and(|value| !value.is_null()) {
            continue;
        }
        let found = from
            .iter()
            .find_map(|other| fields.get(*other).filter(|value| !value.is_null()))
            .cloned()
            .unwrap_or(Value::Null);
        // Ids are text, also those that are numbers.
        let found = match (*name, found) {
            ("id", Value::Number(number)) => json!(number.to_string()),
            (_, found) => found,
        };
        fields.insert((*name).to_owned(), found);
    }
    if names.iter().any(|(name, _)| *name == "wait") {
        let wait = super::waits::of(&item);
        item["wait"] = wait;
    }
    if names == EXECUTION && item["target"].is_null() {
        item["target"] = json!(super::item::target(&item));
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_shared_names_and_keep_their_own() {
        let item = json!({
            "execution_id": "exec_1", "status": "waiting", "state": "paused", "run_id": "run_1",
            "agent": "a", "function": "b", "completed_at": "2026-11-29T18:00:00.000Z",
        });
        let item = normal("executions", item);
        assert_eq!(item["id"], "exec_1");
        assert_eq!(
            (&item["state"], &item["status"]),
            (&json!("paused"), &json!("waiting"))
        );
        assert_eq!(item["target"], "a.b");
        assert_eq!(item["ended_at"], item["completed_at"]);
        assert_eq!(item["wait"]["cause"], "paused");
        assert!(item["started_at"].is_null());
        assert_eq!(normal("audit", json!({"n": 7}))["id"], "7");
    }

    #[test]
    fn an_envelope_begins_with_what_it_is_and_an_unknown_position_says_so() {
        let listed = Listed::of(json!({
            "as_of": "2026-11-29T18:00:00.000Z", "keys": [], "total": 3, "count": 0,
        }));
        assert_eq!(
            list("keys", &listed),
            "{\"kind\":\"keys\",\"as_of\":\"2026-11-29T18:00:00.000Z\",\"position\":null,\
             \"position_unknown\":\"this list does not say\",\"items\":[],\"next_cursor\":null,\
             \"total\":3}"
        );
    }

    #[test]
    fn what_an_agent_wrote_is_copied_as_text() {
        let raw: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(
            r#"{"execution_id":"exec_1","status":"succeeded","result":{"n": 1e400, "m": 9223372036854775808}}"#,
        )
        .unwrap();
        let text = execution(&raw.into_iter().collect::<Vec<_>>());
        assert!(
            text.contains(r#""result":{"n": 1e400, "m": 9223372036854775808}"#),
            "{text}"
        );
        assert!(text.contains(r#""id":"exec_1""#), "{text}");
    }
}
