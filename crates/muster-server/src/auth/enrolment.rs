//! Enrolment tokens: a name, fifteen minutes, one use. The node's id is chosen when the token is
//! made, so that whatever goes wrong in between, one token makes one node.

use std::sync::Arc;
use std::time::Duration;

use muster_store::annex::KeyRecord;
use muster_store::{Annex, StoreError, StoreResult};
use muster_wire::{NodeId, Timestamp};
use serde::{Deserialize, Serialize};

use super::ring::NotTaken;
use super::text::Form;
use super::{Auth, KeyText, Scope, mint_as, new_record};

/// How long a token is good.
pub const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How long one that is over is told from one that never was.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// What a token enrols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// Its id.
    pub id: String,
    /// The start of its token, for people.
    pub prefix: String,
    /// The node's name.
    pub name: Arc<str>,
    /// The node's id.
    pub node: NodeId,
    /// The node's labels; `None` is what it says itself.
    pub labels: Option<Vec<Arc<str>>>,
    /// How many workers it takes; `None` is what it says itself.
    pub max_workers: Option<u32>,
    /// Who made it: the node is theirs.
    pub principal: Arc<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// When it was used or revoked.
    pub over_at: Option<Timestamp>,
}

/// What is kept with the key.
#[derive(Debug, Serialize, Deserialize)]
struct Detail {
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<Arc<str>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_workers: Option<u32>,
}

/// What a new token is to enrol.
#[derive(Debug, Clone)]
pub struct NewEnrolment {
    /// The node's name; checked by the caller.
    pub name: Arc<str>,
    /// The node of that name, when there is one: it is enrolled again.
    pub node: Option<NodeId>,
    /// Its labels.
    pub labels: Option<Vec<Arc<str>>>,
    /// How many workers it takes.
    pub max_workers: Option<u32>,
}

impl Enrolment {
    fn of(record: &KeyRecord) -> Option<Self> {
        let word = record.scopes.first()?;
        let Ok(Scope::Enroll(name)) = Scope::parse(word) else {
            return None;
        };
        let detail: Detail = serde_json::from_str(record.detail.as_deref()?).ok()?;
        Some(Self {
            id: record.id.clone(),
            prefix: record.prefix.clone(),
            name,
            node: NodeId::parse(&detail.node).ok()?,
            labels: detail.labels,
            max_workers: detail.max_workers,
            principal: record.principal.as_str().into(),
            created_at: record.created_at,
            expires_at: record.expires_at?,
            over_at: record.revoked_at,
        })
    }

    /// Whether it can still be used.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.over_at.is_none() && self.expires_at > now
    }
}

fn is_enrolment(record: &KeyRecord) -> bool {
    let first = record.scopes.first();
    first.is_some_and(|word| word.starts_with("enroll:"))
}

impl Auth {
    /// Makes an enrolment token. Blocks.
    ///
    /// # Errors
    /// When the store cannot be written, or the operating system has no randomness.
    pub fn open_enrolment(
        &self,
        annex: &dyn Annex,
        wanted: NewEnrolment,
        principal: &str,
        now: Timestamp,
    ) -> StoreResult<(KeyText, Enrolment)> {
        self.forget_old_enrolments(annex, now)?;
        let key = mint_as(Form::Enrolment)?;
        let words = vec![Scope::Enroll(wanted.name.clone()).word()];
        let until = Some(now + LIFETIME);
        let mut record = new_record(&key, &wanted.name, words, principal, now, until);
        record.id = muster_wire::mint("enrol");
        let detail = Detail {
            node: match wanted.node {
                Some(node) => node.to_string(),
                None => muster_wire::mint("node"),
            },
            labels: wanted.labels,
            max_workers: wanted.max_workers,
        };
        let detail = serde_json::to_string(&detail);
        record.detail = Some(detail.map_err(|e| StoreError::Conflict(e.to_string()))?);
        self.ring.add(annex, &record)?;
        let made = Enrolment::of(&record);
        let made = made.ok_or_else(|| StoreError::Conflict("an enrolment lost its name".into()))?;
        Ok((key, made))
    }

