//! Sessions: what a browser has in place of a key. A session is a record beside the keys, stored
//! by the hash of its text, which stands for one key and ends with it, by itself, or by not being
//! used. Everything that writes here blocks.

use std::time::Duration;

use muster_store::annex::KeyRecord;
use muster_store::{Annex, StoreResult};
use muster_wire::Timestamp;

use super::credential::Credential;
use super::text::{self, Form};
use super::{Auth, Grants, Key, KeyText, Need, Scope, mint_as, new_record};

/// How long a session is taken at most.
pub const LIFE: Duration = Duration::from_secs(7 * 86_400);
/// How long one is taken that is not used.
pub const IDLE: Duration = Duration::from_secs(12 * 3_600);
/// Sessions of one key; beyond them the oldest ends.
const OF_ONE_KEY_MAX: usize = 32;

impl Auth {
    /// The name of the cookie. Cookies know no ports, so that of another plane on the same
    /// machine has another name.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Whether a key is a person's: those of nodes, workers and brokers sign in nowhere.
    pub fn signs_in(key: &Key) -> bool {
        let who = &key.identity;
        who.worker.is_none()
            && who.node.is_none()
            && who.grants.relay_agent().is_none()
            && (who.grants.satisfy(Need::Results) || who.grants.satisfy(Need::Operate))
    }

    /// Starts a session with these of a key's scopes.
    ///
    /// # Errors
    /// When the store cannot be written, or the operating system has no randomness.
    pub fn sign_in(
        &self,
        annex: &dyn Annex,
        key: &Key,
        scopes: &[String],
        now: Timestamp,
    ) -> StoreResult<(KeyText, KeyRecord)> {
        let of = Scope::Session(key.record.id.as_str().into());
        let mut others = self.ring.with_scope(&of);
        others.sort_by_key(|record| record.created_at);
        let beyond = (others.len() + 1).saturating_sub(OF_ONE_KEY_MAX);
        for old in &others[..beyond.min(others.len())] {
            self.ring.remove(annex, &old.id)?;
        }
        let text = mint_as(Form::Session)?;
        let words = std::iter::once(of.word()).chain(scopes.iter().cloned());
        let name = format!("session of {}", key.record.name);
        let until = key
            .record
            .expires_at
            .map_or(now + LIFE, |at| at.min(now + LIFE));
        let mut record = new_record(
            &text,
            &name,
            words.collect(),
            &key.record.principal,
            now,
            Some(until),
        );
        record.id = muster_wire::mint("ses");
        record.detail = Some(text::hex(&key.record.hash));
        self.ring.add(annex, &record)?;
        Ok((text, record))
    }

    /// Ends a session; `false` when there is none of that id.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn sign_out(&self, annex: &dyn Annex, id: &str) -> StoreResult<bool> {
        self.ring.remove(annex, id)
    }

    /// Ends the sessions of a key; how many there were.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_sessions(&self, annex: &dyn Annex, key: &str) -> StoreResult<usize> {
        let sessions = self.ring.with_scope(&Scope::Session(key.into()));
        for session in &sessions {
            self.ring.remove(annex, &session.id)?;
        }
        Ok(sessions.len())
    }

    /// How many sessions of a key are taken.
    pub fn sessions_of(&self, key: &str, now: Timestamp) -> usize {
        let sessions = self.ring.with_scope(&Scope::Session(key.into()));
        let good = |record: &&KeyRecord| self.ring.credential(&record.id, now).is_ok();
        sessions.iter().filter(good).count()
    }

    /// Removes the sessions that are over; how many there were.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn sweep_sessions(&self, annex: &dyn Annex, now: Timestamp) -> StoreResult<usize> {
        let mut gone = 0;
        for record in self.ring.some(is_session) {
            if self.ring.credential(&record.id, now).is_err() {
                gone += usize::from(self.ring.remove(annex, &record.id)?);
            }
        }
        Ok(gone)
    }

    /// The scopes of a key that a code or a session may have: those that were asked for, or all.
    /// `None` when it has not all of them.
    pub fn part_of(credential: &Credential, wanted: Option<&[Scope]>) -> Option<Vec<String>> {
        let words = || {
            let all = &credential
                .session()
                .unwrap_or(credential.key())
                .record
                .scopes;
            let all = all.iter().filter(|word| !is_session_word(word));
            all.cloned().collect::<Vec<_>>()
        };
        let Some(wanted) = wanted else {
            return Some(words());
        };
        let grants = &credential.identity().grants;
        let own = words();
        let has = |scope: &Scope| own.contains(&scope.word()) || is_within(scope, grants);
        wanted
            .iter()
            .all(has)
            .then(|| wanted.iter().map(Scope::word).collect())
    }
}

/// Whether whoever has these grants has what a scope grants.
fn is_within(scope: &Scope, grants: &Grants) -> bool {
    match scope {
        Scope::Admin => grants.satisfy(Need::Admin),
        Scope::Operate => grants.satisfy(Need::Operate),
        Scope::Read => grants.satisfy(Need::Read),
        Scope::Call => grants.satisfy(Need::Call),
        Scope::Agent => grants.satisfy(Need::Admin),
        Scope::AgentOnly(id) => grants.satisfy(Need::Agent) && grants.act_as(id.as_str()),
        Scope::Worker(_)
        | Scope::Node(_)
        | Scope::Enroll(_)
        | Scope::Relay
        | Scope::RelayAgent(_)
        | Scope::Session(_) => false,
    }
}

/// Whether a record is a session's.
pub(super) fn is_session(record: &KeyRecord) -> bool {
    record
        .scopes
        .first()
        .is_some_and(|word| is_session_word(word))
}

