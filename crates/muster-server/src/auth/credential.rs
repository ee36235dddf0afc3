//! What a request showed: a key, or a session that a key signed in. What is opened with it ends
//! with either, and is counted while it lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::identity::Identity;
use super::ring::{Key, NotTaken, Ring};
use crate::clock::Clock;

/// A key that is taken, and the session that stands for it.
#[derive(Debug, Clone)]
pub struct Credential {
    key: Arc<Key>,
    session: Option<Arc<Key>>,
}

/// Something that is open with a key: dropping it gives it back.
#[derive(Debug)]
pub struct Held(Arc<Key>);

impl Credential {
    /// A key by itself.
    pub fn of_key(key: Arc<Key>) -> Self {
        Self { key, session: None }
    }

    /// A session and the key that it stands for.
    pub(super) fn of_session(session: Arc<Key>, key: Arc<Key>) -> Self {
        Self {
            key,
            session: Some(session),
        }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The session, when it is one.
    pub fn session(&self) -> Option<&Key> {
        self.session.as_deref()
    }

    /// Who it stands for, and what it may.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.session.as_ref().unwrap_or(&self.key).identity
    }

    /// By which it is found again: the session's id, or the key's.
    pub fn id(&self) -> &str {
        &self.session.as_ref().unwrap_or(&self.key).record.id
    }

    /// Counts something as open until the value is dropped.
    pub fn hold(&self) -> Held {
        self.key.open().fetch_add(1, Ordering::Relaxed);
        Held(self.key.clone())
    }

    /// Waits until it is no longer taken.
    pub async fn until_over(&self, ring: &Ring, clock: &Clock) -> NotTaken {
        match &self.session {
            None => ring.until_over(&self.key, clock).await,
            Some(session) => tokio::select! {
                why = ring.until_over(&self.key, clock) => why,
                _ = ring.until_over(session, clock) => NotTaken::SignedOut,
            },
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.open().fetch_sub(1, Ordering::Relaxed);
    }
}

/// How much is open with a key.
pub(super) type Open = AtomicUsize;
