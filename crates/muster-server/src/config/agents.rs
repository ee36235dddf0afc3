//! `[agents]` and `[agents.ID]`: what holds towards all agents, and towards one.

use std::collections::{BTreeMap, HashMap};

use muster_engine::limits::AgentLimits;
use muster_wire::AgentId;
use serde::{Deserialize, Serialize};

use super::{Secret, Span, SpanOrOff};

/// `[agents]`. A table in it, `[agents.ID]`, is what differs for that agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agents {
    /// How long a failed dial is absorbed; negative or `off`: not at all.
    pub restart_grace: SpanOrOff,
    /// How long executions of a gone instance may still call back.
    pub drain_grace: Span,
    /// How long the HTTP exchange with an agent may take.
    pub call_timeout: Span,
    /// How long a dial may take.
    pub dial_timeout: Span,
    /// Addresses and networks that may be dialled; empty is all that are not forbidden.
    pub allow: Vec<String>,
    /// Addresses and networks that may not be dialled.
    pub deny: Vec<String>,
    /// Agents sit behind a balancer: a refused dial says nothing about a process.
    pub behind_proxy: bool,
    /// Statuses of that balancer which mean "not sent".
    pub not_sent_status: Vec<u16>,
    /// What differs for single agents.
    #[serde(flatten)]
    pub by_id: BTreeMap<String, Agent>,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            restart_grace: SpanOrOff::seconds(15),
            drain_grace: Span::seconds(60),
            call_timeout: Span::seconds(90),
            dial_timeout: Span::seconds(2),
            allow: Vec::new(),
            deny: Vec::new(),
            behind_proxy: false,
            not_sent_status: Vec::new(),
            by_id: BTreeMap::new(),
        }
    }
}

/// `[agents.ID]`: what differs for one agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Executions at once; 0 is no cap.
    pub max_concurrent: Option<u32>,
    /// How long the HTTP exchange may take.
    pub call_timeout: Option<Span>,
    /// How much active time an execution may take.
    pub deadline: Option<Span>,
    /// How long a failed dial is absorbed.
    pub restart_grace: Option<SpanOrOff>,
    /// What the plane shows this agent to prove itself; sent only to its registered origins.
    pub internal_token: Option<Secret>,
}

impl Agents {
    pub(super) fn limits(&self) -> HashMap<AgentId, AgentLimits> {
        self.by_id
            .iter()
            .map(|(id, agent)| {
                let limits = AgentLimits {
                    max_concurrent: agent.max_concurrent,
                    call_timeout: agent.call_timeout.map(|span| span.0),
                    deadline: agent.deadline.map(|span| span.0),
                    // The engine's override cannot say "off", so off is no grace at all.
                    restart_grace: agent.restart_grace.map(|grace| grace.0.unwrap_or_default()),
                };
                (AgentId::trusted(id.as_str()), limits)
            })
            .collect()
    }
}
