//! Where a key is, by its id and by the scope it was made with. Knows nothing of the store.

use std::collections::HashMap;

use muster_store::annex::KeyRecord;

/// Hashes by id and by the first scope.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_id: HashMap<String, [u8; 32]>,
    /// Only scopes that name something: a node, a worker, an enrolment. They come first.
    by_scope: HashMap<String, Vec<[u8; 32]>>,
}

impl Index {
    /// How many keys.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The key of an id.
    pub(super) fn of_id(&self, id: &str) -> Option<[u8; 32]> {
        self.by_id.get(id).copied()
    }

    /// The keys that were made with a scope.
    pub(super) fn of_scope(&self, word: &str) -> Vec<[u8; 32]> {
        self.by_scope.get(word).cloned().unwrap_or_default()
    }

    /// A key is there; it may have been before.
    pub(super) fn insert(&mut self, record: &KeyRecord) {
        self.by_id.insert(record.id.clone(), record.hash);
        if let Some(word) = named_scope(record) {
            let hashes = self.by_scope.entry(word.to_owned()).or_default();
            if !hashes.contains(&record.hash) {
                hashes.push(record.hash);
            }
        }
    }

    /// A key is gone.
    pub(super) fn remove(&mut self, record: &KeyRecord) {
        self.by_id.remove(&record.id);
        if let Some(word) = named_scope(record)
            && let Some(hashes) = self.by_scope.get_mut(word)
        {
            hashes.retain(|hash| *hash != record.hash);
            if hashes.is_empty() {
                self.by_scope.remove(word);
            }
        }
    }
}

fn named_scope(record: &KeyRecord) -> Option<&str> {
    let first = record.scopes.first()?;
    first.contains(':').then_some(first)
}
