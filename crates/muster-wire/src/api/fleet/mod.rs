//! The answers of `/api/v1/fleet`: nodes, workers, placements.

mod act;
mod node;
mod placement;
mod summary;
mod worker;

pub use act::*;
pub use node::*;
pub use placement::*;
pub use summary::*;
pub use worker::*;
