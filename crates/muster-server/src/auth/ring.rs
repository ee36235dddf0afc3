//! The keys in memory: looked up by the hash of their text on every request, changed through
//! the store. A lookup takes no lock and writes nothing but a minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use muster_store::annex::KeyRecord;
use muster_store::{Annex, StoreResult};
use muster_wire::Timestamp;
use parking_lot::Mutex;

use super::identity::Identity;
use super::scope::{Grants, Scope};
use super::text;

const MINUTE_US: i64 = 60_000_000;

/// One key in memory.
#[derive(Debug)]
pub struct Key {
    /// Its record, as stored.
    pub record: KeyRecord,
    /// Who it stands for.
    pub identity: Arc<Identity>,
    used: Arc<Used>,
}

#[derive(Debug, Default)]
struct Used {
    minute: AtomicI64,
    written: AtomicI64,
}

#[derive(Debug, Default)]
struct Table {
    by_hash: HashMap<[u8; 32], Arc<Key>>,
}

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
        }
    }
}

/// All keys.
#[derive(Debug, Default)]
pub struct Ring {
    table: ArcSwap<Table>,
    /// Keys from the configuration, which no store holds.
    fixed: Vec<KeyRecord>,
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
            fixed,
            ..Self::default()
        };
        ring.refresh(annex)?;
        Ok(ring)
    }

    /// Finds the key of a text.
    ///
    /// # Errors
    /// Says why there is none that is taken.
    pub fn find(&self, text: &str, now: Timestamp) -> Result<Arc<Key>, NotTaken> {
        let table = self.table.load();
        let Some(key) = table.by_hash.get(&text::hash(text)) else {
            return Err(if text::is_well_formed(text) {
                NotTaken::Unknown
            } else {
                NotTaken::Malformed
            });
        };
        if key.record.revoked_at.is_some() {
            return Err(NotTaken::Revoked);
        }
        if key.record.expires_at.is_some_and(|at| at <= now) {
            return Err(NotTaken::Expired);
        }
        let minute = now.0 - now.0.rem_euclid(MINUTE_US);
        if key.used.minute.load(Ordering::Relaxed) < minute {
            key.used.minute.store(minute, Ordering::Relaxed);
        }
        Ok(key.clone())
    }

    /// Every key, newest first, with its last use as far as it is known here.
    pub fn list(&self) -> Vec<KeyRecord> {
        let mut records: Vec<KeyRecord> = self
            .table
            .load()
            .by_hash
            .values()
            .map(|key| key.as_of_now())
            .collect();
        records.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        records
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.table.load().by_hash.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One key's record.
    pub fn get(&self, id: &str) -> Option<KeyRecord> {
        let table = self.table.load();
        table
            .by_hash
            .values()
            .find(|key| key.record.id == id)
            .map(|key| key.as_of_now())
    }

    /// Whether a key comes from the configuration: it cannot be changed here.
    pub fn is_fixed(&self, id: &str) -> bool {
        self.fixed.iter().any(|record| record.id == id)
    }

    /// Reads the keys again. What was used and not yet written is kept.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn refresh(&self, annex: &dyn Annex) -> StoreResult<()> {
        let _changes = self.changes.lock();
        self.reload(annex)
    }

    /// Writes a new key and takes it from now on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn add(&self, annex: &dyn Annex, record: &KeyRecord) -> StoreResult<()> {
        let _changes = self.changes.lock();
        annex.key_put(record)?;
        self.reload(annex)
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
            annex.key_put(&record)?;
            self.reload(annex)?;
        }
        Ok(Some((said, record)))
    }

    /// Writes the minutes of last use that the store does not have yet; how many.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn write_used(&self, annex: &dyn Annex) -> StoreResult<usize> {
        let _changes = self.changes.lock();
        let table = self.table.load_full();
        let mut written = 0;
        for key in table.by_hash.values() {
            let minute = key.used.minute.load(Ordering::Relaxed);
            if minute <= key.used.written.load(Ordering::Relaxed) || self.is_fixed(&key.record.id) {
                continue;
            }
            annex.key_put(&key.as_of_now())?;
            key.used.written.store(minute, Ordering::Relaxed);
            written += 1;
        }
        Ok(written)
    }

    fn reload(&self, annex: &dyn Annex) -> StoreResult<()> {
        let old = self.table.load_full();
        let mut by_hash = HashMap::new();
        for record in annex.keys()?.into_iter().chain(self.fixed.iter().cloned()) {
            let used = match old.by_hash.get(&record.hash) {
                Some(key) => key.used.clone(),
                None => Arc::new(Used::starting_at(record.used_at)),
            };
            by_hash.insert(record.hash, Arc::new(Key::new(record, used)));
        }
        self.table.store(Arc::new(Table { by_hash }));
        Ok(())
    }
}

impl Used {
    fn starting_at(at: Option<Timestamp>) -> Self {
        let at = at.map_or(0, |at| at.0);
        Self {
            minute: AtomicI64::new(at),
            written: AtomicI64::new(at),
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
        let short: String = record.hash[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let grants = Grants::of(&scopes);
        let identity = Identity {
            principal: record.principal.as_str().into(),
            key_id: Some(record.id.as_str().into()),
            key_hash: Some(short.into()),
            key_agent: grants.bound_agent().cloned(),
            worker: grants.worker().cloned(),
            grants,
        };
        Self {
            record,
            identity: Arc::new(identity),
            used,
        }
    }

    fn as_of_now(&self) -> KeyRecord {
        let mut record = self.record.clone();
        let minute = self.used.minute.load(Ordering::Relaxed);
        if minute > record.used_at.map_or(0, |at| at.0) {
            record.used_at = Some(Timestamp(minute));
        }
        record
    }
}
