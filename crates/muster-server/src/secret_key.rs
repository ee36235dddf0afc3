//! The key from which attempts' secrets are derived. It lies beside the store, not in it, and
//! must stay the same for one store: an agent that calls back after a restart of the plane
//! proves itself with it.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use muster_store::Store;

const FILE: &str = "attempt.key";

/// Reads the key of a store, or makes it. A store without a directory gets a new one each time.
///
/// # Errors
/// When the file cannot be read or written, or is damaged.
pub(crate) fn of_store(store: &dyn Store) -> io::Result<[u8; 32]> {
    let about = store.about();
    if about.kind == "memory" || about.place.is_empty() {
        return random();
    }
    of_directory(Path::new(&about.place))
}

fn of_directory(directory: &Path) -> io::Result<[u8; 32]> {
    let path = directory.join(FILE);
    match OpenOptions::new().read(true).open(&path) {
        Ok(mut file) => {
            let mut key = [0u8; 32];
            file.read_exact(&mut key)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = random()?;
            // Written whole under another name first: half a key would lock every agent out.
            let fresh = directory.join(format!("{FILE}.new"));
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&fresh)?;
            file.write_all(&key)?;
            file.sync_all()?;
            std::fs::rename(&fresh, &path)?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut key = [0u8; 32];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_key_and_only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let first = of_directory(directory.path()).unwrap();
        assert_eq!(of_directory(directory.path()).unwrap(), first);
        let mode = std::fs::metadata(directory.path().join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(random().unwrap(), random().unwrap());
    }
}
