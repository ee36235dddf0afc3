//! What happened, in the past tense: everything the outside may tell the engine.
//!
//! Events carry what their decision needs. What the engine lacks it asks for with a
//! [`crate::Load`]; the same event then comes back with `known` filled in.

mod approval;
mod cancel;
mod registration;
mod submission;

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, AttemptRef, Category, ExecutionId, FunctionName, InstanceId, RunId, Status, Timestamp,
};

use crate::fleet::{FleetEvent, FleetQuestion};
use crate::row::{ExecutionRow, Payload, QueueKey, QueuedRow};

pub use approval::{ApprovalAsk, Awaiter, Verdict};
pub use cancel::{Cancel, CancelReceipt, KnownTree, Pause, TreeCancel, TreePause};
pub use registration::{Probe, Registration, WorkerChange};
pub use submission::{Known, KnownRun, ReplayHit, Restart, Submission};

/// Who waits for a reply. Opaque to the engine; the shell keeps what is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter(pub u64);

/// One attempt of one execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The execution.
    pub execution: ExecutionId,
    /// The attempt's number.
    pub n: u32,
}

/// One instance of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceKey {
    /// The agent.
    pub agent: AgentId,
    /// The process.
    pub instance: InstanceId,
}

/// Everything that can happen.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call came in on some lane.
    Submitted(Box<Submission>),
    /// An agent answered with its final word.
    Answered {
        /// Whose answer.
        attempt: AttemptKey,
        /// What it said.
        outcome: Box<Outcome>,
    },
    /// An agent answered 202 and will call back.
    Accepted {
        /// Whose.
        attempt: AttemptKey,
    },
    /// The connection of a call stands, and the agent takes its time to answer.
    Taken {
        /// Whose.
        attempt: AttemptKey,
    },
    /// No byte reached the agent.
    DialFailed {
        /// Whose.
        attempt: AttemptKey,
        /// What the dial said.
        error: Arc<str>,
    },
    /// A call was taken back before a byte of it left.
    TakenBack {
        /// Whose.
        attempt: AttemptKey,
    },
    /// Bytes were sent, then the connection broke.
    BrokeAfterSend {
        /// Whose.
        attempt: AttemptKey,
        /// How.
        error: Arc<str>,
    },
    /// No answer within the call time-out.
    TimedOut {
        /// Whose.
        attempt: AttemptKey,
    },
    /// A status callback.
    CalledBack(Box<Callback>),
    /// A workflow event, or the registration of an in-process call.
    Reported(Box<Report>),
    /// A log, a note or a child came from an attempt: it is alive.
    Signed {
        /// Execution and proof.
        from: AttemptRef,
    },
    /// An agent registered.
    Registered(Box<Registration>),
    /// The newest receipt of a beat, handed in when the engine watches or when it is due.
    Heard {
        /// Who beat.
        key: InstanceKey,
        /// When the newest beat was received.
        at: Timestamp,
        /// The longest of its last gaps.
        interval: Option<Duration>,
    },
    /// An agent said goodbye.
    Goodbye {
        /// Which agent.
        agent: AgentId,
        /// Which process, when known.
        instance: Option<InstanceId>,
        /// How long it wants to drain.
        drain: Duration,
        /// Who is told.
        waiter: Waiter,
    },
    /// A supervisor of ours reports of a process.
    WorkerChanged {
        /// Which process.
        worker: Arc<str>,
        /// What about it.
        change: WorkerChange,
    },
    /// A gate's dial ended.
    Dialled {
        /// Which instance.
        key: InstanceKey,
        /// The address that was dialled.
        base_url: Arc<str>,
        /// What went wrong, if anything.
        error: Option<Arc<str>>,
    },
    /// An instance was asked for at its other addresses.
    Sought {
        /// Which instance.
        key: InstanceKey,
        /// The first address that answered as it.
        found: Option<Arc<str>>,
    },
    /// A probe of `/health` ended.
    Probed {
        /// Which instance.
        key: InstanceKey,
        /// What was seen.
        seen: Probe,
    },
    /// Somebody wants one execution cancelled.
    CancelRequested(Box<Cancel>),
    /// Somebody wants a whole run cancelled.
    TreeCancelRequested(Box<TreeCancel>),
    /// Somebody wants one execution paused or resumed.
    PauseRequested(Box<Pause>),
    /// Somebody wants a whole run paused or resumed.
    TreePauseRequested(Box<TreePause>),
    /// An agent asks for a person's decision.
    ApprovalAsked(Box<ApprovalAsk>),
    /// A person decided.
    ApprovalDecided(Box<Verdict>),
    /// What became of telling the agent of a decision.
    ApprovalTold {
        /// The execution.
        execution: ExecutionId,
        /// The request.
        request: Arc<str>,
        /// What the agent said, or why it could not be told.
        told: Result<Arc<str>, Arc<str>>,
    },
    /// An agent says that its execution waits for a waiting child, or no longer does.
    AwaiterReported(Box<Awaiter>),
    /// Tags of an agent were approved or rejected.
    TagsDecided {
        /// Which agent.
        agent: AgentId,
        /// Which of them; empty is all that are pending.
        tags: Vec<Box<str>>,
        /// Approved or rejected.
        approve: bool,
        /// Who decided.
        by: Arc<str>,
        /// Who is told.
        waiter: Waiter,
    },
    /// A health check of an LLM endpoint ended.
    LlmChecked {
        /// Which endpoint.
        endpoint: Arc<str>,
        /// What went wrong, if anything.
        error: Option<Arc<str>>,
    },
    /// What the agent did about a cancel.
    CancelTold {
        /// Of which attempt.
        attempt: AttemptKey,
        /// What it did.
        receipt: CancelReceipt,
    },
    /// The 202 of an accepted submission could not be written.
    Unheard {
        /// Which execution.
        execution: ExecutionId,
    },
    /// A sync caller without a row hung up.
    PlaceLeft {
        /// Which caller.
        waiter: Waiter,
    },
    /// More of a queue was read.
    WindowLoaded {
        /// Whose queue.
        agent: AgentId,
        /// The next entries, in order.
        rows: Vec<QueuedRow>,
        /// No more behind them at `as_of`.
        exhausted: bool,
        /// The last event number the read saw.
        as_of: u64,
    },
    /// Queued executions whose parent has ended and that end with it were read.
    BereavedLoaded {
        /// Some of them.
        rows: Vec<ExecutionRow>,
        /// There are more.
        more: bool,
        /// The last event number the read saw.
        as_of: u64,
    },
    /// Dispatching was stopped or allowed again, for one agent or for all.
    Held {
        /// One agent, or all.
        agent: Option<AgentId>,
        /// The reason; `None` lifts it.
        reason: Option<Arc<str>>,
        /// Who wants it.
        by: Arc<str>,
        /// Who is told.
        waiter: Waiter,
    },
    /// An agent that is not there any more is to be taken off the list.
    AgentRetired {
        /// Which.
        agent: AgentId,
        /// Only say what would happen.
        dry_run: bool,
        /// Who is told.
        waiter: Waiter,
    },
    /// How many executions an agent runs at once was decided by a person.
    CapSet {
        /// Which agent.
        agent: AgentId,
        /// At most so many; 0 is no cap, `None` what the configuration says.
        cap: Option<u32>,
        /// Who is told.
        waiter: Waiter,
    },
    /// The store's disk is below its reserve, or is no longer.
    StoreRoom {
        /// Below the reserve.
        full: bool,
    },
    /// SIGTERM: take no new work.
    Draining,
    /// `shutdown_timeout` passed: answer whoever is still held.
    DrainEnded,
    /// Something happened in the fleet.
    Fleet(Box<FleetEvent>),
    /// A question about the present state.
    Asked {
        /// What.
        question: Question,
        /// Who.
        waiter: Waiter,
    },
    /// Time passed.
    Tick,
}

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// The field, as a path.
    pub field: String,
    /// A sentence.
    pub message: String,
}

