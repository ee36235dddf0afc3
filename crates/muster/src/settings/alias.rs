//! Names that upstream's users already have in their deployments, those that OpenTelemetry's have,
//! and what each becomes here.

use std::collections::BTreeMap;

use figment::value::Value;

use super::{Setting, Source, keys, set};

/// What is done with the text of an alias.
#[derive(Clone, Copy)]
enum As {
    /// Taken as it is.
    Text,
    /// A duration; a bare number is seconds.
    Seconds,
    /// A list as JSON, or of words between commas.
    Json,
    /// A port: the address stays what it was.
    Port,
    /// A key that everybody then needs, as upstream has it.
    Key,
    /// Taken as it is and never shown.
    Secret,
    /// A cap: full agents refuse, as upstream has it.
    Cap,
    /// Says nothing that the other keys do not say.
    Mode,
}

const ALIASES: &[(&str, &str, As)] = &[
    ("AGENTFIELD_PORT", "server.listen", As::Port),
    ("AGENTFIELD_HOME", "store.data", As::Text),
    ("AGENTFIELD_API_KEY", "auth.api_key", As::Key),
    ("AGENTFIELD_STORAGE_MODE", "store.data", As::Mode),
    ("AGENTFIELD_POSTGRES_URL", "store.database", As::Text),
    (
        "AGENTFIELD_AGENT_RESTART_GRACE",
        "agents.restart_grace",
        As::Seconds,
    ),
    (
        "AGENTFIELD_AGENT_DRAIN_GRACE",
        "agents.drain_grace",
        As::Seconds,
    ),
    (
        "AGENTFIELD_AGENT_CALL_TIMEOUT",
        "agents.call_timeout",
        As::Seconds,
    ),
    (
        "AGENTFIELD_MAX_CONCURRENT_PER_AGENT",
        "admission.max_concurrent_per_agent",
        As::Cap,
    ),
    (
        "AGENTFIELD_EXEC_ASYNC_QUEUE_CAPACITY",
        "admission.queue_capacity_total",
        As::Text,
    ),
    (
        "AGENTFIELD_MAX_EXECUTE_BODY_BYTES",
        "server.max_body",
        As::Text,
    ),
    (
        "AGENTFIELD_APPROVAL_WEBHOOK_SECRET",
        "auth.approval_webhook_secret",
        As::Secret,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_ENABLED",
        "llm_health.enabled",
        As::Text,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_ENDPOINTS",
        "llm_health.endpoints",
        As::Json,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_CHECK_INTERVAL",
        "llm_health.check_interval",
        As::Seconds,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_CHECK_TIMEOUT",
        "llm_health.check_timeout",
        As::Seconds,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_FAILURE_THRESHOLD",
        "llm_health.failure_threshold",
        As::Text,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_RECOVERY_TIMEOUT",
        "llm_health.recovery_timeout",
        As::Seconds,
    ),
    (
        "AGENTFIELD_LLM_HEALTH_HALF_OPEN_PROBES",
        "llm_health.half_open_probes",
        As::Text,
    ),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "telemetry.endpoint",
        As::Text,
    ),
    (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "telemetry.endpoint",
        As::Text,
    ),
    (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "telemetry.headers",
        As::Secret,
    ),
    ("OTEL_SERVICE_NAME", "telemetry.service_name", As::Text),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "telemetry.queue", As::Text),
    (
        "AGENTFIELD_SHUTDOWN_TIMEOUT",
        "server.shutdown_timeout",
        As::Seconds,
    ),
    (
        "AGENTFIELD_SHUTDOWN_MIN_DELAY",
        "server.shutdown_min_delay",
        As::Seconds,
    ),
];

/// Sets what the aliases say.
pub(super) fn apply(env: &[(String, String)], settings: &mut BTreeMap<String, Setting>) {
    let said = |name: &str| {
        env.iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    for (name, key, how) in ALIASES {
        let Some(text) = said(name) else { continue };
        let source = Source::Alias(name, text.to_owned());
        match how {
            As::Mode => {}
            As::Text => set(settings, key, keys::value_of(key, text), source),
            As::Json => {
                let value = serde_json::from_str::<Value>(text)
                    .unwrap_or_else(|_| keys::value_of(key, text));
                set(settings, key, value, source);
            }
            As::Seconds => set(settings, key, Value::from(seconds(text)), source),
            As::Port => set(
                settings,
                key,
                Value::from(with_port(settings, text)),
                source,
            ),
            As::Secret => {
                let hidden = Source::Alias(name, "(redacted)".into());
                set(settings, key, Value::from(text), hidden);
            }
            As::Key => {
                let hidden = Source::Alias(name, "(redacted)".into());
                set(settings, key, Value::from(text), hidden.clone());
                set(settings, "auth.require_key", Value::from(true), hidden);
            }
            As::Cap => {
                set(settings, key, keys::value_of(key, text), source.clone());
                set(
                    settings,
                    "admission.at_capacity",
                    Value::from("reject"),
                    source,
                );
            }
        }
    }
    // A URL may carry a password.
    if let Some(setting) = settings.get_mut("store.database")
        && let Source::Alias(_, text) = &mut setting.source
    {
        "(redacted)".clone_into(text);
    }
}

fn seconds(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(_) if text != "0" => format!("{text}s"),
        _ => text.to_owned(),
    }
}

/// Upstream listens on every address; here the address is changed by name only.
fn with_port(settings: &BTreeMap<String, Setting>, port: &str) -> String {
    let host = settings
        .get("server.listen")
        .and_then(|setting| setting.value.as_str())
        .and_then(|listen| listen.rsplit_once(':'))
        .map_or("127.0.0.1", |(host, _)| host);
    format!("{host}:{}", port.trim_start_matches(':'))
}

/// What a reader should know about an alias whose meaning differs.
pub(super) fn differs(name: &str) -> Option<&'static str> {
    Some(match name {
        "AGENTFIELD_PORT" => "the address stays loopback unless server.listen names another",
        "AGENTFIELD_API_KEY" => "every caller needs a key, on loopback too",
        "AGENTFIELD_MAX_CONCURRENT_PER_AGENT" => {
            "a full agent refuses, as upstream; set admission.at_capacity to queue"
        }
        "AGENTFIELD_EXEC_ASYNC_QUEUE_CAPACITY" => {
            "bounds what waits at all agents together, on disk and not in memory"
        }
        "AGENTFIELD_HOME" => "the files in it are ours, not upstream's",
        "AGENTFIELD_AGENT_CALL_TIMEOUT" => {
            "the HTTP exchange only; executions.deadline bounds the work"
        }
        _ => return None,
    })
}
