//! The decisions: admission, queueing, dispatch, restarts, callbacks, cancel, recovery and
//! liveness, as one state machine.
//!
//! Has no async, no IO, no clock and no randomness without a seed. [`Engine::step`] applies one
//! event and says what must be written, sent, answered and told, in the order in which it may
//! become visible. Whoever drives it commits the writes first.

mod absorb;
mod addresses;
mod admission;
mod agent;
mod answer;
mod approvals;
mod ask;
mod beats;
mod cancel;
mod caps;
mod check;
mod circuits;
mod departures;
pub mod effect;
mod ending;
mod engine;
pub mod event;
mod execution;
pub mod fleet;
mod gates;
mod history;
mod joins;
pub mod limits;
mod lineage;
pub mod liveness;
mod parents;
mod pauses;
mod places;
mod queue;
mod recent;
mod recovery;
pub mod refusal;
mod registration;
pub mod replay;
mod report;
mod retiring;
pub mod row;
mod start;
mod tags;
mod timers;
mod turns;
mod waits;

pub use effect::{Effects, Load, Notice, Reply, Send, Write};
pub use engine::{Engine, attempt_secret};
pub use event::Event;
pub use limits::Limits;
pub use refusal::Refusal;
