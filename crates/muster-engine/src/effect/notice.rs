//! What others are told: counts, states, views.

use std::sync::Arc;

use muster_wire::{AgentId, Category, ExecutionId, Lane, Status, Timestamp};

use crate::event::InstanceKey;
use crate::fleet::FleetNotice;
use crate::liveness::InstanceFacts;
use crate::row::{AgentTags, EventRow, ExecutionRow, Function, HeldBy, Payload};

/// A place in a queue: entries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// How many are before it.
    pub ahead: u64,
    /// Whether `ahead` is exact; otherwise there are at least so many.
    pub exact: bool,
    /// Milliseconds until it is estimated to start; `None` without a rate.
    pub starts_in_ms: Option<u64>,
}

/// Something to tell the shell, after the commit.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A line of the event sequence, for streams.
    Event(Arc<EventRow>),
    /// The newest view of an execution, for polls.
    Execution(Arc<ExecutionView>),
    /// An outcome came after the end and was kept: views show it.
    Late {
        /// Of which execution.
        execution: ExecutionId,
        /// What it claimed.
        status: Status,
    },
    /// An execution was restarted: views show it.
    Restarted {
        /// Which.
        execution: ExecutionId,
        /// As what.
        restarted_as: ExecutionId,
    },
    /// The newest facts of an instance, for directories.
    Instance(Arc<InstanceFacts>),
    /// An agent's functions, for checks of inputs before admission.
    Directory {
        /// The agent.
        agent: AgentId,
        /// The functions of the instance that registered last.
        functions: Arc<Vec<Function>>,
        /// Tags it asks for that are not approved.
        unapproved: Arc<Vec<Box<str>>>,
    },
    /// An agent is gone from the list.
    AgentGone(AgentId),
    /// Beats of this instance can change something: hand in each.
    Watch {
        /// Which.
        key: InstanceKey,
        /// On or off.
        on: bool,
    },
    /// Something about the fleet.
    Fleet(Box<FleetNotice>),
    /// Something was counted.
    Count(Count),
}

/// What metrics count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// A submission was refused.
    Refused {
        /// On which lane.
        lane: Lane,
        /// Whom it was for.
        agent: AgentId,
        /// Why.
        category: Category,
    },
    /// An execution was accepted.
    Started {
        /// On which lane.
        lane: Lane,
    },
    /// An execution ended.
    Ended {
        /// Of which lane.
        lane: Lane,
        /// How.
        status: Status,
        /// Why it failed.
        category: Option<Category>,
        /// Microseconds from acceptance to the end.
        took_us: u64,
    },
    /// A message without proof was dropped.
    Unproved,
    /// A dial failed and was absorbed.
    Absorbed,
}

/// Everything a poll or a list shows of an execution, without its payloads.
#[derive(Debug, Clone)]
pub struct ExecutionView {
    /// The row as it now is.
    pub row: Arc<ExecutionRow>,
    /// The result, while it is at hand; otherwise it is in the store.
    pub result: Option<Payload>,
    /// The details, while they are at hand.
    pub details: Option<Payload>,
}

/// The circuit of an LLM endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitState {
    /// The endpoint's name.
    pub endpoint: Arc<str>,
    /// `closed`, `open` or `half_open`.
    pub state: &'static str,
    /// Failed checks in a row.
    pub failures: u32,
    /// What the last check said, and when it ended.
    pub last: Option<(Timestamp, Option<Arc<str>>)>,
    /// When it opened.
    pub opened_at: Option<Timestamp>,
    /// When the next check goes out.
    pub next_check: Option<Timestamp>,
}

/// The state of an agent as the engine sees it.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// Its id.
    pub id: AgentId,
    /// Its cap, if it has one.
    pub cap: Option<u32>,
    /// The cap was decided by a person, not by the configuration.
    pub cap_set: bool,
    /// Slots held.
    pub running: u32,
    /// Of them, those that started over the cap.
    pub over_cap: u32,
    /// Executions queued in the store.
    pub queued: u64,
    /// Sync callers waiting for their turn.
    pub places: u32,
    /// Executions that wait for it to come back.
    pub absorbed: u32,
    /// When the oldest queued one was accepted, of those at hand.
    pub oldest_queued_at: Option<Timestamp>,
    /// Starts per minute, when there is a rate.
    pub starts_per_minute: Option<f64>,
    /// Milliseconds until one that came now is estimated to start; `None` without a rate.
    pub starts_in_ms: Option<u64>,
    /// Nothing is dispatched to it.
    pub held: bool,
    /// It is held itself, whatever holds everything.
    pub held_itself: bool,
    /// Who holds it itself, as far as that is known.
    pub held_by: Option<HeldBy>,
    /// Why nothing is dispatched at all.
    pub hold: Option<Arc<str>>,
    /// Who holds all, as far as that is known.
    pub hold_by: Option<HeldBy>,
    /// Some instance could take a call now.
    pub can_start: bool,
    /// When the first that waits for it to come back is given up.
    pub absorbed_until: Option<Timestamp>,
    /// Its tags that need an approval.
    pub tags: AgentTags,
    /// Its instances.
    pub instances: Vec<InstanceFacts>,
}

/// The evidence behind where an execution is.
#[derive(Debug, Clone)]
pub struct Why {
    /// One sentence, present tense.
    pub verdict: String,
    /// A stable word for the rule.
    pub rule_id: &'static str,
    /// The rule, with the actual numbers.
    pub rule: String,
    /// What happens next, and when.
    pub next: Vec<(Timestamp, String)>,
    /// What would change it: a text and a command.
    pub changes: Vec<(String, String)>,
    /// What it is not.
    pub ruled_out: Vec<String>,
    /// The row.
    pub row: Arc<ExecutionRow>,
}
