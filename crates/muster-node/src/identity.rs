//! Who this node is, in one file: the plane, the id, the name, the token. Readable by its owner
//! alone; written once, and never over another identity unless somebody says so.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::address::{AddressError, PlaneAddress};
use crate::state;

/// The file's name in the state directory.
pub const IDENTITY_FILE: &str = "identity.json";

/// Who a node is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The plane's address, as it was enrolled there.
    pub plane: String,
    /// The id that the plane gave it.
    pub node_id: String,
    /// Its name.
    pub name: String,
    /// Proves that it is this node.
    pub token: String,
    /// The labels it was enrolled with; they hold where it is started without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How many workers it was enrolled for, likewise; 0 is without bound.
    #[serde(default)]
    pub max_workers: u32,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("plane", &self.plane)
            .field("node_id", &self.node_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Why there is no identity to go by.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It was never enrolled.
    #[error(
        "this node is not enrolled: {0} is not there. Make a token at the plane and run `muster node enroll --plane URL --token TOKEN`"
    )]
    Missing(PathBuf),
    /// The file cannot be read, or holds something else.
    #[error("the identity {path} cannot be used: {why}")]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It is another's.
    #[error(
        "this state directory belongs to node {node_id} ({name}) of the plane at {plane}, and not to {other}: name another directory with --state, or replace it with `muster node enroll --force`"
    )]
    Mismatch {
        /// Whose it is.
        node_id: String,
        /// Its name.
        name: String,
        /// Of which plane.
        plane: String,
        /// What was asked for.
        other: String,
    },
    /// Its address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
}

impl Identity {
    /// The file in a state directory.
    pub fn path_in(state: &Path) -> PathBuf {
        state.join(IDENTITY_FILE)
    }

    /// Reads it; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(state: &Path) -> Result<Option<Self>, IdentityError> {
        let path = Self::path_in(state);
        let unusable = |why: String| IdentityError::Unusable {
            path: path.clone(),
            why,
        };
        match fs::read(&path) {
            // What a parser quotes may be the token, so it only says where.
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                unusable(format!(
                    "it is not an identity (line {}, column {})",
                    error.line(),
                    error.column()
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// Writes it, with rights for its owner alone.
    ///
    /// # Errors
    /// When another identity is there and `force` is not set, or it cannot be written.
    pub fn write(&self, state: &Path, force: bool) -> Result<(), IdentityError> {
        let unusable = |why: String| IdentityError::Unusable {
            path: Self::path_in(state),
            why,
        };
        if !force && let Some(old) = Self::read(state)? {
            old.must_be(&self.plane, Some(&self.node_id))?;
        }
        state::make_private(state).map_err(|error| unusable(error.to_string()))?;
        let text = serde_json::to_vec_pretty(self).map_err(|error| unusable(error.to_string()))?;
        state::write_durably(state, IDENTITY_FILE, &text)
            .map_err(|error| unusable(error.to_string()))
    }

    /// Refuses when it is of another plane, or another node.
    ///
    /// # Errors
    /// When it is.
    pub fn must_be(&self, plane: &str, node_id: Option<&str>) -> Result<(), IdentityError> {
        let same_plane = PlaneAddress::parse(plane)? == PlaneAddress::parse(&self.plane)?;
        if same_plane && node_id.is_none_or(|id| id == self.node_id) {
            return Ok(());
        }
        let other = match node_id {
            Some(id) if same_plane => format!("node {id}"),
            _ => format!("the plane at {plane}"),
        };
        Err(IdentityError::Mismatch {
            node_id: self.node_id.clone(),
            name: self.name.clone(),
            plane: self.plane.clone(),
            other,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn identity(plane: &str, node_id: &str) -> Identity {
        Identity {
            plane: plane.into(),
            node_id: node_id.into(),
            name: "mini".into(),
            token: "nt_canary".into(),
            labels: Vec::new(),
            max_workers: 0,
        }
    }

    #[test]
    fn an_identity_is_private_and_never_replaced_by_accident() {
        let state = tempfile::tempdir().unwrap();
        let state = state.path().join("node");
        assert_eq!(Identity::read(&state).unwrap(), None);
        let first = identity("http://127.0.0.1:8080", "node_1");
        first.write(&state, false).unwrap();
        let mode = fs::metadata(Identity::path_in(&state))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        // The same node again, by another spelling of its plane, has a new token.
        identity("127.0.0.1:8080/", "node_1")
            .write(&state, false)
            .unwrap();
        for other in [
            identity("http://127.0.0.1:8080", "node_2"),
            identity("http://other:1", "node_1"),
        ] {
            let refused = other.write(&state, false).unwrap_err();
            assert!(
                matches!(refused, IdentityError::Mismatch { .. }),
                "{refused}"
            );
            assert!(refused.to_string().contains("node_1"));
        }
        identity("http://other:1", "node_2")
            .write(&state, true)
            .unwrap();
        assert_eq!(Identity::read(&state).unwrap().unwrap().node_id, "node_2");
    }

    #[test]
    fn the_token_is_in_no_text_about_an_identity() {
        let state = tempfile::tempdir().unwrap();
        assert!(!format!("{:?}", identity("http://a", "n")).contains("canary"));
        fs::write(Identity::path_in(state.path()), "{\"token\": nt_canary").unwrap();
        let refused = Identity::read(state.path()).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("canary"));
    }
}
