//! The owner key's file: what the first start writes and the command line reads, so that the
//! person who owns the data directory is never asked for a key.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::text::KeyText;

/// Where the owner key lies.
pub fn owner_key_path(data_dir: &Path) -> PathBuf {
    data_dir.join("owner.key")
}

/// Reads the owner key; `None` when there is no file or nothing in it.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn read_owner_key(data_dir: &Path) -> io::Result<Option<KeyText>> {
    let path = owner_key_path(data_dir);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((!text.trim().is_empty()).then(|| KeyText::from_file(&text)))
}

/// Takes rights away from a key file that others may read. Whether there was anything to do.
pub(super) fn tighten(data_dir: &Path) -> io::Result<bool> {
    let path = owner_key_path(data_dir);
    let mode = fs::metadata(&path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(false);
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(true)
}

/// Writes the owner key so that a crash leaves the old file or the new one, and nobody else
/// can read either at any moment.
pub(super) fn write(data_dir: &Path, key: &KeyText) -> io::Result<()> {
    fs::create_dir_all(data_dir)?;
    let path = owner_key_path(data_dir);
    let fresh = data_dir.join("owner.key.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    writeln!(file, "{}", key.expose())?;
    file.sync_all()?;
    fs::rename(&fresh, &path)?;
    fs::File::open(data_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_owner_s_alone_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_owner_key(dir.path()).unwrap(), None);
        let key = KeyText::mint().unwrap();
        write(dir.path(), &key).unwrap();
        write(dir.path(), &key).unwrap();
        assert_eq!(read_owner_key(dir.path()).unwrap(), Some(key));
        let path = owner_key_path(dir.path());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(!tighten(dir.path()).unwrap());
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(tighten(dir.path()).unwrap());
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
