//! What a step wants done, as commands, in the order in which they may become visible: first
//! the writes, all in one commit; then sends, replies and notices.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, AttemptSecret, Category, ExecutionId, FunctionKind, FunctionName, InstanceId, Lane,
    RunId, Status, Timestamp,
};

use crate::event::{
    ApprovalAsk, AttemptKey, Awaiter, Callback, Cancel, InstanceKey, Pause, Submission, TreeCancel,
    TreePause, Verdict, Waiter,
};
use crate::fleet::{FleetEvent, FleetNotice, FleetReply, FleetSend, FleetWrite};
use crate::liveness::InstanceFacts;
use crate::refusal::Refusal;
use crate::row::{
    AgentRow, AgentTags, ApprovalRow, AttemptOutcome, AttemptRow, DeliveryRow, EventRow,
    ExecutionRow, Function, HeldBy, InstanceRow, KeyRow, Payload, PayloadKind, QueueKey, Replay,
    RunRow, Wait,
};

/// Everything a step, or a batch of steps, wants done.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be committed together, in this order.
    pub writes: Vec<Write>,
    /// To be read, now; does not wait for the commit.
    pub loads: Vec<Load>,
    /// To go out after the commit.
    pub sends: Vec<Send>,
    /// To be answered after the commit.
    pub replies: Vec<(Waiter, Reply)>,
    /// To be told after the commit.
    pub notices: Vec<Notice>,
}

impl Effects {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.loads.is_empty()
            && self.sends.is_empty()
            && self.replies.is_empty()
            && self.notices.is_empty()
    }
}

/// One row change. Each is one fixed statement in a store.
#[derive(Debug, Clone)]
pub enum Write {
    /// A new execution.
    InsertExecution(Arc<ExecutionRow>),
    /// A change of an execution.
    UpdateExecution {
        /// Which.
        id: ExecutionId,
        /// What changes.
        change: ExecutionChange,
    },
    /// A new attempt.
    InsertAttempt(Box<AttemptRow>),
    /// The agent took it: 202, or a later sign.
    AcceptAttempt {
        /// Which.
        attempt: AttemptKey,
        /// When.
        at: Timestamp,
    },
    /// The end of an attempt.
    EndAttempt {
        /// Which.
        attempt: AttemptKey,
        /// When.
        at: Timestamp,
        /// How.
        outcome: AttemptOutcome,
        /// The error or answer behind it.
        evidence: Option<Payload>,
    },
    /// A payload of up to 64 KiB; larger ones were stored before the event.
    PutPayload {
        /// Whose.
        execution: ExecutionId,
        /// What.
        kind: PayloadKind,
        /// The bytes.
        bytes: Payload,
    },
    /// A new or changed agent.
    PutAgent(Box<AgentRow>),
    /// Nothing is dispatched to an agent any more, or it is again.
    SetAgentHold {
        /// Which.
        agent: AgentId,
        /// Held or not.
        held: bool,
    },
    /// An agent and its instances go. Its executions stay.
    DropAgent(AgentId),
    /// How many executions an agent runs at once, as a person decided.
    SetAgentCap {
        /// Which.
        agent: AgentId,
        /// At most so many; 0 is no cap, `None` what the configuration says.
        cap: Option<u32>,
    },
    /// A new or changed instance.
    PutInstance(Box<InstanceRow>),
    /// New marks on a run. What is `None` stays as it was.
    PutRun(Box<RunRow>),
    /// A run's pause is lifted.
    ResumeRun(RunId),
    /// A new or changed approval.
    PutApproval(Box<ApprovalRow>),
    /// A message for a webhook.
    InsertDelivery(Box<DeliveryRow>),
    /// What became of an agent's tags.
    SetAgentTags {
        /// Which.
        agent: AgentId,
        /// All of them.
        tags: AgentTags,
    },
    /// An idempotency key.
    InsertKey(Box<KeyRow>),
    /// A line of the event sequence.
    InsertEvent(Arc<EventRow>),
    /// Why nothing is dispatched at all; `None` lifts it.
    SetHold(Option<Arc<str>>),
    /// Who holds all, or one agent; `None` forgets it.
    SetHeldBy {
        /// One agent, or all.
        agent: Option<AgentId>,
        /// Who.
        by: Option<HeldBy>,
    },
    /// A change of the fleet.
    Fleet(FleetWrite),
}

