//! Which changes a reader wants: patterns over keys, a scope, a scope's id.

use muster_store::annex::MemoryEventFilter;
use muster_store::glob;

use super::frame::Change;

/// The most patterns one reader may name.
pub const PATTERNS_MAX: usize = 64;

/// What a reader of the live feed asked for; empty is everything.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Globs over keys.
    pub patterns: Vec<String>,
    /// Only this scope.
    pub scope: Option<String>,
    /// Only this scope id.
    pub scope_id: Option<String>,
}

impl EventFilter {
    /// Splits a comma-separated list of patterns; empty parts do not count.
    ///
    /// # Errors
    /// A sentence when there are too many or one is too long.
    pub fn patterns(text: &str) -> Result<Vec<String>, String> {
        let patterns: Vec<String> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        if patterns.len() > PATTERNS_MAX {
            return Err(format!("at most {PATTERNS_MAX} patterns"));
        }
        if patterns.iter().any(|p| p.len() > super::KEY_BYTES_MAX) {
            return Err(format!(
                "a pattern has at most {} bytes",
                super::KEY_BYTES_MAX
            ));
        }
        Ok(patterns)
    }

    /// Whether a change is wanted.
    pub fn wants(&self, change: &Change) -> bool {
        self.scope
            .as_deref()
            .is_none_or(|scope| *change.scope.scope == *scope)
            && self
                .scope_id
                .as_deref()
                .is_none_or(|id| *change.scope.id == *id)
            && glob::fits_any(&self.patterns, &change.key)
    }

    /// The same question to the store.
    pub fn for_store(&self, after: Option<u64>, limit: usize) -> MemoryEventFilter {
        MemoryEventFilter {
            patterns: self.patterns.clone(),
            scope: self.scope.clone(),
            scope_id: self.scope_id.clone(),
            since: None,
            after,
            limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_patterns_are_bounded() {
        assert_eq!(EventFilter::patterns("a*, ,b").unwrap(), ["a*", "b"]);
        assert!(EventFilter::patterns("").unwrap().is_empty());
        assert!(EventFilter::patterns(&"a,".repeat(65)).is_err());
        assert!(EventFilter::patterns(&"a".repeat(1025)).is_err());
    }
}
