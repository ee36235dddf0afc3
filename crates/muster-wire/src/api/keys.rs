//! Keys: what one may do, who used it when, and what would end with it. A key's text is in the
//! answer that made it, and in no other.

use serde::{Deserialize, Serialize};

use super::{At, Open};
use crate::status::words;

words!(
    /// Whether a key is taken.
    KeyState {
        /// It is.
        Active = "active",
        /// It was revoked.
        Revoked = "revoked",
        /// Its time is over.
        Expired = "expired",
    }
);

/// A word for whether a key is taken.
pub type KeyStateWord = Open<KeyState>;

/// A key, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeyShown {
    /// Its id.
    pub id: String,
    /// The start of its text.
    pub prefix: String,
    /// A name people gave.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Who it stands for; a rotated key keeps it.
    pub principal: String,
    /// Whether it is taken.
    pub state: KeyStateWord,
    /// When it was made.
    pub created_at: At,
    /// When it was last used, to the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<At>,
    /// From where: an address, and what the program calls itself. Absent when it was not used
    /// since the plane started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_by: Option<String>,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<At>,
    /// After this it is no longer taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<At>,
    /// Streams, terminals and nodes' links that are open with it.
    pub open_links: u64,
    /// Browsers that are signed in with it.
    pub sessions: u64,
    /// Whether it is the one with which this was asked.
    pub is_own: bool,
    /// Whether it comes from the configuration, and can be changed only there.
    pub is_configured: bool,
}

/// Every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Keys {
    /// The plane's time of this answer.
    pub as_of: At,
    /// Newest first.
    pub keys: Vec<KeyShown>,
}

/// A key with its text: shown once.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeyMade {
    /// The key's text. It cannot be asked for again.
    pub key: String,
    /// The rest.
    #[serde(flatten)]
    pub record: KeyShown,
}

words!(
    /// An act on a key.
    KeyAct {
        /// It is no longer taken.
        Revoke = "revoke",
        /// Another takes its place.
        Rotate = "rotate",
    }
);

/// A word of an act on a key.
pub type KeyActWord = Open<KeyAct>;

/// What an act on a key would do. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeyConsequence {
    /// Always true.
    pub dry_run: bool,
    /// The plane's time of this answer.
    pub as_of: At,
    /// The act.
    pub act: KeyActWord,
    /// One sentence that says all of it.
    pub text: String,
    /// When it was last used, to the minute; `null` when it never was.
    #[cfg_attr(feature = "schema", schema(required))]
    pub last_used_at: Option<At>,
    /// From where; `null` when that is not known.
    #[cfg_attr(feature = "schema", schema(required))]
    pub last_used_by: Option<String>,
    /// Why `last_used_by` is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_by_unknown: Option<String>,
    /// Until when the old key is still taken; `null` when it ends at once.
    #[cfg_attr(feature = "schema", schema(required))]
    pub old_until: Option<At>,
    /// The key as it is now, with what is open with it.
    pub key: KeyShown,
}

/// The answer to a revocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum KeyRevocation {
    /// Nothing was done: with `dry_run=true`.
    Would(KeyConsequence),
    /// The key as it now is.
    Revoked(KeyShown),
}
