//! The configuration: every section and key with its default, as one value. Knows nothing of
//! files, environment or flags: where a value comes from is the binary's business.

mod agents;
mod fleet;
mod llm;
mod secret;
mod server;
mod units;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use muster_engine::Limits;
use muster_engine::limits::AtCapacity;
use muster_wire::Origin;
use muster_wire::api::config::ConfigSource;
use serde::{Deserialize, Serialize};

pub use agents::{Agent, Agents};
pub use fleet::Fleet;
pub use llm::{LlmEndpoint, LlmHealth};
pub use secret::Secret;
pub use server::Server;
pub use units::{Size, Span, SpanOrOff, UnitError};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The listener.
    pub server: Server,
    /// Where the records are.
    pub store: Store,
    /// What is let in, and what waits.
    pub admission: Admission,
    /// What holds for each execution.
    pub executions: Executions,
    /// What holds towards agents.
    pub agents: Agents,
    /// Nodes and their workers.
    pub fleet: Fleet,
    /// Who is told of ends.
    pub webhooks: WebhookRules,
    /// LLM endpoints whose health decides whether calls that need them are let in.
    pub llm_health: LlmHealth,
    /// How long things are kept.
    pub retention: Retention,
    /// Who may ask.
    pub auth: Auth,
    /// Where traces are told.
    pub telemetry: Telemetry,
    /// What kind of plane this is. Not a key: the command that starts the plane says it.
    #[serde(skip)]
    pub origin: PlaneOrigin,
    /// Where values came from, by key, as whoever read them says; what is not in it nobody set.
    #[serde(skip)]
    pub sources: Arc<BTreeMap<String, ValueSource>>,
}

/// Where one value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSource {
    /// What kind of place.
    pub source: ConfigSource,
    /// Which file and line, which variable, which flag.
    pub place: Option<String>,
    /// What to know of it.
    pub note: Option<String>,
}

/// [`Origin`] with the default that a plane has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaneOrigin(pub Origin);

impl Default for PlaneOrigin {
    fn default() -> Self {
        Self(Origin::Server)
    }
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// After `fsync`: survives power loss.
    #[default]
    Power,
    /// After the write: survives kill -9, not power loss.
    Process,
}

/// `[store]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// The data directory; `None` until the command fills in its own default.
    pub data: Option<PathBuf>,
    /// `postgres://…` instead of a data directory.
    pub database: Option<Secret>,
    /// When a write counts as done.
    pub durability: Durability,
    /// Below this much room on the disk new work is refused; `None` is 1 GiB or 5 %, the smaller.
    pub min_free: Option<Size>,
}

/// What a full agent means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Full {
    /// Calls wait their turn.
    #[default]
    Queue,
    /// Calls are refused.
    Reject,
}

/// How inputs are checked against the schema that a function was registered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidateInput {
    /// Required fields must be there.
    #[default]
    Lenient,
    /// Each property's schema that compiles is applied too.
    Strict,
    /// Not at all.
    Off,
}

/// `[admission]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admission {
    /// Executions at once for each agent; 0 is no cap.
    pub max_concurrent_per_agent: u32,
    /// What a full agent means.
    pub at_capacity: Full,
    /// How many may wait at one agent.
    pub queue_capacity: u32,
    /// How many may wait in all.
    pub queue_capacity_total: u64,
    /// How inputs are checked.
    pub validate_input: ValidateInput,
    /// Patterns of tags (`*` any run, `?` one character): an agent that asks for one is not
    /// called before an admin approved it.
    pub tags_need_approval: Vec<String>,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            max_concurrent_per_agent: 0,
            at_capacity: Full::Queue,
            queue_capacity: 10_000,
            queue_capacity_total: 1_000_000,
            validate_input: ValidateInput::Lenient,
            tags_need_approval: Vec::new(),
        }
    }
}

/// `[executions]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Executions {
    /// How much active time an execution may take.
    pub deadline: Span,
    /// How long a sync caller is held.
    pub sync_wait: Span,
    /// How long an execution may stay queued.
    pub queue_timeout: SpanOrOff,
    /// The largest result.
    pub max_result: Size,
    /// How long to wait, after a crash of the plane, for a sign of what had been sent.
    pub recovery_grace: Span,
}

impl Default for Executions {
    fn default() -> Self {
        Self {
            deadline: Span::seconds(3 * 3600),
            sync_wait: Span::seconds(90),
            queue_timeout: SpanOrOff::OFF,
            max_result: Size::mebibytes(64),
            recovery_grace: Span::seconds(60),
        }
    }
}

/// `[webhooks]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookRules {
    /// Addresses and networks that may be told although they are not public.
    pub allow: Vec<String>,
    /// How long one message may take.
    pub timeout: Span,
    /// How long to wait before a message is sent again; doubles with each try.
    pub retry_first: Span,
    /// The longest such wait.
    pub retry_max: Span,
    /// After how long a message that was never taken is given up.
    pub give_up: Span,
}

impl Default for WebhookRules {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            timeout: Span::seconds(10),
            retry_first: Span::seconds(1),
            retry_max: Span::seconds(3600),
            give_up: Span::seconds(86_400),
        }
    }
}

