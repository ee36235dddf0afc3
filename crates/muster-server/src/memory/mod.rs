//! Agents' memory as the shell sees it: which scope a request means, and the live end of the
//! change feed. Keeps no values: they are in the store.

pub mod feed;
pub mod frame;
pub mod pattern;
pub mod scope;

use std::sync::Arc;

use muster_store::{Annex, StoreResult};

pub use feed::{ChangeFeed, Next, Reader};
pub use frame::Change;
pub use pattern::EventFilter;
pub use scope::{ScopeError, ScopeIds, ScopeWord};

use bytes::Bytes;
use muster_store::annex::{MemoryBy, MemoryEvent, MemoryRow, MemoryScope};
use muster_wire::Timestamp;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;

/// The live end of the memory change feed, and the writes that feed it.
#[derive(Debug, Clone, Default)]
pub struct MemoryState {
    feed: Arc<ChangeFeed>,
}

impl MemoryState {
    /// Sets a value and tells the feed. Blocks.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn set(
        &self,
        annex: &dyn Annex,
        scope: &MemoryScope,
        key: &str,
        data: Bytes,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<MemoryRow> {
        self.feed.prime(annex)?;
        let (row, event) = annex.memory_set(scope, key, data, by, at)?;
        self.feed.publish(event);
        Ok(row)
    }

    /// Deletes a value and tells the feed when there was one. Blocks.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn delete(
        &self,
        annex: &dyn Annex,
        scope: &MemoryScope,
        key: &str,
        by: &MemoryBy,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.feed.prime(annex)?;
        let event: Option<MemoryEvent> = annex.memory_delete(scope, key, by, at)?;
        let there_was = event.is_some();
        if let Some(event) = event {
            self.feed.publish(event);
        }
        Ok(there_was)
    }

    /// Reads changes from now on, or from behind a number. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn reader(
        &self,
        annex: &dyn Annex,
        after: Option<u64>,
        filter: EventFilter,
    ) -> StoreResult<Reader> {
        self.feed.prime(annex)?;
        Ok(self.feed.reader(after, filter))
    }
}