    /// Every enrolment token that is remembered, newest first.
    pub fn enrolments(&self) -> Vec<Enrolment> {
        let records = self.ring.some(is_enrolment);
        let mut found: Vec<Enrolment> = records.iter().filter_map(Enrolment::of).collect();
        found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        found
    }

    /// One of them.
    pub fn enrolment(&self, id: &str) -> Option<Enrolment> {
        Enrolment::of(&self.ring.get(id)?)
    }

    /// What a token enrols, if it is still good.
    ///
    /// # Errors
    /// Says why it is not.
    pub fn find_enrolment(&self, text: &str, now: Timestamp) -> Result<Enrolment, NotTaken> {
        let key = self.ring.find(text, now)?;
        Enrolment::of(&key.record).ok_or(NotTaken::Unknown)
    }

    /// Uses a token up: of any number who try, one is told `true`. Blocks.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn use_enrolment(&self, annex: &dyn Annex, id: &str, now: Timestamp) -> StoreResult<bool> {
        self.ring.take(annex, id, now)
    }

    /// Gives a token back that was used up for nothing. Blocks.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn give_enrolment_back(&self, annex: &dyn Annex, id: &str) -> StoreResult<()> {
        let changed = self
            .ring
            .change(annex, id, |record| record.revoked_at = None)?;
        drop(changed);
        Ok(())
    }

    fn forget_old_enrolments(&self, annex: &dyn Annex, now: Timestamp) -> StoreResult<()> {
        let old = |record: &KeyRecord| {
            is_enrolment(record) && record.expires_at.is_some_and(|at| at + REMEMBERED < now)
        };
        for record in self.ring.some(old) {
            self.ring.remove(annex, &record.id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use muster_store::MemoryStore;

    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn auth(store: &MemoryStore) -> Auth {
        Auth::for_tests(store)
    }

    fn named(name: &str) -> NewEnrolment {
        NewEnrolment {
            name: name.into(),
            node: None,
            labels: Some(vec!["gpu".into()]),
            max_workers: None,
        }
    }

    #[test]
    fn a_token_is_good_for_fifteen_minutes_and_then_told_from_one_that_never_was() {
        let store = MemoryStore::new();
        let auth = auth(&store);
        let (key, made) = auth.open_enrolment(&store, named("a"), "ada", NOW).unwrap();
        assert_eq!(made.expires_at, NOW + LIFETIME);
        let last = Timestamp((NOW + LIFETIME).0 - 1);
        assert_eq!(auth.find_enrolment(key.expose(), last), Ok(made.clone()));
        let over = auth.find_enrolment(key.expose(), NOW + LIFETIME);
        assert_eq!(over, Err(NotTaken::Expired));
        // A day later the next one that is made forgets it.
        let later = NOW + LIFETIME + REMEMBERED + Duration::from_secs(1);
        auth.open_enrolment(&store, named("b"), "ada", later)
            .unwrap();
        let gone = auth.find_enrolment(key.expose(), later);
        assert_eq!(gone, Err(NotTaken::Unknown));
        assert_eq!(auth.enrolments().len(), 1);
        assert_eq!(store_keys(&store), 1);
    }

    #[test]
    fn a_token_that_is_given_back_is_good_again() {
        let store = MemoryStore::new();
        let auth = auth(&store);
        let (key, made) = auth.open_enrolment(&store, named("a"), "ada", NOW).unwrap();
        assert!(auth.use_enrolment(&store, &made.id, NOW).unwrap());
        assert!(!auth.use_enrolment(&store, &made.id, NOW).unwrap());
        let used = auth.find_enrolment(key.expose(), NOW);
        assert_eq!(used, Err(NotTaken::Revoked));
        auth.give_enrolment_back(&store, &made.id).unwrap();
        assert_eq!(auth.find_enrolment(key.expose(), NOW), Ok(made.clone()));
        assert!(auth.use_enrolment(&store, &made.id, NOW).unwrap());
    }

    fn store_keys(store: &MemoryStore) -> usize {
        store.keys().unwrap().len()
    }
}
