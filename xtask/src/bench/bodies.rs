//! The bodies the benchmark sends, as a real agent and a real caller would.

/// The registration of the agent that really listens.
pub(crate) fn bench_agent(id: &str, url: &str, instance: &str) -> String {
    let list = |names: &[&str]| {
        let all: Vec<String> = names.iter().map(|name| function(name)).collect();
        all.join(",")
    };
    registration(
        id,
        url,
        instance,
        &list(&["later", "never"]),
        &list(&["fast"]),
    )
}

/// The registration of an agent of a crowd: five functions, nobody listens. `{n}` and `{ip}`
/// are filled in by the load generator.
pub(crate) fn crowd_agent() -> String {
    let names = ["classify", "summarise", "extract", "translate", "answer"];
    let functions: Vec<String> = names.iter().map(|name| function(name)).collect();
    registration(
        "crowd-{n}",
        "http://{ip}:9",
        "i{n}",
        &functions.join(","),
        "",
    )
}

fn function(name: &str) -> String {
    format!(
        r#"{{"id":"{name}","input_schema":{{"type":"object","properties":{{"text":{{"type":"string"}},"limit":{{"type":"integer"}},"options":{{"type":"object"}}}},"required":[]}},"output_schema":{{"type":"object","properties":{{"ok":{{"type":"boolean"}}}}}},"memory_config":{{"auto_inject":[],"memory_retention":"session","cache_results":false}},"return_type_hint":"dict","tags":["bench"],"proposed_tags":["bench"],"vc_enabled":true,"description":"Does nothing, quickly.","accepts_webhook":"warn"}}"#
    )
}

fn registration(id: &str, url: &str, instance: &str, reasoners: &str, skills: &str) -> String {
    format!(
        r#"{{"id":"{id}","team_id":"default","base_url":"{url}","version":"1.0.0","reasoners":[{reasoners}],"skills":[{skills}],"proposed_tags":[],"instance_id":"{instance}","lifecycle_status":"starting","communication_config":{{"protocols":["http"],"websocket_endpoint":"","heartbeat_interval":"2s"}},"health_status":"healthy","metadata":{{"deployment":{{"environment":"development","platform":"python","region":"local","tags":{{"sdk_version":"0.1.144","language":"python"}}}},"custom":{{}}}}}}"#
    )
}

/// A heartbeat.
pub(crate) fn beat(instance: &str) -> String {
    format!(
        r#"{{"status":"ready","timestamp":"2026-01-01T00:00:00.000000","version":"1.0.0","instance_id":"{instance}"}}"#
    )
}

/// A call.
pub(crate) const CALL: &str = r#"{"input":{"text":"a no-op","limit":1}}"#;

/// What the plane passes on of it.
pub(crate) const INPUT: &str = r#"{"text":"a no-op","limit":1}"#;