/// `[retention]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Finished executions with their inputs, results, notes and approvals, by whole runs.
    pub executions: Span,
    /// Inputs and results alone, when they are to go before their executions; off: with them.
    pub payloads: SpanOrOff,
    /// Log lines.
    pub logs: Span,
    /// The event stream.
    pub events: Span,
    /// The change feed of agents' memory.
    pub memory_events: Span,
    /// Messages for webhooks that were delivered or given up.
    pub webhooks: Span,
    /// Idempotency keys.
    pub idempotency: Span,
    /// What people and keys did.
    pub audit: Span,
    /// What was set aside as unreadable.
    pub quarantine: Span,
    /// Workers that ended, and the history of nodes and workers.
    pub workers: Span,
    /// When the store holds more than this, the oldest finished runs go before their time.
    pub max_store: Option<Size>,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 86_400;
        Self {
            executions: Span::seconds(30 * DAY),
            payloads: SpanOrOff::OFF,
            logs: Span::seconds(3 * DAY),
            events: Span::seconds(7 * DAY),
            memory_events: Span::seconds(7 * DAY),
            webhooks: Span::seconds(7 * DAY),
            idempotency: Span::seconds(DAY),
            audit: Span::seconds(90 * DAY),
            quarantine: Span::seconds(30 * DAY),
            workers: Span::seconds(30 * DAY),
            max_store: None,
        }
    }
}

/// `[auth]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// One key that agents and callers may use (scopes agent, call and read), taken beside those
    /// in the store.
    pub api_key: Option<Secret>,
    /// A file that holds it.
    pub api_key_file: Option<PathBuf>,
    /// Signs and proves the messages about approvals, in both directions.
    pub approval_webhook_secret: Option<Secret>,
    /// A file that holds it.
    pub approval_webhook_secret_file: Option<PathBuf>,
    /// Loopback callers need a key as well.
    pub require_key: bool,
}

/// `[telemetry]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// A collector of OTLP over HTTP, like `http://127.0.0.1:4318`; traces are off without one.
    pub endpoint: Option<String>,
    /// What is sent to it with each request: `name=value`, and commas between.
    pub headers: Option<Secret>,
    /// The share of traces that is told, 0 to 1, where the caller does not say.
    pub sample: f64,
    /// What the plane is called in them.
    pub service_name: String,
    /// How long one request to the collector may take.
    pub timeout: Span,
    /// How much may wait for the collector; what comes beyond it is dropped and counted.
    pub queue: usize,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: None,
            sample: 1.0,
            service_name: "muster".to_owned(),
            timeout: Span::seconds(10),
            queue: 8_192,
        }
    }
}

impl Config {
    /// What of it the decisions depend on.
    pub fn limits(&self) -> Limits {
        Limits {
            origin: self.origin.0,
            max_concurrent_per_agent: self.admission.max_concurrent_per_agent,
            agents: self.agents.limits(),
            at_capacity: match self.admission.at_capacity {
                Full::Queue => AtCapacity::Queue,
                Full::Reject => AtCapacity::Reject,
            },
            queue_capacity: self.admission.queue_capacity,
            queue_capacity_total: self.admission.queue_capacity_total,
            deadline: self.executions.deadline.0,
            sync_wait: self.executions.sync_wait.0,
            queue_timeout: self.executions.queue_timeout.0,
            recovery_grace: self.executions.recovery_grace.0,
            restart_grace: self.agents.restart_grace.0,
            drain_grace: self.agents.drain_grace.0,
            call_timeout: self.agents.call_timeout.0,
            behind_proxy: self.agents.behind_proxy,
            not_sent_status: self.agents.not_sent_status.clone(),
            tags_need_approval: !self.admission.tags_need_approval.is_empty(),
            llm: self.llm_health.limits(),
            fleet: self.fleet.limits(),
            ..Limits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::AgentId;
    use std::time::Duration;

    #[test]
    fn the_defaults_are_the_engines_defaults() {
        assert_eq!(Config::default().limits(), Limits::default());
    }

    #[test]
    fn an_agents_table_overrides_and_an_unknown_key_in_it_is_refused() {
        let config: Config = serde_json::from_str(
            r#"{"agents":{"restart_grace":"-1","billing":{"max_concurrent":2,"call_timeout":"5m"}}}"#,
        )
        .unwrap();
        let limits = config.limits();
        assert_eq!(limits.restart_grace, None);
        let billing = &limits.agents[&AgentId::trusted("billing")];
        assert_eq!(billing.max_concurrent, Some(2));
        assert_eq!(billing.call_timeout, Some(Duration::from_secs(300)));
        for bad in [
            r#"{"agents":{"billing":{"max_concurent":2}}}"#,
            r#"{"agents":{"call_timout":"5m"}}"#,
            r#"{"serve":{}}"#,
            r#"{"server":{"lisen":"127.0.0.1:1"}}"#,
        ] {
            assert!(serde_json::from_str::<Config>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let config = Auth {
            api_key: Some(Secret::new("canary")),
            ..Auth::default()
        };
        assert!(!format!("{config:?}").contains("canary"));
        assert!(!serde_json::to_string(&config).unwrap().contains("canary"));
    }
}
