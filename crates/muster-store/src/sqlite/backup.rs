//! A copy of the store while it runs. Each file is copied as it is at one moment, without
//! holding up its writer; the decisions first, so that every payload they name is in the copy.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::SqliteStore;
use super::connection::{Readers, failed};
use super::open::{DECISIONS_FILE, LOGS_FILE, PAYLOADS_FILE, make_private_dir, make_private_file};
use crate::{StoreError, StoreResult};

impl SqliteStore {
    /// Copies the store into a directory that has none yet. The copy knows that it is one: a
    /// plane started on it begins in hold.
    ///
    /// # Errors
    /// When there is a store in `dir` already, or it cannot be written.
    pub fn backup_to(&self, dir: &Path) -> StoreResult<()> {
        make_private_dir(dir)?;
        if dir.join(DECISIONS_FILE).exists() {
            return Err(StoreError::Conflict(format!(
                "there is a store in {} already",
                dir.display()
            )));
        }
        let files = [
            (DECISIONS_FILE, &self.decision_readers),
            (PAYLOADS_FILE, &self.payload_readers),
            (LOGS_FILE, &self.log_readers),
        ];
        for (file, readers) in files {
            copy(readers, &dir.join(file))?;
        }
        Ok(())
    }
}

fn copy(readers: &Readers, to: &Path) -> StoreResult<()> {
    let doing = failed("copy the store");
    make_private_file(to)?;
    let mut copy = Connection::open(to).map_err(&doing)?;
    readers.with(|conn| {
        let backup = Backup::new(conn, &mut copy).map_err(&doing)?;
        // In one step, so that commits meanwhile do not make it begin again.
        backup.step(-1).map_err(&doing)?;
        Ok(())
    })
}
