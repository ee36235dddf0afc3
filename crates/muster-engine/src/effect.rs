//! What a step wants done, as commands, in the order in which they may become visible: first
//! the writes, all in one commit; then sends, replies and notices.

mod notice;
mod send;
mod write;

use std::sync::Arc;

use muster_wire::{AgentId, ExecutionId, FunctionKind, InstanceId, RunId, Status, Timestamp};

use crate::event::{
    ApprovalAsk, Awaiter, Callback, Cancel, Pause, Submission, TreeCancel, TreePause, Verdict,
    Waiter,
};
use crate::fleet::{FleetEvent, FleetReply};
use crate::refusal::Refusal;
use crate::row::{AgentTags, ApprovalRow, HeldBy, QueueKey};

pub use notice::{AgentState, CircuitState, Count, ExecutionView, Notice, Position, Why};
pub use send::{Dispatch, Send, TellApproval, TellCancel};
pub use write::{Ending, ExecutionChange, Move, Write};

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
