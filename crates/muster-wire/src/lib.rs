//! The contract: ids, words, bodies and error categories that leave the process.
//!
//! Knows nothing of HTTP, of storage or of decisions. Whatever a peer, a row or an event
//! spells as a string is spelled here once.

pub mod api;
pub mod attempt;
pub mod category;
pub mod fleet;
pub mod happening;
pub mod id;
pub mod plain;
pub mod refusal;
pub mod status;
pub mod time;

pub use attempt::{AttemptId, AttemptRef, AttemptSecret, SecretHash};
pub use category::Category;
pub use happening::EventKind;
pub use id::{
    AgentId, ExecutionId, FunctionName, InstanceId, NodeId, RunId, Target, WorkerId, mint,
};
pub use refusal::ErrorBody;
pub use status::{
    AttemptOutcome, Decision, ExecutionKind, FunctionKind, Lane, Origin, ParentEnd, ReplayMode,
    Status, WaitCause,
};
pub use time::Timestamp;