fn is_session_word(word: &str) -> bool {
    word.starts_with("session:")
}

/// Which key a session stands for: its id and the hash of its text.
pub(super) fn stands_for(record: &KeyRecord) -> Option<(&str, [u8; 32])> {
    let id = record.scopes.first()?.strip_prefix("session:")?;
    Some((id, text::unhex(record.detail.as_deref()?)?))
}

#[cfg(test)]
mod tests {
    use muster_store::MemoryStore;

    use super::*;
    use crate::auth::NotTaken;

    const NOW: Timestamp = Timestamp(60_000_000);

    fn signed_in(store: &MemoryStore) -> (Auth, KeyText, KeyRecord, KeyText, KeyRecord) {
        let auth = Auth::for_tests(store);
        let scopes = [Scope::Read, Scope::Operate];
        let (key, record) = auth
            .create(store, "ada", &scopes, "ada", None, NOW)
            .unwrap();
        let found = auth.ring.find(key.expose(), NOW).unwrap();
        let (text, session) = auth.sign_in(store, &found, &record.scopes, NOW).unwrap();
        (auth, key, record, text, session)
    }

    #[test]
    fn a_session_stands_for_its_key_and_is_no_key() {
        let store = MemoryStore::new();
        let (auth, _, record, text, session) = signed_in(&store);
        let shown = auth.ring.find_session(text.expose(), NOW).unwrap();
        assert_eq!(shown.identity().key_id.as_deref(), Some(record.id.as_str()));
        assert_eq!(&*shown.identity().principal, "ada");
        assert!(shown.identity().grants.satisfy(Need::Operate));
        assert!(!shown.identity().grants.satisfy(Need::Admin));
        assert_eq!(shown.id(), session.id);
        let as_key = auth.ring.find(text.expose(), NOW);
        assert_eq!(as_key.unwrap_err(), NotTaken::Malformed);
        // What is here is what a start would read.
        let again = Auth::for_tests(&store);
        assert!(again.ring.find_session(text.expose(), NOW).is_ok());
        assert!(!format!("{:?}", store.keys().unwrap()).contains(text.expose()));
    }

    #[test]
    fn a_key_is_no_session() {
        let store = MemoryStore::new();
        let (auth, key, ..) = signed_in(&store);
        assert!(auth.ring.find_session(key.expose(), NOW).is_err());
    }

    #[test]
    fn it_ends_with_its_key_by_itself_and_by_not_being_used() {
        let store = MemoryStore::new();
        let (auth, _, _, text, _) = signed_in(&store);
        let good = |at: Timestamp| auth.ring.find_session(text.expose(), at).is_ok();
        let mut at = NOW;
        // Used every eleven hours it lasts a week, and no longer.
        while at + Duration::from_secs(11 * 3600) < NOW + LIFE {
            at = at + Duration::from_secs(11 * 3600);
            assert!(good(at), "{at:?}");
        }
        assert!(!good(NOW + LIFE));

        let (auth, _, _, text, _) = signed_in(&store);
        let unused = NOW + IDLE + Duration::from_secs(61);
        assert!(auth.ring.find_session(text.expose(), unused).is_err());
        assert_eq!(auth.sweep_sessions(&store, NOW + LIFE).unwrap(), 2);

        let (auth, _, record, text, _) = signed_in(&store);
        auth.revoke(&store, &record.id, NOW).unwrap();
        assert!(auth.ring.find_session(text.expose(), NOW).is_err());
        assert_eq!(auth.sessions_of(&record.id, NOW), 0);
    }

    #[test]
    fn sessions_of_one_key_are_bounded_and_the_oldest_goes() {
        let store = MemoryStore::new();
        let (auth, key, record, first, _) = signed_in(&store);
        let found = auth.ring.find(key.expose(), NOW).unwrap();
        for n in 0..OF_ONE_KEY_MAX {
            let at = Timestamp(NOW.0 + 1 + i64::try_from(n).unwrap());
            auth.sign_in(&store, &found, &record.scopes, at).unwrap();
        }
        assert!(auth.ring.find_session(first.expose(), NOW).is_err());
        assert_eq!(auth.sessions_of(&record.id, NOW), OF_ONE_KEY_MAX);
        assert_eq!(
            auth.end_sessions(&store, &record.id).unwrap(),
            OF_ONE_KEY_MAX
        );
    }

    #[test]
    fn a_part_of_a_key_s_scopes_is_never_more_than_all() {
        let store = MemoryStore::new();
        let auth = Auth::for_tests(&store);
        let shown = |scopes: &[Scope]| {
            let (key, _) = auth.create(&store, "k", scopes, "p", None, NOW).unwrap();
            Credential::of_key(auth.ring.find(key.expose(), NOW).unwrap())
        };
        let admin = shown(&[Scope::Admin]);
        let part = |of: &Credential, scopes: &[Scope]| Auth::part_of(of, Some(scopes));
        assert_eq!(part(&admin, &[Scope::Read]), Some(vec!["read".into()]));
        assert_eq!(Auth::part_of(&admin, None), Some(vec!["admin".into()]));
        let reads = shown(&[Scope::Read]);
        assert_eq!(part(&reads, &[Scope::Read]), Some(vec!["read".into()]));
        for more in [
            Scope::Admin,
            Scope::Operate,
            Scope::Call,
            Scope::Agent,
            Scope::Relay,
        ] {
            assert_eq!(part(&reads, std::slice::from_ref(&more)), None, "{more:?}");
        }
    }
}
