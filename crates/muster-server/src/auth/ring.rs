//! The keys in memory: looked up by the hash of their text on every request, changed through
//! the store. A lookup takes no lock and writes nothing but a minute. A change costs what it
//! changes: a fleet has a key for each of its workers.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use muster_store::annex::KeyRecord;
use muster_store::{Annex, StoreResult};
use muster_wire::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::credential::{Credential, Open};
use super::identity::Identity;
use super::index::Index;
use super::scope::{Grants, Scope};
use super::{session, text};
use crate::clock::Clock;

const MINUTE_US: i64 = 60_000_000;
/// So many parts has the table, by the first byte of the hash: a change copies one of them.
const PARTS: usize = 256;

/// One key in memory.
#[derive(Debug)]
pub struct Key {
    /// Its record, as stored.
    pub record: KeyRecord,
    /// Who it stands for.
    pub identity: Arc<Identity>,
    /// Of a session: the hash of the key that it stands for.
    stands_for: Option<[u8; 32]>,
    used: Arc<Used>,
}

#[derive(Debug, Default)]
struct Used {
    minute: AtomicI64,
    written: AtomicI64,
    /// The minute of which `by` tells.
    noted: AtomicI64,
    /// From where, the last time, as far as this process saw it.
    by: ArcSwapOption<String>,
    /// Streams, sockets and links that are open with it.
    open: Open,
    /// Its record changed, or is gone: for whoever has something open with it.
    changed: Notify,
}

/// The keys whose hash begins with one byte.
type Part = HashMap<[u8; 32], Arc<Key>>;

/// Why a text was not taken as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// Not one of ours, or its checksum is wrong.
    Malformed,
    /// Well formed, and not known.
    Unknown,
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
    /// A session that is over.
    SignedOut,
}

impl NotTaken {
    /// What the caller is told. Whether a key was ever known is nobody's business.
    pub fn message(self) -> &'static str {
        match self {
            NotTaken::Malformed => {
                "the key is mistyped: it does not have the form of a key of this plane"
            }
            NotTaken::Unknown | NotTaken::Revoked => {
                "the key is not known here, or was revoked; ask whoever runs this plane for another"
            }
            NotTaken::Expired => "the key has expired; ask whoever runs this plane for another",
            NotTaken::SignedOut => "the session is over; sign in again",
        }
    }

    /// Why what was opened with the key ended.
    pub fn ended(self) -> &'static str {
        match self {
            NotTaken::Expired => "its key has expired",
            NotTaken::SignedOut => "its session is over",
            NotTaken::Malformed | NotTaken::Unknown | NotTaken::Revoked => {
                "its key was revoked, or another took its place"
            }
        }
    }
}

/// All keys.
#[derive(Debug)]
pub struct Ring {
    parts: Box<[ArcSwap<Part>]>,
    index: Mutex<Index>,
    /// Keys from the configuration, which no store holds.
    fixed: Vec<KeyRecord>,
    /// The store's version of the keys that are here.
    version: AtomicU64,
    /// Held over a change of the store and of the table together.
    changes: Mutex<()>,
}