/// What changes in an execution's row.
#[derive(Debug, Clone)]
pub enum ExecutionChange {
    /// Handed to an instance: running, no reason.
    Started {
        /// The attempt's number.
        attempt: u32,
        /// When the first attempt started.
        started_at: Timestamp,
        /// Since when the clock runs.
        clock_from: Timestamp,
        /// Active time so far.
        active_us: i64,
        /// Started over the cap.
        over_cap: bool,
        /// The agents it now holds slots on, itself included.
        holds: Vec<AgentId>,
    },
    /// A dial failed and is absorbed: running, `awaiting_agent_restart`.
    Absorbed {
        /// When it gives up.
        until: Timestamp,
        /// When it was first dispatched.
        started_at: Timestamp,
        /// Since when the clock runs.
        clock_from: Timestamp,
        /// Started over the cap.
        over_cap: bool,
    },
    /// It ended. The queue, absorption and clock marks come off.
    Ended(Box<Ending>),
    /// An outcome came after the end.
    Late {
        /// Which status it claimed.
        status: Status,
    },
    /// It goes from one open state to another: waiting, paused, resumed, continued. Back to
    /// queued, it is in its queue again at its old place.
    Moved(Box<Move>),
    /// It was restarted or forked; also of one that ended.
    RestartedAs {
        /// The new one.
        id: ExecutionId,
    },
}

/// A change from one open state to another, as the whole new state.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    /// The new status.
    pub status: Status,
    /// The finer word.
    pub reason: Option<Arc<str>>,
    /// What it waits for.
    pub wait: Option<Box<Wait>>,
    /// The state that a resume gives back.
    pub resume_to: Option<Status>,
    /// Until when a failed dial is absorbed.
    pub absorb_until: Option<Timestamp>,
    /// Since when its clock runs; `None` while it stands.
    pub clock_from: Option<Timestamp>,
    /// Active time so far.
    pub active_us: i64,
    /// It holds a slot over the cap.
    pub over_cap: bool,
}

/// The end of an execution.
#[derive(Debug, Clone)]
pub struct Ending {
    /// A terminal status.
    pub status: Status,
    /// The finer word.
    pub reason: Option<Arc<str>>,
    /// Why it failed.
    pub category: Option<Category>,
    /// The agent's text.
    pub error: Option<Payload>,
    /// The status a failed sync call answers with.
    pub http_status: Option<u16>,
    /// When.
    pub at: Timestamp,
    /// Active time.
    pub active_us: i64,
    /// Size of the result.
    pub result_size: Option<u64>,
    /// Usage as JSON.
    pub usage: Option<Payload>,
}

/// Something the engine needs and does not hold.
#[derive(Debug)]
pub enum Load {
    /// Fill `known`, then hand the submission in again.
    Submission(Box<Submission>),
    /// Read the row, then hand the callback in again.
    Callback(Box<Callback>),
    /// Read the row, then hand the wish in again.
    Cancel(Box<Cancel>),
    /// Read run and queued members, then hand the wish in again.
    Tree(Box<TreeCancel>),
    /// Read the row, then hand the wish in again.
    Pause(Box<Pause>),
    /// Read run and queued members, then hand the wish in again.
    TreePause(Box<TreePause>),
    /// Read the row, then hand the wish in again.
    ApprovalAsk(Box<ApprovalAsk>),
    /// Read the approvals of that name, then hand the decision in again.
    Verdict(Box<Verdict>),
    /// Read the row, then hand the report in again.
    Awaiter(Box<Awaiter>),
    /// Read the worker that the event names, then hand it in again.
    Fleet(Box<FleetEvent>),
    /// Read queued executions whose parent has ended and that end with it.
    Bereaved {
        /// How many.
        limit: usize,
    },
    /// Read the next entries of a queue.
    Window {
        /// Whose.
        agent: AgentId,
        /// After which entry; `None` from the start.
        after: Option<QueueKey>,
        /// How many.
        limit: usize,
    },
}

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

