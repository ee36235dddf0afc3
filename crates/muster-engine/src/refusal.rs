//! Refusals are values. This is the one place that knows which category, sentence and
//! `Retry-After` each has.

use muster_wire::{AgentId, Category, ErrorBody, ExecutionId, FunctionName, RunId};
use serde_json::json;

/// Why a submission was not taken. Nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The key was used with another target or input.
    IdempotencyConflict {
        /// The key.
        key: String,
    },
    /// No such agent.
    NoAgent {
        /// Which.
        agent: AgentId,
    },
    /// The agent has no such function.
    NoFunction {
        /// The agent.
        agent: AgentId,
        /// The function.
        function: FunctionName,
        /// What it has, for the hint.
        has: Vec<FunctionName>,
    },
    /// The input does not fit the schema.
    Input {
        /// The field.
        field: String,
        /// A sentence.
        message: String,
    },
    /// The execution that calls, or one above it, was cancelled.
    CallerCancelled {
        /// The execution that calls.
        caller: ExecutionId,
    },
    /// The run is cancelled.
    RunCancelled {
        /// Which.
        run: RunId,
    },
    /// The call ends with its parent, which has ended.
    ParentEnded {
        /// Which.
        parent: ExecutionId,
    },
    /// Tags of the agent wait for an approval.
    PendingApproval {
        /// Which agent.
        agent: AgentId,
        /// Its tags that are not approved.
        tags: Vec<Box<str>>,
    },
    /// The circuit of the LLM endpoint that the call needs is open.
    LlmUnavailable {
        /// Which endpoint.
        endpoint: String,
        /// Seconds to the next probe.
        retry_after: u32,
    },
    /// The run that is to be restarted has open members.
    SourceOpen {
        /// Which.
        run: RunId,
    },
    /// The plane is shutting down.
    Draining,
    /// The disk is below its reserve.
    StoreFull,
    /// More waits than is taken.
    Overloaded {
        /// Seconds until it should be taken.
        retry_after: u32,
    },
    /// Every instance is down.
    AgentDown {
        /// Which agent.
        agent: AgentId,
        /// What is known of its best instance.
        evidence: String,
    },
    /// Calls are nested too deep.
    TooDeep {
        /// The bound.
        max: u32,
    },
    /// The run has too many executions.
    RunTooLarge {
        /// The bound.
        max: u64,
    },
    /// The agent is at its cap and full agents refuse.
    AgentFull {
        /// Which.
        agent: AgentId,
        /// Slots held.
        running: u32,
        /// The cap.
        cap: u32,
    },
    /// The queue is full.
    QueueFull {
        /// Which agent's.
        agent: AgentId,
        /// The bound.
        capacity: u64,
    },
    /// A sync caller waited for its turn as long as it may.
    NoTurn {
        /// Which agent's.
        agent: AgentId,
        /// Seconds it waited.
        waited: u64,
    },
    /// The address is that of a living agent of another principal.
    AddressTaken {
        /// The address.
        base_url: std::sync::Arc<str>,
        /// Whose it is.
        owner: AgentId,
    },
    /// The agent id belongs to another principal.
    AgentIdTaken {
        /// Which.
        agent: AgentId,
    },
    /// The one event that could not be handled.
    Quarantined {
        /// Its id in the quarantine.
        id: String,
    },
}

impl Refusal {
    /// The category.
    pub fn category(&self) -> Category {
        match self {
            Refusal::IdempotencyConflict { .. } => Category::IdempotencyConflict,
            Refusal::NoAgent { .. } | Refusal::NoFunction { .. } => Category::TargetNotFound,
            Refusal::Input { .. } => Category::Validation,
            Refusal::RunCancelled { .. }
            | Refusal::CallerCancelled { .. }
            | Refusal::ParentEnded { .. } => Category::RunCancelled,
            Refusal::PendingApproval { .. } => Category::AgentPendingApproval,
            Refusal::LlmUnavailable { .. } => Category::LlmUnavailable,
            Refusal::SourceOpen { .. } | Refusal::AddressTaken { .. } => Category::Conflict,
            Refusal::Draining => Category::ControlPlaneShutdown,
            Refusal::StoreFull => Category::StoreFull,
            Refusal::Overloaded { .. } => Category::Overloaded,
            Refusal::AgentDown { .. } => Category::NodeUnavailable,
            Refusal::TooDeep { .. }
            | Refusal::RunTooLarge { .. }
            | Refusal::AgentFull { .. }
            | Refusal::QueueFull { .. }
            | Refusal::NoTurn { .. } => Category::ConcurrencyLimit,
            Refusal::AgentIdTaken { .. } => Category::AgentIdTaken,
            Refusal::Quarantined { .. } => Category::InternalError,
        }
    }

    /// The HTTP status: the category's, but 429 where the caller's own fan-out or a refusing cap
    /// is the reason.
    pub fn http_status(&self) -> u16 {
        match self {
            Refusal::TooDeep { .. } | Refusal::RunTooLarge { .. } | Refusal::AgentFull { .. } => {
                429
            }
            other => other.category().http_status(),
        }
    }

