//! Where the owner key of a plane on this machine may lie.

use std::path::{Path, PathBuf};

/// Where the owner key may lie: here, then at home.
pub(super) fn owner_directories() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(".muster")];
    places.extend(home().map(|home| home.join(".muster")));
    places
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

pub(super) fn owner_key(places: &[PathBuf]) -> Option<String> {
    places.iter().find_map(|place| read_owner_key(place))
}

/// The owner key in a data directory.
pub(crate) fn read_owner_key(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join("owner.key")).ok()?;
    let key = text.trim();
    (!key.is_empty()).then(|| key.to_owned())
}
