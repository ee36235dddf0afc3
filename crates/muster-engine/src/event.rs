//! What happened, in the past tense: everything the outside may tell the engine.
//!
//! Events carry what their decision needs. What the engine lacks it asks for with a
//! [`crate::Load`]; the same event then comes back with `known` filled in.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, AttemptRef, Category, Decision, ExecutionId, FunctionName, InstanceId, Lane,
    ParentEnd, RunId, Status, Timestamp,
};

use crate::fleet::{FleetEvent, FleetQuestion};
use crate::row::{ApprovalRow, ExecutionRow, Function, Payload, QueueKey, QueuedRow, Replay};

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

/// One call, checked for its form and authenticated, with ids minted where it came in.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Who is answered.
    pub waiter: Waiter,
    /// How it came in.
    pub lane: Lane,
    /// The id it gets when it is accepted.
    pub execution: ExecutionId,
    /// The run: minted, or the caller's.
    pub run: RunId,
    /// Whether the run id came from the caller, so that the run may exist already.
    pub run_claimed: bool,
    /// The parent the caller named, with the proof it gave.
    pub parent: Option<AttemptRef>,
    /// The agent called.
    pub agent: AgentId,
    /// The function called.
    pub function: FunctionName,
    /// Who calls.
    pub principal: Arc<str>,
    /// The caller's key, hashed.
    pub key_hash: Option<Arc<str>>,
    /// `Idempotency-Key`, scoped: the principal, a NUL, the key.
    pub idempotency_key: Option<Arc<str>>,
    /// BLAKE3 over target and canonical input, first 16 bytes.
    pub body_hash: [u8; 16],
    /// The input as it will be sent.
    pub input: Payload,
    /// The input's size when it is already stored outside the commit; then `input` is empty.
    pub input_stored: Option<u64>,
    /// What is wrong with the input by the function's schema, if anything.
    pub input_fault: Option<InputFault>,
    /// 0 goes first; `None` inherits or is 5.
    pub class: Option<u8>,
    /// Active time it may take, when the caller asked for less or more.
    pub deadline: Option<Duration>,
    /// `X-Session-ID`.
    pub session: Option<Arc<str>>,
    /// `X-Actor-ID`.
    pub actor: Option<Arc<str>>,
    /// W3C `traceparent`, and behind a blank its `tracestate`.
    pub traceparent: Option<Arc<str>>,
    /// What happens to it when its parent ends, when the call says so.
    pub on_parent_end: Option<ParentEnd>,
    /// Where its end is told: JSON with the secret sealed.
    pub webhook: Option<Arc<str>>,
    /// The LLM endpoint it will need.
    pub llm_endpoint: Option<Arc<str>>,
    /// From where it may be taken over, as the caller's headers say.
    pub replay: Option<Box<Replay>>,
    /// Which of the equal calls of its parent it is, once the engine has counted.
    pub replay_index: Option<u32>,
    /// What it is a restart of.
    pub restart: Option<Box<Restart>>,
    /// When it came in.
    pub received_at: Timestamp,
    /// What was read for it.
    pub known: Known,
}

impl Submission {
    /// What its idempotency key stands for: target and input, and of a restart what it restarts
    /// and how.
    pub fn key_hash(&self) -> [u8; 16] {
        let Some(restart) = &self.restart else {
            return self.body_hash;
        };
        let mut hasher = blake3::Hasher::new();
        let mode = self
            .replay
            .as_deref()
            .map_or("", |replay| replay.mode.word());
        for part in [restart.named.as_str(), restart.of.as_str(), mode] {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        hasher.update(&[u8::from(restart.fork)]);
        hasher.update(&self.body_hash);
        let mut hash = [0u8; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }
}

/// What the store said about a submission; filled by the shell when the engine asks.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The last event number the read saw; `None` when nothing was read.
    pub as_of: Option<u64>,
    /// The execution that its idempotency key made, if any, and its body hash.
    pub key: Option<(ExecutionId, [u8; 16], Option<Box<ExecutionRow>>)>,
    /// The claimed run, if it exists: its root, whether it is cancelled, how many members.
    pub run: Option<KnownRun>,
    /// The claimed parent's row, if it exists.
    pub parent: Option<Box<ExecutionRow>>,
    /// The run's last turn in the queue of the called agent.
    pub turn: Option<u64>,
    /// How many calls with the same target and input its parent has had; read with `replay`.
    pub equal_calls: Option<u32>,
    /// What answers it from the source run; read with `replay_index`.
    pub hit: Option<Box<ReplayHit>>,
    /// Whether the run that is restarted has open members; read with `restart`.
    pub source_open: Option<bool>,
}

/// An execution of a source run that answers a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayHit {
    /// The execution whose end is taken over: never itself a replayed one.
    pub row: Box<ExecutionRow>,
    /// The twin in the source run: `row` itself, unless that was replayed.
    pub twin: ExecutionId,
    /// Whether it may be taken over, by the mode; otherwise only its twin is of use.
    pub usable: bool,
}

/// What a submission is a restart of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// The execution that is run again: the twin of the new one.
    pub of: ExecutionId,
    /// The execution that the caller named; its children are called again from there.
    pub named: ExecutionId,
    /// The run of both.
    pub source: RunId,
    /// A run with open members may be its source.
    pub fork: bool,
    /// Why, for the event.
    pub reason: Option<Arc<str>>,
}

