//! Every bound and duration the decisions depend on. Where the values come from is the
//! binary's business.

use std::collections::HashMap;
use std::time::Duration;

use muster_wire::{AgentId, Origin};

/// What happens to a call when its agent is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCapacity {
    /// It waits its turn.
    Queue,
    /// It is refused with `concurrency_limit` on every lane.
    Reject,
}

/// What differs for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentLimits {
    /// Executions at once; 0 is no cap.
    pub max_concurrent: Option<u32>,
    /// Overrides [`Limits::call_timeout`].
    pub call_timeout: Option<Duration>,
    /// Overrides [`Limits::deadline`].
    pub deadline: Option<Duration>,
    /// Overrides [`Limits::restart_grace`].
    pub restart_grace: Option<Duration>,
}

/// The engine's configuration. Defaults are the contract's.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// What kind of plane this is; written into each row.
    pub origin: Origin,
    /// Executions at once for each agent; 0 is no cap.
    pub max_concurrent_per_agent: u32,
    /// Differences of single agents.
    pub agents: HashMap<AgentId, AgentLimits>,
    /// What a full agent means.
    pub at_capacity: AtCapacity,
    /// Queued executions and waiting sync callers of one agent.
    pub queue_capacity: u32,
    /// The same over all agents.
    pub queue_capacity_total: u64,
    /// How deep calls may nest.
    pub depth_max: u32,
    /// How many executions one run may have.
    pub run_size_max: u64,
    /// Active time an execution may take.
    pub deadline: Duration,
    /// How long a sync caller is held.
    pub sync_wait: Duration,
    /// How long something may stay queued; `None` is for ever.
    pub queue_timeout: Option<Duration>,
    /// How long to wait for a sign of something that was sent before a crash of the plane.
    pub recovery_grace: Duration,
    /// How long a failed dial is absorbed; `None` is not at all.
    pub restart_grace: Option<Duration>,
    /// How long executions of a gone instance may still call back.
    pub drain_grace: Duration,
    /// How long the HTTP exchange with an agent may take.
    pub call_timeout: Duration,
    /// Instances sit behind a balancer: a refused dial says nothing about a process.
    pub behind_proxy: bool,
    /// Statuses of a balancer that mean "not sent".
    pub not_sent_status: Vec<u16>,
    /// How long an answer to a submission may take before the submission is dropped.
    pub answer_within: Duration,
    /// How many times an idempotent function is run again after its outcome became unknown.
    pub reruns_max: u32,
    /// Queue entries of an agent kept in memory.
    pub queue_window: usize,
    /// Some tags of agents need an approval before their agents are called.
    pub tags_need_approval: bool,
    /// LLM endpoints whose health is checked; empty is none.
    pub llm: LlmLimits,
    /// How long telling an agent of a decision is tried.
    pub tell_approval_for: Duration,
    /// Nodes and workers.
    pub fleet: crate::fleet::FleetLimits,
}

/// When the circuit of an LLM endpoint opens and closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmLimits {
    /// Names of the endpoints; empty: nothing is checked.
    pub endpoints: Vec<String>,
    /// Time between two checks of a closed or half-open circuit.
    pub check_interval: Duration,
    /// Failed checks in a row that open it.
    pub failure_threshold: u32,
    /// How long it stays open before the next check.
    pub recovery_timeout: Duration,
    /// Good checks in a row that close a half-open one.
    pub half_open_probes: u32,
}

impl Default for LlmLimits {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            check_interval: Duration::from_secs(15),
            failure_threshold: 3,
            recovery_timeout: Duration::from_secs(30),
            half_open_probes: 2,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            origin: Origin::Server,
            max_concurrent_per_agent: 0,
            agents: HashMap::new(),
            at_capacity: AtCapacity::Queue,
            queue_capacity: 10_000,
            queue_capacity_total: 1_000_000,
            depth_max: 64,
            run_size_max: 100_000,
            deadline: Duration::from_secs(3 * 3600),
            sync_wait: Duration::from_secs(90),
            queue_timeout: None,
            recovery_grace: Duration::from_secs(60),
            restart_grace: Some(Duration::from_secs(15)),
            drain_grace: Duration::from_secs(60),
            call_timeout: Duration::from_secs(90),
            behind_proxy: false,
            not_sent_status: Vec::new(),
            answer_within: Duration::from_secs(8),
            reruns_max: 3,
            queue_window: 128,
            tags_need_approval: false,
            llm: LlmLimits::default(),
            tell_approval_for: Duration::from_secs(60),
            fleet: crate::fleet::FleetLimits::default(),
        }
    }
}

impl Limits {
    /// The cap of an agent; `None` when it has none.
    pub fn cap(&self, agent: &AgentId) -> Option<u32> {
        let cap = self
            .agents
            .get(agent)
            .and_then(|a| a.max_concurrent)
            .unwrap_or(self.max_concurrent_per_agent);
        (cap > 0).then_some(cap)
    }
}