    /// Seconds after which trying again makes sense; `None` when it never does by itself.
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Refusal::LlmUnavailable { retry_after, .. } => Some(*retry_after),
            Refusal::Draining | Refusal::AgentDown { .. } => Some(1),
            Refusal::StoreFull => Some(30),
            Refusal::Overloaded { retry_after } => Some((*retry_after).max(1)),
            Refusal::AgentFull { .. } | Refusal::QueueFull { .. } | Refusal::NoTurn { .. } => {
                Some(1)
            }
            Refusal::IdempotencyConflict { .. }
            | Refusal::NoAgent { .. }
            | Refusal::NoFunction { .. }
            | Refusal::Input { .. }
            | Refusal::RunCancelled { .. }
            | Refusal::CallerCancelled { .. }
            | Refusal::ParentEnded { .. }
            | Refusal::PendingApproval { .. }
            | Refusal::SourceOpen { .. }
            | Refusal::TooDeep { .. }
            | Refusal::RunTooLarge { .. }
            | Refusal::AddressTaken { .. }
            | Refusal::AgentIdTaken { .. }
            | Refusal::Quarantined { .. } => None,
        }
    }

    /// The sentence: what is the matter and what to do.
    pub fn message(&self) -> String {
        match self {
            Refusal::IdempotencyConflict { key } => format!(
                "Idempotency-Key {key:?} was used with another target or input; use a new key for a new call"
            ),
            Refusal::NoAgent { agent } => {
                format!("no agent {agent:?} is registered; start it, and see `muster agents` for those that are")
            }
            Refusal::NoFunction { agent, function, has } => {
                let names: Vec<&str> = has.iter().map(FunctionName::as_str).collect();
                if names.is_empty() {
                    format!("agent {agent:?} has no function {function:?}; it registered none")
                } else {
                    format!("agent {agent:?} has no function {function:?}; it has {}", names.join(", "))
                }
            }
            Refusal::Input { field, message } => format!("input.{field}: {message}"),
            Refusal::CallerCancelled { caller } => format!(
                "{caller}, which calls, or an execution above it was cancelled; it may call nothing more"
            ),
            Refusal::RunCancelled { run } => format!("run {run} was cancelled and takes no more calls"),
            Refusal::ParentEnded { parent } => format!(
                "{parent}, which makes the call, has ended, and the call says `on_parent_end: cancel`"
            ),
            Refusal::PendingApproval { agent, tags } => format!(
                "{agent} asks for tags that are not approved ({}); an operator approves them with `muster tags approve {agent}`",
                tags.join(", ")
            ),
            Refusal::LlmUnavailable { endpoint, retry_after } => format!(
                "the LLM endpoint {endpoint} fails its health checks; the next one is due in {retry_after} s"
            ),
            Refusal::SourceOpen { run } => format!(
                "run {run} has executions that have not ended; wait for them, cancel it, or say `fork`"
            ),
            Refusal::Draining => "the control plane is shutting down; try again".into(),
            Refusal::StoreFull => {
                "the disk is below its reserve, so no new work is stored; free space or lower store.min_free".into()
            }
            Refusal::Overloaded { .. } => "more calls are waiting than the plane takes; try again later".into(),
            Refusal::AgentDown { agent, evidence } => format!("{agent} is down: {evidence}"),
            Refusal::TooDeep { max } => format!("calls are nested deeper than {max}; is this a recursion without end?"),
            Refusal::RunTooLarge { max } => format!("the run has {max} executions already, which is the bound of a run"),
            Refusal::AgentFull { agent, running, cap } => {
                format!("{agent} runs {running} of at most {cap} executions; try again when one has ended")
            }
            Refusal::QueueFull { agent, capacity } => {
                format!("the queue of {agent} is full ({capacity}); try again when it has drained")
            }
            Refusal::NoTurn { agent, waited } => {
                format!("no slot of {agent} became free in {waited} s; nothing was stored")
            }
            Refusal::AddressTaken { base_url, owner } => format!(
                "{base_url} is the address of {owner}, which lives and belongs to another principal; use another port, or stop that one"
            ),
            Refusal::AgentIdTaken { agent } => format!(
                "agent id {agent:?} belongs to another principal; use another id, or let an admin release it"
            ),
            Refusal::Quarantined { id } => {
                format!("this request hit a fault of ours and was set aside as {id}; see `muster quarantine show {id}`")
            }
        }
    }

    /// The whole body.
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.category(), self.message());
        body.retry_after = self.retry_after();
        body.details = match self {
            Refusal::Input { field, .. } => Some(json!({ "field": field })),
            Refusal::AgentFull { running, cap, .. } => {
                Some(json!({ "running": running, "cap": cap }))
            }
            Refusal::QueueFull { capacity, .. } => Some(json!({ "queue_capacity": capacity })),
            Refusal::TooDeep { max } => Some(json!({ "depth_max": max })),
            Refusal::RunTooLarge { max } => Some(json!({ "run_size_max": max })),
            _ => None,
        };
        body
    }
}
