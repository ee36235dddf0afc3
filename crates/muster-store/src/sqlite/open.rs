//! Opening a data directory: the lock against a second process, the format, the migrations,
//! and whether this is the place where the store was made.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use muster_wire::Timestamp;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use super::commit::Decisions;
use super::connection::{Readers, Tuning, failed, writer};
use super::upkeep::{self, Upkeep};
use super::writer::Writer;
use super::{Options, SqliteStore, schema, usage};
use crate::{StoreAbout, StoreError, StoreResult};

/// The first release of SQLite without the WAL-reset bug, as it numbers itself.
const SQLITE_MIN: i32 = 3_051_003;

pub(super) const DECISIONS_FILE: &str = "decisions.db";
pub(super) const PAYLOADS_FILE: &str = "payloads.db";
pub(super) const LOGS_FILE: &str = "logs.db";

const DECISIONS: Tuning = Tuning {
    page_size: 4096,
    cache_kib: 12 << 10,
    checkpoint_pages: 2000,
};
const PAYLOADS: Tuning = Tuning {
    page_size: 16_384,
    cache_kib: 8 << 10,
    checkpoint_pages: 1000,
};
const LOGS: Tuning = Tuning {
    page_size: 8192,
    cache_kib: 8 << 10,
    checkpoint_pages: 1000,
};

/// Opens or makes the store in `dir`.
pub(super) fn open(dir: &Path, options: &Options) -> StoreResult<SqliteStore> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(StoreError::OldSqlite(rusqlite::version().to_owned()));
    }
    make_private_dir(dir)?;
    let lock = lock(dir)?;

    let path = dir.join(DECISIONS_FILE);
    make_private_file(&path)?;
    let mut conn = writer(&path, options.durability, DECISIONS)?;
    migrate(&conn, schema::DECISIONS)?;
    usage::catch_up(&conn)?;
    conn.execute_batch(&schema::views())
        .map_err(failed("make the views"))?;
    let mut place = Place::of(&conn, &path)?;
    let seen = Seen::of(lock, &place.mark);
    if place.suspicious.is_none() {
        place.suspicious = seen.missing(super::known::last_seq(&conn)?);
    }
    seen.doubt(place.suspicious.is_some());
    let decision_readers = Readers::open(&path, options.readers.max(1))?;
    let pages = upkeep::take_over(&mut conn)?;
    let decisions = Arc::new(Mutex::new(Decisions::new(conn)?));
    let beside = writer(&path, options.durability, DECISIONS)?;
    let upkeep = Upkeep::start(beside, decisions.clone(), pages, seen)?;

    let path = dir.join(PAYLOADS_FILE);
    make_private_file(&path)?;
    let conn = writer(&path, options.durability, PAYLOADS)?;
    migrate(&conn, schema::PAYLOADS)?;
    let payload_readers = Readers::open(&path, 2)?;
    let payloads = Writer::start("muster-payloads", conn)?;

    let path = dir.join(LOGS_FILE);
    make_private_file(&path)?;
    let conn = writer(&path, options.durability, LOGS)?;
    migrate(&conn, schema::LOGS)?;
    let log_readers = Readers::open(&path, 2)?;
    let logs = Writer::start("muster-logs", conn)?;

    Ok(SqliteStore {
        dir: dir.to_owned(),
        about: Mutex::new(StoreAbout {
            kind: "sqlite",
            place: dir.display().to_string(),
            durability: options.durability.word(),
            format: schema::FORMAT,
            mark: place.mark,
            suspicious: place.suspicious,
        }),
        decisions,
        upkeep,
        decision_readers,
        payloads,
        payload_readers,
        logs,
        log_readers,
        retired_to: Mutex::new(None),
        oldest_to: Mutex::new(None),
        keys_version: AtomicU64::new(1),
        payloads_to: Mutex::new(0),
        opened: (Timestamp::wall_clock(), Instant::now()),
    })
}

/// Makes a directory for its owner alone; one that is there stays as it is.
pub(super) fn make_private_dir(dir: &Path) -> StoreResult<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| cannot_write(dir, "make the data directory", source))
}

/// Makes a file for its owner alone; one that is there stays as it is. SQLite gives the files
/// beside it the same mode.
pub(super) fn make_private_file(path: &Path) -> StoreResult<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| cannot_write(path, "open", source))
}

fn cannot_write(path: &Path, doing: &str, source: std::io::Error) -> StoreError {
    match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly(path.display().to_string())
        }
        std::io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Io {
            doing: format!("{doing} {}", path.display()),
            source,
        },
    }
}

/// Takes the lock of the directory. The kernel gives it back when the process ends, however.
fn lock(dir: &Path) -> StoreResult<File> {
    let path = dir.join("lock");
    let file = make_private_file(&path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse(dir.display().to_string())),
        Err(errno) => Err(StoreError::Io {
            doing: format!("lock {}", path.display()),
            source: errno.into(),
        }),
    }
}

