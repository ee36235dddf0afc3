//! What goes out to agents, after the commit.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, AttemptSecret, ExecutionId, FunctionKind, FunctionName, RunId, Status, Timestamp,
};

use crate::event::{AttemptKey, InstanceKey};
use crate::fleet::FleetSend;
use crate::row::{ApprovalRow, Payload, Replay};

/// Something that leaves the process.
#[derive(Debug, Clone)]
pub enum Send {
    /// A call to an agent.
    Dispatch(Box<Dispatch>),
    /// Tells an agent that an execution was cancelled.
    TellCancel(Box<TellCancel>),
    /// Dials an address once, after a wait, to see whether somebody listens; sends no byte.
    Dial {
        /// Which instance.
        key: InstanceKey,
        /// Which address.
        base_url: Arc<str>,
        /// How long to wait first.
        after: Duration,
    },
    /// Asks at addresses, in this order, for an instance's `/health`; proves nothing about us.
    Seek {
        /// Which instance.
        key: InstanceKey,
        /// Where.
        at: Vec<Arc<str>>,
    },
    /// Asks an instance for its `/health`.
    Probe {
        /// Which instance.
        key: InstanceKey,
        /// Which address.
        base_url: Arc<str>,
    },
    /// Takes a call back if no byte of it has left; [`crate::Event::TakenBack`] says that it was.
    TakeBack(AttemptKey),
    /// Closes idle connections to an instance.
    CloseIdle(InstanceKey),
    /// Tells an agent what was decided; tried again until it is told or time is up.
    TellApproval(Box<TellApproval>),
    /// Something for a node.
    Fleet(Box<FleetSend>),
    /// Checks the health of an LLM endpoint once.
    CheckLlm {
        /// Which: its name in the configuration.
        endpoint: Arc<str>,
    },
}

/// Everything needed to tell an agent of a decision.
#[derive(Debug, Clone)]
pub struct TellApproval {
    /// The attempt that asked.
    pub attempt: AttemptKey,
    /// Its secret: the agent knows the execution by the whole attempt id.
    pub secret: AttemptSecret,
    /// The agent.
    pub agent: AgentId,
    /// The approval as it was decided.
    pub approval: ApprovalRow,
    /// The execution's status now.
    pub status: Status,
    /// When to give up.
    pub until: Timestamp,
}

/// Everything a dispatcher needs for one call.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The attempt.
    pub attempt: AttemptKey,
    /// Its secret.
    pub secret: AttemptSecret,
    /// The run.
    pub run: RunId,
    /// The root of the run.
    pub root: ExecutionId,
    /// The caller, as an execution id without secret.
    pub parent: Option<ExecutionId>,
    /// The instance.
    pub to: InstanceKey,
    /// Its address.
    pub base_url: Arc<str>,
    /// The function.
    pub function: FunctionName,
    /// What it was registered as: decides the path.
    pub kind: FunctionKind,
    /// The input; `None` when it must be read from the store.
    pub input: Option<Payload>,
    /// `X-Session-ID`.
    pub session: Option<Arc<str>>,
    /// `X-Actor-ID`.
    pub actor: Option<Arc<str>>,
    /// W3C `traceparent`, and behind a blank its `tracestate`.
    pub traceparent: Option<Arc<str>>,
    /// From where its calls may be taken over: the replay headers.
    pub replay: Option<Box<Replay>>,
    /// How long the exchange may take.
    pub call_timeout: Duration,
    /// Others wait for it to get through: to be told when its connection stands and the agent
    /// takes its time to answer.
    pub tell_when_taken: bool,
}

/// Everything needed to tell an agent of a cancel.
#[derive(Debug, Clone)]
pub struct TellCancel {
    /// The attempt.
    pub attempt: AttemptKey,
    /// Its secret: the agent knows the execution by the whole attempt id.
    pub secret: AttemptSecret,
    /// The run.
    pub run: RunId,
    /// The instance.
    pub to: InstanceKey,
    /// Its address.
    pub base_url: Arc<str>,
    /// What kind of function; skills cannot be cancelled.
    pub kind: FunctionKind,
    /// Why.
    pub reason: Arc<str>,
}
