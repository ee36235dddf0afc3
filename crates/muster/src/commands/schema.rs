//! Writes `docs/cli.schema.json` from the document of the API and the names that this command
//! gives items, and fails when the file is not what comes out.
//! `MUSTER_UPDATE=1 cargo nextest run -p muster schema` writes it again.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::envelope::shared_names;
use crate::failure::Failure;

/// What the schema is called, wherever it lies.
const ID: &str = "urn:muster:cli.schema.json";
/// Where the document of the API says what a thing is.
const API: &str = "#/components/schemas/";
/// What it is called here: things of the API stand beside those of this command.
const BUNDLED: &str = "api.";

/// Lists: their kind, the definition of their items, and of what in the API.
const LISTS: &[(&str, &str, &str)] = &[
    ("executions", "ExecutionItem", "ExecutionItem"),
    ("runs", "RunItem", "RunItem"),
    ("agents", "AgentItem", "AgentLine"),
    ("nodes", "NodeItem", "FleetNode"),
    ("workers", "WorkerItem", "FleetWorker"),
    ("approvals", "ApprovalItem", "ApprovalItem"),
    ("queues", "QueueItem", "QueueLine"),
    ("keys", "KeyItem", "KeyShown"),
    ("tags", "TagsItem", "AgentTags"),
    ("webhooks", "WebhookItem", "MessageShown"),
    ("quarantine", "QuarantineItem", "QuarantineItem"),
    ("audit", "AuditItem", "AuditLine"),
    ("config", "ConfigItem", "ConfigValue"),
    ("search", "SearchItem", "FoundItem"),
    ("drift", "DriftItem", "NodeDrift"),
    ("usage", "UsageItem", "UsageRow"),
];

/// One thing that is one of a list's items, and more.
const ONES_OF_LISTS: &[(&str, &str)] = &[
    ("agent", "AgentItem"),
    ("worker", "WorkerItem"),
    ("tags", "TagsItem"),
];

/// One thing as the API has it.
const ONES: &[(&str, &str)] = &[
    ("queue", "Queue"),
    ("overview", "Overview"),
    ("fleet", "Fleet"),
    ("key", "KeyShown"),
    ("webhook", "MessageShown"),
    ("quarantined", "QuarantineItem"),
    ("hold", "HoldShown"),
    ("unhold", "Lifted"),
    ("cap", "CapShown"),
    ("retired", "AgentRetired"),
    ("deleted", "NodeDeleted"),
    ("cancel_receipt", "Cancelled"),
    ("pause_receipt", "Moved"),
    ("decision", "Decided"),
    ("release", "ReleaseMade"),
    ("worker_restart", "RestartMade"),
    ("redriven", "Redriven"),
    ("enrolment", "EnrolmentMade"),
    ("doubt", "DoubtEnded"),
    ("backup", "Backup"),
    ("code", "CodeMade"),
    ("logs", "LogPage"),
];

/// One thing that the API has in no one form.
const ONES_OF_OURS: &[&str] = &["output", "node_identity", "node_status", "restored"];

fn of_api(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{BUNDLED}{name}") })
}

fn of_ours(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "description": "RFC 3339 with milliseconds, UTC." })
}

fn time_or_null() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

/// A name that items share.
fn shared(kind: &str, name: &str) -> Value {
    let is_call = matches!(kind, "execution" | "executions" | "run" | "runs");
    match name {
        "state" | "status" if is_call => of_api("Status"),
        "wait" => of_ours("Wait"),
        "parent_id" => json!({ "type": ["string", "null"] }),
        "created_at" => time(),
        "started_at" | "ended_at" => time_or_null(),
        _ => json!({ "type": "string" }),
    }
}

