//! The fleet's part of the contract: words for nodes and workers, what a worker is to be, and
//! the frames of a node's link, of a terminal and of its viewers. Knows no socket and decides nothing.

pub mod frame;
pub mod spec;
pub mod terminal;
pub mod viewer;
pub mod words;

pub use spec::{ExitReport, RestartMode, RestartPolicy, WorkerIo, WorkerSpec};
pub use words::{ExitHow, NodeKind, NodeState, NodeWish, WorkerState};
