//! Agents' memory: the change feed and its readers. Filled by its owner.

/// The live end of the memory change feed.
#[derive(Debug, Default)]
pub struct MemoryState;
