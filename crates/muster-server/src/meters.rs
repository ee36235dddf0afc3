//! What is counted. Filled by its owner.

use muster_engine::effect::Count;

/// The counters and the text they are rendered to.
#[derive(Debug, Default)]
pub struct Meters;

impl Meters {
    /// Takes what the engine counted; called after the commit.
    pub fn count(&self, _count: &Count) {}
}
