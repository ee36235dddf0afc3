//! Seals seeds before they go to the store. The key lives in a file of its own beside the
//! database, readable by its owner only: a copy of the database alone gives no private key.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

const KEY_FILE: &str = "identity.key";
const VERSION: u8 = 1;
const NONCE: usize = 24;

/// Seals and opens.
pub struct Sealer(XChaCha20Poly1305);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

/// A sealed seed that this key does not open.
#[derive(Debug, thiserror::Error)]
#[error(
    "a sealed secret cannot be opened: {KEY_FILE} is not the one it was sealed with; put the right one back into the data directory"
)]
pub struct CannotOpen;

impl Sealer {
    /// A key that is forgotten with the process, for a store that is too.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn ephemeral() -> io::Result<Self> {
        Ok(Self::from_key(random()?))
    }

    /// Whether a data directory has the key file.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(KEY_FILE).exists()
    }

    /// Reads the key file of a data directory, or makes it.
    ///
    /// # Errors
    /// When it cannot be read or written, or is no key.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(KEY_FILE);
        match fs::read(&path) {
            Ok(bytes) => {
                let key: [u8; 32] = bytes.try_into().map_err(|_| {
                    let text = format!("{} is not a key of 32 bytes", path.display());
                    io::Error::new(io::ErrorKind::InvalidData, text)
                })?;
                Ok(Self::from_key(key))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random()?;
                write_new(directory, &path, &key)?;
                Ok(Self::from_key(key))
            }
            Err(error) => Err(error),
        }
    }

    fn from_key(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// Seals a seed or a text; `about` must be the same when it is opened.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn seal(&self, secret: &[u8], about: &str) -> io::Result<Vec<u8>> {
        let mut nonce = [0u8; NONCE];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let payload = Payload {
            msg: secret,
            aad: about.as_bytes(),
        };
        let sealed = self
            .0
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| io::Error::other("a secret could not be sealed"))?;
        Ok([&[VERSION][..], &nonce, &sealed].concat())
    }

    /// Opens a seed that [`Sealer::seal`] sealed.
    ///
    /// # Errors
    /// When it was sealed with another key, for something else, or was changed.
    pub fn unseal(&self, sealed: &[u8], about: &str) -> Result<[u8; 32], CannotOpen> {
        let seed = self.unseal_text(sealed, about)?;
        seed.try_into().map_err(|_| CannotOpen)
    }

    /// Opens whatever [`Sealer::seal`] sealed.
    ///
    /// # Errors
    /// When it was sealed with another key, for something else, or was changed.
    pub fn unseal_text(&self, sealed: &[u8], about: &str) -> Result<Vec<u8>, CannotOpen> {
        let (&version, rest) = sealed.split_first().ok_or(CannotOpen)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE>().ok_or(CannotOpen)?;
        if version != VERSION {
            return Err(CannotOpen);
        }
        let payload = Payload {
            msg: text,
            aad: about.as_bytes(),
        };
        let opened = self.0.decrypt(&XNonce::from(*nonce), payload);
        opened.map_err(|_| CannotOpen)
    }
}

/// 32 bytes of the operating system's randomness.
pub(super) fn random() -> io::Result<[u8; 32]> {
    let mut key = [0u8; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(key)
}

/// Whole or not at all: a half-written key would lock its owner out.
fn write_new(directory: &Path, path: &Path, key: &[u8; 32]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let half = directory.join(format!("{KEY_FILE}.new"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&half)?;
    file.write_all(key)?;
    file.sync_all()?;
    fs::rename(&half, path)?;
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_seed_opens_with_its_key_and_its_name_only() {
        let sealer = Sealer::ephemeral().unwrap();
        let sealed = sealer.seal(&[7; 32], "did:a").unwrap();
        assert_eq!(sealer.unseal(&sealed, "did:a").unwrap(), [7; 32]);
        assert!(sealer.unseal(&sealed, "did:b").is_err());
        assert!(
            Sealer::ephemeral()
                .unwrap()
                .unseal(&sealed, "did:a")
                .is_err()
        );
        let mut changed = sealed.clone();
        changed[40] ^= 1;
        assert!(sealer.unseal(&changed, "did:a").is_err());
        for cut in 0..sealed.len() {
            assert!(sealer.unseal(&sealed[..cut], "did:a").is_err());
        }
        assert!(!sealed.windows(32).any(|w| w == [7; 32]));
    }

    #[test]
    fn the_key_file_is_private_and_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let sealed = Sealer::open(directory.path())
            .unwrap()
            .seal(&[1; 32], "x")
            .unwrap();
        let mode = fs::metadata(directory.path().join(KEY_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Sealer::open(directory.path()).unwrap();
        assert_eq!(again.unseal(&sealed, "x").unwrap(), [1; 32]);
        fs::write(directory.path().join(KEY_FILE), b"short").unwrap();
        assert!(Sealer::open(directory.path()).is_err());
    }
}