impl Ring {
    /// Reads every key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(annex: &dyn Annex, fixed: Vec<KeyRecord>) -> StoreResult<Self> {
        let ring = Self {
            parts: (0..PARTS).map(|_| ArcSwap::default()).collect(),
            index: Mutex::default(),
            fixed,
            version: AtomicU64::new(0),
            changes: Mutex::default(),
        };
        ring.reload(annex)?;
        Ok(ring)
    }

    /// Finds the key of a text.
    ///
    /// # Errors
    /// Says why there is none that is taken.
    pub fn find(&self, text: &str, now: Timestamp) -> Result<Arc<Key>, NotTaken> {
        let hash = text::hash(text);
        let part = self.part(&hash).load();
        let Some(key) = part.get(&hash) else {
            return Err(if text::is_well_formed(text) {
                NotTaken::Unknown
            } else {
                NotTaken::Malformed
            });
        };
        if session::is_session(&key.record) {
            // It belongs into a cookie, where the rules of a browser guard it.
            return Err(NotTaken::Malformed);
        }
        key.is_good(now)?;
        key.used.touch(now);
        Ok(key.clone())
    }

    /// Finds the session of a text, and the key that it stands for.
    ///
    /// # Errors
    /// Says why there is none that is taken.
    pub fn find_session(&self, text: &str, now: Timestamp) -> Result<Credential, NotTaken> {
        let hash = text::hash(text);
        let found = self.part(&hash).load().get(&hash).cloned();
        let found = found.filter(|key| session::is_session(&key.record));
        let credential = self.whole(found.ok_or(NotTaken::Unknown)?, now)?;
        credential.key().used.touch(now);
        if let Some(session) = credential.session() {
            session.used.touch(now);
        }
        Ok(credential)
    }

    /// What an id stands for, while it is taken: a key, or a session with its key.
    ///
    /// # Errors
    /// Says why there is none that is.
    pub fn credential(&self, id: &str, now: Timestamp) -> Result<Credential, NotTaken> {
        let hash = self.index.lock().of_id(id).ok_or(NotTaken::Unknown)?;
        let found = self.part(&hash).load().get(&hash).cloned();
        self.whole(found.ok_or(NotTaken::Unknown)?, now)
    }

    fn whole(&self, found: Arc<Key>, now: Timestamp) -> Result<Credential, NotTaken> {
        found.is_good(now)?;
        if !session::is_session(&found.record) {
            return Ok(Credential::of_key(found));
        }
        let key = found.stands_for.ok_or(NotTaken::Unknown)?;
        let key = self.good_by_hash(&key, now)?;
        Ok(Credential::of_session(found, key))
    }

    /// The key of an id, while it is taken.
    ///
    /// # Errors
    /// Says why there is none that is.
    pub fn good(&self, id: &str, now: Timestamp) -> Result<Arc<Key>, NotTaken> {
        let hash = self.index.lock().of_id(id).ok_or(NotTaken::Unknown)?;
        self.good_by_hash(&hash, now)
    }

    /// The key whose text has this hash, while it is taken.
    ///
    /// # Errors
    /// Says why there is none that is.
    pub fn good_of_hash(&self, hash: &[u8; 32], now: Timestamp) -> Result<Arc<Key>, NotTaken> {
        self.good_by_hash(hash, now)
    }

    /// From where a key was used the last time that this process saw, and how much is open with
    /// it.
    pub fn doings(&self, id: &str) -> (Option<Arc<String>>, usize) {
        let Some(hash) = self.index.lock().of_id(id) else {
            return (None, 0);
        };
        let part = self.part(&hash).load();
        part.get(&hash).map_or((None, 0), |key| {
            (
                key.used.by.load_full(),
                key.used.open.load(Ordering::Relaxed),
            )
        })
    }

    /// Waits until a key is no longer taken: what was opened with it ends with it.
    pub async fn until_over(&self, key: &Key, clock: &Clock) -> NotTaken {
        loop {
            let mut changed = pin!(key.used.changed.notified());
            // Before the look: what changes after it is heard.
            changed.as_mut().enable();
            let now = clock.now();
            let expires = match self.good_by_hash(&key.record.hash, now) {
                Ok(key) => key.over_at(),
                Err(why) => return why,
            };
            match expires {
                None => changed.await,
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(clock.instant(at).into()) => {}
                },
            }
        }
    }

    fn good_by_hash(&self, hash: &[u8; 32], now: Timestamp) -> Result<Arc<Key>, NotTaken> {
        let part = self.part(hash).load();
        let key = part.get(hash).ok_or(NotTaken::Unknown)?;
        key.is_good(now)?;
        Ok(key.clone())
    }

    /// Every key, newest first, with its last use as far as it is known here.
    pub fn list(&self) -> Vec<KeyRecord> {
        let mut records: Vec<KeyRecord> = self.keys().iter().map(|key| key.as_of_now()).collect();
        records.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        records
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One key's record.
    pub fn get(&self, id: &str) -> Option<KeyRecord> {
        let hash = self.index.lock().of_id(id)?;
        let part = self.part(&hash).load();
        part.get(&hash).map(|key| key.as_of_now())
    }

    /// The records that a question is about, in no order.
    pub fn some(&self, wanted: impl Fn(&KeyRecord) -> bool) -> Vec<KeyRecord> {
        let keys = self.keys();
        let found = keys.iter().filter(|key| wanted(&key.record));
        found.map(|key| key.as_of_now()).collect()
    }

    /// The records of the keys that were made with this scope.
    pub fn with_scope(&self, scope: &Scope) -> Vec<KeyRecord> {
        let hashes = self.index.lock().of_scope(&scope.word());
        hashes
            .iter()
            .filter_map(|hash| Some(self.part(hash).load().get(hash)?.as_of_now()))
            .collect()
    }

    /// Whether a key comes from the configuration: it cannot be changed here.
    pub fn is_fixed(&self, id: &str) -> bool {
        self.fixed.iter().any(|record| record.id == id)
    }

    /// Reads the keys again, if they changed. What was used and not yet written is kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn refresh(&self, annex: &dyn Annex) -> StoreResult<()> {
        let _changes = self.changes.lock();
        if annex.keys_version()? == self.version.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.reload(annex)
    }

    /// Writes a new key and takes it from now on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn add(&self, annex: &dyn Annex, record: &KeyRecord) -> StoreResult<()> {
        let _changes = self.changes.lock();
        self.put(annex, record)
    }

    /// Takes a key that is good once, if nobody has; from then on it is revoked.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn take(&self, annex: &dyn Annex, id: &str, now: Timestamp) -> StoreResult<bool> {
        let _changes = self.changes.lock();
        let taken = self.writing(annex, || annex.key_take(id, now))?;
        if let Some(mut record) = self.get(id)
            && record.revoked_at.is_none()
        {
            record.revoked_at = Some(now);
            self.show(record);
        }
        Ok(taken)
    }

    /// Removes a key altogether; `false` when there is none of that id.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn remove(&self, annex: &dyn Annex, id: &str) -> StoreResult<bool> {
        let _changes = self.changes.lock();
        let gone = self.writing(annex, || annex.key_delete(id))?;
        let mut index = self.index.lock();
        let Some(hash) = index.of_id(id) else {
            return Ok(gone);
        };
        let part = self.part(&hash);
        let mut fresh = Part::clone(&part.load());
        let removed = fresh.remove(&hash);
        if let Some(key) = &removed {
            index.remove(&key.record);
        }
        part.store(Arc::new(fresh));
        if let Some(key) = removed {
            key.used.changed.notify_waiters();
        }
        Ok(gone)
    }

    /// Changes a key's record; `None` when there is none of that id. The change may refuse.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn change<R>(
        &self,
        annex: &dyn Annex,
        id: &str,
        change: impl FnOnce(&mut KeyRecord) -> R,
    ) -> StoreResult<Option<(R, KeyRecord)>> {
        let _changes = self.changes.lock();
        let Some(mut record) = self.get(id) else {
            return Ok(None);
        };
        let before = record.clone();
        let said = change(&mut record);
        if record != before {
            self.put(annex, &record)?;
        }
        Ok(Some((said, record)))
    }

    /// Writes the minutes of last use that the store does not have yet; how many.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn write_used(&self, annex: &dyn Annex) -> StoreResult<usize> {
        let _changes = self.changes.lock();
        let mut written = 0;
        for key in self.keys() {
            let minute = key.used.minute.load(Ordering::Relaxed);
            // A worker's last sign of life is kept with the worker.
            let is_worker = key.identity.worker.is_some();
            if minute <= key.used.written.load(Ordering::Relaxed)
                || is_worker
                || self.is_fixed(&key.record.id)
            {
                continue;
            }
            self.writing(annex, || annex.key_put(&key.as_of_now()))?;
            key.used.written.store(minute, Ordering::Relaxed);
            written += 1;
        }
        Ok(written)
    }

    fn part(&self, hash: &[u8; 32]) -> &ArcSwap<Part> {
        &self.parts[usize::from(hash[0])]
    }

    fn keys(&self) -> Vec<Arc<Key>> {
        let parts = self.parts.iter().map(ArcSwap::load);
        parts
            .flat_map(|part| part.values().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// Writes a record and shows it here. The caller holds `changes`.
    fn put(&self, annex: &dyn Annex, record: &KeyRecord) -> StoreResult<()> {
        self.writing(annex, || annex.key_put(record))?;
        self.show(record.clone());
        Ok(())
    }

    /// One write of a key that is shown here, too: if nobody else wrote one meanwhile, there is
    /// nothing to read again.
    fn writing<T>(
        &self,
        annex: &dyn Annex,
        write: impl FnOnce() -> StoreResult<T>,
    ) -> StoreResult<T> {
        let before = annex.keys_version()?;
        let said = write()?;
        if annex.keys_version()? == before + 1 {
            // Fails when the keys here are older than that: then they are read again.
            let _ = self.version.compare_exchange(
                before,
                before + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        Ok(said)
    }

    fn show(&self, record: KeyRecord) {
        let part = self.part(&record.hash);
        let mut fresh = Part::clone(&part.load());
        let used = match fresh.get(&record.hash) {
            Some(key) => key.used.clone(),
            None => Arc::new(Used::starting_at(record.used_at)),
        };
        self.index.lock().insert(&record);
        fresh.insert(record.hash, Arc::new(Key::new(record, used.clone())));
        part.store(Arc::new(fresh));
        used.changed.notify_waiters();
    }

    /// Reads everything. The caller holds `changes`, or is the only one.
    fn reload(&self, annex: &dyn Annex) -> StoreResult<()> {
        // Before the read: what changes during it is read again the next time.
        let version = annex.keys_version()?;
        let mut parts: Vec<Part> = (0..PARTS).map(|_| Part::new()).collect();
        let mut index = Index::default();
        for record in annex.keys()?.into_iter().chain(self.fixed.iter().cloned()) {
            let used = match self.part(&record.hash).load().get(&record.hash) {
                Some(key) => key.used.clone(),
                None => Arc::new(Used::starting_at(record.used_at)),
            };
            index.insert(&record);
            let part = &mut parts[usize::from(record.hash[0])];
            part.insert(record.hash, Arc::new(Key::new(record, used)));
        }
        for (at, part) in self.parts.iter().zip(parts) {
            let before = at.swap(Arc::new(part));
            // Whoever has something open with one of them looks again.
            for key in before.values() {
                key.used.changed.notify_waiters();
            }
        }
        *self.index.lock() = index;
        self.version.store(version, Ordering::Relaxed);
        Ok(())
    }
}

impl Used {
    fn starting_at(at: Option<Timestamp>) -> Self {
        let at = at.map_or(0, |at| at.0);
        Self {
            minute: AtomicI64::new(at),
            written: AtomicI64::new(at),
            noted: AtomicI64::new(0),
            by: ArcSwapOption::empty(),
            open: Open::new(0),
            changed: Notify::new(),
        }
    }

    fn touch(&self, now: Timestamp) {
        let minute = now.0 - now.0.rem_euclid(MINUTE_US);
        if self.minute.load(Ordering::Relaxed) < minute {
            self.minute.store(minute, Ordering::Relaxed);
        }
    }
}

impl Key {
    fn new(record: KeyRecord, used: Arc<Used>) -> Self {
        // A scope that this build does not know grants nothing; the others still count.
        let scopes: Vec<Scope> = record
            .scopes
            .iter()
            .filter_map(|w| Scope::parse(w).ok())
            .collect();
        let short = text::hex(&record.hash[..16]);
        let grants = Grants::of(&scopes);
        let identity = Identity {
            principal: record.principal.as_str().into(),
            key_id: Some(record.id.as_str().into()),
            key_hash: Some(short.into()),
            key_agent: grants.bound_agent().cloned(),
            worker: grants.worker().cloned(),
            node: grants.node().cloned(),
            grants,
        };
        let mut key = Self {
            record,
            identity: Arc::new(identity),
            stands_for: None,
            used,
        };
        if session::is_session(&key.record) {
            key.take_place();
        }
        key
    }

    /// A session is seen as its key; one that names none may do nothing.
    fn take_place(&mut self) {
        let Some((id, hash)) = session::stands_for(&self.record) else {
            self.identity = Identity::nobody();
            return;
        };
        let who = &self.identity;
        let identity = Identity {
            principal: who.principal.clone(),
            key_id: Some(id.into()),
            key_hash: Some(text::hex(&hash[..16]).into()),
            key_agent: who.key_agent.clone(),
            worker: None,
            node: None,
            grants: who.grants.clone(),
        };
        self.stands_for = Some(hash);
        self.identity = Arc::new(identity);
    }

    /// How much is open with it.
    pub(super) fn open(&self) -> &Open {
        &self.used.open
    }

    /// Notes from where it is used, once a minute.
    pub fn note_use(&self, by: impl FnOnce() -> String) {
        let minute = self.used.minute.load(Ordering::Relaxed);
        if self.used.noted.load(Ordering::Relaxed) != minute {
            self.used.noted.store(minute, Ordering::Relaxed);
            self.used.by.store(Some(Arc::new(by())));
        }
    }

    /// When it ends by itself, as things are.
    pub(crate) fn over_at(&self) -> Option<Timestamp> {
        if !session::is_session(&self.record) {
            return self.record.expires_at;
        }
        let used = Timestamp(self.used.minute.load(Ordering::Relaxed));
        let idle = used.max(self.record.created_at) + session::IDLE;
        Some(self.record.expires_at.map_or(idle, |at| at.min(idle)))
    }

    fn is_good(&self, now: Timestamp) -> Result<(), NotTaken> {
        if self.record.revoked_at.is_some() {
            return Err(NotTaken::Revoked);
        }
        if self.over_at().is_some_and(|at| at <= now) {
            return Err(NotTaken::Expired);
        }
        Ok(())
    }

    fn as_of_now(&self) -> KeyRecord {
        let mut record = self.record.clone();
        let minute = self.used.minute.load(Ordering::Relaxed);
        if minute > record.used_at.map_or(0, |at| at.0) {
            record.used_at = Some(Timestamp(minute));
        }
        // Minutes are cut, and a key is not used before there is one.
        record.used_at = record.used_at.map(|at| at.max(record.created_at));
        record
    }
}