/// What the store said about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRun {
    /// Its root.
    pub root: ExecutionId,
    /// Whether it is cancelled.
    pub cancelled: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// How many executions it has.
    pub size: u64,
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

/// A registration, checked for its form.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Who is answered.
    pub waiter: Waiter,
    /// The agent.
    pub agent: AgentId,
    /// The process: `instance_id`, or `url:` and the address.
    pub instance: InstanceId,
    /// Who registers.
    pub principal: Arc<str>,
    /// Where it wants to be called.
    pub base_url: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// What it offers.
    pub functions: Arc<Vec<Function>>,
    /// Whether it says `starting`.
    pub starting: bool,
    /// The whole body, for lists and discovery.
    pub body: Payload,
    /// The supervised process whose key it used.
    pub worker: Option<Arc<str>>,
    /// Tags it asks for that need an approval.
    pub tags: Vec<Box<str>>,
    /// Where else it may be: addresses it named itself, and the one it registered from.
    pub candidates: Vec<Arc<str>>,
}

/// What a supervisor of ours says about a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerChange {
    /// It is about to be stopped and started again.
    WillRestart,
    /// It exited and will be started again.
    ExitedWillRestart(Arc<str>),
    /// It exited for good.
    Exited(Arc<str>),
    /// It was started.
    Started,
}

/// What a probe of `/health` saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It answered as this agent.
    Alive,
    /// Something answered, but not as this agent.
    SomebodyElse(Arc<str>),
    /// It could not be dialled.
    Refused(Arc<str>),
    /// It was dialled and did not answer.
    Silent(Arc<str>),
}

/// A wish to cancel one execution.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub execution: ExecutionId,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A wish to cancel a run.
#[derive(Debug, Clone)]
pub struct TreeCancel {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub run: RunId,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The run and its queued members as the store has them.
    pub known: Option<KnownTree>,
}

/// A wish to pause or resume one execution.
#[derive(Debug, Clone)]
pub struct Pause {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub execution: ExecutionId,
    /// Pause, or resume.
    pub on: bool,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A wish to pause or resume a run.
#[derive(Debug, Clone)]
pub struct TreePause {
    /// Who is answered.
    pub waiter: Waiter,
    /// Which.
    pub run: RunId,
    /// Pause, or resume.
    pub on: bool,
    /// Who wants it.
    pub by: Arc<str>,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// The run and its queued members as the store has them.
    pub known: Option<KnownTree>,
}

/// A wish of an agent for a person's decision.
#[derive(Debug, Clone)]
pub struct ApprovalAsk {
    /// Who is answered.
    pub waiter: Waiter,
    /// The execution and what proves that the sender has it.
    pub from: AttemptRef,
    /// The agent as which the sender speaks.
    pub agent: AgentId,
    /// The agent to which the sender's key is bound, if any.
    pub key_agent: Option<AgentId>,
    /// The agent's own id of the request.
    pub request: Arc<str>,
    /// Where a person decides.
    pub request_url: Option<Arc<str>>,
    /// Where the agent wants to be told.
    pub callback_url: Option<Arc<str>>,
    /// How long it may take.
    pub expires_in: Duration,
    /// The row as the store has it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
    /// What the execution asked under that name before; read with `known`.
    pub earlier: Option<Box<ApprovalRow>>,
}

/// A person's decision.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Who is answered.
    pub waiter: Waiter,
    /// Of which execution; `None` when only the request is named.
    pub execution: Option<ExecutionId>,
    /// The request; `None` for the one that is pending.
    pub request: Option<Arc<str>>,
    /// What was decided; never expired.
    pub decision: Decision,
    /// Who decided.
    pub by: Arc<str>,
    /// What they wrote.
    pub feedback: Option<Payload>,
    /// Their answer as JSON text.
    pub response: Option<Payload>,
    /// What the store has of approvals of that name, read because none is pending.
    pub known: Option<(u64, Vec<ApprovalRow>)>,
}

/// What an agent says about its waiting for a child.
#[derive(Debug, Clone)]
pub struct Awaiter {
    /// Who is answered.
    pub waiter: Waiter,
    /// The execution and what proves that the sender has it.
    pub from: AttemptRef,
    /// The agent to which the sender's key is bound, if any.
    pub key_agent: Option<AgentId>,
    /// It waits, or goes on.
    pub waiting: bool,
    /// The agent's words.
    pub reason: Option<Arc<str>>,
    /// The row as the store has it, read because the engine did not hold it.
    pub known: Option<(u64, Option<Box<ExecutionRow>>)>,
}

/// A run and its queued members.
#[derive(Debug, Clone)]
pub struct KnownTree {
    /// The last event number the read saw.
    pub as_of: u64,
    /// The run; `None` when it does not exist.
    pub run: Option<KnownRun>,
    /// Its queued members.
    pub queued: Vec<ExecutionRow>,
}

/// What became of a cancel at the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelReceipt {
    /// It stopped the code.
    Stopped,
    /// It was told and says that the code was not running.
    NotActive,
    /// It cannot stop this; the code may still run.
    StillRunning(Arc<str>),
    /// It could not be told.
    NotTold(Arc<str>),
}

impl CancelReceipt {
    /// The word in events and rows.
    pub fn word(&self) -> &'static str {
        match self {
            CancelReceipt::Stopped => "stopped",
            CancelReceipt::NotActive => "not_active",
            CancelReceipt::StillRunning(_) => "still_running",
            CancelReceipt::NotTold(_) => "not_told",
        }
    }
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