/// A list's item: every field of the API's, and over it the names that all lists share.
fn item(document: &Value, kind: &str, component: &str) -> Value {
    let of = &document["components"]["schemas"][component];
    let fields = of["properties"].as_object();
    let fields = fields.unwrap_or_else(|| panic!("{component} is not one object"));
    let mut properties: Map<String, Value> = fields
        .keys()
        .map(|key| {
            (
                key.clone(),
                of_api(&format!("{component}/properties/{key}")),
            )
        })
        .collect();
    let mut required: Vec<String> = of["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|key| key.as_str().map(str::to_owned))
        .collect();
    for name in shared_names(kind) {
        // What the API calls so and is text is left as it says.
        if !(name == "id" && fields.contains_key("id") && kind == "quarantine") {
            properties.insert(name.to_owned(), shared(kind, name));
        }
        required.push(name.to_owned());
    }
    if kind == "search" {
        properties.insert("kind".to_owned(), of_api("FoundKind"));
        required.push("kind".to_owned());
    }
    required.sort();
    required.dedup();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Null, and then another key says why.
fn unknown(name: &str) -> (Value, Value) {
    (
        json!({ "properties": { name: { "type": "null" } } }),
        json!({ "required": [format!("{name}_unknown")] }),
    )
}

fn list(kind: &str, items: &str) -> Value {
    let mut properties = json!({
        "kind": { "const": kind },
        "as_of": time(),
        "position": { "type": ["string", "null"] },
        "position_unknown": { "type": "string" },
        "items": { "type": "array", "items": of_ours(items) },
        "next_cursor": { "type": ["string", "null"] },
    });
    let more = match kind {
        "executions" | "runs" => {
            json!({ "counts": of_api("ExecutionCounts"), "total": { "type": "integer" } })
        }
        "usage" => json!({
            "by": { "type": "string" }, "from": time(), "to": time(),
            "total": of_api("UsageSums"), "rows_total": { "type": "integer" },
        }),
        _ => json!({}),
    };
    for (key, value) in more.as_object().into_iter().flatten() {
        properties[key] = value.clone();
    }
    let (when, then) = unknown("position");
    json!({
        "type": "object", "properties": properties,
        "required": ["kind", "as_of", "position", "items", "next_cursor"],
        "if": when, "then": then,
    })
}

/// What every single thing begins with.
fn head(kind: &str) -> Value {
    let mut properties = json!({ "kind": { "const": kind }, "as_of": time() });
    let mut required = vec!["kind".to_owned(), "as_of".to_owned()];
    for name in shared_names(kind) {
        properties[name] = shared(kind, name);
        required.push(name.to_owned());
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn wait() -> Value {
    let (when, then) = unknown("cause");
    json!({
        "description": "What an execution waits for; null when it waits for nothing.",
        "type": ["object", "null"],
        "properties": {
            "cause": { "type": ["string", "null"], "description": "A word of HeldCause, or the plane's finer word; null beside cause_unknown." },
            "cause_unknown": { "type": "string" },
            "text": { "type": "string", "description": "One sentence." },
            "holders": { "type": "integer", "description": "Calls that the agent runs." },
            "cap": { "type": ["integer", "null"] },
            "position": { "type": "integer", "minimum": 1, "description": "Its place in its agent's queue." },
            "of": { "type": "integer", "description": "How many wait in that queue." },
            "starts_in_ms": { "type": "integer", "description": "An estimate." },
            "reference": { "type": "string" },
            "until": time(),
        },
        "required": ["cause"],
        "if": { "required": ["cause"], "properties": when["properties"] }, "then": then,
    })
}

fn compare_item() -> Value {
    let step = json!({ "oneOf": [{ "type": "null" }, of_ours("ExecutionItem")] });
    json!({
        "description": "Two steps that are the same call, or one without a partner.",
        "type": "object",
        "properties": {
            "target": { "type": "string" },
            "depth": { "type": "integer" },
            "differs": { "type": "array", "items": { "type": "string" }, "description": "In what, in words; empty when in nothing." },
            "a": step, "b": step,
        },
        "required": ["target", "depth", "differs", "a", "b"],
    })
}

/// What a check of `muster doctor` found.
fn check_item() -> Value {
    json!({
        "type": "object",
        "properties": {
            "check": { "type": "string" },
            "state": { "enum": ["ok", "warn", "fail", "unknown"] },
            "seen": { "type": "string" },
            "hint": { "type": ["string", "null"] },
        },
        "required": ["check", "state", "seen", "hint"],
    })
}

/// A value of `muster server --print-config`.
fn setting_item() -> Value {
    json!({
        "type": "object",
        "properties": {
            "key": { "type": "string" },
            "value": { "description": "Any JSON." },
            "from": { "enum": ["default", "file", "alias", "env", "flag"] },
            "where": { "type": "string", "description": "File and line, variable, or flag." },
            "became": { "type": "string" },
            "note": { "type": "string" },
        },
        "required": ["key", "value", "from"],
    })
}

fn execution() -> Value {
    let mut one = head("execution");
    one["properties"]["own_kind"] =
        json!({ "type": "string", "description": "What the API says of it under `kind`." });
    one["properties"]["created_at"] = time_or_null();
    one["properties"]["input_size"] = json!({ "type": "integer" });
    one["properties"]["result"] = json!({ "description": "Any JSON, as the agent wrote it." });
    one
}

fn run() -> Value {
    let mut one = head("run");
    one["properties"]["steps"] = json!({ "type": "array", "items": of_ours("ExecutionItem") });
    one["properties"]["steps_next_cursor"] = json!({ "type": ["string", "null"] });
    for key in ["steps", "steps_next_cursor"] {
        one["required"].as_array_mut().unwrap().push(json!(key));
    }
    json!({ "allOf": [one, of_ours("RunItem")] })
}

fn node() -> Value {
    let mut one = head("node");
    for name in ["state", "status"] {
        one["properties"][name] = of_api("NodeState");
    }
    one["properties"]["own_kind"] = of_api("NodeKind");
    one["properties"]["workers"] = json!({ "type": ["integer", "null"] });
    one["properties"]["workers_unknown"] = json!({ "type": "string" });
    one["required"]
        .as_array_mut()
        .unwrap()
        .push(json!("workers"));
    let (when, then) = unknown("workers");
    one["if"] = when;
    one["then"] = then;
    one
}

fn history() -> Value {
    let mut one = head("history");
    one["properties"]["id"] = json!({ "type": "string" });
    one["properties"]["buckets"] = json!({ "type": "array" });
    one["required"].as_array_mut().unwrap().push(json!("id"));
    one
}

fn why(document: &Value) -> Value {
    let mut why = item(document, "why", "Why");
    why["properties"]["kind"] = json!({ "const": "why" });
    why["properties"]["own_kind"] = of_api("WhyKind");
    why
}

fn failure() -> Value {
    json!({
        "description": "An error, on stderr; stdout is empty.",
        "allOf": [of_api("Problem"), {
            "type": "object",
            "properties": {
                "seen": { "type": "array", "items": { "type": "string" }, "description": "What was seen, a line each." },
                "hint": { "type": "string", "description": "What to do, with a command where there is one." },
            },
            "required": ["hint"],
        }],
    })
}

fn schema(document: &Value) -> Value {
    let mut parts = Map::new();
    parts.insert("Wait".to_owned(), wait());
    parts.insert("Problem".to_owned(), failure());
    let mut lines = Vec::new();
    let mut line = |parts: &mut Map<String, Value>, name: String, what: Value| {
        lines.push(of_ours(&name));
        parts.insert(name, what);
    };
    for (kind, items, component) in LISTS {
        parts.insert((*items).to_owned(), item(document, kind, component));
        line(&mut parts, format!("list_{kind}"), list(kind, items));
    }
    for (kind, items, item) in [
        ("compare", "CompareItem", compare_item()),
        ("checks", "CheckItem", check_item()),
        ("configuration", "SettingItem", setting_item()),
    ] {
        parts.insert(items.to_owned(), item);
        line(&mut parts, format!("list_{kind}"), list(kind, items));
    }
    for (kind, items) in ONES_OF_LISTS {
        let one = json!({ "allOf": [head(kind), of_ours(items)] });
        line(&mut parts, format!("one_{kind}"), one);
    }
    for (kind, component) in ONES {
        let known = &document["components"]["schemas"][*component];
        assert!(known.is_object(), "the API has no {component}");
        let one = json!({ "allOf": [head(kind), of_api(component)] });
        line(&mut parts, format!("one_{kind}"), one);
    }
    for (kind, one) in [
        ("execution", execution()),
        ("run", run()),
        ("node", node()),
        ("history", history()),
        ("why", why(document)),
    ] {
        line(&mut parts, format!("one_{kind}"), one);
    }
    for kind in ONES_OF_OURS {
        line(&mut parts, format!("one_{kind}"), head(kind));
    }
    bundle(document, &lines.clone().into(), &mut parts);
    for own in parts.clone().values() {
        bundle(document, own, &mut parts);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "What muster --json prints",
        "description": "One line is one of these, by its `kind`. Errors are a line of `#/$defs/Problem` on stderr. What is unknown is null beside `<key>_unknown`, and `<key>_last` when it was known once.",
        "oneOf": lines,
        "$defs": parts,
    })
}

/// Puts what a part of the API refers to beside it, and what that refers to.
fn bundle(document: &Value, part: &Value, parts: &mut Map<String, Value>) {
    match part {
        Value::Object(fields) => {
            if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
                bundle_one(document, to, parts);
            }
            fields
                .values()
                .for_each(|value| bundle(document, value, parts));
        }
        Value::Array(items) => items.iter().for_each(|item| bundle(document, item, parts)),
        _ => {}
    }
}

fn bundle_one(document: &Value, to: &str, parts: &mut Map<String, Value>) {
    let Some(path) = to.strip_prefix(&format!("#/$defs/{BUNDLED}")) else {
        return;
    };
    let name = path.split('/').next().unwrap_or(path);
    let key = format!("{BUNDLED}{name}");
    if parts.contains_key(&key) {
        return;
    }
    let mut part = document["components"]["schemas"][name].clone();
    assert!(part.is_object(), "the API has no {name}");
    refer_here(&mut part);
    parts.insert(key, part.clone());
    bundle(document, &part, parts);
}

/// Turns what refers to the document of the API to what stands here.
fn refer_here(part: &mut Value) {
    match part {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match value.as_str().and_then(|to| to.strip_prefix(API)) {
                    Some(name) if key == "$ref" => *value = of_api(name)["$ref"].take(),
                    _ => refer_here(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_here),
        _ => {}
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_schema_is_what_the_api_and_this_command_say() {
    let document = std::fs::read_to_string(root().join("openapi.json")).unwrap();
    let written = schema(&serde_json::from_str(&document).unwrap());
    let text = serde_json::to_string_pretty(&written).unwrap() + "\n";
    let file = root().join("docs/cli.schema.json");
    if std::env::var_os("MUSTER_UPDATE").is_some() {
        std::fs::write(&file, text).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == text,
        "docs/cli.schema.json is stale; write it again: MUSTER_UPDATE=1 cargo nextest run -p muster schema"
    );
}

/// Whoever has only this file can hold lines against it.
#[test]
fn the_schema_is_whole_in_itself_and_holds_error_lines() {
    let text = std::fs::read_to_string(root().join("docs/cli.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["$id"], ID);
    jsonschema::meta::validate(&schema).expect("it is a schema");
    let of = |part: &str| {
        let mut own = schema.clone();
        own.as_object_mut().unwrap().remove("oneOf");
        own["$ref"] = json!(format!("#/$defs/{part}"));
        jsonschema::validator_for(&own).expect("it refers to nothing outside")
    };
    jsonschema::validator_for(&schema).expect("it refers to nothing outside");
    let problem = of("Problem");
    for category in muster_wire::Category::ALL {
        let line = Failure::new(category.clone(), "what went wrong")
            .seen("run run_1")
            .line();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert!(problem.is_valid(&line), "{line}");
    }
    for wrong in [
        json!({"error": "conflict", "message": "no", "hint": "look"}),
        json!({"error": "conflict", "error_category": "conflict", "message": "no"}),
        json!({"error": "conflict", "error_category": "conflict", "message": "no", "hint": 7}),
    ] {
        assert!(!problem.is_valid(&wrong), "{wrong}");
    }
    // The shared parts hold something too: a list says when it is from.
    let list = json!({"kind": "keys", "position": "1", "items": [], "next_cursor": null});
    assert!(!of("list_keys").is_valid(&list));
}

/// Every kind that is printed somewhere has its part, and no part is of nothing.
#[test]
fn every_kind_that_is_printed_is_in_the_schema() {
    let mut sources = String::new();
    let folder = root().join("crates/muster/src");
    let folders = [folder.join("commands"), folder.join("settings")];
    let entries = folders
        .iter()
        .map(|folder| std::fs::read_dir(folder).unwrap());
    for entry in entries.flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("schema.rs") {
            let text = std::fs::read_to_string(path).unwrap();
            sources += text.split("\nmod tests {").next().unwrap();
        }
    }
    let lists = LISTS.iter().map(|(kind, ..)| *kind);
    let ones = ONES.iter().chain(ONES_OF_LISTS).map(|(kind, _)| *kind);
    let known: Vec<&str> = lists
        .chain(ones)
        .chain(ONES_OF_OURS.iter().copied())
        .collect();
    let own = ["execution", "run", "node", "history", "why"];
    let own = own
        .iter()
        .chain(["compare", "checks", "configuration"].iter());
    let own: Vec<&str> = own.copied().collect();
    for call in [
        "print_one(\"",
        "kind: \"",
        "\"kind\": \"",
        "envelope::list(\"",
    ] {
        for (at, _) in sources.match_indices(call) {
            let rest = &sources[at + call.len()..];
            let kind = &rest[..rest.find('"').unwrap()];
            assert!(
                known.contains(&kind) || own.contains(&kind),
                "no part of the schema is for {kind}"
            );
        }
    }
    for kind in known {
        assert!(
            sources.contains(&format!("\"{kind}\"")),
            "{kind} is printed nowhere"
        );
    }
}
