//! An agent as the engine holds it: its instances with their gates, its queue, who holds its
//! slots. The transitions are elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_wire::{AgentId, ExecutionId, FunctionName, InstanceId, Timestamp};
use rustc_hash::FxHashSet;

use crate::liveness::{InstanceFacts, InstanceState};
use crate::queue::Queue;
use crate::row::{AgentTags, Function, HeldBy, InstanceRow};

/// The first wait of a gate between two dials.
pub(crate) const DIAL_FIRST: Duration = Duration::from_millis(50);
/// The longest.
pub(crate) const DIAL_LONGEST: Duration = Duration::from_secs(1);

/// Whether work goes out to an instance. One gate for an instance, not a loop for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Work goes out.
    Open,
    /// A dial failed: nothing goes out until a dial gets through.
    Closed {
        /// The wait before the next dial.
        wait: Duration,
        /// A dial is under way.
        dialling: bool,
    },
    /// A dial got through: so many more may go out. Whoever reaches the agent makes room for two
    /// others, whoever does not for one: 1, 2, 4, 8 go out one after another.
    Ramp {
        /// How many.
        allowed: u32,
    },
}

/// One process of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) facts: InstanceFacts,
    pub(crate) gate: Gate,
    /// Another process registered its address at this moment; it is gone unless it beats again.
    pub(crate) replaced_at: Option<Timestamp>,
    /// It shares its address with another live process.
    pub(crate) shares_address: bool,
    /// When its executions end as orphans.
    pub(crate) orphans_at: Option<Timestamp>,
    /// A probe is under way.
    pub(crate) probing: bool,
    /// The address it registered with last; it may be called at another one.
    pub(crate) given_url: Arc<str>,
    /// When it was last asked for at its other addresses.
    pub(crate) sought_at: Option<Timestamp>,
    /// The state that was last told.
    pub(crate) told: InstanceState,
    /// When its facts were last told.
    pub(crate) told_at: Timestamp,
    /// Whether the shell hands in each beat.
    pub(crate) watched: bool,
    pub(crate) armed: Option<Timestamp>,
}

impl Instance {
    pub(crate) fn id(&self) -> &InstanceId {
        &self.facts.key.instance
    }

    /// Whether it may still take or finish work.
    pub(crate) fn is_present(&self) -> bool {
        self.facts.gone.is_none()
    }

    /// Whether the gate lets one more out.
    pub(crate) fn lets_out(&self) -> bool {
        match self.gate {
            Gate::Open => true,
            Gate::Closed { .. } => false,
            Gate::Ramp { allowed } => allowed > 0,
        }
    }

    /// One that went out on the ramp is no longer on its way: it reached the agent, or never will.
    pub(crate) fn off_the_ramp(&mut self, reached: bool) {
        if let Gate::Ramp { allowed } = &mut self.gate {
            *allowed = allowed.saturating_add(1 + u32::from(reached));
        }
    }

    pub(crate) fn offers(&self, function: &FunctionName) -> Option<&Function> {
        self.facts.functions.iter().find(|f| f.name == *function)
    }

    /// Its row.
    pub(crate) fn row(&self) -> InstanceRow {
        InstanceRow {
            agent: self.facts.key.agent.clone(),
            id: self.facts.key.instance.clone(),
            base_url: self.facts.base_url.clone(),
            version: self.facts.version.clone(),
            functions: self.facts.functions.clone(),
            registered_at: self.facts.registered_at,
            renewed_at: self.facts.renewed_at,
            goodbye_at: self.facts.goodbye_at,
            gone_at: self.facts.gone.as_ref().map(|(at, _)| *at),
            gone_evidence: self
                .facts
                .gone
                .as_ref()
                .map(|(_, evidence)| evidence.clone()),
            orphans_at: self.orphans_at,
            worker: self.facts.worker.clone(),
        }
    }
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) principal: Arc<str>,
    pub(crate) created_at: Timestamp,
    pub(crate) held: bool,
    /// Who holds it, as far as that is known.
    pub(crate) held_by: Option<HeldBy>,
    /// What a person decided: 0 is no cap, `None` what the configuration says.
    pub(crate) cap: Option<u32>,
    /// Its tags that need an approval.
    pub(crate) tags: AgentTags,
    /// Some of them are not approved: it is not called.
    pub(crate) unapproved: bool,
    /// In the order of their latest registration: the newest last.
    pub(crate) instances: Vec<Instance>,
    pub(crate) queue: Queue,
    /// The turn of whoever started last.
    pub(crate) turn: u64,
    /// Executions that hold a slot.
    pub(crate) holders: FxHashSet<ExecutionId>,
    /// Executions that it has and that gave their slot back while they wait.
    pub(crate) waiters: FxHashSet<ExecutionId>,
    /// Executions that wait for an instance, in order of acceptance.
    pub(crate) absorbed: BTreeMap<u64, ExecutionId>,
}

impl Agent {
    pub(crate) fn new(id: AgentId, principal: Arc<str>, created_at: Timestamp) -> Self {
        Self {
            id,
            principal,
            created_at,
            held: false,
            held_by: None,
            cap: None,
            tags: AgentTags::default(),
            unapproved: false,
            instances: Vec::new(),
            queue: Queue::default(),
            turn: 0,
            holders: FxHashSet::default(),
            waiters: FxHashSet::default(),
            absorbed: BTreeMap::new(),
        }
    }

    pub(crate) fn instance(&self, id: &InstanceId) -> Option<&Instance> {
        self.instances.iter().find(|i| i.id() == id)
    }

    pub(crate) fn instance_mut(&mut self, id: &InstanceId) -> Option<&mut Instance> {
        self.instances.iter_mut().find(|i| i.id() == id)
    }

    /// The function, as the newest instance that has it registered it.
    pub(crate) fn function(&self, name: &FunctionName) -> Option<&Function> {
        let present = self.instances.iter().rev().filter(|i| i.is_present());
        let newest = self.instances.last().into_iter();
        present.chain(newest).find_map(|i| i.offers(name))
    }

    /// What the newest instance offers.
    pub(crate) fn functions(&self) -> Arc<Vec<Function>> {
        self.instances
            .last()
            .map(|i| i.facts.functions.clone())
            .unwrap_or_default()
    }

    /// Whether nothing is dispatched to it.
    pub(crate) fn stopped(&self) -> bool {
        self.held || self.unapproved
    }

    /// Slots held.
    pub(crate) fn running(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX)
    }
}
