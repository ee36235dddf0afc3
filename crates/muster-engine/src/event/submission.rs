//! What a submission brings, and what the store knew about it.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::{
    AgentId, AttemptRef, ExecutionId, FunctionName, Lane, ParentEnd, RunId, Timestamp,
};

use super::{InputFault, Waiter};
use crate::row::{ExecutionRow, Payload, Replay};

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
