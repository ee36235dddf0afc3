//! The decisions: admission, queueing, dispatch, restarts, callbacks, cancel, recovery and
//! liveness, as one state machine.
//!
//! Has no async, no IO, no clock and no randomness without a seed. [`Engine::step`] applies one
//! event and says what must be written, sent, answered and told, in the order in which it may
//! become visible. Whoever drives it commits the writes first.

pub mod effect;
pub mod event;
pub mod limits;
pub mod liveness;
pub mod refusal;
pub mod row;

pub use effect::{Effects, Load, Notice, Reply, Send, Write};
pub use event::Event;
pub use limits::Limits;
pub use refusal::Refusal;