/// Brings a file to the newest format, each step in a transaction of its own.
pub(super) fn migrate(conn: &Connection, steps: &[&str]) -> StoreResult<()> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let found: u32 = conn
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed("read the format"))?;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    for (format, step) in (1..).zip(steps).skip(found as usize) {
        let doing = failed("migrate the store");
        conn.execute_batch(&format!(
            "BEGIN IMMEDIATE; {step} PRAGMA user_version = {format}; COMMIT;"
        ))
        .map_err(|error| {
            // Best effort: the error that matters is the first.
            let _ = conn.execute_batch("ROLLBACK");
            doing(error)
        })?;
    }
    Ok(())
}

/// Where a store was made: its own mark, and the inode of its file.
struct Place {
    mark: String,
    suspicious: Option<String>,
}

impl Place {
    fn of(conn: &Connection, path: &Path) -> StoreResult<Self> {
        let inode = inode(path)?;
        let meta = |name: &str| {
            conn.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| {
                row.get::<_, String>(0)
            })
            .optional()
            .map_err(failed("read what the store knows of itself"))
        };
        let Some(mark) = meta("mark")? else {
            let mark = fresh_mark()?;
            put_meta(conn, "mark", &mark)?;
            put_meta(conn, "format", &schema::FORMAT.to_string())?;
            put_meta(conn, "inode", &inode)?;
            return Ok(Self {
                mark,
                suspicious: None,
            });
        };
        put_meta(conn, "format", &schema::FORMAT.to_string())?;
        let suspicious = (meta("inode")?.as_deref() != Some(&inode)).then(|| {
            "the store was copied or restored: its file is not the one it was made in".to_owned()
        });
        Ok(Self { mark, suspicious })
    }
}

/// What was seen in this directory, kept in its lock file: of which store, and how far its
/// events went. A file that was put back from an older copy knows less.
pub(super) struct Seen {
    file: File,
    mark: String,
    known: Option<(String, u64)>,
    /// The store is suspicious: what was seen stays as it is until its place is accepted.
    doubted: AtomicBool,
}

impl Seen {
    fn of(file: File, mark: &str) -> Self {
        let mut text = [0; 128];
        let read = file.read_at(&mut text, 0).unwrap_or(0);
        let known = std::str::from_utf8(&text[..read])
            .ok()
            .and_then(|text| text.trim().split_once(' '))
            .and_then(|(mark, seq)| Some((mark.to_owned(), seq.trim().parse().ok()?)));
        Self {
            file,
            mark: mark.to_owned(),
            known,
            doubted: AtomicBool::new(false),
        }
    }

    /// Whether the store is doubted from now on.
    pub(super) fn doubt(&self, doubted: bool) {
        self.doubted.store(doubted, Ordering::Relaxed);
    }

    fn missing(&self, last: u64) -> Option<String> {
        let (mark, seq) = self.known.as_ref()?;
        if *mark != self.mark {
            return Some("the store is not the one that was here before".into());
        }
        (*seq > last).then(|| {
            format!("the store was put back to an older state: its last event is {last}, but {seq} was seen here")
        })
    }

    /// Keeps how far the events went. Best effort: it only ever adds a reason to be careful.
    pub(super) fn keep(&self, last: u64) {
        if self.doubted.load(Ordering::Relaxed) {
            return;
        }
        let line = format!("{} {last:>20}\n", self.mark);
        if let Err(error) = self.file.write_all_at(line.as_bytes(), 0) {
            tracing::debug!(%error, "the last event could not be kept beside the store");
        }
    }
}

fn fresh_mark() -> StoreResult<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Io {
        doing: "make the store's mark".into(),
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn inode(path: &Path) -> StoreResult<String> {
    let found = std::fs::metadata(path).map_err(|source| StoreError::Io {
        doing: format!("look at {}", path.display()),
        source,
    })?;
    Ok(found.ino().to_string())
}

fn put_meta(conn: &Connection, name: &str, value: &str) -> StoreResult<()> {
    conn.execute(
        "INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)",
        [name, value],
    )
    .map_err(failed("write what the store knows of itself"))?;
    Ok(())
}

impl SqliteStore {
    /// Accepts the place where the store now is: it is no longer suspicious.
    pub(super) fn stamp_place(&self) -> StoreResult<()> {
        let inode = inode(&self.dir.join(DECISIONS_FILE))?;
        self.decisions
            .lock()
            .transact("accept the place", |conn| put_meta(conn, "inode", &inode))?;
        self.upkeep
            .accept(self.decision_readers.with(super::known::last_seq)?);
        self.about.lock().suspicious = None;
        Ok(())
    }

    /// Bytes of the logs that are not yet moved into the files.
    pub(super) fn wal_bytes(&self) -> u64 {
        [DECISIONS_FILE, PAYLOADS_FILE, LOGS_FILE]
            .iter()
            .filter_map(|file| std::fs::metadata(self.dir.join(format!("{file}-wal"))).ok())
            .map(|found| found.len())
            .sum()
    }
}