/// An answer to a waiter.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Not taken; nothing was written.
    Refused(Refusal),
    /// Taken: the async lanes' 202.
    Accepted(Box<Receipt>),
    /// A sync caller's execution ended, or an idempotent repeat found it ended.
    Ended(Arc<ExecutionView>),
    /// A sync caller waited as long as it may; the execution goes on.
    StillRunning {
        /// Which.
        execution: ExecutionId,
        /// Its run.
        run: RunId,
        /// The plane is shutting down.
        shutdown: bool,
    },
    /// A callback was taken.
    CallbackTaken,
    /// A callback said what was known already.
    CallbackRepeated,
    /// A callback contradicts the end; kept as a late outcome.
    CallbackLate {
        /// The status that stands.
        status: Status,
    },
    /// Something about the fleet.
    Fleet(Box<FleetReply>),
    /// No such execution.
    UnknownExecution,
    /// The sender does not prove that it has the attempt.
    WrongAttempt,
    /// A registration was taken.
    Registered {
        /// The address the plane calls.
        base_url: Arc<str>,
        /// Tags that wait for an approval, or were refused.
        pending_tags: Vec<Box<str>>,
    },
    /// An agent is off the list, or would be.
    AgentRetired {
        /// Its instances, which nothing was heard of.
        instances: Vec<InstanceId>,
    },
    /// An agent stays on the list.
    AgentInUse {
        /// Instances that are not down.
        alive: Vec<InstanceId>,
        /// Its open executions, and callers that wait for their turn.
        open: u64,
    },
    /// The cap of an agent is another one, or was this already.
    CapSet {
        /// What it was; `None` is no cap.
        was: Option<u32>,
        /// A person had decided that.
        was_set: bool,
        /// What it is.
        cap: Option<u32>,
    },
    /// A cancel was taken.
    Cancelled {
        /// Executions that ended by it.
        ended: Vec<ExecutionId>,
        /// Attempts that are being told.
        told: u32,
    },
    /// A pause or a resume was taken.
    Moved {
        /// Executions whose state it changed.
        executions: Vec<ExecutionId>,
        /// The status of the one that was named; of a run, paused or running.
        status: Status,
    },
    /// An approval is pending, as asked.
    ApprovalPending(Box<ApprovalRow>),
    /// A decision was taken, or repeats the one that stands.
    Decided {
        /// The approval as it now is.
        approval: Box<ApprovalRow>,
        /// The execution's status now; `None` when it ended too long ago to be known here.
        status: Option<Status>,
        /// Whether it was the same again.
        repeated: bool,
    },
    /// A decision fits several pending approvals.
    Ambiguous(Vec<(ExecutionId, Arc<str>)>),
    /// No such approval.
    UnknownApproval,
    /// It does not go with the state things are in: a sentence, and the status that stands.
    Conflict {
        /// What is in the way, and what to do.
        message: String,
        /// The status of the execution, when it is about one.
        status: Option<Status>,
    },
    /// What an awaiter's report did.
    Awaiter {
        /// The execution's status now.
        status: Status,
        /// Whether the report changed it.
        applied: bool,
    },
    /// The tags of an agent, as decided.
    Tags(AgentTags),
    /// The circuits of LLM endpoints.
    Circuits(Vec<CircuitState>),
    /// It had ended before.
    AlreadyEnded {
        /// How.
        status: Status,
    },
    /// No such run.
    UnknownRun,
    /// No such agent.
    UnknownAgent,
    /// Done; nothing more to say.
    Done,
    /// The state of one agent; `None` when there is no such agent.
    Agent(Option<Box<AgentState>>),
    /// The state of all agents.
    Agents(Vec<AgentState>),
    /// Why an execution is where it is.
    Why(Option<Box<Why>>),
    /// A sentence for each execution that was asked about and is held.
    Verdicts(Vec<(ExecutionId, String)>),
    /// A place in a queue.
    Position(Option<Position>),
    /// The hold over everything, and what lifting it would send.
    HeldBack {
        /// Why nothing is dispatched at all, if so.
        reason: Option<Arc<str>>,
        /// Who holds all, as far as that is known.
        by: Option<HeldBy>,
        /// Agents that are held one by one, and who holds each.
        agents: Vec<(AgentId, Option<HeldBy>)>,
        /// Queued executions per agent.
        queued: Vec<(AgentId, u64)>,
    },
}

/// What an async submission is answered with.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The execution.
    pub execution: ExecutionId,
    /// Its run.
    pub run: RunId,
    /// Queued or running; the final status for a repeat of something ended.
    pub status: Status,
    /// What the function was registered as.
    pub kind: FunctionKind,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Its place, when it is queued.
    pub position: Option<Position>,
    /// It joined an earlier execution of the same idempotency key.
    pub replayed: bool,
    /// It was answered from its source run.
    pub replay_hit: bool,
}

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