/// How an execution ended, according to its agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Succeeded, failed, cancelled or timeout.
    pub status: Status,
    /// The result as JSON text.
    pub result: Option<Payload>,
    /// The result's size when it is already stored outside the commit; then `result` is empty.
    pub result_stored: Option<u64>,
    /// The agent's error text.
    pub error: Option<Payload>,
    /// The agent's details as JSON text.
    pub details: Option<Payload>,
    /// Why it failed.
    pub category: Option<Category>,
    /// A finer word.
    pub reason: Option<Arc<str>>,
    /// The status a failed sync call answers with.
    pub http_status: Option<u16>,
    /// Usage as JSON text.
    pub usage: Option<Payload>,
}

/// A status callback.
#[derive(Debug, Clone)]
pub struct Callback {
    /// Who is answered.
    pub waiter: Waiter,
    /// The execution and what proves that the sender has it.
    pub from: AttemptRef,
    /// The agent to which the sender's key is bound, if any.
    pub key_agent: Option<AgentId>,
    /// What it says. A status that is not terminal is a sign of life and no more.
    pub outcome: Box<Outcome>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A workflow event: evidence about a dispatched execution, or the truth about an observed one.
#[derive(Debug, Clone)]
pub struct Report {
    /// The execution it is about, and its proof.
    pub about: AttemptRef,
    /// The parent it names, and its proof.
    pub parent: Option<AttemptRef>,
    /// The run it names.
    pub run: Option<RunId>,
    /// The agent that reports.
    pub agent: AgentId,
    /// The function.
    pub function: FunctionName,
    /// What it says.
    pub outcome: Box<Outcome>,
    /// The input of an observed call.
    pub input: Option<Payload>,
    /// `X-Session-ID` of the call, where the report names one.
    pub session: Option<Arc<str>>,
}

/// A question about the present state; answering it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Slots, queue and instances of an agent.
    Agent(AgentId),
    /// Slots, queue and instances of every agent.
    Agents,
    /// Why an execution is where it is; `None` when the engine does not hold it.
    Why(ExecutionId),
    /// The verdict of each of these that the engine holds: why it is where it is.
    Verdicts(Vec<ExecutionId>),
    /// The place of a queued execution.
    Position(AgentId, QueueKey),
    /// What an unhold would send.
    HeldBack,
    /// The circuits of all LLM endpoints.
    Circuits,
    /// Nodes, workers and placements.
    Fleet(FleetQuestion),
}
